"""The texts of the rows of one generation, with the statistics that ranking needs."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from framedex.core.forks import cached_property
from framedex.fulltext.segment import Ints, Longs, Segment, concat_ranges
from framedex.fulltext.tokenizer import TextField

Floats = npt.NDArray[np.float64]


class RowTexts:
    """The rows of each text, immutable.

    Args:
        texts: int32, shape (fields, rows): the text of each field of each row, numbered over all segments; -1 for none.
        segments: the segments of the texts.
    """

    def __init__(self, texts: Ints, segments: Sequence[Segment]) -> None:
        self.segments = tuple(segments)
        self.count = texts.shape[1]
        sizes = [len(segment) for segment in segments]
        self.bases = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        self._field = np.concatenate([np.empty(0, dtype=np.uint8), *(segment.field for segment in segments)])
        self._length = np.concatenate([np.empty(0, dtype=np.int32), *(segment.length for segment in segments)])
        self._rows, self._start = _by_text(texts, int(self.bases[-1]))

    @cached_property
    def _mean_length(self) -> Floats:
        """Mean number of words of each field, over the rows with a word there; 1 if there are no such rows."""
        rows = np.diff(self._start)
        means = np.ones(len(TextField))
        for field in TextField:
            counted = (self._field == field) & (self._length > 0)
            having = int(rows[counted].sum())
            if having:
                means[field] = float((rows[counted] * self._length[counted]).sum()) / having
        return means

    def used(self) -> list[npt.NDArray[np.bool_]]:
        """Return for each segment which of its texts belong to a row."""
        return np.split(np.diff(self._start) > 0, self.bases[1:-1])

    def relative_length(self, texts: Longs) -> Floats:
        """Return the lengths of texts, divided by the mean of their fields."""
        return np.asarray(self._length[texts] / self._mean_length[self._field[texts]])

    def field_of(self, texts: Longs) -> npt.NDArray[np.uint8]:
        """Return the fields of texts."""
        return self._field[texts]

    def rows_of(self, texts: Longs) -> tuple[Longs, Longs]:
        """Return the rows that have any of some texts, and for each row the index of its text in the argument."""
        counts = self._start[texts + 1] - self._start[texts]
        indices = np.repeat(np.arange(len(texts)), counts)
        return self._rows[concat_ranges(self._start[texts], counts)].astype(np.int64), indices


def _by_text(texts: Ints, count: int) -> tuple[Ints, Longs]:
    """Return all rows sorted by text, and the offset of the rows of each text: int64, shape (count + 1,)."""
    field_rows = texts.shape[1]
    flat = texts.ravel()
    place = np.flatnonzero(flat >= 0)
    key = np.sort(flat[place].astype(np.int64) << 32 | place % max(field_rows, 1))
    start = np.concatenate([[0], np.cumsum(np.bincount(flat[place], minlength=count))])
    return (key & 0xFFFF_FFFF).astype(np.int32), start
