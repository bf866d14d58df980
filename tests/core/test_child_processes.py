"""The end of processes that this one has started."""

import signal
import subprocess
import sys

import pytest

from framedex.core.child_processes import wait_or_kill


def test_process__that_ends() -> None:
    """A process that ends in time keeps its own status."""
    process = subprocess.Popen([sys.executable, "-c", "raise SystemExit(7)"])
    wait_or_kill(process, 30.0)
    assert process.returncode == 7


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such signals")
def test_process__that_does_not_end() -> None:
    """One that goes on is killed."""
    process = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
    wait_or_kill(process, 0.01)
    assert process.returncode == -signal.SIGKILL
