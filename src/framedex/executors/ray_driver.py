"""A process that is connected to Ray for another one: ``python -m framedex.executors.ray_driver FD``.

It serves :mod:`framedex.executors.ray` over the connection with the given descriptor. When the other process closes it
or ends, also if it is killed, this one ends its work and the cluster that it has started, and then itself.
"""

import contextlib
import os
import queue
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from functools import cache
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import ray
import ray.exceptions

from framedex.core.child_processes import KILLED
from framedex.errors import Unavailable
from framedex.executors.base import ATTEMPTS
from framedex.executors.interpreters import ONE_THREAD, module_path
from framedex.executors.ray_clusters import RayCluster
from framedex.executors.ray_folders import cluster_folder
from framedex.executors.ray_worker import run_item
from framedex.executors.resources import Capacity, Need

_FINEST = 4  # decimal places of numbers of processors and GPUs, of which Ray has no more
_CONNECT_S = 15.0  # for which a connection may still be made after the other process has ended
_END_S = 15.0  # for which the end of a cluster may take then
# A cancellation at the moment at which an item ends may crash the process that is connected (Ray 2.60, "Tried to
# complete task that was not pending"). So items that end soon are not cancelled.
_GRACE_S = 1.0
_WITH_CONTENT = ("function", "item")
_Message = tuple[tuple[Any, ...], bytes]


@contextmanager
def _connected(cluster: RayCluster) -> Iterator[Path | None]:
    """Start or join a cluster, and yield the folder of one that was started; leave it at the end, or end it then."""
    folder = None
    with ExitStack() as stack:
        if cluster.address is None:
            folder = stack.enter_context(cluster_folder())
            ray.init(
                address="local", num_cpus=cluster.workers, num_gpus=cluster.gpus, include_dashboard=False,
                log_to_driver=False, _memory=cluster.memory, _temp_dir=str(folder), _node_ip_address="127.0.0.1",
                _system_config={"task_oom_retries": ATTEMPTS - 1},
            )  # fmt: skip
        else:
            variables = {**ONE_THREAD, "PYTHONPATH": module_path()}
            ray.init(address=cluster.address, log_to_driver=False, runtime_env={"env_vars": variables})
        stack.callback(ray.shutdown)
        yield folder


def _machines() -> list[dict[str, float]]:
    """Return the resources of each machine of the cluster."""
    return [each["Resources"] for each in ray.nodes() if each["Alive"]]


def _capacity() -> Capacity:
    machines = _machines()
    cpus, gpus, memory = (sum(each.get(name, 0.0) for each in machines) for name in ("CPU", "GPU", "memory"))
    return Capacity(cpus, gpus, memory, "the Ray cluster" if len(machines) > 1 else "Ray's machine")


