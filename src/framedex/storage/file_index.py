"""An index of the files in a table of media or videos, which detects changed files."""

from collections.abc import Collection, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from framedex.storage.id_index import IdIndex, find_halves
from framedex.storage.table_versions import Table

_HASH = 16


class FileIndex(IdIndex):
    """The ids of a table at one version, with the size, time and content hash of each file.

    Memory: 56 bytes a row.
    """

    def __init__(self, table: Table, column: str = "media_id") -> None:
        super().__init__(table, column)
        self._table = table
        columns = table.scan(["size_bytes", "modified_at", "content_hash"]).read_all()
        self._sizes = columns.column("size_bytes").fill_null(-1).to_numpy()
        self._times = columns.column("modified_at").cast("int64").fill_null(-1).to_numpy()
        hashes = columns.column("content_hash").fill_null(bytes(_HASH)).combine_chunks()
        flat = np.frombuffer(hashes.buffers()[1] or b"", np.uint8)
        self._contents: npt.NDArray[np.uint64] | None = None  # sorted, once they are looked up
        self._hashes = flat[hashes.offset * _HASH : (hashes.offset + len(hashes)) * _HASH].reshape(-1, _HASH)

    def have_contents(self, digests: Sequence[bytes], rows: int, roots: Collection[int]) -> npt.NDArray[np.bool_]:
        """Return whether one of the first rows has each content hash: bool, shape (len(digests),).

        Args:
            digests: BLAKE2b hashes, 16 bytes each.
            rows: how many of the first rows count; the same at each call.
            roots: numbers of the source roots below which rows count; the same at each call.
        """
        if self._contents is None:
            numbers = self._table.scan(["root"]).read_all().column(0).slice(0, rows)
            is_below = pc.is_in(numbers, value_set=pa.array(sorted(roots), numbers.type))
            halves = self._hashes[:rows][np.asarray(is_below.to_numpy(), dtype=bool)].view(np.uint64)
            self._contents = halves[np.argsort(halves[:, 0])]
        wanted = np.frombuffer(b"".join(digests), np.uint64).reshape(-1, 2)
        return find_halves(self._contents, wanted) >= 0

    def looks_same(self, row: int, *, size_bytes: int, modified_us: int) -> bool:
        """Return whether size and modification time of a file match those of a row."""
        return bool(self._sizes[row] == size_bytes and self._times[row] == modified_us)

    def has_size(self, row: int, size_bytes: int) -> bool:
        """Return whether the file of a row has the given size."""
        return bool(self._sizes[row] == size_bytes)

    def has_content(self, row: int, digest: bytes) -> bool:
        """Return whether the file of a row has the given content hash."""
        return bytes(self._hashes[row]) == digest


def replaced_rows(before: IdIndex, added: Sequence[str], rows: int) -> npt.NDArray[np.bool_]:
    """Return the mask of the first rows of a table that added rows of the same id replace: bool, shape (rows,)."""
    replaced = np.zeros(rows, dtype=bool)
    positions = before.positions(added)
    replaced[positions[positions >= 0]] = True
    return replaced
