"""A cache of a dataset's caption embeddings by one text encoder; it may be deleted at any time."""

import shutil
import tempfile
import weakref
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt

from framedex.core.arrays import Vectors
from framedex.fulltext.segment import Ints, Keys
from framedex.fulltext.store import find_texts, n_to_merge
from framedex.search.captions.merging import merge_caption_segments, one_cell
from framedex.search.captions.segments import UNFINISHED, CaptionSegment, SegmentWriter, read_caption_segment

_ATTEMPTS = 3  # attempts to read a folder in which another process merges


class CaptionStore:
    """Texts with their embeddings. Only one thread at a time may change it; returned segments never change.

    Args:
        folder: the folder with the segments. Other processes may add and merge segments.
        dimension: length D of the embeddings.
        keep: whether new segments are written to the folder; else they are in a temporary folder that is removed with
            the store.
    """

    def __init__(self, folder: Path, dimension: int, *, keep: bool) -> None:
        self.folder, self.dimension = folder, dimension
        self._keep = keep
        self._scratch: Path | None = None
        self._segments: dict[Path, CaptionSegment] = {}
        self._merged: set[Path] = set()

    def segments(self) -> tuple[CaptionSegment, ...]:
        """Return all segments, the largest first."""
        return tuple(sorted(self._segments.values(), key=lambda each: (-len(each), each.folder)))

    def refresh(self) -> None:
        """Read the segments that other processes added; remove damaged ones."""
        for _ in range(_ATTEMPTS):
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
        """Copy embeddings by the same encoder from other datasets of the workspace, so that a clone encodes nothing.

        Args:
            keys: keys of the requested texts.
            progress: called with the completed share of a dataset's texts; raises to stop.
        """
        for folder in sorted(self.folder.parent.parent.glob(f"*/{self.folder.name}")):
            other = CaptionStore(folder, self.dimension, keep=False)
            if folder != self.folder:
                other.refresh()
            texts = find_texts(other.segments(), keys)
            if (texts >= 0).any():
                merged = merge_caption_segments(other.segments(), other.used(texts), self._target(), progress)
                self._segments[merged.folder] = merged
                keys = keys[texts < 0]

    def used(self, texts: Ints) -> list[npt.NDArray[np.bool_]]:
        """Return for each of :meth:`segments` the mask of the given texts.

        Texts are given by number, counted through all segments.
        """
        ends = np.cumsum([0, *map(len, self.segments())])
        used = np.bincount(texts[texts >= 0], minlength=int(ends[-1])) > 0
        return [used[first:last] for first, last in pairwise(ends)]

    def add(self, keys: Keys, vectors: Vectors) -> None:
        """Add texts with their embeddings.

        Args:
            keys: keys of the texts, at least one.
            vectors: float32, shape (texts, D), unit length.

        Raises:
            OSError: not even temporary files can be written.
        """
        try:
            segment = self._written(keys, vectors)
        except OSError:
            if not self._keep:
                raise
            self._keep = False  # an unwritable cache only costs time
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
        """Merge the smaller segments if there are many; return whether segments were merged.

        Texts without rows stay while they are a minority, because a restore may need them.

        Args:
            used: for each of :meth:`segments`, the mask of its texts that occur in some row.
            progress: called with the completed share; raises to stop.

        Raises:
            OSError: the segment cannot be written; the store stays unchanged.
        """
        before = self.segments()
        run = n_to_merge([len(segment) for segment in before])
        if not run:
            return False
        masks = used[-run:]
        n_used = sum(int(each.sum()) for each in masks)
        if 2 * n_used >= sum(map(len, masks)):
            masks = [np.ones_like(each) for each in masks]
        if n_used:
            merged = merge_caption_segments(before[-run:], masks, self._target(), progress)
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
