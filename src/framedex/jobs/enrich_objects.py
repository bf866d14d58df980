"""What an enrichment does to objects: encode those that there are anew, and find others by a detector."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from framedex.encoders import Encoder
from framedex.enrichers import Detector
from framedex.enrichers.found_boxes import found_boxes
from framedex.jobs.base import Base
from framedex.jobs.index import Tell, index
from framedex.jobs.ingest import batch_of, checked, vectors_to_arrow
from framedex.jobs.object_rows import ObjectRows, Row, columns_of
from framedex.jobs.objects import ObjectChange, begin, known_objects, settled
from framedex.jobs.picture_pass import Seen, gathered, look
from framedex.media.boxes import Box
from framedex.media.decode import Picture
from framedex.storage import tables
from framedex.storage.media import Media
from framedex.storage.media_rows import INDEX_SCHEMA, VIDEO
from framedex.storage.objects import OBJECTS, objects_of, objects_path
from framedex.storage.tables import Table

Progress = Callable[[float], None]


@dataclass
class ObjectRun:
    """Models at work on the objects of a dataset that is being made.

    Attributes:
        base: the new dataset; its head is that of the source, whose tables it shares.
        media: the media, where the source has them.
        version: of the table of objects as it is now; 0 for none.
    """

    base: Base
    media: Media
    version: int = 0

    def __post_init__(self) -> None:
        """Begin with the objects that the source has."""
        self.version = begin(self.base)

    @property
    def path(self) -> Path:
        """The folder of the table of objects."""
        return objects_path(self.base.table)

    def encode(self, encoder: Encoder, progress: Progress) -> None:
        """Write new embeddings of the objects that there are, beside what is known of them; their index goes."""
        objects = objects_of(self.media)
        if objects is None:
            return
        table = Table(self.path, tables.drop_columns(Table(self.path, self.version), INDEX_SCHEMA.names))
        self.version = put_embeddings(table, objects, encoder, self.base, progress)

    def detect(self, detector: Detector, model_id: str, encoder: Encoder, progress: Progress) -> None:
        """Write the objects that a detector finds in pictures and frames behind those that there are.

        Args:
            detector: finds them.
            model_id: its id, by which its objects are told from others.
            encoder: makes the embeddings of the new dataset.
            progress: called with the share that is done; raises to stop.
        """

        def find(row: Row, picture: Picture | None) -> list[Box]:
            return [] if picture is None else found_boxes(detector, picture, row["path"])

        rows = ObjectRows(
            encoder, self.base.settings, self.base.namespace, find, model_id, known_objects(self.base)
        )
        total = max(self.media.table.count(), 1)
        written = rows.write(
            self.path, self.media, self._pictures(), progress=lambda done: progress(min(done / total, 1.0))
        )
        self.version = written or self.version

    def _pictures(self) -> Iterator[dict[str, Any]]:
        for batch in self.media.table.scan(columns_of(self.media)):
            yield from (row for row in batch.to_pylist() if row.get("kind") != VIDEO)

    def index(self, tell: Tell) -> ObjectChange | None:
        """Index the objects anew; return what was written, None if there are none."""
        if not self.version or not (table := Table(self.path, self.version)).count():
            return None
        free = self.base.head.summary.get(OBJECTS, {}).get("first_free")
        found = index(table, self.base.config.thresholds, tell=tell, first_free=free, apart=self.base.apart)
        return settled(self.base, found, self.path)


def put_embeddings(table: Table, media: Media, encoder: Encoder, base: Base, progress: Progress) -> int:
    """Write new embeddings of media or objects, and why one has none; return the version of the table.

    Args:
        table: without an index.
        media: the rows of the table, and where their pictures are.
        encoder: makes the embeddings.
        base: the dataset.
        progress: called with the share that is done; raises to stop.
    """
    field = pa.field("embedding", pa.list_(pa.float32(), encoder.dimension))
    schema = pa.schema([field, table.schema.field("error")])
    seen = look(
        media,
        encoder,
        lambda batch: checked(encoder, encoder.encode_images(batch), len(batch)),
        batch=batch_of(encoder),
        settings=base.settings,
        progress=progress,
    )

    def batches() -> Iterator[pa.RecordBatch]:
        for group in gathered(seen):
            vectors = vectors_to_arrow([each.found for each in group], encoder.dimension)
            yield pa.RecordBatch.from_arrays([vectors, _errors(group)], schema=schema)

    return tables.put_columns(table, batches(), schema)


def _errors(group: list[Seen]) -> pa.Array:
    return pa.array([each.error for each in group], pa.string())
