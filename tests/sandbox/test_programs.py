"""exec and spawn: output, input, environment, errors, terminals."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
from pathlib import Path

import pytest

from handwork.errors import SandboxError
from handwork.sandbox.base import Process
from handwork.sandbox.client import SupervisedSandbox

from .conftest import Opener


def _bash(script: str) -> list[str]:
    return ["bash", "-c", script]


async def _read_all(process: Process) -> bytes:
    parts = []
    while data := await process.read():
        parts.append(data)
    return b"".join(parts)


async def _read_line(process: Process) -> bytes:
    line = b""
    while not line.endswith(b"\n") and (data := await process.read()):
        line += data
    return line


async def test_exec_tells_output_errors_and_exit_code_apart(sandbox: SupervisedSandbox) -> None:
    result = await sandbox.exec(_bash("echo out; echo err >&2; exit 3"))
    assert (result.exit_code, result.output, result.stderr, result.timed_out) == (3, b"out\n", b"err\n", False)


async def test_a_signal_is_a_negative_exit_code(sandbox: SupervisedSandbox) -> None:
    assert (await sandbox.exec(_bash("kill -TERM $$"))).exit_code == -signal.SIGTERM


async def test_standard_input_is_what_was_given_and_else_empty(sandbox: SupervisedSandbox) -> None:
    text = os.urandom(300_000)
    assert (await sandbox.exec(["cat"], stdin=text)).output == text
    assert (await sandbox.exec(["cat"])).output == b""


async def test_programs_see_a_clean_environment_and_what_is_added(
    sandbox: SupervisedSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    result = await sandbox.exec(_bash("env; cat /proc/1/environ"), env={"ADDED": "yes"})
    assert b"sk-secret" not in result.output
    for line in (b"ADDED=yes", b"TERM=dumb", b"PAGER=cat", b"GIT_TERMINAL_PROMPT=0", b"LANG=C.UTF-8"):
        assert line in result.output.splitlines()


async def test_a_program_or_folder_that_is_not_there_is_named(sandbox: SupervisedSandbox) -> None:
    with pytest.raises(FileNotFoundError, match="no-such-program"):
        await sandbox.exec(["no-such-program"])
    with pytest.raises(FileNotFoundError, match="no-such-folder"):
        await sandbox.exec(["true"], cwd="no-such-folder")
    await sandbox.write("plain", b"no program")
    with pytest.raises(PermissionError, match="plain"):
        await sandbox.spawn(["./plain"])
    with pytest.raises(OSError, match="argument"):
        await sandbox.exec(["echo", "a\0b"])


async def test_words_of_any_bytes_and_large_ones_arrive(sandbox: SupervisedSandbox) -> None:
    words = ["ä \n", os.fsdecode(b"\xff\xfe"), "x" * 100_000]
    result = await sandbox.exec(["printf", "%s|", *words])
    assert result.output == b"".join(os.fsencode(word) + b"|" for word in words)


async def test_the_working_folder_is_the_workspace_or_what_is_named(sandbox: SupervisedSandbox) -> None:
    await sandbox.write("below/file", b"")
    assert (await sandbox.exec(["pwd"])).output.decode().strip() == sandbox.workspace
    assert (await sandbox.exec(["ls"], cwd="below")).output == b"file\n"


async def test_output_beyond_the_limit_keeps_head_and_tail_in_bounded_memory(sandbox: SupervisedSandbox) -> None:
    await sandbox.exec(["true"])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    result = await sandbox.exec(
        _bash("echo first; head -c 100000000 /dev/zero | tr '\\0' x; echo last"), max_output=100_000
    )
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    assert result.output.startswith(b"first\n")
    assert result.output.endswith(b"last\n")
    assert len(result.output) < 101_000
    assert result.omitted == 100_000_011 - 100_000
    assert grown < 20_000_000


async def test_exec_ends_with_its_program_though_a_child_holds_the_pipe(sandbox: SupervisedSandbox) -> None:
    async with asyncio.timeout(60):
        result = await sandbox.exec(_bash("(while :; do sleep 0.01; echo y; done) & echo done; exit 4"))
    assert result.exit_code == 4
    assert b"done\n" in result.output


async def test_reading_ends_with_the_program_though_a_grandchild_holds_the_pipe(sandbox: SupervisedSandbox) -> None:
    process = await sandbox.spawn(_bash("setsid sleep 1000 & echo hello; exit 5"))
    async with asyncio.timeout(60):
        assert await _read_all(process) == b"hello\n"
        assert await process.wait() == 5
        assert len(await process.descendants()) == 1
        await process.kill()
        assert await process.descendants() == []


async def test_a_spawned_program_talks_and_its_streams_are_merged_in_order(sandbox: SupervisedSandbox) -> None:
    process = await sandbox.spawn(["bash"], stdin=True)
    await process.write(b"echo one; echo two >&2; echo three\n")
    seen = b""
    while b"three" not in seen:
        seen += await process.read()
    assert seen == b"one\ntwo\nthree\n"
    assert process.returncode is None
    await process.close_stdin()
    assert await process.wait() == 0
    assert await process.read() == b""
    with pytest.raises(BrokenPipeError):
        await process.write(b"more")


async def test_much_input_is_written_as_fast_as_it_is_read(sandbox: SupervisedSandbox) -> None:
    process = await sandbox.spawn(["wc", "-c"], stdin=True)
    await process.write(bytes(3_000_000))
    await process.close_stdin()
    assert (await _read_all(process)).strip() == b"3000000"


async def test_a_reader_that_stops_reading_stops_the_program(sandbox: SupervisedSandbox) -> None:
    process = await sandbox.spawn(["yes"])
    assert (await process.read(2)) == b"y\n"
    assert process.returncode is None
    await process.kill()
    assert await process.wait() == -signal.SIGKILL


async def test_a_terminal_is_one(sandbox: SupervisedSandbox) -> None:
    process = await sandbox.spawn(_bash("tty; read line < /dev/tty; echo got $line; exit 6"), pty=True)
    await process.write(b"typed\n")
    text = await _read_all(process)
    assert b"/dev/pts/" in text
    assert b"got typed" in text
    assert await process.wait() == 6


async def test_end_of_file_reaches_a_program_on_a_terminal(sandbox: SupervisedSandbox) -> None:
    process = await sandbox.spawn(["cat"], pty=True)
    await process.write(b"line\n")
    await process.close_stdin()
    async with asyncio.timeout(60):
        assert b"line" in await _read_all(process)
        assert await process.wait() == 0


async def test_without_a_terminal_there_is_none_to_open(sandbox: SupervisedSandbox) -> None:
    assert (await sandbox.exec(_bash("echo x > /dev/tty"))).exit_code != 0


async def test_a_signal_reaches_the_program(sandbox: SupervisedSandbox) -> None:
    # not SIGINT: to a shell that waits for a child it may mean that the child was meant
    process = await sandbox.spawn(_bash("trap 'echo caught; exit 7' USR1; echo ready; while :; do sleep 0.01; done"))
    assert await process.read() == b"ready\n"
    await process.signal(signal.SIGUSR1)
    assert await _read_all(process) == b"caught\n"
    assert await process.wait() == 7


async def test_programs_start_with_ordinary_signals_and_no_descriptor_of_ours(sandbox: SupervisedSandbox) -> None:
    result = await sandbox.exec(_bash("grep -E 'Sig(Blk|Ign)' /proc/self/status; ls /proc/self/fd | tr '\\n' ' '"))
    lines = result.output.decode().split("\n")
    ordinary = (1 << 31) - 1  # 32 and 33 are the C library's own
    assert [int(line.split()[1], 16) & ordinary for line in lines[:2]] == [0, 0]
    assert lines[2].split() == ["0", "1", "2", "3"]  # the last is the folder that ls reads


async def test_two_programs_share_temporary_files_and_ports(sandbox: SupervisedSandbox) -> None:
    script = (
        "import os, socket; s = socket.create_server(('127.0.0.1', 0)); "
        "open(os.environ['TMPDIR'] + '/port', 'w').write(str(s.getsockname()[1])); print('up'); c, _ = s.accept(); c.send(b'hi'); c.close()"
    )
    server = await sandbox.spawn(["python3", "-c", script])
    assert await _read_line(server) == b"up\n"
    result = await sandbox.exec(_bash("exec 3<>/dev/tcp/127.0.0.1/$(cat $TMPDIR/port); cat <&3"))
    assert result.output == b"hi"
    assert await server.wait() == 0


async def test_two_sandboxes_share_neither_temporary_files_nor_ports(opener: Opener) -> None:
    first, second = opener("bwrap"), opener("bwrap")
    await first.exec(_bash("echo x > /tmp/mine; echo x > ~/mine"))
    assert (await second.exec(_bash("ls /tmp/mine ~/mine"))).output == b""
    server = await first.spawn(
        ["python3", "-c", "import socket; s = socket.create_server(('', 4567)); print('up'); s.accept()"]
    )
    assert await _read_line(server) == b"up\n"
    assert (await second.exec(_bash("echo x > /dev/tcp/127.0.0.1/4567"))).exit_code != 0


async def test_many_at_once_do_not_mix(sandbox: SupervisedSandbox) -> None:
    results = await asyncio.gather(*(sandbox.exec(["echo", str(number)]) for number in range(40)))
    assert [int(result.output) for result in results] == list(range(40))


async def test_a_closed_sandbox_says_so(sandbox: SupervisedSandbox) -> None:
    await sandbox.close()
    with pytest.raises(SandboxError, match="closed"):
        await sandbox.exec(["true"])


def _descriptors() -> set[str]:
    return {name.name for name in Path("/proc/self/fd").iterdir()}


async def test_no_descriptor_is_left_by_any_kind_of_use(opener: Opener) -> None:
    for backend in ("bwrap", "host"):
        before = _descriptors()
        sandbox = opener(backend)
        await sandbox.write("file", b"data")
        for _ in range(3):
            await sandbox.exec(["cat", "file"], stdin=b"x")
            await sandbox.read("file")
            with pytest.raises(FileNotFoundError):
                await sandbox.exec(["no-such-program"])
            with pytest.raises(FileNotFoundError):
                await sandbox.read("missing")
            process = await sandbox.spawn(["cat"], stdin=True)
            await process.kill()
            terminal = await sandbox.spawn(["cat"], pty=True)
            del process
            await terminal.kill()
            del terminal
            task = asyncio.create_task(sandbox.exec(["sleep", "100"]))
            await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task])
        await sandbox.close()
        assert _descriptors() <= before


async def test_standard_error_that_is_kept_apart_is_read_though_nobody_asks(sandbox: SupervisedSandbox) -> None:
    script = "echo out; head -c 3000000 /dev/zero | tr '\\0' e >&2; echo last >&2; echo done; read line; exit 6"
    process = await sandbox.spawn(_bash(script), stdin=True, apart=True)
    async with asyncio.timeout(60):
        assert await _read_line(process) == b"out\n"
        assert await _read_line(process) == b"done\n"
        await process.write(b"\n")
        assert await process.wait() == 6
        await process.kill()
    assert process.errors.endswith("eeeelast\n")
    assert len(process.errors) == 65536


async def test_standard_error_is_merged_unless_it_is_kept_apart(sandbox: SupervisedSandbox) -> None:
    process = await sandbox.spawn(_bash("echo out; echo err >&2"))
    async with asyncio.timeout(60):
        assert await _read_all(process) == b"out\nerr\n"
    assert process.errors == ""
    apart = await sandbox.spawn(_bash("echo out; echo err >&2; exec 2>&-; cat"), stdin=True, apart=True)
    async with asyncio.timeout(60):
        assert await _read_line(apart) == b"out\n"
        await apart.close_stdin()
        await apart.wait()
        await apart.kill()
    assert apart.errors == "err\n"
