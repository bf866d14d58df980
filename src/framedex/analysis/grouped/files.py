"""Files of an index that is computed by groups: vectors sorted by cell, neighbour lists, and visits."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from framedex.analysis.cells import take_rows
from framedex.core.arrays import Vectors
from framedex.core.mapped_files import mapped_at_random, read_matrix

Places = npt.NDArray[np.integer]
_BLOCK_ROWS = 16384
_VISIT_BYTES = 8
_VISITS_SHARE = 16  # the part of the bytes of vectors that visits may take, as its inverse
_LEAST_VISITS = 8  # of a row, for which there is space where vectors are short
_READERS = 8  # threads that request vectors
_FEW = 512  # vectors that are read without a request
_DENSE = 3  # vectors of at most this many times as many places are read in one go
_NOTED = 10  # nearest neighbours of a row that are kept apart, see CellJoin.two_steps


@dataclass(frozen=True)
class GroupFiles:
    """Files of rows that are sorted by cell; a row's position in that order is its *place*.

    The cells are sorted, too, so that those of a group follow each other, and so do their rows. An object opens files
    when they are needed, so it is small, and other processes open the same files.

    Attributes:
        folder: the folder of the files.
        rows: the number of rows, N.
        dimension: the number of values of a vector, D.
        k: the length of neighbour lists.
    """

    folder: Path
    rows: int
    dimension: int
    k: int

    @property
    def nbytes(self) -> int:
        """The bytes of the files of rows, and of the visits at a time."""
        return self.rows * (4 * self.dimension + 8 * self.k + 4 * _NOTED + 4 * 4) + self.visits_nbytes

    @property
    def visits_nbytes(self) -> int:
        """The bytes of the visits at a time."""
        return _VISIT_BYTES * self.most_visits

    @property
    def most_visits(self) -> int:
        """The number of visits at a time."""
        return self.rows * max(4 * self.dimension // _VISITS_SHARE // _VISIT_BYTES, _LEAST_VISITS)

    def create(self) -> None:
        """Make the files, and reserve their bytes.

        Raises:
            OSError: there is no space for them.
        """
        for name, (kind, width) in self._shapes.items():
            with self._path(name).open("wb") as file:
                size = self.rows * width * np.dtype(kind).itemsize
                file.truncate(size)
                _reserve(file.fileno(), size)

    @property
    def _shapes(self) -> dict[str, tuple[Any, int]]:
        return {
            "vectors": (np.float32, self.dimension),
            "lists": (np.int32, self.k),
            "similarity": (np.float32, self.k),
            "nearest": (np.int32, min(_NOTED, self.k)),
            "limits": (np.float32, 1),
            "cell": (np.int32, 1),
            "row": (np.int32, 1),
            "place": (np.int32, 1),
        }

    def _path(self, name: str) -> Path:
        return self.folder / name

    def _open(self, name: str) -> npt.NDArray[Any]:
        kind, width = self._shapes[name]
        shape = (self.rows, width) if name in ("vectors", "lists", "similarity", "nearest") else (self.rows,)
        return np.memmap(self._path(name), dtype=kind, mode="r+", shape=shape)

    @property
    def vectors(self) -> Vectors:
        """float32, shape (N, D): the vectors, by place, for reading single ones; see :meth:`part`."""
        found: Vectors = mapped_at_random(self._path("vectors"), np.float32, self.dimension)
        return found

    def part(self, start: int, stop: int) -> Vectors:
        """Return consecutive vectors in memory: float32, shape (R, D)."""
        found: Vectors = read_matrix(self._path("vectors"), np.float32, self.dimension, start, min(stop, self.rows))
        return found

    def write(self, start: int, vectors: Vectors) -> None:
        """Write consecutive vectors, without reading what they replace."""
        with self._path("vectors").open("r+b") as file:
            file.seek(4 * self.dimension * start)
            np.ascontiguousarray(vectors, dtype=np.float32).tofile(file)

    @property
    def lists(self) -> npt.NDArray[np.int32]:
        """int32, shape (N, k): the places of neighbours, by place; -1 for none."""
        return self._open("lists")

    @property
    def similarity(self) -> Vectors:
        """float32, shape (N, k): the similarities of neighbours, by place; -inf for none."""
        return self._open("similarity")

    def listed(self, places: Places) -> tuple[npt.NDArray[np.int32], Vectors]:
        """Return the lists of some places, and the similarities, in memory."""
        lists, similarity = (
            mapped_at_random(self._path(name), kind, self.k)
            for name, kind in (("lists", np.int32), ("similarity", np.float32))
        )
        return lists[places], similarity[places]

    @property
    def nearest(self) -> npt.NDArray[np.int32]:
        """int32, shape (N, 10): the places of the nearest neighbours, by place, while lists are not sorted."""
        return self._open("nearest")

    @property
    def limits(self) -> Vectors:
        """float32, shape (N,): the similarity that a further neighbour must exceed, by place."""
        return self._open("limits")

    @property
    def cell(self) -> npt.NDArray[np.int32]:
        """int32, shape (N,): the cell of each row, by place."""
        return self._open("cell")

    @property
    def row(self) -> npt.NDArray[np.int32]:
        """int32, shape (N,): the row at each place."""
        return self._open("row")

    @property
    def place(self) -> npt.NDArray[np.int32]:
        """int32, shape (N,): the place of each row."""
        return self._open("place")

    def write_visits(self, turn: str, source: int, places: Places, groups: Places, cells: Places, count: int) -> None:
        """Write which rows of a group visit which cells.

        Args:
            turn: the name of the turn.
            source: the group.
            places: shape (V,): the visiting rows.
            groups: shape (V,): the groups of the cells.
            cells: shape (V,): the cells.
            count: the number of groups.
        """
        order = np.lexsort((places, cells, groups))
        starts = np.zeros(count + 1, dtype=np.int64)
        np.cumsum(np.bincount(groups, minlength=count), out=starts[1:])
        visits = np.stack([places[order], cells[order]]).astype(np.int32)
        np.save(self._path(f"{turn}-{source}.npy"), visits)
        np.save(self._path(f"{turn}-{source}-starts.npy"), starts)

    def visits(
        self, turn: str, sources: Sequence[int], group: int
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
        """Return (places, cells) of the visits of some groups to the cells of one, by cell and then by place."""
        found = []
        for source in sources:
            starts = np.load(self._path(f"{turn}-{source}-starts.npy"), mmap_mode="r")
            low, high = int(starts[group]), int(starts[group + 1])
            if high > low:
                found.append(np.array(np.load(self._path(f"{turn}-{source}.npy"), mmap_mode="r")[:, low:high]))
        if not found:
            return np.empty(0, np.int32), np.empty(0, np.int32)
        places, cells = np.concatenate(found, axis=1)
        order = np.lexsort((places, cells))
        return places[order], cells[order]

    def count_visits(self, turn: str, sources: Sequence[int]) -> npt.NDArray[np.int64]:
        """Return how many visits of some groups each group has: int64, shape (G,)."""
        starts = np.sum([np.load(self._path(f"{turn}-{source}-starts.npy")) for source in sources], axis=0)
        found: npt.NDArray[np.int64] = starts[1:] - starts[:-1]
        return found

    def remove_visits(self, turn: str, sources: Sequence[int]) -> None:
        """Remove the visits of some groups."""
        for source in sources:
            for name in (f"{turn}-{source}.npy", f"{turn}-{source}-starts.npy"):
                self._path(name).unlink(missing_ok=True)


class PlaceReader:
    """Reader of the vectors of files, by place; used in a ``with`` statement.

    Single vectors are requested by several threads: a disk answers many requests in hardly more time than one.

    Args:
        files: the files.
    """

    def __init__(self, files: GroupFiles) -> None:
        self.files, self.vectors = files, files.vectors
        self._values = self.vectors.reshape(-1)
        self._threads = ThreadPoolExecutor(_READERS, thread_name_prefix="framedex-files")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """End the threads."""
        self._threads.shutdown()

    def request(self, places: Places) -> None:
        """Request the vectors of some thousand places, which are read next."""
        if len(places) < _FEW:
            return
        first = places.astype(np.int64) * self.files.dimension
        ends = (0, self.files.dimension - 1)  # a vector may lie on two pages
        list(
            self._threads.map(
                self._values.take, [part for end in ends for part in np.array_split(first + end, _READERS)]
            )
        )

    def take(self, places: Places | range) -> Vectors:
        """Return vectors in memory: float32, shape (R, D)."""
        if isinstance(places, range):
            return self.files.part(places.start, places.stop)
        if len(places):
            first, last = int(places.min()), int(places.max())
            if last - first < _DENSE * len(places):
                return self.files.part(first, last + 1)[places - first]
        self.request(places)
        return take_rows(self.vectors, places)


class FileVectors:
    """Source of the vectors of files, by place.

    Args:
        files: the files.
    """

    def __init__(self, files: GroupFiles) -> None:
        self._files = files

    @property
    def dimension(self) -> int:
        """The number of values per row."""
        return self._files.dimension

    def __len__(self) -> int:
        return self._files.rows

    def blocks(self) -> Iterator[tuple[int, Vectors]]:
        """Yield blocks of some thousand rows."""
        for start in range(0, len(self), _BLOCK_ROWS):
            yield start, self._files.part(start, start + _BLOCK_ROWS)

    def take(self, rows: Places) -> Vectors:
        """Return rows as float32."""
        return take_rows(self._files.vectors, rows)


def _reserve(descriptor: int, size: int) -> None:
    """Reserve the bytes of a file, where the system can: a full disk must not end the process at a later write."""
    import os

    if size and hasattr(os, "posix_fallocate"):
        os.posix_fallocate(descriptor, 0, size)
