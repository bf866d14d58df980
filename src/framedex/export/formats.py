"""Registry of export formats: one row a format. Plugins add rows."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from framedex.annotations import coco, coco_writer, labelme, mask_images, tables, voc, yolo
from framedex.annotations.output import IMAGES
from framedex.core.progress import ShareProgress
from framedex.errors import InvalidInput
from framedex.export import (
    huggingface_folder,
    huggingface_parquet,
    image_folders,
    json_file,
    parquet_file,
    webdataset,
)
from framedex.export.annotation_files import annotation_files
from framedex.export.contents import ExportContents
from framedex.export.image_names import Names, labelme_names, plain_names, voc_names, yolo_names
from framedex.export.images import CopyResult
from framedex.export.zip_writer import ZipWriter
from framedex.plugins import Contributions
from framedex.storage.definitions import TAGS
from framedex.storage.media_rows import SOURCE_ID

WriteExport = Callable[[ZipWriter, ExportContents, ShareProgress], tuple[Names, list[str]]]
"""Write all files but the images; return the names of the images, and sentences about data that is left out."""
PackExport = Callable[[ZipWriter, ExportContents, ShareProgress], tuple[CopyResult, list[str]]]
"""Write all files, which hold the images; return their counts, and sentences about data that is left out."""


@dataclass(frozen=True)
class ExportFormat:
    """One export format.

    Attributes:
        name: the format's name.
        files: the names of its files in the archive.
        content: a description of the content.
        write: writes the files; None if *pack* does.
        pack: writes files that hold the images, too; None if images are files of their own.
        is_file_each: whether the format has a file for each image, so that image names must be unique on every system.
        alone: the file that is written without a ZIP file to a path with its suffix; None for none.
        with_splits: whether the format can divide the images into parts.
        has_always_images: whether the format consists of images, so that they are exported even if nobody asks.
        images_folder: the folder of the image files in the archive.
        crops_objects: whether an export of objects has their crops as images.
        has_classes: whether its files are of no use without labels or boxes.
        lacks: the values of images that its files do not hold: ``source_id``, ``tags``.
    """

    name: str
    files: tuple[str, ...]
    content: str
    write: WriteExport | None = None
    is_file_each: bool = False
    alone: str | None = None
    with_splits: bool = False
    pack: PackExport | None = None
    has_always_images: bool = False
    images_folder: str = IMAGES
    crops_objects: bool = False
    has_classes: bool = False
    lacks: tuple[str, ...] = ()

    def is_alone_in(self, path: Path) -> bool:
        """Return whether a path is that of a single file of this format instead of a ZIP file."""
        return self.alone is not None and path.suffix.lower() == Path(self.alone).suffix


_LACKS = (SOURCE_ID.name, TAGS)
_ROWS = (
    ExportFormat(
        "json", (json_file.FILE,), "all that is known of media and objects", json_file.write_json, alone=json_file.FILE
    ),
    ExportFormat(
        "parquet",
        (parquet_file.FILE,),
        "all that is known of media and objects",
        parquet_file.write_parquet,
        alone=parquet_file.FILE,
    ),
    ExportFormat(
        "coco",
        (coco.FILE, coco.CAPTIONS_FILE),
        "boxes or labels, and captions",
        annotation_files(coco_writer.write, plain_names),
        alone=coco.FILE,
        with_splits=True,
        has_classes=True,
        lacks=(TAGS,),
    ),
    ExportFormat(
        "csv",
        (tables.LABELS_CSV, tables.BOXES_CSV),
        "labels and captions in one table, boxes in another",
        annotation_files(tables.write, plain_names),
        lacks=_LACKS,
    ),
    ExportFormat(
        "yolo",
        ("data.yaml", "labels/<name>.txt", tables.LABELS_CSV),
        "boxes, with labels and captions beside them; labels alone as boxes around all of an image",
        annotation_files(yolo.write, yolo_names),
        is_file_each=True,
        with_splits=True,
        has_classes=True,
        lacks=_LACKS,
    ),
    ExportFormat(
        "voc",
        ("annotations/<name>.xml", "labelmap.txt", tables.LABELS_CSV),
        "boxes, with labels and captions beside them",
        annotation_files(voc.write, voc_names),
        is_file_each=True,
        with_splits=True,
        has_classes=True,
        lacks=_LACKS,
    ),
    ExportFormat(
        "labelme",
        ("images/<name>.json", tables.LABELS_CSV),
        "boxes, outlines and masks, with labels as flags, and captions beside them",
        annotation_files(labelme.write, labelme_names),
        is_file_each=True,
        with_splits=True,
        has_classes=True,
        lacks=_LACKS,
    ),
    ExportFormat(
        "masks",
        ("SegmentationClass/<name>.png", "SegmentationObject/<name>.png", "labelmap.txt", tables.LABELS_CSV),
        "outlines and masks as images of classes and of objects, with labels and captions beside them",
        annotation_files(mask_images.write, voc_names),
        is_file_each=True,
        with_splits=True,
        has_classes=True,
        lacks=_LACKS,
    ),
    ExportFormat(
        "imagefolder",
        (image_folders.FILES,),
        "images in a folder for each class; of objects, their crops",
        image_folders.write_folders,
        with_splits=True,
        has_always_images=True,
        images_folder="",
        crops_objects=True,
        lacks=_LACKS,
    ),
    ExportFormat(
        "huggingface",
        huggingface_folder.FILES,
        "images, with labels, captions and boxes in one file",
        huggingface_folder.write_folder,
        with_splits=True,
        has_always_images=True,
        images_folder="",
        lacks=_LACKS,
    ),
    ExportFormat(
        "huggingface_parquet",
        huggingface_parquet.FILES,
        "images, labels, captions and boxes in one table",
        with_splits=True,
        has_always_images=True,
        pack=huggingface_parquet.write_parquet_shards,
        lacks=(SOURCE_ID.name,),
    ),
    ExportFormat(
        "webdataset",
        webdataset.FILES,
        "tar files with the image, labels, caption and boxes of each sample",
        with_splits=True,
        has_always_images=True,
        pack=webdataset.write_shards,
        lacks=(SOURCE_ID.name,),
    ),
)
FORMATS: dict[str, ExportFormat] = {each.name: each for each in _ROWS}
"""Built-in formats, by name."""
EXPORT_PLUGINS = Contributions("framedex.export_formats", ExportFormat, taken=lambda: FORMATS)
"""Formats of plugins."""


def format_names() -> str:
    """Return the names of the built-in formats as a phrase."""
    *others, last = FORMATS
    return f"{', '.join(others)} or {last}"


def formats_with_splits() -> str:
    """Return the names of the built-in formats that have parts, as a phrase."""
    *others, last = (each.name for each in FORMATS.values() if each.with_splits)
    return f"{', '.join(others)} and {last}"


def find_format(name: str) -> ExportFormat:
    """Return the format with a name.

    Raises:
        InvalidInput: no format has this name.
    """
    row = (FORMATS.get(name) or EXPORT_PLUGINS.rows().get(name)) if isinstance(name, str) else None
    if row is not None:
        return row
    plugins = "".join(f", or {name} of a plugin" for name in EXPORT_PLUGINS.rows())
    raise InvalidInput(f"format must be {format_names()}{plugins}, not {name!r}")
