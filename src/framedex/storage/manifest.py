"""The manifest of a dataset: what its folder says of it, so that the catalog can be made again when it is lost.

Beside a dataset's tables lie::

    manifest/43.json                    the dataset as of its last commit: its row, source roots, head, snapshots
    manifest/44.pending                 the same as of a commit that is under way
    manifest/snapshots/<id>-<hash>.json a snapshot with the generation that it keeps; written once

The commit point stays the transaction of the catalog. Within it, right before COMMIT, the pending file is written and
synced; if that fails, nothing is committed. After COMMIT it is renamed, which needs no space. So a confirmed manifest
was always committed, and a commit that has returned is always confirmed. In between, a killed process leaves a pending
file: whoever opens the workspace next, or commits, writes a manifest of what the catalog has. Where the catalog is lost
in that moment nobody can tell whether the commit was done, and the confirmed manifest holds.

Numbers are given while the catalog's write lock is held, and the highest confirmed one counts; so a process that
confirms late changes nothing. A deletion renames ``43.json`` to ``43.deleted`` before COMMIT and removes it after.
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

from framedex.errors import WorkspaceError
from framedex.storage.disk import sync_folder
from framedex.storage.manifest_rows import KeptSnapshot, Plain, describe, describe_snapshot, snapshot_files

MANIFEST = "manifest"
_FORMAT = 1
_SNAPSHOTS = "snapshots"
_CONFIRMED, _PENDING, _DELETED, _PARTIAL = ".json", ".pending", ".deleted", ".partial"
_KEY = "framedex.manifests"


def note_change(connection: sa.Connection, dataset_id: str) -> None:
    """Have the manifest of a dataset written anew when the transaction ends."""
    if (manifests := connection.info.get(_KEY)) is not None:
        manifests.changed.add(dataset_id)


def note_removal(connection: sa.Connection, dataset_id: str) -> None:
    """Have the manifest of a dataset removed when the transaction ends."""
    if (manifests := connection.info.get(_KEY)) is not None:
        manifests.removed.add(dataset_id)


class TransactionManifests:
    """The manifests that one transaction of the catalog changes.

    Args:
        connection: the transaction.
        folder: with a folder for each dataset.

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
        """Write what is pending, durably; to be called right before COMMIT.

        Raises:
            WorkspaceError: it cannot be written.
        """
        self._connection.info.pop(_KEY, None)
        try:
            for dataset_id in sorted(self.changed - self.removed):
                if (body := describe(self._connection, dataset_id)) is not None:
                    self._write_pending(self._folder / dataset_id / MANIFEST, dataset_id, body)
            for dataset_id in sorted(self.removed):
                self._rename_deleted(self._folder / dataset_id / MANIFEST)
        except OSError as error:
            raise WorkspaceError(f"cannot write {error.filename}: {error.strerror}; nothing was changed") from error

    def confirm(self) -> None:
        """Make what is pending the manifests that count; to be called after COMMIT, raises nothing.

        What cannot be renamed now stays pending, and is seen to by the next opening or commit.
        """
        for path in self._pending:
            with suppress(OSError):
                _confirm(path)
        for path in self._deleted:
            with suppress(OSError):
                path.unlink()

    def discard(self) -> None:
        """Remove what is pending, as nothing is committed; raises nothing."""
        self._connection.info.pop(_KEY, None)
        for path in self._pending:
            with suppress(OSError):
                path.unlink()
        for path in self._deleted:
            with suppress(OSError):
                path.rename(path.with_suffix(_CONFIRMED))

    def _write_pending(self, home: Path, dataset_id: str, body: Plain) -> None:
        wanted = snapshot_files(self._connection, dataset_id)
        is_new = not home.is_dir()
        (home / _SNAPSHOTS).mkdir(parents=True, exist_ok=True)
        self._write_snapshots(home, wanted)
        number = max((each for each, _ in _numbered(home)), default=0) + 1
        path = home / f"{number}{_PENDING}"
        self._pending.append(path)
        _write(path, {**body, "format": _FORMAT, "snapshots": list(wanted)})
        sync_folder(home)
        if is_new:
            sync_folder(home.parent)

    def _write_snapshots(self, home: Path, wanted: dict[str, str]) -> None:
        """Write the files of snapshots that are not there yet, and remove those that no manifest names."""
        folder = home / _SNAPSHOTS
        there = set(os.listdir(folder))  # noqa: PTH208 - names alone
        for name in wanted.keys() - there:
            partial = folder / f"{name}{_PARTIAL}"
            _write(partial, describe_snapshot(self._connection, wanted[name]))
            partial.replace(folder / name)
        if wanted.keys() - there:
            sync_folder(folder)
        if surplus := there - wanted.keys():
            for name in surplus.difference(*(_named(path) for _, path in _numbered(home))):
                (folder / name).unlink(missing_ok=True)

    def _rename_deleted(self, home: Path) -> None:
        for _, path in _numbered(home):
            if path.suffix == _CONFIRMED:
                deleted = path.with_suffix(_DELETED)
                path.rename(deleted)
                self._deleted.append(deleted)
        if self._deleted:
            sync_folder(home)


