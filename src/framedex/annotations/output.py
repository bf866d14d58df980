"""Interfaces of the format writers: the annotated images that they take, and the files that they write."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from itertools import islice
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from framedex.annotations.boxes import Box
from framedex.annotations.shapes import NO_SHAPE, ObjectShape
from framedex.core.counts import counted
from framedex.core.progress import ShareProgress

IMAGES = "images/"
"""The folder of the image files, beside the annotation files."""
FILE_NAME, OBJECTS, SPLIT, BBOX = "file_name", "objects", "split", "bbox"
_LEFT_OUT = {
    "original_id": "ids",
    "confidence": "confidences",
    "iscrowd": "crowd flags",
    "truncated": "truncated flags",
    "difficult": "difficult flags",
    "attributes": "sets of attributes",
    "segmentation": "outlines or masks",
    "keypoints": "sets of key points",
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
        with_confidences: whether YOLO lines have the confidence of their box as a last number.
        with_outlines: whether YOLO lines are outlines instead of boxes.
        with_keypoints: whether YOLO lines have the key points of their box.
        splits: the names of the parts into which the images are divided, such as ``train``; empty for no parts.
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
    @property
    def with_confidences(self) -> bool: ...  # noqa: D102
    @property
    def with_outlines(self) -> bool: ...  # noqa: D102
    @property
    def with_keypoints(self) -> bool: ...  # noqa: D102
    @property
    def splits(self) -> Sequence[str]: ...  # noqa: D102

    def blocks(self, columns: Sequence[str], progress: ShareProgress) -> Iterator[pa.Table]:
        """Yield some columns of the images, some ten thousand rows at a time.

        Args:
            columns: some of ``file_name`` (without :attr:`folder`), ``media_id``, ``width``, ``height`` (in pixels,
                null if unknown), ``labels`` (a list), ``caption`` (null if missing) and ``objects``: a list of structs
                with ``label``, ``bbox`` (x, y, width, height in pixels), ``confidence``, ``original_id``,
                ``iscrowd``, ``truncated``, ``difficult`` and ``attributes``, as in
                :class:`framedex.annotations.boxes.Box`, and ``segmentation``, ``keypoints`` and ``area`` of
                :class:`framedex.annotations.shapes.ObjectShape`; also ``source_id`` (the id of the image in its source,
                as text, or null) and ``split`` (its part).
            progress: called with the fraction that is done.
        """
        ...

    def classes(self) -> pa.Table:
        """Return the classes of the whole dataset: those of boxes if boxes are written, otherwise all.

        Their ids and their order do not depend on the selection. The columns are ``id`` (int64), ``name``,
        ``supercategory`` and ``details``, as in :class:`framedex.annotations.source_lists.SourceClass`.
        """
        ...

    def image_ids(self, pattern: str) -> tuple[int, Mapping[str, str]]:
        """Return the highest image id of the source below 2⁵³, and the ids that several images of the dataset share.

        Args:
            pattern: a regular expression for the ids that are numbers.

        Returns:
            highest: the highest id that is a number, or 0.
            shared: by shared id, the media id of the first image that has it.
        """
        ...

    def box_counts(self, columns: Sequence[str]) -> Mapping[str, int]:
        """Return, by column, the number of boxes whose value is neither null nor false."""
        ...

    def highest_id(self, pattern: str) -> int:
        """Return the highest original id below 2⁵³ that matches a regular expression, or 0."""
        ...

    def repeated_ids(self) -> pa.Table:
        """Return the original ids that several boxes have, as ``id``, and how many boxes have each, as ``count``."""
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
        f"{counted(counts[name], _LEFT_OUT[name], 'are')} left out: {format_} files hold none"
        for name in columns
        if counts[name]
    ]


def other_bounds(count: int) -> list[str]:
    """Return a sentence about the boxes that are left out beside their outline or mask; nothing for none."""
    return [f"{counted(count, 'boxes', 'are')} left out: the outline or mask has other bounds"] if count else []


def label_numbers(lists: pa.Array, labels: pa.Array) -> pa.Array:
    """Return the position of each list value in *labels*, from 0."""
    return pc.index_in(lists.flatten(), value_set=labels)


def boxes_by_image(block: pa.Table, *, every: bool = False) -> Iterator[tuple[str, tuple[int, int] | None, list[Box]]]:
    """Yield (file name, (width, height) in pixels, boxes) of each image with boxes in a block.

    The size is None for an image that could not be decoded.

    Args:
        block: with ``file_name``, ``width``, ``height`` and ``objects``.
        every: also yield the images without boxes.
    """
    lists = column(block, OBJECTS)
    some = pc.greater_equal(pc.list_value_length(lists), 0 if every else 1)
    lists = lists.filter(some)
    columns = (column(block, name).filter(some).to_pylist() for name in (FILE_NAME, "width", "height"))
    rows = _rows(lists.flatten())
    for name, width, height, count in zip(*columns, pc.list_value_length(lists).to_pylist(), strict=True):
        size = None if width is None or height is None else (width, height)
        yield name, size, [_box(name, *each) for each in islice(rows, count or 0)]


def _rows(values: pa.StructArray) -> Iterator[tuple[tuple[float, ...], ObjectShape, dict[str, Any]]]:
    """Yield the sides, the shape and the further values of each box, converted column by column, which is fast."""
    sides = values.field(BBOX).flatten().to_numpy().reshape(-1, 4).tolist()
    shapes = (_list(values.field(name)) for name in ObjectShape._fields)
    others = [field.name for field in values.type if field.name not in (BBOX, *ObjectShape._fields)]
    further = zip(*(_list(values.field(name)) for name in others), strict=True)
    for box, shape, rest in zip(sides, zip(*shapes, strict=True), further, strict=True):
        yield box, NO_SHAPE if shape == NO_SHAPE else ObjectShape(*shape), dict(zip(others, rest, strict=True))


def _list(values: pa.Array) -> list[Any]:
    return [None] * len(values) if values.null_count == len(values) else values.to_pylist()


def _box(name: str, sides: tuple[float, ...], shape: ObjectShape, further: dict[str, Any]) -> Box:
    x, y, width, height = sides
    return Box(name, x, y, width, height, **further, shape=shape)
