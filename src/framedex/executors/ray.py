"""RayExecutor, for items on the processors, GPUs and memory of a cluster of Ray (https://www.ray.io), or of its parts.

This process never imports Ray. A process of its own is connected to the cluster (:mod:`framedex.executors.ray_driver`).
So workers import no program of the user, nothing that Ray prints, sets or stores reaches it, and a cluster that was
started for it ends with it, also if it is killed.
"""

import itertools
import os
import pickle
import secrets
import socket
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from framedex.core.child_processes import wait_or_kill
from framedex.errors import MissingDependency, Unavailable
from framedex.executors.base import Executor, ResultLost
from framedex.executors.functions import SentFunctions
from framedex.executors.interpreters import module_path, start_interpreter
from framedex.executors.ray_clusters import RayCluster
from framedex.executors.ray_folders import remove_cluster
from framedex.executors.resources import Capacity, Need

T = TypeVar("T")
R = TypeVar("R")

CLIENT = "ray://"
"""The beginning of addresses that the client of Ray connects to, from outside of a cluster."""
_END_S = 20.0  # for which the end of a cluster may take
_REACH_S = 10.0  # for which a machine may take to answer
_CONNECT_S = 120.0  # for which a connection to a cluster may take
_LOOPBACK = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
"""Variables with which all parts listen on the loopback address alone, on each system; and others find them there."""


