"""Targets of images: what a model learns for each, as arrays that pickle fast.

A target of several numbers is a NumPy array here; :mod:`framedex.training.torch_dataset` makes tensors of them.
"""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from framedex.core.arrays import Mask
from framedex.errors import InvalidInput
from framedex.training.texts import Texts

_HINT = "choose images with one label, as by view.where(vql.labels(…)), or take target='labels'"


class Targets(Protocol):
    """The targets of some images, in order."""

    def __getitem__(self, index: int) -> Any:
        """Return the target of an image."""
        ...


def targets_of(name: str, values: pa.Array, classes: Sequence[str]) -> Targets:
    """Return the targets with a name, as ``label``; see :meth:`framedex.View.to_torch`.

    Args:
        name: the name of the target.
        values: the labels or the objects of each image, or the values of the column with this name.
        classes: the names of all classes, by number.

    Raises:
        InvalidInput: the values are no targets.
    """
    match name:
        case "label":
            return ClassTargets(values, classes)
        case "labels":
            return LabelTargets(values, classes)
        case "boxes":
            return BoxTargets(values, classes)
        case _:
            return ValueTargets(name, values)


class ClassTargets:
    """The number of the one class of each image.

    Attributes:
        numbers: int64, shape (N,).
    """

    def __init__(self, lists: pa.ListArray, classes: Sequence[str]) -> None:
        counts = pc.fill_null(pc.list_value_length(lists), 0).to_numpy()
        if (count := int(np.count_nonzero(counts != 1))) > 0:
            none, several = int(np.count_nonzero(counts == 0)), int(np.count_nonzero(counts > 1))
            raise InvalidInput(
                f"target='label' needs one label for each image; {count:,} of {len(counts):,} have another number "
                f"({none:,} none, {several:,} several): {_HINT}"
            )
        self.numbers: npt.NDArray[np.int64] = _numbers(lists.flatten(), classes)

    def __getitem__(self, index: int) -> int:
        """Return the number of the class of an image."""
        return int(self.numbers[index])


class LabelTargets:
    """All classes of each image, as float32 of shape (number of classes,): 1 for those that it has, else 0."""

    def __init__(self, lists: pa.ListArray, classes: Sequence[str]) -> None:
        self._ends, self._width = _ends(lists), len(classes)
        self._numbers = _numbers(lists.flatten(), classes)

    def __getitem__(self, index: int) -> npt.NDArray[np.float32]:
        """Return the classes of an image."""
        chosen = np.zeros(self._width, np.float32)
        chosen[self._numbers[self._ends[index] : self._ends[index + 1]]] = 1
        return chosen


class BoxTargets:
    """The objects of each image, as torchvision's detection models take them.

    A target has ``boxes`` (float32, shape (N, 4): left, top, right, bottom in pixels), ``labels`` (int64, shape (N,),
    numbers of classes from 0), ``area`` (float32), ``iscrowd`` (int64) and ``image_id`` (the position of the image).
    """

    def __init__(self, lists: pa.ListArray, classes: Sequence[str]) -> None:
        self._ends, objects = _ends(lists), lists.flatten()
        sides = objects.field("bbox").flatten().to_numpy().reshape(-1, 4)
        self._boxes = np.concatenate([sides[:, :2], sides[:, :2] + sides[:, 2:]], axis=1).astype(np.float32)
        self._areas = (sides[:, 2] * sides[:, 3]).astype(np.float32)
        self._labels = _numbers(objects.field("label"), classes)
        self._crowds = pc.fill_null(objects.field("iscrowd"), fill_value=False).cast(pa.int64()).to_numpy()

    def __getitem__(self, index: int) -> dict[str, Any]:
        """Return the objects of an image."""
        own = slice(self._ends[index], self._ends[index + 1])
        return {
            "boxes": self._boxes[own].copy(),
            "labels": self._labels[own].copy(),
            "area": self._areas[own].copy(),
            "iscrowd": self._crowds[own].copy(),
            "image_id": index,
        }


class ValueTargets:
    """The values of a column: numbers, truth values, texts, or vectors of equal length; None for missing ones."""

    def __init__(self, name: str, values: pa.Array) -> None:
        kind = values.type
        self._is_valid: Mask | None = None if not values.null_count else pc.is_valid(values).to_numpy(False)
        self._values: Texts | npt.NDArray[Any]
        if pa.types.is_string(kind):
            self._values = Texts(pc.fill_null(values, "").to_pylist())
        elif pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind):
            self._values = pc.fill_null(values, pa.scalar(0).cast(kind)).to_numpy(zero_copy_only=False)
        elif pa.types.is_fixed_size_list(kind) and not values.null_count:
            self._values = values.flatten().to_numpy().reshape(-1, kind.list_size)
        else:
            raise InvalidInput(
                f"target={name!r} is a column of {kind}, which is no target: it must be a column of numbers, truth "
                "values or texts, 'label', 'labels', 'boxes' or 'embedding'"
            )

    def __getitem__(self, index: int) -> Any:
        """Return the value of an image."""
        if self._is_valid is not None and not self._is_valid[index]:
            return None
        value = self._values[index]
        return value.item() if isinstance(value, np.generic) else value


def _ends(lists: pa.ListArray) -> npt.NDArray[np.int64]:
    lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy()
    return np.cumsum(np.concatenate([[0], lengths]), dtype=np.int64)


def _numbers(labels: pa.Array, classes: Sequence[str]) -> npt.NDArray[np.int64]:
    found = pc.index_in(labels, value_set=pa.array(classes, pa.string())).cast(pa.int64())
    assert not found.null_count, "the classes of a dataset are those of all its labels"
    return np.asarray(found.to_numpy(), np.int64)
