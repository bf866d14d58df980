"""Names of tables in a generation that several packages write."""

MEDIA = "media"
CELLS = "cells"
MEANS = "means"
COPIES = "copies"
LABEL_STATISTICS = "label_statistics"
LABEL_DECISIONS = "label_decisions"
INDEX_TABLES = (MEDIA, CELLS, MEANS, COPIES, LABEL_STATISTICS)
"""The tables that indexing writes: index columns of media, cells of the neighbour search, sums of large clusters, pairs
of copies, statistics of labels.
"""