class RayExecutor(Executor):
    """An executor whose workers are those of Ray; on POSIX systems. It needs the extra ``cluster``.

    Functions and items are pickled by Python itself, so they are found by their names in modules that the workers can
    import: on this machine, or on others with the same files at the same paths. Each item multiplies matrices on one
    thread. Closing :meth:`map` ends the items that run.

    Args:
        address: ``ray://host:port`` for the client of Ray, or ``host:port`` of a cluster with this machine.
            By default the cluster that this process is connected to by ``ray.init``, or the one that ``RAY_ADDRESS``
            names; without these, one is started on this machine, and ends with the executor.
        workers: processors of a cluster that is started; by default all.
        memory: its bytes for items that say what they need; by default about 70 % of the memory.
        gpus: its GPUs; by default those that Ray finds.

    Raises:
        MissingDependency: Ray is not installed.
        Unavailable: the cluster cannot be reached, or not be started.
    """

    def __init__(
        self,
        address: str | None = None,
        *,
        workers: int | None = None,
        memory: int | None = None,
        gpus: float | None = None,
    ) -> None:
        address = address or _present_address()
        _check_installed(address)
        if address is not None:
            _check_reachable(address)
        variables = {"PYTHONPATH": module_path(), "RAY_USAGE_STATS_ENABLED": "0"}
        if address is None:
            variables |= {**_LOOPBACK, "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
        elif address.startswith(("127.", "localhost:")):
            variables |= _LOOPBACK
        self._process, self._connection = start_interpreter(sys.executable, "framedex.executors.ray_driver", variables)
        self._sending, self._numbers = threading.Lock(), itertools.count()
        self._functions, self._sent = SentFunctions(self._forget), set[int]()
        self._items = dict[int, "_RayFuture"]()
        self._ended: str | None = None  # why it takes no items
        self.capacity, self._folder = self._connect(RayCluster(address, workers, gpus, memory))
        self.workers = max(1, int(self.capacity.cpus))
        self._receiving = threading.Thread(target=self._receive, name="framedex-ray", daemon=True)
        self._receiving.start()

    def _connect(self, cluster: RayCluster) -> tuple[Capacity, Path | None]:
        """Return what the cluster has, and the folder of one that was started."""
        place = f"the Ray cluster at {cluster.address}" if cluster.address else "Ray"
        verb = "reached" if cluster.address else "started"
        try:
            self._connection.send(cluster)
            is_there = self._connection.poll(_CONNECT_S)
            answer = self._connection.recv() if is_there else f"there was no answer within {_CONNECT_S:g} s"
        except (EOFError, OSError):
            answer = f"its process ended with status {self._process.wait()}"
        except BaseException:  # of Ctrl-C, while this waits
            self._process.kill()
            self._process.wait()
            raise
        if isinstance(answer, tuple):
            return answer
        self._process.kill()  # its threads end with it, as do the parts of a cluster that it has started
        self._process.wait()
        raise Unavailable(f"{place} cannot be {verb}: {answer}")

    def _hand_over(self, function: Callable[[T], R], item: T, need: Need) -> "Future[R]":
        packed = pickle.dumps(item, pickle.HIGHEST_PROTOCOL)
        future = _RayFuture(self._cancel, next(self._numbers))
        with self._sending:
            if self._ended is not None:
                raise Unavailable(self._ended)
            number = self._number(function)
            self._items[future.number] = future
            self._send(("item", future.number, number, need), packed)
        return future

    def _number(self, function: Any) -> int:
        """Return the number of a function, which is sent the first time."""
        number, packed = self._functions.get(function)
        if number not in self._sent:
            self._send(("function", number), packed)
            self._sent.add(number)
        return number

    def _forget(self, number: int) -> None:
        self._sent.discard(number)
        self._send(("forget", number))

    def _cancel(self, number: int) -> None:
        with self._sending:
            if self._items.pop(number, None) is not None and self._ended is None:
                self._send(("cancel", number))

    def _send(self, header: tuple[Any, ...], content: bytes | None = None) -> None:
        with suppress(OSError):  # it has ended; those that wait learn it from what receives
            self._connection.send(header)
            if content is not None:
                self._connection.send_bytes(content)

    def _receive(self) -> None:
        """Pass on results until the process that is connected to the cluster ends."""
        with suppress(EOFError, OSError):
            while True:
                number, kind, details = self._connection.recv()
                content = self._connection.recv_bytes() if kind == "answer" else b""
                with self._sending:
                    future = self._items.pop(number, None)
                if future is not None:  # not cancelled meanwhile
                    _settle(future, kind, details, content)
        with self._sending:
            self._ended = self._ended or "the process that is connected to Ray has ended"
            waiting, self._items = list(self._items.values()), {}
        for each in waiting:
            with suppress(InvalidStateError):
                each.set_exception(Unavailable(self._ended))
        if self._process.wait() and self._folder is not None:  # it was killed, or has crashed
            remove_cluster(self._folder)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the items, also those that run, and a cluster that was started; leave one that was not."""
        with self._sending:
            self._ended = self._ended or "the executor has ended"
            with suppress(OSError):
                self._connection.send(None)
        wait_or_kill(self._process, _END_S)
        self._receiving.join()
        self._connection.close()


class _RayFuture(Future[Any]):
    """A future that can be cancelled while its item runs.

    Args:
        cancel: called with the number at the first cancellation.
        number: the number of the item.
    """

    def __init__(self, cancel: Callable[[int], None], number: int) -> None:
        super().__init__()
        self._end, self.number = cancel, number

    def cancel(self) -> bool:
        """Cancel the item: nobody waits for it any longer, and its worker ends."""
        is_cancelled = super().cancel()
        if is_cancelled:
            self._end(self.number)
        return is_cancelled


def _settle(future: Future[Any], kind: str, details: Any, content: bytes) -> None:
    """Set the result of a future, unless it was cancelled."""
    with suppress(InvalidStateError):
        if kind == "lost":
            future.set_exception(ResultLost(*details))
        elif kind == "failed":
            future.set_exception(Unavailable(details))
        else:
            try:
                is_result, value = pickle.loads(content)  # noqa: S301 - of our own workers
            except Exception as error:  # as where a class can be read by the workers alone
                is_result, value = False, error
            (future.set_result if is_result else future.set_exception)(value)


def _check_installed(address: str | None) -> None:
    """Check that there is Ray, and its client for addresses that need it, without loading them.

    Raises:
        MissingDependency: they are not installed.
    """
    needed = ("ray", "grpc") if address is not None and address.startswith(CLIENT) else ("ray",)
    for name in needed:
        if find_spec(name) is None:
            raise MissingDependency(f"the executor {address or 'ray'!r} needs {name}: pip install 'framedex[cluster]'")


def _check_reachable(address: str) -> None:
    """Check that something listens at an address; Ray itself would try for minutes.

    Raises:
        Unavailable: nothing does.
    """
    host, _, port = address.removeprefix(CLIENT).rpartition(":")
    if not port.isdecimal():  # "auto"
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), _REACH_S).close()
    except OSError as error:
        raise Unavailable(f"the Ray cluster at {address} cannot be reached: {error}") from error


def _present_address() -> str | None:
    """Return the address of the cluster that the program is connected to, or has named; None without one."""
    ray: Any = sys.modules.get("ray")
    if ray is not None and ray.is_initialized():
        client = ray.util.client.ray.get_context().client_worker if ray.util.client.ray.is_connected() else None
        return f"{CLIENT}{client._conn_str}" if client is not None else str(ray.get_runtime_context().gcs_address)
    address = os.environ.get("RAY_ADDRESS", "")
    return None if address in ("", "local") else address
