"""Faults of boxes: none in right ones, each explained once, and scores that compare."""

from dataclasses import replace

import numpy as np

from framedex.analysis.detection_quality import Boxes
from framedex.analysis.object_faults import KINDS, ObjectFault, ObjectFaults, object_faults

IMAGES, EACH = 20, 5


def grid() -> Boxes:
    """Return five boxes of two labels in each of twenty images, apart from each other."""
    image = np.repeat(np.arange(IMAGES), EACH)
    place = np.tile(np.arange(EACH), IMAGES)
    box = np.stack([place * 100.0, image * 2.0, np.full(len(image), 40.0), np.full(len(image), 60.0)], axis=1)
    return Boxes(image, place % 2, box, np.full(len(image), 0.9), np.zeros(len(image), np.bool_))


def faults(truth: Boxes, predictions: Boxes) -> ObjectFaults:
    return object_faults(truth, predictions, progress=lambda _share: None)


def test_object_faults__of_right_boxes() -> None:
    """Boxes that are all predicted have no faults; neither have no boxes without predictions."""
    assert len(faults(grid(), grid()).kind) == 0
    none = grid().take(np.empty(0, np.int64))
    assert len(faults(none, none).kind) == 0
    assert set(faults(none, grid()).kind) == {KINDS.index(ObjectFault.MISSING)}
    assert set(faults(grid(), none).kind) == {KINDS.index(ObjectFault.SPURIOUS)}


def test_object_faults__are_explained_once() -> None:
    """Each changed box has one row, of the kind of its change; crowds have none."""
    predictions = grid()
    box, label, crowd = predictions.box.copy(), predictions.label.copy(), predictions.is_crowd.copy()
    label[3] = 1 - label[3]
    box[14, 0] += 30
    crowd[22] = True
    box[22, 0] += 1000
    box[31] += [700, 700, 0, 0]
    truth = replace(predictions, box=box, label=label, is_crowd=crowd)
    rows = np.append(np.arange(1, len(label)), 55)  # the first one is left out, and one is there twice
    found = faults(truth.take(rows), predictions)
    listed = {
        (str(KINDS[kind]), int(rows[place]) if place >= 0 else -1)
        for kind, place in zip(found.kind, found.truth, strict=True)
    }
    assert listed == {
        ("wrong_class", 3), ("placement", 14), ("duplicate", 55), ("spurious", 31), ("missing", -1)
    }  # fmt: skip
    missing = predictions.box[found.prediction[found.kind == KINDS.index(ObjectFault.MISSING)]]
    assert {tuple(each) for each in missing.tolist()} == {tuple(predictions.box[row].tolist()) for row in (0, 22, 31)}
    assert (np.diff(found.score) <= 0).all()
    assert ((found.score > 0) & (found.score <= 1)).all()


def test_object_faults__scores_follow_what_the_detector_knows() -> None:
    """A confident prediction without a box scores above an unsure one, and a large unseen box above a small one."""
    truth = grid()
    small = truth.box * [1, 1, 0.1, 0.1]
    both = Boxes(
        np.tile(truth.image, 2),
        np.tile(truth.label, 2),
        np.concatenate([truth.box, small + np.array([45, 0, 0, 0])]),
        np.ones(2 * len(small)),
        np.zeros(2 * len(small), np.bool_),
    )
    seen = np.concatenate(
        [np.arange(1, len(small)), np.arange(len(small), 2 * len(small), 2)]
    )  # half of the small ones
    extra = np.array([[900.0, 0, 40, 60]] * 40)
    predictions = Boxes(
        np.concatenate([both.image[seen], np.arange(40) % IMAGES]),
        np.concatenate([both.label[seen], np.zeros(40, np.int64)]),
        np.concatenate([both.box[seen], extra + np.arange(40)[:, None] * [50, 0, 0, 0]]),
        np.concatenate([np.full(len(seen), 0.9), np.where(np.arange(40) == 7, 0.95, 0.2)]),
        np.zeros(len(seen) + 40, np.bool_),
    )
    found = faults(both, predictions)
    spurious = found.truth[found.kind == KINDS.index(ObjectFault.SPURIOUS)]
    assert spurious[0] == 0
    assert len(spurious) == 1 + len(small) // 2
    missing = found.prediction[found.kind == KINDS.index(ObjectFault.MISSING)]
    assert missing[0] == len(seen) + 7
    assert len(missing) == 40
