"""The change of the rows of files that moved, vanished, or came back; no file is read."""

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from framedex.core.arrays import Mask, RowIds
from framedex.jobs.edits.rows import read_row_ids, write_few, write_rows
from framedex.jobs.ingest.placement import location_text
from framedex.storage import tables
from framedex.storage.generation import Generation
from framedex.storage.media import Media
from framedex.storage.media_rows import ID_LOCATION, MISSING_SINCE, path_of_text, text_of_path
from framedex.storage.objects import OBJECTS, objects_path
from framedex.storage.table_names import MEDIA
from framedex.storage.table_versions import ROW_ID, Table, edited_table
from framedex.storage.videos import VIDEOS, videos_path

_PLACE = pa.schema([("path", pa.string()), ("path_raw", pa.binary()), ("root", pa.int32())])
_BESIDE = {VIDEOS: videos_path, OBJECTS: objects_path}


@dataclass(frozen=True)
class NewPlace:
    """A place of a file that moved.

    Attributes:
        root: number of the source root; None for no place, as another file is at the one that the row had.
        path: the path below the root.
    """

    root: int | None
    path: str


@dataclass(frozen=True)
class FileChanges:
    """Changes of the rows of files, by the id of the image or of the video.

    Attributes:
        places: the new places.
        missing: files that are marked as missing.
        back: files that are not missing any more.
    """

    places: Mapping[str, NewPlace]
    missing: Collection[str]
    back: Collection[str]


def change_files(media: Media, head: Generation, changes: FileChanges, *, at: datetime) -> dict[str, int]:
    """Write changes of files; return the table versions of the new generation.

    Ids stay, and with them all edits. Frames have the place of their video, and objects that of the item they are in.

    Args:
        media: the media, whose table is at its newest version.
        head: the generation that is edited.
        changes: the changes.
        at: the time with which files are marked.
    """
    versions = dict(head.tables)
    path = media.table.path
    ids = _file_ids(media)
    versions[MEDIA] = _marked(media, ids, changes, at)
    if VIDEOS in versions and changes.places:
        version = tables.roll_back(videos_path(path), versions[VIDEOS]) or versions[VIDEOS]
        videos = _beside(media, edited_table(videos_path(path), version))
        own = videos.table.scan(["video_id"]).read_all().column(0).combine_chunks()
        versions[VIDEOS] = _with_places(videos, own, changes.places, has_origins=True)
    if OBJECTS in versions and changes.places:
        version = tables.roll_back(objects_path(path), versions[OBJECTS]) or versions[OBJECTS]
        objects = _beside(media, edited_table(objects_path(path), version))
        parents = objects.table.scan(["parent_id"]).read_all().column(0).combine_chunks()
        row_of = pc.index_in(parents, value_set=media.table.scan(["media_id"]).read_all().column(0).combine_chunks())
        versions[OBJECTS] = _with_places(objects, ids.take(row_of), changes.places, has_origins=False)
    for each in (path, *(own(path) for name, own in _BESIDE.items() if versions.get(name) != head.tables.get(name))):
        tables.sync(each)
    return versions


def unmarked(path: Path, version: int, back: Collection[str]) -> int:
    """Remove the marks of files that are there again; return the new version of the media table.

    Args:
        path: folder of the media table.
        version: its newest version.
        back: ids of images and videos.
    """
    table = edited_table(path, version)
    if not back or MISSING_SINCE.name not in table.schema.names:
        return version
    names = ["media_id", MISSING_SINCE.name, *({"video_id"} & set(table.schema.names))]
    row_ids = [
        row[ROW_ID]
        for batch in table.scan(names, row_ids=True)
        for row in batch.filter(batch[MISSING_SINCE.name].is_valid()).to_pylist()
        if (row.get("video_id") or row["media_id"]) in back
    ]
    times = pa.record_batch([pa.nulls(len(row_ids), MISSING_SINCE.type)], schema=pa.schema([MISSING_SINCE]))
    written = write_few(table, np.array(row_ids, dtype=np.uint64), times)
    tables.sync(path)
    return written


def _beside(media: Media, table: Table) -> Media:
    return replace(media, table=table, columns=None)


