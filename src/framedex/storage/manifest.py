"""The manifest of a dataset: a copy of its catalog rows in its folder, from which a lost catalog can be rebuilt.

The folder of a dataset contains::

    manifest/43.json                    the dataset at its last commit: its row, roots, head, snapshots, views
    manifest/44.pending                 the same for a commit in progress
    manifest/snapshots/<id>-<hash>.json a snapshot and its generation; written once

The commit point is the catalog's transaction. Right before COMMIT the pending file is written and synced; if that
fails, nothing is committed. After COMMIT it is renamed, which needs no space. So a confirmed manifest always belongs to
a finished commit, and every commit that returned has a confirmed manifest.

A process killed in between leaves a pending file. The next process that opens the workspace or commits writes a
manifest from the catalog. If the catalog is lost at that moment, it is unknown whether the commit was done, and the
confirmed manifest counts.

A draft has a manifest from its creation on, whose head is null until the first commit.

Numbers are assigned under the catalog's write lock, and the highest confirmed number counts; so a late confirmation by
another process changes nothing. A deletion renames ``43.json`` to ``43.deleted`` before COMMIT and removes it
afterwards.
"""

import json
import os
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from framedex.core.regular_files import read_text
from framedex.errors import WorkspaceError
from framedex.storage.disk import sync_folder
from framedex.storage.manifest_rows import (
    KeptSnapshot,
    check_described,
    describe_dataset,
    describe_snapshot,
    snapshot_files,
)
from framedex.storage.row_checks import Plain
from framedex.storage.row_values import WrongValue

MANIFEST = "manifest"
_FORMAT = 1
_SNAPSHOTS = "snapshots"
_CONFIRMED, _PENDING, _DELETED, _PARTIAL = ".json", ".pending", ".deleted", ".partial"
_KEY = "framedex.manifests"


def note_change(connection: sa.Connection, dataset_id: str) -> None:
    """Schedule the rewrite of a dataset's manifest for the end of the transaction."""
    if (manifests := connection.info.get(_KEY)) is not None:
        manifests.changed.add(dataset_id)


def note_removal(connection: sa.Connection, dataset_id: str) -> None:
    """Schedule the removal of a dataset's manifest for the end of the transaction."""
    if (manifests := connection.info.get(_KEY)) is not None:
        manifests.removed.add(dataset_id)


