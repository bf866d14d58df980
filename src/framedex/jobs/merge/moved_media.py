"""MovedMedia of the media of a dataset within another one: what both have, and the places and ids of the rest."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from framedex.core.ids import frame_id, media_id
from framedex.media.files import below
from framedex.storage.media_rows import ID_LOCATION, VIDEO_FRAME, path_of_text, text_of_path
from framedex.storage.schema import BLOBS_ROOT
from framedex.storage.table_versions import Table

Rows = npt.NDArray[np.int64]
NEW, GONE = -1, -2
"""The rows of media that only the second dataset has, and of those that are left out."""
_COLUMNS = ("path", "path_raw", "root", "content_hash", "kind", "frame_number", "video_id", ID_LOCATION.name)
_SEPARATOR = "\0"


@dataclass(frozen=True)
class PlacedRoots:
    """The source roots of a dataset among those of another one.

    Attributes:
        roots: the roots of both.
        numbers: the number there of each root of the second dataset.
        prefixes: the prefix there of paths below each: empty, or a folder and a slash.
        used: the locations of the first dataset from which ids are computed of files that are elsewhere now.
    """

    roots: tuple[str, ...]
    numbers: tuple[int, ...]
    prefixes: tuple[str, ...]
    used: frozenset[str] = frozenset()

    @classmethod
    def of(cls, first: Sequence[str], second: Sequence[str], *, are_files: bool) -> "PlacedRoots":
        """Place the roots of a dataset.

        Uploads get a root of their own, because different uploads can have the same name.

        Args:
            first: the roots of the first dataset.
            second: those of the second one.
            are_files: whether paths below a root of a folder are below each folder that contains it; paths of tables of
                embeddings stay as they are.
        """
        roots, numbers, prefixes = list(first), list[int](), list[str]()
        for root in second:
            ways = [_way(each, root, are_files=are_files) for each in first]
            number = next((number for number, way in enumerate(ways) if way is not None), len(roots))
            if number == len(roots):
                roots.append(root)
                ways.append("")
            way = ways[number] if number < len(ways) else ""
            numbers.append(number)
            prefixes.append(f"{way}/" if way else "")
        return cls(tuple(roots), tuple(numbers), tuple(prefixes))

    def place(self, path: str, root: int | None) -> tuple[str, int | None]:
        """Return a path and the number of its root in the new dataset."""
        return (path, None) if root is None else (self.prefixes[root] + path, self.numbers[root])


def _way(existing: str, root: str, *, are_files: bool) -> str | None:
    if BLOBS_ROOT in (root, existing):
        return None
    return below(existing, root) if are_files else "" if existing == root else None


@dataclass(frozen=True)
class MovedMedia:
    """The media of a second dataset in the merged one.

    Attributes:
        old_ids: their media ids there, in row order.
        new_ids: their ids in the merged dataset; null for those that are left out.
        same: int64, shape (N,): the row of the first dataset that is the same item; NEW or GONE for others.
        changed: the number of files that are left out because the first dataset has them with other content.
    """

    old_ids: pa.Array
    new_ids: pa.Array
    same: Rows
    changed: int

    def moved(self, ids: pa.Array) -> pa.Array:
        """Return the new ids of media that are given by their old ones; null for those that are left out."""
        return self.new_ids.take(pc.index_in(ids, value_set=self.old_ids))


def find_moved(
    first: Table,
    second: Table,
    roots: tuple[Sequence[str], Sequence[str]],
    placed: PlacedRoots,
    namespaces: tuple[str, str],
    progress: Callable[[float], None],
) -> MovedMedia:
    """Find the media that two datasets have in common, and return the ids of the others in the merged dataset.

    Items are the same if their location and their content are. A file that the first dataset has with other content is
    left out, except for uploads, whose names are no locations. Frames of a video that the first dataset has are left
    out, too, if it has other frames of it.

    Args:
        first: the media table of the first dataset.
        second: that of the second one.
        roots: the source roots of both.
        placed: those of the second dataset among those of the first one.
        namespaces: the dataset ids from which the media ids of both are computed.
        progress: called with the share that is done; raises to stop.
    """
    own, other = (_keys(table, each) for table, each in zip((first, second), roots, strict=True))
    same = np.asarray(pc.fill_null(pc.index_in(other.items, value_set=own.items), NEW)).astype(np.int64)
    known_videos = np.asarray(pc.is_in(other.videos, value_set=own.videos.drop_null()))
    progress(0.2)
    found = np.flatnonzero(same >= 0)
    is_equal = _equal(own.hashes.take(pa.array(same[found])), other.hashes.take(pa.array(found)))
    is_upload = np.asarray(other.is_upload)
    differ = found[~is_equal]
    same[differ] = np.where(is_upload[differ], NEW, GONE)
    same[(same == NEW) & known_videos & ~is_upload] = GONE
    first_ids = first.scan(["media_id"]).read_all().column(0).combine_chunks()
    old_ids = second.scan(["media_id"]).read_all().column(0).combine_chunks()
    ids: list[str | None] = first_ids.take(pa.array(np.maximum(same, 0))).to_pylist() if len(first_ids) else []
    ids = ids or [None] * len(old_ids)
    names = old_ids.to_pylist()
    for row, start in _rows(second):
        number = start
        if same[number] == NEW:
            ids[number] = _new_id(row, names[number], placed, namespaces)
        elif same[number] == GONE:
            ids[number] = None
        if number % 8192 == 0:
            progress(0.2 + 0.8 * number / max(len(names), 1))
    return MovedMedia(old_ids, pa.array(ids, pa.string()), same, len(set(differ[same[differ] == GONE].tolist())))


@dataclass(frozen=True)
class _Keys:
    """Identities of the rows of a table: texts of the location of the item and of its video, and the content."""

    items: pa.Array
    videos: pa.Array
    hashes: pa.Array
    is_upload: pa.Array


def _keys(table: Table, roots: Sequence[str]) -> _Keys:
    names = [each for each in _COLUMNS if each in table.schema.names]
    columns = {name: column.combine_chunks() for name, column in _read(table, names).items()}
    count = table.count()
    shown = pa.array([*(f"{each}{os.sep}" if each != BLOBS_ROOT else each for each in roots), ""], pa.string())
    root = pc.fill_null(columns["root"], len(roots))
    places = pc.binary_join_element_wise(shown.take(root), columns["path"], "")
    frames = columns.get("frame_number", pa.nulls(count, pa.int64())).cast(pa.string())
    items = pc.binary_join_element_wise(places, pc.fill_null(frames, ""), _SEPARATOR)
    is_video = columns.get("kind", pa.nulls(count, pa.string())).is_valid()
    is_upload = pc.equal(shown.take(root), BLOBS_ROOT)
    return _Keys(items, pc.if_else(is_video, places, None), columns["content_hash"], is_upload)


def _read(table: Table, names: Sequence[str]) -> dict[str, Any]:
    found = table.scan(list(names)).read_all()
    return {name: found.column(name) for name in names}


def _equal(one: pa.Array, other: pa.Array) -> npt.NDArray[np.bool_]:
    """Return whether values are equal, null included."""
    both_null = pc.and_(one.is_null(), other.is_null())
    return np.asarray(pc.or_(pc.fill_null(pc.equal(one, other), fill_value=False), both_null))


def _rows(table: Table) -> Any:
    """Yield the columns of each row about its location, and its number."""
    names = [each for each in _COLUMNS if each in table.schema.names]
    number = 0
    for batch in table.scan(names):
        for row in batch.to_pylist():
            yield row, number
            number += 1


def _new_id(row: dict[str, Any], old: str, placed: PlacedRoots, namespaces: tuple[str, str]) -> str:
    """Return the id of an item in the merged dataset: computed from its location there, as an addition computes it."""
    path, root = path_of_text(row["path"], row["path_raw"]), row["root"]
    place, number = placed.place(path, root)
    if (origin := new_origin(row, old, placed)) is not None:
        return _id(namespaces[0], origin, row, is_frame=row.get("kind") == VIDEO_FRAME)
    recipes: list[tuple[str, str]] = [(_location(path, root), _location(place, number)), (path, place)]
    is_frame = row.get("kind") == VIDEO_FRAME
    for before, after in recipes:
        if _id(namespaces[1], before, row, is_frame=is_frame) == old:
            return _id(namespaces[0], after, row, is_frame=is_frame)
    return media_id(namespaces[0], old)  # of a dataset that computed ids otherwise


def new_origin(row: Mapping[str, Any], old: str, placed: PlacedRoots) -> str | None:
    """Return the text from which the id of an item in the merged dataset is computed; None if that is its location.

    It is the old id of the item, or of its video, if the file was moved, or if the first dataset has the id of its
    location for another file, which was moved.
    """
    path, number = placed.place(path_of_text(row["path"], row["path_raw"]), row["root"])
    is_moved = row.get(ID_LOCATION.name) is not None or _location(path, number) in placed.used
    return (row.get("video_id") or old) if is_moved else None


def _location(path: str, root: int | None) -> str:
    return f"{root}{_SEPARATOR}{path}" if root else path


def _id(namespace: str, location: str, row: dict[str, Any], *, is_frame: bool) -> str:
    return frame_id(namespace, location, row["frame_number"]) if is_frame else media_id(namespace, location)


def moved_video_id(row: dict[str, Any], placed: PlacedRoots, namespaces: tuple[str, str]) -> str:
    """Return the id of a video in the merged dataset."""
    return _new_id({**row, "kind": None}, row["video_id"], placed, namespaces)


def placed_paths(batch: pa.RecordBatch, placed: PlacedRoots) -> dict[str, pa.Array]:
    """Return the columns ``path``, ``path_raw`` and ``root`` of rows in the merged dataset."""
    columns = [batch.column(name).to_pylist() for name in ("path", "path_raw", "root")]
    paths, raws, roots = list[str](), list[bytes | None](), list[int | None]()
    for text, raw, root in zip(*columns, strict=True):
        path, number = placed.place(path_of_text(text, raw), root)
        shown, its_raw = text_of_path(path)
        paths.append(shown)
        raws.append(its_raw)
        roots.append(number)
    return {
        "path": pa.array(paths, pa.string()),
        "path_raw": pa.array(raws, pa.binary()),
        "root": pa.array(roots, pa.int32()),
    }
