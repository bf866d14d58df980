"""Quality of detected boxes against true ones: matches, precision, recall, average precision, and confusions.

Boxes are matched as COCO matches them (T.-Y. Lin et al., "Microsoft COCO: Common objects in context", 2014; pycocotools
2.0.11, ``cocoeval.py``): image by image and label by label, predictions by falling confidence, each with the true box
of the largest IoU that no other one has. A crowd takes any number of predictions, which count neither as right nor as
wrong; the overlap with it is relative to the prediction alone. There is no limit of predictions an image.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from framedex.core.arrays import Mask
from framedex.core.progress import ShareProgress

Ints = npt.NDArray[np.int64]
Values = npt.NDArray[np.float64]
RECALLS = np.linspace(0, 1, 101)
"""The recalls at which the precision is read for the average precision of COCO."""
_PAIRS = 262_144  # pairs of boxes whose overlaps are computed at a time, about 40 MB
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
        progress: called with the share of the predictions that is done; raises to stop.
    """
    return _matched(truth, predictions, *_keys(truth, predictions), iou, progress)


def _matched(
    truth: Boxes, predictions: Boxes, truth_key: Ints, key: Ints, iou: float, progress: ShareProgress
) -> Matches:
    """Match predictions with true boxes of an equal key."""
    matches = Matches(np.full(len(truth_key), _NONE), np.full(len(key), _NONE), np.zeros(len(key), dtype=np.bool_))

    def is_open(rows: Ints) -> Mask:
        return truth.is_crowd[rows] | (matches.of_truth[rows] < 0)

    for rows, pairs, share in _parts(truth, predictions, truth_key, key, iou, is_open):
        _match_part(truth, rows, pairs, matches)
        progress(share)
    progress(1.0)
    return matches


def best_overlaps(
    truth: Boxes, predictions: Boxes, *, iou: float, by_label: bool, earlier: bool = False
) -> tuple[Ints, Values]:
    """Return the true box of the same image that each prediction overlaps most, whether it is free or not.

    Args:
        truth: the true boxes.
        predictions: the predictions.
        iou: the smallest overlap, above 0, at most 1.
        by_label: whether only boxes of the same label count.
        earlier: whether only true boxes of a smaller row than that of the prediction count.

    Returns:
        int64, shape (P,): its row, -1 for none; float64, shape (P,): the IoU, 0 for none.
    """
    keys = _keys(truth, predictions) if by_label else (truth.image, predictions.image)
    row, overlap = np.full(len(predictions.image), _NONE), np.zeros(len(predictions.image))
    for rows, pairs, _ in _parts(truth, predictions, *keys, iou, lambda others: np.ones(len(others), np.bool_)):
        chosen = pairs.take(pairs.truth < rows[pairs.prediction]) if earlier else pairs
        prediction, first = np.unique(chosen.prediction, return_index=True)
        row[rows[prediction]], overlap[rows[prediction]] = chosen.truth[first], chosen.overlap[first]
    return row, overlap


def _keys(truth: Boxes, predictions: Boxes) -> tuple[Ints, Ints]:
    """Return numbers that are equal for boxes of one image and label."""
    labels = int(max(truth.label.max(initial=0), predictions.label.max(initial=0))) + 1
    return truth.image * labels + truth.label, predictions.image * labels + predictions.label


def _parts(
    truth: Boxes, predictions: Boxes, truth_key: Ints, key: Ints, iou: float, is_open: Callable[[Ints], Mask]
) -> Iterator[tuple[Ints, "_Pairs", float]]:
    """Yield rows of predictions with their pairs, and the share that is done.

    Predictions come in the order of their keys and by falling confidence, as many at a time as bound the pairs in
    memory. So those of a key may come in several parts.
    """
    # True boxes that count come before crowds, and predictions by falling confidence; ties stay in row order.
    true_order = np.lexsort((truth.is_crowd, truth_key))
    order = np.lexsort((-predictions.confidence, key))
    first = np.searchsorted(truth_key[true_order], key[order])
    counts = np.searchsorted(truth_key[true_order], key[order], side="right") - first
    order, first, counts = (each[counts > 0] for each in (order, first, counts))
    ends = np.cumsum(counts)
    start = 0
    while start < len(order):
        stop = max(start + 1, int(np.searchsorted(ends, ends[start] - counts[start] + _PAIRS, side="right")))
        part = slice(start, stop)
        places = np.repeat(first[part] - (ends[part] - counts[part]), counts[part])
        places += np.arange(int(ends[start] - counts[start]), int(ends[stop - 1]))
        prediction = np.repeat(np.arange(stop - start), counts[part])
        chosen = is_open(true_order[places])
        limit = min(iou, _ALMOST_ONE)
        yield (
            order[part],
            _pairs(truth, predictions, true_order, order[part], prediction[chosen], places[chosen], limit),
            stop / len(order),
        )
        start = stop


