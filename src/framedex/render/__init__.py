"""Display of results: HTML with thumbnails, plots, and progress bars."""
