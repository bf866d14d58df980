"""File suffixes of images and videos."""

import os

IMAGE_SUFFIXES = frozenset((
    ".png", ".jpg", ".jpeg", ".gif", ".tif", ".tiff", ".bmp", ".webp", ".jp2", ".jfif", ".heic", ".heif", ".avif",
    ".jpe", ".apng", ".j2k", ".hif", ".pbm", ".pgm", ".ppm", ".pnm", ".dcm", ".dicom",
))  # fmt: skip
ARCHIVE_SUFFIXES = (".zip", ".tar", ".tar.gz", ".tgz")
VIDEO_SUFFIXES = frozenset((
    ".mp4", ".mov", ".m4v", ".avi", ".mkv", ".wmv", ".flv", ".webm",
    ".3g2", ".3gp", ".asf", ".m2ts", ".m2v", ".mpe", ".mpeg", ".mpg", ".mts", ".ogv", ".vob",
))  # fmt: skip
"""Without ``.ts``, which is also the suffix of programs."""


def is_image(name: str) -> bool:
    """Return whether a file name has the suffix of an image."""
    return os.path.splitext(name)[1].lower() in IMAGE_SUFFIXES  # noqa: PTH122 - names may be any bytes; no Path needed


def is_video(name: str) -> bool:
    """Return whether a file name has the suffix of a video."""
    return os.path.splitext(name)[1].lower() in VIDEO_SUFFIXES  # noqa: PTH122


def is_media(name: str) -> bool:
    """Return whether a file name has the suffix of an image or a video."""
    return is_image(name) or is_video(name)
