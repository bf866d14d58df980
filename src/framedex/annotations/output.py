"""Interfaces of the format writers: the annotated images that they take, and the files that they write."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from framedex.annotations.boxes import Box
from framedex.core.progress import ShareProgress

IMAGES = "images/"
"""The folder of the image files, beside the annotation files."""
FILE_NAME, OBJECTS = "file_name", "objects"
_LEFT_OUT = {
    "original_id": "ids",
    "confidence": "confidences",
    "iscrowd": "crowd flags",
    "truncated": "truncated flags",
    "difficult": "difficult flags",
}


class Output(Protocol):
    """A file open for writing."""

    def write(self, data: bytes | memoryview, /) -> int:
        """Append bytes, and return their number."""
        ...


class Files(Protocol):
    """A target for new files, such as a ZIP archive. Files are written one at a time."""

    def add(self, name: str, data: bytes, /) -> None:
        """Write a file."""
        ...

    def member(self, name: str, /, *, compressed: bool = ...) -> AbstractContextManager[Output]:
        """Return a file that can be written in parts."""
        ...


class AnnotatedImages(Protocol):
    """Images with labels, captions and boxes, read block by block.

    Attributes:
        title: the name of the dataset.
        author: the person who exports the files.
        folder: :data:`IMAGES` if the image files are written too, otherwise empty.
        with_labels: whether labels and captions of whole images are written.
        with_boxes: whether boxes are written; their number may be 0.
    """

    @property
    def title(self) -> str: ...  # noqa: D102 - see Attributes
    @property
    def author(self) -> str: ...  # noqa: D102
    @property
    def folder(self) -> str: ...  # noqa: D102
    @property
    def with_labels(self) -> bool: ...  # noqa: D102
    @property
    def with_boxes(self) -> bool: ...  # noqa: D102

    def blocks(self, columns: Sequence[str], progress: ShareProgress) -> Iterator[pa.Table]:
        """Yield some columns of the images, some ten thousand rows at a time.

        Args:
            columns: some of ``file_name`` (without :attr:`folder`), ``media_id``, ``width``, ``height`` (in pixels,
                null if unknown), ``labels`` (a list), ``caption`` (null if missing) and ``objects``: a list of structs
                with ``label``, ``bbox`` (x, y, width, height in pixels), ``confidence``, ``original_id``,
                ``iscrowd``, ``truncated`` and ``difficult``, as in :class:`framedex.annotations.boxes.Box`.
            progress: called with the fraction that is done.
        """
        ...

    def image_labels(self, progress: ShareProgress) -> pa.Array:
        """Return the distinct labels of whole images, sorted."""
        ...

    def box_labels(self) -> pa.Array:
        """Return the distinct labels of boxes, sorted."""
        ...

    def box_counts(self, columns: Sequence[str]) -> Mapping[str, int]:
        """Return, by column, the number of boxes whose value is neither null nor false."""
        ...

    def highest_id(self, pattern: str) -> int:
        """Return the highest original id that matches a regular expression, or 0."""
        ...


def column(block: pa.Table, name: str) -> pa.Array:
    """Return a column of a block as one array."""
    return block[name].combine_chunks()


def file_names(images: AnnotatedImages, block: pa.Table) -> pa.Array:
    """Return the paths of a block's images, relative to the annotation files."""
    return pc.binary_join_element_wise(images.folder, column(block, FILE_NAME), "")


def omissions(images: AnnotatedImages, columns: Sequence[str], format_: str) -> list[str]:
    """Return sentences about the values of boxes that a format cannot hold.

    Args:
        images: the images with their boxes.
        columns: the columns that the format lacks.
        format_: the format's name for messages.
    """
    counts = images.box_counts(columns)
    return [
        f"{counts[name]:,} {_LEFT_OUT[name]} are left out: {format_} files hold none"
        for name in columns
        if counts[name]
    ]


def all_labels(images: AnnotatedImages, progress: ShareProgress) -> pa.Array:
    """Return the distinct labels of whole images and of boxes, as far as they are exported, sorted."""
    labels = images.box_labels()
    if images.with_labels:
        labels = pc.unique(pa.concat_arrays([labels, images.image_labels(progress)]))
    return labels.take(pc.sort_indices(labels))


def label_numbers(lists: pa.Array, labels: pa.Array) -> pa.Array:
    """Return the position of each list value in *labels*, from 0."""
    return pc.index_in(lists.flatten(), value_set=labels)


def boxes_by_image(block: pa.Table) -> Iterator[tuple[str, tuple[int, int] | None, list[Box]]]:
    """Yield (file name, (width, height) in pixels, boxes) of each image with boxes in a block.

    The size is None for an image that could not be decoded.

    Args:
        block: with ``file_name``, ``width``, ``height`` and ``objects``.
    """
    lists = column(block, OBJECTS)
    some = pc.greater(pc.list_value_length(lists), 0)
    columns = (column(block, name).filter(some).to_pylist() for name in (FILE_NAME, "width", "height"))
    for name, width, height, objects in zip(*columns, lists.filter(some).to_pylist(), strict=True):
        size = None if width is None or height is None else (width, height)
        yield name, size, [_box(name, each) for each in objects]


def _box(name: str, values: dict[str, Any]) -> Box:
    x, y, width, height = values.pop("bbox")
    return Box(name, x, y, width, height, **values)


def labels_without_box(block: pa.Table) -> pa.ListArray:
    """Return the labels of each image that none of its boxes has.

    Args:
        block: with ``objects`` and ``labels``.
    """
    labels, objects = column(block, "labels"), column(block, OBJECTS)
    ends = np.concatenate([[0], np.cumsum(pc.list_value_length(objects).to_numpy())])
    names = objects.flatten().field("label").to_pylist()
    rows = zip(labels.to_pylist(), ends[:-1], ends[1:], strict=True)
    return pa.array([[each for each in own if each not in names[start:end]] for own, start, end in rows], labels.type)
