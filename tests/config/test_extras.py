"""A missing extra: the command that gets it suits the way in which Handwork was installed."""

from __future__ import annotations

import json
import sys
from importlib import metadata
from pathlib import Path

import pytest

from handwork.config import extras
from handwork.config.extras import missing_extra, way_to_get


class Environment:
    """An environment of Python with an installed Handwork, as far as this is looked at."""

    def __init__(self, prefix: Path) -> None:
        self.prefix = prefix
        self.about = prefix / "lib/handwork-9.dist-info"
        self.about.mkdir(parents=True)
        (self.about / "METADATA").write_text(
            "Metadata-Version: 2.4\nName: handwork\nVersion: 9\nRequires-Dist: typer>=0.29\n"
            "Requires-Dist: xllamacpp>=2026.10; extra == 'local'\n"
            "Requires-Dist: polars>=1.36; extra == 'data'\nRequires-Dist: altair>=6; extra == 'data'\n"
        )

    def came_from(self, url: str, **more: object) -> None:
        (self.about / "direct_url.json").write_text(json.dumps({"url": url, **more}))


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Environment:
    made = Environment(tmp_path / "env")
    monkeypatch.setattr(sys, "prefix", str(made.prefix))
    monkeypatch.setattr(sys, "executable", "/env/bin/python")
    monkeypatch.setattr(metadata, "distribution", lambda name: metadata.Distribution.at(made.about))
    return made


def test_pip_of_the_same_environment_is_named(environment: Environment) -> None:
    assert way_to_get("local") == "/env/bin/python -m pip install 'handwork[local]'"


def test_pipx_gets_the_packages_of_the_extra_so_that_no_index_has_to_know_handwork(environment: Environment) -> None:
    (environment.prefix / "pipx_metadata.json").touch()
    assert way_to_get("local") == "pipx inject handwork 'xllamacpp>=2026.10'"
    assert way_to_get("data") == "pipx inject handwork 'altair>=6' 'polars>=1.36'"


def test_uv_installs_the_tool_again_from_where_it_came(environment: Environment, tmp_path: Path) -> None:
    (environment.prefix / "uv-receipt.toml").touch()
    assert way_to_get("local") == "uv tool install --force 'handwork[local]'"
    wheel = tmp_path / "handwork-9.whl"
    wheel.touch()
    environment.came_from(wheel.as_uri(), archive_info={})
    assert way_to_get("local") == f"uv tool install --force 'handwork[local] @ {wheel.as_uri()}'"


def test_a_wheel_that_is_gone_is_not_named(environment: Environment) -> None:
    environment.came_from("file:///gone/handwork-9.whl", archive_info={})
    assert way_to_get("local") == "/env/bin/python -m pip install 'handwork[local]'"


def test_a_checkout_stays_a_checkout(environment: Environment, tmp_path: Path) -> None:
    environment.came_from(tmp_path.as_uri(), dir_info={"editable": True})
    assert way_to_get("local") == f"/env/bin/python -m pip install --editable '{tmp_path}[local]'"


def test_an_environment_without_pip_is_served_by_uv(environment: Environment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras, "find_spec", lambda name: None)
    assert way_to_get("local") == "uv pip install --python /env/bin/python 'handwork[local]'"


def test_a_folder_that_was_never_installed_and_a_broken_record_have_a_way_too(
    environment: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    (environment.about / "direct_url.json").write_text("[broken")
    assert "'handwork[local]'" in way_to_get("local")

    def gone(name: str) -> metadata.Distribution:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "distribution", gone)
    assert "'handwork[local]'" in way_to_get("local")


def test_the_error_says_what_needs_it_and_how_to_get_it(environment: Environment) -> None:
    error = missing_extra("local", "The local model needs the package xllamacpp")
    assert error.what == "The local model needs the package xllamacpp"
    assert error.hint == "get it with: /env/bin/python -m pip install 'handwork[local]'"
