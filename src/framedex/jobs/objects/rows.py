"""Rows of objects: crops of bounding boxes, measured and encoded."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from framedex.annotations.boxes import Box
from framedex.core.ids import object_id
from framedex.encoders import Encoder
from framedex.errors import CannotDecode
from framedex.issue_types import BLUR
from framedex.jobs.ingest.encoding import check_encoding
from framedex.jobs.ingest.image_pass import decode_rows
from framedex.jobs.ingest.ingest import batch_of
from framedex.jobs.ingest.measuring import Measures, measure_image, no_measures
from framedex.jobs.ingest.rows import rows_to_batch
from framedex.media.decoded_image import DecodedImage
from framedex.media.row_images import crop_image
from framedex.settings import Settings
from framedex.storage import tables
from framedex.storage.id_index import IdIndex
from framedex.storage.media import Media
from framedex.storage.media_rows import BOX, DAMAGED, LOCATION_OF_OBJECTS, object_schema

_COMMITTED = 8192  # rows per table version
_LEAST_SHARP_PX = 48  # of the shorter side of a crop: the blur of smaller ones is that of their size

_CHANGED = "the file has changed since it was added: add it again"

Row = Mapping[str, Any]
FindBoxes = Callable[[Row, DecodedImage | None], Iterable[Box]]
"""Returns the boxes in a media item, given its row and its image; the image is None if it cannot be read."""


@dataclass(frozen=True)
class Crop:
    """Result of reading one bounding box.

    Attributes:
        object_id: id of the object.
        box: the box.
        source: format of the annotation file, or id of the model that found the box.
        width, height: of the crop in pixels; None if it cannot be read.
        measures, prepared: quality measures, and the encoder's input; None if it cannot be read.
        error: the reason.
    """

    object_id: str
    box: Box
    source: str
    width: int | None = None
    height: int | None = None
    measures: Measures | None = None
    prepared: npt.NDArray[Any] | None = None
    error: str | None = None


@dataclass(frozen=True)
class ObjectRows:
    """Maker of object rows.

    Attributes:
        encoder: computes the embeddings of crops.
        settings: limits.
        namespace: the dataset id from which object ids are derived.
        find: returns the boxes of an image.
        source: id of the model that finds the boxes; None for the source of each box.
        existing: objects that the dataset has already; they are skipped.
    """

    encoder: Encoder
    settings: Settings
    namespace: str
    find: FindBoxes
    source: str | None = None
    existing: IdIndex | None = None

    def write(self, path: Path, media: Media, rows: Iterable[Row], *, progress: Callable[[int], None]) -> int:
        """Append the objects of some media to the table of objects; return its new version, 0 if there are no objects.

        Args:
            path: folder of the table.
            media: the dataset's media.
            rows: of these media, with the columns of :func:`columns_of`; objects are written in this order.
            progress: called with the number of media that are done; raises to stop.
        """
        schema, version = object_schema(self.encoder.dimension), 0
        pending: list[dict[str, Any]] = []
        for made in self._rows(media, rows, progress):
            pending += made
            if len(pending) >= _COMMITTED:
                version = tables.append(path, [rows_to_batch(pending, schema)], schema)
                pending = []
        if pending:
            version = tables.append(path, [rows_to_batch(pending, schema)], schema)
        return version

    def _rows(
        self, media: Media, rows: Iterable[Row], progress: Callable[[int], None]
    ) -> Iterator[list[dict[str, Any]]]:
        """Yield the rows of objects in batches."""
        results = decode_rows(
            media, rows, self._read_crops, self._failed_crops, detail=None, settings=self.settings, run_length=1
        )
        crops_of_rows: list[tuple[Row, list[Crop]]] = []
        done = 0
        with closing(results):
            for each in results:
                if each is not None:
                    crops_of_rows.append(each)
                    done += 1
                progress(done)
                if sum(len(crops) for _, crops in crops_of_rows) >= batch_of(self.encoder):
                    yield self._encoded(crops_of_rows)
                    crops_of_rows = []
        yield self._encoded(crops_of_rows)

    def _read_crops(self, row: Row, image: DecodedImage) -> tuple[Row, list[Crop]]:
        if row["width"] is not None and (row["width"], row["height"]) != (image.width, image.height):
            return self._failed_crops(row, _CHANGED)
        return row, [self._measure_crop(name, box, image) for name, box in self._new_boxes(row, self.find(row, image))]

    def _failed_crops(self, row: Row, reason: str) -> tuple[Row, list[Crop]]:
        new = self._new_boxes(row, self.find(row, None))
        return row, [Crop(name, box, self._source_of(box), error=reason) for name, box in new]

    def _source_of(self, box: Box) -> str:
        return self.source or box.source

    def _new_boxes(self, row: Row, boxes: Iterable[Box]) -> list[tuple[str, Box]]:
        """Return the boxes whose object is not in the dataset, each with the object's id."""
        counts: dict[str, int] = {}
        found: list[tuple[str, Box]] = []
        for box in boxes:
            key = _box_key(box, self.source)
            counts[key] = counts.get(key, -1) + 1
            found.append((object_id(self.namespace, row["media_id"], f"{key}\0{counts[key]}"), box))
        if self.existing is None:
            return found
        is_existing = self.existing.contains([name for name, _ in found])
        return [each for each, exists in zip(found, is_existing, strict=True) if not exists]

    def _measure_crop(self, name: str, box: Box, image: DecodedImage) -> Crop:
        try:
            part = crop_image(image, box.x, box.y, box.width, box.height)
        except CannotDecode as error:
            return Crop(name, box, self._source_of(box), error=str(error))
        prepared = self.encoder.prepare(part.pixels)
        measures = measure_image(part)
        if min(part.width, part.height) < _LEAST_SHARP_PX:
            measures[str(BLUR.column)] = 1.0
        return Crop(name, box, self._source_of(box), part.width, part.height, measures, prepared)

    def _encoded(self, crops_of_rows: list[tuple[Row, list[Crop]]]) -> list[dict[str, Any]]:
        prepared = [crop.prepared for _, crops in crops_of_rows for crop in crops if crop.prepared is not None]
        batch_size = batch_of(self.encoder)
        parts = (np.stack(prepared[start : start + batch_size]) for start in range(0, len(prepared), batch_size))
        vectors = chain.from_iterable(
            check_encoding(self.encoder, self.encoder.encode_images(part), len(part)) for part in parts
        )
        return [
            _row_of(row, crop, None if crop.prepared is None else next(vectors))
            for row, crops in crops_of_rows
            for crop in crops
        ]


