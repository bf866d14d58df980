"""Index of more vectors than fit into memory: rows are sorted into groups of cells, on disk, and compared by group."""