@dataclass(frozen=True)
class _Pairs:
    """Pairs of a prediction and a true box that overlap enough, in the order in which a prediction prefers them.

    Attributes:
        prediction: int64: the place of the prediction among those of the part, ascending.
        truth: int64: the row of the true box.
        overlap: float64: their overlap.
    """

    prediction: Ints
    truth: Ints
    overlap: Values

    def take(self, chosen: Mask) -> "_Pairs":
        """Return some of the pairs."""
        return _Pairs(self.prediction[chosen], self.truth[chosen], self.overlap[chosen])


def _pairs(
    truth: Boxes, predictions: Boxes, true_order: Ints, rows: Ints, prediction: Ints, place: Ints, limit: float
) -> _Pairs:
    """Return those of some pairs that overlap enough.

    Args:
        truth: the true boxes.
        predictions: the predictions.
        true_order: rows of true boxes.
        rows: rows of predictions.
        prediction: the places of predictions in *rows*, ascending.
        place: the places of true boxes in *true_order*.
        limit: the smallest overlap.
    """
    for axis in (0, 1):  # most boxes of an image lie apart on one of them
        low, other_low = predictions.box[rows, axis][prediction], truth.box[true_order[place], axis]
        high = low + predictions.box[rows, axis + 2][prediction]
        other_high = other_low + truth.box[true_order[place], axis + 2]
        meets = np.minimum(high, other_high) > np.maximum(low, other_low)
        prediction, place = prediction[meets], place[meets]
    row = true_order[place]
    overlap = overlaps(predictions.box[rows[prediction]], truth.box[row], truth.is_crowd[row])
    enough = np.flatnonzero(overlap >= limit)
    # The last of equal overlaps is taken, as COCO does.
    enough = enough[np.lexsort((-place[enough], -overlap[enough], prediction[enough]))]
    return _Pairs(prediction[enough], row[enough], overlap[enough])


def _match_part(truth: Boxes, rows: Ints, pairs: _Pairs, matches: Matches) -> None:
    """Match predictions, of which earlier ones choose first, with free true boxes, else with crowds.

    This is the only stable matching of predictions, which prefer large overlaps, and true boxes, which all prefer early
    predictions. So it is found by proposals of all predictions at once (D. Gale & L. S. Shapley, "College admissions
    and the stability of marriage", 1962).

    Args:
        truth: the true boxes.
        rows: the rows of the predictions, in the order in which they choose.
        pairs: their pairs.
        matches: gets the matches.
    """
    is_crowd = truth.is_crowd[pairs.truth]
    proposals = pairs.take(~is_crowd)
    wanted, candidate = np.unique(proposals.truth, return_inverse=True)
    nobody = len(rows)
    holder = np.full(len(wanted), nobody)
    place = np.searchsorted(proposals.prediction, np.arange(nobody))
    ends = np.searchsorted(proposals.prediction, np.arange(nobody), side="right")
    active = np.flatnonzero(place < ends)
    while len(active):
        asked = candidate[place[active]]
        before = holder[asked]
        np.minimum.at(holder, asked, active)
        now = holder[asked]
        refused = np.concatenate([active[now != active], np.unique(before[(before != now) & (before < nobody)])])
        place[refused] += 1
        active = refused[place[refused] < ends[refused]]
    held = np.flatnonzero(holder < nobody)
    matches.of_truth[wanted[held]] = rows[holder[held]]
    matches.of_prediction[rows[holder[held]]] = wanted[held]
    crowds = pairs.take(is_crowd & (matches.of_prediction[rows[pairs.prediction]] < 0))
    prediction, best = np.unique(crowds.prediction, return_index=True)
    matches.of_prediction[rows[prediction]] = crowds.truth[best]
    matches.is_ignored[rows[prediction]] = True


def overlaps(boxes: Values, others: Values, is_crowd: Mask) -> Values:
    """Return the IoU of each box with another, for a crowd the share of the box that lies in it: float64, shape (N,).

    Args:
        boxes: float64, shape (N, 4): x, y, width, height.
        others: float64, shape (N, 4).
        is_crowd: bool, shape (N,): of the others.
    """
    (left, top, width, height), (other_left, other_top, other_width, other_height) = boxes.T, others.T
    inner_width = np.minimum(left + width, other_left + other_width) - np.maximum(left, other_left)
    inner_height = np.minimum(top + height, other_top + other_height) - np.maximum(top, other_top)
    inner = np.maximum(inner_width, 0) * np.maximum(inner_height, 0)
    area = width * height
    total = np.where(is_crowd, area, area + other_width * other_height - inner)
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
