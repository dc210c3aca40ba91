"""What [sandbox] writable may name."""

from __future__ import annotations

import pytest

from handwork.config import SandboxSettings


@pytest.mark.parametrize("path", [".vscode", ".git/hooks", "sub/.git/config", "./x"])
def test_a_path_of_the_workspace_may_be_freed(path: str) -> None:
    assert SandboxSettings(writable=(path,)).writable == (path,)


@pytest.mark.parametrize("path", ["", ".", "/etc", "~/x", "../x", "a/../../x", "a\0"])
def test_what_leads_out_of_it_or_frees_all_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match="no path in a workspace"):
        SandboxSettings(writable=(path,))
