"""What an enrichment does to objects: encode those that there are anew, and find others by a detector."""

import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from framedex.annotations.boxes import Box
from framedex.encoders import Encoder
from framedex.enrichers import Captioner, Detector
from framedex.enrichers.found_boxes import found_boxes
from framedex.errors import Unavailable
from framedex.jobs.context import JobContext
from framedex.jobs.enrich.columns import write_embeddings, write_model_captions
from framedex.jobs.index.index import index
from framedex.jobs.objects.objects import ObjectChange, object_ids, roll_back_objects, settled
from framedex.jobs.objects.rows import ObjectRows, Row, columns_of
from framedex.media.decode import Picture
from framedex.progress import Progress, ShareProgress
from framedex.storage import tables
from framedex.storage.media import Media
from framedex.storage.media_rows import VIDEO, index_columns_of
from framedex.storage.objects import OBJECTS, TABLES, objects_generation, objects_path
from framedex.storage.table_names import MEDIA
from framedex.storage.tables import Table


@dataclass
class ObjectRun:
    """Models at work on the objects of a dataset that is being made.

    Attributes:
        job: the new dataset; its head is that of the source, whose tables it shares.
        media: the media, where the source has them.
        version: of the table of objects as it is now; 0 for none.
    """

    job: JobContext
    media: Media
    version: int = 0
    _is_indexed: bool = True

    def __post_init__(self) -> None:
        """Begin with the objects that the source has."""
        self.version = roll_back_objects(self.job)

    @property
    def path(self) -> Path:
        """The folder of the table of objects."""
        return objects_path(self.job.table)

    @property
    def _objects(self) -> Media:
        """The objects as they are now, and where their pictures are."""
        return replace(self.media, table=Table(self.path, self.version), parents=self.media, columns=None, found={})

    def encode(self, encoder: Encoder, progress: ShareProgress) -> None:
        """Write new embeddings of the objects that there are, beside what is known of them; their index goes."""
        if not self.version:
            return
        table = Table(self.path, self.version)
        self.version = tables.drop_columns(table, index_columns_of(table.schema.names))
        objects, settings = self._objects, self.job.settings
        self.version = write_embeddings(objects.table, objects, encoder, settings, progress)
        self._is_indexed = False

    def detect(self, detector: Detector, model_id: str, encoder: Encoder, progress: ShareProgress) -> None:
        """Write the objects that a detector finds in pictures and frames behind those that there are.

        Args:
            detector: finds them.
            model_id: its id, by which its objects are told from others.
            encoder: makes the embeddings of the new dataset.
            progress: called with the share that is done; raises to stop.

        Raises:
            Unavailable: no picture at all could be read.
        """
        seen = threading.Event()

        def find(row: Row, picture: Picture | None) -> list[Box]:
            if picture is None:
                return []
            seen.set()
            return found_boxes(detector, picture, row["path"])

        rows = ObjectRows(encoder, self.job.settings, self.job.namespace, find, model_id, object_ids(self.job))
        total = max(self.media.table.count(), 1)
        written = rows.write(
            self.path, self.media, self._pictures(), progress=lambda done: progress(min(done / total, 1.0))
        )
        if not seen.is_set():
            raise Unavailable(f"none of the {total:,} pictures could be read")
        self.version, self._is_indexed = written or self.version, self._is_indexed and not written

    def _pictures(self) -> Iterator[dict[str, Any]]:
        for batch in self.media.table.scan(columns_of(self.media)):
            yield from (row for row in batch.to_pylist() if row.get("kind") != VIDEO)

    def caption(self, captioner: Captioner, progress: ShareProgress) -> None:
        """Write captions of the objects that have none of people's."""
        if self.version:
            objects, settings = self._objects, self.job.settings
            self.version = write_model_captions(objects.table, objects, captioner, settings, progress, replaces=False)

    def settled(self, progress: Progress) -> ObjectChange | None:
        """Index the objects anew if they or their embeddings are new; return what was written, None for nothing."""
        head = objects_generation(self.job.head)
        known: dict[str, Any] = self.job.head.summary.get(OBJECTS, {})
        if not self.version or (self._is_indexed and head is None):
            return None
        if self._is_indexed and head is not None:
            names = {name: version for name, version in head.tables.items() if name in TABLES}
            return ObjectChange({**names, MEDIA: self.version}, known)
        table, thresholds = Table(self.path, self.version), self.job.config.thresholds
        free = known.get("first_free")
        return settled(
            self.job,
            index(table, thresholds, progress=progress, first_free=free, cannot_link=self.job.cannot_link),
            self.path,
        )
