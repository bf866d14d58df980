"""Texts of a dataset's rows: their keys, and reading of new texts, each once."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from framedex.core.arrays import RowIds
from framedex.fulltext.segment import Ints, Keys
from framedex.fulltext.store import KeyedTexts, find_texts
from framedex.storage.media import EVERYTHING, Media
from framedex.storage.table_versions import ROW_ID

_SCANNED = 8  # above a share of 1/8 of the rows, all are read


@dataclass(frozen=True)
class TextFields:
    """The texts of rows as SQL expressions.

    Attributes:
        columns: the table's columns that the expressions read.
        texts: SQL expressions by field name; null for a row without a text.
    """

    columns: tuple[str, ...]
    texts: Mapping[str, str]

    @property
    def selected(self) -> str:
        """The select list of the texts in a statement."""
        return ", ".join(f"{text} AS {name}" for name, text in self.texts.items())


@dataclass(frozen=True)
class RowKeys:
    """The keys of the texts of rows, with rows ascending by id.

    Attributes:
        row_ids: uint64, shape (N,).
        keys: for each field; the field's number is added to a key, so that keys differ between fields.
        present: bool, shape (fields, N): whether the row has a text.
    """

    row_ids: RowIds
    keys: tuple[Keys, ...]
    present: npt.NDArray[np.bool_]

    def texts(self, segments: Sequence[KeyedTexts]) -> Ints:
        """Return the numbers of the texts: int32, (fields, N); -1 for missing or unindexed texts.

        Texts are numbered through the segments.
        """
        numbers = np.full(self.present.shape, -1, dtype=np.int32)
        for field, keys in enumerate(self.keys):
            rows = np.flatnonzero(self.present[field])
            numbers[field, rows] = find_texts(segments, keys[rows])
        return numbers

    def first_missing(self, texts: Ints) -> npt.NDArray[np.bool_]:
        """Return the mask of the first row of each unindexed text: bool, (fields, N).

        *texts* is the result of :meth:`texts`.
        """
        return np.array([_first(keys, self.present[f] & (texts[f] < 0)) for f, keys in enumerate(self.keys)])


def appended_rows(media: Media, before: RowIds) -> RowIds | None:
    """Return the ids of the rows that were appended to others, ascending; None if they do not follow these.

    Args:
        media: the dataset's state.
        before: uint64, shape (N,), ascending: ids of the other rows, all of which the state has.
    """
    ids = np.sort(
        np.concatenate([np.empty(0, np.uint64), *(each.column(0).to_numpy() for each in media.scan([ROW_ID]))])
    )
    return ids[len(before) :] if np.array_equal(ids[: len(before)], before) else None


def read_keys(media: Media, fields: TextFields, chosen: RowIds | None = None) -> RowKeys:
    """Return the keys of the texts of rows: 128 bits of MD5.

    Args:
        media: the dataset's state.
        fields: the texts.
        chosen: uint64, ascending: ids of few rows; None for all.

    Raises:
        WorkspaceError: the media table is damaged.
    """
    hashes = ", ".join(f"unhex(md5({name})) AS {name}" for name in fields.texts)
    statement = f"SELECT {ROW_ID}, {hashes} FROM (SELECT {ROW_ID}, {fields.selected} FROM chosen)"
    if chosen is None:
        rows = media.query(statement, EVERYTHING, fields.columns)
    else:
        few = media.take(chosen.tolist(), fields.columns).append_column(ROW_ID, pa.array(chosen))
        rows = media.sql.query(statement, (), {"chosen": few})
    row_ids = np.asarray(rows[ROW_ID].to_numpy(), dtype=np.uint64)
    order = np.argsort(row_ids)
    keys, present = [], []
    for number, name in enumerate(fields.texts):
        column = rows[name].combine_chunks()
        valid = column.is_valid().to_numpy(zero_copy_only=False)
        halves = np.zeros((len(column), 2), dtype="<u8")
        halves[valid] = _halves(column.drop_null())
        keys.append(Keys(halves[order, 0], halves[order, 1] + np.uint64(number)))
        present.append(valid[order])
    return RowKeys(row_ids[order], tuple(keys), np.array(present))


def _halves(hashes: pa.Array) -> npt.NDArray[np.uint64]:
    """Return hashes of 16 bytes as pairs of integers."""
    fixed = hashes.cast(pa.binary(16))
    data = np.frombuffer(fixed.buffers()[1], dtype="<u8", count=2 * len(fixed), offset=16 * fixed.offset)
    return data.reshape(-1, 2)


def _first(keys: Keys, missing: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Return the mask of the first row of each distinct key among some rows."""
    positions = np.flatnonzero(missing)
    candidates = keys[positions]
    order = candidates.order()
    candidates = candidates[order]
    is_new = np.concatenate(
        [[True], (candidates.low[1:] != candidates.low[:-1]) | (candidates.high[1:] != candidates.high[:-1])]
    )
    out = np.zeros(len(missing), dtype=np.bool_)
    out[positions[order[is_new[: len(order)]]]] = True
    return out


def read_texts(
    media: Media, fields: TextFields, row_ids: RowIds, requested: npt.NDArray[np.bool_]
) -> Iterator[tuple[npt.NDArray[np.int64], pa.Table]]:
    """Yield (positions, texts) of some rows in blocks of some thousand; of all rows if many are requested.

    Args:
        media: the dataset's state.
        fields: the texts; they become columns of the tables.
        row_ids: uint64, shape (N,), ascending: ids of all rows, or of those from which some are requested.
        requested: bool, shape (N,): mask of the requested rows.
    """
    for positions, block in _blocks(media, fields.columns, row_ids, requested):
        yield positions, media.sql.query(f"SELECT {fields.selected} FROM block", (), {"block": block})


def _blocks(
    media: Media, columns: Sequence[str], row_ids: RowIds, requested: npt.NDArray[np.bool_]
) -> Iterator[tuple[npt.NDArray[np.int64], pa.Table]]:
    positions = np.flatnonzero(requested)
    if len(positions) * _SCANNED > len(row_ids) == media.table.count():
        for batch in media.table.scan(columns, row_ids=True):
            yield np.searchsorted(row_ids, batch[ROW_ID].to_numpy()), pa.Table.from_batches([batch])
        return
    start = 0
    for block in media.blocks(row_ids[positions], columns):
        yield positions[start : start + len(block)], block
        start += len(block)
