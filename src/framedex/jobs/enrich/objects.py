"""Enrichment of objects: new embeddings, a detector's objects, and captions."""

import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from framedex.annotations.boxes import Box
from framedex.core.counts import counted
from framedex.core.progress import Progress, ShareProgress
from framedex.encoders import Encoder
from framedex.enrichers import Captioner, Detector
from framedex.enrichers.detected_boxes import detected_boxes
from framedex.errors import Unavailable
from framedex.jobs.context import JobContext
from framedex.jobs.enrich.columns import write_embeddings, write_model_captions
from framedex.jobs.index.index import index
from framedex.jobs.index.resources import IndexResources
from framedex.jobs.objects.objects import ObjectChange, finish_objects, object_ids, roll_back_objects
from framedex.jobs.objects.rows import ObjectRows, Row, columns_of
from framedex.media.decoded_image import DecodedImage
from framedex.storage import tables
from framedex.storage.generation import ObjectSummary
from framedex.storage.media import Media
from framedex.storage.media_rows import VIDEO, index_columns_of
from framedex.storage.objects import TABLES, objects_generation, objects_path
from framedex.storage.table_names import MEDIA
from framedex.storage.table_versions import Table


@dataclass
class ObjectRun:
    """Application of models to the objects of a new dataset.

    Attributes:
        job: the new dataset; its head is that of the source, with which it shares tables.
        media: the media of the source.
        version: current version of the table of objects; 0 for none.
    """

    job: JobContext
    media: Media
    version: int = 0
    _is_indexed: bool = True

    def __post_init__(self) -> None:
        """Start with the objects of the source."""
        self.version = roll_back_objects(self.job)

    @property
    def path(self) -> Path:
        """The folder of the table of objects."""
        return objects_path(self.job.table)

    @property
    def _objects(self) -> Media:
        """The current objects, with the locations of their images."""
        return replace(self.media, table=Table(self.path, self.version), parents=self.media, columns=None, row_id_of={})

    def encode(self, encoder: Encoder, progress: ShareProgress) -> None:
        """Write new embeddings of existing objects and drop their index."""
        if not self.version:
            return
        table = Table(self.path, self.version)
        self.version = tables.drop_columns(table, index_columns_of(table.schema.names))
        objects, settings = self._objects, self.job.settings
        self.version = write_embeddings(objects.table, objects, encoder, settings, progress)
        self._is_indexed = False

    def detect(self, detector: Detector, model_id: str, encoder: Encoder, progress: ShareProgress) -> None:
        """Append the objects that a detector finds in images and video frames.

        Args:
            detector: finds the objects.
            model_id: id of the detector, stored as the objects' source.
            encoder: encoder of the new dataset.
            progress: called with the share that is done; raises to stop.

        Raises:
            Unavailable: no image could be read.
        """
        any_read = threading.Event()

        def find(row: Row, image: DecodedImage | None) -> list[Box]:
            if image is None:
                return []
            any_read.set()
            return detected_boxes(detector, image, row["path"])

        rows = ObjectRows(encoder, self.job.settings, self.job.namespace, find, model_id, object_ids(self.job))
        total = max(self.media.table.count(), 1)
        written = rows.write(
            self.path, self.media, self._images(), progress=lambda done: progress(min(done / total, 1.0))
        )
        if not any_read.is_set():
            raise Unavailable(f"no image could be read: {counted(total, 'images')} failed")
        self.version, self._is_indexed = written or self.version, self._is_indexed and not written

    def _images(self) -> Iterator[dict[str, Any]]:
        for batch in self.media.table.scan(columns_of(self.media)):
            yield from (row for row in batch.to_pylist() if row.get("kind") != VIDEO)

    def caption(self, captioner: Captioner, progress: ShareProgress) -> None:
        """Write captions of objects that have no caption written by people."""
        if self.version:
            objects, settings = self._objects, self.job.settings
            self.version = write_model_captions(objects.table, objects, captioner, settings, progress, replaces=False)

    def finish_objects(self, progress: Progress) -> ObjectChange | None:
        """Index the objects if they or their embeddings are new; return the change, None if nothing was written."""
        head = objects_generation(self.job.head)
        summary = self.job.head.summary.objects or ObjectSummary()
        if not self.version or (self._is_indexed and head is None):
            return None
        if self._is_indexed and head is not None:
            names = {name: version for name, version in head.tables.items() if name in TABLES}
            return ObjectChange({**names, MEDIA: self.version}, summary)
        table, thresholds = Table(self.path, self.version), self.job.config.thresholds
        free = summary.first_free
        return finish_objects(
            self.job,
            index(
                table,
                thresholds,
                progress=progress,
                first_free=free,
                cannot_link=self.job.cannot_link,
                limits=self.job.limits,
                resources=IndexResources.of(self.job),
            ),
            self.path,
        )