class TransactionManifests:
    """The manifests to write and remove in one transaction of the catalog.

    Args:
        connection: the connection of the transaction.
        folder: the folder that contains one folder for each dataset.

    Attributes:
        changed, removed: ids of datasets.
    """

    def __init__(self, connection: sa.Connection, folder: Path) -> None:
        self.changed: set[str] = set()
        self.removed: set[str] = set()
        self._connection, self._folder = connection, folder
        self._pending: list[Path] = []
        self._deleted: list[Path] = []
        connection.info[_KEY] = self

    def write(self) -> None:
        """Write the pending manifests durably; call it right before COMMIT.

        Raises:
            WorkspaceError: a manifest cannot be written.
        """
        self._connection.info.pop(_KEY, None)
        try:
            for dataset_id in sorted(self.changed - self.removed):
                if (body := describe_dataset(self._connection, dataset_id)) is not None:
                    self._write_pending(self._folder / dataset_id / MANIFEST, dataset_id, body)
            for dataset_id in sorted(self.removed):
                self._rename_deleted(self._folder / dataset_id / MANIFEST)
        except OSError as error:
            path = error.filename or self._folder  # writing to an open file names no file
            raise WorkspaceError(
                f"cannot write the manifests in {path}: {error.strerror}; nothing was changed"
            ) from error

    def confirm(self) -> None:
        """Confirm the pending manifests; call it after COMMIT. Raises nothing.

        A manifest that cannot be renamed now stays pending until the next opening or commit.
        """
        for path in self._pending:
            with suppress(OSError):
                _confirm(path)
        for path in self._deleted:
            with suppress(OSError):
                path.unlink()

    def discard(self) -> None:
        """Remove the pending manifests when nothing is committed; raises nothing."""
        self._connection.info.pop(_KEY, None)
        for path in self._pending:
            with suppress(OSError):
                path.unlink()
        for path in self._deleted:
            with suppress(OSError):
                path.rename(path.with_suffix(_CONFIRMED))

    def _write_pending(self, folder: Path, dataset_id: str, body: Plain) -> None:
        files = snapshot_files(self._connection, dataset_id)
        is_new = not folder.is_dir()
        (folder / _SNAPSHOTS).mkdir(parents=True, exist_ok=True)
        self._write_snapshots(folder, files)
        number = max((each for each, _ in _numbered(folder)), default=0) + 1
        path = folder / f"{number}{_PENDING}"
        self._pending.append(path)
        _write(path, {**body, "format": _FORMAT, "snapshots": list(files)})
        sync_folder(folder)
        if is_new:
            sync_folder(folder.parent)
            sync_folder(folder.parent.parent)

    def _write_snapshots(self, manifests: Path, files: dict[str, str]) -> None:
        """Write missing files of snapshots, and remove those that no manifest lists."""
        folder = manifests / _SNAPSHOTS
        existing = set(os.listdir(folder))  # noqa: PTH208 - names alone
        for name in files.keys() - existing:
            partial = folder / f"{name}{_PARTIAL}"
            _write(partial, describe_snapshot(self._connection, files[name]))
            partial.replace(folder / name)
        if files.keys() - existing:
            sync_folder(folder)
        if surplus := existing - files.keys():
            for name in surplus.difference(*(_listed_files(path) for _, path in _numbered(manifests))):
                (folder / name).unlink(missing_ok=True)

    def _rename_deleted(self, folder: Path) -> None:
        for _, path in _numbered(folder):
            if path.suffix == _CONFIRMED:
                deleted = path.with_suffix(_DELETED)
                path.rename(deleted)
                self._deleted.append(deleted)
        if self._deleted:
            sync_folder(folder)


def _confirm(pending: Path) -> None:
    confirmed = pending.with_suffix(_CONFIRMED)
    pending.rename(confirmed)
    sync_folder(pending.parent)
    for number, path in _numbered(pending.parent):
        if number < int(confirmed.stem):
            path.unlink(missing_ok=True)


@dataclass(frozen=True)
class Manifest:
    """The state of a dataset as recorded in its folder.

    Attributes:
        body: the dataset's row, source roots and head; the head of a draft is None.
        snapshots: its readable snapshots, oldest first.
        unread: error messages of unreadable snapshot files, by file name.
        unsettled: whether a commit was in progress when its process ended.
    """

    body: Plain
    snapshots: tuple[KeptSnapshot, ...]
    unread: dict[str, str] = field(default_factory=dict)
    unsettled: bool = False

    def says(self, body: Plain | None, files: Collection[str]) -> bool:
        """Return whether the manifest agrees with the catalog's rows of a dataset.

        Args:
            body: the rows as returned by :func:`describe_dataset`.
            files: the snapshot files as returned by :func:`snapshot_files`.
        """
        plain = None if body is None else json.loads(json.dumps(body))
        own = {"views": self.body.get("views", []), **{key: self.body[key] for key in ("dataset", "head", "roots")}}
        return plain == own and [*files] == self.files

    @property
    def files(self) -> list[str]:
        """The names of the snapshots' files."""
        return list(self.body["snapshots"])

    @property
    def dataset_id(self) -> str:
        """The id of the dataset."""
        return str(self.body["dataset"]["id"])

    @property
    def name(self) -> str:
        """The name of the dataset."""
        return str(self.body["dataset"]["name"])

    @property
    def namespace(self) -> str:
        """The namespace of the dataset."""
        return str(self.body["dataset"].get("namespace", ""))


