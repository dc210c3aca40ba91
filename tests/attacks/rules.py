"""Rules of [policy] and modes: what they refuse is not done in other words, and where nobody can be asked nothing is done."""

from __future__ import annotations

from collections.abc import Mapping

from .row import Row, edit, python, search, shell, unchanged, writes
from .world import PRIVATE, World

DENIES_READS: Mapping[str, object] = {"approve": "auto", "rules": ["deny read .env", "deny read secrets/**"]}
DENIES_RUNS: Mapping[str, object] = {
    "approve": "auto",
    "rules": ["deny run rm *", "deny run touch *", "deny run git push *"],
}
ASKS: Mapping[str, object] = {
    "approve": "ask",
    "rules": ["allow run ls *", "allow run cat *", "allow run git status", "allow run git log *", "allow run find *", "allow run sed *",
              "allow run grep *", "allow run sort *", "allow run env", "allow run echo *", "allow run tar *", "allow run awk *",
              "allow run make check", "allow run python3 --version"],
}  # fmt: skip
READ_ONLY: Mapping[str, object] = {
    "approve": "read-only", "rules": ["allow run *", "allow tool bash", "allow write **", "allow tool python_execute"],
}  # fmt: skip


# ---- deny read

_SPELLINGS = (
    ".env", "./.env", ".//.env", "config/../.env", "@WS@/.env", "@WS@//.env", "//@WS@/.env", "../ws/.env", "link-to-env", "link-up/ws/.env",
    "/proc/self/cwd/.env", "/proc/self/root@WS@/.env", "./link-up/ws/./link-to-env", "link-to-outside/../ws/.env", ".env/", ".env/.",
    "secrets/token", "secrets/../secrets/token", "@WS@/secrets/token", "link-up/ws/secrets/token",
)  # fmt: skip
_NAMED = (
    "cat .env", "cat ./.env secrets/token", "cat @WS@/.env", "cat < .env", "grep -r . secrets", ". ./.env; echo $TOKEN",
    "cp .env copy; cat copy", "mv .env copy; cat copy", "ln .env copy; cat copy", "tar cf - .env secrets | strings", "diff .env /dev/null",
    "cat $(echo .env)", "git --no-pager diff --no-index /dev/null .env", "while read -r l; do echo $l; done < .env",
    "git add -f .env secrets; git stash; git show stash@{0}:.env", "rg -uu . secrets .env", "mv secrets elsewhere; cat elsewhere/token",
    "ln -s secrets s; cat s/token",
)  # fmt: skip
"""Commands that name the file."""
_UNNAMED = (
    "head -c 999 link-to-env", "grep TOKEN .e*", "cat /proc/self/cwd/.env", "x=.e; cat ${x}nv", "find . -name token -exec cat {} +",
    "echo 'cat .env' | sh", "cat .[e]nv", "python3 -c 'print(open(\".env\").read())'", "cd secrets; cat token; cd ..", "cat ../ws/.env",
    "cat link-up/ws/secrets/*",
)  # fmt: skip
"""Commands that do not: the kernel must hold."""


def _unread(_world: World, said: str) -> str:
    return f"it was told: {said[:200]}" if PRIVATE in said else ""


BY_PROGRAMS: list[Row] = [
    *(python(f"open against a rule {path}", f"print(open({path!r}).read())", _unread) for path in _SPELLINGS),
    *(shell(f"against a rule: {command}", command, _unread) for command in _UNNAMED),
]  # fmt: skip

CONFINED_READS: list[Row] = [
    *(row for path in _SPELLINGS for row in (
        edit(f"view against a rule {path}", _unread, command="view", path=path),
        edit(f"replace against a rule in {path}", _unread, command="str_replace", path=path, old_str="the", new_str="the"),
        edit(f"insert against a rule into {path}", _unread, command="insert", path=path, insert_line=0, new_str="x"),
        search(f"against a rule {path}", "own|TOKEN", path, _unread),
    )),
    *(search(f"against a rule below {path}", PRIVATE[:9], path, _unread)
      for path in (".", "", "secrets", "@WS@", "..", "link-up/ws", "./secrets/")),
    edit("view a folder against a rule", _unread, command="view", path="secrets"),
    *(shell(f"against a rule: {command}", command, _unread) for command in _NAMED),
    *BY_PROGRAMS,
]  # fmt: skip


