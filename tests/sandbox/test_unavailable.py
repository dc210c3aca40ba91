"""Why no sandbox starts here: the cause is looked up, and the way out fits it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from handwork.sandbox.unavailable import install_command, missing, not_started

_REFUSED = "bwrap: setting up uid map: Permission denied"


def _sysctls(folder: Path, **values: str) -> Path:
    for name, value in values.items():
        file = folder / name.replace("__", "/")
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"{value}\n")
    return folder


@pytest.mark.parametrize(
    ("switch", "cause", "remedy"),
    [
        ({"kernel__unprivileged_userns_clone": "0"}, "switched off", "kernel.unprivileged_userns_clone=1"),
        ({"user__max_user_namespaces": "0"}, "switched off", "user.max_user_namespaces=15000"),
    ],
)
def test_a_switch_that_forbids_namespaces_is_named_with_the_command_that_turns_it(
    switch: dict[str, str], cause: str, remedy: str, tmp_path: Path
) -> None:
    error = not_started(_REFUSED, sysctls=_sysctls(tmp_path, **switch))
    assert cause in error.what
    assert remedy in error.hint
    assert "--sandbox host" in error.hint


@pytest.mark.parametrize("said", [_REFUSED, "bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted"])
def test_on_ubuntu_the_apparmor_profile_is_the_way_out(
    said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 1000)
    folder = _sysctls(
        tmp_path,
        kernel__apparmor_restrict_unprivileged_userns="1",
        kernel__unprivileged_userns_clone="1",
        user__max_user_namespaces="15000",
    )
    error = not_started(said, sysctls=folder)
    assert "AppArmor" in error.what
    assert "apparmor_parser -r /etc/apparmor.d/bwrap-userns-restrict" in error.hint


def test_in_a_container_its_options_are_the_way_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("container", "podman")
    error = not_started(_REFUSED, sysctls=tmp_path)
    assert "container" in error.what
    assert "--security-opt seccomp=unconfined" in error.hint


def test_what_is_not_about_namespaces_is_not_explained_by_them(tmp_path: Path) -> None:
    error = not_started("bwrap: Can't find source path /nowhere: No such file or directory", sysctls=tmp_path)
    assert "/nowhere" in error.what
    assert "namespace" not in str(error)
    assert "it said nothing" in not_started("").what


def test_a_workspace_behind_a_private_folder_is_not_blamed_on_namespaces(tmp_path: Path) -> None:
    error = not_started("bwrap: Can't find source path /proc/self/fd/7: Permission denied", sysctls=tmp_path)
    assert "private to another user" in error.what
    assert "as the user who owns" in error.hint


@pytest.mark.parametrize(
    ("release", "command"),
    [
        ("ID=debian\n", "apt-get install bubblewrap"),
        ('NAME="Linux Mint"\nID=linuxmint\nID_LIKE="ubuntu debian"\n', "apt-get install bubblewrap"),
        ('ID="rocky"\nID_LIKE="rhel centos fedora"\n', "dnf install bubblewrap"),
        ("ID=manjaro\nID_LIKE=arch\n", "pacman -S bubblewrap"),
        ('ID="opensuse-tumbleweed"\nID_LIKE="opensuse suse"\n', "zypper install bubblewrap"),
        ("ID=alpine\n", "apk add bubblewrap"),
        ("ID=something\n", "apt-get install bubblewrap"),
        ("", "apt-get install bubblewrap"),
    ],
)
def test_the_line_that_installs_it_is_the_distributions_own(release: str, command: str, tmp_path: Path) -> None:
    file = tmp_path / "os-release"
    file.write_text(release)
    assert install_command(file) == command
    assert install_command(tmp_path / "none") == "apt-get install bubblewrap"


def test_on_another_system_nothing_is_recommended_that_does_not_exist_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    error = missing()
    assert "Linux only" in error.what
    assert "apt-get" not in str(error)
    assert "virtual machine" in error.hint
