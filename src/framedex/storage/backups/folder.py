"""The folder of a backup: its files, their list, and the record of a backup in progress.

The folder contains::

    backup.json     when and of what the backup was made, and the hash of the list; written last
    files.jsonl     a line for each file: its path, its size in bytes, its SHA-256 hash
    workspace/      the files, by their paths in the workspace
    unfinished.db   while a backup is made: the files to copy, and the hashes of those that are copied

A folder with ``unfinished.db``, or without ``backup.json``, is no backup. The files of a workspace are there but its
marker, so no program opens and changes them; a restore writes the marker.
"""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from framedex.core.regular_files import TEXT_BYTES, open_binary, read_text
from framedex.errors import Conflict, FormatTooNew, WorkspaceError

HEADER, LIST, CONTENT, UNFINISHED = "backup.json", "files.jsonl", "workspace", "unfinished.db"
FORMAT = 1


class ListedFile(NamedTuple):
    """A file of a backup: its path in the workspace, with slashes, its size, and the hash of its content."""

    path: str
    size: int
    sha256: str


@dataclass(frozen=True)
class Backup:
    """A backup that ended.

    Attributes:
        folder: its folder.
        header: what :meth:`UnfinishedBackup.finish` got.
    """

    folder: Path
    header: dict[str, Any]

    def files(self) -> Iterator[ListedFile]:
        """Yield the files, sorted by path.

        Raises:
            WorkspaceError: the list is damaged.
        """
        try:
            with open_binary(self.folder / LIST) as file:
                for line in file:
                    entry = ListedFile(*(json.loads(line)[key] for key in ("path", "bytes", "sha256")))
                    _check_path(entry.path)
                    yield entry
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise _damaged(self.folder / LIST, error) from error

    def source(self, file: ListedFile) -> Path:
        """Return the path of a file in the backup."""
        return self.folder / CONTENT / file.path


def open_backup(folder: Path) -> Backup:
    """Return the backup in a folder, whose list is intact.

    Raises:
        WorkspaceError: the folder is no backup, or one that did not end, or its header or list is damaged.
        FormatTooNew: a newer version of Framedex made it.
    """
    if (folder / UNFINISHED).exists():
        raise WorkspaceError(
            f"the backup in {folder} did not end, so it is no backup; make it again in the same folder"
        )
    if not (folder / HEADER).exists():
        raise WorkspaceError(f"{folder} is no backup: it holds no {HEADER}")
    header = _unsealed(folder / HEADER)
    if (version := header.get("format")) != FORMAT:
        raise FormatTooNew(
            f"{folder} is a backup of format {version}; this Framedex reads {FORMAT}: install a newer one"
        )
    try:
        with open_binary(folder / LIST) as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise _damaged(folder / LIST, error) from error
    if digest != header.get("list"):
        raise WorkspaceError(f"{folder / LIST} is damaged: its content does not fit its hash in {HEADER}")
    return Backup(folder, header)


def check_empty(folder: Path) -> None:
    """Check that a folder is empty but for hidden files.

    Raises:
        Conflict: it holds a backup, or other files.
    """
    if (folder / HEADER).exists():
        raise Conflict(f"{folder} holds a backup already; choose another folder, or remove that one first")
    if any(not each.name.startswith(".") for each in folder.iterdir()):
        raise Conflict(f"{folder} is not empty; choose an empty folder or a new one")


def _check_path(path: str) -> None:
    """Check that a path leads into the folder of a workspace.

    Raises:
        ValueError: it does not.
    """
    parts = PurePosixPath(path).parts
    if not parts or path.startswith("/") or ".." in parts or any(each in path for each in "\0\\:"):
        raise ValueError(f"{path!r} is no path in a workspace")


def sealed(content: dict[str, Any]) -> bytes:
    """Return JSON with its hash, as the header of a backup is stored."""
    text = json.dumps(content, sort_keys=True)
    digest = hashlib.sha256(text.encode()).hexdigest()
    return f'{{"content": {text}, "sha256": "{digest}"}}\n'.encode()


def _unsealed(path: Path) -> dict[str, Any]:
    try:
        record = json.loads(read_text(path, max_bytes=TEXT_BYTES))
        content: dict[str, Any] = record["content"]
        digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
        if record["sha256"] != digest:
            raise ValueError("its content does not fit its hash")
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise _damaged(path, error) from error
    return content


def _damaged(path: Path, error: Exception) -> WorkspaceError:
    return WorkspaceError(f"{path} is damaged: {getattr(error, 'strerror', None) or error}")
