"""File lists of upload transactions: one file for each transaction, to which each call appends one block.

A dataset's folder contains ``transactions/<id>.files``. The first block says which transaction it is, in JSON; each
further block is an Arrow table of the files of one call. A block begins with its length and the hash of its content, so
a damaged block is recognised, and a lost catalog can be rebuilt from the lists.

The row of the transaction stores the length of its list, which is what counts: a call appends its block while it holds
the catalog's write lock, and the transaction of the catalog that stores the new length is the commit. Bytes beyond that
length are those of a killed call; the next call overwrites them.

Before the row of a discarded transaction is removed, the empty file ``transactions/<id>.discarded`` says so: a list
with it and without a row can be removed, and a list without it belongs to a row that was lost.
"""

import hashlib
import json
import os
import re
import struct
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import pyarrow as pa

from framedex.core.regular_files import open_binary
from framedex.errors import WorkspaceError
from framedex.records import UploadRecord
from framedex.storage.disk import entries, sync_folder
from framedex.storage.failures import own_errors

TRANSACTIONS = "transactions"
"""Folder of the lists, in the folder of a dataset."""
_SUFFIX = ".files"
_NAME = re.compile(r"([1-9]\d{0,17})\.files")
_DISCARDED = re.compile(r"([1-9]\d{0,17})\.discarded")
_MAGIC = b"FDXU"
_HEADER = struct.Struct("<4sQ16s")  # magic, length of the content, its BLAKE2b-128 hash
_MAX_BLOCK = 2**30
_SCHEMA = pa.schema(
    [
        pa.field("name", pa.binary(), nullable=False),
        pa.field("digest", pa.binary(16), nullable=False),
        pa.field("size", pa.int64(), nullable=False),
    ]
)


class ReceivedFile(NamedTuple):
    """A file that was uploaded in a transaction.

    Attributes:
        name: its name, without folders.
        digest: BLAKE2b hash of its content, 16 bytes.
        size: of its content, in bytes.
    """

    name: str
    digest: bytes
    size: int


@dataclass(frozen=True)
class UploadList:
    """The intact beginning of the list of a transaction.

    Attributes:
        upload_id: the transaction.
        created_by, created_at: of the transaction.
        n_files, n_bytes: numbers of listed files and of their bytes.
        list_bytes: length of the intact beginning.
    """

    upload_id: int
    created_by: str
    created_at: datetime
    n_files: int
    n_bytes: int
    list_bytes: int


def list_path(dataset: Path, upload_id: int) -> Path:
    """Return the path of the list of a transaction, which exists as soon as the transaction has files."""
    return dataset / TRANSACTIONS / f"{upload_id}{_SUFFIX}"


def mark_discarded(path: Path) -> None:
    """Write durably beside a list that its transaction is about to be discarded.

    Raises:
        WorkspaceError: the file cannot be written.
    """
    with own_errors(f"write {path.parent}"):
        path.with_suffix(".discarded").touch()
        sync_folder(path.parent)


def discarded_lists(dataset: Path) -> list[tuple[int, Path]]:
    """Return (id, path) of the marks of :func:`mark_discarded` in a dataset's folder."""
    return [*_named(dataset, _DISCARDED)]


def stored_lists(dataset: Path) -> Iterator[tuple[int, Path]]:
    """Yield (id, path) of the lists in a dataset's folder."""
    yield from _named(dataset, _NAME)


def _named(dataset: Path, name: re.Pattern[str]) -> Iterator[tuple[int, Path]]:
    for path in entries(dataset / TRANSACTIONS):
        if (match := name.fullmatch(path.name)) is not None:
            yield int(match[1]), path


def append_files(path: Path, upload: UploadRecord, files: list[ReceivedFile], *, end: int) -> int:
    """Append the files of a call to a list durably, and return its new length. The caller holds the write lock.

    Args:
        path: the list; created if *end* is 0.
        upload: the transaction.
        files: the files, in order.
        end: the present length according to the catalog.

    Raises:
        WorkspaceError: the list cannot be written, or is shorter than *end*.
    """
    try:
        is_new = not path.exists()
        if is_new:
            path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("xb" if is_new else "r+b") as file:
            if file.seek(0, os.SEEK_END) < end:
                raise WorkspaceError(f"{path} is damaged: it has fewer than {end:,} bytes; see `framedex check`")
            file.truncate(end)
            file.seek(end)
            if not end:
                created_at = upload.created_at.isoformat()
                about = {"id": upload.id, "created_by": upload.created_by, "created_at": created_at}
                _write_block(file, json.dumps(about).encode())
            _write_block(file, _content_of(files))
            file.flush()
            os.fsync(file.fileno())
            length = file.tell()
        if is_new:
            sync_folder(path.parent)
            sync_folder(path.parent.parent)
    except WorkspaceError:
        raise
    except OSError as error:
        raise WorkspaceError(f"cannot write {path}: {error.strerror or error}") from error
    return length


