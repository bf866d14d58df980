"""Names of a generation's tables that several packages write."""

MEDIA = "media"
CELLS = "cells"
MEANS = "means"
INDEX_TABLES = (MEDIA, CELLS, MEANS)
"""The tables that an index writes: index columns of images, cells of the neighbour search, sums of large clusters."""
