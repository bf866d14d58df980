"""Files of the journal: for each step the media whose values it changed, with their values before and after.

They lie in the folder ``journal`` of a dataset, one Arrow stream each. Rows of the journal name them with their hashes.
"""

import hashlib
import uuid
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from framedex.core.regular_files import read_bytes
from framedex.errors import WorkspaceError
from framedex.storage import disk
from framedex.storage.failures import own_errors

JOURNAL = "journal"
"""The name of the folder."""
_MOST_BYTES = 2**31


@dataclass(frozen=True)
class JournalFile:
    """A written file: its name, its hash, and its size in bytes."""

    name: str
    digest: str
    n_bytes: int


def write_journal_file(dataset: Path, values: pa.Table) -> JournalFile:
    """Write and sync values to a new file in the folder of a dataset; return it."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, values.schema) as writer:
        writer.write_table(values)
    data = sink.getvalue()
    file = JournalFile(f"{uuid.uuid4().hex}.arrow", _digest(data), data.size)
    folder = dataset / JOURNAL
    with own_errors(f"write {folder}"):
        folder.mkdir(exist_ok=True)
        with (folder / file.name).open("xb") as out:
            out.write(data)
        disk.sync_file(folder / file.name)
        disk.sync_folder(folder)
    return file


def read_journal_file(dataset: Path, name: str, digest: str | None) -> pa.Table:
    """Return the values of a file.

    Raises:
        WorkspaceError: it is missing or damaged.
    """
    path = dataset / JOURNAL / name
    try:
        data = read_bytes(path, _MOST_BYTES)
    except OSError as error:
        raise WorkspaceError(f"cannot read {path}: {error.strerror}; the step cannot be undone") from error
    if _digest(data) != digest:
        raise WorkspaceError(f"{path} is damaged: its content does not fit its hash; the step cannot be undone")
    return pa.ipc.open_stream(data).read_all()


def remove_journal_files(dataset: Path, names: list[str]) -> None:
    """Remove files; those that are gone already are left out."""
    for name in names:
        (dataset / JOURNAL / name).unlink(missing_ok=True)


def _digest(data: bytes | pa.Buffer) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()
