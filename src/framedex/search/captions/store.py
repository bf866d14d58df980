"""The vectors of a dataset's captions by one text encoder: a cache that may be deleted at any time."""

import shutil
import tempfile
import weakref
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt

from framedex.arrays import Vectors
from framedex.fulltext.segment import Ints, Keys
from framedex.fulltext.store import find_texts, n_to_merge
from framedex.search.captions.merging import merge_segments, one_cell
from framedex.search.captions.segments import UNFINISHED, CaptionSegment, SegmentWriter, read_caption_segment

_LOOKS = 3  # at a folder in which another process merges


class CaptionStore:
    """Texts with their vectors. One thread at a time changes it; what it gives out never changes.

    Args:
        folder: where segments are kept. Other processes may add to it and merge what is in it.
        dimension: length D of the vectors.
        keep: whether new segments are written there; else they are in a temporary folder, which goes with the store.
    """

    def __init__(self, folder: Path, dimension: int, *, keep: bool) -> None:
        self.folder, self.dimension = folder, dimension
        self._keep = keep
        self._scratch: Path | None = None
        self._segments: dict[Path, CaptionSegment] = {}
        self._merged: set[Path] = set()

    def segments(self) -> tuple[CaptionSegment, ...]:
        """Return all segments, those of most texts first."""
        return tuple(sorted(self._segments.values(), key=lambda each: (-len(each), each.folder)))

    def refresh(self) -> None:
        """Read the segments that others wrote since the last time; remove damaged ones."""
        for _ in range(_LOOKS):
            new = [path for path in self._folders() if path not in self._segments and path not in self._merged]
            for path in new:
                segment = read_caption_segment(path, self.dimension)
                if segment is not None:
                    self._segments[path] = segment
                elif self._keep:
                    shutil.rmtree(path, ignore_errors=True)
            if all(path in self._segments for path in new):
                return

    def _folders(self) -> list[Path]:
        try:
            return sorted(path for path in self.folder.iterdir() if not path.name.endswith(UNFINISHED))
        except OSError:
            return []

    def borrow(self, keys: Keys, progress: Callable[[float], None]) -> None:
        """Copy what other datasets of the workspace have by the same encoder; so a clone encodes nothing again.

        Args:
            keys: of the texts that are wanted.
            progress: called with the share of a dataset's texts that is done; raises to stop.
        """
        for folder in sorted(self.folder.parent.parent.glob(f"*/{self.folder.name}")):
            other = CaptionStore(folder, self.dimension, keep=False)
            if folder != self.folder:
                other.refresh()
            texts = find_texts(other.segments(), keys)
            if (texts >= 0).any():
                merged = merge_segments(other.segments(), other.used(texts), self._target(), progress)
                self._segments[merged.folder] = merged
                keys = keys[texts < 0]

    def used(self, texts: Ints) -> list[npt.NDArray[np.bool_]]:
        """Return for each of :meth:`segments` which of its texts are named by numbers, which count over all."""
        ends = np.cumsum([0, *map(len, self.segments())])
        used = np.bincount(texts[texts >= 0], minlength=int(ends[-1])) > 0
        return [used[first:last] for first, last in pairwise(ends)]

    def add(self, keys: Keys, vectors: Vectors) -> None:
        """Add texts.

        Args:
            keys: of the texts, at least one.
            vectors: float32, shape (texts, D), unit length.

        Raises:
            OSError: there is no place even for temporary files.
        """
        try:
            segment = self._written(keys, vectors)
        except OSError:
            if not self._keep:
                raise
            self._keep = False  # a cache that cannot be written only costs time
            segment = self._written(keys, vectors)
        self._segments[segment.folder] = segment

    def _written(self, keys: Keys, vectors: Vectors) -> CaptionSegment:
        writer = SegmentWriter(self._target(), len(keys), self.dimension)
        try:
            writer.codes.put(np.arange(len(keys)), vectors)
            return writer.finish(keys, *one_cell(len(keys), self.dimension))
        except BaseException:
            writer.give_up()
            raise

    def merge_some(self, used: Sequence[npt.NDArray[np.bool_]], progress: Callable[[float], None]) -> bool:
        """Merge the smaller segments where there are many of them; return whether that was done.

        Texts that no row has stay while they are the fewer: a restore may bring them back.

        Args:
            used: for each of :meth:`segments`, which of its texts some row has.
            progress: called with the share that is done; raises to stop.

        Raises:
            OSError: the disk refuses it; all is as before.
        """
        before = self.segments()
        run = n_to_merge([len(segment) for segment in before])
        if not run:
            return False
        chosen = used[-run:]
        wanted = sum(int(each.sum()) for each in chosen)
        if 2 * wanted >= sum(map(len, chosen)):
            chosen = [np.ones_like(each) for each in chosen]
        if wanted:
            merged = merge_segments(before[-run:], chosen, self._target(), progress)
            self._segments[merged.folder] = merged
        for segment in before[-run:]:
            del self._segments[segment.folder]
            self._merged.add(segment.folder)
            if self._keep or segment.folder.parent == self._scratch:
                segment.remove()
        return True

    def _target(self) -> Path:
        if self._keep:
            return self.folder
        if self._scratch is None:
            self._scratch = Path(tempfile.mkdtemp(prefix="framedex-"))
            weakref.finalize(self, shutil.rmtree, self._scratch, ignore_errors=True)
        return self._scratch
