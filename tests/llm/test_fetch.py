"""Fetching a model's file, against an index on loopback that serves, cuts, lies and refuses."""

from __future__ import annotations

import asyncio
import base64
import errno
import hashlib
import json
import os
import zipfile
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from aiohttp import web

from handwork.errors import ConfigError, ModelConnectionError
from handwork.llm.local import download
from handwork.llm.local.catalog import LOCAL_MODELS, LocalModel, local_model
from handwork.llm.local.fetch import fetch, fetch_model

_DATA = bytes(range(256)) * 4096


def _basic(login: str) -> str:
    return f"Basic {base64.b64encode(login.encode()).decode()}"


@dataclass
class Index:
    """A package index on loopback. `cuts`: after how many bytes each of the next answers breaks off."""

    wheel: bytes
    name: str
    url: str = ""
    as_json: bool = False
    sha256: str = ""
    ranges: bool = True
    cuts: list[int] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)
    login: str = ""
    asked: list[str] = field(default_factory=list)
    released: asyncio.Event | None = None

    async def page(self, request: web.Request) -> web.Response:
        self.asked.append(f"page {request.path}")
        if self.login and request.headers.get("Authorization") != _basic(self.login):
            return web.Response(status=401)
        if self.as_json:
            files = [{"filename": self.name, "url": f"../../files/{self.name}", "hashes": {"sha256": self.sha256}}]
            return web.Response(text=json.dumps({"files": files}), content_type="text/html")
        fragment = f"#sha256={self.sha256}" if self.sha256 else ""
        return web.Response(
            text=f'<html><a href="x-0.1.tar.gz">x</a><a href="../../files/{self.name}{fragment}">{self.name}</a></html>',
            content_type="text/html",
        )

    async def file(self, request: web.Request) -> web.StreamResponse:
        asked = request.headers.get("Range", "")
        self.asked.append(f"file {asked}".strip())
        if self.login and request.headers.get("Authorization") != _basic(self.login):
            return web.Response(status=401)
        if self.statuses:
            return web.Response(status=self.statuses.pop(0))
        start = int(asked.removeprefix("bytes=").rstrip("-")) if asked and self.ranges else 0
        headers = {"Content-Length": str(len(self.wheel) - start)}
        if start:
            headers["Content-Range"] = f"bytes {start}-{len(self.wheel) - 1}/{len(self.wheel)}"
        response = web.StreamResponse(status=206 if start else 200, headers=headers)
        await response.prepare(request)
        if self.released is not None:
            await self.released.wait()
        if self.cuts:
            await response.write(self.wheel[start : start + self.cuts.pop(0)])
            assert request.transport is not None
            request.transport.close()
            return response
        await response.write(self.wheel[start:])
        return response


@pytest.fixture
def model(tmp_path: Path) -> LocalModel:
    path = tmp_path / "demo_pack-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("demo_pack/model.gguf", _DATA)
    wheel = path.read_bytes()
    return LocalModel(
        name="demo",
        title="Demo",
        licence="MIT",
        package="Demo_Pack",
        version="1.0",
        wheel=path.name,
        wheel_size=len(wheel),
        wheel_sha256=hashlib.sha256(wheel).hexdigest(),
        member="demo_pack/model.gguf",
        file="model.gguf",
        file_size=len(_DATA),
        file_sha256=hashlib.sha256(_DATA).hexdigest(),
    )


@pytest.fixture
async def index(model: LocalModel, tmp_path: Path) -> AsyncIterator[Index]:
    serving = Index((tmp_path / model.wheel).read_bytes(), model.wheel, sha256=model.wheel_sha256)
    app = web.Application()
    app.router.add_get("/simple/demo-pack/", serving.page)
    app.router.add_get(f"/files/{model.wheel}", serving.file)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    serving.url = f"http://127.0.0.1:{runner.addresses[0][1]}/simple"
    yield serving
    await runner.cleanup()


async def run(model: LocalModel, folder: Path, index: str, **environ: str) -> Path:
    settings = {"PIP_INDEX_URL": index, "PIP_CONFIG_FILE": os.devnull} | environ
    return await fetch(model, folder / "models", settings, lambda done, total: None, lambda level, text: None, 0.001)


def left_in(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "models").iterdir() if not path.name.endswith(".lock"))


@pytest.mark.parametrize("as_json", [False, True], ids=["html", "json"])
async def test_the_model_is_taken_out_of_the_wheel_that_the_index_names(
    model: LocalModel, index: Index, tmp_path: Path, as_json: bool
) -> None:
    index.as_json = as_json
    path = await run(model, tmp_path, index.url + "/")
    assert path.read_bytes() == _DATA
    assert left_in(tmp_path) == ["model.gguf"]


async def test_a_model_that_is_there_and_whole_is_not_fetched_again(
    model: LocalModel, index: Index, tmp_path: Path
) -> None:
    path = await run(model, tmp_path, index.url)
    index.asked.clear()
    assert await run(model, tmp_path, index.url) == path
    assert index.asked == []


