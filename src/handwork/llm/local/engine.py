"""A small model inside this process: llama.cpp through xllamacpp, loaded late and freed on close."""

from __future__ import annotations

import asyncio
import hashlib
import importlib
import importlib.util
import shutil
import tempfile
import threading
import weakref
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from handwork.config.extras import missing_extra
from handwork.errors import ConfigError, ModelError, ModelTimeoutError, TokenLimitExceeded
from handwork.llm.base import Model
from handwork.llm.local.catalog import LocalModel, local_model
from handwork.llm.local.openmp import load_openmp
from handwork.llm.local.tiny import SLOTS, Completion, TinyModel

CONTEXT = 4096
"""Tokens of context over all slots; a request is far smaller."""
_CALL_LIMIT = 120.0
_SOCKET_FOLDER = 70

T = TypeVar("T")


def open_local_model(name: str, models_dir: Path) -> Model:
    """A model of the catalog behind the tiny-model policy; it is loaded at its first request.

    Raises:
        ConfigError: the name is unknown, the package xllamacpp is missing, or the file was not fetched; says what to do.
    """
    facts = local_model(name)
    _need_package()
    path = models_dir / facts.file
    if not path.is_file():
        raise ConfigError(
            f"The model {facts.name} is not on this machine ({path})", hint=f"run `handwork model fetch {facts.name}`"
        )
    return TinyModel(LlamaEngine(path, facts), name=f"local:{facts.name}")


def _need_package() -> None:
    if importlib.util.find_spec("xllamacpp") is None:
        raise missing_extra("local", "The local model needs the package xllamacpp, which is not installed")


