"""The progress bar."""

import os
import pty
import subprocess
import sys
from collections.abc import Callable

import pytest

from framedex.render.progress import progress_bar

CODE = """
from framedex.render.progress import progress_bar
with progress_bar("Making <it> [red]") as watch:
    print("watched" if watch else "hidden", flush=True)
    if watch:
        watch("first stage", 0.5)
        watch("last stage", 1.0)
"""


def test_progress_bar__hidden_outside_of_terminals(capsys: pytest.CaptureFixture[str]) -> None:
    """Without a terminal nothing is written, and there is no callback."""
    with progress_bar("Making") as watch:
        assert watch is None
    assert capsys.readouterr() == ("", "")


def test_progress_bar__hidden_in_pipes() -> None:
    """A script whose output goes elsewhere stays clean."""
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("hidden\n", "")


@pytest.mark.slow
def test_progress_bar__shown_in_terminals() -> None:
    """In a terminal the bar shows title, stage and share, on the error output; its text is taken as it is."""
    ours, theirs = pty.openpty()
    try:
        process = subprocess.Popen(
            [sys.executable, "-c", CODE],
            stdout=subprocess.PIPE,
            stderr=theirs,
            text=True,
            env={**os.environ, "TERM": "xterm", "COLUMNS": "120"},
        )
        os.close(theirs)
        shown = b"".join(iter(reader(ours), b"")).decode()
        out, _ = process.communicate(timeout=60)
    finally:
        os.close(ours)
    assert (process.returncode, out) == (0, "watched\n")
    assert "Making <it> [red]: last stage" in shown
    assert "100%" in shown


def reader(descriptor: int) -> Callable[[], bytes]:
    """Return a function that reads from a terminal and returns nothing at its end."""

    def read() -> bytes:
        try:
            return os.read(descriptor, 65536)
        except OSError:  # EIO: all who could write have closed it
            return b""

    return read


def test_progress_bar__forced() -> None:
    """A caller can have it shown or hidden regardless."""
    with progress_bar("Making", shown=False) as watch:
        assert watch is None
    with progress_bar("Making", shown=True) as watch:
        assert watch is not None
        watch("stage", 0.5)


def test_progress_bar__ends_with_errors() -> None:
    """An error passes through."""
    with pytest.raises(RuntimeError, match="inside"), progress_bar("Making", shown=True):
        raise RuntimeError("inside")
