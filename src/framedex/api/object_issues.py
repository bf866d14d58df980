"""Faults of annotated bounding boxes, ranked across kinds."""

from collections import Counter
from typing import TYPE_CHECKING, Any, Generic

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from framedex.analysis.object_faults import KINDS, ObjectFaults
from framedex.api.data_frames import as_pandas
from framedex.api.label_suggestions import Source
from framedex.browse.detection_quality import first_labels
from framedex.browse.explore import file_name
from framedex.core.arrays import Mask, RowIds
from framedex.core.checks import check_integer
from framedex.core.counts import counted
from framedex.errors import InvalidInput
from framedex.render import html
from framedex.storage.media import Media
from framedex.storage.media_rows import BOX

if TYPE_CHECKING:
    import pandas as pd

_BOX = pa.list_(pa.float64())
OBJECT_ISSUE_COLUMNS = pa.schema(
    [
        pa.field("kind", pa.string()),
        pa.field("score", pa.float32()),
        pa.field("object_id", pa.string()),
        pa.field("evidence_id", pa.string()),
        pa.field("image_id", pa.string()),
        pa.field("path", pa.string()),
        pa.field("label", pa.string()),
        pa.field("suggested_label", pa.string()),
        pa.field("box", _BOX),
        pa.field("suggested_box", _BOX),
    ]
)
"""The columns of :meth:`ObjectIssues.to_arrow`."""
_SHOWN = 24


class ObjectIssues(Generic[Source]):
    """Faults of annotated boxes, one row a fault, those with the highest scores first.

    It stays as it is while the dataset changes.

    Args:
        table: a row for each fault, with the columns :data:`OBJECT_ISSUE_COLUMNS`.
        objects: all objects of the dataset.

    Examples:
        >>> ds.object_issues()
        <framedex.ObjectIssues: 2 faults of boxes: 1 spurious, 1 wrong_class>
    """

    def __init__(self, table: pa.Table, objects: Source) -> None:
        self._table, self._objects = table, objects

    def __len__(self) -> int:
        """Return the number of faults."""
        return len(self._table)

    def to_arrow(self, kind: str | None = None) -> pa.Table:
        """Return a row for each fault, those with the highest scores first.

        Args:
            kind: ``missing``, an object without a box; ``spurious``, a box of nothing; ``wrong_class``; ``placement``,
                a box that hardly overlaps its object; ``duplicate``, a box of an object that has another one. None
                for all.

        Returns:
            A table: ``kind``; ``score``, the probability, 0 to 1, that the predictions would have agreed with a right
            annotation, so that kinds compare, or the IoU of duplicates; ``object_id``, the faulty box, null for a
            missing one; ``evidence_id``, the prediction that says so, or the box that a duplicate repeats, null for a
            spurious box; ``image_id`` and ``path`` of the image; ``label`` and ``box`` (x, y, width, height) as
            annotated; ``suggested_label`` and ``suggested_box``, null where nothing else is suggested.

        Raises:
            InvalidInput: there is no such kind.

        Examples:
            >>> ds.object_issues().to_arrow("wrong_class").select(["path", "label", "suggested_label"]).to_pylist()
            [{'path': 'dog-1.jpg', 'label': 'dog', 'suggested_label': 'cat'}]
        """
        if kind is None:
            return self._table
        return self._table.filter(pc.equal(self._table["kind"], check_fault(kind)))

    def to_pandas(self) -> "pd.DataFrame":
        """Return :meth:`to_arrow` as a DataFrame.

        Raises:
            MissingDependency: pandas is not installed.

        Examples:
            >>> ds.object_issues().to_pandas()[["kind", "path"]].values.tolist()
            [['spurious', 'dog-3.jpg'], ['wrong_class', 'dog-1.jpg']]
        """
        return as_pandas(self._table)

    def counts(self) -> dict[str, int]:
        """Return the number of faults of each kind.

        Examples:
            >>> ds.object_issues().counts()
            {'missing': 0, 'spurious': 1, 'wrong_class': 1, 'placement': 0, 'duplicate': 0}
        """
        found = Counter(self._table["kind"].to_pylist())
        return {str(kind): found[str(kind)] for kind in KINDS}

    def view(self, kind: str | None = None, limit: int | None = None) -> Source:
        """Return the boxes as a view of objects, in this order: the faulty ones, or predictions for missing ones.

        Args:
            kind: one kind alone; see :meth:`to_arrow`.
            limit: at most so many faults.

        Raises:
            InvalidInput: there is no such kind, or the limit is no count.
            NotFound: one of them was deleted.

        Examples:
            >>> [row["image_filename"] for row in ds.object_issues().view("wrong_class")]
            ['dog-1.jpg']
        """
        check_integer("limit", limit, minimum=0, optional=True)
        rows = self.to_arrow(kind).slice(0, limit)
        ids = pc.coalesce(rows["object_id"], rows["evidence_id"]).to_pylist()
        return self._objects.select([*dict.fromkeys(ids)])

    def _summary(self) -> str:
        kinds = ", ".join(f"{count:,} {kind}" for kind, count in self.counts().items() if count)
        return f"{counted(len(self), 'faults')} of boxes" + (f": {kinds}" if kinds else "")

    def __repr__(self) -> str:
        return f"<framedex.ObjectIssues: {self._summary()}>"

    def _repr_html_(self) -> str:
        rows = self._table.slice(0, _SHOWN).to_pylist()
        jpegs = self._objects.thumbnails([row["object_id"] or row["evidence_id"] for row in rows])
        return html.block(
            html.note(self._summary()),
            html.row(
                html.figure(jpeg, file_name(row["path"]), f"{row['kind']} ({row['score']:.2f}): {_change(row)}")
                for row, jpeg in zip(rows, jpegs, strict=True)
            ),
        )


