"""Names of tables in a generation that several packages write."""

MEDIA = "media"
CELLS = "cells"
MEANS = "means"
COPIES = "copies"
INDEX_TABLES = (MEDIA, CELLS, MEANS, COPIES)
"""The tables that indexing writes: index columns of media, cells of the neighbour search, sums of large clusters, pairs
of copies.
"""
