"""Storage on disk: the folder, the catalog, the tables, and the engine that filters them."""
