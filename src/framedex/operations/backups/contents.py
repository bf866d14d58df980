"""The files of a dataset that belong into a backup."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from framedex.errors import NotFound, WorkspaceError
from framedex.storage import disk
from framedex.storage.backups.catalog_copy import NamedFiles
from framedex.storage.backups.copying import MissingSource, SourceFile, source_file
from framedex.storage.blobs import count_missing_blobs, needed_blobs, uploads_folder
from framedex.storage.journal_files import JOURNAL
from framedex.storage.layout import Layout
from framedex.storage.table_files import HINT, files_of, rows_key
from framedex.storage.table_names import MEDIA
from framedex.storage.table_versions import Table
from framedex.storage.upload_lists import list_path

Missing = Callable[[str], None]
"""Called with the path, in the workspace, of a file that does not exist any more; raises unless it may be left out."""


def dataset_contents(layout: Layout, files: NamedFiles, missing: Missing) -> Iterator[SourceFile]:
    """Yield the files that a copy of the catalog names.

    Args:
        layout: of the workspace.
        files: of a dataset, by the copy of the catalog.
        missing: decides about files of the journal that do not exist any more.

    Raises:
        MissingSource: a file does not exist any more, or a version of a table has no files.
    """
    root, folder = layout.root, layout.dataset(files.dataset_id)
    # First what is gone soonest.
    for name in sorted(files.journal):
        path = folder / JOURNAL / name
        try:
            yield source_file(root, path)
        except MissingSource:
            missing(path.relative_to(root).as_posix())
    for upload_id, length in files.lists.items():
        yield source_file(root, list_path(folder, upload_id), size=length)
    for upload in sorted(files.uploads):
        for path, _ in disk.walk_files(uploads_folder(folder) / upload):
            yield source_file(root, path)
    for name, versions in sorted(files.versions.items()):
        path = layout.table(files.dataset_id, name)
        for relative in _table_files(path, sorted(versions)):
            yield source_file(root, path / relative)
    for blob in needed_blobs(folder, _uploaded_hashes(layout, files)):
        yield source_file(root, blob)


def count_missing_uploads(layout: Layout, files: NamedFiles) -> int:
    """Return the number of uploaded images whose rows are in the dataset, but whose files are not."""
    return count_missing_blobs(layout.dataset(files.dataset_id), _uploaded_hashes(layout, files))


def _table_files(path: Path, versions: list[int]) -> list[str]:
    try:
        for version in versions:
            Table(path, version)  # a version that is gone would have no files
        return sorted(files_of(path, versions) - {HINT})
    except (NotFound, WorkspaceError, OSError, ValueError) as error:
        raise MissingSource(f"the table {path.stem!r} of dataset {path.parent.name}: {error}") from error


def _uploaded_hashes(layout: Layout, files: NamedFiles) -> Iterator[pa.Array]:
    """Yield the content hashes of uploaded media in all retained versions."""
    versions, roots = sorted(files.versions.get(MEDIA, ())), pa.array(files.uploaded_roots, pa.int64())
    if not versions or not len(roots):
        return
    path = layout.media(files.dataset_id)
    try:
        for version in {rows_key(path, each): each for each in versions}.values():
            for batch in Table(path, version).scan(["content_hash", "root"]):
                is_uploaded = pc.is_in(batch.column("root").cast(pa.int64()), value_set=roots)
                yield batch.column("content_hash").filter(is_uploaded)
    except (NotFound, WorkspaceError, OSError, ValueError) as error:
        raise MissingSource(f"the media of dataset {files.dataset_id}: {error}") from error
