"""Targets of datasets of PyTorch, as rows of metadata: classes, captions, and boxes in the forms of torchvision.

The forms are those of torchvision 0.28: a number or a name of a class; the lists of ``CocoDetection`` and of
``CocoCaptions``; the dictionary of ``VOCDetection``, an XML file; and that of its detection models, with ``boxes`` and
``labels``.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

UNKNOWN = "targets that are no class, caption or boxes"
_FURTHER = "further values of objects in targets"
_CAPTIONS = "further captions in targets"
_READ = frozenset(("bbox", "category_id", "id", "image_id", "area", "name", "bndbox"))
_NOTHING = (None, "", "0", "Unspecified")
_Note = Callable[[str, str], None]
_Object = tuple[list[float], Any]
"""[x, y, width, height] in pixels, and the name or the number of the class."""


def row_of_target(target: Any, source: Any, number: int, note: _Note) -> Mapping[str, Any]:
    """Return what a target says of an image: ``label``, ``text`` or ``objects``, as metadata of Hugging Face.

    Args:
        target: of the image; None for none.
        source: the dataset; its ``classes`` name the numbers of classes.
        number: of the item in the dataset.
        note: is called with a reason and an example for each thing that is not read.
    """
    if target is None:
        return {}
    origin = _origin(source, number)
    if (label := class_name(target, getattr(origin, "classes", None))) is not None:
        return {"label": label}
    where = f"row {number}"
    if isinstance(target, list) and target and all(isinstance(each, str) for each in target):
        for each in target[1:]:
            note(_CAPTIONS, f"{where}: {each}")
        return {"text": target[0]}
    try:
        objects = list(_objects(target, origin, lambda name: note(_FURTHER, f"{where}: {name}")))
    except (LookupError, TypeError, ValueError, AttributeError):
        note(UNKNOWN, f"{where}: {target!r:.80}")
        return {}
    return {"objects": {"bbox": [box for box, _ in objects], "categories": [label for _, label in objects]}}


def class_name(target: Any, classes: Any) -> str | None:
    """Return the name of a class, or its number as a text if there is no name; None if it is no class."""
    if isinstance(target, str):
        return target
    if (hasattr(target, "item") and getattr(target, "size", None) in (1, ())) or isinstance(target, np.integer):
        target = target.item()
    if not isinstance(target, int) or isinstance(target, bool):
        return None
    return str(classes[target]) if isinstance(classes, Sequence) and 0 <= target < len(classes) else str(target)


def kinds_of(source: Any) -> set[str]:
    """Return the names of the classes of PyTorch that a dataset has, such as ``Subset``."""
    return {each.__name__ for each in type(source).__mro__ if each.__module__ == "torch.utils.data.dataset"}


def _origin(source: Any, number: int) -> Any:
    """Return the dataset from which a subset or a concatenation of PyTorch takes an item."""
    while kind := kinds_of(source):
        if "Subset" in kind:
            source, number = source.dataset, source.indices[number]
        elif "ConcatDataset" in kind:
            at = bisect_right(source.cumulative_sizes, number)
            source, number = source.datasets[at], number - (source.cumulative_sizes[at - 1] if at else 0)
        else:
            break
    return source


def _objects(target: Any, source: Any, further: Callable[[str], None]) -> Iterator[_Object]:
    """Yield the objects of a target.

    Args:
        target: of the image.
        source: the dataset, for names of classes.
        further: is called with the name of each value of an object that is not read.

    Raises:
        LookupError, TypeError, ValueError, AttributeError: the target has another form.
    """
    if isinstance(target, list):
        for each in target:
            _count_further(each, further)
            category = each["category_id"]
            yield _numbers(each["bbox"]), source.coco.cats[category]["name"] if hasattr(source, "coco") else category
    elif "annotation" in target:
        for each in target["annotation"].get("object", []):
            _count_further(each, further)
            left, top, right, bottom = (float(each["bndbox"][edge]) for edge in ("xmin", "ymin", "xmax", "ymax"))
            # Edges count from 1 and the last pixel is included, see framedex.annotations.voc.
            yield [left - 1, top - 1, right - left + 1, bottom - top + 1], str(each["name"])
    else:
        boxes, form = target["boxes"], getattr(target["boxes"], "format", None)
        if form is not None and getattr(form, "name", form) != "XYXY":
            raise ValueError(form)
        for box, label in zip(_listed(boxes), _listed(target["labels"]), strict=True):
            left, top, right, bottom = _numbers(box)
            yield [left, top, right - left, bottom - top], class_name(label, getattr(source, "classes", None))
        for name in target.keys() - {"boxes", "labels", "image_id", "area"}:
            further(name)


def _count_further(values: Mapping[str, Any], further: Callable[[str], None]) -> None:
    for name, value in values.items():
        if name not in _READ and value and value not in _NOTHING:
            further(name)


def _listed(values: Any) -> list[Any]:
    return list(values.tolist() if hasattr(values, "tolist") else values)


def _numbers(box: Any) -> list[float]:
    x, y, width, height = map(float, _listed(box))
    return [x, y, width, height]
