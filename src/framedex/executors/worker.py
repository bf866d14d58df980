"""A process that runs functions for another one: ``python -m framedex.executors.worker FD``, or a fork.

It serves :mod:`framedex.executors.processes`, one item at a time, over the connection with the given descriptor, and
ends at once when the other process closes it or ends.
"""

import os
import pickle
import queue
import sys
import threading
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from framedex.core.picklable import picklable
from framedex.executors.functions import LastUsed


def run_worker(connection: Connection) -> None:
    """Run items until the other process ends; this process ends with it, also in the middle of an item."""
    messages: queue.SimpleQueue[bytes] = queue.SimpleQueue()

    def receive() -> None:
        while True:
            try:
                messages.put(connection.recv_bytes())
            except (EOFError, OSError):
                os._exit(0)

    threading.Thread(target=receive, daemon=True).start()
    functions = LastUsed[Any]()
    connection.send(os.getpid())
    while True:
        connection.send_bytes(_answer(messages.get(), functions))


def _answer(message: bytes, functions: LastUsed[Any]) -> bytes:
    def call() -> Any:
        number, function, item = pickle.loads(message)  # noqa: S301 - of our parent
        if function is not None:
            functions.put(number, function)
        found = functions.get(number)
        if isinstance(found, bytes):  # one that cannot be read raises this for each of its items
            found = pickle.loads(found)  # noqa: S301 - of our parent
            functions.put(number, found)
        return found(item)

    return answer(call)


def answer(call: Callable[[], Any]) -> bytes:
    """Return what a call returns or raises, pickled: (True, result), or (False, exception)."""
    try:
        return pickle.dumps((True, call()), pickle.HIGHEST_PROTOCOL)
    except BaseException as error:
        return pickle.dumps((False, _with_place(error)), pickle.HIGHEST_PROTOCOL)


def _with_place(error: BaseException) -> BaseException:
    """Return an error with the place where it was raised as a note; another one if it cannot be pickled."""
    error.add_note("".join(traceback.format_exception(error)))
    return picklable(error, RuntimeError(f"{type(error).__name__}: {error}"))


if __name__ == "__main__":
    run_worker(Connection(int(sys.argv[1])))
