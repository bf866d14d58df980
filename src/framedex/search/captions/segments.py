"""Segments of caption embeddings in a cache folder, stored as codes in cells by the hashes of the texts.

    <folder>/<segment>/*.npy, segment.json

A segment appears complete, under a unique name, after it is synced to disk, and never changes. Damaged segments are
ignored and rebuilt. So other processes, kills and the deletion of the cache do no harm.
"""

import json
import shutil
import zlib
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from framedex.analysis.codes import Codes
from framedex.analysis.quantized_ivf import Block, QuantizedIvf
from framedex.core.ids import new_id
from framedex.core.regular_files import regular
from framedex.fulltext.segment import Ints, Keys, Longs
from framedex.search.vectors.folder import publish

UNFINISHED = ".part"
_META = "segment.json"
_FORMAT = 2
_MAPPED = ("int8", "residual")  # the other arrays are small and held in memory
_ARRAYS = (*_MAPPED, "scale", "starts", "centroids", "low", "high", "key_text")


@dataclass(frozen=True)
class CaptionSegment:
    """Texts and their embeddings; texts are numbered in the order of their cells.

    Attributes:
        keys: keys of the texts, ascending by (low, high).
        key_text: int32, shape (texts,): number of the text of each key.
        cells: the embeddings.
        n_candidates: number of candidate texts in a search.
        folder: folder of its files.
    """

    keys: Keys
    key_text: Ints
    cells: QuantizedIvf
    n_candidates: int
    folder: Path

    def __len__(self) -> int:
        return len(self.key_text)

    @property
    def codes(self) -> Codes:
        """The embeddings as stored codes."""
        return self.cells.parts[0].codes

    def find(self, keys: Keys) -> Ints:
        """Return the number of the text of each key, given ascending by ``low``; -1 if it is not in the segment."""
        positions = self.keys.find(keys)
        texts = np.full(len(keys), -1, dtype=np.int32)
        texts[positions >= 0] = self.key_text[positions[positions >= 0]]
        return texts

    def remove(self) -> None:
        """Remove the segment from disk; a process that uses it keeps its mapped files."""
        shutil.rmtree(self.folder, ignore_errors=True)


class SegmentWriter:
    """A writer of one segment, which receives the vectors one after another.

    No file remains of an unfinished segment.

    Args:
        folder: the folder that contains the segments.
        texts, dimension: number of vectors, at least one, and their length.

    Raises:
        OSError: the files cannot be written.
    """

    def __init__(self, folder: Path, texts: int, dimension: int) -> None:
        self._path = folder / f"{new_id()}{UNFINISHED}"
        self._path.mkdir(parents=True)
        self.codes = Codes(
            int8=self._mapped("int8", np.int8, (texts, dimension)),
            residual=self._mapped("residual", np.int8, (texts, dimension)),
            scale=np.zeros(texts, np.float32),
        )

    def _mapped(self, name: str, dtype: Any, shape: tuple[int, ...]) -> npt.NDArray[Any]:
        return np.lib.format.open_memmap(self._path / f"{name}.npy", mode="w+", dtype=dtype, shape=shape)

    def finish(
        self, keys: Keys, centroids: npt.NDArray[np.float32], starts: Longs, n_candidates: int
    ) -> CaptionSegment:
        """Publish the segment and return it.

        Args:
            keys: keys of the texts, in the order of the codes.
            centroids: float32, shape (C, D), unit length: centroids of the cells.
            starts: int64, shape (C + 1,): position of the first text of each cell.
            n_candidates: number of candidate texts in a search.
        """
        order = keys.order()
        small: dict[str, npt.NDArray[Any]] = {
            "scale": self.codes.scale,
            "starts": starts,
            "centroids": centroids,
            "low": keys.low[order],
            "high": keys.high[order],
            "key_text": order.astype(np.int32),
        }
        for name, array in small.items():
            np.save(self._path / f"{name}.npy", array)
        arrays = {**small, "int8": self.codes.int8, "residual": self.codes.residual}
        sums = {name: _sum(array) for name, array in arrays.items()}
        (self._path / _META).write_text(json.dumps({"format": _FORMAT, "n_candidates": n_candidates, "sums": sums}))
        return _segment(arrays, n_candidates, publish(self._path))

    def give_up(self) -> None:
        """Remove the written files."""
        shutil.rmtree(self._path, ignore_errors=True)


def read_caption_segment(folder: Path, dimension: int) -> CaptionSegment | None:
    """Return the segment in a folder; None if damaged, unfinished, missing, or of another format or dimension."""
    if folder.name.endswith(UNFINISHED):
        return None
    with suppress(OSError, ValueError, KeyError, TypeError, EOFError):
        meta = json.loads((folder / _META).read_text())
        arrays = {
            name: np.load(regular(folder / f"{name}.npy"), mmap_mode="r" if name in _MAPPED else None)
            for name in _ARRAYS
        }
        texts = len(arrays["key_text"])
        fits = arrays["int8"].shape == arrays["residual"].shape == (texts, dimension)
        if meta["format"] == _FORMAT and fits and {name: _sum(arrays[name]) for name in _ARRAYS} == meta["sums"]:
            return _segment(arrays, int(meta["n_candidates"]), folder)
    return None


def _segment(arrays: dict[str, npt.NDArray[Any]], n_candidates: int, folder: Path) -> CaptionSegment:
    part = Block(Codes(arrays["int8"], arrays["residual"], arrays["scale"]), arrays["starts"])
    keys = Keys(arrays["low"], arrays["high"])
    return CaptionSegment(keys, arrays["key_text"], QuantizedIvf(arrays["centroids"], [part]), n_candidates, folder)


def _sum(array: npt.NDArray[Any]) -> int:
    """Return the CRC-32 of an array's content, which reveals damage on disk."""
    return zlib.crc32(np.ascontiguousarray(array).data)
