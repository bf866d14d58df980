"""Annotations of images: labels, captions and bounding boxes, a module for each format that reads and writes it."""
