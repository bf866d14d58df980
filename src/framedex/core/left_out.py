"""Files and folders that sources leave out by their names, and the reasons under which they are counted."""

import os
import re
from collections.abc import Iterable

from framedex.core.skipped import Skipped

HIDDEN_FILES, HIDDEN_FOLDERS = "hidden files", "hidden folders"
SYSTEM_FILES, SYSTEM_FOLDERS = "files in system folders such as @eaDir", "system folders such as @eaDir"
_SYSTEM = frozenset((
    "@eadir", "@recycle", "@recently-snapshot", "#recycle", "#snapshot", "$recycle.bin", "__macosx", "lost+found",
    "recycler", "system volume information",
))  # fmt: skip
"""Folders of thumbnails, deleted files and old versions, in lower case: of Synology, QNAP, Windows, macOS and ext4."""
SYSTEM_PATTERN = rf"(?i)(^|/)({'|'.join(map(re.escape, sorted(_SYSTEM)))})/"
"""A regular expression that finds such a folder in a path with slashes."""
_KNOWN = frozenset((
    ".arrow", ".caption", ".cfg", ".csv", ".data", ".db", ".gz", ".htm", ".html", ".ini", ".ipynb", ".json", ".jsonl",
    ".label", ".log", ".mat", ".md", ".names", ".npy", ".npz", ".onnx", ".parquet", ".pdf", ".pkl", ".pt", ".pth",
    ".pts", ".py", ".rst", ".tar", ".toml", ".ts", ".tsv", ".txt", ".xml", ".yaml", ".yml", ".zip",
    ".arw", ".cr2", ".cr3", ".dng", ".nef", ".orf", ".pef", ".raf", ".rw2", ".srw",  # raw images begin like TIFF
    ".exr", ".jxl", ".lsm", ".ndpi", ".nii", ".psd", ".scn", ".stk", ".svg", ".svs",
))  # fmt: skip
"""Suffixes of annotations, programs, documents and models, of which a folder may have very many, and of formats of
images that are not read."""
MASK_FOLDERS = ("SegmentationClass", "SegmentationObject")
"""Folders of images of masks, which are annotations."""
MASK_FILES = "segmentation masks, which are annotations"
_OF_MASKS = f"folders of {MASK_FILES}"
MASK_PATTERN = rf"(^|/)({'|'.join(MASK_FOLDERS)})/"
"""A regular expression that finds such a folder in a path with slashes."""
_OTHER, _MOST = "other files", 20


def is_left_out(name: str) -> bool:
    """Return whether a folder of this name is left out: hidden ones, those that systems make, and those of masks."""
    return name.startswith(".") or name.lower() in _SYSTEM or name in MASK_FOLDERS


def folder_reason(name: str) -> str:
    """Return why a folder for which :func:`is_left_out` is true is left out."""
    if name in MASK_FOLDERS:
        return _OF_MASKS
    return HIDDEN_FOLDERS if name.startswith(".") else SYSTEM_FOLDERS


def file_reason(path: str) -> str | None:
    """Return why the file with a relative path, with slashes, is left out by its folders or its name; None if kept."""
    if re.search(SYSTEM_PATTERN, path):
        return SYSTEM_FILES
    if path.startswith(".") or "/." in path:
        return HIDDEN_FILES
    return MASK_FILES if re.search(MASK_PATTERN, path) else None


def says_kind(name: str) -> bool:
    """Return whether the suffix of a file name is that of a known kind of file other than images and videos to read."""
    return os.path.splitext(name)[1].lower() in _KNOWN or name.upper() == "DICOMDIR"  # noqa: PTH122


def count_others(skipped: Skipped, names: Iterable[str]) -> None:
    """Count files of other kinds, by reasons that name up to 20 suffixes.

    Args:
        skipped: the counts and examples.
        names: the paths of the files.
    """
    for name in names:
        suffix = os.path.splitext(name)[1].lower()  # noqa: PTH122 - names may be any bytes
        reason = f"{_OTHER} ({suffix if suffix.isprintable() and suffix else 'no suffix'})"
        is_new = reason not in skipped and sum(each.startswith(_OTHER) for each in skipped) >= _MOST
        skipped.note(_OTHER if is_new else reason, name)
