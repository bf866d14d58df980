"""Names of uploaded files: content that was uploaded before has a row, and other content of its name gets a number."""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator

import numpy as np

from framedex.media.sources import Item
from framedex.storage.id_index import IdIndex

_MAX_NAME_BYTES = 255  # as on most file systems
_MOST_TRIED = 1024  # names at a time

IdOf = Callable[[Item, str], str]
"""Returns the id that an item gets under a path."""


class UploadNames:
    """Names of the files of one upload in a dataset.

    A name is no place: two cameras write ``IMG_0001.jpg``. Content that was uploaded before, under whatever name, is
    known; content of a folder is not, as its file may go. Other content of a name that is taken gets the first free
    name of ``IMG_0001-2.jpg``, ``-3`` and so on; names of other files of the upload count as taken. The names depend on
    the upload and on the rows before it alone, so a task that resumes gives the same.

    Args:
        items: the uploaded files; they are read once.
        id_of: returns ids.

    Attributes:
        sources: the name within the upload of each file that has another one in the dataset; empty if several files of
            the upload have the name, so annotations cannot tell them apart.
        given: the names with a number that files got.
    """

    def __init__(self, items: Iterable[Item], id_of: IdOf) -> None:
        self._id_of = id_of
        hashes = np.fromiter((hash(each.path) for each in items), np.int64)
        names, counts = np.unique(hashes, return_counts=True)
        self._names, self._repeated = names, frozenset(names[counts > 1].tolist())
        self._seen: set[str] = set()  # repeated names that came already
        self.given: set[str] = set()
        self._next: Counter[str] = Counter()
        self.sources: dict[str, str] = {}

    def is_repeated(self, name: str) -> bool:
        """Return whether several files of the upload have a name."""
        return hash(name) in self._repeated

    def place(self, item: Item, taken: IdIndex | None, rows: int) -> str:
        """Return the name in the dataset of a file whose content is new.

        Args:
            item: the file.
            taken: rows of the dataset.
            rows: the number of those that were there before the upload.
        """
        repeated = self.is_repeated(item.path)
        is_first = not repeated or item.path not in self._seen
        if repeated:
            self._seen.add(item.path)
        if is_first and not self._are_taken(item, [item.path], taken, rows)[0]:
            name = item.path
        else:
            name = next(each for each in self._free(item, taken, rows) if not self._is_named(each))
            self.given.add(name)
        if repeated or name != item.path:
            self.sources[name] = "" if repeated else item.path
        return name

    def _is_named(self, name: str) -> bool:
        """Return whether a file of the upload has a name, or was given it."""
        number = hash(name)
        place = int(np.searchsorted(self._names, number))
        return name in self.given or (place < len(self._names) and int(self._names[place]) == number)

    def _free(self, item: Item, taken: IdIndex | None, rows: int) -> Iterator[str]:
        """Yield numbered names that the dataset does not have, ascending."""
        size = 1
        while True:
            first = self._next[item.path] + 2
            names = [numbered_name(item.path, number) for number in range(first, first + size)]
            for name, is_taken in zip(names, self._are_taken(item, names, taken, rows), strict=True):
                self._next[item.path] += 1
                if not is_taken:
                    yield name
            size = min(2 * size, _MOST_TRIED)

    def _are_taken(self, item: Item, names: list[str], taken: IdIndex | None, rows: int) -> list[bool]:
        if taken is None:
            return [False] * len(names)
        positions = taken.positions([self._id_of(item, name) for name in names])
        return [0 <= position < rows for position in positions.tolist()]


def numbered_name(name: str, number: int) -> str:
    """Return a name with a number before its suffix, as ``a/b-2.jpg``; its last part stays within 255 bytes."""
    folder, slash, last = name.rpartition("/")
    stem, suffix = os.path.splitext(last)  # noqa: PTH122 - names may be any bytes
    end = f"-{number}{suffix}"
    while len(os.fsencode(stem + end)) > _MAX_NAME_BYTES and len(stem) > 1:
        stem = stem[:-1]
    return f"{folder}{slash}{stem}{end}"
