"""Reading of a dataset's media at one generation: rows by condition, values by row id, locations of files."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote_to_bytes, urlsplit

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from framedex.core.allowed_folders import OwnPath
from framedex.core.arrays import RowIds
from framedex.core.assumed_roles import AssumedRole
from framedex.core.ids import is_id
from framedex.core.path_columns import relation_with, stored
from framedex.errors import NotFound
from framedex.storage.blobs import blob_path
from framedex.storage.column_cache import ColumnCache
from framedex.storage.condition import Condition
from framedex.storage.failures import own_errors
from framedex.storage.generation import Generation
from framedex.storage.id_index import ENTRY_BYTES, PREFIX_BYTES, IdPrefixes, RowsOfIds
from framedex.storage.media_rows import BOX, OF_RANGE, OF_VIDEOS, path_of_text
from framedex.storage.row_positions import positions_of
from framedex.storage.schema import BLOBS_ROOT
from framedex.storage.sql import Sql
from framedex.storage.table_versions import ROW_ID, Table
from framedex.storage.videos import VIDEOS

EVERYTHING = Condition()
_FEW_ROWS = 200_000  # whose columns are read as a whole for one of them
_FEW_IDS = 1000  # that are looked up one by one in a table whose ids do not fit into memory
_BLOCK_ROWS = 4096
_HELD = "_held"
_RELATION = "media"
_SPARSE = 4  # below a share of 1/4, matching rows are copied before a statement
LOCATION = ("path", "path_raw", "root", "content_hash")
"""The columns that :meth:`Media.file_of` and similar methods need."""
_OBJECT = "s3://"


@dataclass(frozen=True)
class Media:
    """A dataset's media table at one generation.

    Attributes:
        dataset_id: id of the dataset, or the id that stands for its objects.
        generation: the generation to read.
        table: the table at the generation's version.
        sql: the filter engine.
        roots: source roots by number.
        row_id_of: row ids of media that were looked up, by media id.
        columns: the cache of columns; None without a cache.
        parents: for objects, the media that contain them, see :mod:`framedex.storage.objects`; else None.
        media_url: for media that are exported for other machines, the URL of an item with ``{media_id}`` in the place
            of its id; else None.
        name_clashes: for media that are exported as files, hashes of the names that occur more than once on some
            system, see :mod:`framedex.export.file_names`; else None.
    """

    dataset_id: str
    generation: Generation
    table: Table
    sql: Sql
    roots: tuple[str, ...]
    row_id_of: Mapping[str, int] = field(default_factory=dict, repr=False, compare=False)
    columns: ColumnCache | None = field(default=None, repr=False, compare=False)
    parents: "Media | None" = field(default=None, repr=False, compare=False)
    media_url: str | None = field(default=None, repr=False, compare=False)
    name_clashes: frozenset[int] | None = field(default=None, repr=False, compare=False)

    def query(self, text: str, condition: Condition, columns: Sequence[str], *, keep: bool | None = None) -> pa.Table:
        """Return the result of a statement over the relation ``chosen``, the rows that meet a condition.

        Args:
            text: a statement over ``chosen``, which has *columns* and ``_rowid``.
            condition: the condition that rows must meet.
            columns: columns of the relation beside ``_rowid``.
            keep: cache *columns* for later statements. By default they are cached if the condition selects only some
                rows, because statements over all rows are rare.
        """
        keep = condition != EVERYTHING if keep is None else keep
        mask = self._mask(condition)
        if mask is None:
            rows, relation = self._rows(condition, columns, keep=keep)
            test, params = condition.text, condition.params
        else:
            rows, relation = self._rows_beside(mask, columns, keep=keep), _RELATION
            test, params = _HELD, ()
        chosen = f"WITH chosen AS (SELECT {', '.join([*columns, ROW_ID])} FROM {relation} WHERE {test}) "
        with own_errors(f"read {self.table.path}"):
            return self.sql.query(chosen + text, params, {**condition.relations, _RELATION: rows})

    def _mask(self, condition: Condition) -> pa.BooleanArray | None:
        """Return the mask of the rows that meet a condition; None if it is not cached."""
        if self.columns is None or not self.columns.is_on or condition.relations or condition == EVERYTHING:
            return None

        def evaluate() -> pa.BooleanArray:
            rows, relation = self._rows(condition, (), keep=True)
            text = f"SELECT {ROW_ID}, {condition.text} AS {_HELD} FROM {relation}"
            with own_errors(f"read {self.table.path}"):
                result = self.sql.query(text, condition.params, {_RELATION: rows})
            held = result[_HELD].combine_chunks()
            # The engine keeps the order of rows only where it needs no join, and IN (SELECT …) is one.
            ids, found = self._all_row_ids(), result[ROW_ID].to_numpy()
            return held if np.array_equal(found, ids) else held.take(pa.array(_places(found, ids)))

        key = condition.text, repr(condition.params)
        return self.columns.mask(self.table, stored(condition.columns), key, evaluate)

    def _all_row_ids(self) -> RowIds:
        """Return the ids of all rows, in row order."""
        rows = None if self.columns is None else self.columns.read(self.table, {ROW_ID})
        ids = self.table.stream([], row_ids=True).read_all() if rows is None else rows
        return np.asarray(ids[ROW_ID].to_numpy(), dtype=np.uint64)

    def _rows(self, condition: Condition, columns: Sequence[str], *, keep: bool) -> tuple[Any, str]:
        """Return all rows with some columns and those of a condition, and the relation for the statement."""
        if self.columns is not None:
            rows = self.columns.read(self.table, {*columns, *condition.columns, ROW_ID}, load=keep)
            if rows is not None:
                return rows, _RELATION
        rows = self.table.stream(sorted({*columns, *stored(condition.columns)}), row_ids=True)
        return rows, relation_with(condition.columns, _RELATION)

    def _rows_beside(self, mask: pa.BooleanArray, columns: Sequence[str], *, keep: bool) -> Any:
        """Return a relation of all rows, with some columns and the mask."""
        assert self.columns is not None, "the mask comes from the cache"
        rows = self.columns.read(self.table, {*columns, ROW_ID}, load=keep)
        if rows is not None and mask.true_count * _SPARSE < len(mask):
            rows = rows.filter(mask)
            return rows.append_column(_HELD, pa.repeat(pa.scalar(value=True), len(rows)))
        if rows is not None:
            return rows.append_column(_HELD, mask)
        reader = self.table.stream(sorted(columns), row_ids=True)
        schema = reader.schema.append(pa.field(_HELD, pa.bool_()))

        def batches() -> Iterator[pa.RecordBatch]:
            start = 0
            for batch in reader:
                arrays = [*batch.columns, mask.slice(start, batch.num_rows)]
                yield pa.RecordBatch.from_arrays(arrays, schema=schema)
                start += batch.num_rows

        return pa.RecordBatchReader.from_batches(schema, batches())

    def scan(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield some columns of all rows in row order, from the cache where they fit; ``_rowid`` is one of them."""
        rows = None if self.columns is None else self.columns.read(self.table, columns)
        if rows is not None:
            yield from rows.select(list(columns)).to_batches()
            return
        stored = [name for name in columns if name != ROW_ID]
        for batch in self.table.scan(stored, row_ids=ROW_ID in columns):
            yield batch.select(list(columns))

    def count(self, condition: Condition) -> int:
        """Return the number of rows that meet a condition."""
        if not condition.columns and condition.text == "TRUE":
            return self.table.count()
        mask = self._mask(condition)
        if mask is not None:
            return int(mask.true_count)
        return int(self.query("SELECT count(*) AS n FROM chosen", condition, [])["n"][0].as_py())

    def counts(self, conditions: Sequence[Condition]) -> list[int]:
        """Return the number of rows that meet each of some conditions, in one pass over the rows.

        Args:
            conditions: conditions without relations.
        """
        params: list[Any] = []
        tests = []
        for number, each in enumerate(conditions):
            assert not each.relations, "relations of different conditions have the same names"
            tests.append(f"count(*) FILTER (WHERE {each.numbered_from(len(params) + 1)}) AS n{number}")
            params += each.params
        columns = frozenset[str]().union(*(each.columns for each in conditions))
        rows, relation = self._rows(Condition("TRUE", (), columns), (), keep=True)
        with own_errors(f"read {self.table.path}"):
            found = self.sql.query(f"SELECT {', '.join(tests)} FROM {relation}", params, {_RELATION: rows})
        return [int(found[f"n{number}"][0].as_py()) for number in range(len(conditions))]

    def row_ids(self, condition: Condition) -> RowIds:
        """Return the ids of the rows that meet a condition, ascending, which is the order of ingestion."""
        mask = self._mask(condition)
        if self.columns is not None and (mask is not None or condition == EVERYTHING):
            rows = self.columns.read(self.table, {ROW_ID})
            if rows is not None:
                ids = np.asarray(rows[ROW_ID] if mask is None else rows[ROW_ID].filter(mask), dtype=np.uint64)
                return ids if bool((ids[1:] > ids[:-1]).all()) else np.sort(ids)
        ids = self.query(f"SELECT {ROW_ID} FROM chosen ORDER BY {ROW_ID}", condition, [])
        return np.asarray(ids[ROW_ID].to_numpy(), dtype=np.uint64)

    def values(self, condition: Condition, column: str) -> tuple[RowIds, pa.Array]:
        """Return the rows that meet a condition, in the order of ingestion, and their values of a column.

        Args:
            condition: the condition that rows must meet.
            column: name of the column.

        Returns:
            row_ids: uint64, shape (N,), ascending.
            values: the N values.
        """
        mask = self._mask(condition)
        rows = None
        if self.columns is not None and (mask is not None or condition == EVERYTHING):
            rows = self.columns.read(self.table, {column, ROW_ID})
        if rows is None:
            rows = self.query(f"SELECT {ROW_ID}, {column} FROM chosen", condition, [column], keep=True)
        elif mask is not None:
            rows = rows.filter(mask)
        row_ids, values = rows[ROW_ID].to_numpy(), rows[column].combine_chunks()
        if bool((row_ids[1:] > row_ids[:-1]).all()):
            return row_ids, values
        order = np.argsort(row_ids)
        return row_ids[order], values.take(pa.array(order))

    def values_at(self, row_ids: RowIds, column: str) -> pa.Array:
        """Return the values of a column for rows given by id, in any order."""
        ids, values = self.values(EVERYTHING, column)
        positions = positions_of(ids, row_ids)
        assert positions is not None, "rows are those of the table"
        return values.take(pa.array(positions))

    def take(self, row_ids: Sequence[int], columns: Sequence[str], *, keep: bool = False) -> pa.Table:
        """Return rows by id, in the given order.

        Args:
            row_ids: ids of the rows.
            columns: names of the columns.
            keep: cache the columns for later calls.
        """
        if self.columns is None:
            return self.table.take(row_ids, columns)
        return self.columns.take(self.table, row_ids, columns, load=keep)

    def blocks(self, condition: Condition | RowIds, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Yield the rows that meet a condition, or those of the given ids, in blocks of some thousand, in row order."""
        if isinstance(condition, Condition) and condition == EVERYTHING:
            for batch in self.table.scan(columns):
                yield pa.Table.from_batches([batch])
            return
        row_ids = self.row_ids(condition) if isinstance(condition, Condition) else condition
        for start in range(0, len(row_ids), _BLOCK_ROWS):
            yield self.take(row_ids[start : start + _BLOCK_ROWS].tolist(), columns)

    def find(self, media_id: str, columns: Sequence[str]) -> dict[str, Any]:
        """Return columns of the media item with an id.

        Raises:
            NotFound: the dataset has no media item of that id.
        """
        row_id = self.row_id_of.get(media_id)
        if row_id is None:
            row_id = self.find_row_ids([media_id]).get(media_id)
            if row_id is None:
                raise NotFound(f"no media {media_id!r:.80} in this dataset")
        # Who looks at one image looks at others; the columns of very many rows would take much memory for that.
        row: dict[str, Any] = self.take([row_id], columns, keep=self.table.count() <= _FEW_ROWS).to_pylist()[0]
        return row

    def with_row_ids(self, media_ids: Sequence[str]) -> "Media":
        """Return the same media with the row ids of some items looked up in one pass, so that :meth:`find` is fast."""
        return replace(self, row_id_of={**self.row_id_of, **self.find_row_ids(media_ids)})

    def find_row_ids(self, media_ids: Sequence[str]) -> dict[str, int]:
        """Return the row ids of those of some items that exist, by media id."""
        wanted = [each for each in media_ids if is_id(each)]
        if not wanted:
            return {}
        if (rows := self._rows_of_ids()) is not None:
            return rows.find(wanted)
        if len(wanted) <= _FEW_IDS and (prefixes := self._prefixes_of_ids()) is not None:
            candidates, chosen = self._all_row_ids()[prefixes.places(wanted)].tolist(), set(wanted)
            ids = self.table.take(candidates, ["media_id"])["media_id"].to_pylist()
            return {each: row for each, row in zip(ids, candidates, strict=True) if each in chosen}
        condition = Condition("media_id IN (SELECT unnest($1::VARCHAR[]))", (wanted,), frozenset({"media_id"}))
        found = self.query(f"SELECT {ROW_ID}, media_id FROM chosen", condition, ["media_id"])
        return dict(zip(found["media_id"].to_pylist(), found[ROW_ID].to_pylist(), strict=True))

    def _rows_of_ids(self) -> RowsOfIds | None:
        """Return the rows by media id, which are kept in memory; None if they are too many for the cache."""
        columns = {"media_id", ROW_ID}
        if self.columns is None or not self.columns.fits(ENTRY_BYTES * self.table.count()):
            return None
        if (read := self.columns.read(self.table, columns)) is None:
            return None
        make = lambda: RowsOfIds(read["media_id"], read[ROW_ID].to_numpy())  # noqa: E731
        rows: RowsOfIds = self.columns.derived(self.table, columns, "rows of ids", make)
        return rows

    def _prefixes_of_ids(self) -> IdPrefixes | None:
        """Return the places of rows by the first digits of their ids; None if they are too many for the cache."""
        if self.columns is None or not self.columns.fits(PREFIX_BYTES * self.table.count()):
            return None
        make = lambda: IdPrefixes(batch.column(0) for batch in self.table.scan(["media_id"]))  # noqa: E731
        prefixes: IdPrefixes = self.columns.derived(self.table, {"media_id"}, "prefixes of ids", make)
        return prefixes

    @property
    def location(self) -> tuple[str, ...]:
        """The columns for the pixels of media: ``LOCATION``, and those of frames, values and boxes if any."""
        of_frames = tuple(name for name in OF_VIDEOS.names if self.has_videos)
        of_range = tuple(name for name in OF_RANGE.names if name in self.table.schema.names)
        return LOCATION + of_frames + of_range + (() if self.parents is None else BOX)

    @property
    def has_videos(self) -> bool:
        """True if some media are frames of videos; else the table may lack the columns about frames."""
        return VIDEOS in self.generation.tables

    def file_of(self, row: Mapping[str, Any]) -> str | None:
        """Return the absolute path of a row's file, an OwnPath for an upload; None if it is no file of this machine."""
        path = path_of_text(row["path"], row["path_raw"])
        root = None if row["root"] is None else self.roots[row["root"]]
        if root == BLOBS_ROOT:
            digest = row["content_hash"]  # null if even the blob could not be read
            return None if digest is None else OwnPath(blob_path(self.table.path.parent, digest, path))
        if root is not None:
            return None if root.startswith(_OBJECT) else os.path.join(root, path)  # noqa: PTH118 - names may be any bytes
        if path.startswith("file:"):
            try:
                return os.fsdecode(unquote_to_bytes(urlsplit(path).path))
            except ValueError:  # brackets without an IPv6 address
                return None
        return path if os.path.isabs(path) else None  # noqa: PTH117

    def uri_of(self, row: Mapping[str, Any]) -> str:
        """Return the URI of a row's file: ``file://…`` for those of this machine, ``s3://…`` for objects.

        The URI of a frame ends with its time, as in ``….mp4#t=12.5`` (Media Fragments URI 1.0, W3C 2012).
        """
        path = self.file_of(row)
        uri = self.shown_path(row) if path is None else file_uri(path)
        return uri if row.get("frame_time_s") is None else uri + time_fragment(row["frame_time_s"])

    def location_of(self, row: Mapping[str, Any]) -> str | None:
        """Return the absolute path or the object's URI for the bytes of a row's file; None without either."""
        path = self.file_of(row)
        if path is None:
            uri = self.shown_path(row)
            return uri if uri.startswith(_OBJECT) else None
        return path

    def shown_path(self, row: Mapping[str, Any]) -> str:
        """Return the display name of a row's file: its absolute path, its URI, or its name in the upload."""
        if row["root"] is None:
            return self.file_of(row) or str(row["path"])
        return shown_root(self.roots[row["root"]]) + path_of_text(row["path"], row["path_raw"])

    def source_path(self, row: Mapping[str, Any]) -> str:
        """Return what users of other machines may know of a row's location.

        This is the path within its source, the name in the upload, or the URI of an object; of a file that was named by
        an absolute path, only the name. For a frame, the time follows as in :meth:`uri_of`.
        """
        if row["root"] is not None:
            root = self.roots[row["root"]]
            path = self.shown_path(row) if root.startswith(_OBJECT) else str(row["path"])
        else:
            path = str(row["path"])
            if self.file_of(row) is not None:
                path = path.rstrip("/").rpartition("/")[2] or path
        return path if row.get("frame_time_s") is None else path + time_fragment(row["frame_time_s"])

    def role_of(self, row: Mapping[str, Any]) -> AssumedRole | None:
        """Return the role to assume for reading a row's file in an object store."""
        return self.generation.summary.role_of(row["root"])


def shown_root(root: str) -> str:
    """Return the prefix for the display names of files below a source root."""
    if root.startswith(_OBJECT):
        return root if root == _OBJECT else f"{root}/"
    return "" if root == BLOBS_ROOT else os.path.join(root, "")  # noqa: PTH118


def time_fragment(time_s: float) -> str:
    """Return the URI fragment for a time in a video."""
    return f"#t={time_s:.3f}".rstrip("0").rstrip(".")


def file_uri(path: str | Path) -> str:
    """Return the ``file://`` URI of an absolute path; the path may contain any bytes."""
    return "file://" + quote(os.fsencode(path))


def _places(ids: RowIds, wanted: RowIds) -> npt.NDArray[np.int64]:
    """Return the places of ids among others, which are in any order and contain them."""
    order = np.argsort(ids, kind="stable")
    return np.asarray(order[np.searchsorted(ids, wanted, sorter=order)])
