"""Quality of detected boxes against true ones: matches, precision, recall, average precision, and confusions.

Boxes are matched as COCO matches them (T.-Y. Lin et al., "Microsoft COCO: Common objects in context", 2014; pycocotools
2.0.11, ``cocoeval.py``): image by image and label by label, predictions by falling confidence, each with the true box
of the largest IoU that no other one has. A crowd takes any number of predictions, which count neither as right nor as
wrong; the overlap with it is relative to the prediction alone. There is no limit of predictions an image.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from framedex.core.arrays import Mask
from framedex.core.progress import ShareProgress

Ints = npt.NDArray[np.int64]
Values = npt.NDArray[np.float64]
RECALLS = np.linspace(0, 1, 101)
"""The recalls at which the precision is read for the average precision of COCO."""
_BLOCK = 256  # predictions whose overlaps with all true boxes of an image are computed at a time
_NONE = -1
_ALMOST_ONE = 1 - 1e-10  # the limit for an IoU of 1, as in pycocotools


@dataclass(frozen=True)
class Boxes:
    """N bounding boxes.

    Attributes:
        image: int64, shape (N,): the image of each.
        label: int64, shape (N,): from 0.
        box: float64, shape (N, 4): x, y, width, height in pixels.
        confidence: float64, shape (N,).
        is_crowd: bool, shape (N,).
    """

    image: Ints
    label: Ints
    box: Values
    confidence: Values
    is_crowd: Mask

    def take(self, rows: Ints) -> "Boxes":
        """Return some of the boxes."""
        return Boxes(self.image[rows], self.label[rows], self.box[rows], self.confidence[rows], self.is_crowd[rows])


@dataclass(frozen=True)
class Matches:
    """Matches of true boxes and predictions.

    Attributes:
        of_truth: int64, shape (N,): the prediction of each true box; -1 for none.
        of_prediction: int64, shape (P,): the true box of each prediction; -1 for none.
        is_ignored: bool, shape (P,): whether the prediction lies in a crowd, and so does not count.
    """

    of_truth: Ints
    of_prediction: Ints
    is_ignored: Mask


def match_boxes(truth: Boxes, predictions: Boxes, *, iou: float, progress: ShareProgress) -> Matches:
    """Match predictions with the true boxes of their image and label.

    Args:
        truth: the true boxes.
        predictions: the predictions.
        iou: the smallest IoU of a match, above 0, at most 1.
        progress: called with the share of the images that is done; raises to stop.
    """
    labels = int(max(truth.label.max(initial=0), predictions.label.max(initial=0))) + 1
    return _matched(
        truth, predictions, truth.image * labels + truth.label, predictions.image * labels + predictions.label, iou,
        progress,
    )  # fmt: skip


def _matched(
    truth: Boxes, predictions: Boxes, truth_key: Ints, key: Ints, iou: float, progress: ShareProgress
) -> Matches:
    """Match predictions with true boxes of an equal key."""
    matches = Matches(np.full(len(truth_key), _NONE), np.full(len(key), _NONE), np.zeros(len(key), dtype=np.bool_))
    # True boxes that count come before crowds, and predictions by falling confidence; ties stay in row order.
    true_order = np.lexsort((truth.is_crowd, truth_key))
    order = np.lexsort((-predictions.confidence, key))
    shared = np.intersect1d(truth_key, key)
    starts = np.searchsorted(truth_key[true_order], shared), np.searchsorted(key[order], shared)
    ends = (
        np.searchsorted(truth_key[true_order], shared, side="right"),
        np.searchsorted(key[order], shared, side="right"),
    )
    for number, (low, high, start, end) in enumerate(zip(starts[0], ends[0], starts[1], ends[1], strict=True)):
        _match_group(truth, predictions, true_order[low:high], order[start:end], iou, matches)
        if number % 1024 == 0:
            progress(number / len(shared))
    progress(1.0)
    return matches


def _match_group(truth: Boxes, predictions: Boxes, true_rows: Ints, rows: Ints, iou: float, matches: Matches) -> None:
    """Match predictions, by falling confidence, with true boxes, crowds last; note it in *matches*."""
    boxes, crowd = truth.box[true_rows], truth.is_crowd[true_rows]
    counting = int(np.count_nonzero(~crowd))
    is_free = np.ones(counting, dtype=np.bool_)
    limit = min(iou, _ALMOST_ONE)
    for start in range(0, len(rows), _BLOCK):
        part = rows[start : start + _BLOCK]
        for row, overlap in zip(part.tolist(), overlaps(predictions.box[part], boxes, crowd), strict=True):
            found = _last_largest(np.where(is_free, overlap[:counting], -1.0), limit)
            if found < 0 and counting < len(boxes):
                found = _last_largest(overlap[counting:], limit)
                if found >= 0:
                    found += counting
                    matches.is_ignored[row] = True
            if found < 0:
                continue
            matches.of_prediction[row] = true_rows[found]
            if found < counting:
                is_free[found] = False
                matches.of_truth[true_rows[found]] = row


def _last_largest(values: Values, limit: float) -> int:
    """Return the last place of the largest value, if that is at least a limit; else -1."""
    if not len(values):
        return _NONE
    place = len(values) - 1 - int(values[::-1].argmax())
    return place if values[place] >= limit else _NONE


def overlaps(boxes: Values, others: Values, is_crowd: Mask) -> Values:
    """Return the IoU of boxes with others, for crowds the share of the box that lies in them: float64, shape (N, M).

    Args:
        boxes: float64, shape (N, 4): x, y, width, height.
        others: float64, shape (M, 4).
        is_crowd: bool, shape (M,): of the others.
    """
    left_top = np.maximum(boxes[:, None, :2], others[None, :, :2])
    right_bottom = np.minimum((boxes[:, :2] + boxes[:, 2:])[:, None], (others[:, :2] + others[:, 2:])[None])
    inner = np.maximum(right_bottom - left_top, 0).prod(axis=2)
    area, other_area = boxes[:, 2:].prod(axis=1)[:, None], others[:, 2:].prod(axis=1)[None]
    total = np.where(is_crowd[None], area, area + other_area - inner)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.nan_to_num(inner / total), dtype=np.float64)


@dataclass(frozen=True)
class LabelQualities:
    """The quality of predictions by label, each of shape (L,).

    Attributes:
        n_truth: int64: true boxes that are no crowds.
        n_predictions: int64: predictions outside of crowds.
        n_right: int64: predictions with a match.
        precision: float64, in [0, 1]: the share of predictions with a match; NaN without predictions.
        recall: float64, in [0, 1]: the share of true boxes with a match; NaN without true boxes.
        average_precision: float64, in [0, 1]: the mean precision at 101 recalls; NaN without true boxes.
    """

    n_truth: Ints
    n_predictions: Ints
    n_right: Ints
    precision: Values
    recall: Values
    average_precision: Values


def label_qualities(truth: Boxes, predictions: Boxes, matches: Matches, labels: int) -> LabelQualities:
    """Return the quality of predictions by label.

    Args:
        truth: the true boxes.
        predictions: the predictions.
        matches: their matches.
        labels: the number of labels.
    """
    counts = ~matches.is_ignored
    is_right = counts & (matches.of_prediction >= 0)
    n_truth = np.bincount(truth.label[~truth.is_crowd], minlength=labels)
    n_predictions = np.bincount(predictions.label[counts], minlength=labels)
    n_right = np.bincount(predictions.label[is_right], minlength=labels)
    # As COCO does: images in their order, and predictions of an image by falling confidence.
    order = np.lexsort((-predictions.confidence, predictions.image))
    order = order[counts[order]]
    order = order[np.argsort(predictions.label[order], kind="stable")]
    edges = np.searchsorted(predictions.label[order], np.arange(labels + 1))
    precisions = np.full(labels, np.nan)
    for label in np.flatnonzero(n_truth).tolist():
        rows = order[edges[label] : edges[label + 1]]
        precisions[label] = average_precision(predictions.confidence[rows], is_right[rows], int(n_truth[label]))
    with np.errstate(invalid="ignore", divide="ignore"):
        return LabelQualities(n_truth, n_predictions, n_right, n_right / n_predictions, n_right / n_truth, precisions)


def average_precision(confidence: Values, is_right: Mask, n_truth: int) -> float:
    """Return the average precision of COCO: the mean of the interpolated precision at the recalls 0, 0.01, …, 1.

    The precision at a recall is the highest at this recall or a larger one; 0 for recalls that are not reached.

    Args:
        confidence: float64, shape (P,): of predictions that count.
        is_right: bool, shape (P,): whether they have a match.
        n_truth: the number of true boxes, above 0.
    """
    order = np.argsort(-confidence, kind="stable")
    right = np.cumsum(is_right[order])
    recall = right / n_truth
    precision = right / np.arange(1, len(order) + 1)
    precision = np.maximum.accumulate(precision[::-1])[::-1]
    place = np.searchsorted(recall, RECALLS, side="left")
    return float(np.append(precision, 0.0)[np.minimum(place, len(precision))].mean())


def confused_boxes(truth: Boxes, predictions: Boxes, matches: Matches, *, iou: float) -> tuple[Ints, Ints]:
    """Return pairs of a true box and a prediction of another label in its place, among those without a match.

    Predictions are matched by falling confidence, as those of the same label are. Crowds are left out.

    Args:
        truth: the true boxes.
        predictions: the predictions.
        matches: their matches.
        iou: the smallest IoU of a pair.

    Returns:
        The rows of the true boxes and of the predictions.
    """
    missing = np.flatnonzero((matches.of_truth < 0) & ~truth.is_crowd)
    extra = np.flatnonzero((matches.of_prediction < 0) & ~matches.is_ignored)
    some, others = truth.take(missing), predictions.take(extra)
    found = _matched(some, others, some.image, others.image, iou, lambda _share: None)
    pairs = np.flatnonzero(found.of_truth >= 0)
    return missing[pairs], extra[found.of_truth[pairs]]
