"""Exported media as input of the annotation writers."""

from collections.abc import Callable, Iterator, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from framedex.annotations.output import FILE_NAME, IMAGES, SPLIT, AnnotatedImages, Files, column, omissions
from framedex.annotations.output import OBJECTS as BOXES
from framedex.annotations.progress import part
from framedex.core.counts import counted
from framedex.core.progress import ShareProgress
from framedex.export.columns import EXPORTED
from framedex.export.contents import ExportContents
from framedex.export.image_names import Names, readable_names
from framedex.export.object_columns import ATTRIBUTES, BBOX, CONFIDENCE, FLAGS, LABEL, ORIGINAL_ID, SHAPE
from framedex.export.objects import as_condition, objects_field
from framedex.export.single_file import Archive
from framedex.export.zip_writer import ZipWriter
from framedex.storage.classes import classes_of
from framedex.storage.definitions import TAGS
from framedex.storage.media import EVERYTHING
from framedex.storage.media_rows import SOURCE_ID
from framedex.storage.table_versions import ROW_ID

Write = Callable[[Files, AnnotatedImages, ShareProgress], list[str]]
"""Write annotation files, and return sentences about the data that they cannot hold."""
_BOXES = objects_field(pa.schema([LABEL, BBOX, CONFIDENCE, ORIGINAL_ID, *FLAGS, ATTRIBUTES, *SHAPE]))
_LARGEST = 2**53  # new ids are above those below it: larger ones are not exact in many readers
_NAMES_SHARE = 0.2  # of the work: computing the names of images
_OF_IMAGES = {SOURCE_ID.name: "image ids", TAGS: "tags of images"}
_COUNTS = {
    "original_id": "count(original_id)",
    "confidence": "count(confidence)",
    "iscrowd": "count_if(iscrowd)",
    "truncated": "count_if(truncated)",
    "difficult": "count_if(difficult)",
    "attributes": "count(attributes)",
    "segmentation": "count(segmentation)",
    "keypoints": "count(keypoints)",
}


def annotation_files(
    write: Write, find_names: Callable[[ExportContents, ShareProgress], Names]
) -> Callable[[ZipWriter, ExportContents, ShareProgress], tuple[Names, list[str]]]:
    """Return a function that exports annotations in a format.

    Args:
        write: writes the format.
        find_names: returns the names of images that suit the format.

    Returns:
        A function that writes the files of a selection. It returns the names of the images, and sentences about the
        data that the files cannot hold.
    """

    def write_files(archive: Archive, contents: ExportContents, progress: ShareProgress) -> tuple[Names, list[str]]:
        names = find_names(contents, part(progress, 0.0, _NAMES_SHARE))
        return names, write(archive, ExportedImages(contents, names), part(progress, _NAMES_SHARE, 1.0))

    return write_files


def objects_left_out(contents: ExportContents, columns: Sequence[str], format_: str) -> list[str]:
    """Return sentences about the values of objects that a format cannot hold, see :func:`omissions`."""
    return omissions(ExportedImages(contents, readable_names), columns, format_) if contents.with_objects else []


def images_left_out(contents: ExportContents, columns: Sequence[str]) -> list[str]:
    """Return sentences about the values of images that a format cannot hold; tags that are parts are no loss.

    Args:
        contents: the selection that is exported.
        columns: the values that the format lacks: ``source_id``, ``tags``.
    """
    media, parts = contents.media, contents.splits.names if contents.splits is not None else ()
    counts = dict.fromkeys(columns, 0)
    if SOURCE_ID.name in counts and SOURCE_ID.name in media.table.schema.names:
        text = f"SELECT count({SOURCE_ID.name}) AS n FROM chosen"
        rows = media.query(text, as_condition(contents.rows), [SOURCE_ID.name], keep=False)
        counts[SOURCE_ID.name] = rows["n"][0].as_py()
    if TAGS in counts and TAGS in media.table.schema.names:
        for block in contents.blocks(pa.schema([EXPORTED.field(TAGS)]), lambda _share: None):
            names = column(block, TAGS).flatten()
            is_part = pc.is_in(names, value_set=pa.array(parts, pa.string()))
            counts[TAGS] += len(names) - pc.sum(is_part, min_count=0).as_py()
    return [
        f"{counted(count, _OF_IMAGES[name], 'are')} left out: this format holds none"
        for name, count in counts.items()
        if count
    ]