class _Work:
    """Items that run on a cluster.

    Args:
        connection: gets the results: a header (number of the item, kind, detail), and for the kind ``answer`` the
            pickled answer.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._run: Any = ray.remote(run_item)
        self._functions, self._items = dict[int, Any](), dict[int, Any]()
        self._done: queue.SimpleQueue[tuple[int, Future[bytes]]] = queue.SimpleQueue()
        self._cancelled: queue.SimpleQueue[tuple[float, int]] = queue.SimpleQueue()
        for work in (self._send, self._end_cancelled):
            threading.Thread(target=work, daemon=True).start()

    def add_function(self, number: int, function: bytes) -> None:
        """Add a pickled function."""
        self._functions[number] = ray.put(function)

    def forget_function(self, number: int) -> None:
        """Forget a function, of which no further items come."""
        self._functions.pop(number, None)

    def add_item(self, number: int, function: int, need: Need, item: bytes) -> None:
        """Run a function on a pickled item."""
        try:
            result = self._with(need).remote(function, self._functions[function], item)
        except Exception as error:  # of Ray, where the cluster has gone
            future = Future[bytes]()
            future.set_exception(error)
        else:
            self._items[number] = result
            future = result.future()
        future.add_done_callback(lambda done: self._done.put((number, done)))

    def cancel(self, number: int) -> None:
        """End an item after some time, also if it runs: its worker is ended then."""
        self._cancelled.put((time.monotonic() + _GRACE_S, number))

    def _end_cancelled(self) -> None:
        while True:
            due, number = self._cancelled.get()
            time.sleep(max(0.0, due - time.monotonic()))
            numbers = [number]
            while not self._cancelled.empty():
                numbers.append(self._cancelled.get()[1])
            for each in sorted(numbers, reverse=True):  # those that have not begun first, so that they do not begin
                if (result := self._items.get(each)) is not None:
                    with contextlib.suppress(Exception):  # the cluster has gone
                        ray.cancel(result, force=True)

    @cache  # noqa: B019 - there is one of these in the process
    def _with(self, need: Need) -> Any:
        """Return the function with what it needs; no more processors and memory than the largest machine has."""
        machines = _machines()
        cpus, gpus, memory = (
            max((each.get(name, 0.0) for each in machines), default=0.0) for name in ("CPU", "GPU", "memory")
        )
        if need.gpus > gpus:
            raise Unavailable(
                f"an item needs {need.gpus:g} GPUs of one machine, and none of the cluster has more than {gpus:g}"
            )
        options: dict[str, Any] = {"num_cpus": round(min(need.cpus, cpus or need.cpus), _FINEST)}
        if need.gpus:
            options["num_gpus"] = round(need.gpus, _FINEST)
        if need.memory:
            options["memory"] = int(min(need.memory, memory or need.memory))
        return self._run.options(max_retries=ATTEMPTS - 1, **options)

    def _send(self) -> None:
        with contextlib.suppress(OSError):  # the other process has ended
            while True:
                number, done = self._done.get()
                self._items.pop(number, None)
                error = done.exception()
                if error is None:
                    self._connection.send((number, "answer", None))
                    self._connection.send_bytes(done.result())
                else:
                    self._connection.send((number, *_explained(error)))
                del done, error  # so that Ray frees the result


def _explained(error: BaseException) -> tuple[str, Any]:
    """Return the kind and the details of a failure: ``lost`` with (in words, signal), or ``failed`` with words."""
    if isinstance(error, Unavailable):
        return "failed", str(error)
    if isinstance(error, ray.exceptions.OutOfMemoryError):
        return "lost", ("Ray ended it because memory was short", KILLED)
    lost = ray.exceptions.WorkerCrashedError, ray.exceptions.NodeDiedError, ray.exceptions.ObjectLostError
    if isinstance(error, lost):
        return "lost", (f"Ray has lost it ({type(error).__name__})", None)
    return "failed", f"Ray cannot run an item: {type(error).__name__}: {_first_line(error):.300}"


def _first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0]


def _serve(messages: "queue.SimpleQueue[_Message | None]", work: _Work) -> None:
    """Do what the other process sends, until it says that this is all, or ends."""
    while (message := messages.get()) is not None:
        header, content = message
        match header:
            case "function", number:
                work.add_function(number, content)
            case "forget", number:
                work.forget_function(number)
            case "item", number, function, need:
                work.add_item(number, function, need, content)
            case "cancel", number:
                work.cancel(number)


def run_driver(connection: Connection) -> None:
    """Connect to a cluster, and serve until the other process ends."""
    messages: queue.SimpleQueue[_Message | None] = queue.SimpleQueue()
    is_connected = threading.Event()

    def receive() -> None:
        with contextlib.suppress(EOFError, OSError):
            while (header := connection.recv()) is not None:
                messages.put((header, connection.recv_bytes() if header[0] in _WITH_CONTENT else b""))
        messages.put(None)
        is_connected.wait(_CONNECT_S)  # the parts of a cluster that starts end with this process, too
        time.sleep(_END_S)
        os._exit(1)

    with contextlib.suppress(EOFError, OSError), ExitStack() as stack:
        cluster: RayCluster = connection.recv()
        threading.Thread(target=receive, daemon=True).start()
        try:
            folder = stack.enter_context(_connected(cluster))
        except Exception as error:  # Ray raises what its parts raise
            connection.send(f"{type(error).__name__}: {_first_line(error)}")
            return
        is_connected.set()
        connection.send((_capacity(), folder))
        _serve(messages, _Work(connection))


if __name__ == "__main__":
    run_driver(Connection(int(sys.argv[1])))
