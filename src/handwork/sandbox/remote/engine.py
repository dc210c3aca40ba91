"""A Docker engine, by its SDK: found, asked for an image, and a container made, joined and removed. It blocks: run it in a thread."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from handwork.config.extras import missing_extra
from handwork.errors import SandboxUnavailable
from handwork.schema import Notify

_CONNECT_SECONDS, _ANSWER_SECONDS = 10, 60
_PULL_NEWS = 10.0
"""Seconds between two notices of how far a pull is."""
SESSION = "handwork.session"
CREATED = "handwork.created"
_OTHERWISE = "Or take another sandbox: --sandbox auto"


class Engine:
    """Raises SandboxUnavailable, with what to do, for all that an engine refuses."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        try:
            import docker
        except ImportError:
            raise missing_extra(
                "docker", "The docker backend needs the package docker, which is not installed"
            ) from None
        self._errors = docker.errors
        self.address, options = _address(environ)
        try:
            self._reach()
            with self._said(self._nobody(), self._how_to_reach()):
                self._client: Any = docker.APIClient(
                    base_url=self.address, version="auto", timeout=_CONNECT_SECONDS, **options
                )
                self._client.timeout = _ANSWER_SECONDS
        except (OSError, ValueError) as error:
            raise SandboxUnavailable(f"No Docker engine can be named by {self.address}: {error}") from None
        try:
            self.options = self._look()
        except BaseException:
            self.close()
            raise

    def _look(self) -> str:
        with self._said(f"The Docker engine at {self.address} does not say what it is"):
            about = self._client.info()
        if about.get("OSType", "linux") != "linux":
            raise SandboxUnavailable(
                f"The Docker engine at {self.address} runs {about['OSType']} containers, and tools need Linux",
                hint=_OTHERWISE,
            )
        return " ".join(about.get("SecurityOptions") or ())

    @property
    def local(self) -> bool:
        """Whether it sees this machine's files."""
        return self.address.startswith(("unix://", "http+unix://"))

    def check_local(self) -> None:
        """Raises SandboxUnavailable for an engine that does not see the workspace."""
        if not self.local:
            raise SandboxUnavailable(
                f"The Docker engine at {self.address} is on another machine, where the workspace is not",
                hint="use an engine of this machine, or --sandbox daytona for work elsewhere",
            )

    @property
    def rootless(self) -> bool:
        """Whether root in a container is the user out here."""
        return "name=rootless" in self.options

    def have_image(self, name: str, notify: Notify, stop: threading.Event) -> None:
        """Pull it if it is not there; `stop` gives up."""
        with self._said(f"The image {name} cannot be looked at"):
            try:
                self._client.inspect_image(name)
                return
            except self._errors.ImageNotFound:
                pass
        notify("info", f"The image {name} is not here yet; pulling it (once)")
        why = f"There is no image {name} here, and it cannot be pulled"
        with self._said(
            why, "make it with docker build or docker load, or name one that is there with [sandbox] image"
        ):
            progress = _Progress(name, notify)
            for line in self._client.pull(name, stream=True, decode=True):
                if stop.is_set():
                    raise SandboxUnavailable(f"Pulling the image {name} was given up")
                if problem := line.get("error"):
                    raise self._errors.APIError(str(problem))
                progress.take(line)

    def run(self, name: str, settings: Mapping[str, Any]) -> socket.socket:
        """Make a container by the engine's own settings, join it and start it; the socket is that of its standard streams, in
        frames of the engine. What was made is the caller's to remove, also when this raises."""
        with self._said(
            "The container cannot be made", "look at [sandbox] image, work_dir, memory_limit and cpu_limit"
        ):
            container = self._client.create_container_from_config(dict(settings), name=name)["Id"]
        with self._said("The container cannot be joined"):
            sock = self._join(container)
        try:
            image = settings["Image"]
            with self._said(f"The container of {image} does not start", f"the image needs python3. {_OTHERWISE}"):
                self._client.start(container)
        except BaseException:
            sock.close()
            raise
        return sock

    def _join(self, container: str) -> socket.socket:
        found = self._client.attach_socket(container, {"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1})
        raw = getattr(found, "_sock", found)
        if type(raw) is not socket.socket:
            return _bridged(raw, found)
        plain = raw.dup()
        found.close()
        raw.close()
        plain.setblocking(False)
        return plain

    def remove(self, container: str) -> None:
        """Kill it and wait until it is gone; one that is gone, or an engine that is, is fine."""
        with contextlib.suppress(self._errors.DockerException, OSError):
            try:
                self._client.remove_container(container, force=True, v=True)
            except self._errors.APIError as error:
                if error.status_code != 409:  # it is being removed already
                    raise
                self._client.wait(container, timeout=10, condition="removed")

    def close(self) -> None:
        self._client.close()

    def _reach(self) -> None:
        """See whether anybody listens: the SDK leaves its socket open where nobody does."""
        if self.local:
            with socket.socket(socket.AF_UNIX) as sock, self._said(self._nobody(), self._how_to_reach()):
                sock.settimeout(_CONNECT_SECONDS)
                sock.connect(self.address.partition("://")[2])

    def _nobody(self) -> str:
        return f"No Docker engine answers at {self.address}"

    def _how_to_reach(self) -> str:
        if not self.local:
            return f"is it running, and may you reach it? DOCKER_HOST names it. {_OTHERWISE}"
        path = Path(self.address.partition("://")[2])
        if path.exists():
            return f"is it running, and may you use {path} (group docker)? {_OTHERWISE}"
        return f"install and start Docker, or name its address with DOCKER_HOST. {_OTHERWISE}"

    @contextlib.contextmanager
    def _said(self, what: str, hint: str = _OTHERWISE) -> Iterator[None]:
        """In our words what the SDK, or the network below it, raises."""
        try:
            yield
        except self._errors.APIError as error:
            raise SandboxUnavailable(f"{what}: {error.explanation or error}", hint=hint) from None
        except self._errors.DockerException as error:
            raise SandboxUnavailable(f"{what}: {_root(error)}", hint=hint) from None
        except OSError as error:  # requests' own are
            raise SandboxUnavailable(f"{what}: {_root(error)}", hint=hint) from None


def check_engine(environ: Mapping[str, str]) -> None:
    """Raises SandboxUnavailable, or ConfigError without the SDK, unless an engine of this machine answers; it blocks."""
    engine = Engine(environ)
    try:
        engine.check_local()
    finally:
        engine.close()


class _Progress:
    """Tells now and then how much of an image has come."""

    def __init__(self, name: str, notify: Notify) -> None:
        self._name, self._notify = name, notify
        self._layers: dict[str, tuple[int, int]] = {}
        self._next = time.monotonic() + _PULL_NEWS

    def take(self, line: Mapping[str, Any]) -> None:
        detail = line.get("progressDetail") or {}
        if line.get("status") == "Downloading" and detail.get("total"):
            self._layers[str(line.get("id"))] = (detail.get("current", 0), detail["total"])
        if self._layers and time.monotonic() > self._next:
            self._next = time.monotonic() + _PULL_NEWS
            got, size = (sum(numbers) / 1e6 for numbers in zip(*self._layers.values(), strict=True))
            self._notify("info", f"Pulling the image {self._name}: {got:.0f} of {size:.0f} MB so far")


def _address(environ: Mapping[str, str]) -> tuple[str, dict[str, Any]]:
    """Where the engine is, as the docker command finds it: DOCKER_HOST, else the context in use, else the usual socket."""
    from docker import context, errors, utils

    if host := environ.get("DOCKER_HOST"):
        options = utils.kwargs_from_env(dict(environ))
        return host, {name: value for name, value in options.items() if name != "base_url"}
    with contextlib.suppress(errors.DockerException, OSError, ValueError, KeyError):
        found = context.ContextAPI.get_current_context()
        if found is not None and found.Host:
            return found.Host, {"tls": found.TLSConfig} if found.TLSConfig else {}
    return "unix:///var/run/docker.sock", {}


def _root(error: BaseException) -> str:
    """What is at the bottom of it: the SDK's own words wrap it three times over."""
    while error.__context__ is not None and not isinstance(error, OSError):
        error = error.__context__
    inner = next((each for each in error.args if isinstance(each, BaseException)), None)
    return _root(inner) if inner is not None else (getattr(error, "strerror", None) or str(error))


def _bridged(raw: Any, owner: Any) -> socket.socket:
    """A plain socket in place of one that has to be read in its own way (TLS, ssh): two threads carry over."""
    ours, theirs = socket.socketpair()

    def carry(read: Callable[[int], bytes], write: Callable[[bytes], object]) -> None:
        with contextlib.suppress(OSError):
            while data := read(1 << 16):
                write(data)
        with contextlib.suppress(OSError):
            theirs.shutdown(socket.SHUT_RDWR)
        with contextlib.suppress(OSError):
            raw.close()
        del owner_kept[:]

    owner_kept = [owner]
    for read, write in ((raw.recv, theirs.sendall), (theirs.recv, raw.sendall)):
        threading.Thread(target=carry, args=(read, write), name="docker stream", daemon=True).start()
    ours.setblocking(False)
    return ours
