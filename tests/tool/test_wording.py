"""How numbers and sentences for the model are put together."""

from __future__ import annotations

import pytest

from handwork.tool.wording import counted, joined


@pytest.mark.parametrize(("number", "said"), [(0, "0 files"), (1, "1 file"), (2, "2 files"), (1200, "1,200 files")])
def test_what_is_counted_is_said_in_its_number(number: int, said: str) -> None:
    assert counted(number, "file") == said


@pytest.mark.parametrize(
    ("sentences", "text"),
    [
        (["Refused a.test", "Refused b.test"], "Refused a.test. Refused b.test"),
        (["Done.", None, "", "Why?", "(So.)", "End"], "Done. Why? (So.) End"),
        (["it is here (port 80)", "Next."], "it is here (port 80). Next."),
        (["same", "same"], "same. same"),
        ([], ""),
    ],
)
def test_a_sentence_does_not_run_into_the_next(sentences: list[str | None], text: str) -> None:
    assert joined(sentences) == text
