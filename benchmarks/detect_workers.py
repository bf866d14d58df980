"""Workers of ``detect.py``: detections in a folder's photos by Framedex, and by plain loops over the same model."""

import json
import math
import sys
import time
from pathlib import Path
from typing import Any

SCORE, IOU, SIDE = 0.25, 0.45, 416
PHOTOS, MODEL, NAMES = "annotated/coco-yolo/images", "models/yolox_nano.onnx", "models/coco.names"


def framedex(data: Path) -> dict[str, Any]:
    import cv2

    from framedex.enrichers import OnnxDetector

    detector = OnnxDetector(data / MODEL, names=data / NAMES, score=SCORE, iou=IOU)
    paths = sorted((data / PHOTOS).iterdir())
    boxes: dict[str, list[list[float]]] = {}
    sizes = {}
    started = time.perf_counter()
    for path in paths:
        pixels = cv2.cvtColor(cv2.imread(str(path)), cv2.COLOR_BGR2RGB)
        found = detector.detect(pixels)
        sizes[path.name] = [pixels.shape[1], pixels.shape[0]]
        rows = zip(found.boxes.tolist(), found.labels.tolist(), found.confidences.tolist(), strict=True)
        boxes[path.name] = [[*box, label, confidence] for box, label, confidence in rows]
    seconds = time.perf_counter() - started
    return {"seconds": seconds, "boxes": boxes, "sizes": sizes, "names": list(detector.labels)}


def plain(data: Path) -> dict[str, Any]:
    import cv2
    import numpy as np
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(data / MODEL), options)
    boxes = {}
    started = time.perf_counter()
    for path in sorted((data / PHOTOS).iterdir()):
        photo = cv2.imread(str(path))
        height, width, _ = photo.shape
        shrink = min(SIDE / width, SIDE / height)
        small = cv2.resize(photo, (int(width * shrink), int(height * shrink)))
        canvas = cv2.copyMakeBorder(
            small, 0, SIDE - small.shape[0], 0, SIDE - small.shape[1], cv2.BORDER_CONSTANT, value=(114, 114, 114)
        )
        rows = session.run(None, {"images": np.float32(canvas).transpose(2, 0, 1)[None]})[0][0].tolist()
        boxes[path.name] = _kept(_cells(rows, shrink, width, height))
    return {"seconds": time.perf_counter() - started, "boxes": boxes}


def _cells(rows: list[list[float]], shrink: float, width: int, height: int) -> list[list[Any]]:
    """Return the boxes of all cells that are sure enough, within the photo."""
    found, place = [], 0
    for stride in (8, 16, 32):
        for down in range(SIDE // stride):
            for right in range(SIDE // stride):
                x, y, log_width, log_height, objectness, *chances = rows[place]
                place += 1
                best = max(range(len(chances)), key=chances.__getitem__)
                score = objectness * chances[best]
                if score < SCORE:
                    continue
                half_width, half_height = math.exp(log_width) * stride / 2, math.exp(log_height) * stride / 2
                x, y = (x + right) * stride, (y + down) * stride
                found.append([x - half_width, y - half_height, x + half_width, y + half_height, best, score])
    return [[*(each / shrink for each in box[:4]), *box[4:], width, height] for box in found]


def _kept(boxes: list[list[Any]]) -> list[list[Any]]:
    """Return the boxes that no surer one of their class overlaps, as x, y, width, height, class, confidence."""
    kept: list[list[Any]] = []
    for box in sorted(boxes, key=lambda box: -box[5]):
        for other in kept:
            if other[4] == box[4]:
                across = min(box[2], other[2]) - max(box[0], other[0])
                down = min(box[3], other[3]) - max(box[1], other[1])
                if across > 0 and down > 0:
                    sizes = [(each[2] - each[0]) * (each[3] - each[1]) for each in (box, other)]
                    if across * down / (sum(sizes) - across * down) > IOU:
                        break
        else:
            kept.append(box)
    cut = []
    for left, top, right, bottom, kind, score, width, height in kept:
        left, right = max(left, 0), min(right, width)  # noqa: PLW2901
        top, bottom = max(top, 0), min(bottom, height)  # noqa: PLW2901
        cut.append([left, top, right - left, bottom - top, kind, score])
    return cut


if __name__ == "__main__":
    task, source, answer = sys.argv[1:]
    result = {"framedex": framedex, "plain": plain}[task](Path(source))
    Path(answer).write_text(json.dumps(result), "utf-8")
