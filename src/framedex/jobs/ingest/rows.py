"""Rows of decoded files, and their Arrow batches: made where the table is written, by the job or by a worker."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from framedex.core.arrays import Vectors
from framedex.jobs.ingest.decoding import DecodedFile, DecodedVideo, is_video_item
from framedex.jobs.ingest.measuring import no_measures
from framedex.jobs.ingest.placement import SourcePlacement
from framedex.media.sources import Item
from framedex.storage.media_rows import (
    COPY_DESCRIPTOR,
    DAMAGED,
    LOCAL_FEATURES,
    N_PAGES,
    OF_RANGE,
    PANEL_DESCRIPTORS,
    VIDEO,
    VIDEO_FRAME,
    text_of_path,
    time_of_ns,
)

_NOT_DESCRIBED = {COPY_DESCRIPTOR: None, PANEL_DESCRIPTORS: None, LOCAL_FEATURES: None}


@dataclass(frozen=True)
class IngestedRows:
    """Rows of decoded files; pickled for workers that make them.

    Attributes:
        dataset_id: the dataset.
        placement: source root and batch of the files.
    """

    dataset_id: str
    placement: SourcePlacement

    def id_of(self, item: Item, frame_number: int | None = None) -> str:
        """Return the id of an image, a video, or a frame."""
        placement = self.placement.of(item)
        if frame_number is None:
            return placement.media_id(self.dataset_id, item.path)
        return placement.frame_id(self.dataset_id, item.path, frame_number)

    def media(self, decoded: DecodedFile, vector: Vectors | None) -> dict[str, Any]:
        """Return the media row of an image, of a frame, or of a video without frames."""
        item = decoded.item
        kind = None
        if is_video_item(item):
            kind = VIDEO if decoded.frame_number is None else VIDEO_FRAME
        return {
            **self._file(decoded),
            "media_id": self.id_of(item, decoded.frame_number),
            "format": decoded.format,
            "width": decoded.width,
            "height": decoded.height,
            **dict(zip(OF_RANGE.names, decoded.shown or (None, None), strict=True)),
            N_PAGES.name: decoded.pages if decoded.pages > 1 else None,
            "labels": list(dict.fromkeys(item.labels)) or None,
            "caption": item.caption or None,
            "error": decoded.error,
            "fault": decoded.fault if decoded.gaps is None else DAMAGED,
            "gaps": decoded.gaps,
            **(decoded.measures or no_measures()),
            "kind": kind,
            "video_id": None if kind is None else self.id_of(item),
            "frame_number": decoded.frame_number,
            "frame_time_s": decoded.frame_time_s,
            "embedding": vector,
            **(decoded.of_copies or _NOT_DESCRIBED),
        }

    def video(self, video: DecodedVideo) -> dict[str, Any]:
        """Return the row of a video in the table of videos."""
        return {
            **self._file(video.file),
            "video_id": self.id_of(video.file.item),
            "container": video.container,
            "codec": video.codec,
            "duration_s": video.duration_s,
            "fps": video.fps,
            "width": video.width,
            "height": video.height,
            "frames": video.frames,
            "kept_frames": video.kept_frames,
            "error": video.file.error,
        }

    def _file(self, decoded: DecodedFile) -> dict[str, Any]:
        placement = self.placement.of(decoded.item)
        text, raw = text_of_path(placement.prefix + decoded.item.path)
        return {
            "path": text,
            "path_raw": raw,
            "root": placement.root,
            "batch": placement.batch,
            "size_bytes": decoded.size_bytes,
            "modified_at": None if decoded.modified_ns is None else time_of_ns(decoded.modified_ns),
            "content_hash": decoded.digest,
        }


def rows_to_batch(rows: list[dict[str, Any]], schema: pa.Schema) -> pa.RecordBatch:
    """Return rows as a record batch; embeddings are numpy vectors or None."""
    columns = []
    for field in schema:
        values = [row[field.name] for row in rows]
        if field.name in (COPY_DESCRIPTOR, "embedding"):
            columns.append(vectors_to_arrow(values, field.type.list_size))
        elif field.name == PANEL_DESCRIPTORS:
            columns.append(lists_to_arrow(values))
        else:
            columns.append(pa.array(values, field.type))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def vectors_to_arrow(vectors: list[npt.NDArray[np.float32] | None], dimension: int) -> pa.FixedSizeListArray:
    """Return vectors as an Arrow column, without a Python object for each value."""
    flat = np.zeros((len(vectors), dimension), dtype=np.float32)
    missing = np.ones(len(vectors), dtype=bool)
    for row, vector in enumerate(vectors):
        if vector is not None:
            flat[row], missing[row] = vector, False
    return pa.FixedSizeListArray.from_arrays(pa.array(flat.ravel()), dimension, mask=pa.array(missing))


def lists_to_arrow(lists: list[npt.NDArray[np.float32] | None]) -> pa.ListArray:
    """Return arrays of any length as an Arrow column, without a Python object for each value."""
    lengths = [0 if each is None else each.size for each in lists]
    offsets = np.cumsum([0, *lengths], dtype=np.int32)
    missing = np.array([each is None for each in lists], dtype=bool)
    flat = np.empty(int(offsets[-1]), dtype=np.float32)
    for start, each in zip(offsets.tolist(), lists, strict=False):
        if each is not None:
            flat[start : start + each.size] = each.ravel()
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(flat), mask=pa.array(missing))
