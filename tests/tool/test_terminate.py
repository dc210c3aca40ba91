from __future__ import annotations

import pytest

from handwork.errors import ArgumentsError
from handwork.schema import Action
from handwork.tool.arguments import prepare
from handwork.tool.terminate import Terminate


@pytest.mark.parametrize("status", ["success", "failure"])
async def test_terminate_only_says_its_sentence(status: str) -> None:
    assert await Terminate().execute(status=status) == f"The interaction has been completed with status: {status}"
    assert await Terminate()(status=status) == f"The interaction has been completed with status: {status}"


@pytest.mark.parametrize("raw", ["{}", '{"status": "done"}', '{"status": "success", "more": 1}', '{"status": true}'])
def test_a_status_is_needed_and_is_one_of_two(raw: str) -> None:
    with pytest.raises(ArgumentsError):
        prepare(Terminate(), raw)


def test_terminate_ends_the_run_and_may_be_repeated() -> None:
    assert Terminate().actions({"status": "success"}) == [Action(kind="end", resource="run", repeatable=True)]
