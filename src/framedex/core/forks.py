"""Support for forks: resources are closed before a fork, or replaced in the child process.

A child process has one thread, and copies of all locks, connections and handles as other threads left them at the fork.
SQLite, Lance, DuckDB and thread pools do not survive this. So no SQLite connection is open at a fork
(https://www.sqlite.org/howtocorrupt.html, section 2.6), and the other resources are replaced in the child.
"""

import ctypes
import functools
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from types import TracebackType
from typing import Any, ParamSpec, Protocol, TypeVar
from weakref import WeakSet

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")
_Value = TypeVar("_Value")
UNSAFE = "while this process was forked; start processes by spawn instead"
REASON = "was opened before a fork; open the workspace again in this process"
_TIMEOUT_S = 5.0  # the maximum time that a fork waits for the end of a transaction or a call


class Renewable(Protocol):
    """An object with locks, threads or handles that cannot be used after a fork."""

    def renew(self) -> None:
        """Replace the locks, threads and handles, in the child of a fork."""
        ...


class Gate:
    """A counter of the threads that use a resource, which blocks new users while the process forks.

    Args:
        level: the order in which gates are closed. A user of one gate may enter gates of higher levels.

    Attributes:
        is_safe: in the child of a fork, whether no thread was using the resource at the fork.
    """

    def __init__(self, level: int = 0) -> None:
        self.level, self.is_safe = level, True
        self._changed, self._users, self._closed = threading.Condition(), dict[int, int](), False
        self._was_empty = True  # at the last fork
        with _FORKING, _CHANGING:  # a gate that is created during a fork waits for its end
            _GATES.add(self)

    @contextmanager
    def using(self) -> Iterator[None]:
        """Wait until no fork is running; no other thread can fork for the duration of the block."""
        me = threading.get_ident()
        with self._changed:
            if me not in self._users:
                self._changed.wait_for(lambda: not self._closed)
            self._users[me] = self._users.get(me, 0) + 1
        try:
            yield
        finally:
            with self._changed:
                self._users[me] -= 1
                if not self._users[me]:
                    del self._users[me]
                self._changed.notify_all()

    def close(self) -> None:
        """Block new users, and wait for the current ones, except for the thread that forks."""
        me = threading.get_ident()
        with self._changed:
            self._closed = True
            self._changed.wait_for(lambda: self._users.keys() <= {me}, _TIMEOUT_S)
            self._was_empty = not self._users

    def open(self) -> None:
        """Admit users again."""
        with self._changed:
            self._closed = False
            self._changed.notify_all()

    def renew(self) -> None:
        """Remove the threads that do not exist in the child."""
        me = threading.get_ident()
        self._changed, self._closed = threading.Condition(), False
        self.is_safe = self.is_safe and self._was_empty
        self._users = {key: count for key, count in self._users.items() if key == me}


class Pool(Protocol):
    """A pool of connections that must be closed before a fork."""

    gate: Gate

    def close_idle(self) -> None:
        """Close the connections that are not in use."""
        ...


_FORKING = threading.RLock()  # held during a fork
_CHANGING = threading.Lock()  # held while a set changes, or is copied
_LIMITS: list[Any] = []  # the limits of BLAS threads, during a fork
_GATES: "WeakSet[Gate]" = WeakSet()
_POOLS: "WeakSet[Pool]" = WeakSet()
_RENEWABLES: "WeakSet[Renewable]" = WeakSet()


def close_before_forks(pool: Pool) -> None:
    """Register a pool, whose idle connections are closed before each fork."""
    with _CHANGING:
        _POOLS.add(pool)


def renew_after_forks(renewable: Renewable) -> None:
    """Register an object, which is renewed in the child of each fork."""
    with _CHANGING:
        _RENEWABLES.add(renewable)


class Lock:
    """A lock that is free in the child of a fork, even if another thread held it."""

    _make: Callable[[], Any] = staticmethod(threading.Lock)

    def __init__(self) -> None:
        self._lock = self._make()
        renew_after_forks(self)

    def __enter__(self) -> bool:
        return bool(self._lock.acquire())

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lock.release()

    def renew(self) -> None:
        """Replace the lock, because the thread that held it may not exist."""
        self._lock = self._make()


class RLock(Lock):
    """A :class:`Lock` that its owner can acquire again."""

    _make: Callable[[], Any] = staticmethod(threading.RLock)


class cached_property(functools.cached_property[_Value]):  # noqa: N801 - named like that of the standard library
    """A property that is computed once, without the lock that Python 3.11 uses for all instances of a class.

    In the child of a fork, that lock could block for ever. Two threads may compute the value at the same time.
    """

    def __init__(self, compute: Callable[[Any], _Value]) -> None:
        super().__init__(compute)
        self.lock = nullcontext()


class Threads(Executor):
    """A pool of threads that is replaced in the child of a fork.

    Args:
        max_workers: the maximum number of threads.
        name: the prefix of the threads' names.
    """

    def __init__(self, max_workers: int, name: str) -> None:
        self._max_workers, self._name = max_workers, name
        self.renew()
        renew_after_forks(self)

    def submit(
        self, call: Callable[_Parameters, _Result], /, *args: _Parameters.args, **kwargs: _Parameters.kwargs
    ) -> Future[_Result]:
        """Run a call on one of the threads."""
        return self._pool.submit(call, *args, **kwargs)

    def renew(self) -> None:
        """Replace the pool; its threads are started on demand."""
        self._pool = ThreadPoolExecutor(self._max_workers, thread_name_prefix=self._name)


def abandon(*things: Any) -> None:
    """Keep objects alive for ever, also at exit: their destructors would wait for threads that the child lacks."""
    for thing in things:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))


def _before() -> None:
    _FORKING.acquire()
    with _CHANGING:
        gates, pools = sorted(_GATES, key=lambda gate: gate.level), list(_POOLS)
    for gate in gates:
        gate.close()
    for pool in pools:
        pool.close_idle()
    if gates:
        # OpenBLAS restarts its threads in a child, with a lock that another thread may hold at the fork. It starts no
        # threads if it is limited to one.
        from threadpoolctl import threadpool_limits

        _LIMITS.append(threadpool_limits(1, user_api="blas"))


def _after_in_parent() -> None:
    while _LIMITS:
        _LIMITS.pop().restore_original_limits()
    with _CHANGING:
        gates = list(_GATES)
    for gate in gates:
        gate.open()
    _FORKING.release()


def _after_in_child() -> None:
    global _FORKING, _CHANGING
    _FORKING, _CHANGING = threading.RLock(), threading.Lock()
    _LIMITS.clear()
    for each in [*_GATES, *_RENEWABLES]:
        each.renew()


if hasattr(os, "register_at_fork"):  # only systems that fork have it
    os.register_at_fork(before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
