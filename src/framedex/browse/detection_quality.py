"""The quality of a dataset's detections against its annotations."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from framedex.analysis.detection_quality import (
    Boxes,
    LabelQualities,
    Matches,
    confused_boxes,
    label_qualities,
    match_boxes,
)
from framedex.analysis.object_faults import ObjectFaults, object_faults
from framedex.core.arrays import RowIds
from framedex.core.progress import ShareProgress
from framedex.storage.media import EVERYTHING, Media
from framedex.storage.media_rows import BOX
from framedex.storage.objects import is_empty_object_view

_NO_BOXES = Boxes(np.empty(0, np.int64), np.empty(0, np.int64), np.empty((0, 4)), np.empty(0), np.empty(0, np.bool_))
_COLUMNS = ("parent_id", "labels", "confidence", "iscrowd", *BOX)


@dataclass(frozen=True)
class EvaluatedBoxes:
    """True boxes and predictions with what their matches say.

    Attributes:
        labels: the names of the labels, by number.
        qualities: by label.
        missing: uint64: rows of true boxes that no prediction matches, in row order.
        extra: uint64: rows of predictions that match no true box, by falling confidence.
        confused: uint64, two arrays: rows of true boxes and of predictions with another label in their places.
        confusions: the numbers of their labels, int64, shape (C, 2), and how often each pair occurs, the most frequent
            first.
    """

    labels: list[str]
    qualities: LabelQualities
    missing: RowIds
    extra: RowIds
    confused: tuple[RowIds, RowIds]
    confusions: tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]

    @property
    def nbytes(self) -> int:
        """The bytes of the arrays, about."""
        rows = (self.missing, self.extra, *self.confused)
        return 1024 + 100 * len(self.labels) + sum(each.nbytes for each in rows)


def evaluate_boxes(
    objects: Media, truth: RowIds, predictions: RowIds, *, iou: float, progress: ShareProgress
) -> EvaluatedBoxes:
    """Match predictions with true boxes, and return the quality of the predictions.

    Args:
        objects: the objects of a dataset.
        truth: uint64, ascending: the rows of the true boxes.
        predictions: uint64, ascending: those of the predictions.
        iou: the smallest IoU of a match, above 0, at most 1.
        progress: called with the share that is done; raises to stop.
    """
    names, (true_boxes, boxes) = _read(objects, (truth, predictions))
    progress(0.1)
    matches = match_boxes(true_boxes, boxes, iou=iou, progress=lambda share: progress(0.1 + 0.8 * share))
    qualities = label_qualities(true_boxes, boxes, matches, len(names))
    ends = confused_boxes(true_boxes, boxes, matches, iou=iou)
    labels = np.stack([true_boxes.label[ends[0]], boxes.label[ends[1]]], axis=1)
    pairs, counts = np.unique(labels, axis=0, return_counts=True) if len(labels) else (labels, np.empty(0, np.int64))
    order = np.argsort(-counts, kind="stable")
    return EvaluatedBoxes(
        names,
        qualities,
        truth[(matches.of_truth < 0) & ~true_boxes.is_crowd],
        predictions[_extra(boxes, matches)],
        (truth[ends[0]], predictions[ends[1]]),
        (pairs[order], counts[order]),
    )


def find_object_faults(objects: Media, truth: RowIds, predictions: RowIds, *, progress: ShareProgress) -> ObjectFaults:
    """Return the faults of boxes, with rows by their places in *truth* and *predictions*.

    Args:
        objects: the objects of a dataset.
        truth: uint64, ascending: the rows of the boxes.
        predictions: uint64, ascending: those of the predictions.
        progress: called with the share that is done; raises to stop.
    """
    _, (true_boxes, boxes) = _read(objects, (truth, predictions))
    progress(0.1)
    return object_faults(true_boxes, boxes, progress=lambda share: progress(0.1 + 0.9 * share))


def _extra(boxes: Boxes, matches: Matches) -> npt.NDArray[np.int64]:
    rows = np.flatnonzero((matches.of_prediction < 0) & ~matches.is_ignored)
    return rows[np.argsort(-boxes.confidence[rows], kind="stable")]


def _read(objects: Media, sets: tuple[RowIds, RowIds]) -> tuple[list[str], list[Boxes]]:
    """Return the names of the labels, and the boxes of both sets; predictions without a confidence have 1."""
    if is_empty_object_view(objects):
        return [], [_NO_BOXES, _NO_BOXES]
    ids, _ = objects.values(EVERYTHING, "parent_id")
    columns = {name: objects.values(EVERYTHING, name)[1] for name in _COLUMNS}
    labels = first_labels(columns["labels"]).dictionary_encode()
    order = np.argsort(np.array(labels.dictionary.to_pylist(), dtype=object), kind="stable")
    code_of = np.empty(len(order), np.int64)
    code_of[order] = np.arange(len(order))
    codes = code_of[np.asarray(labels.indices)] if len(order) else np.empty(0, np.int64)
    image = np.asarray(columns["parent_id"].dictionary_encode().indices).astype(np.int64)
    box = np.stack([np.asarray(columns[name], np.float64) for name in BOX], axis=1)
    confidence = np.asarray(pc.fill_null(columns["confidence"], 1.0), np.float64)
    crowd = np.asarray(columns["iscrowd"]).astype(np.bool_)
    every = Boxes(image, codes, box, confidence, crowd)
    return labels.dictionary.take(pa.array(order)).to_pylist(), [
        every.take(np.searchsorted(ids, rows)) for rows in sets
    ]


def first_labels(lists: pa.Array) -> pa.Array:
    """Return the label of each object, which has one; "" for none."""
    lengths = np.asarray(pc.fill_null(pc.list_value_length(lists), 0))
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]]).astype(np.int64)
    return pc.fill_null(lists.flatten().take(pa.array(starts, mask=lengths == 0)), "")
