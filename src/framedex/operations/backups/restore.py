"""Restores of backups: each file is compared with the list of the backup while it is copied.

The marker that makes a folder a workspace is written last, so no program opens a workspace that is not whole.
"""

import os
import shutil
from pathlib import Path

from framedex.core.counts import counted
from framedex.core.progress import Progress
from framedex.errors import Conflict, Error, FormatTooNew, InvalidInput, WorkspaceError
from framedex.operations.context import Context
from framedex.records import BackupDataset, Finding
from framedex.render.sizes import bytes_text
from framedex.settings import user_path
from framedex.storage import datasets, disk, snapshot_rows
from framedex.storage.backups.copying import MissingSource, copy_file
from framedex.storage.backups.folder import Backup, check_empty, open_backup
from framedex.storage.catalog import CATALOG
from framedex.storage.layout import FORMAT_VERSION, MARKER, Layout, write_marker
from framedex.storage.objects import OBJECTS
from framedex.storage.table_names import MEDIA
from framedex.storage.table_versions import Table
from framedex.storage.videos import VIDEOS

_UNFINISHED = "restore.unfinished"
"""A file in the folder of a restore that did not end."""
_OURS = frozenset({"catalog.db", "service.db", "models.toml", "datasets", _UNFINISHED})
_SHOWN = 5  # damaged files in a message
_MARGIN = 2**20
_GROUP = 256  # files that are synced together


def restore_files(
    folder: str | os.PathLike[str], target: str | os.PathLike[str], *, progress: Progress | None = None
) -> Backup:
    """Make a workspace of a backup; return the backup.

    Args:
        folder: the folder of the backup.
        target: the folder of the workspace; missing, empty, or that of a restore that did not end.
        progress: called with the stage and the share that is done; raises to stop.

    Raises:
        WorkspaceError: the folder is no backup or an unfinished one, files of it are missing or damaged, or the target
            cannot be written. The target is then no workspace.
        FormatTooNew: a newer version of Framedex made the backup.
        Conflict: the target is not empty.
        InvalidInput: the target is in the backup.
    """
    source, root = Path(os.path.realpath(user_path(folder))), user_path(target).absolute()
    if source == root or source in Path(os.path.realpath(root)).parents:
        raise InvalidInput(f"{root} is in the backup {source}; restore it to another folder")
    backup = open_backup(source)
    _check_version(backup)
    _check_sizes(backup)
    _begin(root)
    try:
        _check_space(backup, root)
        _copy(backup, root, progress or (lambda _stage, _share: None))
        write_marker(Layout(root))
        (root / _UNFINISHED).unlink()
        disk.sync_folder(root)
    except WorkspaceError:
        _clear(root)
        raise
    except OSError as error:
        _clear(root)
        raise WorkspaceError(f"cannot write {root}: {error.strerror or error}") from error
    return backup


def _check_version(backup: Backup) -> None:
    found = backup.header["workspace_format"], backup.header["catalog"]
    if found[0] > FORMAT_VERSION or found[1] not in CATALOG.revisions:
        raise FormatTooNew(
            f"the workspace in {backup.folder} has format version {found[0]} and catalog revision {found[1]!r}; this "
            f"Framedex knows up to {FORMAT_VERSION} and {CATALOG.newest!r}: install a newer Framedex"
        )


def _check_sizes(backup: Backup) -> None:
    """Check that each file exists and has its size, before anything is written."""
    faults = []
    for file in backup.files():
        try:
            size = backup.source(file).stat().st_size
        except OSError as error:
            faults.append(f"{file.path}: {error.strerror}")
            continue
        if size != file.size:
            faults.append(f"{file.path} has {counted(size, 'bytes')} instead of {file.size:,}")
    _refuse(backup, faults)


def _refuse(backup: Backup, faults: list[str]) -> None:
    if faults:
        more = f" and {len(faults) - _SHOWN:,} more" if len(faults) > _SHOWN else ""
        files = "; ".join(faults[:_SHOWN])
        raise WorkspaceError(f"the backup {backup.folder} is damaged, so nothing is restored: {files}{more}")


