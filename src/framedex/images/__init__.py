"""Pixels of rows: originals, crops, frames and cached thumbnails."""