class LlamaEngine:
    """One GGUF file in llama.cpp. Calls run one after another on a thread of its own; cancelling one stops its generation.

    llama.cpp's server also opens a listener; it is put on a unix socket in a private folder, so that nobody else on this
    machine can reach it. One thread is the default: llama.cpp's threads wait for each other by spinning, and with two on a
    busy machine of two cores it wrote 6 tokens a second instead of 69.
    """

    def __init__(self, path: Path, facts: LocalModel | None = None, *, threads: int = 1) -> None:
        self._path, self._facts = path, facts
        self._threads = threads
        self._lock = asyncio.Lock()
        self._thread: ThreadPoolExecutor | None = None
        self._server: Any = None
        self._folder = ""
        self._remove_folder: Callable[[], object] | None = None

    async def complete(
        self,
        prompt: str,
        *,
        max_tokens: int,
        grammar: str = "",
        stop: tuple[str, ...] = (),
        probs: int = 0,
        slot: int = 0,
        deadline: float | None = None,
    ) -> Completion:
        """Continue the prompt at temperature 0. `probs`: how many candidates of the first token to report.

        Raises ModelTimeoutError at the deadline (the loop's clock), TokenLimitExceeded, ModelError.
        """
        body: dict[str, Any] = {
            "prompt": prompt,
            "n_predict": max_tokens,
            "temperature": 0,
            "cache_prompt": True,
            "id_slot": slot,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        body |= {"grammar": grammar} if grammar else {}
        body |= {"stop": list(stop)} if stop else {}
        body |= {"n_probs": probs} if probs else {}
        limit = asyncio.get_running_loop().time() + _CALL_LIMIT
        try:
            async with asyncio.timeout_at(min(limit, deadline or limit)):
                async with self._lock:
                    await self._load()
                    return await self._generate(body)
        except TimeoutError as error:
            raise ModelTimeoutError(provider="local", model=self._path.stem) from error

    async def aclose(self) -> None:
        """Free the model's memory. A later call loads it again."""
        async with self._lock:
            if self._thread is not None:
                await self._off_loop(self._drop)
                self._thread.shutdown(wait=False)
                self._thread = None
            if self._remove_folder is not None:
                self._remove_folder()
                self._remove_folder = None

    async def _load(self) -> None:
        if self._server is not None:
            return
        # The check guards llama.cpp, which trusts its files, and warms the page cache without the GIL; the constructor holds it.
        await self._off_loop(self._check)
        if self._remove_folder is None:
            self._folder = tempfile.mkdtemp(prefix="handwork-llm-", dir=_short_temporary_folder())
            self._remove_folder = weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        self._server = await self._off_loop(self._start)  # the one reference, so that dropping it frees the model

    def _check(self) -> None:
        try:
            with self._path.open("rb") as file:
                found = hashlib.file_digest(file, "sha256").hexdigest()
        except FileNotFoundError as error:
            raise ConfigError(f"The model's file {self._path} is gone", hint="fetch it again") from error
        if self._facts and found != self._facts.file_sha256:
            raise ConfigError(
                f"{self._path} is damaged", hint=f"delete it and run `handwork model fetch {self._facts.name}`"
            )

    def _start(self) -> Any:
        load_openmp()
        try:
            xllamacpp: Any = importlib.import_module("xllamacpp")
        except ImportError as error:
            raise missing_extra("local", f"The package xllamacpp cannot be loaded ({error})") from error
        params = xllamacpp.CommonParams()
        params.model.path = str(self._path)
        params.n_ctx, params.n_parallel, params.kv_unified = CONTEXT, SLOTS, True
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = self._threads
        params.hostnames = [f"{self._folder}/llm.sock"]
        params.verbosity, params.no_perf = -1, True
        params.warmup = params.fit_params = params.ui = params.endpoint_props = params.endpoint_slots = False
        params.cache_ram_mib = 0
        try:
            return xllamacpp.Server(params)
        except RuntimeError as error:
            raise ModelError(
                f"llama.cpp cannot load {self._path}: {error}", provider="local", model=self._path.stem
            ) from error

    async def _generate(self, body: Mapping[str, Any]) -> Completion:
        chunks: list[dict[str, Any]] = []
        stopped = threading.Event()
        server = self._server

        def on_chunk(chunk: dict[str, Any]) -> bool:
            chunks.append(chunk)
            return stopped.is_set()

        try:
            await self._off_loop(lambda: server.handle_completions(dict(body), on_chunk), stopped)
        except RuntimeError as error:
            raise ModelError(str(error), provider="local", model=self._path.stem) from error
        return self._completion(chunks)

    def _completion(self, chunks: list[dict[str, Any]]) -> Completion:
        text = ""
        first: dict[str, float] = {}
        usage: dict[str, int] = {}
        for chunk in chunks:
            if error := chunk.get("error"):
                kind = TokenLimitExceeded if "exceed_context" in str(error.get("type")) else ModelError
                raise kind(str(error.get("message", error)), provider="local", model=self._path.stem)
            usage = chunk.get("usage") or usage
            for choice in chunk.get("choices") or ():
                text += choice.get("text") or ""
                if not first and (tokens := (choice.get("logprobs") or {}).get("content")):
                    first = {item["token"]: item["logprob"] for item in tokens[0]["top_logprobs"]}
        return Completion(text, first, usage.get("prompt_tokens", 0), usage.get("completion_tokens", 0))

    def _drop(self) -> None:
        self._server = None  # its destructor joins llama.cpp's threads

    async def _off_loop(self, work: Callable[[], T], stopped: threading.Event | None = None) -> T:
        """Run blocking work on the engine's thread. On cancel `stopped` is set and the end awaited: nothing runs on unseen."""
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="handwork-local-model")
        waiting = asyncio.get_running_loop().run_in_executor(self._thread, work)
        try:
            return await asyncio.shield(waiting)
        except asyncio.CancelledError:
            if stopped is not None:
                stopped.set()
            await asyncio.wait({waiting})
            raise


def _short_temporary_folder() -> str | None:
    """None for the usual one; `/tmp` if a socket's path (107 bytes at most) would not fit there."""
    return None if len(tempfile.gettempdir()) < _SOCKET_FOLDER else "/tmp"
