"""A progress bar in a cell of a notebook: one output, which is empty again at the end."""

import threading
import time
from contextvars import copy_context
from typing import Any

from framedex.render import html

_INTERVAL_S = 0.2


class NotebookBar:
    """A progress bar that a notebook displays.

    It is shown from the thread of the cell, and changed by the thread of a task in the cell's context, by which kernels
    know to which cell an output belongs.

    Args:
        title: what is done.
    """

    def __init__(self, title: str) -> None:
        self._title, self._began = title, time.monotonic()
        self._context = copy_context()
        self._handle: Any = None
        self._is_closed, self._shown = False, float("-inf")
        self._lock = threading.Lock()

    def update(self, stage: str, share: float) -> None:
        """Show a stage and the completed share, 0 to 1; what follows within a fifth of a second is left out."""
        now = time.monotonic()
        with self._lock:
            if self._is_closed or now - self._shown < _INTERVAL_S:
                return
            self._shown = now
            self._context.copy().run(self._show, self._content(stage, share))

    def close(self) -> None:
        """Make the output empty; later updates show nothing."""
        with self._lock:
            self._is_closed = True
            if self._handle is not None:
                self._show({"text/plain": "", "text/html": ""})

    def _show(self, content: dict[str, str]) -> None:
        from IPython.display import display

        if self._handle is None:
            self._handle = display(content, raw=True, display_id=True)  # type: ignore[no-untyped-call]
        else:
            self._handle.update(content, raw=True)

    def _content(self, stage: str, share: float) -> dict[str, str]:
        """Return the bar as HTML, and as a line for those who show no HTML."""
        seconds = time.monotonic() - self._began
        left = f", {_clock(seconds / share - seconds)} left" if share > 0.02 and seconds > 1 else ""
        words = f"{self._title}{f': {stage}' if stage else ''}, {share:.0%}, {_clock(seconds)}{left}"
        bar = f"<progress value='{share:.3f}' max='1' style='width:16em;vertical-align:middle'></progress> "
        return {"text/plain": words, "text/html": html.block(f"{bar}{html.escape_html(words)}")}


def _clock(seconds: float) -> str:
    """Return a time as minutes and seconds, or hours before them."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
