"""Programs beside the sandbox: the user's rights and home, no secrets in their environment, and none is left."""

from __future__ import annotations

import os
from pathlib import Path

import psutil
import pytest

from handwork.sandbox.beside import Beside


async def test_a_program_beside_the_sandbox_has_the_users_home_and_nothing_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    environ = {**os.environ, "HOME": str(tmp_path), "LC_ALL": "C", "GITHUB_TOKEN": "x", "USER": "() { evil"}
    place = Beside(tmp_path / "w", tmp_path / "a", lambda level, text: told.append(text), environ=environ)
    try:
        result = await place.exec(["env"], env={"GIVEN": "yes"})
        seen = dict(line.split("=", 1) for line in result.output.decode().splitlines())
        assert (seen["HOME"], seen["LC_ALL"], seen["GIVEN"]) == (str(tmp_path), "C", "yes")
        assert not {"OPENAI_API_KEY", "GITHUB_TOKEN", "USER", "HANDWORK_HOME"} & set(seen)
        assert (await place.exec(["pwd"])).output.decode().strip() == str(tmp_path / "w")
        assert told == []
    finally:
        await place.close()


async def test_nothing_is_left_when_it_closes(tmp_path: Path) -> None:
    place = Beside(tmp_path / "w", tmp_path / "a", lambda level, text: None)
    process = await place.spawn(["bash", "-c", "setsid sleep 1000 & echo $!; sleep 1000"], apart=True)
    child = int(await process.read())
    assert psutil.pid_exists(child)
    await place.close()
    assert not psutil.pid_exists(child)
