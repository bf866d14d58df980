"""The vector index of a dataset: building, cache on disk, search."""
