"""Detections of YOLOX-nano against people's boxes, beside an independent decoding of the same model.

64 COCO photos with YOLO label files. Both decode the photos, run the model on one thread and take the boxes of at least
a confidence of 0.25 that overlap none of their class by more than 0.45; the independent one does all but the running in
plain loops (``detect_workers.py``). Boxes are matched from the surest on, each with the best of its photo and class
that is free and overlaps it by at least 0.5.

    python benchmarks/detect.py [--rounds 3]
"""

import sys
from collections import Counter
from pathlib import Path
from typing import Any

from common import arguments, median, ratio, require, run_worker, save, table

IOU = 0.5
_SCRIPT = Path(__file__).resolve().parent / "detect_workers.py"
_TASKS = {"Framedex": "framedex", "plain loops": "plain"}
Boxes = dict[str, list[list[Any]]]  # by photo: x, y, width, height, class, confidence


def main() -> None:
    """Measure, print and write."""
    parser = arguments(__doc__, peers=False)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    require(options.data, "annotated/coco-yolo")
    require(options.data, "models")
    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in _TASKS}
    for _ in range(options.rounds):
        for name, task in _TASKS.items():
            runs[name].append(run_worker(Path(sys.executable), task, options.data.resolve(), script=_SCRIPT).result)
    first = {name: each[0] for name, each in runs.items()}
    names = first["Framedex"]["names"]
    truth = _truth(options.data / "annotated/coco-yolo/labels", first["Framedex"]["sizes"])
    found = {name: _judged(truth, result["boxes"], names) for name, result in first.items()}
    for name, each in runs.items():
        found[name]["images_per_second"] = median(len(result["boxes"]) / result["seconds"] for result in each)
    rates = [one["seconds"] / other["seconds"] for one, other in zip(*reversed(runs.values()), strict=True)]
    agreement = _agreement(*(result["boxes"] for result in first.values()))
    _print(found, agreement, median(rates))
    save("detect", {"tools": found, "agreement": agreement, "times_as_fast": rates})


def _truth(folder: Path, sizes: dict[str, list[int]]) -> Boxes:
    """Return people's boxes in pixels, read here and not by what is measured."""
    found: Boxes = {}
    for photo, (width, height) in sizes.items():
        path = folder / f"{Path(photo).stem}.txt"
        lines = path.read_text().splitlines() if path.is_file() else []
        found[photo] = []
        for line in lines:
            kind, x, y, across, down = (float(cell) for cell in line.split())
            found[photo].append(
                [(x - across / 2) * width, (y - down / 2) * height, across * width, down * height, int(kind), 1.0]
            )
    return found


def _judged(truth: Boxes, boxes: Boxes, names: list[str]) -> dict[str, Any]:
    """Return precision and recall, of all and of each class."""
    right: Counter[int] = Counter()
    for photo, expected in truth.items():
        right.update(one[4] for one, _ in _pairs(boxes[photo], expected, IOU))
    claimed = Counter(box[4] for each in boxes.values() for box in each)
    there = Counter(box[4] for each in truth.values() for box in each)
    classes = {
        names[kind]: _figures(right[kind], claimed[kind], there[kind])
        for kind, _ in there.most_common() + [(kind, 0) for kind in claimed if kind not in there]
    }
    return _figures(right.total(), claimed.total(), there.total()) | {"classes": classes}


def _figures(right: int, claimed: int, there: int) -> dict[str, Any]:
    return {"boxes": there, "found": claimed, "precision": ratio(right, claimed), "recall": ratio(right, there)}


def _pairs(boxes: list[list[Any]], others: list[list[Any]], least: float) -> list[tuple[list[Any], list[Any]]]:
    """Return which boxes belong together, from the surest on."""
    free, found = list(others), []
    for box in sorted(boxes, key=lambda box: -box[5]):
        rated = [(_iou(box, other), place) for place, other in enumerate(free) if other[4] == box[4]]
        best, place = max(rated, default=(0.0, 0))
        if best >= least:
            found.append((box, free.pop(place)))
    return found


def _iou(one: list[Any], other: list[Any]) -> float:
    across = min(one[0] + one[2], other[0] + other[2]) - max(one[0], other[0])
    down = min(one[1] + one[3], other[1] + other[3]) - max(one[1], other[1])
    both = max(across, 0) * max(down, 0)
    return both / (one[2] * one[3] + other[2] * other[3] - both)


def _agreement(ours: Boxes, theirs: Boxes) -> dict[str, Any]:
    """Return how many boxes both have, and how far their edges and confidences are apart at most."""
    pairs = [pair for photo in ours for pair in _pairs(ours[photo], theirs[photo], IOU)]
    return {
        "framedex": sum(map(len, ours.values())),
        "plain": sum(map(len, theirs.values())),
        "both": len(pairs),
        "pixels_apart": max(abs(a - b) for one, other in pairs for a, b in zip(one[:4], other[:4], strict=True)),
        "confidence_apart": max(abs(one[5] - other[5]) for one, other in pairs),
    }


def _print(found: dict[str, Any], agreement: dict[str, Any], times: float) -> None:
    keys = ("boxes", "found", "precision", "recall", "images_per_second")
    print(table(["", *keys], [[name, *(each[key] for key in keys)] for name, each in found.items()]))
    print(f"\n{agreement['both']} boxes of both; edges at most {agreement['pixels_apart']:.3g} pixels apart, ", end="")
    print(f"confidences {agreement['confidence_apart']:.2g}. Framedex is {times:.2f} times as fast.\n")
    ours, theirs = (each["classes"] for each in found.values())
    rows = [
        [name, *(ours[name][key] for key in keys[:4]), *(theirs.get(name, {}).get(key) for key in keys[1:4])]
        for name in ours
    ]
    print(table(["class", *keys[:4], *(f"{key}, loops" for key in keys[1:4])], rows))


if __name__ == "__main__":
    main()
