"""Names of tables in a generation, and of a column, that several packages use."""

from enum import IntEnum

MEDIA = "media"
CELLS = "cells"
MEANS = "means"
COPIES = "copies"
LABEL_STATISTICS = "label_statistics"
LABEL_DECISIONS = "label_decisions"
IN_BASKET = "in_basket"
"""The media table's column with the basket: true for media in it, else null."""
KEEPER = "keeper"
"""The media table's column with media that clean-ups leave in the dataset: a :class:`KeeperMark`, else null."""
INDEX_TABLES = (MEDIA, CELLS, MEANS, COPIES, LABEL_STATISTICS)
"""The tables that indexing writes: index columns of media, cells of the neighbour search, sums of large clusters, pairs
of copies, statistics of labels.
"""


class KeeperMark(IntEnum):
    """The reason why clean-ups leave a media item in the dataset."""

    LAST = 1
    """Clean-ups removed its copies."""
    CHOSEN = 2
    """A person chose it."""
