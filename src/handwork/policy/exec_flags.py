"""Arguments by which a well-known program runs another program, or writes where it usually only reads."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from dataclasses import dataclass

from handwork.policy.word import Word


@dataclass(frozen=True, slots=True)
class _Flags:
    """Long options (any beginning of one is taken for it), letters of short ones (also among others), and whole words."""

    long: tuple[str, ...] = ()
    short: str = ""
    words: frozenset[str] = frozenset()


def _flags(long: str = "", short: str = "", words: str = "") -> _Flags:
    return _Flags(tuple(f"--{name}" for name in long.split()), short, frozenset(words.split()))


_GIT = _flags(
    "exec-path config-env upload-pack receive-pack exec ext-diff textconv open-files-in-pager output paginate extcmd "
    "template config git-dir work-tree strategy gpg-sign recurse-submodules",
    "cOxu",
    "submodule filter-branch bisect difftool mergetool config hook gui citool instaweb send-email web--browse help",
)
_SCRIPTS = "run run-script exec x dlx start test stop restart install i ci add rebuild publish version pack create init"
_FIND = "-exec -execdir -ok -okdir -delete -fprint -fprint0 -fprintf -fls"
_CARGO = "run r test t bench build b install check c clippy doc rustc fix"
_CURL = "output config upload-file remote-name output-dir dump-header cookie-jar trace trace-ascii stderr etag-save"
_TABLE = {
    "git": _GIT,
    "find": _flags("", "", _FIND),
    "fd": _flags("exec exec-batch", "xX"),
    "tar": _flags(
        "to-command checkpoint-action use-compress-program info-script new-volume-script rsh-command rmt-command "
        "absolute-names files-from transform xform",
        "IFP",
    ),
    "rsync": _flags("rsh rsync-path files-from log-file", "e"),
    "ssh": _flags("", "oFEPLRD"),
    "scp": _flags("", "oFSD"),
    "sftp": _flags("", "oFSDb"),
    "sort": _flags("compress-program output temporary-directory files0-from", "oT"),
    "rg": _flags("pre hostname-bin pre-glob search-zip", "z"),
    "man": _flags("pager html", "PH"),
    "less": _flags("", "oOkt+"),
    "vim": _flags("cmd startuptime servername", "cSsuUwW+"),
    "vi": _flags("cmd", "cSsuUwW+"),
    "nvim": _flags("cmd", "cSsuUwWl+"),
    "python": _flags("", "cmiX"),
    "perl": _flags("", "eEnpMmiIxsd"),
    "ruby": _flags("", "enprIiC"),
    "node": _flags("eval print require import loader experimental-loader env-file inspect", "eprCi"),
    "deno": _flags("", "", "eval run test task"),
    "php": _flags("run process-code process-begin", "rBRFEdacz"),
    "lua": _flags("", "eil"),
    "npm": _flags("script-shell prefix", "", _SCRIPTS),
    "pnpm": _flags("", "", _SCRIPTS),
    "yarn": _flags("", "", _SCRIPTS),
    "bun": _flags("", "", _SCRIPTS + " build"),
    "cargo": _flags("config", "Z", _CARGO),
    "go": _flags("", "", "run test generate build install tool vet -exec -toolexec -vettool"),
    "make": _flags("file makefile directory eval include-dir", "fCIE"),
    "gmake": _flags("file makefile directory eval include-dir", "fCIE"),
    "pip": _flags("", "", "install wheel download"),
    "pytest": _flags("pyargs rootdir confcutdir basetemp junitxml override-ini config-file", "pco"),
    "docker": _flags("", "H", "run exec build compose cp import load"),
    "kubectl": _flags("kubeconfig", "", "exec run apply cp debug"),
    "curl": _flags(_CURL, "oOKTJDc"),
    "wget": _flags("output-document output-file use-askpass config execute post-file append-output", "OoaePi"),
    "zip": _flags("unzip-command", "TO"),
    "unzip": _flags("", "d"),
    "tcpdump": _flags("", "zw"),
    "env": _flags("split-string", "S"),
    "printf": _flags("", "", "-v"),
    "test": _flags("", "", "-v -R"),
    "[": _flags("", "", "-v -R"),
    "wait": _flags("", "p"),
    "split": _flags("filter"),
    "tree": _flags("", "oR"),
    "ip": _flags("batch force", "", "netns vrf -b -batch"),
    "sqlite3": _flags("", "", "-cmd -init"),
    "gcc": _flags("", "", "-wrapper -B -specs -fplugin"),
    "bat": _flags("pager"),
    "emacs": _flags("eval execute load funcall script batch", "lf"),
    "psql": _flags("command file output log-file", "cfoL"),
    "mysql": _flags("execute init-command pager tee", "e"),
    "gdb": _flags("eval-command command init-command init-eval-command ex", "x"),
    "xxd": _flags("", "r"),
    "date": _flags("set file", "sf"),
    "hg": _flags("config cwd"),
    "svn": _flags("diff-cmd diff3-cmd editor-cmd config-option"),
    "nmap": _flags("script", "o"),
    "openssl": _flags("", "", "-engine -provider -config"),
}
_OF_THE_SHELL = frozenset(
    {"read", "mapfile", "readarray", "getopts", "declare", "typeset", "local", "export", "readonly", "let", "unset"}
    | {"shopt", "enable", "hash", "bind", "complete", "compopt", "source", ".", "exec", "fc", "history"}
)
"""Builtins whose arguments may set PATH, give a name to another program, or run what stands in them."""
_SAFE_SED = re.compile(
    r"\d*(,(\d+|\$))?[pd=q]|\$[pd=]|/[\w .-]*/[pd]|s(?P<sign>[/|,#:@])((?!(?P=sign))[^\\\n]|\\.)*(?P=sign)"
    r"((?!(?P=sign))[^\\\n]|\\.)*(?P=sign)[gpiI\d]*"
)
_HARMLESS_SED = frozenset(["-n", "-E", "-r", "-u", "-z", "--quiet", "--silent", "--regexp-extended"])
_AWK = re.compile(r"^-[^Fv]|^-$|^--|system|getline|[|>@]")
_AWKS = frozenset({"awk", "gawk", "mawk", "nawk"})


def program_of(word: Word) -> str:
    """The name of the program that a command word starts, without the path to it and without a number of its version."""
    return names_of(word)[-1]


def names_of(word: Word) -> tuple[str, ...]:
    """The names under which people know that program: python3.11, python3, python."""
    name = posixpath.basename(word.text)
    found = re.fullmatch(r"((python|pip|perl|ruby|lua|php|node|gcc|clang)\d*)[\d.-]*", name)
    return (name, found[1], found[2]) if found else (name,)


def exec_flags(words: Sequence[Word]) -> list[int]:
    """The places of the arguments that make the program run or write something else, as far as they are known."""
    name = program_of(words[0])
    if name == "sed":
        return _in_sed(words)
    if name in _AWKS:
        return [at for at, word in enumerate(words[1:], 1) if _AWK.search(word.text)]
    flags = _TABLE.get(name)
    if flags is None:
        return []
    found = [at for at, word in enumerate(words[1:], 1) if _is_one(flags, word.text)]
    if name in ("make", "gmake"):  # SHELL=x, CC=x
        found += [at for at, word in enumerate(words[1:], 1) if re.match(r"[A-Za-z_.][\w.]*[:+?!]*=", word.text)]
    if name == "tar" and len(words) > 1 and set(words[1].text) & set(flags.short):  # `tar xIf`, without a dash
        found.append(1)
    return found


def shell_changes(words: Sequence[Word]) -> list[int]:
    """The places of the arguments by which a builtin of the shell changes what later words mean."""
    return list(range(1, len(words))) if words[0].text in _OF_THE_SHELL else []


def _is_one(flags: _Flags, text: str) -> bool:
    name = text.partition("=")[0]
    if text in flags.words or name in flags.words:
        return True
    if text.startswith("--"):
        return len(name) > 2 and any(long.startswith(name) for long in flags.long)
    if text.startswith("+"):
        return "+" in flags.short
    return text.startswith("-") and bool(set(text[1:]) & set(flags.short))


def _in_sed(words: Sequence[Word]) -> list[int]:
    found, scripted = [], False
    for at, word in enumerate(words[1:], 1):
        text = word.text
        if text.startswith("-") and text != "-":
            if text not in _HARMLESS_SED:
                found.append(at)
            continue
        if not scripted and not _SAFE_SED.fullmatch(text):
            found.append(at)
        scripted = True
    return found
