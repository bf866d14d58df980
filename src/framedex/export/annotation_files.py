"""Exported media as input of the annotation writers."""

from collections.abc import Callable, Iterator, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from framedex.annotations.output import FILE_NAME, IMAGES, AnnotatedImages, Files, column
from framedex.annotations.output import OBJECTS as BOXES
from framedex.annotations.progress import part
from framedex.core.progress import ShareProgress
from framedex.export.columns import EXPORTED
from framedex.export.contents import ExportContents
from framedex.export.image_names import Names
from framedex.export.object_columns import BBOX, CONFIDENCE, FLAGS, LABEL, ORIGINAL_ID
from framedex.export.objects import objects_field
from framedex.export.zip_writer import ZipWriter

Write = Callable[[Files, AnnotatedImages, ShareProgress], list[str]]
"""Write annotation files, and return sentences about the data that they cannot hold."""
_BOXES = objects_field(pa.schema([LABEL, BBOX, CONFIDENCE, ORIGINAL_ID, *FLAGS]))
_NAMES_SHARE = 0.2  # of the work: computing the names of images
_COUNTS = {
    "original_id": "count(original_id)",
    "confidence": "count(confidence)",
    "iscrowd": "count_if(iscrowd)",
    "truncated": "count_if(truncated)",
    "difficult": "count_if(difficult)",
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

    def write_files(archive: ZipWriter, contents: ExportContents, progress: ShareProgress) -> tuple[Names, list[str]]:
        names = find_names(contents, part(progress, 0.0, _NAMES_SHARE))
        return names, write(archive, ExportedImages(contents, names), part(progress, _NAMES_SHARE, 1.0))

    return write_files


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

    def blocks(self, columns: Sequence[str], progress: ShareProgress) -> Iterator[pa.Table]:
        """Yield some columns of the images, some ten thousand rows at a time."""
        media = self._contents.media
        fields = {BOXES: _BOXES, **{field.name: field for field in EXPORTED}}
        own = [fields[name] for name in columns if name not in (FILE_NAME, "media_id")]
        location = [media.table.schema.field(name) for name in (*media.location, "media_id", "format")]
        for block in self._contents.blocks(pa.schema([*location, *own]), progress):
            names = self._names(media, block) if FILE_NAME in columns else None
            yield pa.table({name: names if name == FILE_NAME else block[name] for name in columns})

    def image_labels(self, progress: ShareProgress) -> pa.Array:
        """Return the distinct labels of whole images, sorted."""
        labels = pa.array([], pa.string())
        for block in self._contents.blocks(pa.schema([EXPORTED.field("labels")]), progress):
            labels = pc.unique(pa.concat_arrays([labels, pc.unique(column(block, "labels").flatten())]))
        return labels.take(pc.sort_indices(labels))

    def box_labels(self) -> pa.Array:
        """Return the distinct labels of boxes, sorted."""
        if self._contents.objects is None:
            return pa.array([], pa.string())
        text = "SELECT DISTINCT labels[1] AS label FROM chosen"
        labels = self._contents.objects.values(text, "labels")["label"].combine_chunks()
        return labels.take(pc.sort_indices(labels))

    def box_counts(self, columns: Sequence[str]) -> Mapping[str, int]:
        """Return, by column, the number of boxes whose value is neither null nor false."""
        if self._contents.objects is None:
            return dict.fromkeys(columns, 0)
        counts = ", ".join(f"{_COUNTS[name]} AS {name}" for name in columns)
        rows: list[dict[str, int]] = self._contents.objects.values(f"SELECT {counts} FROM chosen", *columns).to_pylist()
        return rows[0]

    def highest_id(self, pattern: str) -> int:
        """Return the highest original id that matches a regular expression, or 0."""
        if self._contents.objects is None:
            return 0
        highest = "max(TRY_CAST(original_id AS BIGINT)) AS highest"
        text = f"SELECT {highest} FROM chosen WHERE regexp_matches(original_id, '{pattern}')"
        return self._contents.objects.values(text, "original_id")["highest"][0].as_py() or 0
