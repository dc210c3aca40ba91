"""python_execute on real sandboxes: state, figures, time-outs and crashes, each told truthfully (CONTRACT D1)."""

from __future__ import annotations

import asyncio
import base64
import os
from pathlib import Path
from typing import Any, cast

import psutil
import pytest

from handwork.errors import SandboxError, ToolError
from handwork.sandbox.base import Sandbox
from handwork.schema import Message, ToolResult
from handwork.tool.kernel import Kernel
from handwork.tool.python_execute import PythonExecute
from tests.tool.conftest import Place, kill_all_children

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
SHOW = f"from IPython.display import display, Image; import base64\npixel = Image(base64.b64decode('{PIXEL}'))\n"


async def run(place: Place, code: str, **arguments: Any) -> ToolResult:
    async with asyncio.timeout(60):
        return await PythonExecute().execute(context=place.context(), code=code, **arguments)


async def test_state_is_kept_and_the_last_expression_shown(place: Place) -> None:
    first = await run(place, "import os, math\nx = 40\nos.path.basename(os.getcwd())")
    assert first.output == "'workspace'\n"
    assert (await run(place, "x + 2")).output == "42\n"
    assert (await run(place, "y = 1")).output == ""


async def test_output_errors_and_the_traceback_are_all_kept(place: Place) -> None:
    result = await run(place, "import sys\nprint('out')\nprint('err', file=sys.stderr)\n1/0")
    assert "out\n" in result.output
    assert "err\n" in result.output
    assert "ZeroDivisionError: division by zero" in str(result.error)
    assert "\x1b" not in str(result)
    assert (await run(place, "sys.platform")).output == "'linux'\n"


async def test_a_syntax_error_is_an_error_and_the_kernel_survives(host: Place) -> None:
    result = await run(host, "def f(:\n  pass")
    assert "SyntaxError" in str(result.error)
    assert (await run(host, "1")).output == "1\n"


async def test_what_the_process_itself_and_its_children_write_is_shown(host: Place) -> None:
    result = await run(
        host, "import os, subprocess\nos.write(1, b'raw\\n')\nsubprocess.run(['echo', 'child'])\n!echo bang"
    )
    for word in ("raw", "child", "bang"):
        assert word in result.output


async def test_a_value_starts_on_a_line_of_its_own(host: Place) -> None:
    assert (await run(host, "print('a', end='')\n5")).output == "a\n5\n"


async def test_a_figure_comes_back_as_an_image(place: Place) -> None:
    result = await run(place, SHOW + "display(pixel)")
    assert result.base64_image is not None
    assert base64.b64decode(result.base64_image) == base64.b64decode(PIXEL)
    (kept,), (file,) = result.artifacts, place.artifacts.iterdir()
    assert (kept.title, kept.path, file.read_bytes()) == ("Figure 1", str(file), base64.b64decode(PIXEL))


async def test_all_figures_are_kept_and_the_model_is_told_of_those_it_does_not_see(host: Place) -> None:
    result = await run(host, SHOW + "display(pixel); display(pixel); pixel")
    assert [artifact.title for artifact in result.artifacts] == ["Figure 1", "Figure 2", "Figure 3"]
    assert {artifact.media_type for artifact in result.artifacts} == {"image/png"}
    assert sorted(p.read_bytes() for p in host.artifacts.iterdir()) == [base64.b64decode(PIXEL)] * 3
    assert "Only the first figure is shown" in str(result.system)
    assert str(result.artifacts[0].path).rsplit("/", 1)[-1] in str(result.system)


async def test_a_figure_of_matplotlib_is_shown(host: Place) -> None:
    result = await run(host, "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()", timeout=50)
    assert result.base64_image is not None
    assert base64.b64decode(result.base64_image).startswith(b"\x89PNG")


async def test_a_figure_too_large_is_named_and_not_brought_over(host: Place) -> None:
    code = "from IPython.display import display\ndisplay({'image/png': 'A' * 21_000_000}, raw=True)"
    result = await run(host, code)
    assert result.base64_image is None
    assert "too large" in str(result.system)


async def test_input_fails_fast_and_says_why(place: Place) -> None:
    result = await run(place, "input('name? ')", timeout=20)
    assert "nobody to answer" in str(result.error)
    assert "nobody to answer" in str((await run(place, "import getpass; getpass.getpass()", timeout=20)).error)


