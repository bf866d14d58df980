"""The evaluation of detections of a dataset of a service."""

from typing import Any

import pyarrow as pa

from framedex.api.evaluation import CONFUSION_COLUMNS, QUALITY_COLUMNS, BoxKind, Evaluation
from framedex.api.object_issues import ObjectIssues
from framedex.client import calls
from framedex.client.actions import MOST_IDS
from framedex.client.connection import Connection
from framedex.client.parts import ViewParts
from framedex.client.view import ClientView
from framedex.errors import InvalidInput

_MOST_ROWS = 2_000_000


class ClientEvaluations:
    """The evaluation of detections of a dataset of a service."""

    _connection: Connection
    id: str

    def evaluate(
        self, truth: str = "annotated", predictions: str = "detected", iou: float = 0.5
    ) -> Evaluation[ClientView]:
        """Return the quality of predicted boxes against true ones; see :meth:`framedex.Dataset.evaluate`.

        Args:
            truth: ``annotated``, ``detected`` or a source.
            predictions: likewise.
            iou: the smallest IoU of a match, above 0, at most 1.

        Raises:
            InvalidInput: an argument cannot be used. Views of more than 10,000 boxes raise it, too.
            Conflict: the dataset has nothing to show yet.
        """
        query = {**_sets(truth, predictions), "iou": iou}
        body = self._connection.json(calls.EVALUATION, query=query, dataset_id=self.id)
        for row in body["labels"]:
            row.update({name: float("nan") for name, value in row.items() if value is None})

        def select(kind: BoxKind) -> ClientView:
            info = self._connection.json(calls.EVALUATION_BOXES, query={**query, "kind": kind}, dataset_id=self.id)
            if info["count"] > MOST_IDS:
                raise InvalidInput(f"a view of boxes of a service has up to {MOST_IDS:,} rows, not {info['count']:,}")
            rows = {"offset": 0, "limit": MOST_IDS, "columns": ["media_id"]}
            table = self._connection.table(calls.ROWS, query=rows, dataset_id=self.id, rid=info["rid"])
            parts = ViewParts(ids=tuple(table["media_id"].to_pylist()))
            return ClientView(self._connection, self.id, parts, objects=True)

        table = pa.Table.from_pylist(body["labels"], schema=QUALITY_COLUMNS)
        confusions = pa.Table.from_pylist(body["confusions"], schema=CONFUSION_COLUMNS)
        return Evaluation(table, confusions, body["iou"], select)

    def object_issues(self, truth: str = "annotated", predictions: str = "detected") -> ObjectIssues[ClientView]:
        """Return the faults of annotated boxes by what a detector predicts; see :meth:`framedex.Dataset.object_issues`.

        Args:
            truth: ``annotated``, ``detected`` or a source.
            predictions: likewise.

        Raises:
            InvalidInput: an argument cannot be used, or there are no predictions.
            Conflict: the dataset has nothing to show yet.
        """
        query = {**_sets(truth, predictions), "limit": _MOST_ROWS}
        table = self._connection.table(calls.OBJECT_ISSUES, query=query, dataset_id=self.id)
        return ObjectIssues(table, ClientView(self._connection, self.id, objects=True))


def _sets(truth: Any, predictions: Any) -> dict[str, Any]:
    """Return the parameters that name true boxes and predictions."""
    for name, value in (("truth", truth), ("predictions", predictions)):
        if not isinstance(value, str):
            raise InvalidInput(f"{name} of a service is annotated, detected or a source, not {value!r:.80}")
    return {"truth": truth, "predictions": predictions}
