"""Faults of annotated bounding boxes, found by predictions of a detector: one row a fault, with a score.

Predictions are matched with boxes of their label first. What is left is explained by one fault each, the one that needs
the larger overlap first: another class in the place of a box, a box in the wrong place, a box that was drawn twice, a
box of nothing, and an object without a box. A score is the probability that a detector like this one would have agreed
with the annotation, were it right, so that scores of all kinds compare. It is measured on the boxes themselves: the
share of predictions of a confidence that are right, and the share of boxes of a label and size that are found. That of
a duplicate is the IoU of both boxes.
"""

from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from framedex.analysis.detection_quality import Boxes, Ints, Values, best_overlaps, match_boxes
from framedex.analysis.label_suggestions import Calibration
from framedex.core.arrays import Mask
from framedex.core.progress import ShareProgress

_MATCH, _NEAR, _COPY = (
    0.5,
    0.02,
    0.5,
)  # IoU of a right prediction, of one of a misplaced box, and of two copies of a box
_SUPPORT = 0.3  # IoU from which on a prediction of any label says that something is there
_WEAK = 0.3  # probability of a prediction below which it does not settle the class of a box
_PRIOR = 30.0  # boxes of all labels that are added to those of a label
_NONE = -1


class ObjectFault(StrEnum):
    """Kinds of faults of annotated boxes."""

    MISSING = "missing"
    SPURIOUS = "spurious"
    WRONG_CLASS = "wrong_class"
    PLACEMENT = "placement"
    DUPLICATE = "duplicate"


KINDS = tuple(ObjectFault)


@dataclass(frozen=True)
class ObjectFaults:
    """F faults, those with the highest scores first.

    Attributes:
        kind: int64, shape (F,): places in :data:`KINDS`.
        score: float64, shape (F,), in [0, 1], descending.
        truth: int64, shape (F,): the faulty box; -1 for missing ones.
        prediction: int64, shape (F,): the prediction that says so; -1 for spurious boxes and duplicates.
        original: int64, shape (F,): the box that a duplicate repeats; -1 for other kinds.
    """

    kind: Ints
    score: Values
    truth: Ints
    prediction: Ints
    original: Ints


def object_faults(truth: Boxes, predictions: Boxes, *, progress: ShareProgress) -> ObjectFaults:
    """Return the faults of boxes by what a detector predicts.

    Args:
        truth: the boxes, whose crowds have no faults.
        predictions: the predictions, those of low confidence among them.
        progress: called with the share that is done; raises to stop.
    """
    matches = match_boxes(truth, predictions, iou=_MATCH, progress=lambda share: progress(0.4 * share))
    chance = _chances(predictions.confidence, (matches.of_prediction >= 0) & ~matches.is_ignored, matches.is_ignored)
    own = np.append(chance, 0.0)[matches.of_truth]  # 0 without a match, which is -1
    rest = (matches.of_truth < 0) & ~truth.is_crowd
    free = (matches.of_prediction < 0) & ~matches.is_ignored
    rows: list[_Rows] = []

    weak = rest | ((own < _WEAK) & ~truth.is_crowd)
    boxes, found = _pairs_of(truth, predictions, weak, free, iou=_MATCH, by_label=False)
    is_surer = chance[found] > own[boxes]
    boxes, found = boxes[is_surer], found[is_surer]
    rows.append(_rows(ObjectFault.WRONG_CLASS, chance[found] * (1 - own[boxes]), boxes, found))
    rest[boxes], free[found] = False, False
    progress(0.5)

    boxes, found = _pairs_of(truth, predictions, rest, free, iou=_NEAR, by_label=True)
    rows.append(_rows(ObjectFault.PLACEMENT, chance[found], boxes, found))
    rest[boxes], free[found] = False, False
    progress(0.6)

    # Of two boxes that no prediction settles the later one is the copy.
    ranked = np.concatenate([np.flatnonzero(~rest & ~truth.is_crowd), np.flatnonzero(rest)])
    place, overlap = best_overlaps(truth.take(ranked), truth.take(ranked), iou=_COPY, by_label=True, earlier=True)
    copies = np.flatnonzero((place >= 0) & rest[ranked])
    rows.append(_rows(ObjectFault.DUPLICATE, overlap[copies], ranked[copies], original=ranked[place[copies]]))
    rest[ranked[copies]] = False
    progress(0.7)

    left = np.flatnonzero(rest)
    recall = _recalls(truth, ~rest)
    unused = np.flatnonzero(free)
    support = _support(truth.take(left), predictions.take(unused), chance[unused])
    rows.append(_rows(ObjectFault.SPURIOUS, recall[left] * (1 - support), left))
    progress(0.8)

    found = _apart(truth, predictions, np.flatnonzero(free))
    rows.append(_rows(ObjectFault.MISSING, chance[found], prediction=found))
    progress(1.0)
    kind, score, box, prediction, original = (np.concatenate(each) for each in zip(*rows, strict=True))
    order = np.argsort(-score, kind="stable")
    return ObjectFaults(kind[order], score[order], box[order], prediction[order], original[order])


