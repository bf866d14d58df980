"""Backups in progress."""

import hashlib
import json
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from framedex.core.atomic import write_atomic
from framedex.errors import Conflict
from framedex.storage import disk
from framedex.storage.backups.copying import Copied, MissingSource, SourceFile, copy_file, hash_file, link_copy, writing
from framedex.storage.backups.folder import CONTENT, FORMAT, HEADER, LIST, UNFINISHED, check_empty, sealed
from framedex.storage.sqlite_errors import base_code

_GROUP = 256  # files that are synced and recorded together
_CREATE = (
    "CREATE TABLE IF NOT EXISTS files (path TEXT PRIMARY KEY, bytes INTEGER NOT NULL, source TEXT NOT NULL,"
    " identity TEXT, is_needed INTEGER NOT NULL, sha256 TEXT, is_link INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID"
)
# A copy counts again only if it was made of the same file in the same way.
_NEED = (
    "INSERT INTO files (path, bytes, source, identity, is_needed) VALUES (?, ?, ?, ?, 1) ON CONFLICT (path) DO UPDATE"
    " SET sha256 = CASE WHEN identity IS excluded.identity AND identity IS NOT NULL THEN sha256 END, is_needed = 1,"
    " bytes = excluded.bytes, source = excluded.source, identity = excluded.identity"
)
_NEXT = (
    "SELECT path, bytes, source, identity FROM files WHERE is_needed AND sha256 IS NULL AND path > ?"
    f" ORDER BY path LIMIT {_GROUP}"
)


