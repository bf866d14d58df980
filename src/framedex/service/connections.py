"""The connections of a server: how many there are, and the end of those whose clients keep it waiting.

The framework's server bounds neither the time of a request's head nor that of its body, nor the number of connections:
a client that sends a byte now and then keeps a connection, and so a file descriptor, for ever. Its protocol says what a
connection waits for (:class:`Wait`), and its regular tick calls :meth:`Connections.end_overdue`.
"""

import heapq
import logging
from collections import Counter
from collections.abc import Iterable, MutableSet
from enum import IntEnum
from importlib import import_module
from typing import Any, Protocol

logger = logging.getLogger("framedex.service")

_SHARE = 3  # a connection may need a descriptor for a file that it sends or receives; a third is left for the rest
_FEWEST, _MOST = 8, 2000
_MOST_DESCRIPTORS = 2**20
_AT_ONCE = 16  # the part of the connections that ends at once if there is no room: to look for them takes time
_FRESH_S = 1.0  # a client that was waited for less than this is not slow
_READING = 10  # times the limit of a body: browsers read a paused video no further


class Wait(IntEnum):
    """A state in which a connection waits for its client; the last ones end first where there is no room."""

    IDLE = 0
    """The next request."""
    READING = 1
    """The client reads the answer."""
    BODY = 2
    HEAD = 3


_REASONS = {
    Wait.HEAD: "the head of a request was not complete in time",
    Wait.BODY: "the body of a request made no progress",
    Wait.READING: "the client did not read the answer",
}
_NO_ROOM, _STOPS = "there was no room for others", "the server stops"


class ClientConnection(Protocol):
    """A connection to a client."""

    def waits(self, now: float) -> tuple[Wait, float, float] | None:
        """Return what the client is waited for; None if it is not.

        Args:
            now: the present time of the loop in seconds.

        Returns:
            The state, the seconds since any progress, and those since progress that makes it no slow client.
        """

    def end_overdue(self, state: Wait) -> None:
        """End, after an answer that says why where one is possible."""

    def abort(self) -> None:
        """End at once."""


class Connections:
    """The connections of a server.

    Args:
        all_of_them: the open connections, which the server keeps.
        head_timeout_s: the seconds within which the head of a request must be complete.
        body_timeout_s: the seconds within which a body must make progress.
        most: the maximum number of connections; None for the share of the file descriptors.
    """

    def __init__(
        self,
        all_of_them: MutableSet[ClientConnection],
        *,
        head_timeout_s: float,
        body_timeout_s: float,
        most: int | None = None,
    ) -> None:
        self._all = all_of_them
        self._limits = {
            Wait.HEAD: head_timeout_s,
            Wait.BODY: body_timeout_s,
            Wait.READING: _READING * body_timeout_s,
        }
        self.most = most_connections() if most is None else most
        self._ended: Counter[str] = Counter()
        self._is_closed = False

    def end_overdue(self, now: float) -> None:
        """End the connections whose clients were waited for too long."""
        for each in list(self._all):
            if (waits := each.waits(now)) is None:
                continue
            state, since_s, _ = waits
            if since_s > self._limits.get(state, since_s):
                self._ended[_REASONS[state]] += 1
                each.end_overdue(state)

    def admit(self, new: ClientConnection, now: float) -> None:
        """Make room for a new connection, which is among all; where no other waits for its client, the new one ends."""
        if self._is_closed:
            self._end([new], _STOPS)
        elif len(self._all) > self.most and not self.make_room(now, keep=new):
            self._end([new])

    def make_room(self, now: float, *, keep: ClientConnection | None = None) -> int:
        """End a part of the connections, those that wait for the slowest clients; return their number."""
        candidates = []
        for number, each in enumerate(self._all):
            if each is not keep and (waits := each.waits(now)) is not None:
                state, _, slow_s = waits
                is_slow = slow_s >= _FRESH_S  # a head has just begun where others are as quick as this one
                candidates.append((is_slow, state if is_slow else min(state, Wait.BODY), slow_s, number, each))
        chosen = heapq.nlargest(max(len(self._all) // _AT_ONCE, 1), candidates)
        self._end(each for *_, each in chosen)
        return len(chosen)

    def end_waiting(self, now: float) -> None:
        """End the connections that wait for slow clients, and new ones: the server stops."""
        self._is_closed = True
        found = [(each, each.waits(now)) for each in self._all]
        self._end([each for each, waits in found if waits is not None and waits[2] >= _FRESH_S], _STOPS)

    def write_log(self) -> None:
        """Write how many connections were ended since the last call, a line for each reason."""
        ended, self._ended = self._ended, Counter()
        for reason, n in ended.items():
            logger.info("ended %d connections: %s", n, reason, extra={"fields": {"connections": n}})

    def _end(self, chosen: Iterable[ClientConnection], reason: str = _NO_ROOM) -> None:
        for each in chosen:
            self._ended[reason] += 1
            each.abort()
            self._all.discard(each)


def _limits() -> Any:
    """Return the module of the limits of this process; None for a system without them."""
    try:
        return import_module("resource")
    except ImportError:
        return None


def raise_descriptor_limit() -> None:
    """Raise the limit of open files of this process as far as it may."""
    if (resource := _limits()) is None:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MOST_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, _MOST_DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        except (ValueError, OSError) as error:  # as where the kernel has a lower limit of its own
            logger.warning("the limit of %d open files cannot be raised: %s", soft, error)


def most_connections() -> int:
    """Return the maximum number of connections at a time: a third of the open files that the process may have."""
    if (resource := _limits()) is None:
        return _MOST
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _MOST if soft == resource.RLIM_INFINITY else min(max(soft // _SHARE, _FEWEST), _MOST)
