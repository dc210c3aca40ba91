"""An address opened in the user's browser, where there is one to be seen."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping

from handwork.config.own_keys import without_keys

_PATIENCE = 10.0


def can_open(environ: Mapping[str, str]) -> bool:
    """Whether a window would be seen by who sits here; over ssh it opens elsewhere or in the terminal itself."""
    if environ.get("BROWSER"):
        return True
    if environ.get("SSH_CONNECTION") or environ.get("SSH_TTY"):
        return False
    return sys.platform in ("darwin", "win32") or bool(environ.get("DISPLAY") or environ.get("WAYLAND_DISPLAY"))


def open_browser(url: str) -> bool:
    """Open it; whether that worked, as far as can be known. By a program of its own, so that no key of ours is in the browser's
    environment."""
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-c", "import sys, webbrowser; sys.exit(not webbrowser.open(sys.argv[1]))", url],
            env=without_keys(os.environ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=_PATIENCE,
            check=False,
        )
    except subprocess.TimeoutExpired:  # it waits for its browser
        return True
    except OSError:
        return False
    return done.returncode == 0
