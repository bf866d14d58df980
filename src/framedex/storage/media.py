"""Reading a dataset's media at one generation: select rows by a condition, fetch rows, find their files."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote_to_bytes, urlsplit

import numpy as np
import pyarrow as pa

from framedex.arrays import RowIds
from framedex.errors import NotFound
from framedex.path_columns import relation_with, stored
from framedex.records import Condition, Generation
from framedex.storage.blobs import BLOBS_ROOT, blob_path
from framedex.storage.column_cache import ColumnCache
from framedex.storage.failures import own_errors
from framedex.storage.media_rows import BOX, OF_VIDEOS, path_of_text
from framedex.storage.row_positions import positions_of
from framedex.storage.sql import Sql
from framedex.storage.tables import ROW_ID, Table
from framedex.storage.videos import VIDEOS

EVERYTHING = Condition()
_BLOCK_ROWS = 4096
_HELD = "_held"
_RELATION = "media"
_SPARSE = 4  # from so small a share on, the rows that are held are put together before a statement
LOCATION = ("path", "path_raw", "root", "content_hash")
"""The columns that :meth:`Media.file_of` and the like need."""
_OBJECT = "s3://"


@dataclass(frozen=True)
class Media:
    """A dataset's media table at one generation.

    Attributes:
        dataset_id: the dataset; of objects, the id that stands for it.
        generation: which state of it is read.
        table: the table at that generation's version.
        sql: the filter engine.
        roots: source roots by number.
        found: row ids of media that were looked for, by their ids.
        columns: the columns that are in memory; None where all are read when they are needed.
        parents: of objects, the media that they are in; see :mod:`framedex.storage.objects`. Else None.
        name_clashes: of media that are exported as files, hashes of the names that several would have on some system;
            see :mod:`framedex.export.file_names`. Else None.
    """

    dataset_id: str
    generation: Generation
    table: Table
    sql: Sql
    roots: tuple[str, ...]
    found: Mapping[str, int] = field(default_factory=dict, repr=False, compare=False)
    columns: ColumnCache | None = field(default=None, repr=False, compare=False)
    parents: "Media | None" = field(default=None, repr=False, compare=False)
    name_clashes: frozenset[int] | None = field(default=None, repr=False, compare=False)

    def query(self, text: str, condition: Condition, columns: Sequence[str], *, keep: bool | None = None) -> pa.Table:
        """Return the result of a statement over the relation ``chosen``: the rows that meet a condition.

        Args:
            text: a statement over ``chosen``, which has *columns* and ``_rowid``.
            condition: which rows.
            columns: which columns, beside ``_rowid``.
            keep: hold *columns* in memory, for statements to come; by default those of a part of the media, because
                statements about all of them are those that prepare something, and seldom.
        """
        keep = condition != EVERYTHING if keep is None else keep
        held = self._held(condition)
        if held is None:
            rows, relation = self._rows(condition, columns, keep=keep)
            test, params = condition.text, condition.params
        else:
            rows, relation = self._rows_beside(held, columns, keep=keep), _RELATION
            test, params = _HELD, ()
        chosen = f"WITH chosen AS (SELECT {', '.join([*columns, ROW_ID])} FROM {relation} WHERE {test}) "
        with own_errors(f"read {self.table.path}"):
            return self.sql.query(chosen + text, params, {**condition.relations, _RELATION: rows})

    def _held(self, condition: Condition) -> pa.BooleanArray | None:
        """Return which rows meet a condition, in row order; None where that is not kept for the next statement."""
        if self.columns is None or not self.columns.is_on or condition.relations or condition == EVERYTHING:
            return None

        def answer() -> pa.BooleanArray:
            rows, relation = self._rows(condition, (), keep=True)
            text = f"SELECT {condition.text} AS {_HELD} FROM {relation}"
            with own_errors(f"read {self.table.path}"):
                found = self.sql.query(text, condition.params, {_RELATION: rows})
            return found[_HELD].combine_chunks()

        question = condition.text, repr(condition.params)
        return self.columns.held(self.table, stored(condition.columns), question, answer)

    def _rows(self, condition: Condition, columns: Sequence[str], *, keep: bool) -> tuple[Any, str]:
        """Return all rows with some columns and those of a condition, and the relation that a statement reads."""
        if self.columns is not None:
            rows = self.columns.read(self.table, {*columns, *condition.columns, ROW_ID}, load=keep)
            if rows is not None:
                return rows, _RELATION
        rows = self.table.stream(sorted({*columns, *stored(condition.columns)}), row_ids=True)
        return rows, relation_with(condition.columns, _RELATION)

    def _rows_beside(self, held: pa.BooleanArray, columns: Sequence[str], *, keep: bool) -> Any:
        """Return a relation of all rows, with some columns and whether they are held."""
        assert self.columns is not None, "it said which rows are held"
        rows = self.columns.read(self.table, {*columns, ROW_ID}, load=keep)
        if rows is not None and held.true_count * _SPARSE < len(held):
            rows = rows.filter(held)
            return rows.append_column(_HELD, pa.repeat(pa.scalar(value=True), len(rows)))
        if rows is not None:
            return rows.append_column(_HELD, held)
        reader = self.table.stream(sorted(columns), row_ids=True)
        schema = reader.schema.append(pa.field(_HELD, pa.bool_()))

        def batches() -> Iterator[pa.RecordBatch]:
            start = 0
            for batch in reader:
                arrays = [*batch.columns, held.slice(start, batch.num_rows)]
                yield pa.RecordBatch.from_arrays(arrays, schema=schema)
                start += batch.num_rows

        return pa.RecordBatchReader.from_batches(schema, batches())

    def count(self, condition: Condition) -> int:
        """Return how many rows meet a condition."""
        if not condition.columns and condition.text == "TRUE":
            return self.table.count()
        held = self._held(condition)
        if held is not None:
            return int(held.true_count)
        return int(self.query("SELECT count(*) AS n FROM chosen", condition, [])["n"][0].as_py())

    def row_ids(self, condition: Condition) -> RowIds:
        """Return the ids of the rows that meet a condition, ascending: the order of ingestion."""
        held = self._held(condition)
        if held is not None and self.columns is not None:
            rows = self.columns.read(self.table, {ROW_ID})
            if rows is not None:
                return np.sort(rows[ROW_ID].filter(held).to_numpy())  # little work where they ascend, as they mostly do
        found = self.query(f"SELECT {ROW_ID} FROM chosen ORDER BY {ROW_ID}", condition, [])
        return np.asarray(found[ROW_ID].to_numpy(), dtype=np.uint64)

    def values(self, condition: Condition, column: str) -> tuple[RowIds, pa.Array]:
        """Return the rows that meet a condition, in the order of ingestion, and their values in a column.

        Args:
            condition: which rows.
            column: which column.

        Returns:
            row_ids: uint64, shape (N,), ascending.
            values: N of them.
        """
        held = self._held(condition)
        rows = None
        if self.columns is not None and (held is not None or condition == EVERYTHING):
            rows = self.columns.read(self.table, {column, ROW_ID})
        if rows is None:
            rows = self.query(f"SELECT {ROW_ID}, {column} FROM chosen", condition, [column], keep=True)
        elif held is not None:
            rows = rows.filter(held)
        row_ids, values = rows[ROW_ID].to_numpy(), rows[column].combine_chunks()
        if bool((row_ids[1:] > row_ids[:-1]).all()):
            return row_ids, values
        order = np.argsort(row_ids)
        return row_ids[order], values.take(pa.array(order))

    def values_at(self, row_ids: RowIds, column: str) -> pa.Array:
        """Return the values of some rows, given by their ids in any order, in a column."""
        known, values = self.values(EVERYTHING, column)
        places = positions_of(known, row_ids)
        assert places is not None, "rows are those of the table"
        return values.take(pa.array(places))

    def take(self, row_ids: Sequence[int], columns: Sequence[str], *, keep: bool = False) -> pa.Table:
        """Return the rows of some ids, in the given order.

        Args:
            row_ids: which.
            columns: which columns.
            keep: hold the columns in memory, for rows to come.
        """
        if self.columns is None:
            return self.table.take(row_ids, columns)
        return self.columns.take(self.table, row_ids, columns, load=keep)

    def blocks(self, condition: Condition | RowIds, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Yield the rows that meet a condition, or those of given ids, some thousand at a time, in row order."""
        if isinstance(condition, Condition) and condition == EVERYTHING:
            for batch in self.table.scan(columns):
                yield pa.Table.from_batches([batch])
            return
        row_ids = self.row_ids(condition) if isinstance(condition, Condition) else condition
        for start in range(0, len(row_ids), _BLOCK_ROWS):
            yield self.take(row_ids[start : start + _BLOCK_ROWS].tolist(), columns)

    def find(self, media_id: str, columns: Sequence[str]) -> dict[str, Any]:
        """Return columns of one media item.

        Raises:
            NotFound: the dataset has none of that id.
        """
        row_id = self.found.get(media_id)
        if row_id is None:
            row_ids = self.row_ids(Condition("media_id = $1", (media_id,), frozenset({"media_id"})))
            if not len(row_ids):
                raise NotFound(f"no media {media_id!r} in this dataset")
            row_id = int(row_ids[0])
        row: dict[str, Any] = self.take([row_id], columns).to_pylist()[0]
        return row

    def looked_up(self, media_ids: Sequence[str]) -> "Media":
        """Return the same media, of which :meth:`find` finds some at once: they are all looked for in one pass."""
        wanted = Condition("media_id IN (SELECT unnest($1::VARCHAR[]))", (list(media_ids),), frozenset({"media_id"}))
        rows = self.query(f"SELECT {ROW_ID}, media_id FROM chosen", wanted, ["media_id"])
        found = dict(zip(rows["media_id"].to_pylist(), rows[ROW_ID].to_pylist(), strict=True))
        return replace(self, found={**self.found, **found})

    @property
    def location(self) -> tuple[str, ...]:
        """The columns that say where media are: those of ``LOCATION``, and of frames and boxes where there are any."""
        of_frames = tuple(name for name in OF_VIDEOS.names if self.has_videos)
        return LOCATION + of_frames + (() if self.parents is None else BOX)

    @property
    def has_videos(self) -> bool:
        """Whether some media are of videos; else the table may lack the columns about frames."""
        return VIDEOS in self.generation.tables

    def file_of(self, row: Mapping[str, Any]) -> str | None:
        """Return the absolute path of a row's file; None if that is no file of this machine."""
        path = path_of_text(row["path"], row["path_raw"])
        root = None if row["root"] is None else self.roots[row["root"]]
        if root == BLOBS_ROOT:
            digest = row["content_hash"]  # it lacks where not even the blob could be read
            return None if digest is None else str(blob_path(self.table.path.parent, digest, path))
        if root is not None:
            return None if root.startswith(_OBJECT) else os.path.join(root, path)  # noqa: PTH118 - names may be any bytes
        if path.startswith("file:"):
            try:
                return os.fsdecode(unquote_to_bytes(urlsplit(path).path))
            except ValueError:  # brackets that hold no IPv6 address
                return None
        return path if os.path.isabs(path) else None  # noqa: PTH117

    def uri_of(self, row: dict[str, Any]) -> str:
        """Return the URI of a row's file: ``file://…`` for those of this machine, ``s3://…`` for objects.

        That of a frame ends with its time (Media Fragments URI 1.0, W3C 2012), as ``….mp4#t=12.5``.
        """
        path = self.file_of(row)
        uri = self.shown_path(row) if path is None else file_uri(path)
        return uri if row.get("frame_time_s") is None else uri + time_fragment(row["frame_time_s"])

    def location_of(self, row: Mapping[str, Any]) -> str | None:
        """Return where the bytes of a row's file are: an absolute path, or an object's URI; None if neither."""
        path = self.file_of(row)
        if path is None:
            uri = self.shown_path(row)
            return uri if uri.startswith(_OBJECT) else None
        return path

    def shown_path(self, row: Mapping[str, Any]) -> str:
        """Return how a row's file is called: its absolute path, its URI, or the name under which it was uploaded."""
        if row["root"] is None:
            return self.file_of(row) or str(row["path"])
        return shown_root(self.roots[row["root"]]) + path_of_text(row["path"], row["path_raw"])

    def role_of(self, row: Mapping[str, Any]) -> str | None:
        """Return the role to assume for reading a row's file, where it is an object."""
        roles: dict[str, str] = self.generation.summary.get("roles", {})
        return roles.get(str(row["root"]))


def shown_root(root: str) -> str:
    """Return what comes before the path of a file below a source root, to say how it is called."""
    if root.startswith(_OBJECT):
        return root if root == _OBJECT else f"{root}/"
    return "" if root == BLOBS_ROOT else os.path.join(root, "")  # noqa: PTH118


def time_fragment(time_s: float) -> str:
    """Return what a URI of a video ends with to mean a time in it."""
    return f"#t={time_s:.3f}".rstrip("0").rstrip(".")


def file_uri(path: str | Path) -> str:
    """Return the ``file://`` URI of an absolute path, whatever bytes are in it."""
    return "file://" + quote(os.fsencode(path))
