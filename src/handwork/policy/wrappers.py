"""Commands that run other commands: what stands behind env, sudo, sh -c, xargs, find -exec and their like."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from handwork.policy.behind import ANYTHING, Inner, Wrapper, behind, joined, text_of
from handwork.policy.commands import parse
from handwork.policy.exec_flags import exec_flags, program_of
from handwork.policy.parts import Part, Script
from handwork.policy.word import UNKNOWN, Word

_MOST = 16
"""Commands of one command that are looked at."""
_LONGEST = 1_000
"""Words of a command that is looked through; a longer one may run anything."""


_SUDO = Wrapper(
    "ugpCcDRrTtUha", ("--user", "--group", "--prompt", "--chroot", "--chdir", "--host", "--role", "--type"), 0, True
)
_PLAIN = Wrapper()
_XARGS = Wrapper("aEILnPsd", ("--arg-file", "--max-args", "--max-procs", "--delimiter"), more=True)
_WRAPPERS = {
    **dict.fromkeys(["sudo", "doas", "pkexec", "run0"], _SUDO),
    "env": Wrapper("uC", ("--unset", "--chdir"), assigns=True),
    **dict.fromkeys(["nohup", "setsid", "builtin", "busybox", "toybox", "command", "unbuffer", "catchsegv"], _PLAIN),
    **dict.fromkeys(["fakeroot", "fakechroot", "valgrind", "linux32", "linux64", "torsocks", "torify"], _PLAIN),
    **dict.fromkeys(["dbus-run-session", "dbus-launch", "npx", "bunx", "uvx", "pipx", "i386", "x86_64"], _PLAIN),
    **dict.fromkeys(["eatmydata", "chronic", "ifne", "entr", "caffeinate", "ld.so", "ld-linux-x86-64.so.2"], _PLAIN),
    **dict.fromkeys(["ld-linux-aarch64.so.1", "ld-linux.so.2", "ld-musl-x86_64.so.1"], _PLAIN),
    "exec": Wrapper("a"),
    "nice": Wrapper("n", ("--adjustment",)),
    "ionice": Wrapper("cnpPu", ("--class", "--classdata")),
    "time": Wrapper("fo", ("--format", "--output")),
    "stdbuf": Wrapper("ioe", ("--input", "--output", "--error")),
    "timeout": Wrapper("sk", ("--signal", "--kill-after"), 1),
    "chrt": Wrapper("TPDp", (), 1),
    "taskset": Wrapper("", (), 1),
    "chroot": Wrapper("", (), 1),
    "setarch": Wrapper("", (), 1),
    "faketime": Wrapper("f", (), 1),
    "unshare": Wrapper("RwSG", ("--root", "--wd", "--setuid", "--setgid")),
    "nsenter": Wrapper("tSGrw", ("--target", "--setuid", "--setgid")),
    "setpriv": Wrapper("", ("--reuid", "--regid", "--groups")),
    "prlimit": Wrapper(),
    "numactl": Wrapper("NmCi"),
    "systemd-run": Wrapper("pMHtu", ("--unit", "--property", "--uid", "--gid", "--setenv", "--slice")),
    "cgexec": Wrapper("g"),
    "strace": Wrapper("oeEpPsauIbOSX"),
    "ltrace": Wrapper("oeEpsaunlFA"),
    "proxychains": Wrapper("f"),
    "proxychains4": Wrapper("f"),
    "xvfb-run": Wrapper("efnpsw"),
    "firejail": Wrapper(),
    "rlwrap": Wrapper("bCDfHlpPqsStz"),
    "runuser": Wrapper("ugG", ("--user", "--group")),
    "xargs": _XARGS,
    "watch": Wrapper("nq", ("--interval",), joined=True),
    "parallel": Wrapper("jaISNnLdCPE", ("--jobs", "--arg-file", "--delay", "--results"), joined=True, more=True),
    "ssh": Wrapper("BbcDEeFIiJLlmOopQRSWw", (), 1, joined=True),
    "eval": Wrapper(joined=True),
}
_SHELLS = frozenset(["sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "fish", "rbash", "csh", "tcsh", "yash", "posh"])
_TAKING_TEXT = {
    **dict.fromkeys(["su", "runuser", "script", "flock", "sg", "npx", "npm", "pnpm"], "c"),
    **dict.fromkeys(["mapfile", "readarray", "complete"], "C"),
    **{"nix-shell": "", "xterm": "e"},
}
"""Programs to which an option of that letter (or --command, --run) gives a text for a shell."""
_RUNNERS = frozenset(
    {("uv", "run"), ("poetry", "run"), ("pipenv", "run"), ("pdm", "run"), ("hatch", "run"), ("conda", "run")}
    | {("bundle", "exec"), ("npm", "exec"), ("pnpm", "exec"), ("yarn", "exec"), ("pnpm", "dlx"), ("git", "bisect")}
)
_NAMED_VALUE = re.compile(r"^\s*(exec=|ProxyCommand[= ])")
_EXECUTING = frozenset({"-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch"})


def inner_commands(part: Part) -> tuple[Inner, ...]:
    """The commands that a command runs, as far as its words tell; one level of them."""
    words = part.words
    if not words or not words[0].static:
        return ()
    if len(words) > _LONGEST:
        return (Inner(1, ANYTHING),)
    name = program_of(words[0])
    found: list[Inner] = []
    if name in _SHELLS:
        found += _of_a_shell(words)
    if name in _TAKING_TEXT:
        found += _text_behind(words, _TAKING_TEXT[name])
    if reader := _READERS.get(name):
        found += reader(words)
    if len(words) > 2 and (name, words[1].text) in _RUNNERS:
        found += behind(words, 2 if name != "git" else 3, _PLAIN)
    if wrapper := _WRAPPERS.get(name):
        found += behind(words, 1, wrapper)
    own = min((inner.at for inner in found), default=len(words))
    flags = [at for at in exec_flags(words)[:_MOST] if at < own]
    return (*found, *(inner for at in flags for inner in _value_of(words, at)))


def _of_xargs(words: Sequence[Word]) -> list[Inner]:
    """`xargs -I{} …`: every word that holds the mark is nobody knows what."""
    for at, word in enumerate(words[:-1]):
        if found := re.fullmatch(r"-I(.*)|-i(.*)|--replace(?:=(.*))?", word.text, re.DOTALL):
            begin = at + 2 if word.text == "-I" else at + 1
            mark = found[1] or found[2] or found[3] or (words[at + 1].text if word.text == "-I" else "{}")
            rest = [UNKNOWN if mark in each.text else each for each in words[begin:]]
            return behind([*words[:begin], *rest], 1, _XARGS)
    return []


def _of_source(words: Sequence[Word]) -> list[Inner]:
    """`source <(…)`: what a stream or a variable holds is run; a file is a script like any other."""
    unknown = len(words) > 1 and (not words[1].static or words[1].text.startswith(("/dev/", "/proc/")))
    return [Inner(1, ANYTHING)] if unknown else []


def _of_parallel(words: Sequence[Word]) -> list[Inner]:
    """`parallel ::: text`: without a command the arguments are commands."""
    found = behind(words, 1, _WRAPPERS["parallel"])
    return [Inner(each.at, ANYTHING) for each in found if words[each.at].text.startswith(":::")]


def _of_a_shell(words: Sequence[Word]) -> list[Inner]:
    """`sh -c text`; without a text or a file a shell runs what it reads."""
    at, text = 1, False
    while at < len(words) and words[at].static and words[at].text[:1] in ("-", "+") and len(words[at].text) > 1:
        option = words[at].text
        at += 1
        if option == "--":
            break
        if option.startswith("--"):
            at += option in ("--rcfile", "--init-file")
            text = text or option == "--command"
            continue
        text = text or "c" in option
        if "s" in option:
            return [Inner(at - 1, ANYTHING)]
        at += option[-1] in "oO"
    if at >= len(words):
        return [Inner(len(words) - 1, ANYTHING)]
    if not words[at].static or words[at].text in ("-", "/dev/stdin"):
        return [Inner(at, ANYTHING)]
    return [Inner(at, text_of(words[at]))] if text else []


def _text_behind(words: Sequence[Word], letter: str) -> list[Inner]:
    """The text behind `-c` or `--command`."""
    found = []
    for at, word in enumerate(words[1:], 1):
        if not word.static:
            continue
        short = letter and re.fullmatch(rf"-[a-zA-Z]*{letter}", word.text)
        if short or word.text in ("--command", "--run"):
            found += [Inner(at + 1, text_of(words[at + 1]))] if at + 1 < len(words) else []
        elif word.text.startswith("--command=") or (letter and word.text.startswith(f"-{letter}")):
            found.append(Inner(at, parse(word.text.partition("=")[2] or word.text[2:])))
    return found


def _of_flock(words: Sequence[Word]) -> list[Inner]:
    return [each for each in behind(words, 1, Wrapper("wE", ("--timeout",), 1)) if each.at > 1]


def _of_find(words: Sequence[Word]) -> list[Inner]:
    """The commands of -exec and its like; `{}` is nobody knows what."""
    found: list[Inner] = []
    for at, word in enumerate(words[:-1]):
        if word.text in _EXECUTING and len(found) < _MOST:
            end = next((n for n in range(at + 1, len(words)) if words[n].text in (";", "+")), len(words))
            inner = tuple(UNKNOWN if "{}" in each.text else each for each in words[at + 1 : end])
            found.append(Inner(at + 1, Script((Part((*inner, UNKNOWN)),)) if inner else ANYTHING))
    return [*found, Inner(1, ANYTHING)] if len(found) == _MOST else found


def _of_alias(words: Sequence[Word]) -> list[Inner]:
    """What an alias stands for: it may be written anywhere from here on, with anything behind it."""
    found = []
    for at, word in enumerate(words[1:], 1):
        if not word.static:
            found.append(Inner(at, ANYTHING))
        elif "=" in word.text:
            found.append(Inner(at, joined([Word(word.text.partition("=")[2])], [UNKNOWN])))
    return found


def _of_trap(words: Sequence[Word]) -> list[Inner]:
    at = next((n for n, word in enumerate(words[1:], 1) if word.text != "--"), 0)
    if not at or words[at].text in ("-l", "-p", "-", ""):
        return [Inner(at, ANYTHING)] if at and not words[at].static else []
    return [Inner(at, text_of(words[at]))]


def _of_split_string(words: Sequence[Word]) -> list[Inner]:
    """`env -S "text"`: its words stand where the text does."""
    for at, word in enumerate(words[1:], 1):
        found = re.fullmatch(r"(?:-[a-zA-Z]*?S|--split-string)=?(.*)", word.text, re.DOTALL)
        if found:
            rest = words[at + 1 :]
            text = found[1] or (rest[0].text if rest else "")
            tail = rest if found[1] else rest[1:]
            return [Inner(at, joined([Word(f"env {text}"), *tail], []))]
    return []


def _of_git(words: Sequence[Word]) -> list[Inner]:
    """A text that git gives to a shell."""
    found = []
    for at, word in enumerate(words[1:], 1):
        text = word.text
        if text.startswith("--exec=") or "=!" in text:
            found.append(Inner(at, parse(re.sub(r"^.*?=!?", "", text, count=1))))
        elif words[at - 1].text in ("-c", "--config"):
            found.append(Inner(at - 1, parse(text.partition("=")[2])))
        elif text.startswith("!") and words[1].text == "config":
            found.append(Inner(at, parse(text[1:])))
        elif text in ("--exec", "-x", "foreach") and at + 1 < len(words):
            found.append(Inner(at, joined(words[at + 1 :], []) if text == "foreach" else text_of(words[at + 1])))
    return found


def _value_of(words: Sequence[Word], at: int) -> list[Inner]:
    """What may be a command in, or behind, an argument that makes the program run one."""
    value = words[at].text.partition("=")[2]
    if value:
        return [Inner(at, parse(_NAMED_VALUE.sub("", value)))]
    if at + 1 == len(words):
        return []
    behind_it = words[at + 1]
    return [Inner(at, parse(_NAMED_VALUE.sub("", behind_it.text)) if behind_it.static else ANYTHING)]


_READERS: dict[str, Callable[[Sequence[Word]], list[Inner]]] = {
    "find": _of_find,
    "fd": _of_find,
    "alias": _of_alias,
    "trap": _of_trap,
    "env": _of_split_string,
    "git": _of_git,
    "flock": _of_flock,
    "xargs": _of_xargs,
    "source": _of_source,
    ".": _of_source,
    "parallel": _of_parallel,
}
