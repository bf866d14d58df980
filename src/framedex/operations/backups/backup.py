"""Backups of a workspace that other processes use.

A backup is the workspace at the moment at which its catalog was copied. Files that the copy names are written once, so
they can be copied later, unless they were removed meanwhile. After the files the present catalog is read: if it still
names the same states, no file was removed. Else the catalog is copied again, and the files that are new with it.
"""

import os
import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from framedex.core.progress import Progress
from framedex.errors import Conflict, InvalidInput, WorkspaceError
from framedex.operations.backups.contents import count_missing_uploads, dataset_contents
from framedex.operations.context import Context
from framedex.records import BackupResult
from framedex.render.sizes import bytes_text
from framedex.settings import user_path
from framedex.storage import disk, journal_rows
from framedex.storage.backups.catalog_copy import NamedFiles, named_files, open_copy, still_names, write_copy
from framedex.storage.backups.copying import MissingSource, SourceFile, source_file
from framedex.storage.backups.unfinished import UnfinishedBackup
from framedex.storage.catalog import CATALOG
from framedex.storage.layout import FORMAT_VERSION, SERVICE_DB_NAME, Layout
from framedex.storage.schema import BLOBS_ROOT
from framedex.storage.service_db.copies import write_service_copy
from framedex.storage.service_db.database import KEY_NAME

_ATTEMPTS = 20  # copies of the catalog; each further one copies only what changed since the one before
_MARGIN = 2**20
_SHOWN = 10  # sources in a result
_OF_FILES = 0.05  # share of the progress before the first file is copied


class _Changed(Exception):
    """A state that the copy of the catalog names was removed meanwhile."""


def make_backup(
    context: Context,
    folder: str | os.PathLike[str],
    *,
    with_users: bool = False,
    hard_links: bool = False,
    progress: Progress | None = None,
) -> BackupResult:
    """Make a backup of a workspace; see :meth:`framedex.Workspace.backup`.

    Args:
        context: the open workspace.
        folder: of the backup.
        with_users: whether to copy the database of the service, too.
        hard_links: whether to link files that never change, where that is possible.
        progress: called with the stage and the share that is done; raises to stop.
    """
    target = _checked_target(context.layout, folder)
    if with_users and not context.layout.service_db.exists():
        root = context.layout.root
        raise InvalidInput(f"{root} has no users: there is no {SERVICE_DB_NAME}; back it up without users")
    report = progress or (lambda _stage, _share: None)
    with UnfinishedBackup(target, hard_links=hard_links) as unfinished:
        for _ in range(_ATTEMPTS):
            with TemporaryDirectory(prefix="framedex-backup-", ignore_cleanup_errors=True) as scratch:
                attempt = _Attempt(context, unfinished, Path(scratch), report)
                try:
                    return attempt.run(with_users=with_users)
                except _Changed:
                    continue
    raise Conflict(
        f"the workspace {context.layout.root} was changed too often while its backup was made; what is copied stays in "
        f"{target}, so the next backup to this folder takes less time"
    )


