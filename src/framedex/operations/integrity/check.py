"""The check of a workspace, or of some of its datasets."""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from framedex.core.progress import Progress
from framedex.errors import NotFound, ReadOnly
from framedex.operations.context import Context
from framedex.operations.integrity import caches, entries, files, tables
from framedex.operations.integrity.inspection import Inspection
from framedex.records import CheckResult, DatasetRecord, Finding
from framedex.storage import datasets
from framedex.storage.catalog_checks import file_faults
from framedex.storage.layout import open_layout


def check(
    context: Context,
    names: Sequence[str] | None = None,
    *,
    repair: bool = False,
    progress: Progress | None = None,
) -> CheckResult:
    """Check the catalog and datasets; see :meth:`framedex.Workspace.check`.

    Args:
        context: the open workspace.
        names: names or ids of datasets; None for all, and for files that belong to no dataset.
        repair: whether to repair findings where possible.
        progress: called with the stage and the share that is done; raises to stop.

    Raises:
        NotFound: there is no dataset with a name.
        ReadOnly: repairs are requested, and the workspace was opened for reading.
    """
    if repair and context.catalog.read_only:
        raise ReadOnly(f"the workspace {context.layout.root} was opened for reading; nothing was repaired")
    inspection = Inspection(context, repair=repair, progress=progress)
    inspection.begin("catalog", 0.0)
    if not entries.check_catalog(inspection):
        return inspection.result()
    with context.catalog.read() as connection:
        records = (
            datasets.list_datasets(connection)
            if names is None
            else [datasets.find_dataset(connection, name) for name in names]
        )
    blobs = files.BlobChecks()
    for done, record in enumerate(records):
        with suppress(NotFound):  # it was deleted meanwhile
            _check_dataset(inspection, record, blobs, done / len(records))
    if names is None:
        inspection.begin("folders", 1.0)
        entries.check_folders(inspection)
        caches.check_orphans(inspection)
        files.check_partial(inspection)
    return inspection.result()


def unopened_findings(folder: Path) -> list[Finding]:
    """Return the faults of the catalog of a workspace that cannot be opened; empty if the catalog is sound.

    Raises:
        WorkspaceError: the folder is not a workspace, or cannot be read.
    """
    path = open_layout(folder, read_only=True).catalog
    return [Finding(path=str(path), fault=fault, remedy=entries.RECOVER) for fault in file_faults(path)]


def _check_dataset(inspection: Inspection, record: DatasetRecord, blobs: files.BlobChecks, share: float) -> None:
    name = record.display_name
    inspection.begin(f"{name}: catalog", share)
    entries.check_entry(inspection, record.id)
    inspection.begin(f"{name}: tables", share)
    tables.check_tables(inspection, record.id)
    inspection.begin(f"{name}: uploaded files", share)
    blobs.check(inspection, record.id)
    files.check_uploads(inspection, record.id)
    inspection.begin(f"{name}: caches", share)
    caches.check_caches(inspection, record.id)