async def test_a_damaged_model_is_fetched_again(model: LocalModel, index: Index, tmp_path: Path) -> None:
    path = await run(model, tmp_path, index.url)
    path.write_bytes(b"damaged")
    await run(model, tmp_path, index.url)
    assert path.read_bytes() == _DATA


async def test_a_download_that_was_cut_goes_on_where_it_stopped(
    model: LocalModel, index: Index, tmp_path: Path
) -> None:
    index.cuts = [300_000, 200_000]
    path = await run(model, tmp_path, index.url)
    assert path.read_bytes() == _DATA
    starts = [int(line.split("=")[1].rstrip("-")) for line in index.asked if "Range" not in line and "=" in line]
    assert len(starts) == 2
    assert 0 < starts[0] < starts[1]


async def test_a_download_goes_on_in_the_next_process(model: LocalModel, index: Index, tmp_path: Path) -> None:
    index.cuts = [400_000] + [0] * download.ATTEMPTS
    with pytest.raises(ModelConnectionError):
        await run(model, tmp_path, index.url)
    index.cuts.clear()
    index.asked.clear()
    await run(model, tmp_path, index.url)
    files = [line for line in index.asked if line.startswith("file")]
    assert len(files) == 1
    assert files[0].startswith("file bytes=")


async def test_a_server_without_ranges_starts_anew(model: LocalModel, index: Index, tmp_path: Path) -> None:
    index.ranges, index.cuts = False, [300_000]
    assert (await run(model, tmp_path, index.url)).read_bytes() == _DATA


def put_part(model: LocalModel, folder: Path, data: bytes) -> None:
    (folder / "models").mkdir()
    (folder / "models" / f".{model.wheel}.{model.wheel_sha256[:8]}.part").write_bytes(data)


@pytest.mark.parametrize("size", [1000, 10_000_000, None], ids=["short", "too long", "just as long"])
async def test_a_damaged_part_is_found_and_the_download_starts_anew(
    model: LocalModel, index: Index, tmp_path: Path, size: int | None
) -> None:
    put_part(model, tmp_path, b"?" * (model.wheel_size if size is None else size))
    assert (await run(model, tmp_path, index.url)).read_bytes() == _DATA
    assert left_in(tmp_path) == ["model.gguf"]


async def test_a_file_with_another_hash_is_never_kept(model: LocalModel, index: Index, tmp_path: Path) -> None:
    index.sha256, index.wheel = "", b"!" * model.wheel_size
    with pytest.raises(ModelConnectionError, match="SHA-256 differs"):
        await run(model, tmp_path, index.url)
    assert left_in(tmp_path) == []


async def test_an_index_that_announces_another_hash_is_not_downloaded_from(
    model: LocalModel, index: Index, tmp_path: Path
) -> None:
    index.sha256 = "0" * 64
    with pytest.raises(ModelConnectionError, match="SHA-256 differs"):
        await run(model, tmp_path, index.url)
    assert [line for line in index.asked if line.startswith("file")] == []


async def test_a_wheel_that_holds_another_model_is_refused(model: LocalModel, index: Index, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="not the file that we know"):
        await run(replace(model, file_sha256="0" * 64), tmp_path, index.url)
    assert "model.gguf" not in left_in(tmp_path)


async def test_a_server_that_is_busy_is_asked_again(model: LocalModel, index: Index, tmp_path: Path) -> None:
    index.statuses = [503, 429]
    assert (await run(model, tmp_path, index.url)).read_bytes() == _DATA


async def test_a_missing_page_and_a_closed_port_are_named_with_what_to_do(
    model: LocalModel, index: Index, tmp_path: Path, unused_tcp_port: int
) -> None:
    extra = f"http://127.0.0.1:{unused_tcp_port}/simple"
    with pytest.raises(ModelConnectionError) as caught:
        await run(model, tmp_path, index.url.replace("/simple", "/other"), PIP_EXTRA_INDEX_URL=extra)
    text = str(caught.value)
    assert "it has no such file" in text
    assert str(unused_tcp_port) in text
    assert "PIP_INDEX_URL" in text


async def test_the_next_index_is_asked_when_one_fails(model: LocalModel, index: Index, tmp_path: Path) -> None:
    wrong = index.url.replace("/simple", "/other")
    assert (await run(model, tmp_path, wrong, PIP_EXTRA_INDEX_URL=index.url)).read_bytes() == _DATA


