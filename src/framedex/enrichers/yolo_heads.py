"""Outputs of YOLO models, in three forms, converted to bounding boxes and scores.

G is the number of cells of the grids of strides 8, 16 and 32 over the input, and C the number of classes. The output
for an image has the shape

=======  ============  ==========================================================================================
form     shape         a row, or a column
=======  ============  ==========================================================================================
yolox    (G, 5 + C)    centre in cells from its cell's corner, logarithms of the sides in cells, objectness, classes
yolov5   (3G, 5 + C)   centre and sides in pixels of the input, objectness, classes
yolov8   (4 + C, G)    centre and sides in pixels of the input, classes
=======  ============  ==========================================================================================

Sources: YOLOX 0.3 ``demo_postprocess`` (models exported without decoding), YOLOv5 7.0 ``models/yolo.py``, Ultralytics 8
``nn/modules/head.py``; implemented from their formulas, not copied. Objectness and classes are probabilities.
"""

from typing import Literal

import numpy as np
import numpy.typing as npt

from framedex.enrichers.detector import Floats

Form = Literal["yolox", "yolov5", "yolov8"]
FORMS: tuple[Form, ...] = ("yolox", "yolov5", "yolov8")
STRIDES = (8, 16, 32)


def count_cells(size: tuple[int, int]) -> int:
    """Return the number of cells G of all grids over an input of a (height, width)."""
    return sum((size[0] // stride) * (size[1] // stride) for stride in STRIDES)


def expected_shapes(size: tuple[int, int]) -> str:
    """Return a description of the possible output shapes for an input of a (height, width)."""
    count = count_cells(size)
    return f"({count}, 5 + classes) of yolox, ({3 * count}, 5 + classes) of yolov5, or (4 + classes, {count}) of yolov8"


def recognise_form(shape: tuple[int, ...], size: tuple[int, int]) -> Form | None:
    """Return the form of an output by its shape for one image; None for any other shape."""
    fits = [form for form in FORMS if count_classes(form, shape, size) > 0]
    return fits[0] if len(fits) == 1 else None


def count_classes(form: Form, shape: tuple[int, ...], size: tuple[int, int]) -> int:
    """Return the number of classes of an output with a form and shape; 0 if the shape does not fit the form."""
    if len(shape) != 2:
        return 0
    n_boxes = {"yolox": count_cells(size), "yolov5": 3 * count_cells(size), "yolov8": count_cells(size)}[form]
    there, values = shape[::-1] if form == "yolov8" else shape
    return max(values - (4 if form == "yolov8" else 5), 0) if there == n_boxes else 0


def candidates(
    form: Form, output: Floats, size: tuple[int, int], threshold: float
) -> tuple[Floats, npt.NDArray[np.int64], Floats]:
    """Return (corners, classes, scores) of the boxes with a minimum score, each with its best class.

    Args:
        form: of the output.
        output: float32, of one image, with the shape of the form.
        size: height and width of the input in pixels.
        threshold: the minimum score, in [0, 1]: objectness × class, or class.

    Returns:
        float32 (K, 4): left, top, right, bottom in pixels of the input; int64 (K,); float32 (K,).
    """
    rows = output.T if form == "yolov8" else output
    chances = rows[:, 4:] if form == "yolov8" else rows[:, 5:]
    classes = chances.argmax(axis=1)
    scores = chances[np.arange(len(rows)), classes]
    if form != "yolov8":
        scores = scores * rows[:, 4]
    # A score of NaN is kept, so that the caller can detect it.
    positions = np.flatnonzero(~(scores < threshold))
    boxes = rows[positions, :4]
    if form == "yolox":
        corner, stride = (values[positions] for values in grid(size))
        with np.errstate(over="ignore"):  # the caller detects infinite sides
            boxes = np.hstack([boxes[:, :2] + corner, np.exp(boxes[:, 2:])]) * stride
    half = boxes[:, 2:] / 2
    corners = np.hstack([boxes[:, :2] - half, boxes[:, :2] + half]).astype(np.float32)
    return corners, classes[positions].astype(np.int64), scores[positions].astype(np.float32)


def grid(size: tuple[int, int]) -> tuple[Floats, Floats]:
    """Return each cell's corner (column, row), float32 (G, 2), and its stride in pixels, float32 (G, 1)."""
    corners, strides = [], []
    for stride in STRIDES:
        rows, columns = np.indices((size[0] // stride, size[1] // stride))
        corners.append(np.stack([columns.ravel(), rows.ravel()], axis=1))
        strides.append(np.full((rows.size, 1), stride))
    return np.concatenate(corners).astype(np.float32), np.concatenate(strides).astype(np.float32)
