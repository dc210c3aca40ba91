"""`--image FILE`: a picture rides on the task, and what is none is said before anything starts."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from PIL import Image as Pillow
from tests.cli.command import handwork
from tests.support.fault_server import Answer, error_answer
from tests.support.pictures import png, size_of
from tests.support.strict_server import StrictServer

pytestmark = pytest.mark.whole


def urls(request: dict[str, Any]) -> list[str]:
    return [
        part["image_url"]["url"]
        for message in request["messages"]
        if isinstance(message["content"], list)
        for part in message["content"]
        if part["type"] == "image_url"
    ]


async def test_images_ride_on_the_task_and_stay_in_a_session_that_goes_on(workspace: Path) -> None:
    (workspace / "a.png").write_bytes(png(1, (3000, 10)))
    (workspace / "b.png").write_bytes(png(2))
    async with StrictServer(lambda request: "I see.") as server:
        model = ("--base-url", server.url, "--model", "any")
        first = await handwork("run", "look", "--image", "a.png", "--image", "b.png", *model, cwd=workspace)
        second = await handwork("run", "and this?", "-c", "--image", "b.png", *model, cwd=workspace)
    assert (first.code, first.out, second.code) == (0, "I see.\n", 0)
    assert [size_of(url) for url in urls(server.requests[0])] == [(2000, 7), (4, 4)]
    assert [size_of(url) for url in urls(server.requests[1])] == [(2000, 7), (4, 4), (4, 4)]
    assert server.requests[0]["messages"][1]["content"][0] == {"type": "text", "text": "look"}


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("none.png", "cannot be read: No such file"),
        ("text.png", "it is no picture"),
        ("cut.png", "broken or incomplete PNG"),
        ("large.png", "it is too large"),
        ("folder", "it is a folder"),
        ("pipe", "it is no regular file"),
    ],
)
async def test_what_is_no_picture_ends_with_2_before_anything_starts(workspace: Path, name: str, told: str) -> None:
    (workspace / "text.png").write_text("hello")
    (workspace / "cut.png").write_bytes(png()[:45])
    with (workspace / "large.png").open("wb") as large:
        large.truncate(60_000_000)
    (workspace / "folder").mkdir()
    os.mkfifo(workspace / "pipe")
    async with StrictServer([]) as server:
        model = ("--base-url", server.url, "--model", "any")
        ended = await handwork("run", "look", "--image", name, *model, cwd=workspace)
        assert not server.requests
    assert (ended.code, ended.out) == (2, "")
    assert told in ended.err
    assert name in ended.err
    assert "Traceback" not in ended.err
    listed = await handwork("sessions", "list", cwd=workspace)
    assert "look" not in listed.out + listed.err


async def test_an_image_without_a_task_is_a_usage_error(workspace: Path) -> None:
    (workspace / "a.png").write_bytes(png())
    async with StrictServer(["ok"]) as server:
        model = ("--base-url", server.url, "--model", "any")
        await handwork("run", "go", *model, cwd=workspace)
        ended = await handwork("run", "-c", "--image", "a.png", *model, cwd=workspace)
    assert ended.code == 2
    assert "--image belongs to a task" in ended.err


async def test_a_model_that_takes_no_images_is_said(workspace: Path) -> None:
    (workspace / "a.png").write_bytes(png())

    def blind(request: dict[str, Any]) -> str | Answer:
        return error_answer(400, "this model does not support image input") if urls(request) else "I cannot see it."

    async with StrictServer(blind) as server:
        for model in ("llama3", "unheard-of"):
            ended = await handwork(
                "run", "look", "--image", "a.png", "--base-url", server.url, "--model", model, cwd=workspace
            )
            assert (ended.code, ended.out) == (0, "I cannot see it.\n")
            assert f"custom:{model} takes no images" in ended.err
    assert len(server.requests) == 3


async def test_a_vision_model_is_used_whatever_model_is_named_for_the_agent(workspace: Path) -> None:
    (workspace / "a.png").write_bytes(png())
    async with StrictServer(lambda request: "main") as main, StrictServer(lambda request: "eyes") as eyes:
        config = workspace / "own.toml"
        config.write_text(
            f'[llm]\nmodel = "x"\nbase_url = "{main.url}"\n[llm.vision]\nmodel = "seer"\nbase_url = "{eyes.url}"\n'
        )
        ended = await handwork(
            *("run", "look", "--image", "a.png", "--model", "llama3", "--config", str(config)), cwd=workspace
        )
    assert (ended.code, ended.out) == (0, "eyes\n")
    assert eyes.requests[0]["model"] == "seer"


async def test_a_decoders_own_warnings_do_not_reach_the_terminal(workspace: Path) -> None:
    exif = Pillow.Exif()
    exif[0x010F] = "Camera Maker"
    Pillow.new("RGB", (8, 8)).save(workspace / "a.jpg", "JPEG", exif=exif)
    data = (workspace / "a.jpg").read_bytes()
    count = data.index(b"Exif\0\0") + 6 + 9
    (workspace / "a.jpg").write_bytes(data[:count] + bytes([40]) + data[count + 1 :])
    async with StrictServer(lambda request: "I see.") as server:
        model = ("--base-url", server.url, "--model", "any")
        ended = await handwork("run", "look", "--image", "a.jpg", *model, cwd=workspace)
    assert (ended.code, len(urls(server.requests[0]))) == (0, 1)
    assert "UserWarning" not in ended.err
    assert "EXIF" not in ended.err