def _begin(root: Path) -> None:
    """Make an empty folder with the mark of a restore that did not end."""
    try:
        if (root / _UNFINISHED).exists() and not (root / MARKER).exists():
            others = [each.name for each in root.iterdir() if each.name not in _OURS and each.name[0] != "."]
            if others:
                raise Conflict(f"{root} holds other files beside a restore that did not end, such as {others[0]!r}")
            _clear(root)
        root.mkdir(parents=True, exist_ok=True)
        check_empty(root)
        (root / _UNFINISHED).touch()
        disk.sync_folder(root)
    except Error:
        raise
    except OSError as error:
        raise WorkspaceError(f"cannot use {root} for a workspace: {error.strerror or error}") from error


def _clear(root: Path) -> None:
    """Remove what a restore wrote."""
    for path in [*(root / name for name in _OURS - {_UNFINISHED}), *root.glob(".*.partial")]:
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
    (root / _UNFINISHED).unlink(missing_ok=True)


def _check_space(backup: Backup, root: Path) -> None:
    needed, free = backup.header["bytes"] + _MARGIN, shutil.disk_usage(root).free
    if needed > free:
        raise WorkspaceError(
            f"no space left for the workspace {root}: it needs {bytes_text(needed)}, and {bytes_text(free)} are free"
        )


def _copy(backup: Backup, root: Path, report: Progress) -> None:
    done, total, faults = 0, max(backup.header["bytes"], 1), list[str]()
    unsynced, folders = list[str](), {root}

    def copied(size: int) -> None:
        nonlocal done
        done += size
        report("files", min(done / total, 1.0))

    for file in backup.files():
        target = root / file.path
        target.parent.mkdir(parents=True, exist_ok=True)
        folders |= {target.parent, *(each for each in target.parent.parents if root in each.parents)}
        try:
            found = copy_file(backup.source(file), target, copied)
        except MissingSource as error:
            faults.append(str(error))
            continue
        if found != (file.size, file.sha256):
            faults.append(f"{file.path} is not what was backed up: its content does not fit its hash")
        unsynced.append(os.fspath(target))
        if len(unsynced) >= _GROUP:
            disk.sync_all(unsynced, [])
            unsynced.clear()
    _refuse(backup, faults)
    (root / "datasets").mkdir(exist_ok=True)
    disk.sync_all(unsynced, [os.fspath(each) for each in sorted(folders)])


def count_restored(context: Context, backup: Backup) -> tuple[list[BackupDataset], list[Finding]]:
    """Count the rows of a restored workspace; return the datasets, and a finding for each that differs."""
    counted, findings = [], []
    for listed in map(BackupDataset.model_validate, backup.header["datasets"]):
        try:
            found = _counted(context, listed)
        except Error as error:
            findings.append(_finding(context, listed, f"cannot be counted: {error}"))
            continue
        counted.append(found)
        if found != listed:
            numbers = ", ".join(
                f"{getattr(found, name):,} {name.removeprefix('n_')} instead of {getattr(listed, name):,}"
                for name in ("n_media", "n_videos", "n_objects", "n_snapshots")
                if getattr(found, name) != getattr(listed, name)
            )
            findings.append(_finding(context, listed, f"has {numbers or 'another name'}"))
    return counted, findings


def _counted(context: Context, listed: BackupDataset) -> BackupDataset:
    with context.catalog.read() as connection:
        record = datasets.find_dataset(connection, listed.id)
        head = datasets.head(connection, listed.id)
        snapshots = len(snapshot_rows.list_snapshots(connection, listed.id))
        namespace = datasets.namespace_of(connection, listed.id)
    tables = {} if head is None else head.tables
    media, videos, objects = (
        Table(context.layout.table(listed.id, name), tables[name]).count() if name in tables else 0
        for name in (MEDIA, VIDEOS, OBJECTS)
    )
    return BackupDataset(
        id=record.id,
        name=record.display_name,
        namespace=namespace,
        n_media=media,
        n_videos=videos,
        n_objects=objects,
        n_snapshots=snapshots,
    )


def _finding(context: Context, listed: BackupDataset, fault: str) -> Finding:
    path = str(context.layout.dataset(listed.id))
    return Finding(path=path, fault=f"{listed.name!r} {fault}", remedy="restore an older backup")
