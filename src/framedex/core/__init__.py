"""Small parts that all packages share: ids, names, checks, files, caches, forks, array types."""
