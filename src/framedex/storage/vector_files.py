"""Where a table's vectors lie: in which files, and how row ids name rows of them.

A file once written never changes, and its name is never used again; so what was computed of a file's vectors holds for
all versions of the table that have the file, and for copies of the table, which share it.

Facts of Lance 14 that this rests on, each held by a test: the upper 32 bits of a row id are the number of the fragment,
the lower ones the place in it, which deletions do not move.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from framedex.arrays import RowIds
from framedex.storage.failures import on_table, own_errors
from framedex.storage.tables import READING, ROW_ID, Table, flat

_OFFSET_BITS = 32


@dataclass(frozen=True)
class FileRows:
    """A file with vectors.

    Attributes:
        fragment: the number by which row ids name it, at one version of the table.
        rows: how many it has, those too that were deleted since.
    """

    fragment: int
    rows: int


@on_table("read")
def files_with(table: Table, column: str) -> dict[str, FileRows]:
    """Return the files that hold a column, by name, in row order."""
    import lance

    with READING.using():
        dataset = lance.dataset(str(table.path), version=table.version)
        (number,) = (each.id() for each in dataset.lance_schema.fields() if each.name() == column)
        found = {}
        for fragment in dataset.get_fragments():
            (file,) = (each.path for each in fragment.metadata.files if number in each.fields)
            found[file] = FileRows(fragment.fragment_id, fragment.physical_rows)
        return found


def row_ids_of(table: Table) -> RowIds:
    """Return the ids of all rows, ascending."""
    with own_errors(f"read {table.path}"):
        found = table.scan([], row_ids=True).read_all()
    return np.asarray(found[ROW_ID].to_numpy(), dtype=np.uint64)


class Addresses:
    """The rows of some files, numbered through in the order of the files.

    Args:
        files: how many rows each has, by name.
        present: what a version of the table has; files that are only in one of both are passed over.
    """

    def __init__(self, files: Mapping[str, int], present: Mapping[str, FileRows]) -> None:
        first = np.cumsum([0, *files.values()])
        self.count = int(first[-1])
        most = max((each.fragment for each in present.values()), default=-1)
        self._first = np.full(most + 1, -1, np.int64)
        for place, name in enumerate(files):
            if name in present:
                self._first[present[name].fragment] = first[place]

    def numbers(self, row_ids: RowIds) -> npt.NDArray[np.int64]:
        """Return the numbers of rows: int64, shape (rows,); -1 for those of other files."""
        first = self._first[(row_ids >> np.uint64(_OFFSET_BITS)).astype(np.int64)]
        offset = (row_ids & np.uint64(2**_OFFSET_BITS - 1)).astype(np.int64)
        return np.where(first >= 0, first + offset, -1)


def vector_blocks(
    table: Table, column: str, wanted: npt.NDArray[np.bool_]
) -> Iterator[tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]]:
    """Yield (places in row order, float32 of shape (places, D)) of the rows that are wanted and have a vector.

    Args:
        table: the table.
        column: which vectors.
        wanted: bool, shape (N,).
    """
    places = np.flatnonzero(wanted)
    if not len(places):
        return
    start, last = int(places[0]), int(places[-1])
    dimension = table.schema.field(column).type.list_size
    for batch in table.vector_batches(column, start):
        vectors = batch.column(0)
        held = wanted[start : start + len(vectors)]
        if vectors.null_count:
            held = held & vectors.is_valid().to_numpy(zero_copy_only=False)
        here = np.flatnonzero(held)
        if len(here):
            yield here + start, flat(vectors, dimension)[here]
        start += len(vectors)
        if start > last:
            return
