"""Suggestions of labels for media of a service."""

import pyarrow as pa

from framedex.api.label_suggestions import RELIABILITY_COLUMNS, LabelSuggestions, SuggestionEdits
from framedex.client import calls
from framedex.client.connection import Connection
from framedex.client.view import ClientView
from framedex.errors import InvalidInput
from framedex.records import LabelDecision

_PAGE_ROWS = 50_000


class ClientSuggestions:
    """Suggestions of labels for a dataset of a service."""

    _connection: Connection
    id: str

    def suggest_labels(self, like: str = "labels") -> LabelSuggestions[ClientView]:
        """Return labels for the media without any; see :meth:`framedex.Dataset.suggest_labels`.

        The service suggests again for ``accept``, from its state at that time.

        Args:
            like: the values that are suggested: ``labels``.

        Raises:
            InvalidInput: there are other values to suggest, or too few media have labels.
            Conflict: the dataset has no index yet.
        """
        if like != "labels":
            raise InvalidInput(f"like is 'labels', not {like!r:.80}: only labels are suggested")
        body = self._connection.json(calls.MISSING_LABELS, query={"limit": 1}, dataset_id=self.id)
        pages = [
            self._connection.table(
                calls.MISSING_LABELS, query={"offset": start, "limit": _PAGE_ROWS}, dataset_id=self.id
            )
            for start in range(0, max(body["total"], 1), _PAGE_ROWS)
        ]
        for row in body["reliability"]:
            row["share_right"] = float("nan") if row["share_right"] is None else row["share_right"]
        reliability = pa.Table.from_pylist(body["reliability"], schema=RELIABILITY_COLUMNS)
        edits = SuggestionEdits(lambda _labels, minimum: self._accept(minimum), self._refuse)
        return LabelSuggestions(pa.concat_tables(pages), reliability, ClientView(self._connection, self.id), edits)

    def _accept(self, minimum: float) -> int:
        answer = self._connection.json(calls.ACCEPT_LABELS, body={"minimum": minimum}, dataset_id=self.id)
        return int(answer["count"])

    def _refuse(self, ids: list[str]) -> LabelDecision:
        answer = self._connection.json(calls.REFUSE_LABELS, body={"ids": ids}, dataset_id=self.id)
        return LabelDecision.model_validate(answer)
