"""Runs inside the sandbox: the Python kernel itself, an ipykernel that loses no output and shows what a model can read."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from types import MethodType
from typing import Any

from .tables import prepare
from .traces import lines_of
from .values import shown

_QUEUED = 100
_OPTIONS = ["--HistoryManager.enabled=False", "--IPKernelApp.log_level=50", "--PlainTextFormatter.max_seq_length=100"]


def main() -> None:
    """Serve the connection file that the command line names."""
    import zmq
    from ipykernel.kernelapp import IPKernelApp

    class App(IPKernelApp):
        """What it prints waits for whoever reads it, and what cannot be encoded is made so that it can."""

        def init_iopub(self, context: zmq.Context[Any]) -> None:
            # Without it a full queue drops what comes next, the end mark too; with it the code that prints is held up.
            # Short queues, so that an interrupt finds little that has still to be brought over.
            ours = {zmq.XPUB_NODROP: 1, zmq.SNDHWM: _QUEUED, zmq.RCVHWM: _QUEUED}
            for option, value in ours.items():
                context.setsockopt(option, value)
            self.session.pack = _tolerant(self.session.pack)
            open_socket: Any = super().init_iopub
            open_socket(context)
            for option in ours:  # sockets that code makes for itself are as usual
                del context.sockopts[option]

        def init_code(self) -> None:
            _find_files_here()
            prepare()
            _show(self.shell)
            run: Any = super().init_code
            run()

    App.launch_instance([*sys.argv[1:], *_OPTIONS])


def _find_files_here() -> None:
    """Modules of the current folder can be imported, behind the standard library and before what is installed."""
    place = next((i for i, path in enumerate(sys.path) if path.endswith("-packages")), len(sys.path))
    sys.path.insert(place, "")


def _show(shell: Any) -> None:
    """Values and errors as a model reads them; what concerns a person at a prompt is left out."""
    warnings.filterwarnings("ignore", message="To exit: use 'exit'")
    formatters = shell.display_formatter.formatters
    plain = formatters["text/plain"]

    whole = type(plain).__call__
    short = {"__call__": lambda self, value: shown(value, lambda item: whole(self, item))}
    formatters["text/plain"] = type("Plain", (type(plain),), short)(parent=shell.display_formatter)
    usual = shell.showtraceback

    def showtraceback(self: Any, exc_tuple: Any = None, *args: Any, **options: Any) -> None:
        kind, error, _trace = self._get_exc_info(exc_tuple)
        own = hasattr(error, "_render_traceback_") or kind.__name__ == "UsageError" or options.get("exception_only")
        if isinstance(error, SystemExit):
            self._showtraceback(kind, error, [f"SystemExit: {error.code}"])
        elif own or isinstance(error, SyntaxError):
            usual(exc_tuple, *args, **options)
        else:
            self._showtraceback(kind, error, lines_of(error, cell_of))

    def cell_of(file: str) -> str:
        number = shell.compile._filename_map.get(file)
        return f"Cell {number}" if number is not None else ""

    shell.showtraceback = MethodType(showtraceback, shell)


def _tolerant(pack: Callable[[Any], bytes]) -> Callable[[Any], bytes]:
    """An encoder to which lone surrogates are no error: an error in the thread that sends would lose the message silently."""

    def packed(message: Any) -> bytes:
        try:
            return pack(message)
        except UnicodeEncodeError:
            return pack(_encodable(message))

    return packed


def _encodable(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    if isinstance(value, dict):
        return {_encodable(key): _encodable(item) for key, item in value.items()}
    return [_encodable(item) for item in value] if isinstance(value, (list, tuple)) else value