async def test_a_time_out_interrupts_and_state_survives(place: Place) -> None:
    await run(place, "x = 'kept'; import time")
    result = await run(place, "print('partial', flush=True); time.sleep(100)", timeout=1)
    assert "timed out after 1 s" in str(result.error)
    assert "survived" in str(result.error)
    assert result.output == "partial\n"
    assert (await run(place, "x")).output == "'kept'\n"  # nor is the request after an interrupt dropped


async def test_code_that_ignores_an_interrupt_is_killed_and_that_is_said(place: Place) -> None:
    await run(place, "x = 1; import time, subprocess; p = subprocess.Popen(['setsid', 'sleep', '401'])")
    result = await run(place, "while True:\n    try: time.sleep(9)\n    except BaseException: pass", timeout=1)
    assert "killed" in str(result.error)
    assert result.details is not None
    assert result.details["state_kept"] is False
    after = await run(place, "print('x' in globals())\n!grep -lszx '4[0]1' /proc/[0-9]*/cmdline | wc -l")
    assert after.output.split() == ["False", "0"]
    assert after.system is None


async def test_a_child_that_hangs_is_interrupted_with_the_code(host: Place) -> None:
    result = await run(host, "!sleep 402", timeout=1)
    assert "timed out" in str(result.error)
    assert (await run(host, "!grep -lszx '4[0]2' /proc/[0-9]*/cmdline | wc -l")).output.split() == ["0"]


@pytest.mark.parametrize(
    ("code", "how"),
    [
        ("import os; os._exit(3)", "exit code 3"),
        ("import os; os.kill(os.getpid(), 11)", "signal 11"),
        ("import ctypes; ctypes.string_at(0)", "signal 11"),
    ],
)
async def test_a_crash_is_told_and_the_next_call_has_a_new_kernel(place: Place, code: str, how: str) -> None:
    await run(place, "x = 1")
    # The kernel's own thread sends what is printed: give it the moment that a crash does not.
    result = await run(place, "import time; print('before', flush=True); time.sleep(0.3)\n" + code)
    assert "crashed" in str(result.error)
    assert how in str(result.error)
    assert result.output == "before\n"
    assert (await run(place, "'x' in globals()")).output == "False\n"


async def test_exit_ends_the_kernel_and_says_so(host: Place) -> None:
    result = await run(host, "exit()")
    assert result.error is None
    assert "as the code asked" in str(result.system)
    assert (await run(host, "1")).output == "1\n"


async def test_sys_exit_is_no_end_of_the_kernel(host: Place) -> None:
    await run(host, "x = 5")
    assert "SystemExit" in str((await run(host, "import sys; sys.exit(2)")).error)
    assert (await run(host, "x")).output == "5\n"


async def test_sys_exit_without_an_error_is_none(host: Place) -> None:
    result = await run(host, "print('a'); import sys; sys.exit(0)")
    assert (result.output, result.error) == ("a\n", None)
    assert "sys.exit(0)" in str(result.system)
    assert "live on" in str(result.system)


async def test_help_and_question_marks_are_shown(host: Place) -> None:
    assert "Return the number of items" in (await run(host, "help(len)")).output
    assert "Return the number of items" in (await run(host, "len?")).output


async def test_a_traceback_shows_the_code_of_the_calls_and_not_the_kernels(host: Place) -> None:
    await run(host, "def f(a):\n    return 1 / a")
    error = str((await run(host, "f(0)")).error)
    assert "Cell 2, line 1, in <module>\n    f(0)\n  Cell 1, line 2, in f\n    return 1 / a\n" in error
    assert "ipykernel" not in error


@pytest.mark.parametrize(
    ("code", "shown"),
    [
        ("list(range(100_000))", "(list of 100,000 items)"),
        ("'x' * 10_000_000", "(str of 10,000,000 characters)"),
        ("from IPython.display import HTML\nHTML('<p>one</p><p>two</p>')", "one\ntwo\n"),
        ("from IPython.display import Markdown\nMarkdown('# T')", "# T\n"),
        ("import asyncio\nawait asyncio.sleep(0, 'awaited')", "'awaited'\n"),
        ("%%bash\necho from bash", "from bash\n"),
        ("import warnings; warnings.warn('mind this')", "mind this"),
        ("raise ExceptionGroup('many', [ValueError(1)])", ""),
        ("def f(:", ""),
    ],
)
async def test_values_and_magics_come_back_usefully(host: Place, code: str, shown: str) -> None:
    result = await run(host, code)
    assert shown in result.output
    assert len(result.output) < 25_000


