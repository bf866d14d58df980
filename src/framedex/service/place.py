"""The place of the one server of a workspace: its lock, its address, and the socket at which it listens."""

import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from framedex.core.atomic import atomic_file
from framedex.errors import Conflict, InvalidInput

_ADDRESS = "service.json"
_LOCK = "service.lock"
_BACKLOG = 2048  # as of uvicorn
_START_S = 20.0  # a server writes its address within this time
_PAUSE_S = 0.05


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


@contextmanager
def listening(host: str, port: int) -> Iterator[socket.socket]:
    """Yield a socket that listens at an address, and close it at the end.

    Args:
        host: the address.
        port: the port; 0 for a free one.

    Raises:
        InvalidInput: the address cannot be used.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With its protocol, asyncio sends short answers at once; without, each waits 40 ms for an acknowledgement.
    with socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((host, port))
            listener.listen(_BACKLOG)
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise InvalidInput(f"cannot listen at {host}:{port}: {reason}") from None
        listener.set_inheritable(False)
        yield listener
