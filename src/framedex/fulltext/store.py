"""The segments of a folder: a cache that may be deleted at any time, even while it is in use."""

from collections.abc import Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt

from framedex.fulltext.segment import Ints, Keys, Segment, merge_segments
from framedex.fulltext.segment_file import SUFFIX, open_segment, write_segment
from framedex.fulltext.tokenizer import tokenizer_key

_MIN_MERGED = 4  # segments of similar size that are merged into one
_MAX_TEXTS = 2**22  # of a merged segment


class SegmentStore:
    """The index of one language. One thread at a time may change it; its segments are immutable.

    Args:
        folder: of the segment files. Other processes may add files to it and merge them.
        language: of the stemmer.
        keep: whether new segments are written; otherwise, and if writing fails, they stay in memory.
    """

    def __init__(self, folder: Path, language: str, *, keep: bool) -> None:
        self.folder, self.language, self.keep = folder, language, keep
        self._key = tokenizer_key(language)
        self._segments: dict[str, Segment] = {}
        self._numbers = count()

    def segments(self) -> tuple[Segment, ...]:
        """Return all segments, the largest first."""
        return tuple(sorted(self._segments.values(), key=len, reverse=True))

    def refresh(self) -> None:
        """Open the segments that other processes wrote since the last call."""
        for path in self._files():
            if path.stem not in self._segments:
                self._read(path)

    def _files(self) -> list[Path]:
        try:
            return sorted(path for path in self.folder.iterdir() if path.suffix == SUFFIX)
        except OSError:
            return []

    def _read(self, path: Path) -> None:
        with suppress(OSError):  # another process merged it; its texts are in other segments, or are indexed again
            segment = open_segment(path, self._key)
            if segment is not None:
                self._segments[path.stem] = segment
            elif self.keep:
                path.unlink()

    def add(self, segment: Segment) -> str:
        """Add a segment and return its name; an equal segment has the same name."""
        if self.keep:
            with suppress(OSError):  # a cache that cannot be written only costs time
                path = write_segment(self.folder, segment, self._key)
                written = open_segment(path, self._key, checked=True)
                if written is not None:
                    self._segments[path.stem] = written
                    return path.stem
        name = f"memory-{next(self._numbers)}"
        self._segments[name] = segment
        return name

    def merge_some(self, used: Sequence[npt.NDArray[np.bool_]]) -> Ints | None:
        """Merge the smallest segments if there are many of them.

        Args:
            used: for each of :meth:`segments`, which of its texts belong to a row, each text in one segment only;
                the others are dropped.

        Returns:
            The new number of each used text, over all segments; None if no segments were merged.
        """
        before = self.segments()
        run = n_to_merge([len(segment) for segment in before])
        if not run:
            return None
        names = {id(segment): name for name, segment in self._segments.items()}
        added = self.add(merge_segments(before[-run:], used[-run:]))
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
    """Return the numbers of texts after a merge; the merged segment is the one that did not exist before it."""
    starts = np.cumsum([0, *(len(segment) for segment in after)]).tolist()
    stayed = {id(segment): start for segment, start in zip(after, starts, strict=False)}
    merged = next((stayed[id(each)] for each in after if all(each is not other for other in before)), 0)
    numbers = []
    for segment, mask in zip(before, used, strict=True):
        if id(segment) in stayed:
            numbers.append(stayed[id(segment)] + np.arange(len(segment)))
        else:
            numbers.append(merged + np.cumsum(mask) - 1)
            merged += int(mask.sum())
    return np.concatenate(numbers).astype(np.int32)


def n_to_merge(sizes: Sequence[int]) -> int:
    """Return the number of smallest segments to merge, given sizes in descending order; 0 for no merge.

    The largest of the merged segments has at most twice as many texts as the others together. So both the number of
    merges of a text and the number of segments grow with the logarithm of the number of texts.
    """
    run = total = 0
    for position, size in enumerate(reversed(sizes), start=1):
        if total + size > _MAX_TEXTS:
            break
        if position >= _MIN_MERGED and size <= 2 * total:
            run = position
        total += size
    return run


class KeyedTexts(Protocol):
    """A set of texts that are looked up by key, such as :class:`~framedex.fulltext.segment.Segment`."""

    def __len__(self) -> int:
        """Return the number of texts."""
        ...

    def find(self, keys: Keys) -> Ints:
        """Return the number of the text of each key; -1 if it is absent."""
        ...


def are_same(segments: Sequence[KeyedTexts], others: Sequence[KeyedTexts]) -> bool:
    """Return whether two lists have the same segments in the same order."""
    return len(segments) == len(others) and all(one is other for one, other in zip(segments, others, strict=True))


def renumbered(numbers: Ints, before: Sequence[KeyedTexts], after: Sequence[KeyedTexts]) -> Ints:
    """Return the numbers of texts over other segments, which have all those of before; -1 stays.

    Args:
        numbers: int32: numbers over the segments *before*.
        before: the segments.
        after: the other segments, in any order.
    """
    starts = dict(zip(map(id, after), np.cumsum([0, *map(len, after)]).tolist(), strict=False))
    ends = np.cumsum([len(each) for each in before])
    shifts = np.array([starts[id(each)] for each in before], dtype=np.int64) - (ends - [len(each) for each in before])
    if not shifts.any():
        return numbers
    segment = np.minimum(np.searchsorted(ends, numbers, side="right"), len(before) - 1)
    return np.where(numbers >= 0, numbers + shifts[segment], -1).astype(np.int32)


def find_texts(segments: Sequence[KeyedTexts], keys: Keys) -> Ints:
    """Return the number of the text of each key, over all segments; -1 if it is absent.

    Args:
        segments: searched first to last.
        keys: in any order.
    """
    order = np.argsort(keys.low)
    sorted_keys = keys[order]
    numbers = np.full(len(keys), -1, dtype=np.int32)
    base = 0
    for segment in segments:
        missing = np.flatnonzero(numbers < 0)
        positions = segment.find(sorted_keys[missing])
        numbers[missing] = np.where(positions >= 0, positions + base, -1)
        base += len(segment)
    out = np.empty_like(numbers)
    out[order] = numbers
    return out