async def test_a_value_that_draws_itself_is_an_image_with_its_text(host: Place) -> None:
    code = (
        "import base64\nclass Chart:\n    def __repr__(self): return 'Chart(2 bars)'\n"
        f"    def _repr_png_(self): return base64.b64decode('{PIXEL}')\nChart()"
    )
    result = await run(host, code)
    assert result.output == "Chart(2 bars)\n"
    assert result.base64_image is not None


async def test_what_threads_print_between_two_calls_is_told_with_the_next(host: Place) -> None:
    code = (
        "import threading, pathlib, time\ndef late():\n    while not pathlib.Path('go').exists(): time.sleep(0.01)\n"
        "    print('late', flush=True); pathlib.Path('said').touch()\nthreading.Thread(target=late).start()"
    )
    assert (await run(host, code)).output == ""
    (host.workspace / "go").touch()
    await asyncio.to_thread(_until_exists, host.workspace / "said")
    result = await run(host, "import time; time.sleep(0.5); print('mine')")
    assert result.output.endswith("mine\n")
    assert "late\n" in result.output


def _until_exists(path: Path) -> None:
    while not path.exists():
        pass


async def test_a_table_of_pandas_is_wide_and_tells_its_size(host: Place) -> None:
    pytest.importorskip("pandas")
    code = "import pandas as pd\ndf = pd.DataFrame({f'column_{n}': range(1000) for n in range(12)})\nprint(df)\ndf"
    result = await run(host, code, timeout=50)
    assert result.output.count("[1000 rows x 12 columns]") == 2
    assert "column_11" in result.output


async def test_the_time_and_memory_of_a_call_are_in_its_details(host: Place) -> None:
    result = await run(host, "sum(i * i for i in range(3_000_000))")
    assert result.details is not None
    assert float(str(result.details["cpu_seconds"])) > 0.05
    assert int(str(result.details["peak_memory"])) > 10_000_000
    small = await run(host, "1")
    assert small.details is not None
    assert float(str(small.details["cpu_seconds"])) < 0.05


async def test_hundreds_of_prints_are_shown_in_few_pieces(host: Place) -> None:
    result = await run(host, "for i in range(5_000): print(i, flush=True)", timeout=50)
    assert result.output.endswith("4999\n")
    assert len(host.shown) < 500


async def test_a_sandbox_without_the_kernels_packages_says_what_to_install(host: Place, tmp_path: Path) -> None:
    stand_in = tmp_path / "python"
    stand_in.write_text("#!/bin/sh\necho \"ModuleNotFoundError: No module named 'ipykernel'\" >&2; exit 1\n")
    stand_in.chmod(0o755)

    class Bare:
        def __getattr__(self, name: str) -> object:
            return getattr(host.sandbox, name)

        python = str(tmp_path / "python")

    with pytest.raises(SandboxError, match="pip install ipykernel"):
        await Kernel(cast(Sandbox, Bare())).run("1", 30, _nobody)
    Bare.python = "/nowhere/python3"
    with pytest.raises(SandboxError, match="no Python in the sandbox"):
        await Kernel(cast(Sandbox, Bare())).run("1", 30, _nobody)


async def _nobody(_text: str) -> None:
    pass


def until_dead(process: psutil.Process) -> None:
    """Wait until it and all its threads have ended; nobody reaps it before the next call."""
    threads = Path(f"/proc/{process.pid}/task")
    while process.is_running() and (process.status() != psutil.STATUS_ZOMBIE or len(list(threads.iterdir())) > 1):
        pass


async def test_a_kernel_that_died_between_two_calls_is_replaced_and_the_code_runs(host: Place) -> None:
    await run(host, "import os, threading, time; pid = os.getpid()")
    pid = int((await run(host, "pid")).output)
    kernel = psutil.Process(pid)
    kernel.kill()
    await asyncio.to_thread(until_dead, kernel)
    result = await run(host, "print('ran')")
    assert result.output == "ran\n"
    assert "died" in str(result.system)
    assert result.error is None


async def test_two_hundred_thousand_prints_are_capped_with_head_and_tail(place: Place) -> None:
    result = await run(place, "for i in range(200_000): print(i)\nprint('end')", timeout=50)
    assert len(result.output) < 650_000
    assert result.output.startswith("0\n1\n")
    assert result.output.endswith("199999\nend\n")
    assert "characters omitted" in result.output
    assert "too long" in str(result.system)


