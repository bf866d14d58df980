"""Search over a dataset's media: by vector, by meaning, by keywords; and benchmarks of search."""
