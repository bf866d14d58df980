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
from framedex.storage.journal_names import names_journal_file

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
    data, fault = _content(dataset, name, digest)
    if fault is not None:
        raise WorkspaceError(f"{dataset / JOURNAL / name} {fault}; the step cannot be undone")
    return pa.ipc.open_stream(data).read_all()


def journal_file_fault(dataset: Path, name: str, digest: str | None) -> str | None:
    """Return the reason why the values of a file cannot be read, as a predicate; None if they can."""
    return _content(dataset, name, digest)[1]


def _content(dataset: Path, name: str, digest: str | None) -> tuple[bytes, str | None]:
    """Return the content of a file, and the reason why it cannot be used."""
    if not names_journal_file(name):
        return b"", "has a name that no file of a journal has"
    try:
        data = read_bytes(dataset / JOURNAL / name, _MOST_BYTES)
    except FileNotFoundError:
        return b"", "is missing"
    except OSError as error:
        return b"", f"cannot be read: {error.strerror}"
    return data, None if _digest(data) == digest else "is damaged: its content does not fit its hash"


def remove_journal_files(dataset: Path, names: list[str]) -> None:
    """Remove files; those that are gone already are left out."""
    for name in names:
        (dataset / JOURNAL / name).unlink(missing_ok=True)


def _digest(data: bytes | pa.Buffer) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()
