"""Checks of the catalog: its file, its references, and its agreement with the manifests in the datasets' folders."""

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from framedex.core.naming import copy_name
from framedex.errors import WorkspaceError
from framedex.operations.integrity.inspection import Inspection
from framedex.storage import datasets, disk
from framedex.storage.catalog_checks import file_faults, reference_faults
from framedex.storage.layout import names_dataset
from framedex.storage.manifest import MANIFEST, Manifest, has_manifest, note_change, read_manifest
from framedex.storage.manifest_rows import (
    Plain,
    describe_dataset,
    insert_described,
    remove_dataset_rows,
    snapshot_files,
)
from framedex.storage.retention import check_unused
from framedex.storage.table_checks import opening_fault

RECOVER = "close all programs that use the workspace, then run `framedex recover`"
"""The remedy for a damaged catalog."""
_REBUILT = "`--repair` rebuilds it from what the dataset's folder says"
_WRITTEN = "`--repair` writes it again"


def check_catalog(inspection: Inspection) -> bool:
    """Check the catalog's file and references; return whether the catalog can be read."""
    path = inspection.context.layout.catalog
    if faults := file_faults(path):
        for fault in faults:
            inspection.add(path, fault, RECOVER, kind="faults")
        return False
    for fault in reference_faults(path):
        inspection.add(path, fault, "see what is said of that dataset", kind="references")
    return True


def check_entry(inspection: Inspection, dataset_id: str) -> None:
    """Check that a dataset's catalog entry agrees with the manifest in its folder."""
    catalog, folder = inspection.context.catalog, inspection.context.layout.dataset(dataset_id)
    inspection.counts["datasets"] += 1
    with catalog.read() as connection:
        fault = _fault(connection, folder)
    if fault is not None and not catalog.read_only:  # a commit may have come between both
        with catalog.write() as connection:
            fault = _fault(connection, folder)
    if fault is None:
        return
    if fault.rebuilt is None:
        repair = lambda: _rewrite(inspection, dataset_id, without=fault.unread)  # noqa: E731
        inspection.add(folder / MANIFEST, fault.text, _WRITTEN, repair=repair)
    else:
        manifest = fault.rebuilt
        repair = lambda: _rebuild(inspection, manifest, replaces=True)  # noqa: E731
        inspection.add(inspection.context.layout.catalog, fault.text, _REBUILT, repair=repair)


@dataclass(frozen=True)
class _Fault:
    """A difference between a dataset's catalog entry and its manifest.

    Attributes:
        text: description of the fault.
        rebuilt: manifest from which to rebuild the entry; None if the manifest is to be written again.
        unread: snapshot files to write again.
    """

    text: str
    rebuilt: Manifest | None = None
    unread: Collection[str] = ()


def _fault(connection: Any, folder: Path) -> _Fault | None:
    try:
        manifest = read_manifest(folder)
    except WorkspaceError as error:
        return _Fault(str(error))
    record = datasets.find_dataset(connection, folder.name)
    body, files = describe_dataset(connection, folder.name), list(snapshot_files(connection, folder.name))
    if manifest is None:
        if datasets.embedding_config(connection, folder.name) is None:  # it is being made
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
        there = {record.id for record in datasets.list_datasets(connection)}
    for path in folders:
        if path.name in there:
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
        repair = lambda manifest=manifest: _rebuild(inspection, manifest, replaces=False)  # noqa: E731
        inspection.add(path, fault, _REBUILT, repair=repair)


def _is_newer(manifest: Manifest, body: Plain | None) -> bool:
    """Return whether a manifest is of a later commit than the catalog entry, or the entry has no valid head."""
    if body is None:
        return True
    ours, theirs = manifest.body["head"], body["head"]
    return bool(ours["id"] != theirs["id"] and ours["created_at"] > theirs["created_at"])


def _rewrite(inspection: Inspection, dataset_id: str, without: Any = ()) -> None:
    """Write the manifest of a dataset from the catalog."""
    folder: Path = inspection.context.layout.dataset(dataset_id) / MANIFEST
    with inspection.context.catalog.write() as connection:
        for name in without:
            (folder / "snapshots" / name).unlink(missing_ok=True)
        note_change(connection, dataset_id)


def _rebuild(inspection: Inspection, manifest: Manifest, *, replaces: bool) -> None:
    """Write the catalog rows of a dataset from its manifest."""
    layout = inspection.context.layout
    states = [manifest.body["head"], *(each.generation for each in manifest.snapshots)]
    for state in states:
        for name, version in state["tables"].items():
            if (fault := opening_fault(layout.table(manifest.dataset_id, name), version)) is not None:
                raise WorkspaceError(fault)
    with inspection.context.catalog.write() as connection:
        if replaces:
            check_unused(connection, manifest.dataset_id)
            remove_dataset_rows(connection, manifest.dataset_id)
        taken = {record.display_name for record in datasets.list_datasets(connection)}
        name = copy_name(manifest.name, "recovered", taken) if manifest.name in taken else manifest.name
        insert_described(connection, manifest.body, manifest.snapshots, name=name)
        note_change(connection, manifest.dataset_id)
