"""Commands that run other commands: what stands behind env, sudo, sh -c, xargs, find -exec and their like."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from handwork.policy.commands import parse
from handwork.policy.exec_flags import exec_flags, program_of
from handwork.policy.parts import Part, Script
from handwork.policy.word import UNKNOWN, Word

_ANYTHING = Script((Part((UNKNOWN,)),))
"""A command that nobody knows before it runs."""
_MOST = 16
"""Commands of one command that are looked at."""
_LONGEST = 1_000
"""Words of a command that is looked through; a longer one may run anything."""
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=", re.ASCII)


@dataclass(frozen=True, slots=True)
class Inner:
    """What a command runs: `at` is the place of the word with which that begins."""

    at: int
    script: Script


@dataclass(frozen=True, slots=True)
class _Wrapper:
    """How the words before the inner command are told from it.

    valued: letters of options that take the next word, if nothing else is in theirs.
    named: the same of long options.
    operands: words before the command. assigns: whether NAME=value may stand there.
    joined: the words become one text that a shell reads. more: further words follow that nobody knows.
    """

    valued: str = ""
    named: tuple[str, ...] = ()
    operands: int = 0
    assigns: bool = False
    joined: bool = False
    more: bool = False


_SUDO = _Wrapper(
    "ugpCcDRrTtUha", ("--user", "--group", "--prompt", "--chroot", "--chdir", "--host", "--role", "--type"), 0, True
)
_PLAIN = _Wrapper()
_WRAPPERS = {
    **dict.fromkeys(["sudo", "doas", "pkexec", "run0"], _SUDO),
    "env": _Wrapper("uC", ("--unset", "--chdir"), assigns=True),
    **dict.fromkeys(["nohup", "setsid", "builtin", "busybox", "toybox", "command", "unbuffer", "catchsegv"], _PLAIN),
    **dict.fromkeys(["fakeroot", "fakechroot", "valgrind", "linux32", "linux64", "torsocks", "torify"], _PLAIN),
    **dict.fromkeys(["dbus-run-session", "npx", "bunx", "uvx", "pipx"], _PLAIN),
    "exec": _Wrapper("a"),
    "nice": _Wrapper("n", ("--adjustment",)),
    "ionice": _Wrapper("cnpPu", ("--class", "--classdata")),
    "time": _Wrapper("fo", ("--format", "--output")),
    "stdbuf": _Wrapper("ioe", ("--input", "--output", "--error")),
    "timeout": _Wrapper("sk", ("--signal", "--kill-after"), 1),
    "chrt": _Wrapper("TPDp", (), 1),
    "taskset": _Wrapper("", (), 1),
    "chroot": _Wrapper("", (), 1),
    "setarch": _Wrapper("", (), 1),
    "faketime": _Wrapper("f", (), 1),
    "unshare": _Wrapper("RwSG", ("--root", "--wd", "--setuid", "--setgid")),
    "nsenter": _Wrapper("tSGrw", ("--target", "--setuid", "--setgid")),
    "setpriv": _Wrapper("", ("--reuid", "--regid", "--groups")),
    "prlimit": _Wrapper(),
    "numactl": _Wrapper("NmCi"),
    "systemd-run": _Wrapper("pMHtu", ("--unit", "--property", "--uid", "--gid", "--setenv", "--slice")),
    "cgexec": _Wrapper("g"),
    "strace": _Wrapper("oeEpPsauIbOSX"),
    "ltrace": _Wrapper("oeEpsaunlFA"),
    "proxychains": _Wrapper("f"),
    "proxychains4": _Wrapper("f"),
    "xvfb-run": _Wrapper("efnpsw"),
    "firejail": _Wrapper(),
    "rlwrap": _Wrapper("bCDfHlpPqsStz"),
    "runuser": _Wrapper("ugG", ("--user", "--group")),
    "xargs": _Wrapper("aEILnPsd", ("--arg-file", "--max-args", "--max-procs", "--delimiter"), more=True),
    "watch": _Wrapper("nq", ("--interval",), joined=True),
    "parallel": _Wrapper("jaISNnLdCPE", ("--jobs", "--arg-file", "--delay", "--results"), joined=True, more=True),
    "ssh": _Wrapper("BbcDEeFIiJLlmOopQRSWw", (), 1, joined=True),
    "eval": _Wrapper(joined=True),
}
_SHELLS = frozenset(["sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "fish", "rbash"])
_TAKING_TEXT = {"su": "c", "runuser": "c", "script": "c", "flock": "c", "nix-shell": "", "xterm": ""}
"""Programs to which an option of that letter gives a text for a shell."""
_RUNNERS = frozenset(
    {("uv", "run"), ("poetry", "run"), ("pipenv", "run"), ("pdm", "run"), ("hatch", "run"), ("conda", "run")}
    | {("bundle", "exec"), ("npm", "exec"), ("pnpm", "exec"), ("yarn", "exec"), ("pnpm", "dlx"), ("git", "bisect")}
)
_EXECUTING = frozenset({"-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch"})


def inner_commands(part: Part) -> tuple[Inner, ...]:
    """The commands that a command runs, as far as its words tell; one level of them."""
    words = part.words
    if not words or not words[0].static:
        return ()
    if len(words) > _LONGEST:
        return (Inner(1, _ANYTHING),)
    name = program_of(words[0])
    found: list[Inner] = []
    if name in _SHELLS:
        found += _of_a_shell(words)
    if name in _TAKING_TEXT:
        found += _text_behind(words, _TAKING_TEXT[name])
    if reader := _READERS.get(name):
        found += reader(words)
    if len(words) > 2 and (name, words[1].text) in _RUNNERS:
        found += _behind(words, 2 if name != "git" else 3, _PLAIN)
    if wrapper := _WRAPPERS.get(name):
        found += _behind(words, 1, wrapper)
    if not found:
        found += [inner for at in exec_flags(words)[:_MOST] for inner in _value_of(words, at)]
    return tuple(found)


def _behind(words: Sequence[Word], at: int, wrapper: _Wrapper) -> list[Inner]:
    """The command behind a wrapper's own words."""
    operands = wrapper.operands
    while at < len(words):
        word = words[at]
        if not word.static:
            break  # an option, its value or the command itself: nobody knows
        if word.text == "--":
            at += 1
            if not operands:
                break
        elif word.text.startswith("-") and len(word.text) > 1:
            at += 2 if _takes_next(word.text, wrapper) else 1
        elif wrapper.assigns and _ASSIGNMENT.match(word.text):
            at += 1
        elif operands:
            operands, at = operands - 1, at + 1
        else:
            break
    if at >= len(words):
        return []
    rest = words[at:]
    more = [UNKNOWN] if wrapper.more else []
    if wrapper.joined:
        return [Inner(at, _joined(rest, more))]
    if not rest[0].static:
        return [Inner(at, _ANYTHING)]
    return [Inner(at, Script((Part((*rest, *more)),)))]


