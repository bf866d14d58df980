"""A process that calls Lance for another one: ``python -m framedex.storage.engine_helper FD``.

It serves :mod:`framedex.storage.engine_calls`, one request at a time, over the connection with the given descriptor,
and ends when the other process closes it.
"""

import itertools
import pickle
import sys
from collections.abc import Iterator
from importlib import import_module
from multiprocessing.connection import Connection
from typing import Any

import pyarrow as pa

from framedex.core.picklable import picklable
from framedex.errors import WorkspaceError
from framedex.storage.engine_calls import Pulled


class Helper:
    """The server of one connection.

    Args:
        connection: the connection to the process that calls.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection, self._numbers = connection, itertools.count()
        self._readers = dict[int, pa.RecordBatchReader]()

    def serve(self) -> None:
        """Handle requests until the other process ends."""
        while True:
            try:
                message = self._connection.recv_bytes()
            except (EOFError, OSError):
                return
            try:
                answer = self._answer(message)
            except BaseException as error:
                answer = "error", picklable(error, WorkspaceError(f"cannot use a table: {error}"))
            self._connection.send(answer)

    def _answer(self, message: bytes) -> tuple[str, Any]:
        dropped, (kind, content, *rest) = pickle.loads(message)  # noqa: S301 - of our parent; tables are opened here
        for number in dropped:
            self._readers.pop(number, None)
        if kind == "next":
            return "value", next(self._readers[content], None)
        (module, name), (args, options) = content, rest
        function: Any = import_module(module)
        for part in name.split("."):
            function = getattr(function, part)
        result = function(*(self._pull(each) if isinstance(each, Pulled) else each for each in args), **options)
        if not isinstance(result, pa.RecordBatchReader):
            return "value", result
        number = next(self._numbers)
        self._readers[number] = result
        return "reader", (number, result.schema)

    def _pull(self, source: Pulled) -> Iterator[pa.RecordBatch]:
        while True:
            self._connection.send(("pull", source.number))
            batch = self._connection.recv()
            if batch is None:
                return
            if isinstance(batch, Pulled):
                raise WorkspaceError("the source of the written batches failed")
            yield batch


if __name__ == "__main__":
    Helper(Connection(int(sys.argv[1]))).serve()
