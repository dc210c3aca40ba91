"""What is no text does not fill what the model reads; what is, in whatever language, stays as it is."""

from __future__ import annotations

import pytest

from handwork.tool.bash import Bash
from handwork.tool.no_text import without_bytes
from handwork.tool.python_execute import PythonExecute
from tests.tool.conftest import Place


async def test_bytes_are_named_by_their_size_and_the_lines_around_them_stay(host: Place) -> None:
    result = await Bash().execute(
        context=host.context(),
        command="echo before; head -c 300000 /dev/urandom; echo; echo after; (exit 3)",
    )
    output = str(result.output)
    assert output.startswith("before\n[")
    assert output.endswith(" characters that are no text are left out]\nafter\n[exit code: 3]")
    assert len(output) < 200
    assert "xxd | head" in str(result.system)


async def test_bytes_that_python_writes_are_named_too(host: Place) -> None:
    result = await PythonExecute().execute(context=host.context(), code="!head -c 30000 /dev/urandom")
    assert "characters that are no text are left out]" in str(result.output)
    assert len(str(result.output)) < 200


@pytest.mark.parametrize(
    "output", ["", "plain\n", "naïve – 日本語\n" * 500, "\ufffd" * 200, ("a" * 20 + "\ufffd") * 999]
)
def test_text_with_some_signs_stays_as_it_is(output: str) -> None:
    assert without_bytes(output) == (output, "")


def test_text_full_of_nul_is_no_text() -> None:
    assert without_bytes("h\ufffdi\ufffd" * 200)[0] == "[800 characters that are no text are left out]"