@pytest.mark.parametrize(
    "code",
    [
        "for i in range(12_000): print(i, flush=True)",
        "from IPython.display import display\nfor i in range(6_000): display(i)",
    ],
)
async def test_thousands_of_single_outputs_all_come_through_and_so_does_their_end(host: Place, code: str) -> None:
    result = await run(host, code, timeout=55)
    assert (result.error, result.system) == (None, None)
    numbers = result.output.split()
    assert numbers == [str(n) for n in range(len(numbers))]
    assert len(numbers) in (6_000, 12_000)


async def test_a_reader_that_is_slow_holds_the_code_up_and_loses_nothing(host: Place) -> None:
    await run(host, "1")
    bridge = next(
        p for p in psutil.Process().children(recursive=True) if "kernel_inside.bridge" in " ".join(p.cmdline())
    )
    task = asyncio.create_task(run(host, "for i in range(6_000): print(i, flush=True)", timeout=55))
    await host.seen.wait()
    bridge.suspend()
    await asyncio.to_thread(_until_idle, bridge.children()[0])
    bridge.resume()
    assert (await task).output.split() == [str(n) for n in range(6_000)]


def _until_idle(process: psutil.Process) -> None:
    """Wait until it uses no time any more: it waits for somebody."""
    used = -1.0
    while (now := sum(process.cpu_times()[:2])) != used:
        used = now
        process.cpu_percent(interval=0.3)


async def test_an_end_of_the_output_that_never_comes_is_no_time_out_and_is_told(host: Place) -> None:
    quiet = "k = get_ipython().kernel; k._publish_status = lambda *a, **b: None; print('said')"
    result = await run(host, quiet, timeout=40)
    assert (result.output, result.error) == ("said\n", None)
    assert "some of it may be missing" in str(result.system)


@pytest.mark.parametrize(
    ("code", "says"),
    [
        (r"raise ValueError('\ud83d')", "ValueError: \ufffd"),
        (r"raise ValueError('\udc80')", "ValueError: "),
        ("class \ud800: pass", "SyntaxError"),
        ("get_ipython()._showtraceback = lambda *a: None\n1/0", "ZeroDivisionError: division by zero"),
    ],
)
async def test_code_that_failed_never_looks_like_code_that_did_not(host: Place, code: str, says: str) -> None:
    result = await run(host, code, timeout=20)
    assert says in str(result.error)


@pytest.mark.parametrize(
    ("code", "shown"),
    [
        (r"print('a\ud83d|')", "a\ufffd|\n"),
        (r"print('\ud83d\ude00')", "\U0001f600\n"),
        (r"from IPython.display import display; display({'text/plain': 'a\udfff'}, raw=True)", "a\ufffd\n"),
    ],
)
async def test_output_that_has_no_encoding_is_shown_with_a_sign(host: Place, code: str, shown: str) -> None:
    assert (await run(host, code)).output == shown


async def test_control_characters_do_not_come_through(host: Place) -> None:
    assert (await run(host, r"print('\033[31mred\033[0m\0|\u009b31m')")).output == "red\ufffd|\ufffd31m\n"


async def test_a_lone_surrogate_does_not_break_anything(host: Place) -> None:
    result = await run(host, "'\\ud800'")
    assert result.output == "'\\ud800'\n"
    assert (await run(host, "print('ok')")).output == "ok\n"


async def test_output_is_shown_while_the_code_runs(host: Place) -> None:
    code = "import time, os\nprint('early')\nwhile not os.path.exists('go'): time.sleep(0.01)\nprint('late')"
    task = asyncio.create_task(run(host, code))
    await host.seen.wait()
    assert "".join(host.shown) == "early\n"
    (host.workspace / "go").touch()
    assert (await task).output == "early\nlate\n"


async def test_cancelling_interrupts_within_two_seconds_and_the_next_result_says_that_state_survived(
    place: Place,
) -> None:
    await run(place, "x = 'kept'; import time")
    task = asyncio.create_task(run(place, "print('going', flush=True); time.sleep(100)"))
    await place.seen.wait()
    task.cancel()
    async with asyncio.timeout(2):
        with pytest.raises(asyncio.CancelledError):
            await task
    after = await run(place, "x")
    assert after.output == "'kept'\n"
    assert "cancelled" in str(after.system)
    assert "survived" in str(after.system)


async def test_cancelling_code_that_does_not_listen_kills_the_kernel_and_the_next_result_says_so(host: Place) -> None:
    await run(host, "import signal, time")
    code = "signal.signal(signal.SIGINT, signal.SIG_IGN)\nprint('going', flush=True)\nwhile True: time.sleep(9)"
    task = asyncio.create_task(run(host, code))
    await host.seen.wait()
    task.cancel()
    async with asyncio.timeout(3):
        with pytest.raises(asyncio.CancelledError):
            await task
    after = await run(host, "'time' in globals()")
    assert after.output == "False\n"
    assert "killed with the kernel" in str(after.system)


