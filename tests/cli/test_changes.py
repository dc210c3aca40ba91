"""The end of a run sums up what was changed: nothing that is not so, nothing twice, and not more than a few rows."""

from __future__ import annotations

from handwork import events as ev
from handwork.cli.changes import Changes
from handwork.schema import JSON, Artifact


def begun(workspace: str = "/w") -> Changes:
    changes = Changes()
    changes(ev.RunStarted(request="x", model="m", workspace=workspace, limits={}))
    return changes


def edit(
    changes: Changes, path: str, added: int, removed: int, before: str = "a/x", after: str = "b/x", **more: JSON
) -> None:
    details: dict[str, JSON] = {
        "path": path,
        "diff": f"--- {before}\n+++ {after}\n@@ @@\n",
        "added": added,
        "removed": removed,
        **more,
    }
    changes(ev.ToolCallFinished(call_id="1", observation="", details=details))


def create(changes: Changes, path: str, added: int) -> None:
    edit(changes, path, added, 0, before="/dev/null")


def test_a_run_that_changed_nothing_has_nothing_to_say() -> None:
    changes = begun()
    changes(ev.ToolCallFinished(call_id="1", observation="", details={"path": "x", "lines": "3"}))
    changes(ev.ToolCallFinished(call_id="2", observation="x"))
    assert changes.rows() == []


def test_edits_of_one_file_are_one_row_however_it_is_called() -> None:
    changes = begun()
    edit(changes, "src/a.py", 3, 1)
    edit(changes, "/w/src/a.py", 10, 0)
    edit(changes, "./src/../src/a.py", 0, 2)
    create(changes, "new.md", 1200)
    edit(changes, "/tmp/other", 1, 1)
    assert changes.rows() == [
        "Edited 3 files, +1,214 −4 lines:",
        "  src/a.py  +13 −3",
        "  new.md  +1,200 −0  new",
        "  /tmp/other  +1 −1",
    ]


def test_a_file_that_is_gone_with_the_sandbox_is_said_to_be() -> None:
    changes = begun()
    edit(changes, "/tmp/x", 1, 0, before="/dev/null", private=True)
    assert changes.rows() == ["Edited /tmp/x  +1 −0  new  (in the sandbox only, gone with it)"]


def test_what_was_taken_back_is_no_change() -> None:
    changes = begun()
    edit(changes, "a", 3, 1)
    edit(changes, "a", 1, 3, undoes=True)
    create(changes, "b", 5)
    edit(changes, "b", 0, 5, after="/dev/null", undoes=True)
    assert changes.rows() == []
    create(changes, "b", 2)
    assert changes.rows() == ["Edited b  +2 −0  new"]


def test_taking_back_an_edit_of_an_earlier_run_is_a_change() -> None:
    changes = begun()
    edit(changes, "a", 1, 3, undoes=True)
    edit(changes, "b", 0, 4, after="/dev/null", undoes=True)
    assert changes.rows()[1:] == ["  a  +1 −3", "  b  +0 −4  removed"]
    create(changes, "b", 4)
    assert changes.rows()[2:] == ["  b  +4 −4"]


def test_a_call_that_failed_has_changed_nothing() -> None:
    changes = begun()
    details: dict[str, JSON] = {"path": "x", "diff": "--- a/x\n+++ b/x\n@@ @@\n+a\n"}
    changes(ev.ToolCallFinished(call_id="1", observation="", details=details, is_error=True))
    assert changes.rows() == []


def test_another_tools_diff_is_counted_by_its_lines() -> None:
    changes = begun()
    diff = "--- a/x\n+++ b/x\n@@ -1,2 +1,3 @@\n-a\n+b\n+++ c\n d\n"
    changes(ev.ToolCallFinished(call_id="1", observation="", details={"path": "x", "diff": diff}))
    assert changes.rows() == ["Edited x  +2 −1"]


def test_many_files_are_a_few_rows() -> None:
    changes = begun()
    for number in range(20):
        edit(changes, f"f{number}", 1, 0)
    rows = changes.rows()
    assert rows[0] == "Edited 20 files, +20 −0 lines:"
    assert len(rows) == 10
    assert rows[-1] == "  and 12 more files"


def test_each_run_begins_anew_and_a_sub_agents_edits_belong_to_it() -> None:
    changes = begun()
    edit(changes, "a", 1, 0)
    changes(ev.RunStarted(request="x", model="m", workspace="/w", limits={}))
    edit(changes, "b", 1, 0)
    changes(ev.RunStarted(request="x", model="m", workspace="/w", limits={}, parent_call="7"))
    edit(changes, "c", 1, 0)
    assert [row.split()[0] for row in changes.rows()[1:]] == ["b", "c"]


def test_a_files_name_cannot_act_on_the_terminal() -> None:
    changes = begun()
    create(changes, "a\x1b[2J\u202e\nEdited 9 files", 1)
    assert changes.rows() == ["Edited a Edited 9 files  +1 −0  new"]


def test_what_was_saved_for_people_is_named_and_a_long_output_is_not() -> None:
    changes = begun()
    artifacts = (Artifact(path="/h/chart.png", title="Chart"), Artifact(path="/h/bash.txt", title="long output"))
    changes(ev.ToolCallFinished(call_id="1", observation="", artifacts=artifacts))
    changes(ev.ToolCallFinished(call_id="2", observation="", artifacts=artifacts[:1]))
    assert changes.rows() == ["Saved:", "  Chart: /h/chart.png"]
