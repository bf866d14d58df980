"""The check of a workspace, or of some of its datasets."""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from framedex.core.progress import Progress
from framedex.errors import InvalidInput, NotFound, ReadOnly
from framedex.operations.context import Context
from framedex.operations.integrity import caches, entries, tables
from framedex.operations.integrity import files as blob_files
from framedex.operations.integrity.inspection import Inspection
from framedex.operations.integrity.journal import check_journal
from framedex.operations.integrity.source_files import check_source_files
from framedex.operations.integrity.transactions import check_transactions
from framedex.operations.integrity.users import check_users
from framedex.records import CheckResult, Finding
from framedex.storage import datasets
from framedex.storage.catalog_checks import catalog_faults
from framedex.storage.layout import open_layout


def check(
    context: Context,
    names: Sequence[str] | None = None,
    *,
    repair: bool = False,
    files: bool = False,
    content: bool = False,
    progress: Progress | None = None,
) -> CheckResult:
    """Check the catalog and datasets; see :meth:`framedex.Workspace.check`.

    Args:
        context: the open workspace.
        names: names or ids of datasets; None for all, and for files that belong to no dataset.
        repair: whether to repair findings where possible.
        files: whether to look for the source files.
        content: whether to compare their content, too.
        progress: called with the stage and the share that is done; raises to stop.

    Raises:
        InvalidInput: the content of files is to be compared that are not looked for.
        NotFound: there is no dataset with a name.
        ReadOnly: repairs are requested, and the workspace was opened for reading.
    """
    if content and not files:
        raise InvalidInput("content=True compares the content of source files, so it needs files=True")
    if repair and context.catalog.read_only:
        raise ReadOnly(f"the workspace {context.layout.root} was opened for reading; nothing was repaired")
    inspection = Inspection(context, repair=repair, progress=progress)
    inspection.begin("catalog", 0.0)
    if (faults := entries.check_catalog(inspection)) is None:
        return inspection.result()
    chosen = _chosen(context, names)
    blobs = blob_files.BlobChecks()
    for done, (dataset_id, name) in enumerate(chosen.items()):
        with suppress(NotFound):  # it was deleted meanwhile
            is_damaged = dataset_id in faults.datasets
            _check_dataset(inspection, dataset_id, name, blobs, done / len(chosen), is_damaged=is_damaged)
            if files and not is_damaged:
                inspection.begin(f"{name}: source files", done / len(chosen))
                check_source_files(inspection, dataset_id, name, content=content)
    if names is None:
        inspection.begin("folders", 1.0)
        entries.check_folders(inspection)
        caches.check_orphans(inspection)
        blob_files.check_partial(inspection)
        check_users(inspection)
    entries.add_faults(inspection, faults)
    return inspection.result()


def _chosen(context: Context, names: Sequence[str] | None) -> dict[str, str]:
    """Return the names of the datasets to check, by id. Damaged entries are among them, so no record is made."""
    with context.catalog.read() as connection:
        known = datasets.dataset_names(connection)
        if names is None:
            return known
        named = {name: key for key, name in datasets.dataset_names(connection, context.namespace).items()}
        ids = [
            name
            if name in known
            else named.get(name) or datasets.find_dataset(connection, name, namespace=context.namespace).id
            for name in names
        ]
    return {dataset_id: known[dataset_id] for dataset_id in ids}


def unopened_findings(folder: Path) -> list[Finding]:
    """Return the faults of the catalog of a workspace that cannot be opened; empty if the catalog is sound.

    Raises:
        WorkspaceError: the folder is not a workspace, or cannot be read.
    """
    path = open_layout(folder, read_only=True).catalog
    return [Finding(path=str(path), fault=fault, remedy=entries.RECOVER) for fault in catalog_faults(path)]


def _check_dataset(
    inspection: Inspection, dataset_id: str, name: str, blobs: blob_files.BlobChecks, share: float, *, is_damaged: bool
) -> None:
    inspection.begin(f"{name}: catalog", share)
    if not entries.check_entry(inspection, dataset_id, is_damaged=is_damaged):
        return  # nothing says which tables and files it needs
    inspection.begin(f"{name}: tables", share)
    tables.check_tables(inspection, dataset_id)
    inspection.begin(f"{name}: journal", share)
    check_journal(inspection, dataset_id, name)
    inspection.begin(f"{name}: uploaded files", share)
    blobs.check(inspection, dataset_id)
    blob_files.check_uploads(inspection, dataset_id)
    check_transactions(inspection, dataset_id)
    inspection.begin(f"{name}: caches", share)
    caches.check_caches(inspection, dataset_id)
