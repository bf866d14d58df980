"""Faults of bounding boxes: how many of the first rows of each kind are the faults that were planted.

Boxes are those of photos of COCO and raccoons. One in twenty is planted with each kind of fault: left out, put where
nothing is, given another class, moved to an IoU of 0.1 to 0.5, or drawn twice. Predictions are the true boxes with
noise: sides vary by 7 %, about 2 % are not found, up to 6 % of small ones, 2 % have another class, and boxes of nothing
are a tenth of all, with lower confidences. Or they are those of YOLOX-nano, which finds about half of the boxes.
Precision is that of the first rows of a kind, as many as were planted; *all* is that of the first rows of all kinds.
"""

import statistics
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import parents  # noqa: F401 - makes the modules of the benchmarks importable
from halves import HALVES, half
from PIL import Image

from common import arguments, require, save, table, verdict
from framedex.analysis.detection_quality import Boxes, Ints, best_overlaps, overlaps
from framedex.analysis.object_faults import KINDS, ObjectFault, ObjectFaults, object_faults
from framedex.core.arrays import Mask
from framedex.enrichers import OnnxDetector

FOLDERS = ("annotated/coco-yolo/images", "annotated/raccoon-voc/images")
PLANTED, AT_LEAST = 0.05, 0.8
MODEL, NAMES = "models/yolox_nano.onnx", "models/coco.names"
_RACCOON = 80
SIDES, CONFUSED, EXTRA = 0.07, 0.02, 0.1  # noise of the predictions
MISSED, SMALL = (
    0.06,
    0.08,
)  # share of missed boxes without a size; size, relative to the image, at which a third of it is
Values = npt.NDArray[np.float64]
Sizes = npt.NDArray[np.float64]


def main() -> None:
    """Measure, print and write."""
    parser = arguments(__doc__, peers=False)
    parser.add_argument("--seeds", type=int, default=10, help="how many times")
    parser.add_argument("--detector", action="store_true", help="also with the predictions of YOLOX-nano")
    options = parser.parse_args()
    require(options.data, "annotated")
    detector = OnnxDetector(options.data / MODEL, names=options.data / NAMES, score=0.05) if options.detector else None
    result: dict[str, Any] = {}
    for name in HALVES:
        photos = half(options.data, name, FOLDERS)
        truth, sizes = _truth(photos)
        made = {"noisy copy": None, **({"YOLOX-nano": _detected(detector, photos)} if detector else {})}
        for kind, predictions in made.items():
            result[f"{name}, {kind}"] = _measure(truth, sizes, predictions, options.seeds)
    headers = [*(str(kind) for kind in KINDS), "all", "planted", "rows"]
    print(table(["half, predictions", *headers], [[name, *each.values()] for name, each in result.items()]))
    for kind in KINDS:
        name = f"{HALVES[1]}, noisy copy"
        print(verdict(f"precision of {kind}, {name}", result[name][kind], AT_LEAST))
    save("quality-object-faults", {"seeds": options.seeds, "results": result})


def _truth(photos: list[Path]) -> tuple[Boxes, Sizes]:
    """Return the boxes of photos, and width and height of each photo."""
    rows: list[tuple[int, int, list[float]]] = []
    sizes = np.empty((len(photos), 2))
    for number, photo in enumerate(photos):
        with Image.open(photo) as opened:
            width, height = opened.size
        sizes[number] = width, height
        lines = photo.parent.parent / "labels" / f"{photo.stem}.txt"
        for line in lines.read_text().splitlines() if lines.is_file() else []:
            kind, x, y, across, down = (float(cell) for cell in line.split())
            box = [(x - across / 2) * width, (y - down / 2) * height, across * width, down * height]
            rows.append((number, int(kind), box))
        described = photo.parent.parent / "annotations" / f"{photo.stem}.xml"
        rows += [(number, _RACCOON, box) for box in _voc(described)]
    images, labels, boxes = zip(*rows, strict=True)
    return _boxes(images, labels, boxes, np.ones(len(rows))), sizes


def _voc(path: Path) -> list[list[float]]:
    """Return the boxes of a Pascal VOC file."""
    from xml.etree import ElementTree

    if not path.is_file():
        return []
    found = []
    for each in ElementTree.parse(path).getroot().iter("bndbox"):
        left, top, right, bottom = (float(each.findtext(name) or 0) for name in ("xmin", "ymin", "xmax", "ymax"))
        found.append([left, top, right - left, bottom - top])
    return found


def _boxes(image: Any, label: Any, box: Any, confidence: Any) -> Boxes:
    return Boxes(
        np.asarray(image, np.int64),
        np.asarray(label, np.int64),
        np.asarray(box, np.float64).reshape(-1, 4),
        np.asarray(confidence, np.float64),
        np.zeros(len(image), np.bool_),
    )


def _detected(detector: OnnxDetector, photos: list[Path]) -> Boxes:
    """Return what a detector predicts."""
    parts = [detector.detect(np.asarray(Image.open(photo).convert("RGB"))) for photo in photos]
    image = np.repeat(np.arange(len(parts)), [len(each.labels) for each in parts])
    columns = ([getattr(each, name) for each in parts] for name in ("labels", "boxes", "confidences"))
    return _boxes(image, *(np.concatenate([np.asarray(each) for each in column]) for column in columns))


