"""Labels for unlabelled items from their neighbours, and their calibration."""

import numpy as np
import pytest

from framedex.analysis.label_entries import Labels
from framedex.analysis.label_suggestions import Calibration, VotedLabels, suggest_labels
from framedex.analysis.neighbours import nearest, unique_rows
from framedex.core.arrays import Vectors

KINDS = 4


def vectors(rows: int, noise: float, seed: int) -> tuple[Vectors, np.ndarray]:
    """Return vectors around four directions, and the direction of each."""
    random = np.random.default_rng(seed)
    kind = random.integers(0, KINDS, rows)
    found = np.eye(KINDS, 16)[kind] + noise * random.normal(size=(rows, 16))
    return np.asarray(found / np.linalg.norm(found, axis=1, keepdims=True), np.float32), kind


def suggested(points: Vectors, labels: list[list[int]], wanted: np.ndarray) -> VotedLabels | None:
    first, inverse = unique_rows(points)
    offsets = np.concatenate([[0], np.cumsum([len(each) for each in labels])]).astype(np.int64)
    codes = np.array([code for each in labels for code in each], np.int32)
    graph = nearest(points[first], k=10)
    return suggest_labels(graph, inverse, Labels(codes, offsets, KINDS + 1), wanted=wanted)


@pytest.mark.parametrize("noise", [0.05, 0.35])
def test_suggest_labels__confidence_is_the_frequency_of_right_ones(noise: float) -> None:
    """Confidences of clear and of mixed groups are about how often labels are right, and held-out labels say so."""
    points, kind = vectors(1200, noise, 1)
    wanted = np.arange(1200) % 2 == 1
    found = suggested(points, [[] if each else [int(code)] for each, code in zip(wanted, kind, strict=True)], wanted)
    assert found is not None
    assert set(found.item.tolist()) <= set(np.flatnonzero(wanted).tolist())
    assert len(np.unique(found.item)) > 590
    right = found.code == kind[found.item]
    assert abs(found.confidence.mean() - right.mean()) < 0.05
    sure = found.confidence >= 0.9
    assert right[sure].mean() >= 0.9
    assert abs(found.held_out.mean() - found.are_right.mean()) < 0.05
    assert len(found.held_out) > 590


def test_suggest_labels__several_labels() -> None:
    """An item gets each label that most of its neighbours have; copies of it vote, too."""
    points, kind = vectors(400, 0.05, 2)
    points[1], kind[1] = points[0], kind[0]
    labels = [[int(code), KINDS] if code < 2 else [int(code)] for code in kind]
    wanted = np.zeros(400, np.bool_)
    for item in (int(np.flatnonzero(kind == 0)[0]), int(np.flatnonzero(kind == 3)[0])):
        labels[item], wanted[item] = [], True
    found = suggested(points, labels, wanted)
    assert found is not None
    by_item = {int(item): set(found.code[found.item == item].tolist()) for item in np.unique(found.item)}
    assert sorted(map(sorted, by_item.values())) == [[0, KINDS], [3]]


def test_suggest_labels__needs_labels() -> None:
    """Too few labelled items cannot be calibrated."""
    points, kind = vectors(60, 0.05, 3)
    labels = [[int(code)] if number < 19 else [] for number, code in enumerate(kind)]
    assert suggested(points, labels, np.arange(60) >= 19) is None


def test_calibration__is_monotone() -> None:
    """Confidences do not descend, and noise of single bins is pooled."""
    random = np.random.default_rng(4)
    share = random.uniform(size=5000)
    calibration = Calibration.of(share, random.uniform(size=5000) < share)
    assert (np.diff(calibration.confidences) >= 0).all()
    assert np.abs(calibration(np.linspace(0.05, 0.95, 10)) - np.linspace(0.05, 0.95, 10)).max() < 0.08
    assert Calibration.of(np.ones(3), np.ones(3, np.bool_))(np.array([1.0])).tolist() == pytest.approx([0.8])
