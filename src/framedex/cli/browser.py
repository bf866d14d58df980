"""The user's web browser."""

import os
import sys
import threading
import webbrowser
from contextlib import suppress


def show_in_browser(url: str) -> threading.Thread:
    """Open a page in the user's browser, on a thread that is returned. Without a display nothing is opened."""
    thread = threading.Thread(target=_show, args=(url,), name="framedex-browser", daemon=True)
    thread.start()
    return thread


def _show(url: str) -> None:
    if _has_display():
        with suppress(Exception):  # a browser that cannot be started; the address is printed in any case
            webbrowser.open(url)


def _has_display() -> bool:
    """Return whether a browser has a place to open; one in the terminal would take the terminal away."""
    if sys.platform in ("darwin", "win32"):
        return True
    return any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"))
