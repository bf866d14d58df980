"""Recovery of a workspace's catalog from the manifests in the datasets' folders, and of a service without its users."""

import os
from collections import defaultdict
from collections.abc import Collection
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from framedex.core.naming import copy_name
from framedex.core.progress import Progress
from framedex.errors import Conflict, WorkspaceError
from framedex.operations.integrity.lost_users import find_lost_users
from framedex.records import RecoveryResult
from framedex.storage import disk
from framedex.storage.catalog import create_catalog, open_catalog
from framedex.storage.catalog_checks import catalog_faults
from framedex.storage.layout import Layout, names_dataset, open_layout
from framedex.storage.manifest import Manifest, note_change, read_manifest
from framedex.storage.manifest_rows import insert_described
from framedex.storage.row_checks import Plain
from framedex.storage.table_checks import opening_fault
from framedex.storage.upload_rows import insert_stored

LEFT_OUT = ".left-out"
"""Suffix of folders of datasets that could not be recovered; vacuum does not touch them."""
_DATABASE_FILES = ("", "-wal", "-shm")


@dataclass
class _Plan:
    """Content of the recovered catalog.

    Attributes:
        manifests: of the recovered datasets.
        left_out: descriptions of parts that cannot be recovered.
        folders: of datasets that cannot be recovered.
    """

    manifests: list[Manifest] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    folders: list[Path] = field(default_factory=list)


def recover(folder: str | os.PathLike[str], *, progress: Progress | None = None) -> RecoveryResult:
    """Rebuild the catalog of a workspace; see :meth:`framedex.Workspace.recover`.

    Args:
        folder: the workspace.
        progress: called with the name of a dataset and the share that is done; raises to stop, with nothing changed.
    """
    layout = open_layout(folder, read_only=True)
    lost = find_lost_users(layout.root)
    if catalog_faults(layout.catalog):
        result = _recover_catalog(layout, progress or (lambda _name, _share: None))
    elif lost is None:
        raise Conflict(f"{layout.catalog} is sound; there is nothing to recover (see `framedex check`)")
    else:
        result = RecoveryResult(datasets=[], snapshots=0, kept_as=[], left_out=[])
    if lost is None:
        return result
    kept_as = [*result.kept_as, *(str(path) for path in _set_aside(lost.damaged))]
    return result.model_copy(update={"kept_as": kept_as, "left_out": [*result.left_out, *lost.lines]})


def _recover_catalog(layout: Layout, progress: Progress) -> RecoveryResult:
    plan = _planned(layout, progress)
    if not plan.manifests and not plan.folders and not layout.catalog.exists():
        raise WorkspaceError(f"{layout.datasets} holds no dataset that could be recovered")
    names = _unique_names(plan.manifests)

    def fill(connection: Any) -> None:
        for manifest, name in zip(plan.manifests, names, strict=True):
            insert_described(connection, manifest.body, manifest.snapshots, name=name)
            insert_stored(connection, layout.dataset(manifest.dataset_id), manifest.dataset_id)

    kept_as = [str(path) for path in _set_aside(layout.catalog)]
    create_catalog(layout.catalog, fill)
    for path in plan.folders:
        path.rename(path.with_name(path.name + LEFT_OUT))
    with closing(open_catalog(layout.catalog, read_only=False)) as catalog, catalog.write() as connection:
        for manifest in plan.manifests:
            note_change(connection, manifest.dataset_id)
    return RecoveryResult(
        datasets=names,
        snapshots=sum(len(manifest.snapshots) for manifest in plan.manifests),
        kept_as=kept_as,
        left_out=plan.left_out,
    )


def _planned(layout: Layout, progress: Progress) -> _Plan:
    plan = _Plan()
    folders = [path for path in disk.entries(layout.datasets) if names_dataset(path) and path.is_dir()]
    for done, path in enumerate(folders):
        progress(path.name, done / len(folders))
        try:
            manifest = read_manifest(path)
        except WorkspaceError as error:
            manifest, reason = None, str(error)
        else:
            reason = f"{path}: nothing was committed to it, or it was written by an older version only, or deleted"
        usable = None if manifest is None else _usable(layout, manifest, plan.left_out)
        if usable is not None:
            plan.manifests.append(usable)
            continue
        if manifest is None:
            plan.left_out.append(f"{reason}; kept as {path.name}{LEFT_OUT}")
        plan.folders.append(path)
    plan.manifests.sort(key=lambda each: (str(each.body["dataset"]["created_at"]), each.dataset_id))
    return plan


def _usable(layout: Layout, manifest: Manifest, left_out: list[str]) -> Manifest | None:
    """Return a manifest reduced to generations whose tables can be opened; None if there is no such generation.

    Args:
        layout: of the workspace.
        manifest: of a dataset.
        left_out: a description of each omitted part is appended.
    """
    name = manifest.name
    if manifest.unsettled:
        left_out.append(f"{name}: a change that was under way when its process ended is left out")
    left_out += [f"{name}: a snapshot is left out: {reason}" for reason in manifest.unread.values()]
    kept = []
    for each in manifest.snapshots:
        if (fault := _fault(layout, each.generation)) is None:
            kept.append(each)
        else:
            left_out.append(f"{name}: the snapshot {each.snapshot['name']!r} is left out: {fault}")
    manifest = replace(manifest, snapshots=tuple(kept))
    if (fault := _fault(layout, manifest.body["head"])) is None:
        return manifest
    if not kept:
        left_out.append(f"{name}: {fault}; kept as {manifest.dataset_id}{LEFT_OUT}")
        return None
    left_out.append(f"{name}: its last state cannot be read: {fault}; it is that of {kept[-1].snapshot['name']!r} now")
    row = {**manifest.body["dataset"], "current_snapshot": kept[-1].snapshot["id"]}
    return replace(manifest, body={**manifest.body, "dataset": row, "head": kept[-1].generation})


def _fault(layout: Layout, generation: Plain | None) -> str | None:
    """Return the reason why the tables of a generation cannot be opened; None if they can, or a draft has no tables."""
    if generation is None:
        return None
    for name, version in generation["tables"].items():
        if (fault := opening_fault(layout.table(generation["dataset_id"], name), version)) is not None:
            return fault
    return None


def _unique_names(manifests: Collection[Manifest]) -> list[str]:
    """Return names that are unique within each namespace."""
    names: list[str] = []
    taken = defaultdict[str, set[str]](set)
    for manifest in manifests:
        others = taken[manifest.namespace]
        names.append(manifest.name if manifest.name not in others else copy_name(manifest.name, "recovered", others))
        others.add(names[-1])
    return names


def _set_aside(database: Path | None) -> list[Path]:
    """Rename the remains of a database, including a log that SQLite would apply to the next one."""
    if database is None:
        return []
    number = 1
    while any(database.with_name(f"{database.name}.damaged-{number}{end}").exists() for end in _DATABASE_FILES):
        number += 1
    moved = []
    for end in _DATABASE_FILES:
        path = database.with_name(database.name + end)
        if path.exists():
            moved.append(path.rename(path.with_name(f"{database.name}.damaged-{number}{end}")))
    return moved
