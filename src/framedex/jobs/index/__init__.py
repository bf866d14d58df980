"""Indexing: neighbours, clusters, duplicates, scores and issues as columns, and the commit."""
