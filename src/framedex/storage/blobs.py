"""Uploaded files of a dataset, stored by the hash of their content, and a list of files for each upload.

A dataset's folder contains ``blobs/ab/cd….jpg``, named by the BLAKE2b-128 hash of the content, and a folder
``uploads/<id>/`` with the list ``files.parquet`` for each upload. Rows of the media table find their blobs by
``content_hash`` and the suffix of their path. No absolute path is stored, so a copied or cloned folder is complete.
"""

import hashlib
import os
import re
import shutil
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from framedex.core.ids import new_id
from framedex.core.regular_files import open_binary, read_text
from framedex.errors import NotFound, WorkspaceError
from framedex.storage.disk import remove_tree, set_aside, sync_file, sync_folder, walk_files
from framedex.storage.owners import is_gone, this_process
from framedex.storage.upload_lists import listed_hashes

_BLOBS, _UPLOADS, _LIST, _OWNER = "blobs", "uploads", "files.parquet", "owner"
_UNUSED = "unused-blobs"
_SUFFIX = re.compile(r"\.[a-z0-9]{1,8}")
_ROWS = 8192
DIGEST_BYTES = 16
"""The size of the hash of a content."""
_SYNCING = 8
_NOTHING = nullcontext()
_SCHEMA = pa.schema([pa.field("path", pa.binary(), nullable=False), pa.field("digest", pa.binary(DIGEST_BYTES))])
_Row = tuple[bytes, bytes | None]


def blob_path(dataset: Path, digest: bytes, name: str) -> Path:
    """Return the path of the content of an uploaded file.

    Args:
        dataset: the dataset's folder.
        digest: BLAKE2b hash of the content, 16 bytes.
        name: the file's name; the blob gets its suffix in lower case if the suffix has 1 to 8 ASCII letters or digits.
    """
    return dataset / _BLOBS / _blob_name(digest, name)


def _blob_name(digest: bytes, name: str) -> str:
    suffix = os.path.splitext(name)[1].lower()  # noqa: PTH122 - names may be any bytes
    text = digest.hex()
    return f"{text[:2]}/{text[2:]}{suffix if _SUFFIX.fullmatch(suffix) else ''}"


class Upload:
    """Files of one upload to a dataset's blob store, as a context manager.

    Contents are written to the upload's own folder and move to the blob store in :meth:`settle`. If the block ends
    without it, the folder is removed. After a crash the next upload removes the folder.

    Attributes:
        id: the upload's UUID.
        folder: its own folder; callers may put other files beside the list.
    """

    def __init__(self, dataset: Path) -> None:
        self.id, self._dataset = new_id(), dataset
        self.folder = dataset / _UPLOADS / self.id
        self._pending: list[_Row] = []
        self._settled = False
        try:
            _clear_unfinished(dataset)
            (self.folder / _BLOBS).mkdir(parents=True)
            (self.folder / _OWNER).write_text(this_process())
            self._list: Any = pq.ParquetWriter(self.folder / f"{_LIST}.partial", _SCHEMA, compression="zstd")
        except OSError as error:
            shutil.rmtree(self.folder, ignore_errors=True)
            raise WorkspaceError(f"cannot write to {self.folder.parent}: {error.strerror}") from error

    def add(self, name: str, parts: Iterable[bytes]) -> bytes:
        """Write the content of a file, chunk by chunk, and return its hash.

        Raises:
            WorkspaceError: the content cannot be written.
        """
        partial = self.folder / "content.partial"
        digest = hashlib.blake2b(digest_size=DIGEST_BYTES)
        with _as_workspace_error(partial):
            file = partial.open("wb")
        try:
            for data in parts:  # errors of the iterable reach the caller unchanged
                digest.update(data)
                with _as_workspace_error(partial):
                    file.write(data)
        finally:
            with _as_workspace_error(partial):
                file.close()  # flushing may fail on a full disk, too
        blob = self.folder / _BLOBS / _blob_name(digest.digest(), name)
        with _as_workspace_error(blob):
            blob.parent.mkdir(exist_ok=True)
            partial.replace(blob)
        self._note(os.fsencode(name), digest.digest())
        return digest.digest()

    def add_path(self, path: str) -> None:
        """Record a file that stays at its absolute path."""
        self._note(os.fsencode(path), None)

    def add_stored(self, name: str, digest: bytes) -> None:
        """Record a file whose content is in the blob store already."""
        self._note(os.fsencode(name), digest)

    def _note(self, path: bytes, digest: bytes | None) -> None:
        self._pending.append((path, digest))
        if len(self._pending) >= _ROWS:
            self._flush()

    def _flush(self) -> None:
        if self._pending:
            paths, digests = zip(*self._pending, strict=True)
            columns = [pa.array(values, field.type) for values, field in zip((paths, digests), _SCHEMA, strict=True)]
            self._list.write_batch(pa.record_batch(columns, schema=_SCHEMA))
            self._pending = []

    def settle(self) -> int:
        """Move all files to the blob store durably, and return the number of repeated files.

        Of files of one name with equal content, and of equal paths, only the last one stays.

        Raises:
            WorkspaceError: the files cannot be written.
        """
        with _as_workspace_error(self.folder):
            self._flush()
            self._list.close()
            repeated = self._drop_repeated()
            _sync_all(self.folder)
            # From here on, remove_unused keeps the blobs in the list.
            (self.folder / f"{_LIST}.partial").replace(self.folder / _LIST)
            sync_folder(self.folder)
            self._move()
            (self.folder / _OWNER).unlink()
        self._settled = True
        return repeated

    def _drop_repeated(self) -> int:
        """Keep the last row of each path with one content; return the number of dropped rows."""
        partial = self.folder / f"{_LIST}.partial"
        table = pq.read_table(partial)
        number = pa.array(np.arange(len(table)))
        last = table.append_column("place", number).group_by(["path", "digest"]).aggregate([("place", "max")])
        if len(last) < len(table):
            pq.write_table(table.take(np.sort(last["place_max"].to_numpy())), partial, compression="zstd")
        return len(table) - len(last)

    def _move(self) -> None:
        store, touched = self._dataset / _BLOBS, set()
        for blob in _blobs(self.folder / _BLOBS):
            target = store / blob.parent.name / blob.name
            if target.exists():
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            blob.replace(target)
            touched.add(target.parent)
        for folder in (*touched, store, self._dataset):
            if folder.is_dir():
                sync_folder(folder)
        shutil.rmtree(self.folder / _BLOBS)

    def __enter__(self) -> "Upload":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._settled:
            with suppress(OSError):
                self._list.close()
            shutil.rmtree(self.folder, ignore_errors=True)


