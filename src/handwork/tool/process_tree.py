"""End one program inside the sandbox with all below it, and nothing else: asked first, then killed."""

from __future__ import annotations

import contextlib

from handwork.errors import SandboxError
from handwork.sandbox.base import Sandbox

_LIMIT = 15.0
# Bash only, as an image may have no Python. All is stopped before it is killed, so that nothing is born meanwhile.
_STOP = r"""
signal=$1; shift
tree() {
  local line pid folder; local -A children=(); found=()
  for folder in /proc/[0-9]*; do
    read -r line < "$folder/stat" || continue
    pid=${folder#/proc/}; line=${line##*) }; local words=($line)
    [[ ${words[0]} == [ZX] ]] || children[${words[1]}]+=" $pid"
    [[ ${words[0]} == [ZX] ]] || living[$pid]=1
  done
  local queue=("$@")
  while ((${#queue[@]})); do
    pid=${queue[0]}; queue=("${queue[@]:1}")
    [[ ${living[$pid]} ]] && found+=("$pid")
    queue+=(${children[$pid]})
  done
}
declare -A living
tree "$@"; first=("${found[@]}")
kill -"$signal" "${first[@]}"; kill -CONT "${first[@]}"
for _ in {1..20}; do
  kill -0 "${first[@]}" || break
  sleep 0.05
done
for _ in {1..50}; do
  living=(); tree "$@" "${first[@]}"
  ((${#found[@]})) || exit 0
  kill -STOP "${found[@]}"
  before=${#found[@]}; living=(); tree "$@" "${first[@]}"
  ((${#found[@]} > before)) || { kill -KILL "${found[@]}"; sleep 0.02; }
done
exit 1
"""


async def end_tree(sandbox: Sandbox, pids: list[int], signal: str) -> bool:
    """Send the signal (a name: TERM, HUP) to these and all below them, and kill what is left a second later. Whether all are gone."""
    with contextlib.suppress(OSError, SandboxError):
        words = ["bash", "-c", _STOP, "bash", signal, *map(str, pids)]
        return (await sandbox.exec(words, timeout=_LIMIT)).exit_code == 0
    return False
