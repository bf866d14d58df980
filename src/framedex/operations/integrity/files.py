"""Checks of uploaded files against their hashes, of unreferenced uploads, and of incomplete files."""

import hashlib
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from framedex.core.regular_files import open_binary
from framedex.operations.integrity.inspection import Inspection
from framedex.storage import blobs, datasets, disk
from framedex.storage.blobs import blob_path
from framedex.storage.media_rows import path_of_text
from framedex.storage.retention import RetentionLimits, check_unused, read_retained, referenced_uploads
from framedex.storage.schema import BLOBS_ROOT
from framedex.storage.table_checks import check_regular, engine_fault
from framedex.storage.table_files import rows_key
from framedex.storage.table_names import MEDIA
from framedex.storage.table_versions import Table

_PARTIAL_S, _UPLOAD_S = 3600.0, 86_400.0  # as long as vacuum leaves them
_COLUMNS = ("path", "path_raw", "root", "content_hash")
_REMOVED = "`--repair` and vacuum remove it"


class BlobChecks:
    """Checks of uploaded files. A file that several datasets share is read once."""

    def __init__(self) -> None:
        self._sound: set[disk.Inode] = set()

    def check(self, inspection: Inspection, dataset_id: str) -> None:
        """Check the uploaded files of a dataset, and that no row lacks its file."""
        layout = inspection.context.layout
        for path, status in disk.walk_files(layout.blobs(dataset_id)):
            inspection.step()
            inspection.counts["uploaded files"] += 1
            inode = disk.inode_of(status)
            if inode in self._sound:
                continue
            fault = _blob_fault(path)
            if fault is None and status.st_nlink > 1:
                self._sound.add(inode)
            if fault is not None:
                inspection.add(path, fault, "remove the file and upload the image again", kind="uploaded files")
        _check_needed(inspection, dataset_id)


def _blob_fault(path: Path) -> str | None:
    wanted = path.parent.name + path.name.partition(".")[0]
    try:
        with open_binary(path) as file:
            digest = hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()
    except FileNotFoundError:  # removed meanwhile
        return None
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    return (
        None if digest == wanted else "is not what was uploaded: its content does not fit its name, which is its hash"
    )


def _check_needed(inspection: Inspection, dataset_id: str) -> None:
    """Check that the rows of all retained generations have their uploaded files."""
    context, folder = inspection.context, inspection.context.layout.dataset(dataset_id)
    with context.catalog.read() as connection:
        roots = datasets.get_roots(connection, dataset_id)
        versions = read_retained(connection, dataset_id, RetentionLimits.ago(0)).versions.get(MEDIA, set())
    uploaded = {number for number, root in enumerate(roots) if root == BLOBS_ROOT}
    if not uploaded:
        return
    path = context.layout.media(dataset_id)
    missing: set[Path] = set()

    def look() -> None:
        check_regular(path)
        for version in {rows_key(path, each): each for each in sorted(versions)}.values():
            for batch in Table(path, version).scan(_COLUMNS):
                inspection.step()
                missing.update(blob for row in batch.to_pylist() if (blob := _missing(row, uploaded, folder)))

    engine_fault(look)  # a table that cannot be read has its finding
    for blob in sorted(missing):
        inspection.add(blob, "is missing, and a row needs it", "upload the image again", kind="missing uploaded files")


def _missing(row: dict[str, Any], uploaded: set[int], folder: Path) -> Path | None:
    if row["root"] not in uploaded or row["content_hash"] is None:
        return None
    blob = blob_path(folder, row["content_hash"], path_of_text(row["path"], row["path_raw"]))
    return None if blob.exists() else blob


def check_uploads(inspection: Inspection, dataset_id: str) -> None:
    """Check that each listed upload belongs to a task that can still run."""
    context, folder, limits = inspection.context, inspection.context.layout.dataset(dataset_id), RetentionLimits.ago(0)
    with context.catalog.read() as connection:
        named = referenced_uploads(connection, dataset_id, limits)
    for upload_id, changed_s, is_whole in blobs.uploads(folder):
        if upload_id in named or changed_s >= time.time() - (_PARTIAL_S if is_whole else _UPLOAD_S):
            continue

        def remove(upload_id: str = upload_id) -> None:
            with context.catalog.write() as connection:
                check_unused(connection, dataset_id)
                blobs.remove_upload(folder, upload_id)

        path = blobs.uploads_folder(folder) / upload_id
        inspection.add(path, "is an upload that no task needs any more", _REMOVED, kind="uploads", repair=remove)


def check_partial(inspection: Inspection) -> None:
    """Check for incomplete files in the workspace's folder."""
    for path in inspection.context.layout.root.glob(".*.partial"):
        with suppress(OSError):
            if path.lstat().st_mtime < time.time() - _PARTIAL_S:
                fault = "never became whole"
                inspection.add(path, fault, _REMOVED, kind="partial files", repair=lambda path=path: path.unlink())  # type: ignore[misc]
