"""Comparisons of two states of a dataset of a service."""

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from framedex.client import calls
from framedex.client.actions import MOST_IDS
from framedex.client.connection import Connection
from framedex.client.parts import ViewParts
from framedex.client.view import ClientView
from framedex.core.checks import check_integer
from framedex.errors import InvalidInput

_PAGE_ROWS = 50_000


class ClientComparison:
    """The difference between two states of a dataset of a service, as :meth:`framedex.Dataset.compare` returns it.

    It stays as it is while the dataset changes. The rows of a present state that was replaced can be read for ten
    minutes.

    Attributes:
        counts: the number of media with each change; 0 for changes that did not happen.
    """

    def __init__(self, connection: Connection, dataset_id: str, body: Mapping[str, Any]) -> None:
        self._connection, self._dataset_id = connection, dataset_id
        self._states = {"before": body["before"], "after": body["after"]}
        self.counts: dict[str, int] = dict(body["counts"])

    def to_arrow(self, change: str | None = None, *, offset: int = 0, limit: int | None = None) -> pa.Table:
        """Return a row for each change of each media item.

        Args:
            change: only rows with this change; None for all.
            offset: the number of rows of each change that are left out, from the first on.
            limit: the maximum number of rows of each change; None for all.

        Returns:
            A table, change by change, each in the order of ingestion: ``media_id``, ``image_filename``, ``change``, and
            ``before`` and ``after``: lists of the labels, tags, captions or issue types that changed, else null.

        Raises:
            InvalidInput: there is no such change.
            NotFound: a state was freed.
        """
        check_integer("offset", offset, minimum=0)
        check_integer("limit", limit, minimum=0, optional=True)
        changes = self.counts if change is None else (self._checked(change),)
        return pa.concat_tables([table for each in changes for table in self._tables(each, offset, limit)])

    def view(self, change: str) -> ClientView:
        """Return the media with a change that the dataset still has as a view, up to 10,000.

        Raises:
            InvalidInput: there is no such change, or more media have it; or it is ``removed``, whose media are in no
                view of a service.
            NotFound: a state was freed.
        """
        if self._checked(change) == "removed":
            raise InvalidInput("removed media are in no view of a service; read their rows: to_arrow('removed')")
        body = {**self._states, "change": change}
        info = self._connection.json(calls.COMPARISON_RESULTS, body=body, dataset_id=self._dataset_id)
        if info["count"] > MOST_IDS:
            raise InvalidInput(f"a view of changed media has up to {MOST_IDS:,} rows, not {info['count']:,}")
        query = {"offset": 0, "limit": MOST_IDS, "columns": ["media_id"]}
        table = self._connection.table(calls.ROWS, query=query, dataset_id=self._dataset_id, rid=info["rid"])
        ids = tuple(table["media_id"].to_pylist())
        return ClientView(self._connection, self._dataset_id, ViewParts(ids=ids))

    def _checked(self, change: str) -> str:
        if change not in self.counts:
            raise InvalidInput(f"a change is one of {', '.join(self.counts)}, not {change!r}")
        return change

    def _tables(self, change: str, offset: int, limit: int | None) -> list[pa.Table]:
        """Return pages of the rows of a change, at least one, which has the columns."""
        end = self.counts[change] if limit is None else min(self.counts[change], offset + limit)
        found = []
        for start in range(offset, max(end, offset + 1), _PAGE_ROWS):
            count = max(min(end - start, _PAGE_ROWS), 0)
            query = {**self._states, "change": change, "offset": start, "limit": max(count, 1)}
            table = self._connection.table(calls.COMPARISON_ROWS, query=query, dataset_id=self._dataset_id)
            found.append(table.slice(0, count))
        return found

    def __repr__(self) -> str:
        parts = [f"{count:,} {change.replace('_', ' ')}" for change, count in self.counts.items() if count]
        return f"<framedex.ClientComparison: {', '.join(parts) or 'nothing differs'}>"