def _row_of(row: Row, crop: Crop, vector: npt.NDArray[np.float32] | None) -> dict[str, Any]:
    box = crop.box
    return {
        **{name: row.get(name) for name in LOCATION_OF_OBJECTS},
        "media_id": crop.object_id,
        "width": crop.width,
        "height": crop.height,
        "labels": [box.label],
        "caption": None,
        "error": crop.error,
        "fault": None if crop.error is None else row.get("fault") or DAMAGED,
        "gaps": None,
        **(crop.measures or no_measures()),
        "embedding": vector,
        "parent_id": row["media_id"],
        **dict(zip(BOX, (box.x, box.y, box.width, box.height), strict=True)),
        "confidence": box.confidence,
        "source": crop.source,
        "original_id": box.original_id,
        "iscrowd": box.iscrowd,
        "truncated": box.truncated,
        "difficult": box.difficult,
        "attributes": box.attributes,
        **box.shape._asdict(),
    }


def _box_key(box: Box, model: str | None) -> str:
    """Return the text that identifies a box within its image; it does not depend on the annotation format.

    A box with a confidence is a prediction, and never the same object as a true box of equal sides.
    """
    text = f"{model or ''}\0{box.label}\0{box.x!r} {box.y!r} {box.width!r} {box.height!r}"
    return text if model is not None or box.confidence is None else f"{text}\0predicted"


def columns_of(media: Media) -> list[str]:
    """Return the columns of media that :meth:`ObjectRows.write` needs."""
    is_existing = set(media.table.schema.names)
    names = dict.fromkeys(["media_id", "width", "height", "error", "fault", *LOCATION_OF_OBJECTS, *media.location])
    return [name for name in names if name in is_existing]