def _takes_next(option: str, wrapper: _Wrapper) -> bool:
    if option.startswith("--"):
        return option in wrapper.named
    return option[-1] in wrapper.valued and not any(letter in wrapper.valued for letter in option[1:-1])


def _joined(words: Sequence[Word], more: Sequence[Word]) -> Script:
    """The script that words make when a shell reads them as one text."""
    if not all(word.static for word in words):
        known = parse(" ".join(word.text for word in words))
        return Script((*known.parts, *_ANYTHING.parts), known.accesses, known.whole, known.defined)
    script = parse(" ".join(word.text for word in words))
    if more and script.parts:
        *before, last = script.parts
        script = Script(
            (*before, Part((*last.words, *more), last.assigns)), script.accesses, script.whole, script.defined
        )
    return script


def _text(word: Word) -> Script:
    return parse(word.text) if word.static else _ANYTHING


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
            return [Inner(at - 1, _ANYTHING)]
        at += option[-1] in "oO"
    if at >= len(words):
        return [Inner(len(words) - 1, _ANYTHING)]
    if not words[at].static or words[at].text in ("-", "/dev/stdin"):
        return [Inner(at, _ANYTHING)]
    return [Inner(at, _text(words[at]))] if text else []


def _text_behind(words: Sequence[Word], letter: str) -> list[Inner]:
    """The text behind `-c` or `--command`."""
    found = []
    for at, word in enumerate(words[1:], 1):
        if not word.static:
            continue
        if word.text in ("--command", "--run", "-e") or re.fullmatch(rf"-[a-zA-Z]*{letter}", word.text):
            found += [Inner(at + 1, _text(words[at + 1]))] if at + 1 < len(words) and letter else []
        elif word.text.startswith("--command=") or (letter and word.text.startswith(f"-{letter}")):
            found.append(Inner(at, parse(word.text.partition("=")[2] or word.text[2:])))
    return found


