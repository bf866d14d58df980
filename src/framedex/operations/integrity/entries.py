"""Checks of the catalog: its file, its references, and its agreement with the manifests in the datasets' folders."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from framedex.core.ids import is_id
from framedex.core.naming import copy_name
from framedex.errors import WorkspaceError
from framedex.operations.integrity.inspection import Inspection
from framedex.storage import datasets, disk
from framedex.storage.alert_queue import restore_queue, stored_queue
from framedex.storage.catalog_checks import RowFault, file_faults, reference_faults, row_faults
from framedex.storage.journal_rows import restore_steps, stored_steps
from framedex.storage.layout import names_dataset
from framedex.storage.manifest import MANIFEST, Manifest, has_manifest, note_change, read_manifest
from framedex.storage.manifest_rows import (
    describe_dataset,
    insert_described,
    remove_dataset_rows,
    remove_orphans,
    snapshot_files,
    states_of,
)
from framedex.storage.retention import check_unused
from framedex.storage.row_checks import Plain
from framedex.storage.row_values import WrongValue
from framedex.storage.schema import exports, tasks
from framedex.storage.table_checks import opening_fault
from framedex.storage.upload_rows import insert_stored
from framedex.storage.view_rows import restore_points, stored_points

RECOVER = "close all programs that use the workspace, then run `framedex recover`"
"""The remedy for a damaged catalog."""
_REBUILT = "`--repair` rebuilds it from what the dataset's folder says"
_WRITTEN = "`--repair` writes it again"
_COPY = "neither says what the dataset holds: restore the catalog or the folder from a copy"
_SEE_DATASET = "see what is said of that dataset"
_ROW_REMOVED = "`--repair` removes the row"


@dataclass(frozen=True)
class CatalogFaults:
    """Faults of the rows of a catalog whose file is intact.

    Attributes:
        references: dangling references, one line each.
        rows: rows with wrong values.
    """

    references: Sequence[str] = ()
    rows: Sequence[RowFault] = ()

    @property
    def datasets(self) -> set[str]:
        """The ids of the datasets that have rows with wrong values."""
        return {fault.dataset_id for fault in self.rows if fault.dataset_id is not None}


def check_catalog(inspection: Inspection) -> CatalogFaults | None:
    """Check the catalog's file and rows; return the faults of the rows, or None if the catalog cannot be read.

    Rows that no dataset needs get their findings here: those of the history, and those of no valid dataset.
    """
    path = inspection.context.layout.catalog
    if faults := file_faults(path):
        for fault in faults:
            inspection.add(path, fault, RECOVER, kind="faults")
        return None
    others = []
    for row in row_faults(path):
        if row.table in (tasks.name, exports.name) or not is_id(row.dataset_id):
            repair = lambda row=row: _remove_row(inspection, row)  # noqa: E731
            inspection.add(path, row.text, _ROW_REMOVED, kind="rows", repair=repair)
        else:
            others.append(row)
    return CatalogFaults(reference_faults(path), others)


def add_faults(inspection: Inspection, faults: CatalogFaults) -> None:
    """Add a finding for each fault of the catalog's rows; those that the repair of a dataset removed are repaired."""
    path = inspection.context.layout.catalog
    for reference in faults.references:
        repair = partial(_settle_reference, inspection, reference)
        inspection.add(path, reference, _SEE_DATASET, kind="references", repair=repair)
    for row in faults.rows:
        repair = partial(_check_gone, row, row_faults, path)
        inspection.add(path, row.text, _SEE_DATASET, kind="rows", repair=repair)


def _settle_reference(inspection: Inspection, reference: str) -> None:
    """Remove rows whose dataset or saved view does not exist and will not return; check that a reference holds now."""
    layout = inspection.context.layout
    with inspection.context.catalog.write() as connection:
        remove_orphans(connection, lambda dataset_id: is_id(dataset_id) and has_manifest(layout.dataset(dataset_id)))
    _check_gone(reference, reference_faults, layout.catalog)


def _check_gone(fault: object, faults: Callable[[Path], Sequence[object]], path: Path) -> None:
    if fault in faults(path):
        raise WorkspaceError("it is still there after the repair of the datasets")


def _remove_row(inspection: Inspection, fault: RowFault) -> None:
    """Remove a row that is still faulty."""
    catalog = inspection.context.catalog
    with catalog.write() as connection:
        if fault in row_faults(inspection.context.layout.catalog):
            connection.exec_driver_sql(f"DELETE FROM {fault.table} WHERE rowid = ?", (fault.number,))


def check_entry(inspection: Inspection, dataset_id: str, *, is_damaged: bool) -> bool:
    """Check that a dataset's catalog entry agrees with the manifest in its folder; return whether it can be read.

    Args:
        inspection: the check in progress.
        dataset_id: the dataset.
        is_damaged: whether rows of the entry have wrong values.
    """
    catalog, folder = inspection.context.catalog, inspection.context.layout.dataset(dataset_id)
    inspection.counts["datasets"] += 1
    with catalog.read() as connection:
        fault = _fault(connection, folder, is_damaged=is_damaged)
    if fault is not None and not catalog.read_only:  # a commit may have come between both
        with catalog.write() as connection:
            fault = _fault(connection, folder, is_damaged=is_damaged)
    if fault is None:
        return True
    if fault.rebuilt is not None:
        manifest = fault.rebuilt
        repair = lambda: _rebuild(inspection, manifest)  # noqa: E731
        is_repaired = inspection.add(inspection.context.layout.catalog, fault.text, _REBUILT, repair=repair)
    elif fault.is_damage:
        is_repaired = inspection.add(folder / MANIFEST, fault.text, _COPY)
    else:
        repair = lambda: _rewrite(inspection, dataset_id, without=fault.unread)  # noqa: E731
        is_repaired = inspection.add(folder / MANIFEST, fault.text, _WRITTEN, repair=repair)
    return is_repaired or not fault.is_damage


