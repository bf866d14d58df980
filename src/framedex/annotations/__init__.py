"""Annotations of images: labels, captions and bounding boxes. Each format has one module, which reads and writes it."""
