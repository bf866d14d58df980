"""What a table knows of the files of its media: to tell those that have changed since from those that have not."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from framedex.storage.id_index import IdIndex
from framedex.storage.tables import Table

_HASH = 16


class FileIndex(IdIndex):
    """The ids of a table at one version, of media or of videos, with size, time and content of their files.

    Memory: 56 bytes a row.
    """

    def __init__(self, table: Table, column: str = "media_id") -> None:
        super().__init__(table, column)
        held = table.scan(["size_bytes", "modified_at", "content_hash"]).read_all()
        self._sizes = held.column("size_bytes").fill_null(-1).to_numpy()
        self._times = held.column("modified_at").cast("int64").fill_null(-1).to_numpy()
        hashes = held.column("content_hash").fill_null(bytes(_HASH)).combine_chunks()
        flat = np.frombuffer(hashes.buffers()[1] or b"", np.uint8)
        self._hashes = flat[hashes.offset * _HASH : (hashes.offset + len(hashes)) * _HASH].reshape(-1, _HASH)

    def looks_same(self, place: int, *, size_bytes: int, modified_us: int) -> bool:
        """Return whether a file of that size and time is the one of a row, as far as these say."""
        return bool(self._sizes[place] == size_bytes and self._times[place] == modified_us)

    def has_size(self, place: int, size_bytes: int) -> bool:
        """Return whether the file of a row has that size."""
        return bool(self._sizes[place] == size_bytes)

    def has_content(self, place: int, digest: bytes) -> bool:
        """Return whether the file of a row has the content of that hash."""
        return bytes(self._hashes[place]) == digest


def replaced_rows(before: IdIndex, added: Sequence[str], rows: int) -> npt.NDArray[np.bool_]:
    """Return which of the first rows of a table were replaced by added ones of the same ids: bool, shape (rows,)."""
    gone = np.zeros(rows, dtype=bool)
    places = before.places(added)
    gone[places[places >= 0]] = True
    return gone