def upload_folder(dataset: Path, upload_id: str) -> Path:
    """Return the folder of an upload.

    Raises:
        NotFound: the folder or its list no longer exists.
    """
    folder = dataset / _UPLOADS / upload_id
    if not (folder / _LIST).is_file():
        raise NotFound(f"the list of the upload {upload_id} is gone; upload the files again")
    return folder


def uploads_folder(dataset: Path) -> Path:
    """Return the folder that contains one folder for each upload of a dataset; it may be missing."""
    return dataset / _UPLOADS


def uploaded(folder: Path) -> Iterator[tuple[str, bytes | None]]:
    """Yield (name, digest) of each file of an upload, in order; (absolute path, None) for files recorded by path."""
    with open_binary(folder / _LIST) as opened, pq.ParquetFile(opened, pre_buffer=False) as file:
        for batch in file.iter_batches(_ROWS):
            paths, digests = (batch.column(number).to_pylist() for number in range(2))
            yield from zip(map(os.fsdecode, paths), digests, strict=True)


def remove_upload(dataset: Path, upload_id: str) -> None:
    """Remove an upload's list once its media are in the dataset or no longer needed.

    Its blobs stay until :func:`remove_unused`.
    """
    shutil.rmtree(dataset / _UPLOADS / upload_id, ignore_errors=True)


def uploads(dataset: Path) -> Iterator[tuple[str, float, bool]]:
    """Yield (id, time of the last change in seconds since 1970, whether it is complete) of the stored uploads."""
    folder = dataset / _UPLOADS
    for each in sorted(folder.iterdir()) if folder.is_dir() else ():
        times = [status.st_mtime for _, status in walk_files(each)]
        if times:
            yield each.name, max(times), not (each / _OWNER).exists()


def remove_unused(dataset: Path, used: Iterable[pa.Array], *, still: AbstractContextManager[object] = _NOTHING) -> int:
    """Remove unreferenced blobs and return the number of bytes freed. Other processes may upload meanwhile.

    Args:
        dataset: the dataset's folder.
        used: content hashes (16 bytes each) of the media of all retained generations; further hashes do no harm. Files
            in the lists of uploads stay, too.
        still: context in which the blobs are moved away. It blocks commits of generations, and raises if one was
            committed since *used* were read.
    """
    _clear_unfinished(dataset)
    aside = dataset / _UNUSED
    stored = [digests for _, digests in _blob_groups(dataset / _BLOBS)]
    unused = np.concatenate([*stored, _set_aside(aside)[1]])
    for array in used:
        unused = unused[~np.isin(unused, _numbers(array))]
    unused = unused[~np.isin(unused, _upload_hashes(dataset))]
    if not len(unused) and not aside.exists():
        return 0
    with still:
        _put_back(dataset, aside, None)  # left by a killed run: no live process uses it now
        aside.mkdir()
        for group, digests in _blob_groups(dataset / _BLOBS):
            for index in np.flatnonzero(np.isin(digests, unused)):
                group[index].rename(aside / f"{group[index].parent.name}{group[index].name}")
        # An upload writes its list before it checks for existing blobs: if it saw these blobs, its list exists by now.
        _put_back(dataset, aside, _upload_hashes(dataset))
        doomed = set_aside(aside)
    return remove_tree(doomed)


