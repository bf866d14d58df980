"""Locations of a table's vectors: their files, and the mapping of row ids to rows of files.

A file never changes, and its name is never reused. So results computed from a file's vectors are valid for all versions
of the table with that file, and for copies of the table that share it.

Facts of Lance 14 that this relies on, each proved by a test: the upper 32 bits of a row id are the fragment's number.
The lower 32 bits are the position in the fragment, which deletions do not change.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from framedex.core.arrays import RowIds
from framedex.storage.engine_calls import engine_call
from framedex.storage.failures import on_table, own_errors
from framedex.storage.table_versions import ROW_ID, Table, flat

_OFFSET_BITS = 32


@dataclass(frozen=True)
class FileRows:
    """A file with vectors.

    Attributes:
        fragment: the fragment number in row ids, at one version of the table.
        rows: number of rows, including deleted ones.
    """

    fragment: int
    rows: int


@engine_call
@on_table("read")
def files_with(table: Table, column: str) -> dict[str, FileRows]:
    """Return the files that contain a column, by name, in row order."""
    import lance

    dataset = lance.dataset(str(table.path), version=table.version)
    (number,) = (each.id() for each in dataset.lance_schema.fields() if each.name() == column)
    files = {}
    for fragment in dataset.get_fragments():
        (file,) = (each.path for each in fragment.metadata.files if number in each.fields)
        files[file] = FileRows(fragment.fragment_id, fragment.physical_rows)
    return files


def row_ids_of(table: Table) -> RowIds:
    """Return the ids of all rows, ascending."""
    with own_errors(f"read {table.path}"):
        ids = table.scan([], row_ids=True).read_all()
    return np.asarray(ids[ROW_ID].to_numpy(), dtype=np.uint64)


class Addresses:
    """Consecutive numbers for the rows of several files, in the order of the files.

    Args:
        files: number of rows by file name.
        present: the files of a version of the table; files that are only in one of the two mappings are ignored.
    """

    def __init__(self, files: Mapping[str, int], present: Mapping[str, FileRows]) -> None:
        first = np.cumsum([0, *files.values()])
        self.count = int(first[-1])
        last = max((each.fragment for each in present.values()), default=-1)
        self._first = np.full(last + 1, -1, np.int64)
        for index, name in enumerate(files):
            if name in present:
                self._first[present[name].fragment] = first[index]

    def numbers(self, row_ids: RowIds) -> npt.NDArray[np.int64]:
        """Return the numbers of rows: int64, shape (rows,); -1 for rows of other files."""
        first = self._first[(row_ids >> np.uint64(_OFFSET_BITS)).astype(np.int64)]
        offset = (row_ids & np.uint64(2**_OFFSET_BITS - 1)).astype(np.int64)
        return np.where(first >= 0, first + offset, -1)


def vector_blocks(
    table: Table, column: str, requested: npt.NDArray[np.bool_]
) -> Iterator[tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]]:
    """Yield (positions in row order, float32 of shape (positions, D)) of the requested rows with a vector.

    Args:
        table: the table.
        column: name of the column.
        requested: bool, shape (N,): mask of the requested rows.
    """
    positions = np.flatnonzero(requested)
    if not len(positions):
        return
    start, last = int(positions[0]), int(positions[-1])
    dimension = table.schema.field(column).type.list_size
    for batch in table.vector_batches(column, start):
        vectors = batch.column(0)
        mask = requested[start : start + len(vectors)]
        if vectors.null_count:
            mask = mask & vectors.is_valid().to_numpy(zero_copy_only=False)
        offsets = np.flatnonzero(mask)
        if len(offsets):
            yield offsets + start, flat(vectors, dimension)[offsets]
        start += len(vectors)
        if start > last:
            return