_Rows = tuple[Ints, Values, Ints, Ints, Ints]


def _rows(
    kind: ObjectFault,
    score: Values,
    truth: Ints | None = None,
    prediction: Ints | None = None,
    original: Ints | None = None,
) -> _Rows:
    """Return the columns of faults of a kind."""
    lacking = np.full(len(score), _NONE)
    boxes, predictions, originals = (lacking if each is None else each for each in (truth, prediction, original))
    return np.full(len(score), KINDS.index(kind)), score, boxes, predictions, originals


def _chances(confidence: Values, is_right: Mask, is_ignored: Mask) -> Values:
    """Return the probability that a prediction is right, by its confidence."""
    if is_ignored.all():
        return np.zeros(len(confidence))
    calibration = Calibration.of(confidence[~is_ignored], is_right[~is_ignored])
    return calibration(confidence).astype(np.float64)


def _pairs_of(
    truth: Boxes, predictions: Boxes, rest: Mask, free: Mask, *, iou: float, by_label: bool
) -> tuple[Ints, Ints]:
    """Return matched rows of true boxes and predictions among some of both."""
    boxes, found = np.flatnonzero(rest), np.flatnonzero(free)
    some, others = truth.take(boxes), predictions.take(found)
    if not by_label:
        some, others = (replace(each, label=np.zeros_like(each.label)) for each in (some, others))
    matches = match_boxes(some, others, iou=iou, progress=lambda _share: None)
    pairs = np.flatnonzero(matches.of_truth >= 0)
    return boxes[pairs], found[matches.of_truth[pairs]]


def _recalls(truth: Boxes, is_found: Mask) -> Values:
    """Return the share of boxes of the label and size of each box that the detector finds: float64, shape (N,).

    The share by size, which does not fall with the size, has its odds changed by those of the label, for which the box
    itself is left out, and a few boxes of all labels are added.
    """
    counts = ~truth.is_crowd
    if not counts.any():
        return np.ones(len(counts))
    area = truth.box[:, 2] * truth.box[:, 3]
    by_size = Calibration.of(area[counts], is_found[counts])(area).astype(np.float64)
    members = np.bincount(truth.label[counts])[truth.label] - counts
    hits = np.bincount(truth.label[counts & is_found], minlength=int(truth.label.max()) + 1)[truth.label] - is_found
    total = float(is_found[counts].mean())
    by_label = (hits + _PRIOR * total) / (members + _PRIOR)
    odds = by_size / (1 - by_size) * _odds(by_label) / _odds(np.array(total))
    return np.asarray(odds / (1 + odds), dtype=np.float64)


def _odds(share: Values) -> Values:
    return np.asarray((share + 0.01) / (1.01 - share))


def _support(boxes: Boxes, predictions: Boxes, chance: Values) -> Values:
    """Return the probability of the prediction, of any label, that overlaps each box most; 0 for none."""
    place, _ = best_overlaps(predictions, boxes, iou=_SUPPORT, by_label=False)
    return np.asarray(np.append(chance, 0.0)[place])


def _apart(truth: Boxes, predictions: Boxes, rows: Ints) -> Ints:
    """Return those of some predictions that are in no place of a box, nor in that of a surer one of them."""
    place, _ = best_overlaps(truth, predictions.take(rows), iou=_MATCH, by_label=False)
    rows = rows[place < 0]
    rows = rows[np.argsort(-predictions.confidence[rows], kind="stable")]
    some = predictions.take(rows)
    place, _ = best_overlaps(some, some, iou=_MATCH, by_label=False, earlier=True)
    return rows[place < 0]
