"""Matches of boxes and what follows from them: equal to hand-computed values, and to those of pycocotools."""

import contextlib
import io
from typing import Any

import numpy as np
import pytest

from framedex.analysis import detection_quality
from framedex.analysis.detection_quality import (
    Boxes,
    LabelQualities,
    Matches,
    average_precision,
    best_overlaps,
    confused_boxes,
    label_qualities,
    match_boxes,
)

IGNORE = lambda _share: None  # noqa: E731


def boxes(rows: list[tuple[int, int, list[float], float, bool]]) -> Boxes:
    """Return boxes from (image, label, box, confidence, whether it is a crowd)."""
    columns = [*zip(*rows, strict=True)] or [(), (), (), (), ()]
    return Boxes(
        np.array(columns[0], np.int64),
        np.array(columns[1], np.int64),
        np.array(columns[2], np.float64).reshape(-1, 4),
        np.array(columns[3], np.float64),
        np.array(columns[4], np.bool_),
    )


def evaluated(truth: Boxes, predictions: Boxes, iou: float = 0.5, labels: int = 3) -> tuple[Matches, LabelQualities]:
    matches = match_boxes(truth, predictions, iou=iou, progress=IGNORE)
    return matches, label_qualities(truth, predictions, matches, labels)


SQUARE = [0.0, 0.0, 10.0, 10.0]


def test_match_boxes__by_hand() -> None:
    """The more confident prediction takes the box, labels and images are apart, and a crowd takes any number."""
    truth = boxes([(0, 0, SQUARE, 1, False), (0, 1, SQUARE, 1, False), (1, 0, [0, 0, 100, 100], 1, True)])
    predictions = boxes(
        [
            (0, 0, [0, 0, 10, 6], 0.5, False),  # IoU 0.6, less confident
            (0, 0, [0, 0, 10, 8], 0.9, False),
            (0, 1, [0, 0, 10, 4], 0.9, False),  # IoU 0.4
            (1, 0, [5, 5, 10, 10], 0.8, False),  # in the crowd
            (1, 0, [50, 50, 10, 10], 0.7, False),
            (1, 1, SQUARE, 0.6, False),
        ]
    )
    matches, found = evaluated(truth, predictions)
    assert matches.of_truth.tolist() == [1, -1, -1]
    assert matches.of_prediction.tolist() == [-1, 0, -1, 2, 2, -1]
    assert matches.is_ignored.tolist() == [False, False, False, True, True, False]
    assert found.n_truth.tolist() == [1, 1, 0]
    assert found.n_predictions.tolist() == [2, 2, 0]
    assert found.precision[:2].tolist() == [0.5, 0.0]
    assert found.recall[:2].tolist() == [1.0, 0.0]
    assert found.average_precision[:2].tolist() == [1.0, 0.0]
    assert np.isnan([found.precision[2], found.recall[2], found.average_precision[2]]).all()


def test_average_precision__by_hand() -> None:
    """Right, wrong, right of two of four boxes: precision 1 up to recall 0.25, 2/3 up to 0.5, then 0."""
    found = average_precision(np.array([0.9, 0.8, 0.7]), np.array([True, False, True]), 4)
    assert found == pytest.approx((26 * 1 + 25 * 2 / 3) / 101)
    assert average_precision(np.empty(0), np.empty(0, np.bool_), 4) == 0


def test_confused_boxes__of_another_label() -> None:
    """A prediction of another label in the place of a missing box is a confusion; one beside it is none."""
    truth = boxes([(0, 0, SQUARE, 1, False), (0, 1, [50, 50, 10, 10], 1, False)])
    predictions = boxes([(0, 2, SQUARE, 0.9, False), (0, 2, [70, 50, 10, 10], 0.9, False), (0, 1, SQUARE, 0.8, False)])
    matches, _ = evaluated(truth, predictions)
    assert [each.tolist() for each in confused_boxes(truth, predictions, matches, iou=0.5)] == [[0], [0]]


def random_boxes(count: int, seed: int, *, crowds: float) -> Boxes:
    """Return boxes of whole numbers, with equal confidences and IoUs among them."""
    random = np.random.default_rng(seed)
    corners, sizes = random.integers(0, 30, (count, 2)), random.integers(1, 25, (count, 2))
    return Boxes(
        random.integers(0, 12, count),
        random.integers(0, 3, count),
        np.concatenate([corners, sizes], axis=1).astype(np.float64),
        random.integers(1, 20, count) / 20,
        random.random(count) < crowds,
    )


