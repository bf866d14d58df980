"""Tables with what a dataset of PyTorch or of Hugging Face needs beside the images, which a service can send."""

import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from framedex.errors import InvalidInput, MissingDependency
from framedex.training.stored_images import Images
from framedex.training.targets import targets_of

if TYPE_CHECKING:
    from framedex.training.torch_dataset import TorchImages

_CLASSES, _LEFT_OUT = b"framedex.classes", b"framedex.left_out"


def with_classes(rows: pa.Table, classes: Sequence[str], n_left_out: int) -> pa.Table:
    """Return rows that carry the class list of their dataset.

    Args:
        rows: a row for each image, with ``media_id``.
        classes: the names of all classes, by number.
        n_left_out: the number of rows of the view that are no image.
    """
    metadata = {_CLASSES: json.dumps(list(classes)), _LEFT_OUT: str(n_left_out)}
    return rows.replace_schema_metadata({**(rows.schema.metadata or {}), **metadata})


def classes_in(rows: pa.Table) -> list[str]:
    """Return the class list that rows carry."""
    names: list[str] = json.loads(rows.schema.metadata[_CLASSES])
    return names


def torch_images(
    transform: Callable[[Any], Any] | None,
) -> Callable[[Images, pa.Table, str | None], "TorchImages"]:
    """Return a function that makes a dataset of PyTorch of images, their rows, and the name of the target.

    Raises:
        InvalidInput: the transform is no function.
        MissingDependency: PyTorch is not installed.
    """
    try:
        from framedex.training.torch_dataset import TorchImages
    except ImportError as error:
        if not str(error.name).startswith("torch"):
            raise
        raise MissingDependency("to_torch needs PyTorch: pip install 'framedex[torch]'") from None
    if transform is not None and not callable(transform):
        raise InvalidInput(f"transform must be a function that takes a Pillow image, not {transform!r}")

    def make(images: Images, rows: pa.Table, target: str | None) -> "TorchImages":
        classes = classes_in(rows)
        values = None if target is None else rows["target"].combine_chunks()
        return TorchImages(
            images,
            None if target is None else targets_of(target, values, classes),
            classes=classes,
            media_ids=rows["media_id"].to_pylist(),
            transform=transform,
            n_left_out=int(rows.schema.metadata[_LEFT_OUT]),
        )

    return make
