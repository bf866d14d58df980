"""Objects from annotation files, for the media that a job reads."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from framedex.annotations.box_index import BoxIndex
from framedex.annotations.boxes import Box
from framedex.encoders import Encoder
from framedex.jobs.context import JobContext
from framedex.jobs.ingest.image_ids import media_paths
from framedex.jobs.ingest.placement import SourcePlacement, path_in_source
from framedex.jobs.objects.objects import WriteObjects
from framedex.jobs.objects.rows import ObjectRows, Row, columns_of
from framedex.media.decoded_image import DecodedImage
from framedex.storage.generation import Summary
from framedex.storage.id_index import IdIndex
from framedex.storage.media import Media
from framedex.storage.sql import Sql
from framedex.storage.table_names import MEDIA
from framedex.storage.table_versions import Table
from framedex.storage.videos import VIDEOS


def annotation_writer(
    boxes: BoxIndex,
    job: JobContext,
    encoder: Encoder,
    *,
    versions: Mapping[str, int],
    roots: Sequence[str],
    roles_of: Summary,
    first: int = 0,
    placement: SourcePlacement | None = None,
    existing: IdIndex | None = None,
) -> WriteObjects:
    """Return a function that writes the objects of annotated images in a media table.

    Args:
        boxes: bounding boxes by the path of their image.
        job: the dataset.
        encoder: the dataset's encoder.
        versions: of the media table, and of the table of videos if there is one.
        roots: source roots, by number.
        roles_of: has the roles to assume for reading remote objects.
        first: first row of the media table to read.
        placement: placement of the annotated paths; None if they are relative to the dataset's own roots.
        existing: objects that the dataset has already.
    """
    table = Table(job.table, versions[MEDIA])
    summary = job.head.summary.with_roles_of(roles_of)
    head = job.head.model_copy(update={"tables": {**job.head.tables, **versions}, "summary": summary})
    media = Media(job.dataset_id, head, table, Sql(), tuple(roots))
    boxes.find_images(lambda: media_paths(table, placement), several_roots=placement is None)
    lookup = _BoxLookup(boxes, placement)
    rows = ObjectRows(encoder, job.settings, job.namespace, lookup.boxes_in, existing=existing)

    def write(path: Path, progress: Callable[[float], None]) -> int:
        total = max(boxes.n_images, 1)
        return rows.write(
            path, media, lookup.rows(media, first), progress=lambda done: progress(min(done / total, 1.0))
        )

    return write


def media_versions(version: int, of_videos: int) -> dict[str, int]:
    """Return the versions of the tables of media and videos by name, without tables of version 0."""
    return {MEDIA: version, **({VIDEOS: of_videos} if of_videos else {})}


class _BoxLookup:
    """Lookup of bounding boxes by media rows.

    Args:
        boxes: by path.
        placement: see :func:`annotation_writer`.
    """

    def __init__(self, boxes: BoxIndex, placement: SourcePlacement | None) -> None:
        self._boxes, self._placement = boxes, placement

    def rows(self, media: Media, first: int) -> Iterator[dict[str, Any]]:
        """Yield the rows of images with boxes, starting at a row; video frames have none."""
        start = 0
        for batch in media.table.scan(columns_of(media)):
            if start + batch.num_rows > first:
                for row in batch.slice(max(first - start, 0)).to_pylist():
                    path = path_in_source(row, self._placement)
                    if row.get("kind") is None and path is not None and self._boxes.has(path):
                        yield row
            start += batch.num_rows

    def boxes_in(self, row: Row, image: DecodedImage | None) -> list[Box]:
        """Return the boxes in an image, by its size in the table, or else its decoded size."""
        size = row["width"], row["height"]
        if None in size and image is not None:
            size = image.width, image.height
        path, orientation = path_in_source(row, self._placement) or "", 1 if image is None else image.orientation
        return self._boxes.find(path, None if None in size else size, orientation)
