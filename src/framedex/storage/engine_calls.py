"""Calls of Lance, which in the child of a fork run in a helper process.

The waiting threads of Lance are entered in a table of the process (`parking_lot
<https://docs.rs/parking_lot_core>`_). In a child this table still holds the threads of the parent, which do not exist
there: a child that uses Lance sooner or later blocks or crashes. So a child whose parent had loaded Lance starts a
process of its own, on its first call, which calls Lance for it and ends with it.
"""

import contextlib
import logging
import os
import pickle
import subprocess
import sys
import weakref
from collections.abc import Callable, Iterator
from functools import wraps
from multiprocessing.connection import Connection, Pipe
from typing import Any, ParamSpec, TypeVar

import pyarrow as pa

from framedex.core import forks
from framedex.core.child_processes import wait_or_kill
from framedex.errors import WorkspaceError

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")
_LOG = logging.getLogger(__name__)
_END_S = 10.0


class Pulled:
    """A reference to an iterator of the caller, of which the helper requests one batch at a time.

    Args:
        number: the position of the iterator in the caller's list.
    """

    def __init__(self, number: int) -> None:
        self.number = number


class _Helper:
    """A process that runs calls for this one.

    Raises:
        WorkspaceError: the process cannot be started.
    """

    def __init__(self) -> None:
        self._lock, self._dropped = forks.RLock(), list[int]()
        self._connection, theirs = Pipe()
        command = [sys.executable, "-m", "framedex.storage.engine_helper", str(theirs.fileno())]
        path = os.pathsep.join(folder for folder in sys.path if folder)
        try:
            self._process = subprocess.Popen(  # noqa: S603 - our own module, by this interpreter
                command, pass_fds=[theirs.fileno()], env={**os.environ, "PYTHONPATH": path},
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip
        except (OSError, TypeError) as error:  # an embedded interpreter has no executable
            self._connection.close()
            raise WorkspaceError(f"tables were read or written {forks.UNSAFE} ({error})") from error
        finally:
            theirs.close()
        _LOG.debug("process %d calls Lance for this one, the child of a fork", self._process.pid)
        self.stop = weakref.finalize(self, _stop, self._connection, self._process)

    @property
    def has_ended(self) -> bool:
        """True if the process takes no more calls."""
        return self._connection.closed

    def call(self, name: tuple[str, str], args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """Run a function by module and qualified name; iterators among the arguments stay in this process."""
        sources = [each for each in args if isinstance(each, Iterator)]
        packed = [Pulled(sources.index(each)) if isinstance(each, Iterator) else each for each in args]
        return self._request(("call", name, packed, options), sources)

    def _request(self, message: Any, sources: list[Iterator[Any]]) -> Any:
        failure: BaseException | None = None
        with self._lock:
            dropped, self._dropped = self._dropped, []
            self._send((dropped, message))
            while True:
                kind, content = self._receive()
                if kind == "pull":
                    try:
                        self._send(next(sources[content], None))
                    except WorkspaceError:
                        raise
                    except BaseException as error:
                        failure = error
                        self._send(Pulled(content))
                elif kind == "reader":
                    number, schema = content
                    return pa.RecordBatchReader.from_batches(schema, self._batches(number))
                elif kind == "error":
                    raise failure or content
                else:
                    return content

    def _batches(self, number: int) -> Iterator[pa.RecordBatch]:
        try:
            while (batch := self._request(("next", number), [])) is not None:
                yield batch
        finally:
            self._dropped.append(number)  # sent with the next request, as this may run within one

    def _send(self, message: Any) -> None:
        with self._connected():
            self._connection.send_bytes(pickle.dumps(message, pickle.HIGHEST_PROTOCOL))

    def _receive(self) -> Any:
        with self._connected():
            return self._connection.recv()

    @contextlib.contextmanager
    def _connected(self) -> Iterator[None]:
        try:
            yield
        except (OSError, EOFError) as error:
            self._connection.close()
            raise WorkspaceError(
                f"tables were read or written {forks.UNSAFE}: the process {self._process.pid}, which was started to "
                f"read and write them, has ended"
            ) from error

    def forget(self) -> None:
        """Leave the process to the parent, in the child of another fork."""
        self.stop.detach()
        self._connection.close()
        forks.abandon(self._process)


def _stop(connection: Connection, process: "subprocess.Popen[bytes]") -> None:
    connection.close()
    wait_or_kill(process, _END_S)


class _Calls:
    """The choice between calls in this process and calls in a helper."""

    def __init__(self) -> None:
        self._lock, self._helper, self.is_inherited = forks.Lock(), None, False
        forks.renew_after_forks(self)

    _helper: _Helper | None

    def renew(self) -> None:
        """Call Lance in a helper from now on, if the parent of this process had loaded it."""
        self.is_inherited = self.is_inherited or "lance" in sys.modules
        if self._helper is not None:
            self._helper.forget()
            self._helper = None

    def helper(self) -> _Helper:
        """Return the helper that calls share."""
        with self._lock:
            if self._helper is None or self._helper.has_ended:
                self._helper = _Helper()
            return self._helper

    def run(self, name: tuple[str, str], args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """Run a function in a helper: in one of its own if it takes iterators, which may make calls themselves."""
        if not any(isinstance(each, Iterator) for each in args):
            return self.helper().call(name, args, options)
        helper = _Helper()
        try:
            return helper.call(name, args, options)
        finally:
            helper.stop()


_CALLS = _Calls()


def engine_call(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
    """Return a function that runs in this process, or in a helper where Lance cannot be called.

    Its arguments and its result can be pickled, except for positional arguments that are iterators of batches, and
    readers as result. A method's object is pickled, too.
    """

    @wraps(function)
    def call(*args: _Parameters.args, **options: _Parameters.kwargs) -> _Result:
        if not _CALLS.is_inherited:
            return function(*args, **options)
        result: _Result = _CALLS.run((function.__module__, function.__qualname__), args, options)
        return result

    return call


def check_own_engine() -> None:
    """Check that Lance can be called in this process.

    Raises:
        WorkspaceError: the process is the child of a fork, and its parent had loaded Lance.
    """
    if _CALLS.is_inherited:
        raise WorkspaceError(f"tables were read or written {forks.UNSAFE}")