def _of_flock(words: Sequence[Word]) -> list[Inner]:
    return [each for each in _behind(words, 1, _Wrapper("wE", ("--timeout",), 1)) if each.at > 1]


def _of_find(words: Sequence[Word]) -> list[Inner]:
    """The commands of -exec and its like; `{}` is nobody knows what."""
    found: list[Inner] = []
    for at, word in enumerate(words[:-1]):
        if word.text in _EXECUTING and len(found) < _MOST:
            end = next((n for n in range(at + 1, len(words)) if words[n].text in (";", "+")), len(words))
            inner = tuple(UNKNOWN if "{}" in each.text else each for each in words[at + 1 : end])
            found.append(Inner(at + 1, Script((Part((*inner, UNKNOWN)),)) if inner else _ANYTHING))
    return [*found, Inner(1, _ANYTHING)] if len(found) == _MOST else found


def _of_alias(words: Sequence[Word]) -> list[Inner]:
    """What an alias stands for: it may be written anywhere from here on, with anything behind it."""
    found = []
    for at, word in enumerate(words[1:], 1):
        if not word.static:
            found.append(Inner(at, _ANYTHING))
        elif "=" in word.text:
            found.append(Inner(at, _joined([Word(word.text.partition("=")[2])], [UNKNOWN])))
    return found


def _of_trap(words: Sequence[Word]) -> list[Inner]:
    at = next((n for n, word in enumerate(words[1:], 1) if word.text != "--"), 0)
    if not at or words[at].text in ("-l", "-p", "-", ""):
        return [Inner(at, _ANYTHING)] if at and not words[at].static else []
    return [Inner(at, _text(words[at]))]


def _of_split_string(words: Sequence[Word]) -> list[Inner]:
    """`env -S "text"`: its words stand where the text does."""
    for at, word in enumerate(words[1:], 1):
        found = re.fullmatch(r"(?:-[a-zA-Z]*?S|--split-string)=?(.*)", word.text, re.DOTALL)
        if found:
            rest = words[at + 1 :]
            text = found[1] or (rest[0].text if rest else "")
            tail = rest if found[1] else rest[1:]
            return [Inner(at, _joined([Word(f"env {text}"), *tail], []))]
    return []


def _of_git(words: Sequence[Word]) -> list[Inner]:
    """A text that git gives to a shell."""
    found = []
    for at, word in enumerate(words[1:], 1):
        text = word.text
        if text.startswith("--exec=") or "=!" in text:
            found.append(Inner(at, parse(re.sub(r"^.*?=!?", "", text, count=1))))
        elif text in ("--exec", "-x", "foreach") and at + 1 < len(words):
            found.append(Inner(at, _joined(words[at + 1 :], []) if text == "foreach" else _text(words[at + 1])))
    return found


def _value_of(words: Sequence[Word], at: int) -> list[Inner]:
    """What may be a command in, or behind, an argument that makes the program run one."""
    text = words[at].text
    value = text.partition("=")[2] if "=" in text else ""
    if not value and at + 1 < len(words):
        return [Inner(at, _text(words[at + 1]))]
    return [Inner(at, parse(re.sub(r"^\s*(exec=|ProxyCommand=)", "", value)))] if value else []


_READERS: dict[str, Callable[[Sequence[Word]], list[Inner]]] = {
    "find": _of_find,
    "fd": _of_find,
    "alias": _of_alias,
    "trap": _of_trap,
    "env": _of_split_string,
    "git": _of_git,
    "flock": _of_flock,
}