def has_manifest(dataset: Path) -> bool:
    """Return whether a dataset's folder has a confirmed manifest: it is a draft or was committed, and not deleted."""
    return any(path.suffix == _CONFIRMED for _, path in _numbered(dataset / MANIFEST))


def read_manifest(dataset: Path) -> Manifest | None:
    """Return the manifest of a dataset's folder; None if it has none, or the dataset was deleted.

    Raises:
        WorkspaceError: the manifest is damaged.
    """
    folder = dataset / MANIFEST
    numbered = sorted(_numbered(folder), reverse=True)
    # A ``.deleted`` file counts: its deletion was interrupted before the end.
    confirmed = [path for _, path in numbered if path.suffix in (_CONFIRMED, _DELETED)]
    if not confirmed:
        return None
    body = _checked(confirmed[0], _read(confirmed[0]))
    if body["dataset"]["id"] != dataset.name:
        raise WorkspaceError(f"{confirmed[0]} is of another dataset, {body['dataset']['id']}")
    snapshots, unread = [], {}
    for name in body["snapshots"]:
        path = folder / _SNAPSHOTS / name
        try:
            kept = KeptSnapshot(**_read(path))
            _checked(path, body, [kept])
            snapshots.append(kept)
        except WorkspaceError as error:
            unread[name] = str(error)
    return Manifest(body, tuple(snapshots), unread, numbered[0][1] != confirmed[0] or confirmed[0].suffix == _DELETED)


def unsettled(folder: Path, dataset_ids: Collection[str]) -> list[str]:
    """Return those of some datasets that have no confirmed manifest, or a pending one."""
    results = []
    for dataset_id in dataset_ids:
        ends = {path.suffix for _, path in _numbered(folder / dataset_id / MANIFEST)}
        if ends != {_CONFIRMED}:
            results.append(dataset_id)
    return results


def _numbered(folder: Path) -> Iterator[tuple[int, Path]]:
    """Yield (number, path) of the manifests in a folder, which may be missing."""
    try:
        names = os.listdir(folder)  # noqa: PTH208 - names alone
    except OSError:  # missing or unreadable: writing raises the error
        return
    for name in names:
        stem, end = os.path.splitext(name)  # noqa: PTH122
        if stem.isdecimal() and end in (_CONFIRMED, _PENDING, _DELETED):
            yield int(stem), folder / name


def _listed_files(path: Path) -> list[str]:
    """Return the snapshot files that a manifest lists; an empty list for a damaged one."""
    try:
        return list(_read(path)["snapshots"])
    except WorkspaceError:
        return []


def _write(path: Path, content: Plain) -> None:
    """Write JSON with its hash and sync it to disk."""
    text = json.dumps(content, sort_keys=True)
    with path.open("w", encoding="ascii") as file:
        file.write(f'{{"hash": "{_hash(text)}", "content": {text}}}\n')
        file.flush()
        os.fsync(file.fileno())


def _read(path: Path) -> Plain:
    try:
        record: dict[str, Any] = json.loads(read_text(path, encoding="ascii"))
        content: Plain = record["content"]
        if record["hash"] != _hash(json.dumps(content, sort_keys=True)):
            raise WorkspaceError(f"{path} is damaged: its content does not fit its hash")
    except OSError as error:
        if isinstance(error, WorkspaceError):
            raise
        raise WorkspaceError(f"cannot read {path}: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise WorkspaceError(f"{path} is damaged: {error}") from error
    return content


def _checked(path: Path, body: Plain, described: Collection[KeptSnapshot] = ()) -> Plain:
    """Return the body of a manifest after a check of its values and those of some snapshots.

    Raises:
        WorkspaceError: a value cannot be used; the message names *path*.
    """
    try:
        check_described(body, described)
    except WrongValue as error:
        raise WorkspaceError(f"{path} is damaged: {error}") from error
    return body


def _hash(text: str) -> str:
    return blake2b(text.encode("ascii"), digest_size=16).hexdigest()
