"""Tasks of ``evaluate.py``: ``python evaluate_worker.py TASK FOLDER ANSWER``.

FOLDER has ``boxes.npz``, and in ``source.txt`` the folder with the package ``framedex``.
"""

import contextlib
import io
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

IOUS = (0.5, 0.75, 0.9, 1.0)


def main() -> None:
    """Run a task."""
    folder, answer = Path(sys.argv[2]), Path(sys.argv[3])
    sys.path.insert(0, (folder / "source.txt").read_text())
    task = {"framedex": framedex, "pycocotools": pycocotools}[sys.argv[1]]
    answer.write_text(json.dumps(task(dict(np.load(folder / "boxes.npz")))), "utf-8")


def framedex(made: dict[str, Any]) -> dict[str, Any]:
    """Evaluate with Framedex: matches, figures of labels and confusions."""
    from framedex.analysis.detection_quality import Boxes, confused_boxes, label_qualities, match_boxes

    n_truth, labels = len(made["truth_image"]), int(made["truth_label"].max()) + 1
    truth = Boxes(made["truth_image"], made["truth_label"], made["truth_box"], np.ones(n_truth), made["is_crowd"])
    none = np.zeros(len(made["image"]), np.bool_)
    predictions = Boxes(made["image"], made["label"], made["box"], made["confidence"], none)
    started = time.perf_counter(), time.process_time()
    found: list[Any] = []
    for iou in IOUS:
        matches = match_boxes(truth, predictions, iou=iou, progress=lambda _share: None)
        found.append(label_qualities(truth, predictions, matches, labels))
        confused_boxes(truth, predictions, matches, iou=iou)
    return {
        **_times(started),
        "average_precision": [each.average_precision.tolist() for each in found],
        "recall": [each.recall.tolist() for each in found],
    }


def pycocotools(made: dict[str, Any]) -> dict[str, Any]:
    """Evaluate with pycocotools: matches and figures of labels."""
    from pycocotools.coco import COCO
    from pycocotools.cocoeval import COCOeval

    images, labels = int(max(made["truth_image"].max(), made["image"].max())) + 1, int(made["truth_label"].max()) + 1
    with contextlib.redirect_stdout(io.StringIO()):
        reference = COCO()
        reference.dataset = {
            "images": [{"id": number} for number in range(images)],
            "categories": [{"id": number, "name": str(number)} for number in range(labels)],
            "annotations": [
                {**entry, "id": 1 + number, "area": entry["bbox"][2] * entry["bbox"][3], "iscrowd": int(crowd)}
                for number, (entry, crowd) in enumerate(
                    zip(_entries(made, "truth_"), made["is_crowd"].tolist(), strict=True)
                )
            ],
        }
        reference.createIndex()
        results = [
            {**entry, "score": score}
            for entry, score in zip(_entries(made, ""), made["confidence"].tolist(), strict=True)
        ]
        evaluation = COCOeval(reference, reference.loadRes(results), "bbox")
        evaluation.params.iouThrs, evaluation.params.maxDets = np.array(IOUS), [10**6]
        evaluation.params.areaRng, evaluation.params.areaRngLbl = [[0, 1e10]], ["all"]
        started = time.perf_counter(), time.process_time()
        evaluation.evaluate()
        evaluation.accumulate()
    return {
        **_times(started),
        "average_precision": evaluation.eval["precision"][:, :, :, 0, 0].mean(axis=1).tolist(),
        "recall": evaluation.eval["recall"][:, :, 0, 0].tolist(),
    }


def _times(started: tuple[float, float]) -> dict[str, float]:
    return {"seconds": time.perf_counter() - started[0], "processor_s": time.process_time() - started[1]}


def _entries(made: dict[str, Any], prefix: str) -> list[dict[str, Any]]:
    columns = (made[f"{prefix}{name}"].tolist() for name in ("image", "label", "box"))
    return [{"image_id": image, "category_id": label, "bbox": box} for image, label, box in zip(*columns, strict=True)]


if __name__ == "__main__":
    main()