class UnfinishedBackup:
    """A backup in progress; also a context manager, which leaves the folder to be continued if its block raises.

    Args:
        folder: the folder; empty, missing, or that of a backup that did not end.
        hard_links: whether to link files that are written once instead of copying them, where that is possible.

    Raises:
        Conflict: the folder holds a backup or other files, or another process makes a backup there.
        WorkspaceError: the folder cannot be written.
    """

    def __init__(self, folder: Path, *, hard_links: bool) -> None:
        self.folder, self.content, self._hard_links = folder, folder / CONTENT, hard_links
        with writing(folder):
            if folder.is_dir() and not (folder / UNFINISHED).exists():
                check_empty(folder)
            self._is_new = not (folder / UNFINISHED).exists()
            self._had_folder = folder.is_dir()
            folder.mkdir(parents=True, exist_ok=True)
            self._record = sqlite3.connect(folder / UNFINISHED, timeout=1, isolation_level=None)
            try:
                self._lock()
                (folder / HEADER).unlink(missing_ok=True)
                self.content.mkdir(exist_ok=True)
            except BaseException:
                self._record.close()
                raise

    def _lock(self) -> None:
        """Lock the folder until the record is closed or the process ends."""
        try:
            self._record.execute("PRAGMA locking_mode=EXCLUSIVE")
            self._record.execute("BEGIN EXCLUSIVE")
            self._record.execute(_CREATE)
            self._record.execute("COMMIT")
        except sqlite3.OperationalError as error:
            if base_code(error) not in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise
            raise Conflict(f"another process makes a backup in {self.folder}; wait for it, or choose another") from None

    def need(self, files: Iterable[SourceFile], *, also: bool = False) -> None:
        """Set the files that belong into the backup, of which copied ones stay copied.

        Args:
            files: the files.
            also: add them to those that were set before.
        """
        with writing(self.folder), self._transaction():
            if not also:
                self._record.execute("UPDATE files SET is_needed = 0")
            how = "link" if self._hard_links else "copy"
            rows = (
                (each.path, each.size, os.fspath(each.source), each.identity and f"{how}:{each.identity}")
                for each in files
            )
            self._record.executemany(_NEED, rows)

    def bytes_to_read(self) -> int:
        """Return the size of the files that are not copied yet."""
        query = "SELECT COALESCE(SUM(bytes), 0) FROM files WHERE is_needed AND sha256 IS NULL"
        return int(self._record.execute(query).fetchone()[0])

    def bytes_to_write(self, source: Path) -> int:
        """Return the size of the files that are not copied yet and will not be linked.

        Args:
            source: the folder of the workspace: files on another disk cannot be linked.
        """
        may_link = self._hard_links and self.folder.stat().st_dev == source.stat().st_dev
        condition = " AND identity IS NULL" if may_link else ""
        query = f"SELECT COALESCE(SUM(bytes), 0) FROM files WHERE is_needed AND sha256 IS NULL{condition}"
        return int(self._record.execute(query).fetchone()[0])

    def counts(self) -> tuple[int, int, int]:
        """Return the number of the files of the backup, their size, and the number of hard links among them."""
        query = "SELECT COUNT(*), COALESCE(SUM(bytes), 0), COALESCE(SUM(is_link), 0) FROM files WHERE is_needed"
        files, size, links = self._record.execute(query).fetchone()
        return int(files), int(size), int(links)

    def copy(self, copied: Copied, missing: Callable[[str], None]) -> int:
        """Copy the files that are not copied yet, and sync them to disk; return the number of bytes written.

        Args:
            copied: called with the number of bytes after each block; raises to stop.
            missing: called with the path of a file that does not exist any more; raises unless it may be left out.

        Raises:
            MissingSource: a file does not exist any more; those before it are copied.
            WorkspaceError: the folder cannot be written, or a file cannot be read.
        """
        written, last = 0, ""
        while rows := self._record.execute(_NEXT, (last,)).fetchall():
            last, done = rows[-1][0], list[tuple[int, str, bool, str]]()
            try:
                for path, most, source, identity in rows:
                    try:
                        size, digest, is_link = self._copy_or_link(path, Path(source), identity, most, copied)
                    except MissingSource:
                        missing(path)
                        self._record.execute("UPDATE files SET is_needed = 0 WHERE path = ?", (path,))
                        continue
                    done.append((size, digest, is_link, path))
                    written += 0 if is_link else size
            finally:
                self._note(done)
        return written

    def _copy_or_link(
        self, path: str, source: Path, identity: str | None, most: int, copied: Copied
    ) -> tuple[int, str, bool]:
        """Copy or link a file; return its size, its hash, and whether it is a link."""
        target = self.content / path
        with writing(self.folder):
            target.parent.mkdir(parents=True, exist_ok=True)
            is_link = self._hard_links and identity is not None and link_copy(source, target)
        if is_link:
            return *hash_file(target, copied), True
        return *copy_file(source, target, copied, most=most), False

    def _note(self, done: list[tuple[int, str, bool, str]]) -> None:
        """Sync files to disk, and then record that they are copied."""
        with writing(self.folder):
            disk.sync_all([os.fspath(self.content / path) for *_, path in done], [])
            with self._transaction():
                update = "UPDATE files SET bytes = ?, sha256 = ?, is_link = ? WHERE path = ?"
                self._record.executemany(update, done)

    def finish(self, header: dict[str, Any]) -> None:
        """Make the folder a backup: remove files that do not belong to it, and write the list and the header."""
        with writing(self.folder):
            self._remove_others()
            digest = self._write_list()
            folders = [os.fspath(self.folder), *(str(path) for path in _folders_in(self.content))]
            disk.sync_all([], folders)
            write_atomic(self.folder / HEADER, sealed({**header, "format": FORMAT, "list": digest}), fsync=True)
            self._record.close()
            (self.folder / UNFINISHED).unlink()
            disk.sync_folder(self.folder)

    def _remove_others(self) -> None:
        query = "SELECT 1 FROM files WHERE path = ? AND is_needed AND sha256 IS NOT NULL"
        for path, _ in disk.walk_files(self.content):
            if self._record.execute(query, (path.relative_to(self.content).as_posix(),)).fetchone() is None:
                path.unlink()
        for folder in reversed(list(_folders_in(self.content))):
            with suppress(OSError):  # it is not empty
                if folder != self.content:
                    folder.rmdir()

    def _write_list(self) -> str:
        """Write the list, sorted by path; return its hash."""
        digest, path = hashlib.sha256(), self.folder / LIST
        with path.open("wb") as file:
            for row in self._record.execute("SELECT path, bytes, sha256 FROM files WHERE is_needed ORDER BY path"):
                line = json.dumps(dict(zip(("path", "bytes", "sha256"), row, strict=True))).encode() + b"\n"
                digest.update(line)
                file.write(line)
        disk.sync_file(path)
        return digest.hexdigest()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._record.execute("BEGIN")
        try:
            yield
            self._record.execute("COMMIT")
        except BaseException:
            if self._record.in_transaction:
                self._record.execute("ROLLBACK")
            raise

    def __enter__(self) -> "UnfinishedBackup":
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        """Close the record; a new folder into which nothing was copied is removed."""
        is_empty = False
        with suppress(sqlite3.Error):  # closed by finish
            query = "SELECT 1 FROM files WHERE sha256 IS NOT NULL LIMIT 1"
            is_empty = self._record.execute(query).fetchone() is None
        self._record.close()
        if is_empty and self._is_new and kind is not None:
            with suppress(OSError):
                shutil.rmtree(self.content, ignore_errors=True)
                (self.folder / UNFINISHED).unlink()
                if not self._had_folder:
                    self.folder.rmdir()


def _folders_in(folder: Path) -> Iterator[Path]:
    """Yield a folder and those in it, each before those within."""
    for where, _, _ in os.walk(folder):
        yield Path(where)
