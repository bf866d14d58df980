"""Registry of the annotation formats that can be read: one row a format. Plugins add rows."""

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

from framedex.annotations import (
    coco,
    coco_folder,
    coco_reader,
    cvat,
    fiftyone,
    huggingface,
    label_studio,
    labelme,
    mask_images,
    tables,
    voc,
    voc_parts,
    yolo,
    yolo_parts,
)
from framedex.annotations.boxes import Box
from framedex.annotations.label_index import ImageLabels
from framedex.annotations.problems import AnnotationProblem, Problems
from framedex.annotations.relative_boxes import RelativeBox
from framedex.annotations.source_lists import SourceClass, SourceImage
from framedex.core.regular_files import has_file
from framedex.plugins import Contributions

ReadLabels = Callable[[Path], Iterator[ImageLabels]] | Callable[[Path], Iterator[ImageLabels | AnnotationProblem]]
"""Yield the labels and captions of a file or folder, and problems of its parts; raise InvalidInput if all of it is
malformed.
"""
ReadBoxes = Callable[[Path, Problems], Iterator[Box] | Iterator[RelativeBox]]
"""Yield the boxes of a file or folder, and collect problems; raise InvalidInput if nothing can be read."""
ReadLists = Callable[[Path], Iterator[SourceClass | SourceImage]]
"""Yield the class list, and the images with ids, of a file or folder; raise InvalidInput if it is malformed."""


@dataclass(frozen=True)
class AnnotationFormat:
    """One annotation format.

    Attributes:
        name: the format's name, stored as the ``source`` of its boxes.
        read_labels: reads labels and captions of whole images; None if the format has none.
        read_boxes: reads boxes; None if the format has none.
        read_interpolated: as *read_boxes*, with the boxes between key frames of tracks; None if the format has none.
        labels_file: the name of the file with labels; None if *read_labels* takes the folder.
        boxes_file: the name of the file with boxes; None if *read_boxes* takes the folder. A file with the same suffix
            that a user passes has this format, too.
        read_lists: reads the class list and the ids of images; None if the format has neither. It takes what
            *read_boxes* takes, or else *read_labels*.
        has_boxes: returns whether a folder is in this format, if *read_boxes* takes folders.
        shown: a description of the format's file or folder of boxes, for messages.
        label_file_finder: returns, for a folder in this format, a function that says whether a path within it is that
            of one of many files of annotations that are read.
        find_files: returns what a folder has of this format, as paths within it or in words, for messages; by default
            the files of labels and boxes.
    """

    name: str
    shown: str
    read_labels: ReadLabels | None = None
    read_boxes: ReadBoxes | None = None
    read_interpolated: ReadBoxes | None = None
    labels_file: str | None = None
    boxes_file: str | None = None
    read_lists: ReadLists | None = None
    has_boxes: Callable[[Path], bool] = lambda _folder: False
    find_files: Callable[[Path], Iterable[str]] | None = None
    label_file_finder: Callable[[Path], Callable[[str], bool]] | None = None

    def files_in(self, folder: Path) -> list[str]:
        """Return what a folder has of this format, as paths within it or in words."""
        if self.find_files is not None:
            return list(self.find_files(folder))
        names = dict.fromkeys(name for name in (self.labels_file, self.boxes_file) if name is not None)
        return [name for name in names if has_file(folder / name)]

    def boxes_in(self, folder: Path) -> Path | None:
        """Return the file or folder with boxes of this format in a folder, or None."""
        if self.read_boxes is None:
            return None
        if self.boxes_file is None:
            return folder if self.has_boxes(folder) else None
        path = folder / self.boxes_file
        return path if has_file(path) else None

    def labels_in(self, folder: Path) -> Path | None:
        """Return the file or folder with labels of this format in a folder, or None."""
        if self.read_labels is None:
            return None
        path = folder if self.labels_file is None else folder / self.labels_file
        return path if self.labels_file is None or has_file(path) else None

    def reads_boxes_of(self, path: Path) -> bool:
        """Return whether a file that a user passes has boxes of this format, judged by its suffix."""
        return self.boxes_file is not None and path.suffix.lower() == os.path.splitext(self.boxes_file)[1]  # noqa: PTH122