# ---- deny run

_REMOVE = {
    "plainly": "rm keep.txt",
    "by its whole name": "/bin/rm keep.txt; /usr/bin/../bin/rm -f keep.txt",
    "with flags": "rm -rf -- keep.txt; touch -d yesterday touched",
    "behind another": "true && rm keep.txt; ls || true; touch touched",
    "in a pipe": "echo y | rm -i keep.txt; echo keep.txt | xargs rm; printf touched | xargs -I @ touch @",
    "in a subshell": "(rm keep.txt); { touch touched; }",
    "substituted": "echo $(rm keep.txt) `touch touched`; cat <(rm keep.txt)",
    "quoted": "r'm' keep.txt; \\rm keep.txt; $'\\x72m' keep.txt; \"rm\" keep.txt",
    "in a variable": "a=rm; $a keep.txt; ${a} keep.txt; $(echo rm) keep.txt",
    "by env": "env rm keep.txt; env -i /bin/rm keep.txt; env -S 'touch touched'; X=1 rm keep.txt",
    "by command and exec": "command rm keep.txt; exec rm keep.txt",
    "by builtins": "builtin eval 'rm keep.txt'; eval rm keep.txt; eval 'touch touched'",
    "by another shell": "sh -c 'rm keep.txt'; bash -c \"touch touched\"; dash -c 'rm keep.txt'; bash -lc 'rm keep.txt'",
    "by a shell's input": "echo 'rm keep.txt' | sh; sh <<'E'\nrm keep.txt\nE\nbash <<< 'touch touched'",
    "by timeout, nice and nohup": "timeout 5 rm keep.txt; nice -n 5 rm keep.txt; nohup touch touched; stdbuf -o0 rm keep.txt; time rm "
                                  "keep.txt",
    "by setsid, flock and script": "setsid rm keep.txt; flock /tmp/l rm keep.txt; script -qc 'rm keep.txt' /dev/null; chrt -i 0 touch "
                                   "touched",
    "by find": "find . -name keep.txt -exec rm {} +; find keep.txt -execdir rm {} \\;; find . -maxdepth 0 -exec touch touched \\;",
    "by a loop": "for x in keep.txt; do rm $x; done; while rm keep.txt; do break; done; if touch touched; then :; fi; ! rm keep.txt",
    "by case": "case x in x) rm keep.txt;; esac; select x in a; do touch touched; done <<< 1",
    "by a function": "f() { rm keep.txt; }; f; function g { touch touched; }; g",
    "by an alias": "shopt -s expand_aliases; alias l='rm keep.txt'\nl",
    "by a trap": "trap 'rm keep.txt' EXIT DEBUG; true",
    "by a coprocess": "coproc rm keep.txt; wait",
    "in the background": "rm keep.txt & touch touched & wait",
    "with braces": "{rm,keep.txt}; {touch,touched}",
    "over a line's end": "r\\\nm keep.txt\ntou\\\nch touched",
    "after a comment": "# x\nrm keep.txt # y",
    "by busybox": "busybox rm keep.txt; busybox touch touched; toybox rm keep.txt",
    "by sudo": "sudo -n rm keep.txt; doas rm keep.txt; su -c 'rm keep.txt'",
    "by base64": "echo cm0ga2VlcC50eHQ= | base64 -d | sh",
    "by xargs alone": "xargs -a <(echo keep.txt) rm; xargs rm <<< keep.txt; parallel rm ::: keep.txt",
    "by a redirection before": "</dev/null rm keep.txt; >/dev/null touch touched; 2>&1 rm keep.txt",
    "by arithmetic and tests": "(( $(rm keep.txt) )); [[ -n $(touch touched) ]]; a[$(rm keep.txt)]=1",
    "by a default": ": ${x:=$(rm keep.txt)}; : \"${y:-`touch touched`}\"",
    "by here-document": "cat <<E\n$(rm keep.txt)\nE",
    "by a mode of the shell": "set -- rm keep.txt; \"$@\"; $1 $2",
    "by an array": "a=(rm keep.txt); \"${a[@]}\"",
    "by a glob": "/bin/r? keep.txt; /bin/[r]m keep.txt; /usr/bin/tou*h touched",
    "by mapfile": "mapfile -C 'rm keep.txt;' -c 1 x <<< y",
    "by printf -v": "printf -v c '%s%s' r m; $c keep.txt",
    "by PROMPT_COMMAND": "PROMPT_COMMAND='rm keep.txt'",
    "by git": "git push origin main; git -C . push; git --no-pager push; command git push --force",
    "by git's alias": "git -c alias.x='!rm keep.txt' x",
}  # fmt: skip


