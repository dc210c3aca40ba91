"""Completion for a shell: the script that asks Handwork, and where it is put so that each new shell has it."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from handwork.errors import ConfigError

_BASH = """\
_handwork_complete() {
    local line
    COMPREPLY=()
    while IFS= read -r line; do
        case $line in
            :files) compopt -o default 2>/dev/null ;;
            :folders) compopt -o plusdirs 2>/dev/null ;;
            *) COMPREPLY+=("$line") ;;
        esac
    done < <(_HANDWORK_COMPLETE=bash COMP_LINE="$COMP_LINE" COMP_POINT="$COMP_POINT" \\
        COMP_WORDBREAKS="$COMP_WORDBREAKS" "${1/#\\~/$HOME}" </dev/null 2>/dev/null)
}
complete -F _handwork_complete handwork
"""
_ZSH = """\
#compdef handwork
_handwork() {
    local line value place
    local -a found
    while IFS= read -r line; do
        case $line in
            :files|:folders) place=$line ;;
            *)
                value=${line%%$'\\t'*}
                value=${value//\\\\/\\\\\\\\}
                value=${value//:/\\\\:}
                [[ $line == *$'\\t'* ]] && value+=":${line#*$'\\t'}"
                found+=("$value") ;;
        esac
    done < <(_HANDWORK_COMPLETE=zsh ${~words[1]} "${(@Q)words[2,CURRENT]}" </dev/null 2>/dev/null)
    (( $#found )) && _describe -V handwork found
    case $place in
        :files) compset -P '--*='; _files ;;
        :folders) compset -P '--*='; _files -/ ;;
    esac
}
(( $+functions[compdef] )) || { autoload -Uz compinit && compinit }
compdef _handwork handwork
"""
_FISH = """\
function __handwork_complete
    set -l words (commandline -opc) (commandline -ct)
    for line in (_HANDWORK_COMPLETE=fish command $words[1] $words[2..-1] </dev/null 2>/dev/null)
        switch $line
            case :files
                __fish_complete_path (commandline -ct)
            case :folders
                __fish_complete_directories (commandline -ct)
            case '*'
                echo $line
        end
    end
end
complete -c handwork -f -k -a '(__handwork_complete)'
"""
_SCRIPTS = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}


def script(shell: str) -> str:
    """The script for a shell. Raises ConfigError for one that has none."""
    if shell not in _SCRIPTS:
        said = f"There is no completion for {shell!r}" if shell else "Which shell this is cannot be seen"
        raise ConfigError(said, hint="name one: handwork --install-completion bash (or zsh, fish)")
    return _SCRIPTS[shell]


def current_shell(environ: Mapping[str, str]) -> str:
    """The shell that runs this command, else the user's login shell; its bare name, '' if neither is known."""
    try:
        parent = Path(f"/proc/{os.getppid()}/comm").read_text().strip().lstrip("-")
    except OSError:
        parent = ""
    return parent if parent in _SCRIPTS else Path(environ.get("SHELL", "")).name


def install(shell: str, folder: Path, environ: Mapping[str, str]) -> Path:
    """Put the script into `folder` (for fish, where fish looks) and a line into the shell's start file; returns that file.

    Done again, it only writes the script anew. Raises ConfigError if something cannot be written.
    """
    text, home = script(shell), Path(environ.get("HOME") or Path.home())
    if shell == "fish":
        file = Path(environ.get("XDG_CONFIG_HOME") or home / ".config") / "fish/completions/handwork.fish"
        _attempt(lambda: _put(file, text), file, "write it by hand: handwork --show-completion fish")
        return file
    file = folder / f"completion.{shell}"
    start = home / ".bashrc" if shell == "bash" else Path(environ.get("ZDOTDIR") or home) / ".zshrc"
    line = f"[ -r {shlex.quote(str(file))} ] && . {shlex.quote(str(file))}  # handwork"
    _attempt(lambda: _put(file, text), file, f"use it as it is: source <(handwork --show-completion {shell})")
    _attempt(lambda: _add_line(start, line), start, f"add this line to your shell's start file: {line}")
    return start


def _attempt(write: Callable[[], object], file: Path, way: str) -> None:
    try:
        write()
    except OSError as error:
        raise ConfigError(f"{file} cannot be written: {error.strerror or error}", hint=way) from error


def _put(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def _add_line(file: Path, line: str) -> None:
    """Append a line that is not there yet; what stands in the file stays as it is, byte for byte."""
    before = file.read_bytes() if file.exists() else b""
    if line.encode() in before.splitlines():
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("ab") as appended:
        appended.write((b"\n" if before and not before.endswith(b"\n") else b"") + line.encode() + b"\n")


def answer(arguments: list[str]) -> int:
    """`--show-completion` and `--install-completion`, with a shell's name behind or not."""
    from handwork.config import Home

    option, equals, named = arguments[0].partition("=")
    rest = [named, *arguments[1:]] if equals else arguments[1:]
    if len(rest) > 1:
        raise ConfigError(f"{option} takes one shell's name, not {' '.join(rest)!r}")
    shell = rest[0] if rest else current_shell(os.environ)
    if option == "--show-completion":
        print(script(shell), end="")
        return 0
    file = install(shell, Home.from_environ(os.environ).config, os.environ)
    print(f"Completion for {shell} is in {file}; a new shell has it.", file=sys.stderr)
    return 0
