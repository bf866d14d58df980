"""The texts of a dataset's rows: what they are known by, and reading those that are new, each once."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from framedex.arrays import RowIds
from framedex.fulltext.segment import Ints, Keys
from framedex.fulltext.store import KeyedTexts, find_texts
from framedex.storage.media import EVERYTHING, Media
from framedex.storage.tables import ROW_ID

_SCANNED = 8  # where more than one row in so many is needed, all are read


@dataclass(frozen=True)
class TextFields:
    """Which texts rows have.

    Attributes:
        columns: of the table, that the texts are made of.
        texts: by name, in SQL over these columns; null for a row that has none.
    """

    columns: tuple[str, ...]
    texts: Mapping[str, str]

    @property
    def selected(self) -> str:
        """The texts as a statement selects them."""
        return ", ".join(f"{text} AS {name}" for name, text in self.texts.items())


@dataclass(frozen=True)
class RowKeys:
    """The texts of all rows by their keys, rows ascending by id.

    Attributes:
        row_ids: uint64, shape (N,).
        keys: of each field; the number of the field is added to a key, so that fields have none in common.
        present: bool, shape (fields, N): whether there is a text.
    """

    row_ids: RowIds
    keys: tuple[Keys, ...]
    present: npt.NDArray[np.bool_]

    def texts(self, segments: Sequence[KeyedTexts]) -> Ints:
        """Return the text of each field of each row, counted over the segments: int32, (fields, N); -1 if not known."""
        found = np.full(self.present.shape, -1, dtype=np.int32)
        for field, keys in enumerate(self.keys):
            there = np.flatnonzero(self.present[field])
            found[field, there] = find_texts(segments, keys[there])
        return found

    def first_missing(self, texts: Ints) -> npt.NDArray[np.bool_]:
        """Return the first row with each text that is not known: bool, (fields, N); *texts* as of :meth:`texts`."""
        return np.array([_first(keys, self.present[f] & (texts[f] < 0)) for f, keys in enumerate(self.keys)])


def read_keys(media: Media, fields: TextFields) -> RowKeys:
    """Return what the texts of all rows are known by: 128 bits of MD5.

    Raises:
        WorkspaceError: the media table is damaged.
    """
    hashes = ", ".join(f"unhex(md5({name})) AS {name}" for name in fields.texts)
    statement = f"SELECT {ROW_ID}, {hashes} FROM (SELECT {ROW_ID}, {fields.selected} FROM chosen)"
    found = media.query(statement, EVERYTHING, fields.columns)
    row_ids = np.asarray(found[ROW_ID].to_numpy(), dtype=np.uint64)
    order = np.argsort(row_ids)
    keys, present = [], []
    for number, name in enumerate(fields.texts):
        column = found[name].combine_chunks()
        there = column.is_valid().to_numpy(zero_copy_only=False)
        halves = np.zeros((len(column), 2), dtype="<u8")
        halves[there] = _halves(column.drop_null())
        keys.append(Keys(halves[order, 0], halves[order, 1] + np.uint64(number)))
        present.append(there[order])
    return RowKeys(row_ids[order], tuple(keys), np.array(present))


def _halves(hashes: pa.Array) -> npt.NDArray[np.uint64]:
    """Return hashes of 16 bytes as two numbers each."""
    fixed = hashes.cast(pa.binary(16))
    data = np.frombuffer(fixed.buffers()[1], dtype="<u8", count=2 * len(fixed), offset=16 * fixed.offset)
    return data.reshape(-1, 2)


def _first(keys: Keys, missing: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Return for each distinct key of some rows the first row of it."""
    places = np.flatnonzero(missing)
    some = keys[places]
    order = some.order()
    some = some[order]
    is_new = np.concatenate([[True], (some.low[1:] != some.low[:-1]) | (some.high[1:] != some.high[:-1])])
    out = np.zeros(len(missing), dtype=np.bool_)
    out[places[order[is_new[: len(order)]]]] = True
    return out


def read_texts(
    media: Media, fields: TextFields, row_ids: RowIds, wanted: npt.NDArray[np.bool_]
) -> Iterator[tuple[npt.NDArray[np.int64], pa.Table]]:
    """Yield (places, texts) of some rows, some thousand at a time; where they are many, of all.

    Args:
        media: the state.
        fields: which texts; they are columns of the tables.
        row_ids: uint64, shape (N,), ascending: of all rows.
        wanted: bool, shape (N,): the rows whose texts are needed.
    """
    for places, block in _blocks(media, fields.columns, row_ids, wanted):
        yield places, media.sql.query(f"SELECT {fields.selected} FROM block", (), {"block": block})


def _blocks(
    media: Media, columns: Sequence[str], row_ids: RowIds, wanted: npt.NDArray[np.bool_]
) -> Iterator[tuple[npt.NDArray[np.int64], pa.Table]]:
    places = np.flatnonzero(wanted)
    if len(places) * _SCANNED > len(row_ids):
        for batch in media.table.scan(columns, row_ids=True):
            yield np.searchsorted(row_ids, batch[ROW_ID].to_numpy()), pa.Table.from_batches([batch])
        return
    done = 0
    for block in media.blocks(row_ids[places], columns):
        yield places[done : done + len(block)], block
        done += len(block)
