"""Checks of the service's database and key, which a workspace has that is shared by users."""

import os
import stat
from contextlib import closing
from functools import partial
from pathlib import Path

from framedex.core.counts import counted
from framedex.core.ids import is_id
from framedex.errors import WorkspaceError
from framedex.operations.integrity.inspection import Inspection
from framedex.storage import datasets, disk
from framedex.storage.layout import Layout
from framedex.storage.manifest import has_manifest
from framedex.storage.service_db.checks import (
    Existing,
    ServiceFault,
    mend_fault,
    only_indices,
    rebuild_indices,
    revision_of,
    service_faults,
    service_file_faults,
)
from framedex.storage.service_db.database import KEY_NAME, SERVICE_DB, open_service_db

_RECOVER = (
    "restore it from a backup with users; or stop the service and run `framedex recover`, which says what is lost"
)
_BEGIN_AGAIN = (
    "restore it from a backup with users; or begin again without them: `framedex users create --admin NAME`, or the "
    "next start of the service, makes it"
)
_KEY_BYTES = 32


def check_users(inspection: Inspection) -> None:
    """Check the database of the service and its key, if the workspace has them."""
    layout = inspection.context.layout
    path, key = layout.service_db, layout.root / KEY_NAME
    if not path.exists() and not key.exists():
        return
    inspection.begin("users", 1.0)
    _check_private(inspection, key)
    if key.exists() and (size := key.stat().st_size) < _KEY_BYTES:
        remedy = "restore it, or delete it for a new one: then users need new secrets of API keys"
        inspection.add(key, f"has {counted(size, 'bytes')}; a key has {_KEY_BYTES}", remedy)
    if not path.exists():
        inspection.add(path, "is missing, while the key of the service is there", _BEGIN_AGAIN)
        return
    for file in (path, *(path.with_name(path.name + end) for end in ("-wal", "-shm"))):
        _check_private(inspection, file)
    if _check_file(inspection, path):
        _check_rows(inspection, path)


def _check_private(inspection: Inspection, path: Path) -> None:
    """Check that other users of the machine cannot read a file."""
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
    except FileNotFoundError:
        return
    if os.name == "posix" and mode & 0o077:
        fault = f"can be read by other users (mode {mode:o}), and it has secrets or hashes of passwords"
        inspection.add(path, fault, "`--repair` or `chmod 600` forbids it", repair=partial(path.chmod, 0o600))


def _check_file(inspection: Inspection, path: Path) -> bool:
    """Check the file and its schema; return whether its rows can be checked."""
    if faults := service_file_faults(path):
        if only_indices(faults):
            text = f"has {counted(len(faults), 'damaged entries')} in its indices, as: {faults[0]}"
            return inspection.add(path, text, "`--repair` makes the indices again", repair=partial(_reindex, path))
        for fault in faults:
            inspection.add(path, fault, _RECOVER, kind="faults of the users")
        return False
    revision = revision_of(path)
    if revision not in SERVICE_DB.revisions:
        fault = f"has schema revision {revision!r}; this Framedex knows up to {SERVICE_DB.newest!r}"
        inspection.add(path, fault, "install a newer Framedex")
        return False
    return revision == SERVICE_DB.newest  # else the service migrates it when it starts


def _check_rows(inspection: Inspection, path: Path) -> None:
    context = inspection.context
    is_single = not context.settings.multi_workspace
    existing = partial(_existing, inspection)
    faults = service_faults(path, existing, is_single=is_single)
    inspection.counts["service databases"] += 1
    for fault in faults:
        repair = partial(_mend, path, fault, existing) if fault.mend else None
        inspection.add(path, fault.text, fault.remedy, kind="rows of users", repair=repair)


def _existing(inspection: Inspection) -> set[str]:
    """Return the ids of the datasets in the catalog, and of those whose folders a repair may bring back."""
    layout: Layout = inspection.context.layout
    with inspection.context.catalog.read() as connection:
        known = set(datasets.dataset_names(connection))
    return known | {path.name for path in disk.entries(layout.datasets) if is_id(path.name) and has_manifest(path)}


def _mend(path: Path, fault: ServiceFault, existing: Existing) -> None:
    with closing(open_service_db(path.parent)) as database, database.write() as connection:
        mend_fault(connection, fault, existing)


def _reindex(path: Path) -> None:
    with closing(open_service_db(path.parent)) as database, database.write() as connection:
        rebuild_indices(connection)
    if faults := service_file_faults(path):
        raise WorkspaceError(f"it is still damaged: {faults[0]}")
