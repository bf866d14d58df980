"""Objects that annotation files have in the media that a job reads."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from framedex.annotations.box_index import BoxIndex
from framedex.annotations.boxes import Box
from framedex.encoders import Encoder
from framedex.jobs.context import JobContext
from framedex.jobs.ingest.placement import SourcePlacement
from framedex.jobs.objects.objects import Write
from framedex.jobs.objects.rows import ObjectRows, Row, columns_of
from framedex.media.decode import Picture
from framedex.storage.id_index import IdIndex
from framedex.storage.media import Media
from framedex.storage.media_rows import path_of_text
from framedex.storage.sql import Sql
from framedex.storage.table_names import MEDIA
from framedex.storage.tables import Table
from framedex.storage.videos import VIDEOS


def annotation_writer(
    boxes: BoxIndex,
    job: JobContext,
    encoder: Encoder,
    *,
    versions: Mapping[str, int],
    roots: Sequence[str],
    roles: Mapping[str, str],
    first: int = 0,
    placement: SourcePlacement | None = None,
    existing: IdIndex | None = None,
) -> Write:
    """Return what writes the objects in the pictures of a media table that have boxes.

    Args:
        boxes: by the pictures' paths.
        job: what the job starts from.
        encoder: makes the embeddings of the dataset.
        versions: of the media table, and of that of videos if there is one.
        roots: source roots, by number.
        roles: roles to assume for objects in buckets, by the number of their root.
        first: the first row of the media table that is looked at.
        place: where the pictures belong that the paths are of; None where paths are those of the dataset.
        known: objects that are there already.
    """
    table = Table(job.table, versions[MEDIA])
    head = job.head.model_copy(
        update={"tables": {**job.head.tables, **versions}, "summary": {**job.head.summary, "roles": roles}}
    )
    media = Media(job.dataset_id, head, table, Sql(), tuple(roots))
    lookup = _BoxLookup(boxes, placement)
    rows = ObjectRows(encoder, job.settings, job.namespace, lookup.boxes_in, existing=existing)

    def write(path: Path, progress: Callable[[float], None]) -> int:
        total = max(boxes.pictures, 1)
        return rows.write(
            path, media, lookup.rows(media, first), progress=lambda done: progress(min(done / total, 1.0))
        )

    return write


def media_versions(version: int, of_videos: int) -> dict[str, int]:
    """Return versions of a media table and of that of videos, 0 for none, by their names."""
    return {MEDIA: version, **({VIDEOS: of_videos} if of_videos else {})}


class _BoxLookup:
    """Finds boxes by the rows of media.

    Args:
        boxes: by path.
        place: see :func:`writer`.
    """

    def __init__(self, boxes: BoxIndex, placement: SourcePlacement | None) -> None:
        self._boxes, self._placement = boxes, placement

    def rows(self, media: Media, first: int) -> Iterator[dict[str, Any]]:
        """Yield the rows of pictures that have boxes, from a row on; frames of videos have none."""
        start = 0
        for batch in media.table.scan(columns_of(media)):
            if start + batch.num_rows > first:
                for row in batch.slice(max(first - start, 0)).to_pylist():
                    if row.get("kind") is None and self._boxes.has(self._path(row)):
                        yield row
            start += batch.num_rows

    def boxes_in(self, row: Row, picture: Picture | None) -> list[Box]:
        """Return the boxes in a picture, by the size that the table has of it, or else its own."""
        size = row["width"], row["height"]
        if None in size and picture is not None:
            size = picture.width, picture.height
        return self._boxes.find(self._path(row), None if None in size else size)

    def _path(self, row: Row) -> str:
        path = path_of_text(row["path"], row["path_raw"])
        if self._placement is None or row["root"] != self._placement.root:
            return path
        return path.removeprefix(self._placement.prefix)
