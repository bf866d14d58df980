"""Objects: rows of a table of their own, one per bounding box."""
