"""The evaluation of detections: processor time beside other sources of Framedex and pycocotools, and equal figures.

Boxes are made: true ones of 80 labels in images, some of them crowds, and predictions, which are true boxes that were
moved, or lie anywhere. All are measured on the same boxes, in processes of their own, in rounds, pycocotools in the
first. It gets no limit of predictions an image, and reads its annotations before the time begins. Compared are average
precision and recall of each label at four IoUs, where both give them.
"""

import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from common import ROOT, arguments, median, run_worker, save, table, verdict

WORKER = Path(__file__).with_name("evaluate_worker.py")
LABELS, OBJECTS_PER_IMAGE, FOUND, ELSEWHERE, CROWDS = 80, 20, 0.8, 0.3, 0.01
FASTER, APART = 5.0, 1e-6
FIGURES = ("average_precision", "recall")


def main() -> None:
    """Measure, print and write."""
    parser = arguments(__doc__, peers=False, data=False)
    parser.add_argument("--before", type=Path, help="the folder `src` of the other sources")
    parser.add_argument("--boxes", type=int, default=100_000, help="how many true boxes")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    sources = {"now": ROOT / "src", **({"before": options.before.absolute()} if options.before else {})}
    sources["pycocotools"] = ROOT / "src"
    seconds: dict[str, list[float]] = {}
    figures: dict[str, Any] = {}
    peaks: dict[str, float] = {}
    with tempfile.TemporaryDirectory(prefix="bench-") as work:
        folder = Path(work)
        np.savez(folder / "boxes.npz", **_boxes(options.boxes))
        for number in range(options.rounds):
            for name, source in sources.items():
                if name == "pycocotools" and number:  # takes minutes
                    continue
                (folder / "source.txt").write_text(str(source))
                task = name if name == "pycocotools" else "framedex"
                run = run_worker(Path(sys.executable), task, folder, script=WORKER)
                seconds.setdefault(name, []).append(run.call_processor_s)
                figures[name] = {key: np.array(run.result[key], dtype=np.float64) for key in FIGURES}
                peaks[name] = run.peak_mib
    print(f"{options.boxes:,} true boxes, {LABELS} labels; {options.rounds} rounds")
    print(table(["tool", "processor s", "peak, MiB"], [[name, median(seconds[name]), peaks[name]] for name in seconds]))
    apart = {name: _apart(figures["now"], figures[name]) for name in figures if name != "now"}
    for name, value in apart.items():
        print(verdict(f"largest difference from {name}", value, APART, at_most=True))
    ratios = {
        name: median(other / own for other, own in zip(seconds[name], seconds["now"], strict=False)) for name in apart
    }
    for name, value in ratios.items():
        print(verdict(f"times as fast as {name}", value, FASTER if name == "before" else 1.0))
    save("evaluate", {"boxes": options.boxes, "seconds": seconds, "peaks": peaks, "apart": apart, "ratios": ratios})


def _boxes(count: int) -> dict[str, Any]:
    """Return true boxes and predictions."""
    random = np.random.default_rng(20261130)
    images, found = count // OBJECTS_PER_IMAGE, random.random(count) < FOUND
    elsewhere = round(ELSEWHERE * count)

    def anywhere(number: int) -> tuple[Any, Any, Any]:
        labels = np.minimum(random.geometric(0.06, number) - 1, LABELS - 1)
        boxes = np.concatenate([random.random((number, 2)) * 500, random.random((number, 2)) * 120 + 5], axis=1)
        return random.integers(0, images, number), labels, boxes

    image, label, box = anywhere(count)
    other = anywhere(elsewhere)
    moved = np.maximum(box[found] + 4 * random.normal(size=(int(found.sum()), 4)), [-50, -50, 1, 1])
    confidence = np.concatenate([random.beta(4, 2, len(moved)), random.beta(2, 3, elsewhere)]).round(3)
    return {
        "truth_image": image,
        "truth_label": label,
        "truth_box": box,
        "is_crowd": random.random(count) < CROWDS,
        "image": np.concatenate([image[found], other[0]]),
        "label": np.concatenate([label[found], other[1]]),
        "box": np.concatenate([moved, other[2]]),
        "confidence": confidence,
    }


def _apart(own: dict[str, Any], other: dict[str, Any]) -> float:
    """Return the largest difference of figures that both give; infinity if one gives none of them."""
    parts = []
    for name in FIGURES:
        both = np.isfinite(own[name]) & (other[name] >= 0)
        if not both.any():
            return float("inf")
        parts.append(np.abs(own[name] - other[name])[both].max())
    return float(max(parts))


if __name__ == "__main__":
    main()
