"""Reading a dataset's media at one generation: select rows by a condition, fetch rows, find their files."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote_to_bytes, urlsplit

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from framedex.errors import NotFound
from framedex.records import Condition, Generation
from framedex.storage.blobs import BLOBS_ROOT, blob_path
from framedex.storage.failures import own_errors
from framedex.storage.media_rows import path_of_text
from framedex.storage.sql import Sql
from framedex.storage.tables import ROW_ID, Table

RowIds = npt.NDArray[np.uint64]
EVERYTHING = Condition()
_BLOCK_ROWS = 4096
LOCATION = ("path", "path_raw", "root", "content_hash")
"""The columns that :meth:`Media.file_of` and the like need."""
_OBJECT = "s3://"


@dataclass(frozen=True)
class Media:
    """A dataset's media table at one generation.

    Attributes:
        dataset_id: the dataset.
        generation: which state of it is read.
        table: the table at that generation's version.
        sql: the filter engine.
        roots: source roots by number.
        found: row ids of media that were looked for, by their ids.
    """

    dataset_id: str
    generation: Generation
    table: Table
    sql: Sql
    roots: tuple[str, ...]
    found: Mapping[str, int] = field(default_factory=dict, repr=False, compare=False)

    def query(self, text: str, condition: Condition, columns: Sequence[str]) -> pa.Table:
        """Return the result of a statement over the relation ``chosen``: the rows that meet a condition.

        Args:
            text: a statement over ``chosen``, which has *columns* and ``_rowid``.
            condition: which rows.
            columns: which columns, beside ``_rowid``.
        """
        reader = self.table.stream(sorted({*columns, *condition.columns}), row_ids=True)
        chosen = f"WITH chosen AS (SELECT {', '.join([*columns, ROW_ID])} FROM media WHERE {condition.text}) "
        with own_errors(f"read {self.table.path}"):
            return self.sql.query(chosen + text, condition.params, {**condition.relations, "media": reader})

    def count(self, condition: Condition) -> int:
        """Return how many rows meet a condition."""
        if not condition.columns and condition.text == "TRUE":
            return self.table.count()
        return int(self.query("SELECT count(*) AS n FROM chosen", condition, [])["n"][0].as_py())

    def row_ids(self, condition: Condition) -> RowIds:
        """Return the ids of the rows that meet a condition, ascending: the order of ingestion."""
        found = self.query(f"SELECT {ROW_ID} FROM chosen ORDER BY {ROW_ID}", condition, [])
        return np.asarray(found[ROW_ID].to_numpy(), dtype=np.uint64)

    def blocks(self, condition: Condition | RowIds, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Yield the rows that meet a condition, or those of given ids, some thousand at a time, in row order."""
        if isinstance(condition, Condition) and condition == EVERYTHING:
            for batch in self.table.scan(columns):
                yield pa.Table.from_batches([batch])
            return
        row_ids = self.row_ids(condition) if isinstance(condition, Condition) else condition
        for start in range(0, len(row_ids), _BLOCK_ROWS):
            yield self.table.take(row_ids[start : start + _BLOCK_ROWS].tolist(), columns)

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
        row: dict[str, Any] = self.table.take([row_id], columns).to_pylist()[0]
        return row

    def looked_up(self, media_ids: Sequence[str]) -> "Media":
        """Return the same media, of which :meth:`find` finds some at once: they are all looked for in one pass."""
        wanted = Condition("media_id IN (SELECT unnest($1::VARCHAR[]))", (list(media_ids),), frozenset({"media_id"}))
        rows = self.query(f"SELECT {ROW_ID}, media_id FROM chosen", wanted, ["media_id"])
        found = dict(zip(rows["media_id"].to_pylist(), rows[ROW_ID].to_pylist(), strict=True))
        return replace(self, found={**self.found, **found})

    def file_of(self, row: dict[str, Any]) -> str | None:
        """Return the absolute path of a row's file; None if that is no file of this machine."""
        path = path_of_text(row["path"], row["path_raw"])
        root = None if row["root"] is None else self.roots[row["root"]]
        if root == BLOBS_ROOT:
            digest = row["content_hash"]  # it lacks where not even the blob could be read
            return None if digest is None else str(blob_path(self.table.path.parent, digest, path))
        if root is not None:
            return None if root.startswith(_OBJECT) else os.path.join(root, path)  # noqa: PTH118 - names may be any bytes
        if path.startswith("file:"):
            return os.fsdecode(unquote_to_bytes(urlsplit(path).path))
        return path if os.path.isabs(path) else None  # noqa: PTH117

    def uri_of(self, row: dict[str, Any]) -> str:
        """Return the URI of a row's file: ``file://…`` for those of this machine, ``s3://…`` for objects."""
        path = self.file_of(row)
        return self.shown_path(row) if path is None else file_uri(path)

    def location_of(self, row: dict[str, Any]) -> str | None:
        """Return where the bytes of a row's file are: an absolute path, or an object's URI; None if neither."""
        path = self.file_of(row)
        if path is None:
            uri = self.shown_path(row)
            return uri if uri.startswith(_OBJECT) else None
        return path

    def shown_path(self, row: dict[str, Any]) -> str:
        """Return how a row's file is called: its absolute path, its URI, or the name under which it was uploaded."""
        if row["root"] is None:
            return self.file_of(row) or str(row["path"])
        return shown_root(self.roots[row["root"]]) + path_of_text(row["path"], row["path_raw"])

    def role_of(self, row: dict[str, Any]) -> str | None:
        """Return the role to assume for reading a row's file, where it is an object."""
        roles: dict[str, str] = self.generation.summary.get("roles", {})
        return roles.get(str(row["root"]))


def shown_root(root: str) -> str:
    """Return what comes before the path of a file below a source root, to say how it is called."""
    if root.startswith(_OBJECT):
        return root if root == _OBJECT else f"{root}/"
    return "" if root == BLOBS_ROOT else os.path.join(root, "")  # noqa: PTH118


def file_uri(path: str | Path) -> str:
    """Return the ``file://`` URI of an absolute path, whatever bytes are in it."""
    return "file://" + quote(os.fsencode(path))
