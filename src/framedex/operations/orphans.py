"""Remains of datasets that were deleted, or whose creation was not committed, because a process was killed."""

from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from framedex.core.ids import objects_dataset
from framedex.operations.context import Context
from framedex.storage import datasets, disk
from framedex.storage.layout import names_dataset
from framedex.storage.manifest import has_manifest
from framedex.storage.spill import KEPT_S, remove_spills


class RemovedOrphans(NamedTuple):
    """Freed space and removed folders.

    Attributes:
        freed_bytes: number of bytes that were freed.
        datasets: number of folders of datasets, without those of caches.
    """

    freed_bytes: int = 0
    datasets: int = 0


def remove_remains(context: Context, *, kept_s: float = 0.0) -> RemovedOrphans:
    """Remove the folders of datasets without a row in the catalog, those in caches, too, and files of ended tasks.

    A folder with a manifest stays: the catalog may be an older copy, and ``check`` reports it.

    Args:
        context: the open workspace.
        kept_s: for how many seconds the files of a killed task stay, for its retry.
    """
    spilled = _remove_spilled(context, kept_s)
    folders = disk.entries(context.layout.datasets)
    caches = [path for cache in context.layout.caches for path in disk.entries(cache)]
    with context.catalog.read() as connection:
        orphans = _without_row(connection, [*folders, *caches])
    if not orphans:
        return RemovedOrphans(spilled)
    # A draft's folder is made shortly before its row is committed, both under the write lock. So a folder without a row
    # under the lock never gets one.
    with context.catalog.write() as connection:
        orphans = _without_row(connection, orphans)
    freed = sum(disk.remove_tree(path) for path in orphans)
    return RemovedOrphans(spilled + freed, sum(path.parent == context.layout.datasets for path in orphans))


def clean_orphans(context: Context) -> None:
    """Remove them at the opening of a workspace; never raises.

    If there are none, it costs a query of the catalog and a list of the folders.
    """
    with suppress(Exception):  # vacuum tries again
        remove_remains(context, kept_s=KEPT_S)


def _remove_spilled(context: Context, kept_s: float) -> int:
    """Remove temporary files of ended tasks; those of datasets that are gone have no retry."""
    if not (folders := disk.entries(context.layout.spill)):
        return 0
    with context.catalog.read() as connection:
        existing_ids = _existing_ids(connection)
    return sum(remove_spills(each, kept_s=kept_s if each.name in existing_ids else 0.0) for each in folders)


def _existing_ids(connection: Any) -> set[str]:
    """Return the ids of all datasets and of their objects."""
    existing_ids = set(datasets.dataset_names(connection))
    return existing_ids | {objects_dataset(dataset_id) for dataset_id in existing_ids}


def _without_row(connection: Any, paths: Collection[Path]) -> list[Path]:
    existing_ids = _existing_ids(connection)
    return [path for path in paths if path.name not in existing_ids and names_dataset(path) and not has_manifest(path)]
