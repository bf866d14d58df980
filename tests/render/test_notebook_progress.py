"""The progress bar of a notebook: one output, changed by any thread, and empty at the end."""

import threading
from contextvars import ContextVar
from typing import Any

import pytest

from framedex.render import progress
from framedex.render.notebook_progress import NotebookBar
from tests.tuning import Tuning

CELL: ContextVar[str] = ContextVar("cell", default="none")


class Screen:
    """What a notebook was asked to show: the contents of the one output, with the cell that each came from."""

    def __init__(self) -> None:
        self.shown: list[tuple[str, str]] = []
        self.displays = 0

    def display(self, content: dict[str, str], **_: Any) -> "Screen":
        self.displays += 1
        self.update(content)
        return self

    def update(self, content: dict[str, str], **_: Any) -> None:
        self.shown.append((CELL.get(), content["text/plain"]))


@pytest.fixture
def screen(tuning: Tuning, monkeypatch: pytest.MonkeyPatch) -> Screen:
    """A notebook in which each update is shown."""
    shown_by = pytest.importorskip("IPython.display")
    found = Screen()
    monkeypatch.setattr(shown_by, "display", found.display)
    tuning.progress_interval_s = 0.0
    monkeypatch.setattr(progress, "_in_notebook", lambda: True)
    CELL.set("first cell")
    return found


def test_bar__is_one_output_that_disappears(screen: Screen) -> None:
    """Updates of a task's thread belong to the cell that waits; at the end the output is empty."""
    with progress.progress_bar("Making <it>") as update:
        assert update is not None
        thread = threading.Thread(target=update, args=("reading", 0.5))
        thread.start()
        thread.join()
    assert screen.displays == 1
    assert [text.rpartition(", ")[0] for _, text in screen.shown] == [
        "Making <it>, 0%",
        "Making <it>: reading, 50%",
        "",
    ]
    assert {cell for cell, _ in screen.shown} == {"first cell"}
    update("late", 1.0)  # the task may still report
    assert screen.shown[-1] == ("first cell", "")


def test_bar__ends_with_errors(screen: Screen) -> None:
    """After an interrupt nothing of the bar is left."""
    with pytest.raises(KeyboardInterrupt), progress.progress_bar("Making"):
        raise KeyboardInterrupt
    assert screen.shown[-1][1] == ""


def test_bar__that_may_not_be_needed(screen: Screen) -> None:
    """A late bar is shown by its first update; without one there is no output."""
    with progress.progress_bar("Making", late=True):
        pass
    assert screen.displays == 0
    with progress.progress_bar("Making", late=True) as update:
        assert update is not None
        update("reading", 0.25)
    assert screen.displays == 1


def test_bar__shows_few_updates(screen: Screen, tuning: Tuning) -> None:
    """What follows at once is left out, so that a page is not flooded."""
    tuning.progress_interval_s = 3600.0
    bar = NotebookBar("Making")
    for step in range(1000):
        bar.update("reading", step / 1000)
    bar.close()
    assert len(screen.shown) == 2


def test_bar__is_text(screen: Screen, monkeypatch: pytest.MonkeyPatch) -> None:
    """Titles are text, whatever they hold."""
    contents: list[dict[str, str]] = []
    monkeypatch.setattr(screen, "update", contents.append)
    bar = NotebookBar("<script>")
    bar.update("&", 0.1)
    assert "<script>" not in contents[0]["text/html"]
    assert "&lt;script&gt;: &amp;" in contents[0]["text/html"]
