from __future__ import annotations

import pytest

from tests.policy.fed_rows import FED
from tests.policy.rows import TABLE
from tests.policy.table import Row, judged


@pytest.mark.parametrize(
    "row", [*TABLE, *FED], ids=lambda row: f"{row.rules[:40]}|{row.mode}|{row.done[:50]}".replace("\n", "/")
)
def test_the_policy_decides(row: Row) -> None:
    found = judged(row)
    assert found.verdict.value == row.verdict, found.why
    assert found.why.isprintable()
