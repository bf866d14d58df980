"""A toy encoder of texts: words that mean the same share a direction."""

import zlib
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

SYNONYMS = {
    "automobile": "car", "vehicle": "car", "cars": "car", "hound": "dog", "puppy": "dog", "dogs": "dog",
    "crimson": "red", "scarlet": "red", "ocean": "sea", "kitten": "cat", "feline": "cat", "lorry": "truck",
}  # fmt: skip
_STOPPED = {"a", "an", "the", "of", "in", "on", "with"}


class Meanings:
    """Sums of directions of words at random, by what they mean; notes what it was asked for.

    Attributes:
        asked: the texts, in order.
        left: texts until it fails; None for never.
    """

    def __init__(self, name: str = "meanings", dimension: int = 256) -> None:
        self.name, self.dimension = name, dimension
        self.asked: list[str] = []
        self.left: int | None = None

    def encode_texts(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        if self.left is not None:
            self.left -= len(texts)
            if self.left < 0:
                raise RuntimeError("the text encoder is out of order")
        self.asked += texts
        found = np.array([self._vector(text) for text in texts], np.float32)
        return np.asarray(found / np.linalg.norm(found, axis=1, keepdims=True), np.float32)

    def _vector(self, text: str) -> npt.NDArray[np.float64]:
        words = [word for word in text.lower().split() if word not in _STOPPED]
        total = np.zeros(self.dimension)
        for word in words or [text]:
            seed = zlib.crc32(f"{self.name} {SYNONYMS.get(word, word)}".encode())
            total += np.random.default_rng(seed).standard_normal(self.dimension)
        return total