def needed_blobs(dataset: Path, used: Iterable[pa.Array]) -> Iterator[Path]:
    """Yield the blobs of some content hashes, and those in the lists of uploads.

    Args:
        dataset: the dataset's folder.
        used: content hashes, 16 bytes each.
    """
    hashes = np.unique(np.concatenate([_upload_hashes(dataset), *map(_numbers, used)]))
    for group, digests in _blob_groups(dataset / _BLOBS):
        for index in np.flatnonzero(np.isin(digests, hashes)):
            yield group[index]


def count_missing_blobs(dataset: Path, used: Iterable[pa.Array]) -> int:
    """Return the number of content hashes, 16 bytes each, without a blob."""
    empty = np.empty(0, np.uint64)
    stored = np.unique(np.concatenate([empty, *(digests for _, digests in _blob_groups(dataset / _BLOBS))]))
    needed = np.unique(np.concatenate([empty, *map(_numbers, used)]))
    return int((~np.isin(needed, stored)).sum())


def _blob_groups(folder: Path) -> Iterator[tuple[list[Path], npt.NDArray[np.uint64]]]:
    """Yield all blobs with their hashes, in groups of some thousand."""
    blobs = _blobs(folder)
    while group := list(islice(blobs, _ROWS)):
        yield group, _numbers(pa.array([_digest_of(blob) for blob in group], pa.binary(DIGEST_BYTES)))


def _upload_hashes(dataset: Path) -> npt.NDArray[np.uint64]:
    """Return the hashes in the lists of all uploads and of all upload transactions."""
    # A call to a transaction removes its own list after its files are in the list of the transaction.
    parts = [np.empty(0, np.uint64)]
    for each in sorted((dataset / _UPLOADS).glob(f"*/{_LIST}")):
        with suppress(FileNotFoundError), open_binary(each) as opened, pq.ParquetFile(opened, pre_buffer=False) as file:
            parts += [_numbers(batch.column(0)) for batch in file.iter_batches(_ROWS, columns=["digest"])]
    return np.concatenate([*parts, *map(_numbers, listed_hashes(dataset))])


def _set_aside(aside: Path) -> tuple[list[Path], npt.NDArray[np.uint64]]:
    """Return the blobs in the folder of blobs to remove, with their hashes."""
    paths = list(aside.iterdir()) if aside.is_dir() else []
    digests = [bytes.fromhex(path.name[: 2 * DIGEST_BYTES]) for path in paths]
    return paths, _numbers(pa.array(digests, pa.binary(DIGEST_BYTES)))


def _put_back(dataset: Path, aside: Path, requested: npt.NDArray[np.uint64] | None) -> None:
    """Move the blobs of the given hashes, or all, back to the store, unless they were uploaded again."""
    paths, digests = _set_aside(aside)
    mask = np.ones(len(paths), dtype=bool) if requested is None else np.isin(digests, requested)
    for index in np.flatnonzero(mask):
        target = dataset / _BLOBS / paths[index].name[:2] / paths[index].name[2:]
        if not target.exists():
            paths[index].rename(target)
    if requested is None:
        shutil.rmtree(aside, ignore_errors=True)


def _numbers(digests: pa.Array) -> npt.NDArray[np.uint64]:
    """Return the first 8 bytes of each hash. If two hashes share them, an unused file may stay."""
    present = pc.drop_null(digests)
    buffer = present.buffers()[1] if len(present) else None
    if buffer is None:
        return np.empty(0, np.uint64)
    return np.frombuffer(buffer, np.uint64)[2 * present.offset : 2 * (present.offset + len(present)) : 2]


def _blobs(folder: Path) -> Iterator[Path]:
    if folder.is_dir():
        for part in sorted(folder.iterdir()):
            yield from sorted(part.iterdir())


def _digest_of(blob: Path) -> bytes:
    return bytes.fromhex(blob.parent.name + blob.name.partition(".")[0])


def _clear_unfinished(dataset: Path) -> None:
    """Remove the files of uploads whose processes died."""
    for owner in sorted((dataset / _UPLOADS).glob(f"*/{_OWNER}")):
        with suppress(OSError):  # the upload may end at this moment
            if is_gone(read_text(owner)):
                shutil.rmtree(owner.parent, ignore_errors=True)


@contextmanager
def _as_workspace_error(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise WorkspaceError(f"cannot write {path}: {error.strerror or error}") from error


def _sync_all(folder: Path) -> None:
    """Sync all files below a folder to disk, several at a time because disks batch such requests."""
    files = (Path(where) / name for where, _, names in os.walk(folder) for name in names)
    with ThreadPoolExecutor(_SYNCING) as pool:
        while group := list(islice(files, _ROWS)):
            list(pool.map(sync_file, group))
