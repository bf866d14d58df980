"""The segments of a folder: a cache that may be deleted at any time, also while it is used."""

from collections.abc import Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt

from framedex.fulltext.segment import Ints, Keys, Segment, merge
from framedex.fulltext.segment_file import SUFFIX, read_segment, write_segment
from framedex.fulltext.words import key_of

_RUN = 4  # so many segments of about one size become one
_MOST_TEXTS = 2**22  # of a segment that is merged


class SegmentStore:
    """The texts that are indexed, in one language. One thread at a time changes it; what it gives out never changes.

    Args:
        folder: where segments are kept. Other processes may add to it and merge what is in it.
        language: whose words and stems.
        keep: whether new segments are written; else, and where the disk refuses, they are in memory only.
    """

    def __init__(self, folder: Path, language: str, *, keep: bool) -> None:
        self.folder, self.language, self.keep = folder, language, keep
        self._key = key_of(language)
        self._segments: dict[str, Segment] = {}
        self._numbers = count()

    def segments(self) -> tuple[Segment, ...]:
        """Return all segments, those of most texts first."""
        return tuple(sorted(self._segments.values(), key=len, reverse=True))

    def refresh(self) -> None:
        """Read the segments that others wrote since the last time."""
        for path in self._files():
            if path.stem not in self._segments:
                self._read(path)

    def _files(self) -> list[Path]:
        try:
            return sorted(path for path in self.folder.iterdir() if path.suffix == SUFFIX)
        except OSError:
            return []

    def _read(self, path: Path) -> None:
        with suppress(OSError):  # another process has merged it; what it had is found in others, or made anew
            segment = read_segment(path, self._key)
            if segment is not None:
                self._segments[path.stem] = segment
            elif self.keep:
                path.unlink()

    def add(self, segment: Segment) -> str:
        """Add a segment; return its name, which is that of an equal one if there is one already."""
        if self.keep:
            with suppress(OSError):  # a cache that cannot be written only costs time
                path = write_segment(self.folder, segment, self._key)
                written = read_segment(path, self._key, checked=True)
                if written is not None:
                    self._segments[path.stem] = written
                    return path.stem
        name = f"memory-{next(self._numbers)}"
        self._segments[name] = segment
        return name

    def merge_some(self, used: Sequence[npt.NDArray[np.bool_]]) -> Ints | None:
        """Merge the smaller segments where there are many of them.

        Args:
            used: for each of :meth:`segments`, which of its texts some row has, each in one
                segment only; others are forgotten.

        Returns:
            The new number of each text that is used, counted over all segments; None if nothing was merged.
        """
        before = self.segments()
        run = due([len(segment) for segment in before])
        if not run:
            return None
        names = {id(segment): name for name, segment in self._segments.items()}
        added = self.add(merge(before[-run:], used[-run:]))
        for segment in before[-run:]:
            if names[id(segment)] != added:
                self._forget(names[id(segment)])
        return _renumbered(before, self.segments(), used)

    def _forget(self, name: str) -> None:
        del self._segments[name]
        if self.keep:
            with suppress(OSError):  # it is in memory only; or, on some systems, another process has it open
                (self.folder / f"{name}{SUFFIX}").unlink()


def _renumbered(before: Sequence[Segment], after: Sequence[Segment], used: Sequence[npt.NDArray[np.bool_]]) -> Ints:
    """Return the numbers after a merge of texts before it: the merged segment is the one that was not there."""
    starts = np.cumsum([0, *(len(segment) for segment in after)]).tolist()
    stayed = {id(segment): start for segment, start in zip(after, starts, strict=False)}
    merged = next((stayed[id(each)] for each in after if all(each is not other for other in before)), 0)
    numbers = []
    for segment, chosen in zip(before, used, strict=True):
        if id(segment) in stayed:
            numbers.append(stayed[id(segment)] + np.arange(len(segment)))
        else:
            numbers.append(merged + np.cumsum(chosen) - 1)
            merged += int(chosen.sum())
    return np.concatenate(numbers).astype(np.int32)


def due(sizes: Sequence[int]) -> int:
    """Return how many of the smallest segments are to be merged, of sizes that descend; 0 if they are few.

    The largest one that is merged has at most twice as many texts as the others together. So each text is merged a
    number of times that grows with the logarithm of how many there are, and as few segments are left.
    """
    run = total = 0
    for place, size in enumerate(reversed(sizes), start=1):
        if total + size > _MOST_TEXTS:
            break
        if place >= _RUN and size <= 2 * total:
            run = place
        total += size
    return run


class Findable(Protocol):
    """Texts by their keys, as :class:`~framedex.fulltext.segment.Segment` has them."""

    def __len__(self) -> int:
        """How many texts."""
        ...

    def find(self, keys: Keys) -> Ints:
        """Return the text of each key; -1 where it is not here."""
        ...


def find_texts(segments: Sequence[Findable], keys: Keys) -> Ints:
    """Return the number of the text of each key, counted over all segments; -1 where there is none.

    Args:
        segments: where to look, first to last.
        keys: in any order.
    """
    order = np.argsort(keys.low)
    wanted = keys[order]
    found = np.full(len(keys), -1, dtype=np.int32)
    base = 0
    for segment in segments:
        missing = np.flatnonzero(found < 0)
        here = segment.find(wanted[missing])
        found[missing] = np.where(here >= 0, here + base, -1)
        base += len(segment)
    out = np.empty_like(found)
    out[order] = found
    return out
