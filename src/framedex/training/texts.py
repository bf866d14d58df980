"""Texts in two arrays, which pickle fast and which forked processes share."""

import os
from collections.abc import Iterable

import numpy as np


class Texts:
    """A sequence of paths or other texts, in UTF-8 one after another; bytes that are no text are surrogate escapes.

    A list has an object for each text, whose reference count changes at each access: a forked process then copies the
    memory of the whole list. These arrays stay shared.

    Args:
        texts: the texts.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        parts = [os.fspath(text).encode("utf-8", "surrogateescape") for text in texts]
        self._data = b"".join(parts)
        self._ends = np.cumsum([0, *map(len, parts)], dtype=np.int64)

    def __len__(self) -> int:
        """Return the number of texts."""
        return len(self._ends) - 1

    def __getitem__(self, index: int) -> str:
        """Return the text at a position, from 0."""
        return self._data[self._ends[index] : self._ends[index + 1]].decode("utf-8", "surrogateescape")