async def test_cancelling_while_the_kernel_starts_leaves_a_tool_that_works(host: Place) -> None:
    task = asyncio.create_task(run(host, "1"))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (await run(host, "2")).output == "2\n"


async def test_the_end_of_the_runs_time_bounds_the_code(host: Place) -> None:
    await run(host, "import time")
    deadline = asyncio.get_running_loop().time() + 0.5
    result = await PythonExecute().execute(context=host.context(deadline=deadline), code="time.sleep(90)", timeout=80)
    assert "timed out" in str(result.error)


async def test_files_of_the_workspace_can_be_imported_but_do_not_stand_in_for_the_library(place: Place) -> None:
    (place.workspace / "mine.py").write_text("value = 7")
    for name in ("random", "json", "queue", "tokenize", "ipykernel", "zmq"):
        (place.workspace / f"{name}.py").write_text("raise SystemExit('shadowed')")
    result = await run(place, "import mine, random; random.random() < 1, mine.value")
    assert (result.output, result.error) == ("(True, 7)\n", None)


async def test_a_kernel_that_cannot_start_says_why(host: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    await host.sandbox.exec(["true"])
    monkeypatch.setattr("handwork.sandbox.client.sys.executable", "/bin/false")
    with pytest.raises(SandboxError, match="did not start"):
        await run(host, "1")
    monkeypatch.undo()
    assert (await run(host, "1")).output == "1\n"


async def test_a_new_kernel_in_a_resumed_session_says_so_once(host: Place) -> None:
    history = [Message.tool_message("Observed output", "python_execute", "c1")]
    tool = PythonExecute()
    first = await tool.execute(context=host.context(history=history), code="1")
    second = await tool.execute(context=host.context(history=history), code="1")
    assert "resumed" in str(first.system)
    assert second.system is None


async def test_a_new_sandbox_means_a_new_kernel_and_says_so(host: Place) -> None:
    await run(host, "x = 1")
    kernel = host.resources["kernel"]
    assert isinstance(kernel, Kernel)
    assert kernel._link is not None
    kernel._link.generation -= 1  # as after a restart of the sandbox
    after = await run(host, "'x' in globals()")
    assert after.output == "False\n"
    assert "started anew" in str(after.system)


async def test_closing_leaves_no_process(host: Place) -> None:
    await run(host, "import subprocess; subprocess.Popen(['setsid', 'sleep', '403'])")
    await host.close()
    left = [p.cmdline() for p in psutil.Process(os.getpid()).children(recursive=True)]
    assert [line for line in left if "sleep" in line or "ipykernel_launcher" in " ".join(line)] == []


@pytest.mark.parametrize("arguments", [{"code": "a\0b"}, {"code": "1", "timeout": 0}])
async def test_unusable_arguments_are_clear_errors(host: Place, arguments: dict[str, Any]) -> None:
    with pytest.raises(ToolError):
        await run(host, **arguments)


async def test_it_is_declared_as_executing_anything() -> None:
    (action,) = PythonExecute().actions({"code": "1"})
    assert (action.kind, action.resource, action.repeatable) == ("execute", "*", False)


async def test_a_sandbox_that_dies_is_started_anew_and_the_next_result_says_so(place: Place) -> None:
    await run(place, "x = 1")
    kill_all_children()
    await asyncio.wait({place.resources["kernel"]._link._reader}, timeout=10)
    after = await run(place, "'x' in globals()")
    assert after.output == "False\n"
    assert "started anew" in str(after.system)


async def test_many_figures_and_a_huge_traceback_are_bounded(host: Place) -> None:
    result = await run(host, SHOW + "for _ in range(30): display(pixel)\nraise ValueError('x' * 10_000_000)")
    assert len(result.artifacts) == 20
    assert "10 more figures were left out" in str(result.system)
    assert "characters omitted" in str(result.error)
    assert len(str(result.error)) < 110_000


async def test_a_line_end_that_comes_in_two_pieces_is_one_line_end(host: Place) -> None:
    code = "import sys, time\nfor part in ('a\\r', '\\nb\\x1b', '[31mc'):\n    sys.stdout.write(part); sys.stdout.flush(); time.sleep(0.05)"
    assert (await run(host, code)).output == "a\nbc"