async def test_credentials_in_the_url_are_sent_and_never_shown(model: LocalModel, index: Index, tmp_path: Path) -> None:
    index.login = "ann:s3cret pass"
    told: list[str] = []
    url = index.url.replace("//", "//ann:s3cret%20pass@")
    environ = {"PIP_INDEX_URL": url, "PIP_CONFIG_FILE": os.devnull}
    await fetch(model, tmp_path / "a", environ, lambda done, total: None, lambda level, text: told.append(text), 0.001)
    index.login = "ann:another"
    with pytest.raises(ModelConnectionError, match="wants a login") as caught:
        await fetch(
            model, tmp_path / "b", environ, lambda done, total: None, lambda level, text: told.append(text), 0.001
        )
    for text in [*told, str(caught.value)]:
        assert "s3cret" not in text
        assert "ann:" not in text


async def test_size_licence_and_source_are_said_before_the_download_and_progress_ends_at_the_size(
    model: LocalModel, index: Index, tmp_path: Path
) -> None:
    heard: list[str] = []
    done: list[tuple[int, int]] = []
    environ = {"PIP_INDEX_URL": index.url, "PIP_CONFIG_FILE": os.devnull}
    await fetch(
        model, tmp_path, environ, lambda *step: done.append(step), lambda level, text: heard.append(text), 0.001
    )
    assert "MIT" in heard[0]
    assert "MB" in heard[0]
    assert model.wheel in heard[1]
    assert done == sorted(done)
    assert done[-1] == (model.wheel_size, model.wheel_size)


async def test_file_indexes_and_folders_of_wheels_need_no_network(model: LocalModel, tmp_path: Path) -> None:
    page = tmp_path / "simple" / "demo-pack"
    page.mkdir(parents=True)
    (page / "index.html").write_text(f'<a href="../../{model.wheel}">{model.wheel}</a>')
    nothing = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path)}
    for environ in ({"PIP_EXTRA_INDEX_URL": (tmp_path / "simple").as_uri()}, nothing):
        path = await run(model, tmp_path, "http://127.0.0.1:9/closed", **environ)
        assert path.read_bytes() == _DATA
        path.unlink()
    assert (tmp_path / model.wheel).exists()


async def test_two_fetches_at_once_download_once(model: LocalModel, index: Index, tmp_path: Path) -> None:
    index.released = asyncio.Event()
    told: list[str] = []
    environ = {"PIP_INDEX_URL": index.url, "PIP_CONFIG_FILE": os.devnull}

    def hear(level: str, text: str) -> None:
        told.append(text)
        if "Another process" in text:
            assert index.released is not None
            index.released.set()

    paths = await asyncio.gather(
        *(fetch(model, tmp_path, environ, lambda done, total: None, hear, 0.001) for _ in range(2))
    )
    assert paths[0] == paths[1]
    assert len([line for line in index.asked if line.startswith("file")]) == 1


async def test_a_cancelled_fetch_frees_the_lock_and_keeps_the_part(
    model: LocalModel, index: Index, tmp_path: Path
) -> None:
    index.released = asyncio.Event()
    begun = asyncio.Event()
    environ = {"PIP_INDEX_URL": index.url, "PIP_CONFIG_FILE": os.devnull}

    def hear(level: str, text: str) -> None:
        if "Downloading" in text:
            begun.set()

    task = asyncio.create_task(fetch(model, tmp_path, environ, lambda done, total: None, hear, 0.001))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    index.released.set()
    path = await fetch(model, tmp_path, environ, lambda done, total: None, lambda level, text: None, 0.001)
    assert path.read_bytes() == _DATA


async def test_too_little_space_is_said_before_the_download(model: LocalModel, index: Index, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="MB are free – make room"):
        await run(replace(model, file_size=10**18), tmp_path, index.url)
    assert index.asked == []


async def test_a_disk_that_gets_full_is_said_as_such(model: LocalModel, index: Index, tmp_path: Path) -> None:
    put_part(model, tmp_path, b"")
    part = next((tmp_path / "models").iterdir())
    part.unlink()
    part.symlink_to("/dev/full")
    with pytest.raises(ConfigError, match=os.strerror(errno.ENOSPC)):
        await run(model, tmp_path, index.url)


async def test_a_folder_that_cannot_be_made_is_said_as_such(model: LocalModel, index: Index, tmp_path: Path) -> None:
    (tmp_path / "models").write_text("a file")
    with pytest.raises(ConfigError, match="cannot be written"):
        await run(model, tmp_path, index.url)


async def test_an_unknown_model_is_answered_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="smollm2-135m"):
        await fetch_model("nothing", tmp_path, environ={})


def test_the_catalog_names_models_in_any_case() -> None:
    assert local_model("SmolLM2-135M") is LOCAL_MODELS[0]


@pytest.mark.slow
async def test_the_real_model_comes_from_the_index_that_this_machine_uses(tmp_path: Path) -> None:
    steps: list[int] = []
    environ = dict(os.environ)
    path = await fetch_model("smollm2-135m", tmp_path, environ=environ, progress=lambda done, total: steps.append(done))
    assert path.stat().st_size == LOCAL_MODELS[0].file_size
    assert path.read_bytes()[:4] == b"GGUF"