def _held(world: World, said: str) -> str:
    """keep.txt is there, nothing was touched, and no push was tried."""
    found = [] if (world.workspace / "keep.txt").exists() else ["keep.txt is gone"]
    found += ["touched was made"] if (world.workspace / "touched").exists() else []
    found += ["a push was tried"] if "does not appear to be a git repository" in said else []
    return "; ".join(found)


def _put_back(world: World) -> None:
    (world.workspace / "keep.txt").write_text("plain\n")
    (world.workspace / "touched").unlink(missing_ok=True)


_NAMELESS = "a rule speaks of what a call names: {}"

CONFINED_RUNS: list[Row] = [
    *(shell(f"against a rule, {name}", command, _held, before=_put_back) for name, command in _REMOVE.items()),
    *(Row(f"against a rule in a terminal, {name}", (("bash", {"command": command, "pty": True, "timeout": 2}),), _held, before=_put_back)
      for name, command in list(_REMOVE.items())[:9]),
    Row("type against a rule",
        (("bash", {"command": "bash --norc", "pty": True, "timeout": 2}), ("bash", {"job": "t1", "input": "rm keep.txt\\n"}),
        ("bash", {"job": "t1", "input": "touch tou"}), ("bash", {"job": "t1", "input": "ched\\n"}),
         ("bash", {"job": "t1", "stop": True})), _held),
    Row("python: against a rule", (("python_execute", {"code": "import os; os.remove('keep.txt')"}),), _held,
        _NAMELESS.format("Python's cells name nothing"), _put_back),
    shell("against a rule, by a script", "echo 'rm keep.txt' > s; sh s", _held, _NAMELESS.format("a script does not say what it does"),
          before=_put_back),
    shell("against a rule, by another program", "unlink keep.txt", _held, _NAMELESS.format("other programs do the same"), before=_put_back),
    Row("against a rule, by an earlier call",
        (("bash", {"command": "mkdir b; ln -s /bin/rm b/ls; PATH=@WS@/b:$PATH"}), ("bash", {"command": "ls keep.txt"}),
         ("bash", {"command": "PATH=/usr/bin:/bin"})),
        _held, _NAMELESS.format("what an earlier call made of a name is not known"), _put_back),
]  # fmt: skip


# ---- nobody to ask, and read-only