class _Attempt:
    """A backup as of one copy of the catalog.

    Args:
        context: the open workspace.
        unfinished: the folder of the backup.
        scratch: an empty folder for the copies of databases.
        report: called with the stage and the share that is done; raises to stop.
    """

    def __init__(self, context: Context, unfinished: UnfinishedBackup, scratch: Path, report: Progress) -> None:
        self._context, self._unfinished, self._scratch, self._report = context, unfinished, scratch, report
        self._layout = context.layout
        self._gone: set[str] = set()  # files of steps of the journal that were forgotten meanwhile

    def run(self, *, with_users: bool) -> BackupResult:
        """Make the backup.

        Raises:
            _Changed: a state was removed meanwhile.
            WorkspaceError: a file is missing in the workspace, or the folder cannot be written.
        """
        created_at, copy = datetime.now(UTC), self._scratch / self._layout.catalog.name
        write_copy(self._context.catalog, copy, lambda share: self._report("catalog", share * _OF_FILES))
        with open_copy(copy) as catalog, catalog.read() as connection:
            named = named_files(connection)
        try:
            self._unfinished.need(self._contents(named))
            self._check_space()
            written = self._copy(self._counter())
            missing = sum(count_missing_uploads(self._layout, each) for each in named)
        except MissingSource as error:
            if self._is_current(named):
                reason = f"{error}; run `framedex check` first, which lists what is missing or damaged"
                raise WorkspaceError(f"cannot back up {self._layout.root}: {reason}") from error
            raise _Changed from error
        if not self._is_current(named):
            raise _Changed
        self._seal(copy, with_users=with_users)
        self._unfinished.need(self._made(), also=True)
        written += self._copy(lambda _bytes: None)
        return self._finish(created_at, named, written, missing, with_users=with_users)

    def _contents(self, named: list[NamedFiles]) -> Iterator[SourceFile]:
        if self._layout.models.is_file():
            size = self._layout.models.stat().st_size
            yield source_file(self._layout.root, self._layout.models, size=size)
        for each in named:
            self._report(each.record.name, _OF_FILES)
            yield from dataset_contents(self._layout, each, self._leave_out)

    def _leave_out(self, path: str) -> None:
        """Accept that a file of the journal does not exist any more: steps are forgotten with each edit.

        Raises:
            MissingSource: it is another file.
        """
        if PurePosixPath(path).parent.name != "journal":
            raise MissingSource(path)
        self._gone.add(path)

    def _made(self) -> Iterator[SourceFile]:
        """Yield the files that were made for the backup: copies of databases, manifests."""
        for path, status in disk.walk_files(self._scratch):
            yield source_file(self._scratch, path, size=status.st_size)

    def _check_space(self) -> None:
        needed = self._unfinished.bytes_to_write(self._layout.root) + _MARGIN
        needed += sum(status.st_size for _, status in disk.walk_files(self._scratch))
        free = shutil.disk_usage(self._unfinished.folder).free
        if needed > free:
            raise WorkspaceError(
                f"no space left for a backup in {self._unfinished.folder}: it needs {bytes_text(needed)}, and "
                f"{bytes_text(free)} are free"
            )

    def _copy(self, copied: Callable[[int], None]) -> int:
        return self._unfinished.copy(copied, self._leave_out)

    def _counter(self) -> Callable[[int], None]:
        total, done = max(self._unfinished.bytes_to_read(), 1), 0

        def count(size: int) -> None:
            nonlocal done
            done += size
            self._report("files", min(_OF_FILES + (1 - _OF_FILES) * done / total, 1.0))

        return count

    def _is_current(self, named: list[NamedFiles]) -> bool:
        with self._context.catalog.read() as connection:
            return all(still_names(connection, each) for each in named)

    def _seal(self, copy: Path, *, with_users: bool) -> None:
        """Finish the copies of the databases."""
        with open_copy(copy) as catalog:
            if self._gone:
                with catalog.write() as connection:
                    for dataset_id, names in self._forgotten().items():
                        journal_rows.forget_steps(connection, dataset_id, names)
            catalog.seal()
        if with_users:
            write_service_copy(self._layout.root, self._scratch)

    def _forgotten(self) -> dict[str, set[str]]:
        """Return the files of steps that the present catalog has not any more, by dataset."""
        paths = [PurePosixPath(path) for path in self._gone]
        names = {path.parts[1]: {each.name for each in paths if each.parts[1] == path.parts[1]} for path in paths}
        with self._context.catalog.read() as present:
            return {each: names[each] - journal_rows.journal_files(present, each) for each in names}

    def _finish(
        self, created_at: datetime, named: list[NamedFiles], written: int, missing: int, *, with_users: bool
    ) -> BackupResult:
        files, size, links = self._unfinished.counts()
        result = BackupResult(
            path=str(self._unfinished.folder),
            created_at=created_at,
            files=files,
            bytes=size,
            copied_bytes=written,
            linked_files=links,
            with_users=with_users,
            datasets=[each.record for each in named],
            not_included=list(_not_included(self._layout, named, with_users=with_users)),
            missing_uploads=missing,
        )
        header = result.model_dump(mode="json", include={"created_at", "files", "bytes", "with_users", "datasets"})
        more = {"workspace_format": FORMAT_VERSION, "catalog": CATALOG.newest}
        self._unfinished.finish(header | more)
        return result


def _checked_target(layout: Layout, folder: str | os.PathLike[str]) -> Path:
    """Return the absolute path of the folder of a backup.

    Raises:
        InvalidInput: it is in the workspace, or the workspace is in it.
    """
    target, root = Path(os.path.realpath(user_path(folder))), Path(os.path.realpath(layout.root))
    if target == root or root in target.parents:
        raise InvalidInput(f"a backup is a folder of its own, not in the workspace {root}: {target} is")
    if target.exists() and not target.is_dir():
        raise InvalidInput(f"{target} is a file; a backup is a folder")
    return target


def _not_included(layout: Layout, named: list[NamedFiles], *, with_users: bool) -> Iterator[str]:
    """Yield a line for each part that the workspace has or needs, and that its backup does not hold."""
    roots = sorted({root for each in named for root in each.roots if root != BLOBS_ROOT})
    if roots:
        more = f" and {len(roots) - _SHOWN:,} more" if len(roots) > _SHOWN else ""
        yield f"the images and videos in {', '.join(roots[:_SHOWN])}{more}: they stay where they are"
    if layout.models.is_file():
        yield f"files of models that {layout.models.name} names"
    if not with_users and layout.service_db.exists():
        yield f"users, roles and grants of the service ({SERVICE_DB_NAME}): a backup with users has them"
    if (layout.root / KEY_NAME).exists():
        yield f"the key of the service ({KEY_NAME}), from which secrets of API keys follow: copy it to another place"
    elif with_users:
        yield "the key of the service, from which secrets of API keys follow"
    if with_users:
        yield "sessions of users: all log in again after a restore"
    yield "thumbnails and other caches: they are made again when they are needed"
    yield "checkpoints of tasks: a task that was running is FAILED in the backup, and starts from scratch when retried"
    exports = "exports of users, and " if (layout.root / "exports").is_dir() else ""
    yield f"{exports}uploads that had not arrived"
