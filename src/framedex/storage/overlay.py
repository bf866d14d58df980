"""Edited values that lie beside the data files of a table until they are folded into them.

A column of a table is one file of all rows, so rewriting it for one edited row takes seconds in a large table. An edit
writes a *layer* instead: a file in the folder ``_edits`` of the table, with the new values of a few rows by row id. The
configuration of each table version lists its layers, oldest first; later ones win. So a version is still all that names
a state, and snapshots, restores and clones need no further code. When a layer is written, smaller ones before it are
merged into it, so there are never more than a few (the tiers of a log-structured merge tree: P. O'Neil et al., "The
log-structured merge-tree", Acta Informatica 33, 1996). Very large ones are left as they are: few of them are reached
before they are folded.
"""

import hashlib
import json
import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from framedex.core.arrays import RowIds
from framedex.core.forks import cached_property
from framedex.core.lru_cache import LruCache
from framedex.core.regular_files import read_bytes
from framedex.errors import WorkspaceError
from framedex.storage import disk
from framedex.storage.failures import CHECK, own_errors

CONFIG_KEY = "framedex.edits"
"""The key of a table's configuration that lists the layers."""
FOLDER = "_edits"
REMOVED = "_removed"
"""Key of the numbers, in index columns, of rows that were deleted since these columns were written; see
:mod:`framedex.storage.row_numbers`. It is no column of the table."""
ROW_NUMBERS = ("original", "neighbours")
"""The columns that name rows by number. They are always written together."""
_ROWS = "rows of "
_TIER = 2  # a layer is merged into a new one of at least half of its size
_MOST_MERGED = 2**17  # unless it has more values: so many are folded soon, and until then no edit writes them again
_MEMORY = 64 * 2**20
_MOST_BYTES = 2**31
Values = tuple[RowIds, pa.Array]
"""Row ids, uint64, ascending and unique, and a value for each."""


@dataclass(frozen=True)
class Layer:
    """A file with edited values.

    Attributes:
        file: its name.
        digest: BLAKE2b hash of its content, 16 bytes in hexadecimal digits.
        rows: the number of values.
        columns: the edited columns, sorted.
    """

    file: str
    digest: str
    rows: int
    columns: tuple[str, ...]


class Overlay:
    """The edited values of a table at one version.

    Args:
        table: the folder of the table.
        layers: its layers, oldest first.
    """

    def __init__(self, table: Path, layers: Sequence[Layer] = ()) -> None:
        self._table, self.layers = table, tuple(layers)
        self._values: dict[str, Values] = {}

    @classmethod
    def of(cls, table: Path, config: str | None) -> "Overlay":
        """Return the overlay that the configuration of a version describes.

        Raises:
            WorkspaceError: the configuration is damaged.
        """
        if config is None:
            return cls(table)
        try:
            entries = json.loads(config)
            layers = [Layer(**{**each, "columns": tuple(each["columns"])}) for each in entries]
        except (ValueError, TypeError, KeyError) as error:
            raise WorkspaceError(f"the list of edits of {table} is damaged: {error}") from error
        return cls(table, layers)

    @property
    def config(self) -> str | None:
        """The configuration that describes it; None without layers."""
        return json.dumps([asdict(each) for each in self.layers]) if self.layers else None

    @cached_property
    def columns(self) -> frozenset[str]:
        """The edited columns."""
        return frozenset(name for each in self.layers for name in each.columns)

    @property
    def rows(self) -> int:
        """The number of values, where a later one may replace an earlier one."""
        return sum(each.rows for each in self.layers)

    @property
    def files(self) -> list[str]:
        """The files, relative to the folder of the table."""
        return [f"{FOLDER}/{each.file}" for each in self.layers]

    def key(self, columns: Collection[str]) -> tuple[str, ...]:
        """Return a key that is equal for two overlays of a table only if they have the same values of some columns."""
        return tuple(each.file for each in self.layers if not set(columns).isdisjoint(each.columns))

    def values(self, column: str) -> Values:
        """Return the edited values of a column.

        Raises:
            WorkspaceError: a layer is missing or damaged.
        """
        if (known := self._values.get(column)) is None:
            layers = [_read(self._table, each) for each in self.layers if column in each.columns]
            known = self._values[column] = merge_values([each[column] for each in layers])
        return known

    def count(self, column: str) -> int:
        """Return the number of edited values of a column, where a later one may replace an earlier one.

        Raises:
            WorkspaceError: a layer is missing or damaged.
        """
        return sum(len(_read(self._table, each)[column][0]) for each in self.layers if column in each.columns)

    def verify(self, layer: Layer) -> None:
        """Read a layer from the disk.

        Raises:
            WorkspaceError: it is missing or damaged.
        """
        _load(self._table, layer)

    def applied(self, column: str, values: pa.Array, row_ids: RowIds) -> pa.Array:
        """Return the values of a column for some rows, after the edits.

        Args:
            column: its name.
            values: the values in the data files.
            row_ids: uint64, shape (rows,), in any order.
        """
        ids, new = self.values(column)
        if not len(row_ids) or not len(ids):
            return values
        # Batches are ranges of a table, and most ranges have no edited row.
        start, stop = np.searchsorted(ids, row_ids.min()), np.searchsorted(ids, row_ids.max(), side="right")
        if start == stop:
            return values
        ids, new = ids[start:stop], new.slice(start, stop - start)
        at = np.minimum(np.searchsorted(ids, row_ids), len(ids) - 1)
        edited = ids[at] == row_ids
        if not edited.any():
            return values
        places = np.where(edited, len(values) + at, np.arange(len(values)))
        return pa.concat_arrays([values, new.cast(values.type)]).take(pa.array(places))

    def with_values(self, changes: Mapping[str, Values]) -> "Overlay":
        """Return the overlay with further edits, for which a file is written and synced."""
        layers, content = list(self.layers), dict(changes)
        while layers and layers[-1].rows <= min(_TIER * _count(content), _MOST_MERGED):
            older = _read(self._table, layers.pop())
            content = {
                name: merge_values([each[name] for each in (older, content) if name in each])
                for name in {**older, **content}
            }
        return Overlay(self._table, [*layers, _write(self._table, content)])

    def without(self, columns: Collection[str]) -> "Overlay":
        """Return the overlay without some columns; layers that have others are written again."""
        layers: list[Layer] = []
        for each in self.layers:
            kept = [name for name in each.columns if name not in columns]
            if len(kept) == len(each.columns):
                layers.append(each)
            elif kept:
                content = _read(self._table, each)
                layers.append(_write(self._table, {name: content[name] for name in kept}))
        return Overlay(self._table, layers)


