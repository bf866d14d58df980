"""The part of :class:`~framedex.executors.RayExecutor` that workers of the cluster run."""

import pickle
from typing import Any

from framedex.executors.functions import LastUsed
from framedex.executors.worker import answer

_functions = LastUsed[Any]()  # a worker of Ray serves one program, which numbers its functions


def run_item(number: int, function: bytes, item: bytes) -> bytes:
    """Return what a function returns for an item, or raises, as :func:`framedex.executors.worker.answer` does.

    It is read from its pickle once in each worker, so it can keep what it opens.

    Args:
        number: the number of the function.
        function: the function, pickled.
        item: its argument, pickled.
    """

    def call() -> Any:
        if number not in _functions:
            _functions.put(number, pickle.loads(function))  # noqa: S301 - of the program that we work for
        return _functions.get(number)(pickle.loads(item))  # noqa: S301 - of the program that we work for

    return answer(call)
