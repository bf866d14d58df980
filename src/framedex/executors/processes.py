"""ProcessExecutor, for functions that hold the interpreter lock: each has its own.

A worker is a fresh interpreter that runs :mod:`framedex.executors.worker`, not a fork of this process, as Lance and
BLAS do not survive one, and not one of :mod:`multiprocessing`, whose workers import the main module of the program: a
script without a guard would run again in each of them. On Linux, several workers are forks of one fresh interpreter,
which imports their modules once (:mod:`framedex.executors.forked`). A worker ends at once when its connection closes,
which the operating system does even if this process is killed.
"""

import contextlib
import logging
import pickle
import queue
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any, TypeVar

from framedex.core.child_processes import ChildProcess, wait_or_kill
from framedex.errors import Unavailable
from framedex.executors.base import ATTEMPTS, LocalExecutor, ResultLost
from framedex.executors.forked import ForkServer, has_forks
from framedex.executors.functions import LastUsed, SentFunctions
from framedex.executors.interpreters import module_path, start_interpreter, wait_for_start

T = TypeVar("T")
R = TypeVar("R")

_LOG = logging.getLogger(__name__)
_END_S = 5.0  # for which an idle worker may take to end


class _Lost(Exception):
    """A process that has ended.

    Attributes:
        status: its exit status; below 0 for the signal that ended it.
    """

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class ProcessExecutor(LocalExecutor):
    """An executor whose workers are processes; on POSIX systems.

    Each worker has a thread here, which starts it, sends it items and waits for its results. What a function and its
    items refer to is pickled, a function once for each worker. Workers ignore Ctrl-C, which this process handles.

    Args:
        workers: the number of processes, which start when they are needed.
        memory: the bytes that items which say what they need may take together; None for no limit.
        gpus: the number of GPUs; by default those of the machine.
        python: the interpreter; by default the one that runs.
        modules: names of modules that the functions need, which are then imported once for all workers, where there are
            several; not Lance, nor one that starts threads.

    Raises:
        Unavailable: (from futures) a worker cannot be started.
    """

    def __init__(
        self,
        workers: int,
        *,
        memory: int | None = None,
        gpus: float | None = None,
        python: str | None = None,
        modules: Sequence[str] = (),
    ) -> None:
        super().__init__(workers, memory=memory, gpus=gpus)
        self._free: queue.LifoQueue[_Worker] = queue.LifoQueue()  # those that have started are taken first
        self._server = ForkServer(python or sys.executable, modules) if workers > 1 and has_forks() else None
        begin = self._server.fork if self._server else partial(_start_worker, python or sys.executable)
        self._all = [_Worker(begin) for _ in range(workers)]
        for each in reversed(self._all):
            self._free.put(each)
        self._functions = SentFunctions()

    @property
    def pids(self) -> list[int]:
        """The ids of the processes that run now."""
        return [each.pid for each in self._all if each.pid is not None]

    def start(self) -> "Future[None]":
        """Start all workers beforehand; the future ends when the first one can take an item."""
        first = Future[None]()

        def begin(worker: _Worker) -> None:
            try:
                worker.start()
            except BaseException as error:
                with contextlib.suppress(Exception):
                    first.set_exception(error)
            else:
                with contextlib.suppress(Exception):
                    first.set_result(None)

        for each in self._all:
            threading.Thread(target=begin, args=(each,), name="framedex-start", daemon=True).start()
        return first

    def _run(self, function: Callable[[T], R], item: T) -> R:
        (number, packed), status = self._functions.get(function), 0
        for _ in range(ATTEMPTS):
            worker = self._free.get()
            try:
                result: R = worker.call(number, packed, item)
            except _Lost as error:
                status = error.status
                _LOG.info("a worker process ended by %s", _how(status))
            else:
                return result
            finally:
                self._free.put(worker)
        raise ResultLost(_how(status), -status if status < 0 else None)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the processes, also those that work: nobody waits for their results."""
        self._admission.close()
        for each in self._all:
            each.stop()
        if self._server is not None:
            self._server.stop()
        super().__exit__(kind, error, trace)


def _how(status: int) -> str:
    """Return how a process ended, from its exit status."""
    return f"signal {signal.Signals(-status).name}" if status < 0 else f"status {status}"


def _start_worker(python: str) -> tuple[ChildProcess, Connection]:
    return start_interpreter(python, "framedex.executors.worker", {"PYTHONPATH": module_path()})


class _Worker:
    """A process that runs items one after another.

    Args:
        begin: starts such a process, and returns it with the connection to it.

    Attributes:
        pid: the id of the process; None while it does not run.
    """

    def __init__(self, begin: Callable[[], tuple[ChildProcess, Connection]]) -> None:
        self._begin, self._starting = begin, threading.Lock()
        self._process: ChildProcess | None = None
        self._connection: Connection | None = None
        self._known = LastUsed[None]()
        self._stopped = False

    @property
    def pid(self) -> int | None:
        process = self._process
        return process.pid if process is not None and process.poll() is None else None

    def start(self) -> None:
        """Start the process, unless it runs, and wait until it can take an item.

        Raises:
            Unavailable: it cannot be started.
        """
        with self._starting:
            if self._connection is not None:
                return
            if self._stopped:
                raise Unavailable("the processes of this executor were ended")
            self._process, ours = self._begin()
            wait_for_start(self._process, ours)
            self._connection, self._known = ours, LastUsed[None]()

    def call(self, number: int, function: bytes, item: Any) -> Any:
        """Run a function on an item; start the process if it does not run.

        Args:
            number: identifies the function.
            function: the pickled function.
            item: the item.

        Raises:
            _Lost: the process ended.
        """
        self.start()
        connection = self._connection
        assert connection is not None, "it has started"
        message = pickle.dumps((number, None if number in self._known else function, item), pickle.HIGHEST_PROTOCOL)
        try:
            connection.send_bytes(message)
            if number in self._known:
                self._known.get(number)
            else:
                self._known.put(number, None)
            is_result, value = pickle.loads(connection.recv_bytes())  # noqa: S301 - of our own process
        except (EOFError, OSError) as error:
            raise _Lost(self._ended()) from error
        if is_result:
            return value
        raise value

    def _ended(self) -> int:
        """Take leave of the process, which has ended; return its status."""
        process, connection = self._process, self._connection
        assert process is not None, "it was running"
        assert connection is not None, "it was running"
        connection.close()
        self._connection = None
        return process.wait()

    def stop(self) -> None:
        """End the process at once, also while it works."""
        with self._starting:
            self._stopped = True
            process = self._process
        if process is None:
            return
        process.terminate()
        wait_or_kill(process, _END_S)
