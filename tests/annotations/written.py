"""Annotated images in memory, and a folder that files are written to."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from framedex.annotations.boxes import Box
from framedex.annotations.output import IMAGES, Output
from framedex.annotations.shapes import ObjectShape
from framedex.core.progress import ShareProgress
from framedex.storage.classes import SCHEMA

_BOX = pa.struct(
    [
        pa.field("label", pa.string()),
        pa.field("bbox", pa.list_(pa.float64(), 4)),
        pa.field("confidence", pa.float64()),
        pa.field("original_id", pa.string()),
        *(pa.field(name, pa.bool_()) for name in ("iscrowd", "truncated", "difficult")),
        pa.field("attributes", pa.string()),
        pa.field("segmentation", pa.string()),
        pa.field("keypoints", pa.string()),
        pa.field("area", pa.float64()),
    ]
)
_SCHEMA = pa.schema(
    [
        pa.field("file_name", pa.string()),
        pa.field("media_id", pa.string()),
        pa.field("source_id", pa.string()),
        pa.field("split", pa.string()),
        pa.field("width", pa.int32()),
        pa.field("height", pa.int32()),
        pa.field("labels", pa.list_(pa.string())),
        pa.field("caption", pa.string()),
        pa.field("objects", pa.list_(_BOX)),
    ]
)


class ImagesInMemory:
    """Images with their boxes, as the writers take them.

    Args:
        sizes: width and height in pixels by file name; None for an image that could not be read.
        boxes: the boxes of all images, by their ``name``.
        labels: the labels of whole images, by file name.
        captions: their captions, by file name.
        with_boxes: whether the images are ones with boxes, even where there are none.
        folder: where the image files are: ``images/``, or nowhere.
        classes: the class list, with ids from 1; by default the labels in alphabetical order.
        source_ids: the ids of images in their source, by file name.
        splits: the parts of all images, by file name.
    """

    title, author, with_labels = "pets", "tester@example.org", True
    with_confidences, with_outlines, with_keypoints = False, False, False

    def __init__(
        self,
        sizes: Mapping[str, tuple[int, int] | None],
        boxes: Sequence[Box] = (),
        *,
        labels: Mapping[str, Sequence[str]] | None = None,
        captions: Mapping[str, str] | None = None,
        with_boxes: bool = True,
        folder: str = IMAGES,
        classes: Sequence[str] | None = None,
        source_ids: Mapping[str, str] | None = None,
        splits: Mapping[str, str] | None = None,
    ) -> None:
        assert {box.name for box in boxes} <= set(sizes)
        self._boxes, self.with_boxes, self.folder = list(boxes), with_boxes, folder
        self._labels = {name: list((labels or {}).get(name, ())) for name in sizes}
        names = {each for labels in self._labels.values() for each in labels} if not with_boxes else set()
        self._classes = sorted(names | {box.label for box in boxes}) if classes is None else list(classes)
        self.splits = tuple(dict.fromkeys((splits or {}).values()))
        rows = [
            {
                "file_name": name,
                "media_id": f"id-{number}",
                "source_id": (source_ids or {}).get(name),
                "split": (splits or {}).get(name),
                "width": size and size[0],
                "height": size and size[1],
                "labels": self._labels[name],
                "caption": (captions or {}).get(name),
                "objects": [_values(box) for box in boxes if box.name == name],
            }
            for number, (name, size) in enumerate(sizes.items())
        ]
        self._table = pa.Table.from_pylist(rows, schema=_SCHEMA)

    def blocks(self, columns: Sequence[str], progress: ShareProgress) -> Iterator[pa.Table]:
        """Yield two images at a time."""
        for start in range(0, len(self._table), 2):
            yield self._table.select(columns).slice(start, 2)
        progress(1.0)

    def classes(self) -> pa.Table:
        rows = [
            {"id": number, "name": name, "supercategory": None, "details": None, "of_boxes": True}
            for number, name in enumerate(self._classes, 1)
        ]
        return pa.Table.from_pylist(rows, schema=SCHEMA)

    def image_ids(self, pattern: str) -> tuple[int, Mapping[str, str]]:
        ids = [each for each in self._table["source_id"].to_pylist() if each is not None]
        rows = reversed(self._table.to_pylist())
        first = {row["source_id"]: row["media_id"] for row in rows}
        shared = {each: first[each] for each in ids if ids.count(each) > 1}
        return _highest(each for each in ids if re.fullmatch(pattern, each)), shared

    def box_counts(self, columns: Sequence[str]) -> Mapping[str, int]:
        return {name: sum(_value(box, name) not in (None, False) for box in self._boxes) for name in columns}

    def highest_id(self, pattern: str) -> int:
        return _highest(box.original_id for box in self._boxes if re.fullmatch(pattern, box.original_id or ""))

    def repeated_ids(self) -> pa.Table:
        counts = Counter(box.original_id for box in self._boxes if box.original_id is not None)
        rows = {each: count for each, count in counts.items() if count > 1}
        return pa.table({"id": pa.array(rows.keys(), pa.string()), "count": pa.array(rows.values(), pa.int64())})


def _highest(ids: Iterable[str | None]) -> int:
    return max((number for number in map(int, filter(None, ids)) if number < 2**53), default=0)


def _values(box: Box) -> dict[str, object]:
    flags = ("iscrowd", "truncated", "difficult", "attributes")
    names = ("label", "confidence", "original_id", *flags, *ObjectShape._fields)
    return {"bbox": [box.x, box.y, box.width, box.height], **{name: _value(box, name) for name in names}}


def _value(box: Box, name: str) -> object:
    """Return a value of a box or of its shape."""
    return getattr(box.shape if name in ObjectShape._fields else box, name)


class FolderFiles:
    """Files below a folder; no name may come twice."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def add(self, name: str, data: bytes, /) -> None:
        with self.member(name) as file:
            file.write(data)

    @contextmanager
    def member(self, name: str, /, *, compressed: bool = False) -> Iterator[Output]:
        path = self._folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("xb") as file:
            yield file


def no_progress(_share: float) -> None:
    """Take a share of progress, and do nothing."""