def _confirm(pending: Path) -> None:
    confirmed = pending.with_suffix(_CONFIRMED)
    pending.rename(confirmed)
    sync_folder(pending.parent)
    for number, path in _numbered(pending.parent):
        if number < int(confirmed.stem):
            path.unlink(missing_ok=True)


@dataclass(frozen=True)
class Manifest:
    """What a dataset's folder says of it.

    Attributes:
        body: the dataset's row, source roots and head.
        kept: its snapshots, oldest first.
        unread: files of snapshots that cannot be read, by name.
        unsettled: whether a commit was under way when its process ended.
    """

    body: Plain
    kept: tuple[KeptSnapshot, ...]
    unread: dict[str, str] = field(default_factory=dict)
    unsettled: bool = False

    def says(self, body: Plain | None, files: Collection[str]) -> bool:
        """Return whether it says of a dataset what the catalog does.

        Args:
            body: by :func:`describe`.
            files: those of snapshots, by :func:`snapshot_files`.
        """
        plain = None if body is None else json.loads(json.dumps(body))
        return plain == {key: self.body[key] for key in ("dataset", "head", "roots")} and [*files] == self.files

    @property
    def files(self) -> list[str]:
        """The names of its snapshots' files."""
        return list(self.body["snapshots"])

    @property
    def dataset_id(self) -> str:
        """The dataset."""
        return str(self.body["dataset"]["id"])

    @property
    def name(self) -> str:
        """Its name."""
        return str(self.body["dataset"]["name"])


def has_manifest(dataset: Path) -> bool:
    """Return whether a dataset's folder says what the dataset is: it was committed, and not deleted since."""
    return any(path.suffix == _CONFIRMED for _, path in _numbered(dataset / MANIFEST))


def read_manifest(dataset: Path) -> Manifest | None:
    """Return what a dataset's folder says of it; None where nothing was committed yet, or it was deleted.

    Raises:
        WorkspaceError: it is damaged.
    """
    home = dataset / MANIFEST
    found = sorted(_numbered(home), reverse=True)
    # A deletion under way is not done: then its process would have removed the file.
    confirmed = [path for _, path in found if path.suffix in (_CONFIRMED, _DELETED)]
    if not confirmed:
        return None
    body = _read(confirmed[0])
    if body["dataset"]["id"] != dataset.name:
        raise WorkspaceError(f"{confirmed[0]} is of another dataset, {body['dataset']['id']}")
    kept, unread = [], {}
    for name in body["snapshots"]:
        try:
            kept.append(KeptSnapshot(**_read(home / _SNAPSHOTS / name)))
        except WorkspaceError as error:
            unread[name] = str(error)
    return Manifest(body, tuple(kept), unread, found[0][1] != confirmed[0] or confirmed[0].suffix == _DELETED)


def unsettled(folder: Path, dataset_ids: Collection[str]) -> list[str]:
    """Return which of some datasets, all of them committed, have no manifest yet, or one that is pending."""
    found = []
    for dataset_id in dataset_ids:
        ends = {path.suffix for _, path in _numbered(folder / dataset_id / MANIFEST)}
        if ends != {_CONFIRMED}:
            found.append(dataset_id)
    return found


def _numbered(home: Path) -> Iterator[tuple[int, Path]]:
    """Yield (number, path) of the manifests in a folder, which may be missing."""
    try:
        names = os.listdir(home)  # noqa: PTH208 - names alone
    except OSError:  # missing, or nobody may look: whoever writes there says so
        return
    for name in names:
        stem, end = os.path.splitext(name)  # noqa: PTH122
        if stem.isdecimal() and end in (_CONFIRMED, _PENDING, _DELETED):
            yield int(stem), home / name


def _named(path: Path) -> list[str]:
    """Return the files of snapshots that a manifest names; a damaged one names none."""
    try:
        return list(_read(path)["snapshots"])
    except WorkspaceError:
        return []


def _write(path: Path, content: Plain) -> None:
    """Write JSON with its hash, and wait until it is on the disk."""
    text = json.dumps(content, sort_keys=True)
    with path.open("w", encoding="ascii") as file:
        file.write(f'{{"hash": "{_hash(text)}", "content": {text}}}\n')
        file.flush()
        os.fsync(file.fileno())


def _read(path: Path) -> Plain:
    try:
        held: dict[str, Any] = json.loads(path.read_text(encoding="ascii"))
        content: Plain = held["content"]
        if held["hash"] != _hash(json.dumps(content, sort_keys=True)):
            raise WorkspaceError(f"{path} is damaged: its content does not fit its hash")
    except OSError as error:
        if isinstance(error, WorkspaceError):
            raise
        raise WorkspaceError(f"cannot read {path}: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise WorkspaceError(f"{path} is damaged: {error}") from error
    return content


def _hash(text: str) -> str:
    return blake2b(text.encode("ascii"), digest_size=16).hexdigest()