def object_issue_table(objects: Media, truth: RowIds, predictions: RowIds, faults: ObjectFaults) -> pa.Table:
    """Return the table of faults.

    Args:
        objects: the objects of a dataset.
        truth: the rows of the boxes.
        predictions: those of the predictions.
        faults: the faults, by places in both.
    """
    if not len(faults.kind):
        return OBJECT_ISSUE_COLUMNS.empty_table()
    is_box, is_predicted, is_copy = (each >= 0 for each in (faults.truth, faults.prediction, faults.original))
    shown = np.empty(len(faults.kind), np.uint64)  # the faulty box, or the prediction of a missing one
    shown[is_predicted] = predictions[faults.prediction[is_predicted]]
    evidence = shown.copy()
    shown[is_box], evidence[is_copy] = truth[faults.truth[is_box]], truth[faults.original[is_copy]]
    suggested = np.where(is_predicted, evidence, shown)

    def column(name: str, rows: RowIds, has_value: Mask | None = None) -> pa.Array:
        values = objects.values_at(rows, name)
        if name == "labels":
            values = first_labels(values)
        return values if has_value is None else pc.if_else(pa.array(has_value), values, None)

    def boxes(rows: RowIds, has_value: Mask) -> pa.Array:
        sides = np.stack([np.asarray(objects.values_at(rows, name), np.float64) for name in BOX], axis=1)
        offsets = pa.array(np.arange(0, sides.size + 1, len(BOX), dtype=np.int32))
        return pa.ListArray.from_arrays(offsets, pa.array(sides.ravel()), mask=pa.array(~has_value))

    arrays = [
        pa.array([str(KINDS[kind]) for kind in faults.kind.tolist()]),
        pa.array(faults.score),
        column("media_id", shown, is_box),
        column("media_id", np.where(is_predicted | is_copy, evidence, shown), is_predicted | is_copy),
        column("parent_id", shown),
        column("path", shown),
        column("labels", shown, is_box),
        column("labels", suggested, is_predicted),
        boxes(shown, is_box),
        boxes(suggested, is_predicted),
    ]
    kinds = OBJECT_ISSUE_COLUMNS.types
    return pa.table([each.cast(kind) for each, kind in zip(arrays, kinds, strict=True)], schema=OBJECT_ISSUE_COLUMNS)


def _change(row: dict[str, Any]) -> str:
    return " → ".join(each for each in (row["label"], row["suggested_label"]) if each)


def check_fault(kind: Any) -> str:
    """Return a kind of faults.

    Raises:
        InvalidInput: there is no such kind.
    """
    if kind not in KINDS:
        raise InvalidInput(f"faults of boxes are {', '.join(KINDS)}, not {kind!r:.80}")
    return str(kind)
