"""Pages over a dataset: clusters, duplicate groups, issues, similar videos."""