_CONTENTS: LruCache[tuple[Path, str], dict[str, Values]] = LruCache(_MEMORY)


def _read(table: Path, layer: Layer) -> dict[str, Values]:
    """Return the values of a layer by column, from memory if possible; raises as :func:`_load`."""
    if (known := _CONTENTS.get((table, layer.file))) is None:
        known = _load(table, layer)
        _CONTENTS.put((table, layer.file), known, weight=_bytes(known))
    return known


def _load(table: Path, layer: Layer) -> dict[str, Values]:
    """Return the values of a layer by column, from its file.

    Raises:
        WorkspaceError: the file is missing or damaged.
    """
    path = table / FOLDER / layer.file
    try:
        data = read_bytes(path, _MOST_BYTES)
    except OSError as error:
        raise WorkspaceError(f"cannot read {path}: {error.strerror}; `framedex check` lists missing files") from error
    if _digest(data) != layer.digest:
        raise WorkspaceError(f"{path} is damaged: its content does not fit its hash{CHECK}")
    batch = pa.ipc.open_stream(data).read_next_batch()
    content = {}
    for name in layer.columns:
        ids, values = (batch.column(each)[0].values for each in (_ROWS + name, name))
        content[name] = ids.to_numpy(), values
    return content


def _bytes(content: Mapping[str, Values]) -> int:
    return sum(ids.nbytes + values.nbytes for ids, values in content.values())


def _write(table: Path, content: Mapping[str, Values]) -> Layer:
    """Write a layer, one row with a list of row ids and a list of values for each column, and sync it to disk."""
    arrays = {}
    for name, (ids, values) in content.items():
        arrays[_ROWS + name] = _as_list(pa.array(ids, pa.uint64()))
        arrays[name] = _as_list(values)
    batch = pa.RecordBatch.from_pydict(arrays)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    data = sink.getvalue()
    layer = Layer(f"{uuid.uuid4().hex}.arrow", _digest(data), _count(content), tuple(sorted(content)))
    folder = table / FOLDER
    with own_errors(f"write {folder}"):
        is_new = not folder.is_dir()
        folder.mkdir(exist_ok=True)
        path = folder / layer.file
        with path.open("xb") as file:
            file.write(data)
        disk.sync_file(path)
        disk.sync_folder(folder)
        if is_new:
            disk.sync_folder(table)
    _CONTENTS.put((table, layer.file), dict(content), weight=_bytes(content))
    return layer


def _as_list(values: pa.Array) -> pa.ListArray:
    return pa.ListArray.from_arrays(pa.array([0, len(values)], pa.int32()), values)


def _digest(data: bytes | pa.Buffer) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def _count(content: Mapping[str, Values]) -> int:
    return sum(len(ids) for ids, _ in content.values())


def merge_values(parts: Iterable[Values]) -> Values:
    """Return the values of several edits of a column, of which later ones win."""
    parts = list(parts)
    if len(parts) == 1:
        return parts[0]
    ids = np.concatenate([each for each, _ in parts])
    values = pa.concat_arrays([each.cast(parts[-1][1].type) for _, each in parts])
    order = np.argsort(ids, kind="stable")
    ordered = ids[order]
    is_last = np.append(ordered[1:] != ordered[:-1], True)
    return ordered[is_last], values.take(pa.array(order[is_last]))
