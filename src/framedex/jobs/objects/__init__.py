"""Objects: rows for bounding boxes."""
