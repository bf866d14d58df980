"""Which rows of a state of a table have which texts, and what ranking needs to know of them."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from framedex.forks import cached_property
from framedex.fulltext.segment import Ints, Longs, Segment, ramps
from framedex.fulltext.words import Field

Floats = npt.NDArray[np.float64]


class RowTexts:
    """The texts of rows. It never changes.

    Args:
        texts: int32, shape (fields, rows): the text of each field of each row, counted over all segments; -1 for none.
        segments: where the texts are.
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
        """Mean number of words of each field, over the rows that have any there; 1 where none has."""
        rows = np.diff(self._start)
        means = np.ones(len(Field))
        for field in Field:
            chosen = (self._field == field) & (self._length > 0)
            having = int(rows[chosen].sum())
            if having:
                means[field] = float((rows[chosen] * self._length[chosen]).sum()) / having
        return means

    def used(self) -> list[npt.NDArray[np.bool_]]:
        """Return for each segment which of its texts some row has."""
        return np.split(np.diff(self._start) > 0, self.bases[1:-1])

    def relative_length(self, texts: Longs) -> Floats:
        """Return how long texts are, where 1 is the mean of their field."""
        return np.asarray(self._length[texts] / self._mean_length[self._field[texts]])

    def field_of(self, texts: Longs) -> npt.NDArray[np.uint8]:
        """Return the fields of texts."""
        return self._field[texts]

    def rows_of(self, texts: Longs) -> tuple[Longs, Longs]:
        """Return the rows that have any of some texts, and for each the place of its text among those given."""
        counts = self._start[texts + 1] - self._start[texts]
        places = np.repeat(np.arange(len(texts)), counts)
        return self._rows[ramps(self._start[texts], counts)].astype(np.int64), places


def _by_text(texts: Ints, count: int) -> tuple[Ints, Longs]:
    """Return all rows sorted by text, and where those of each text begin: int64, shape (count + 1,)."""
    field_rows = texts.shape[1]
    flat = texts.ravel()
    place = np.flatnonzero(flat >= 0)
    key = np.sort(flat[place].astype(np.int64) << 32 | place % max(field_rows, 1))
    start = np.concatenate([[0], np.cumsum(np.bincount(flat[place], minlength=count))])
    return (key & 0xFFFF_FFFF).astype(np.int32), start