class ExportedImages:
    """The media of an export as :class:`framedex.annotations.output.AnnotatedImages`.

    Args:
        contents: the selection that is exported.
        names: returns the names of its images below ``images/``.
    """

    def __init__(self, contents: ExportContents, names: Names) -> None:
        self._contents, self._names = contents, names
        self.title, self.author = contents.dataset.display_name, contents.exported_by
        self.folder = IMAGES if contents.include_images else ""
        self.with_labels, self.with_boxes = not contents.boxes_only, contents.with_objects
        options = contents.options
        self.with_confidences, self.with_outlines = options.confidences, options.outlines
        self.with_keypoints = options.keypoints
        self.splits = () if contents.splits is None else contents.splits.names

    def blocks(self, columns: Sequence[str], progress: ShareProgress) -> Iterator[pa.Table]:
        """Yield some columns of the images, some ten thousand rows at a time."""
        media = self._contents.media
        fields = {BOXES: _BOXES, **{field.name: field for field in EXPORTED}}
        own = [fields[name] for name in columns if name in fields and name != "media_id"]
        location = [media.table.schema.field(name) for name in (*media.location, "media_id", "format")]
        with_ids = [SOURCE_ID] if "source_id" in columns and SOURCE_ID.name in media.table.schema.names else []
        for block in self._contents.blocks(pa.schema([*location, *own, *with_ids]), progress):
            yield pa.table({name: self._column(block, name) for name in columns})

    def _column(self, block: pa.Table, name: str) -> pa.Array | pa.ChunkedArray:
        if name == FILE_NAME:
            return self._names(self._contents.media, block)
        if name == SPLIT:
            assert self._contents.splits is not None, "the images are divided"
            return self._contents.splits.of(column(block, "media_id"))
        if name == SOURCE_ID.name and name not in block.column_names:
            return pa.nulls(len(block), pa.string())
        return block[name]

    def classes(self) -> pa.Table:
        """Return the classes of the whole dataset: those of boxes if boxes are exported, otherwise all."""
        classes = classes_of(self._contents.media)
        return classes.filter(classes["of_boxes"]) if self.with_boxes else classes

    def image_ids(self, pattern: str) -> tuple[int, Mapping[str, str]]:
        """Return the highest image id of the source below 2⁵³ that matches a pattern, or 0, and the shared ids.

        Shared ids are those of several images of the dataset, each with the media id of the first one.
        """
        media = self._contents.media
        if SOURCE_ID.name not in media.table.schema.names:
            return 0, {}
        highest = f"{_highest('source_id')} FILTER (regexp_matches(source_id, '{pattern}')) AS highest"
        first = media.query(f"SELECT {highest} FROM chosen", EVERYTHING, ["source_id"], keep=False)["highest"][0]
        text = (
            f"SELECT source_id, arg_min(media_id, {ROW_ID}) AS media_id FROM chosen WHERE source_id IS NOT NULL "
            "GROUP BY source_id HAVING count(*) > 1"
        )
        shared = media.query(text, EVERYTHING, ["source_id", "media_id"], keep=False)
        return first.as_py() or 0, dict(zip(*(shared[name].to_pylist() for name in shared.column_names), strict=True))

    def box_counts(self, columns: Sequence[str]) -> Mapping[str, int]:
        """Return, by column, the number of boxes whose value is neither null nor false."""
        if self._contents.objects is None:
            return dict.fromkeys(columns, 0)
        present = set(self._contents.objects.objects.table.schema.names)  # older tables lack some columns
        stored = [name for name in columns if name in present]
        if not stored:
            return dict.fromkeys(columns, 0)
        counts = ", ".join(f"{_COUNTS[name]} AS {name}" for name in stored)
        rows: list[dict[str, int]] = self._contents.objects.values(f"SELECT {counts} FROM chosen", *stored).to_pylist()
        return dict.fromkeys(columns, 0) | rows[0]

    def highest_id(self, pattern: str) -> int:
        """Return the highest original id below 2⁵³ that matches a regular expression, or 0."""
        if self._contents.objects is None:
            return 0
        text = f"SELECT {_highest('original_id')} AS highest FROM chosen WHERE regexp_matches(original_id, '{pattern}')"
        return self._contents.objects.values(text, "original_id")["highest"][0].as_py() or 0

    def repeated_ids(self) -> pa.Table:
        """Return the original ids that several boxes have, as ``id``, and how many boxes have each, as ``count``."""
        if self._contents.objects is None:
            return pa.table({"id": pa.array([], pa.string()), "count": pa.array([], pa.int64())})
        text = (
            "SELECT original_id AS id, count(*) AS count FROM chosen WHERE original_id IS NOT NULL "
            "GROUP BY original_id HAVING count(*) > 1"
        )
        return self._contents.objects.values(text, "original_id")


def _highest(column_: str) -> str:
    number = f"TRY_CAST({column_} AS BIGINT)"
    return f"max(CASE WHEN {number} < {_LARGEST} THEN {number} END)"