@pytest.mark.parametrize(("iou", "pairs"), [(0.3, 2**18), (0.5, 2**18), (0.5, 7), (0.75, 2**18), (1.0, 2**18)])
def test_label_qualities__equal_those_of_pycocotools(iou: float, pairs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Average precisions and matches are those of COCO's own evaluation, with crowds and ties, in parts or at once."""
    monkeypatch.setattr(detection_quality, "_PAIRS", pairs)
    coco = pytest.importorskip("pycocotools.coco")
    cocoeval = pytest.importorskip("pycocotools.cocoeval")
    truth, predictions = random_boxes(300, 1, crowds=0.1), random_boxes(500, 2, crowds=0)
    _, found = evaluated(truth, predictions, iou)
    with contextlib.redirect_stdout(io.StringIO()):
        reference = coco.COCO()
        reference.dataset = {
            "images": [{"id": number} for number in range(12)],
            "categories": [{"id": number, "name": str(number)} for number in range(3)],
            "annotations": [
                {
                    "id": 1 + number,
                    "area": box[2] * box[3],
                    "iscrowd": int(truth.is_crowd[number]),
                    **_entry(truth, number),
                }
                for number, box in enumerate(truth.box.tolist())
            ],
        }
        reference.createIndex()
        results = [
            {"score": float(predictions.confidence[number]), **_entry(predictions, number)}
            for number in range(len(predictions.image))
        ]
        evaluation = cocoeval.COCOeval(reference, reference.loadRes(results), "bbox")
        evaluation.params.iouThrs, evaluation.params.maxDets = np.array([iou]), [1000]
        evaluation.params.areaRng, evaluation.params.areaRngLbl = [[0, 1e10]], ["all"]
        evaluation.evaluate()
        evaluation.accumulate()
    precision = evaluation.eval["precision"][0, :, :, 0, 0].mean(axis=0)
    assert found.average_precision == pytest.approx(precision, abs=1e-6)
    assert found.recall == pytest.approx(evaluation.eval["recall"][0, :, 0, 0], abs=1e-6)


def _entry(some: Boxes, number: int) -> dict[str, Any]:
    box = some.box[number].tolist()
    return {"image_id": int(some.image[number]), "category_id": int(some.label[number]), "bbox": box}


def test_best_overlaps__of_taken_boxes_too() -> None:
    """Each box has the one that it overlaps most, taken or not; of its own label alone, or of an earlier row alone."""
    truth = boxes([(0, 0, SQUARE, 1, False), (0, 1, [0, 0, 10, 9], 1, False), (1, 0, SQUARE, 1, False)])
    some = boxes([(0, 0, [0, 0, 10, 9], 0.9, False), (0, 0, SQUARE, 0.8, False), (1, 1, SQUARE, 0.7, False)])
    for options, expected in (({"by_label": False}, [1, 0, 2]), ({"by_label": True}, [0, 0, -1])):
        row, overlap = best_overlaps(truth, some, iou=0.5, **options)
        assert row.tolist() == expected
        assert (overlap > 0.5).tolist() == [each >= 0 for each in expected]
    row, _ = best_overlaps(some, some, iou=0.5, by_label=False, earlier=True)
    assert row.tolist() == [-1, 0, -1]


@pytest.mark.slow
def test_match_boxes__many_in_an_image() -> None:
    """Ten thousand boxes in one image are matched."""
    places = np.stack(np.meshgrid(np.arange(100), np.arange(50)), axis=-1).reshape(-1, 2) * 20.0
    box = np.concatenate([places, np.full((5000, 2), 10.0)], axis=1)
    zeros, ones = np.zeros(5000, np.int64), np.ones(5000)
    truth = Boxes(zeros, zeros, box, ones, np.zeros(5000, np.bool_))
    random = np.random.default_rng(1)
    predictions = Boxes(zeros, zeros, box + 1, random.random(5000), np.zeros(5000, np.bool_))
    matches, found = evaluated(truth, predictions, labels=1)
    assert (matches.of_truth == np.arange(5000)).all()
    assert found.average_precision.tolist() == [1.0]