def _file_ids(media: Media) -> pa.Array:
    """Return the id of the file of each row: of the image, or of the video."""
    if not media.has_videos:
        return media.table.scan(["media_id"]).read_all().column(0).combine_chunks()
    columns = media.table.scan(["media_id", "video_id"]).read_all()
    return pc.coalesce(columns["video_id"].combine_chunks(), columns["media_id"].combine_chunks())


def _marked(media: Media, ids: pa.Array, changes: FileChanges, at: datetime) -> int:
    """Write the places of media, and which are missing; return the version of their table."""
    version = _with_places(media, ids, changes.places, has_origins=True)
    media = replace(media, table=edited_table(media.table.path, version))
    missing, back = _rows_of(ids, changes.missing), _rows_of(ids, changes.back)
    if MISSING_SINCE.name in media.table.schema.names:  # the first time counts
        known = media.table.scan([MISSING_SINCE.name]).read_all().column(0).is_valid().to_numpy()
        missing, back = missing & ~known, back & known
    else:
        back[:] = False
    chosen = missing | back
    if not chosen.any():
        return version
    media = _with_columns(media, pa.schema([MISSING_SINCE]))
    times = pa.array([at if each else None for each in missing[chosen]], MISSING_SINCE.type)
    return _written(media, read_row_ids(media)[chosen], [times], [MISSING_SINCE.name])


def _with_columns(media: Media, schema: pa.Schema) -> Media:
    """Return the media with columns that their table may lack, which are null then."""
    lacking = [field for field in schema if field.name not in media.table.schema.names]
    if not lacking:
        return media
    version = tables.add_empty_columns(media.table, pa.schema(lacking))
    return replace(media, table=edited_table(media.table.path, version))


def _rows_of(ids: pa.Array, chosen: Collection[str]) -> Mask:
    """Return the rows of some files: bool, shape (rows,)."""
    return np.array(pc.is_in(ids, value_set=pa.array(chosen, pa.string())).to_numpy(zero_copy_only=False), dtype=bool)


def _with_places(media: Media, ids: pa.Array, places: Mapping[str, NewPlace], *, has_origins: bool) -> int:
    """Write the new places of files; return the version of the table."""
    chosen = _rows_of(ids, list(places))
    if not chosen.any():
        return media.table.version
    schema = pa.schema([*_PLACE, ID_LOCATION]) if has_origins else _PLACE
    media = _with_columns(media, schema)
    row_ids = read_row_ids(media)[chosen]
    own = ids.filter(pa.array(chosen)).to_pylist()
    texts = [text_of_path(places[each].path) for each in own]
    columns = [
        pa.array([text for text, _ in texts], pa.string()),
        pa.array([raw for _, raw in texts], pa.binary()),
        pa.array([places[each].root for each in own], pa.int32()),
    ]
    if has_origins:
        before = media.take(row_ids.tolist(), [*_PLACE.names, ID_LOCATION.name]).to_pylist()
        origins = [_origin(row, places[each]) for row, each in zip(before, own, strict=True)]
        columns.append(pa.array(origins, pa.binary()))
    return _written(media, row_ids, columns, schema.names)


def _written(media: Media, row_ids: RowIds, columns: list[pa.Array], names: Sequence[str]) -> int:
    fields = pa.schema([media.table.schema.field(name) for name in names])
    return write_rows(media, row_ids, pa.RecordBatch.from_arrays(columns, schema=fields))


def _origin(row: Mapping[str, object], place: NewPlace) -> bytes | None:
    """Return the text from which the id of a row is computed; None if that is the location of its new place."""
    raw, path, path_raw, root = (row[name] for name in (ID_LOCATION.name, *_PLACE.names))
    origin = raw
    if origin is None:
        assert isinstance(path, str), "the column has texts"
        assert isinstance(root, int), "a file without a place has an origin"
        assert path_raw is None or isinstance(path_raw, bytes), "the column has bytes"
        origin = os.fsencode(location_text(root, path_of_text(path, path_raw)))
    assert isinstance(origin, bytes), "the column has bytes"
    is_own = place.root is not None and os.fsencode(location_text(place.root, place.path)) == origin
    return None if is_own else origin
