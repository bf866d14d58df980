"""Processes that this one has started."""

import subprocess
from typing import Protocol

KILLED = 9
"""The number of SIGKILL, which Windows does not name."""


class ChildProcess(Protocol):
    """A process that works for this one, as :class:`subprocess.Popen` is one."""

    @property
    def pid(self) -> int:
        """The id of the process."""

    def poll(self) -> int | None:
        """Return its exit status, below 0 for the signal that ended it; None while it runs."""

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end, for some seconds at most; return its exit status.

        Raises:
            subprocess.TimeoutExpired: it still runs.
        """

    def terminate(self) -> None:
        """Ask it to end."""

    def kill(self) -> None:
        """End it."""


def wait_or_kill(process: ChildProcess, seconds: float) -> None:
    """Wait until a process that was told to end has ended; kill it after some seconds."""
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
