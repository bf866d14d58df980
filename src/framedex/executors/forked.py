"""Workers that are forked by a process of their own, which has imported their modules once for all of them."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from multiprocessing.connection import Connection, Pipe
from multiprocessing.reduction import send_handle
from typing import Any

from framedex.core.child_processes import KILLED, wait_or_kill
from framedex.errors import Unavailable
from framedex.executors.interpreters import module_path, start_interpreter, wait_for_start

_END_S = 5.0  # for which the server may take to end
_LONGEST_S = 0.02  # between two looks whether a worker has ended


def has_forks() -> bool:
    """Return whether workers can be forked: libraries of macOS do not survive it, and Windows has none."""
    return sys.platform == "linux"


class ForkServer:
    """A process that forks workers; it starts with the first one, and again if it was killed.

    Args:
        python: the path of the interpreter.
        modules: the modules that it imports beforehand; not Lance, nor one that starts threads.
    """

    def __init__(self, python: str | None, modules: Sequence[str]) -> None:
        self._python, self._modules, self._lock = python, modules, threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: Connection | None = None

    def fork(self) -> tuple["ForkedProcess", Connection]:
        """Start a worker; return its process and a connection to it.

        Raises:
            Unavailable: it cannot be started.
        """
        ours, theirs = Pipe()
        try:
            with self._lock, theirs:
                answer = self._forked(theirs)
            if isinstance(answer, OSError):
                raise Unavailable(f"cannot start processes that work for this one: {answer}") from answer
        except BaseException:
            ours.close()
            raise
        return ForkedProcess(answer, self), ours

    def _forked(self, theirs: Connection) -> int | OSError:
        for _ in range(2):  # the server may have been killed since it was asked last
            if self._connection is None:
                self._start()
            with contextlib.suppress(EOFError):
                answer: int | OSError = self._answer(None, theirs)
                return answer
        raise Unavailable("cannot start processes that work for this one: the one that forks them was killed")

    def _start(self) -> None:
        self._process, self._connection = start_interpreter(
            self._python, "framedex.executors.fork_server", {"PYTHONPATH": module_path()}, *self._modules
        )
        try:
            wait_for_start(self._process, self._connection)
        except BaseException:
            self._forget()
            raise

    def status(self, pid: int) -> int | None:
        """Return the exit status of a worker, below 0 for the signal that ended it; None while it runs.

        After its end it is asked for once.
        """
        with self._lock:
            if self._connection is not None:
                with contextlib.suppress(EOFError):
                    status: int | None = self._answer(pid)
                    return status
        return -KILLED  # which its workers get when the server ends

    def _answer(self, request: int | None, handed: Connection | None = None) -> Any:
        """Return the answer to a request; a server with which the exchange was interrupted is not asked again.

        Raises:
            EOFError: the server has ended.
        """
        connection = self._connection
        assert connection is not None, "it has started"
        try:
            connection.send(request)
            if handed is not None:
                send_handle(connection, handed.fileno(), None)
            return connection.recv()
        except (EOFError, OSError) as error:
            self._forget()
            raise EOFError from error
        except BaseException:
            self._forget()
            raise

    def stop(self) -> None:
        """End the process and all that it has forked."""
        with self._lock:
            self._forget()

    def _forget(self) -> None:
        process, connection = self._process, self._connection
        self._process = self._connection = None
        if connection is None or process is None:
            return
        connection.close()
        wait_or_kill(process, _END_S)


class ForkedProcess:
    """A process of which another one is the parent, with some of the methods of :class:`subprocess.Popen`.

    Args:
        pid: its id.
        server: the parent.

    Attributes:
        pid: its id.
    """

    def __init__(self, pid: int, server: ForkServer) -> None:
        self.pid, self._server, self._lock = pid, server, threading.Lock()
        self._status: int | None = None

    def poll(self) -> int | None:
        """Return its exit status, below 0 for the signal that ended it; None while it runs."""
        with self._lock:
            return self._look()

    def _look(self) -> int | None:
        if self._status is None:
            self._status = self._server.status(self.pid)
        return self._status

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end; return its exit status.

        Args:
            timeout: the longest wait, in seconds.

        Raises:
            subprocess.TimeoutExpired: it has not ended within this time.
        """
        begun, pause = time.monotonic(), 0.0005
        while (status := self.poll()) is None:
            if timeout is not None and time.monotonic() - begun > timeout:
                raise subprocess.TimeoutExpired(f"process {self.pid}", timeout)
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_S)
        return status

    def terminate(self) -> None:
        """Ask it to end."""
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it."""
        self._signal(KILLED)

    def _signal(self, number: int) -> None:
        with self._lock:  # until its end was seen, no other process has its id
            if self._look() is None:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(self.pid, number)
