"""Checks of caches that can be rebuilt: thumbnails, texts, vectors, captions, query images."""

import json
import time
import zipfile
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np

from framedex.core.ids import objects_dataset
from framedex.core.regular_files import read_bytes, read_text, regular
from framedex.errors import CannotDecode
from framedex.fulltext.segment_file import SUFFIX, is_sound
from framedex.images.thumbnails import MOST_BYTES, MOST_PIXELS, verified
from framedex.media.decode import decode
from framedex.operations.integrity.inspection import Inspection
from framedex.storage import datasets, disk
from framedex.storage.layout import Layout, names_dataset

_PARTIAL_S = 3600.0
_REMOVED = "`--repair` removes it; it is made again when it is needed"
_UNFINISHED = (".part", ".partial")


def check_caches(inspection: Inspection, dataset_id: str) -> None:
    """Check all caches of a dataset and of its objects; files are read one at a time."""
    for folder in inspection.context.layout.cached(dataset_id):
        for path, status in disk.walk_files(folder):
            inspection.step()
            inspection.counts["cached files"] += 1
            if fault := _fault(path, status.st_mtime):
                inspection.add(path, fault, _REMOVED, kind="cached files", repair=_removal(path))


def check_orphans(inspection: Inspection) -> None:
    """Check for caches of deleted datasets."""
    layout: Layout = inspection.context.layout
    folders = [path for cache in layout.caches for path in disk.entries(cache) if names_dataset(path)]
    with inspection.context.catalog.read() as connection:
        ids = datasets.dataset_names(connection)
    known = {each for dataset_id in ids for each in (dataset_id, objects_dataset(dataset_id))}
    for path in folders:
        if path.name not in known and not layout.dataset(path.name).exists():
            fault, remedy = "is the cache of a dataset that is gone", "`--repair` and vacuum remove it"
            inspection.add(path, fault, remedy, kind="caches", repair=lambda path=path: disk.remove_tree(path))  # type: ignore[misc]


def _removal(path: Path) -> Callable[[], object]:
    """Return a function that removes a damaged file, with the files that are useless without it."""
    if path.suffix in (".npy", ".json") and (
        (path.parent / "part.json").exists() or (path.parent / "index.json").exists()
    ):
        return lambda: disk.remove_tree(path.parent)
    if path.suffix == ".npy" and not names_dataset(path.parent):
        return lambda: disk.remove_tree(path.parent)
    return lambda: disk.remove_file(path)


def _fault(path: Path, changed_s: float) -> str | None:
    if any(part.endswith(_UNFINISHED) for part in (path.name, path.parent.name)):
        return "never became whole" if changed_s < time.time() - _PARTIAL_S else None
    check = _CHECKS.get(path.suffix)
    with suppress(FileNotFoundError):  # removed meanwhile
        try:
            return None if check is None else check(regular(path))
        except FileNotFoundError:
            raise
        except OSError as error:
            return f"cannot be read: {error.strerror}"
    return None


def _thumbnail_fault(path: Path) -> str | None:
    data = verified(read_bytes(path, MOST_BYTES))
    if data is None:
        return "is damaged: its content does not fit the checksum at its end"
    try:
        decode(data, max_pixels=MOST_PIXELS)
    except CannotDecode as error:
        return f"cannot be decoded: {error}"
    return None


def _text_fault(path: Path) -> str | None:
    return None if is_sound(path) else "is damaged: its content does not fit its name, which is its hash"


def _array_fault(path: Path) -> str | None:
    try:
        np.load(path, mmap_mode="r" if path.stat().st_size else None)
    except (ValueError, EOFError) as error:
        return f"is damaged: {error}"
    return None


def _archive_fault(path: Path) -> str | None:
    try:
        with zipfile.ZipFile(path) as archive:
            damaged = archive.testzip()
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError) as error:
        return f"is damaged: {error}"
    return None if damaged is None else f"is damaged: the content of {damaged} does not fit its checksum"


def _json_fault(path: Path) -> str | None:
    try:
        json.loads(read_text(path))
    except (ValueError, RecursionError) as error:
        return f"is damaged: {error}"
    return None


_CHECKS: dict[str, Callable[[Path], str | None]] = {
    ".jpg": _thumbnail_fault,
    SUFFIX: _text_fault,
    ".npy": _array_fault,
    ".npz": _archive_fault,
    ".json": _json_fault,
}