def listed_files(path: Path, end: int) -> Iterator[ReceivedFile]:
    """Yield the files of a list up to a length, in the order in which they were received.

    Raises:
        WorkspaceError: the list cannot be read, or is damaged.
    """
    for batch in _batches(path, end):
        columns = (column.to_pylist() for column in batch.columns)
        for name, digest, size in zip(*columns, strict=True):
            yield ReceivedFile(os.fsdecode(name), digest, size)


def listed_hashes(dataset: Path) -> Iterator[pa.Array]:
    """Yield the hashes of the files in all lists of a dataset, 16 bytes each, as far as the lists are intact."""
    for _, path in stored_lists(dataset):
        with suppress(WorkspaceError):
            for batch in _batches(path, None):
                yield batch.column(1)


def intact_list(path: Path, max_bytes: int | None = None) -> UploadList | None:
    """Return what a list says up to its first damaged block; None if not even the transaction can be read.

    Args:
        path: the list.
        max_bytes: the length up to which to read; None for all.
    """
    about: dict[str, Any] | None = None
    files = size = end = 0
    with suppress(WorkspaceError, KeyError, ValueError, TypeError):
        for content, position in _blocks(path, max_bytes):
            if about is None:
                about = json.loads(content)
                about["created_at"] = datetime.fromisoformat(about["created_at"])
            else:
                batch = _batch_of(path, content)
                files += batch.num_rows
                size += sum(batch.column(2).to_pylist())
            end = position
    if about is None or not isinstance(about.get("id"), int) or not isinstance(about["created_at"], datetime):
        return None
    return UploadList(about["id"], str(about.get("created_by")), about["created_at"], files, size, end)


def _content_of(files: list[ReceivedFile]) -> bytes:
    columns = [[os.fsencode(file.name) for file in files], [file.digest for file in files], [f.size for f in files]]
    arrays = [pa.array(values, field.type) for values, field in zip(columns, _SCHEMA, strict=True)]
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, _SCHEMA) as writer:
        writer.write_batch(pa.record_batch(arrays, schema=_SCHEMA))
    content: bytes = sink.getvalue().to_pybytes()
    return content


def _write_block(file: BinaryIO, content: bytes) -> None:
    file.write(_HEADER.pack(_MAGIC, len(content), _hash(content)))
    file.write(content)


def _hash(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=16).digest()


def _batches(path: Path, end: int | None) -> Iterator[pa.RecordBatch]:
    """Yield the table of each call up to a length; None for all whole blocks."""
    blocks = _blocks(path, end)
    next(blocks, None)
    for content, _ in blocks:
        yield _batch_of(path, content)


def _batch_of(path: Path, content: bytes) -> pa.RecordBatch:
    try:
        with pa.ipc.open_stream(content) as reader:
            if reader.schema != _SCHEMA:
                raise WorkspaceError(f"{path} is damaged: its columns are {reader.schema.names}")
            return reader.read_next_batch()
    except (pa.ArrowException, StopIteration) as error:
        raise WorkspaceError(f"{path} is damaged: {error}") from error


def _blocks(path: Path, end: int | None) -> Iterator[tuple[bytes, int]]:
    """Yield the content of each block up to a length, with the position after the block.

    Raises:
        WorkspaceError: the list cannot be read, or a block is damaged or incomplete.
    """
    try:
        with open_binary(path) as file:
            position = 0
            while end is None or position < end:
                header = file.read(_HEADER.size)
                if not header and end is None:
                    return
                content = _content(file, header)
                position += len(header) + len(content or b"")
                if content is None or (end is not None and position > end):
                    raise WorkspaceError(f"{path} is damaged before byte {position:,}; see `framedex check`")
                yield content, position
    except OSError as error:
        if isinstance(error, WorkspaceError):
            raise
        raise WorkspaceError(f"cannot read {path}: {error.strerror or error}") from error


def _content(file: BinaryIO, header: bytes) -> bytes | None:
    """Return the content of the block with that header; None if it is damaged or incomplete."""
    if len(header) < _HEADER.size:
        return None
    magic, length, digest = _HEADER.unpack(header)
    if magic != _MAGIC or length > _MAX_BLOCK:
        return None
    content = file.read(length)
    return content if len(content) == length and _hash(content) == digest else None
