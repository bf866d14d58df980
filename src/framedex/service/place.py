"""The place of the one server of a workspace: its lock, its address, and the socket at which it listens."""

import errno
import json
import logging
import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from framedex.core.atomic import atomic_file
from framedex.errors import Conflict, InvalidInput

logger = logging.getLogger("framedex.service")

_ADDRESS = "service.json"
_LOCK = "service.lock"
_BACKLOG = 2048  # as of uvicorn
_START_S = 20.0  # a server writes its address within this time
_PAUSE_S = 0.05
_AT_ONCE = 16  # connections that are taken in a turn of the loop
_REST_S = 0.9  # less than the second after which the loop tries again
_NO_DESCRIPTORS = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


@contextmanager
def only_server(folder: Path) -> Iterator[None]:
    """Hold the place of the one server of a workspace; it is free again when the process ends, however it ends.

    Raises:
        Conflict: another server has it; the message has its address.
    """
    lock = FileLock(folder / _LOCK, timeout=0)
    try:
        lock.acquire()
    except Timeout:
        address = _read_address(folder) or "an address that is not known yet"
        raise Conflict(f"{folder} is served already, at {address}") from None
    (folder / _ADDRESS).unlink(missing_ok=True)  # of a server that was killed
    try:
        yield
    finally:
        (folder / _ADDRESS).unlink(missing_ok=True)
        lock.release()


def write_address(folder: Path, url: str) -> None:
    """Write the address of the server of a workspace, which holds its place."""
    with atomic_file(folder / _ADDRESS) as partial:
        partial.write_text(json.dumps({"url": url, "pid": os.getpid()}), encoding="utf-8")


def running_server(folder: Path) -> str | None:
    """Return the address of the server of a workspace, once it answers; None if there is no server.

    Raises:
        Conflict: a server starts, and has no address after 20 s.
    """
    end = time.monotonic() + _START_S
    while True:
        try:
            with only_server(folder):
                return None
        except Conflict:
            if (url := _read_address(folder)) is not None:
                return url
            if time.monotonic() > end:
                raise
        time.sleep(_PAUSE_S)


def _read_address(folder: Path) -> str | None:
    with suppress(OSError, ValueError, KeyError):
        return str(json.loads((folder / _ADDRESS).read_text(encoding="utf-8"))["url"])
    return None


class ListeningSocket(socket.socket):
    """A socket that listens, and takes few connections in a turn of the loop, so that requests come to theirs.

    Attributes:
        make_room: ends connections where there are no file descriptors left, and returns their number.
    """

    make_room: Callable[[], int] = staticmethod(lambda: 0)
    _n_taken = 0
    _rests_until = 0.0

    def accept(self) -> tuple[socket.socket, Any]:
        """Return a connection with the address of its client.

        Raises:
            BlockingIOError: there is none at present, or it is to be taken in another turn.
            OSError: there are no file descriptors; the loop tries again after a second.
        """
        if self._n_taken >= _AT_ONCE or time.monotonic() < self._rests_until:
            self._n_taken = 0
            raise BlockingIOError
        self._n_taken += 1
        try:
            return super().accept()
        except OSError as error:
            self._n_taken = 0
            if error.errno not in _NO_DESCRIPTORS:
                raise
            logger.error("a connection cannot be taken: %s", error.strerror)
            if self.make_room():
                raise BlockingIOError from None
            self._rests_until = time.monotonic() + _REST_S  # the loop goes on to try, for each that may wait
            raise


@contextmanager
def listening(host: str, port: int) -> Iterator[ListeningSocket]:
    """Yield a socket that listens at an address, and close it at the end.

    Args:
        host: the address.
        port: the port; 0 for a free one.

    Raises:
        InvalidInput: the address cannot be used.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With its protocol, asyncio sends short answers at once; without, each waits 40 ms for an acknowledgement.
    with ListeningSocket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((host, port))
            listener.listen(_BACKLOG)
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise InvalidInput(f"cannot listen at {host}:{port}: {reason}") from None
        listener.set_inheritable(False)
        yield listener
