"""Forks of this process: what is open is closed before, or left alone in the child and opened anew there.

A child has one thread, and copies of all locks, connections and handles as other threads had them at that instant.
SQLite, Lance, DuckDB and pools of threads do not survive that. So no connection of SQLite is open at a fork
(https://www.sqlite.org/howtocorrupt.html, section 2.6), and the rest is replaced in the child.
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

_Given = ParamSpec("_Given")
_Result = TypeVar("_Result")
_Value = TypeVar("_Value")
UNSAFE = "while this process was forked; start processes by spawn instead"
REASON = "was opened before a fork; open the workspace again in this process"
_PATIENCE_S = 5.0  # what a fork waits for a transaction or a call to end


class Renewable(Protocol):
    """Something with locks, threads or handles that are of no use after a fork."""

    def renew(self) -> None:
        """Replace them, in the child of a fork."""
        ...


class Gate:
    """A count of the threads that are using something, and a way to keep all out while the process is forked.

    Args:
        level: gates are closed in the order of their levels, so that who is in by one may enter those of higher levels.

    Attributes:
        is_safe: whether what the child of a fork has of it was used by nobody at that instant.
    """

    def __init__(self, level: int = 0) -> None:
        self.level, self.is_safe = level, True
        self._changed, self._users, self._closed = threading.Condition(), dict[int, int](), False
        self._was_empty = True  # at the last fork
        with _FORKING, _CHANGING:  # what is opened during a fork waits for its end
            _GATES.add(self)

    @contextmanager
    def using(self) -> Iterator[None]:
        """Wait until no fork is under way; none begins, by another thread, for the duration of the block."""
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
        """Keep all out, and wait for those who are in; a thread that forks does not wait for itself."""
        me = threading.get_ident()
        with self._changed:
            self._closed = True
            self._changed.wait_for(lambda: self._users.keys() <= {me}, _PATIENCE_S)
            self._was_empty = not self._users

    def open(self) -> None:
        """Let all in again."""
        with self._changed:
            self._closed = False
            self._changed.notify_all()

    def renew(self) -> None:
        """Forget the threads that the child has not."""
        me = threading.get_ident()
        self._changed, self._closed = threading.Condition(), False
        self.is_safe = self.is_safe and self._was_empty
        self._users = {key: count for key, count in self._users.items() if key == me}


class Pool(Protocol):
    """Connections that must be closed before a fork."""

    gate: Gate

    def close_idle(self) -> None:
        """Close the connections that nobody uses."""
        ...


_FORKING = threading.RLock()  # held during a fork
_CHANGING = threading.Lock()  # held while a set changes, or is copied
_LIMITS: list[Any] = []  # of threads of BLAS, during a fork
_GATES: "WeakSet[Gate]" = WeakSet()
_POOLS: "WeakSet[Pool]" = WeakSet()
_RENEWABLES: "WeakSet[Renewable]" = WeakSet()


def close_before_forks(pool: Pool) -> None:
    """Have the idle connections of a pool closed before each fork."""
    with _CHANGING:
        _POOLS.add(pool)


def renew_after_forks(each: Renewable) -> None:
    """Have something renewed in the child of each fork."""
    with _CHANGING:
        _RENEWABLES.add(each)


class Lock:
    """A lock that is free in the child of a fork, whoever held it."""

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
        """Replace it: the thread that may have held it is not there."""
        self._lock = self._make()


class RLock(Lock):
    """A :class:`Lock` that the thread which holds it can take again."""

    _make: Callable[[], Any] = staticmethod(threading.RLock)


class cached_property(functools.cached_property[_Value]):  # noqa: N801 - as the one of the standard library
    """A property that is computed once, without the lock that Python 3.11 has for all instances of a class.

    The child of a fork would wait for it for ever. Two threads that ask at a time may compute it twice.
    """

    def __init__(self, compute: Callable[[Any], _Value]) -> None:
        super().__init__(compute)
        self.lock = nullcontext()


class Threads(Executor):
    """A pool of threads that are others in the child of a fork.

    Args:
        most: how many.
        name: the beginning of their names.
    """

    def __init__(self, most: int, name: str) -> None:
        self._most, self._name = most, name
        self.renew()
        renew_after_forks(self)

    def submit(
        self, call: Callable[_Given, _Result], /, *args: _Given.args, **kwargs: _Given.kwargs
    ) -> Future[_Result]:
        """Have something done by one of them."""
        return self._pool.submit(call, *args, **kwargs)

    def renew(self) -> None:
        """Replace the pool; its threads are made when there is something to do."""
        self._pool = ThreadPoolExecutor(self._most, thread_name_prefix=self._name)


def abandon(*things: Any) -> None:
    """Never let go of things, not even at the exit: to destroy them would wait for threads that the child has not."""
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
        # OpenBLAS starts its threads anew in a child, by a lock that another thread may hold at the fork. One that is
        # to use a single thread does not start any.
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
