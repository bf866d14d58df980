"""Images outside of tables: finding files, reading lists and annotations, decoding, thumbnails."""