@dataclass(frozen=True)
class _Fault:
    """A difference between a dataset's catalog entry and its manifest.

    Attributes:
        text: description of the fault.
        rebuilt: manifest from which to rebuild the entry; None if the manifest is to be written again.
        unread: snapshot files to write again.
        is_damage: whether rows of the entry cannot be read.
    """

    text: str
    rebuilt: Manifest | None = None
    unread: Collection[str] = ()
    is_damage: bool = False


def _fault(connection: Any, folder: Path, *, is_damaged: bool) -> _Fault | None:
    try:
        manifest = read_manifest(folder)
    except WorkspaceError as error:
        return _Fault(str(error), is_damage=is_damaged)
    try:
        return _damage(folder, manifest) if is_damaged else _difference(connection, folder, manifest)
    except WrongValue:  # a row of another dataset, or damaged meanwhile
        return _damage(folder, manifest)


def _damage(folder: Path, manifest: Manifest | None) -> _Fault:
    if manifest is None:
        text = f"does not say what the dataset {folder.name} holds, whose entry in the catalog is damaged"
        return _Fault(text, is_damage=True)
    return _Fault(f"the entry of dataset {manifest.name!r} is damaged", rebuilt=manifest, is_damage=True)


def _difference(connection: Any, folder: Path, manifest: Manifest | None) -> _Fault | None:
    record = datasets.find_dataset(connection, folder.name)
    body, files = describe_dataset(connection, folder.name), list(snapshot_files(connection, folder.name))
    if manifest is None:
        if body is None and datasets.embedding_config(connection, folder.name) is None:  # it is being made
            return None
        return _Fault(f"does not say what the dataset {record.display_name!r} holds")
    if manifest.unsettled:  # a commit is under way, or whoever opens the workspace for writing sees to it
        return None
    if _is_newer(manifest, body):
        text = f"the entry of dataset {record.display_name!r} is older than what the dataset's folder says, or damaged"
        return _Fault(text, rebuilt=manifest)
    if manifest.unread:
        return _Fault("; ".join(manifest.unread.values()), unread=tuple(manifest.unread))
    return None if manifest.says(body, files) else _Fault("says something else than the catalog")


def check_folders(inspection: Inspection) -> None:
    """Check that each folder of a dataset has an entry in the catalog."""
    context, layout = inspection.context, inspection.context.layout
    folders = [path for path in disk.entries(layout.datasets) if names_dataset(path)]
    with context.catalog.read() as connection:  # a dataset has its row before its folder
        names = datasets.dataset_names(connection)
    for path in folders:
        if path.name in names:
            continue
        if not has_manifest(path):
            fault, remedy = "is left of a dataset that was deleted", "`--repair` and vacuum remove it"
            inspection.add(path, fault, remedy, repair=lambda path=path: disk.remove_tree(path))  # type: ignore[misc]
            continue
        try:
            manifest = read_manifest(path)
            assert manifest is not None, "it was there"
        except WorkspaceError as error:
            inspection.add(path / MANIFEST, str(error), "nothing says what the dataset holds: restore the file")
            continue
        fault = f"the catalog has no entry of the dataset {manifest.name!r}, as an older copy of it would"
        repair = lambda manifest=manifest: _rebuild(inspection, manifest)  # noqa: E731
        inspection.add(path, fault, _REBUILT, repair=repair)


def _is_newer(manifest: Manifest, body: Plain | None) -> bool:
    """Return whether a manifest is of a later commit than the catalog entry, or the entry has no valid head."""
    if body is None:
        return True
    ours, theirs = manifest.body["head"], body["head"]
    if ours is None or theirs is None:
        return ours is not None
    return bool(ours["id"] != theirs["id"] and ours["created_at"] > theirs["created_at"])


def _rewrite(inspection: Inspection, dataset_id: str, without: Any = ()) -> None:
    """Write the manifest of a dataset from the catalog."""
    folder: Path = inspection.context.layout.dataset(dataset_id) / MANIFEST
    with inspection.context.catalog.write() as connection:
        for name in without:
            (folder / "snapshots" / name).unlink(missing_ok=True)
        note_change(connection, dataset_id)


def _rebuild(inspection: Inspection, manifest: Manifest) -> None:
    """Write the catalog rows of a dataset from its manifest, in the place of those that exist."""
    layout = inspection.context.layout
    for state in states_of(manifest.body, manifest.snapshots):
        for name, version in state["tables"].items():
            if (fault := opening_fault(layout.table(manifest.dataset_id, name), version)) is not None:
                raise WorkspaceError(fault)
    with inspection.context.catalog.write() as connection:
        check_unused(connection, manifest.dataset_id)
        points, queue, steps = (
            each(connection, manifest.dataset_id) for each in (stored_points, stored_queue, stored_steps)
        )
        remove_dataset_rows(connection, manifest.body, manifest.snapshots)
        taken = datasets.dataset_names(connection, manifest.namespace).values()
        name = copy_name(manifest.name, "recovered", taken) if manifest.name in taken else manifest.name
        insert_described(connection, manifest.body, manifest.snapshots, name=name)
        insert_stored(connection, layout.dataset(manifest.dataset_id), manifest.dataset_id)
        restore_points(connection, points)
        restore_queue(connection, queue)
        restore_steps(connection, manifest.dataset_id, steps)
        note_change(connection, manifest.dataset_id)