FORMATS: tuple[AnnotationFormat, ...] = (
    AnnotationFormat(
        "coco",
        "a COCO file (.json)",
        read_labels=coco_reader.read_labels,
        read_boxes=coco_reader.read_boxes,
        labels_file=coco.FILE,
        boxes_file=coco.FILE,
        read_lists=coco_reader.read_lists,
    ),
    AnnotationFormat(
        "coco-captions",
        "a COCO file of captions (.json)",
        read_labels=coco_reader.read_captions,
        labels_file=coco.CAPTIONS_FILE,
        read_lists=coco_reader.read_caption_lists,
        find_files=coco_reader.find_captions,
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
    AnnotationFormat(
        "voc",
        "a folder of Pascal VOC files",
        read_labels=voc_parts.read_parts,
        read_boxes=voc.read_boxes,
        has_boxes=voc.is_voc,
        find_files=voc_parts.find_files,
        label_file_finder=voc.label_file_finder,
    ),
    AnnotationFormat(
        "yolo",
        "a folder of YOLO files",
        read_labels=yolo.read_labels,
        read_boxes=yolo.read_boxes,
        read_lists=yolo.read_lists,
        has_boxes=yolo.is_yolo,
        find_files=yolo_parts.find_files,
        label_file_finder=yolo.label_file_finder,
    ),
    AnnotationFormat(
        "yolo-parts",
        "the parts of data.yaml",
        read_labels=yolo_parts.read_parts,
        find_files=lambda _folder: (),
    ),
    AnnotationFormat(
        "coco-folder",
        "a folder of COCO files",
        read_labels=coco_folder.read_labels,
        read_boxes=coco_folder.read_boxes,
        read_lists=coco_folder.read_lists,
        has_boxes=coco_folder.is_coco_folder,
        find_files=coco_folder.find_files,
    ),
    AnnotationFormat(
        "huggingface",
        "an image folder of Hugging Face",
        read_labels=huggingface.read_labels,
        read_boxes=huggingface.read_boxes,
        has_boxes=huggingface.has_boxes,
        find_files=huggingface.find_files,
    ),
    AnnotationFormat(
        "fiftyone",
        "a FiftyOne dataset",
        read_labels=fiftyone.read_labels,
        read_boxes=fiftyone.read_boxes,
        has_boxes=fiftyone.is_fiftyone,
        find_files=fiftyone.find_files,
    ),
    AnnotationFormat(
        "cvat",
        "a folder of CVAT",
        read_labels=cvat.read_labels,
        read_boxes=cvat.read_boxes,
        read_interpolated=partial(cvat.read_boxes, interpolate=True),
        has_boxes=cvat.is_cvat,
        find_files=cvat.find_files,
    ),
    AnnotationFormat(
        "label-studio",
        "a folder with an export of Label Studio",
        read_labels=label_studio.read_labels,
        read_boxes=label_studio.read_boxes,
        has_boxes=label_studio.has_boxes,
        find_files=label_studio.find_files,
    ),
    AnnotationFormat(
        "labelme",
        "a folder of labelme files",
        read_labels=labelme.read_labels,
        read_boxes=labelme.read_boxes,
        has_boxes=labelme.is_labelme,
        find_files=labelme.find_files,
        label_file_finder=labelme.label_file_finder,
    ),
    AnnotationFormat(
        "masks",
        "a folder with SegmentationClass of Pascal VOC",
        read_boxes=mask_images.read_boxes,
        has_boxes=mask_images.has_masks,
        find_files=mask_images.find_files,
        label_file_finder=mask_images.label_file_finder,
    ),
)
"""Built-in formats, in reading order."""
ANNOTATION_PLUGINS = Contributions(
    "framedex.annotation_readers", AnnotationFormat, taken=lambda: [each.name for each in FORMATS]
)
"""Formats of plugins."""


def annotation_formats() -> tuple[AnnotationFormat, ...]:
    """Return all formats, in reading order."""
    return (*FORMATS, *ANNOTATION_PLUGINS.rows().values())


def _files(names: Iterable[str | None]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for name in names if name is not None))


@cache  # called for each file of a folder
def label_files() -> tuple[str, ...]:
    """Return the names of files with labels and captions of whole images."""
    return _files(each.labels_file for each in annotation_formats())


@cache
def box_files() -> tuple[str, ...]:
    """Return the names of files with boxes."""
    return _files(each.boxes_file for each in annotation_formats())
