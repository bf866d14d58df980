"""Origins of datasets: the first source root, or before there is one, the source of the task that makes the dataset."""

import json
import os
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any, NamedTuple

import sqlalchemy as sa

from framedex.records import DatasetStatus, SourceType, TaskType
from framedex.storage.row_values import WrongValue, stored_time
from framedex.storage.schema import BLOBS_ROOT, datasets, generations, source_roots, tasks

_PATHS = ("$.content.kind", "$.content.uri", "$.content.path")
_KINDS = {"s3": SourceType.BUCKET, "blobs": SourceType.UPLOAD}
_SCHEME = "s3://"


_FOLDER = "folder"


class Origin(NamedTuple):
    """The origin of a dataset.

    Attributes:
        type: where its media are.
        uri: the folder, or the URI of a folder, below which they are; None for uploads, and where it is unknown.
    """

    type: SourceType
    uri: str | None


class FolderOrigin(NamedTuple):
    """The folders of a dataset whose media are files of folders.

    Attributes:
        dataset_id: the dataset.
        folders: its source roots; before its first commit the folder of which it is made.
        is_own: whether the dataset was made of a folder; False for a copy, and where that is unknown.
    """

    dataset_id: str
    folders: tuple[str, ...]
    is_own: bool


def folder_origins(connection: sa.Connection, namespace: str) -> list[FolderOrigin]:
    """Return the folders of the datasets of a namespace, newest first.

    Datasets that were made of a list, a table, a single file, uploads or a bucket are left out. Datasets whose
    creation is not recorded, as after a recovery, are there with their source roots.
    """
    query = sa.select(datasets.c.id, *origin_columns()).where(datasets.c.namespace == namespace)
    found = []
    for row in connection.execute(query.order_by(datasets.c.created_at.desc(), datasets.c.id)):
        kind, _, path = _creation(row)
        query = sa.select(source_roots.c.path).where(source_roots.c.dataset_id == row.id)
        roots = [os.fsdecode(each) for each in connection.execute(query.order_by(source_roots.c.number)).scalars()]
        folders = [
            each for each in roots or [path or ""] if each and each != BLOBS_ROOT and not each.startswith(_SCHEME)
        ]
        if folders and kind in (_FOLDER, None):
            found.append(FolderOrigin(row.id, tuple(folders), kind == _FOLDER))
    return found


def whole_roots(connection: sa.Connection, dataset_id: str, roots: Sequence[str]) -> list[int]:
    """Return the source roots that were added as whole folders, as far as the creation of a dataset says it.

    That is the first one of a dataset that was made of a folder or a prefix of a bucket. Of a dataset whose creation is
    not recorded, as a copy, these are all roots but uploads.

    Args:
        connection: of the catalog.
        dataset_id: the dataset.
        roots: its source roots, by number.
    """
    row = connection.execute(sa.select(*origin_columns()).where(datasets.c.id == dataset_id)).one()
    kind, uri, _ = _creation(row)
    if kind is None:
        return [number for number, root in enumerate(roots) if root != BLOBS_ROOT]
    is_prefix = kind == "s3" and bool(roots) and (uri or "").rstrip("/") == roots[0]
    return [0] if roots and (kind == _FOLDER or is_prefix) else []


def origin_columns() -> list[sa.ColumnElement[Any]]:
    """Return columns of a query of datasets, from which :func:`origin_of` and :func:`changed_at` read."""
    root = (
        sa.select(source_roots.c.path)
        .where(source_roots.c.dataset_id == datasets.c.id)
        .order_by(source_roots.c.number)
        .limit(1)
    )
    config = sa.type_coerce(tasks.c.config, sa.Text)
    creation = (
        sa.select(sa.case((sa.func.json_valid(config) == 1, sa.func.json_extract(config, *_PATHS))))
        .where(tasks.c.dataset_id == datasets.c.id, tasks.c.task_type == TaskType.DATASET_CREATION)
        .order_by(tasks.c.start_time)
        .limit(1)
    )
    # As text, because a damaged generation must not hide its dataset.
    time = sa.select(sa.type_coerce(generations.c.created_at, sa.Text)).where(generations.c.id == datasets.c.head)
    return [
        root.scalar_subquery().label("first_root"),
        creation.scalar_subquery().label("creation"),
        time.scalar_subquery().label("changed_at"),
    ]


def changed_at(row: Any) -> datetime | None:
    """Return the time of the last commit of a dataset in UTC; None before the first one."""
    with suppress(WrongValue):
        return None if row.changed_at is None else stored_time(row.changed_at)
    return None


def origin_of(row: Any) -> Origin:
    """Return the origin of the dataset in a row with the columns of :func:`origin_columns`."""
    if isinstance(row.first_root, bytes):
        root = os.fsdecode(row.first_root)
        if root == BLOBS_ROOT:
            return Origin(SourceType.UPLOAD, None)
        return Origin(SourceType.BUCKET if root.startswith(_SCHEME) else SourceType.LOCAL, root)
    kind, uri, path = _creation(row)
    default = SourceType.UPLOAD if row.has_files or row.status == DatasetStatus.DRAFT else SourceType.LOCAL
    return Origin(_KINDS.get(kind or "", default), uri or path)


def _creation(row: Any) -> tuple[str | None, str | None, str | None]:
    """Return the kind, the URI and the path of the source of which a dataset was made; None for what is unknown."""
    values = json.loads(row.creation) if isinstance(row.creation, str) else [None] * len(_PATHS)
    kind, uri, path = (each if isinstance(each, str) else None for each in values)
    return kind, uri, path
