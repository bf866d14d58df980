"""Calls of the operator's own command or URL for each alert, repeated until they succeed."""

import json
import logging
import threading
import time
from collections.abc import Collection, Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid5

from framedex.errors import Error, Unavailable
from framedex.hub.alert_targets import AlertTarget
from framedex.hub.context import HubContext
from framedex.records import Alert
from framedex.storage.service_db.alert_calls import (
    AlertCall,
    begin_attempt,
    delete_calls,
    due_call,
    end_call,
    next_time,
    put_call,
    set_next,
)

logger = logging.getLogger("framedex.hub")

PAUSES_S = (5.0, 30.0, 120.0, 600.0, 3600.0)
"""The numbers of seconds before further attempts; the last one holds for all that follow."""
GIVEN_UP = timedelta(days=3)
"""The time after which an alert is no longer passed on."""
_KEPT = timedelta(days=7)
_ATTEMPT = timedelta(seconds=120)  # longer than an attempt; a process that was killed in one is followed by another
_LONGEST_S = 60.0
_AFTER_FAILURE_S = 5.0
_CLOSE_S = 1.0


class AlertCalls:
    """The calls of a hub. They are stored with the notifications of an alert, and made by a thread for each receiver.

    So a receiver that is slow does not keep the others waiting. An alert is passed at least once, under an id that is
    the same in each attempt.

    Args:
        context: the open parts of the hub.
        targets: the receivers; none for no calls.
    """

    def __init__(self, context: HubContext, targets: Sequence[AlertTarget]) -> None:
        self._context, self._targets = context, {each.name: each for each in targets}
        self._woken, self._closed = {name: threading.Event() for name in self._targets}, False
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []

    def put(self, connection: Any, alert: Alert) -> None:
        """Store the calls for an alert, in the transaction of its notifications.

        Args:
            connection: of the service's database.
            alert: the alert.
        """
        call_id = str(uuid5(UUID(alert.view_id), alert.batch_id))
        for name in self._targets:
            put_call(connection, call_id, name, body_of(alert, call_id), self._context.clock())

    def wake(self) -> None:
        """Let the threads look for calls that are due."""
        for each in self._woken.values():
            each.set()

    def start(self) -> None:
        """Start the threads, unless they run."""
        with self._lock:
            if self._threads or self._closed or self._context.database.read_only:
                return
            for each in self._targets:
                thread = threading.Thread(target=self._run, args=(each,), name=f"framedex-on-alert-{each}", daemon=True)
                self._threads.append(thread)
                thread.start()

    def close(self) -> None:
        """End the threads; attempts that have begun are awaited for up to a second, and else repeated later."""
        self._closed = True
        self.wake()
        end = time.monotonic() + _CLOSE_S
        for each in self._threads:
            each.join(max(end - time.monotonic(), 0.0))

    def sweep(self) -> None:
        """Delete the calls that were done a week ago."""
        with self._context.database.write() as connection:
            delete_calls(connection, before=self._context.clock() - _KEPT)

    def run_due(self, *, besides: Collection[str] = ()) -> int:
        """Make the calls that are due, but for some receivers, and return the number of attempts."""
        count = 0
        while not self._closed:
            with self._context.database.read() as connection:
                call = due_call(connection, self._context.clock(), besides=besides)
            if call is None:
                break
            self._attempt(call)
            count += 1
        return count

    def _attempt(self, call: AlertCall) -> None:
        target, now = self._targets.get(call.target), self._context.clock()
        if target is None or now - call.created_at > GIVEN_UP:
            reason = "there is no such receiver any more" if target is None else f"it failed {call.attempts} times"
            logger.error("the alert %s is not passed to the %s: %s", call.id, call.target, reason)
            with self._context.database.write() as connection:
                end_call(connection, call)
            return
        pause = PAUSES_S[min(call.attempts, len(PAUSES_S) - 1)]
        with self._context.database.write() as connection:
            if not begin_attempt(connection, call, now + max(_ATTEMPT, timedelta(seconds=pause))):
                return
        try:
            target.send(json.dumps(call.body, ensure_ascii=False).encode(), call.id)
        except Unavailable as error:
            logger.warning("the alert %s was not taken by the %s: %s", call.id, call.target, error)
            with self._context.database.write() as connection:
                set_next(connection, call, self._context.clock() + timedelta(seconds=pause))
            return
        with self._context.database.write() as connection:
            end_call(connection, call)

    def _run(self, name: str) -> None:
        """Make the calls of a receiver, and end those of receivers that are gone."""
        woken, others = self._woken[name], self._targets.keys() - {name}
        pause_s = 0.0
        while not self._closed:
            woken.wait(pause_s)
            woken.clear()
            try:
                self.run_due(besides=others)
                pause_s = self._pause_s(others)
            except Exception as error:
                is_own = isinstance(error, Error)
                logger.error("alerts cannot be passed on: %s", error, exc_info=None if is_own else error)
                pause_s = _AFTER_FAILURE_S

    def _pause_s(self, besides: Collection[str]) -> float:
        with self._context.database.read() as connection:
            next_at = next_time(connection, besides=besides)
        seconds = _LONGEST_S if next_at is None else (next_at - self._context.clock()).total_seconds()
        return min(max(seconds, 0.05), _LONGEST_S)


def body_of(alert: Alert, call_id: str) -> dict[str, Any]:
    """Return what receivers get of an alert."""
    return {"id": call_id, **alert.model_dump(mode="json")}