def _measure(truth: Boxes, sizes: Sizes, predictions: Boxes | None, seeds: int) -> dict[str, float]:
    """Return mean precisions by kind, and of all."""
    figures: list[dict[str, float]] = []
    for seed in range(seeds):
        random = np.random.default_rng(seed)
        given, kind, left_out = _planted(truth, sizes, random)
        predicted = predictions or _noisy(truth, sizes, random)
        found = object_faults(given, predicted, progress=lambda _share: None)
        is_right = _right(found, predicted, kind, truth.take(left_out))
        n_planted = max(1, round(PLANTED * len(truth.image)))
        row = {
            str(each): float(is_right[found.kind == place][:n_planted].sum() / n_planted)
            for place, each in enumerate(KINDS)
        }
        n_all = len(KINDS) * n_planted
        figures.append(
            {**row, "all": float(is_right[:n_all].sum() / n_all), "planted": n_planted, "rows": len(is_right)}
        )
    return {name: statistics.mean(row[name] for row in figures) for name in figures[0]}


def _planted(truth: Boxes, sizes: Sizes, random: np.random.Generator) -> tuple[Boxes, Ints, Ints]:
    """Return boxes with faults, the kind of fault of each, -1 for none, and the rows of the true boxes left out."""
    count = max(1, round(PLANTED * len(truth.image)))
    left_out, other_class, moved, twice = random.permutation(len(truth.image))[: 4 * count].reshape(4, count)
    label, box = truth.label.copy(), truth.box.copy()
    classes = np.unique(truth.label)
    for row in other_class.tolist():
        label[row] = random.choice(classes[classes != label[row]])
    for row in moved.tolist():
        box[row] = _moved(box[row], random)
    copies = truth.box[twice] + 0.04 * np.tile(truth.box[twice, 2:], 2) * random.normal(size=(count, 4))
    image = random.integers(0, len(sizes), count)
    like = random.choice(len(label), count)
    side = truth.box[like, 2:] / sizes[truth.image[like]] * sizes[image]
    nothing = np.concatenate([random.random((count, 2)) * (sizes[image] - side), side], axis=1)
    kind = np.full(len(label), -1)
    kind[other_class], kind[moved] = KINDS.index(ObjectFault.WRONG_CLASS), KINDS.index(ObjectFault.PLACEMENT)
    kept = np.setdiff1d(np.arange(len(label)), left_out)
    of_more = (ObjectFault.DUPLICATE, ObjectFault.SPURIOUS)
    given = _boxes(
        np.concatenate([truth.image[kept], truth.image[twice], image]),
        np.concatenate([label[kept], truth.label[twice], random.choice(classes, count)]),
        np.concatenate([box[kept], copies, nothing]),
        np.ones(len(kept) + 2 * count),
    )
    return given, np.concatenate([kind[kept], *(np.full(count, KINDS.index(each)) for each in of_more)]), left_out


def _moved(box: Values, random: np.random.Generator) -> Values:
    """Return a box that overlaps another one by an IoU of 0.1 to 0.5."""
    while True:
        other = box.copy()
        other[:2] += box[2:] * random.uniform(-0.8, 0.8, 2)
        other[2:] *= random.uniform(0.6, 1.6, 2)
        overlap = float(overlaps(box[None], other[None], np.zeros(1, np.bool_))[0])
        if 0.1 <= overlap <= 0.5:
            return other


def _noisy(truth: Boxes, sizes: Sizes, random: np.random.Generator) -> Boxes:
    """Return predictions that are made from the true boxes."""
    count = len(truth.image)
    share = np.sqrt((truth.box[:, 2:] / sizes[truth.image]).prod(axis=1))
    kept = np.flatnonzero(random.random(count) >= MISSED * np.exp(-share / SMALL))
    box = truth.box[kept].copy()
    box[:, :2] += box[:, 2:] * SIDES * random.normal(size=(len(kept), 2))
    box[:, 2:] *= np.exp(SIDES * random.normal(size=(len(kept), 2)))
    label, classes = truth.label[kept].copy(), np.unique(truth.label)
    other = random.random(len(kept)) < CONFUSED
    label[other] = random.choice(classes, int(other.sum()))
    more = round(EXTRA * count)
    image = random.integers(0, len(sizes), more)
    side = sizes[image] * random.uniform(0.05, 0.4, (more, 2))
    nothing = np.concatenate([random.random((more, 2)) * (sizes[image] - side), side], axis=1)
    return _boxes(
        np.concatenate([truth.image[kept], image]),
        np.concatenate([label, random.choice(classes, more)]),
        np.concatenate([box, nothing]),
        np.concatenate([random.beta(2 + 10 * np.sqrt(share[kept]), 2), random.beta(1.5, 5, more)]),
    )


def _right(found: ObjectFaults, predicted: Boxes, kind: Ints, left_out: Boxes) -> Mask:
    """Return which rows of the table were planted; of a duplicate, both boxes are right."""
    is_right = (kind[found.truth] == found.kind) & (found.truth >= 0)
    copy, missing = (KINDS.index(each) for each in (ObjectFault.DUPLICATE, ObjectFault.MISSING))
    is_right |= (found.kind == copy) & (kind[found.original] == copy)
    place, _ = best_overlaps(left_out, predicted, iou=0.5, by_label=False)
    return np.where(found.kind == missing, place[found.prediction] >= 0, is_right)


if __name__ == "__main__":
    main()
