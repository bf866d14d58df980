"""Names of tables in a generation, and of a column, that several packages use."""

MEDIA = "media"
CELLS = "cells"
MEANS = "means"
COPIES = "copies"
LABEL_STATISTICS = "label_statistics"
LABEL_DECISIONS = "label_decisions"
IN_BASKET = "in_basket"
"""The media table's column with the basket: true for media in it, else null."""
INDEX_TABLES = (MEDIA, CELLS, MEANS, COPIES, LABEL_STATISTICS)
"""The tables that indexing writes: index columns of media, cells of the neighbour search, sums of large clusters, pairs
of copies, statistics of labels.
"""
