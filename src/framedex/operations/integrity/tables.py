"""Checks of a dataset's tables: each retained version opens, each column can be read, no file is unreferenced."""

import time
from contextlib import suppress
from functools import partial
from pathlib import Path

from framedex.core.counts import counted
from framedex.operations.integrity.inspection import Inspection
from framedex.operations.integrity.journal import give_up_states
from framedex.storage import disk, journal_rows
from framedex.storage.leases import leased
from framedex.storage.media_rows import index_schema
from framedex.storage.retention import RetainedStates, RetentionLimits, check_unused, read_retained
from framedex.storage.table_checks import ColumnReader, opening_fault, unreferenced_files
from framedex.storage.table_files import remove_leftovers

_WRITING_S = 3600.0  # a younger file may belong to a writer at work
_FOR_EVER_S = 1e9
_HEAD = "restore a snapshot of the dataset, or the files from a copy"
_SNAPSHOT = "delete the snapshot, or restore the files from a copy"
_STEP = "`--repair` keeps the steps of the journal that return to it, but they can never be undone or redone"


def check_tables(inspection: Inspection, dataset_id: str) -> None:
    """Check all tables of a dataset."""
    layout = inspection.context.layout
    for name, versions in sorted(_kept(inspection, dataset_id).versions.items()):
        path = layout.table(dataset_id, name)
        reader = ColumnReader(path, inspection.step)
        for version in sorted(versions):
            inspection.counts["table versions"] += 1
            _check_version(inspection, dataset_id, path, version, reader)
        inspection.counts["columns"] += reader.n_read
    for path in disk.entries(layout.dataset(dataset_id)):
        if disk.is_aside(path):
            fault, remedy = "was to be removed by a vacuum that did not end", "`--repair` and vacuum remove it"
            inspection.add(path, fault, remedy, repair=lambda path=path: disk.remove_tree(path))  # type: ignore[misc]
        elif path.suffix == ".lance":
            _check_leftovers(inspection, dataset_id, path)


def _check_version(inspection: Inspection, dataset_id: str, path: Path, version: int, reader: ColumnReader) -> None:
    faults = {"": fault} if (fault := opening_fault(path, version)) else reader.faults(version)
    if not faults:
        return
    kept = _kept(inspection, dataset_id)
    if version not in kept.versions.get(path.stem, ()):
        return  # it was superseded meanwhile and may be removed
    is_of_head = kept.head is not None and kept.head.tables.get(path.stem) == version
    remedy = _HEAD if is_of_head else _SNAPSHOT
    if is_of_head and set(faults) <= set(index_schema().names):
        remedy = f"a reindex with thresholds rebuilds it; or {remedy}"
    name, text = next(iter(faults.items()))
    if name:
        others = f" and {len(faults) - 1:,} more" if len(faults) > 1 else ""
        text = f"column {name!r}{others} of version {version} cannot be read: {text}"
    repair = None
    if steps := _returning_steps(inspection, dataset_id, path.stem, version):
        remedy, repair = _STEP, partial(give_up_states, inspection, dataset_id, steps)
    inspection.add(path, text, remedy, kind="versions", repair=repair)


def _returning_steps(inspection: Inspection, dataset_id: str, name: str, version: int) -> list[int]:
    """Return the steps of the journal that need a version of a table; none if the head or a snapshot needs it, too."""
    limits = RetentionLimits.ago(0)
    with inspection.context.catalog.read() as connection:
        others = read_retained(connection, dataset_id, limits, of_journal=False)
        if version in others.versions.get(name, ()):
            return []
        states = read_retained(connection, dataset_id, limits).generations
        chosen = [each.id for each in states if each.tables.get(name) == version]
        return journal_rows.steps_to_generations(connection, dataset_id, chosen)


def _check_leftovers(inspection: Inspection, dataset_id: str, path: Path) -> None:
    limits = RetentionLimits.ago(_FOR_EVER_S, _FOR_EVER_S)
    catalog = inspection.context.catalog
    with catalog.read() as connection:
        named = read_retained(connection, dataset_id, limits).versions
    remedy = "`--repair` and vacuum remove it"
    if path.stem not in named:
        if _is_old(path):
            inspection.add(path, "is a table of no state of the dataset", "vacuum removes it, if no task needs it")
        return
    if old := [file for file in unreferenced_files(path) if _is_old(file)]:
        fault = f"has {counted(len(old), 'files')} of no version, as {old[0].name}"
        inspection.add(path, fault, remedy, repair=lambda: _remove_leftovers(inspection, dataset_id, path))


def _remove_leftovers(inspection: Inspection, dataset_id: str, path: Path) -> None:
    catalog = inspection.context.catalog
    with leased(catalog, dataset_id, "check", lambda connection: check_unused(connection, dataset_id)):
        remove_leftovers(path)


def _kept(inspection: Inspection, dataset_id: str) -> RetainedStates:
    with inspection.context.catalog.read() as connection:
        return read_retained(connection, dataset_id, RetentionLimits.ago(0))


def _is_old(path: Path) -> bool:
    with suppress(OSError):
        return path.lstat().st_mtime < time.time() - _WRITING_S
    return False