_CHANGE = {
    "by a redirection": "ls > new; echo x >> plain.txt; cat plain.txt >| new; : > new; ls 2> new; ls &> new",
    "by a compound": "ls; touch new; cat plain.txt && rm plain.txt || true; git status & touch new",
    "by a substitution": "ls $(touch new) `touch new`; cat <(touch new) >(tee new); echo ${x:=$(touch new)} $(( $(touch new) ))",
    "by find": "find . -delete; find . -exec rm {} +; find . -fprint new; find . -fls new; find . -ok rm {} \\;; find plain.txt "
               "-execdir rm {} \\;",
    "by sed": "sed -i s/a/b/ plain.txt; sed -n 'w new' plain.txt; sed '1e touch new' plain.txt; sed --in-place=.bak s/a/b/ plain.txt; "
              "sed -f new",
    "by sort": "sort -o new plain.txt; sort --output=new plain.txt; sort --compress-program=sh plain.txt; sort -T . plain.txt -onew",
    "by awk": "awk 'BEGIN { print > \"new\" }'; awk 'BEGIN { system(\"touch new\") }'; awk '{ print | \"tee new\" }' plain.txt",
    "by tar": "tar cf new plain.txt; tar xf x; tar --to-command='touch new' -xf x; tar cf /dev/null --checkpoint=1 "
              "--checkpoint-action=exec='touch new' plain.txt; tar -I 'touch new' -cf /dev/null plain.txt",
    "by git": "git log --output=new; git -c alias.status='!touch new' status; git -c core.pager='touch new' log; git log --ext-diff -p; "
              "GIT_EXTERNAL_DIFF='touch new' git log -p --ext-diff; git -C . status; git --exec-path=. status",
    "by grep and env": "grep --color=always x plain.txt > new; env touch new; env X=1 sh -c 'touch new'; env -S 'touch new'",
    "by variables before": "PATH=.:$PATH ls; LD_PRELOAD=./x.so ls; BASH_ENV=new ls; IFS=x ls; LS_COLORS=x ls > new",
    "by a pipe": "cat plain.txt | tee new; echo 'touch new' | sh; ls | xargs touch; echo x | sponge new",
    "by another name": "./ls; /tmp/ls; ~/ls; ../ws/ls; command touch new; \\touch new; 'touch' new; tou''ch new",
    "by a function": "ls() { touch new; }; ls; cat() { rm plain.txt; }; cat x; alias ls='touch new'; function echo { touch new; }; echo",
    "by a job": "touch new & coproc touch new; (touch new); { touch new; }; ! touch new; time touch new; exec touch new",
    "by a word that is none": "ls\ntouch new; ls # x\ntouch new; echo \\\n$(touch new); l\\\ns; t\\\nouch new",
    "by python": "python3 -c 'open(\"new\", \"w\")'; python3 --version; python3 -m venv new; python3 < plain.txt",
    "by make": "make; make -f new check; make check SHELL=touch; make -C . check; make --eval='x:;touch new' check",
    "by a mark that is no text": "touch new\x00; ls \x1b[2Ktouch new; ls\u2028touch new; ls\rtouch new; ls\u00a0; touch\u00a0new",
    "by what cannot be read": "ls ${x; touch new; ls 'x; touch new; ls $((; touch new; ((ls)); touch new; ls <<E; touch new",
}  # fmt: skip


def _quiet(rows: list[Row]) -> list[Row]:
    """The rows, each held to have changed nothing in the workspace."""
    return [Row(row.name, row.calls, unchanged) for row in rows]


def _still(mode: str, *, commands: Mapping[str, str]) -> list[Row]:
    tools: list[Row] = [
        *(row for name in ("new", "plain.txt", "config/new", "@WS@/new", "link-to-env", "/tmp/../@WS@/new", "dangling")
          for row in writes(name, name)),
        edit("replace", command="str_replace", path="plain.txt", old_str="plain", new_str="x"),
        edit("insert", command="insert", path="plain.txt", insert_line=0, new_str="x"),
        edit("undo", command="undo_edit", path="plain.txt"),
        python("a cell",
            "open('new', 'w')"), python("a magic", "!touch new"), python("what looks like nothing", "1 + 1; __import__('os').mkdir('new')"),
        Row("a terminal", (("bash", {"command": "touch new", "pty": True}), ("bash", {"job": "t1", "input": "touch new\\n"}))),
        Row("a restart with a command", (("bash", {"restart": True, "command": "touch new"}),)),
        search("a program before", "--pre=touch new", "."),
    ]  # fmt: skip
    shells = [shell(name, command) for name, command in commands.items()]
    return [Row(f"{mode}: {row.name}", row.calls, row.check) for row in _quiet([*tools, *shells])]


def _seen(_world: World, said: str) -> str:
    return "" if "plain" in said else f"nothing was read: {said[:200]}"


def _works(mode: str) -> list[Row]:
    """What may be done is done: a table in which nothing works would hold everything."""
    return [Row(f"{mode}: look", (("str_replace_editor", {"command": "view", "path": "plain.txt"}),), _seen)]


ASKING: list[Row] = [
    *_works("ask"), shell("ask: what a rule allows", "cat plain.txt; git status; ls -la | grep plain", _seen),
    *_still("ask", commands=_CHANGE),
]  # fmt: skip
LOOKING: list[Row] = [*_works("read-only"), *_still("read-only", commands=_CHANGE)]
