"""Images of media items: pixels at full size, and thumbnails."""
