"""The registry of annotation formats that are read: a row for each. Further rows come from other packages."""

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from framedex.annotations import coco, tables, voc, yolo
from framedex.annotations.boxes import Box
from framedex.annotations.label_index import ImageLabels
from framedex.annotations.problems import Problems
from framedex.annotations.relative_boxes import RelativeBox
from framedex.plugins import Contributions

ReadLabels = Callable[[Path], Iterator[ImageLabels]]
"""Yields the labels and captions in a file or a folder; raises InvalidInput where they cannot be understood."""
ReadBoxes = Callable[[Path, Problems], Iterator[Box] | Iterator[RelativeBox]]
"""Yields the boxes in a file or a folder, and counts bad parts; raises InvalidInput where all of it is bad."""


@dataclass(frozen=True)
class AnnotationFormat:
    """A format of annotations.

    Attributes:
        name: the format's name, the ``source`` of its boxes.
        read_labels: reads labels and captions of whole images; None if the format has none.
        read_boxes: reads boxes; None if the format has none.
        labels_file: the name of the file with labels; None if *read_labels* takes the folder.
        boxes_file: the name of the file with boxes; None if *read_boxes* takes the folder. A file that a user names is
            of this format if it has the same suffix.
        has_boxes: returns whether a folder is one of this format, where *read_boxes* takes folders.
        shown: a file or a folder with boxes of this format in words, for messages.
    """

    name: str
    shown: str
    read_labels: ReadLabels | None = None
    read_boxes: ReadBoxes | None = None
    labels_file: str | None = None
    boxes_file: str | None = None
    has_boxes: Callable[[Path], bool] = lambda _folder: False

    def boxes_in(self, folder: Path) -> Path | None:
        """Return the file or the folder with boxes of this format in a folder; None if there is none."""
        if self.read_boxes is None:
            return None
        if self.boxes_file is None:
            return folder if self.has_boxes(folder) else None
        path = folder / self.boxes_file
        return path if path.is_file() else None

    def labels_in(self, folder: Path) -> Path | None:
        """Return the file or the folder with labels of this format in a folder; None if there is none."""
        if self.read_labels is None:
            return None
        path = folder if self.labels_file is None else folder / self.labels_file
        return path if self.labels_file is None or path.is_file() else None

    def reads_boxes_of(self, path: Path) -> bool:
        """Return whether a file that a user names is one with boxes of this format, by its suffix."""
        return self.boxes_file is not None and path.suffix.lower() == os.path.splitext(self.boxes_file)[1]  # noqa: PTH122


FORMATS: tuple[AnnotationFormat, ...] = (
    AnnotationFormat(
        "coco",
        "a COCO file (.json)",
        read_labels=coco.read_labels,
        read_boxes=coco.read_boxes,
        labels_file=coco.FILE,
        boxes_file=coco.FILE,
    ),
    AnnotationFormat(
        "csv",
        f"a CSV table (.csv) with {', '.join(tables.COLUMNS)}",
        read_labels=tables.read_csv_labels,
        read_boxes=tables.read_csv_boxes,
        labels_file=tables.LABELS_CSV,
        boxes_file=tables.BOXES_CSV,
    ),
    AnnotationFormat(
        "parquet",
        "a Parquet table (.parquet) with the same columns",
        read_labels=tables.read_parquet_labels,
        read_boxes=tables.read_parquet_boxes,
        labels_file=tables.LABELS_PARQUET,
        boxes_file=tables.BOXES_PARQUET,
    ),
    AnnotationFormat("voc", "a folder of Pascal VOC files", read_boxes=voc.read_boxes, has_boxes=voc.is_voc),
    AnnotationFormat(
        "yolo",
        "a folder of YOLO files",
        read_labels=yolo.read_labels,
        read_boxes=yolo.read_boxes,
        has_boxes=yolo.is_yolo,
    ),
)
"""The formats that are built in, in the order in which they are read."""
ANNOTATION_PLUGINS = Contributions(
    "framedex.annotation_readers", AnnotationFormat, taken=lambda: [each.name for each in FORMATS]
)
"""Formats of other packages."""


def annotation_formats() -> tuple[AnnotationFormat, ...]:
    """Return all formats, in the order in which they are read."""
    return (*FORMATS, *ANNOTATION_PLUGINS.rows().values())


def _files(names: Iterable[str | None]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for name in names if name is not None))


@cache  # asked for each file of a folder
def label_files() -> tuple[str, ...]:
    """Return the names of files with labels and captions of whole images."""
    return _files(each.labels_file for each in annotation_formats())


@cache
def box_files() -> tuple[str, ...]:
    """Return the names of files with boxes."""
    return _files(each.boxes_file for each in annotation_formats())
