"""Files of an upload transaction: their receipt, call by call, and the upload that a task reads in the end."""

import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from framedex.annotations.formats import box_files, label_files
from framedex.core.allowed_folders import AllowedFolders, within
from framedex.core.counts import counted
from framedex.core.regular_files import open_binary
from framedex.core.skipped import Skipped
from framedex.core.suffixes import is_media
from framedex.errors import InvalidInput, WorkspaceError
from framedex.jobs.ingest.uploads import REPEATED, UploadSource, bounded_parts, read_parts
from framedex.media.files import allowed_folders
from framedex.settings import Settings, user_path
from framedex.storage.blobs import Upload, blob_path, remove_upload, uploaded
from framedex.storage.upload_lists import ReceivedFile, listed_files

_MAX_NAME_BYTES = 255  # as on most file systems


class ReceivedFiles:
    """Files of one call that are durably in the blob store of a dataset.

    Attributes:
        files: the files, in order; of those of one name with equal content the last one.
        size: of all files, in bytes.
    """

    def __init__(self, dataset: Path, upload_id: str, files: list[ReceivedFile]) -> None:
        self.files, self.size = files, sum(file.size for file in files)
        self._dataset, self._upload_id = dataset, upload_id

    def release(self) -> None:
        """Remove the list of the call: its files are in the list of the transaction, or not needed."""
        remove_upload(self._dataset, self._upload_id)


def receive_files(files: Any, dataset: Path, settings: Settings) -> ReceivedFiles:
    """Copy the files of one call to the blob store; if one cannot be used, none is kept.

    Args:
        files: pairs of a name and the content: bytes, a binary file, or the path of a file.
        dataset: folder of the dataset.
        settings: limits.

    Raises:
        InvalidInput: a file cannot be used, or a limit is exceeded; the message names the file.
        Forbidden: a path is in no folder from which files may be read.
        WorkspaceError: the blob store cannot be written.
    """
    pairs = _named(files, settings.max_upload_files)
    sizes: dict[tuple[str, bytes], int] = {}
    allowed = allowed_folders(settings)
    remaining = settings.max_upload_bytes
    with Upload(dataset) as upload:
        for number, (name, content) in enumerate(pairs):
            where = f"files[{number}] ({name!r})"
            received: list[int] = []
            parts = bounded_parts(_parts(content, where, allowed), name, where, settings)
            digest = upload.add(name, _counted(parts, received, name, remaining))
            sizes[name, digest] = sum(received)
            remaining -= sum(received)
        upload.settle()
        listed = [(name, digest) for name, digest in uploaded(upload.folder) if digest is not None]
    return ReceivedFiles(
        dataset, upload.id, [ReceivedFile(name, digest, sizes[name, digest]) for name, digest in listed]
    )


def _named(files: Any, max_files: int) -> list[tuple[str, Any]]:
    """Return the files with the last parts of their names, after a check of all names."""
    if isinstance(files, str | bytes | os.PathLike) or not isinstance(files, Sequence):
        raise InvalidInput(f"files must be a list of (name, content) pairs, not {type(files).__name__}")
    if not files:
        raise InvalidInput("files holds no files")
    if len(files) > max_files:
        raise InvalidInput(
            f"a call takes up to {counted(max_files, 'files')} (FRAMEDEX_MAX_UPLOAD_FILES), not {len(files):,}"
        )
    pairs = [_pair(each, f"files[{number}]") for number, each in enumerate(files)]
    for name, _ in pairs:
        check_format(name)
    return pairs


def check_format(name: str) -> None:
    """Check that a file is an image, a video or an annotation file, judged by its name.

    Raises:
        InvalidInput: it is something else.
    """
    if not is_media(name) and not is_annotation_file(name):
        raise InvalidInput(f"Unsupported file format: {name!r}")


def _pair(file: Any, where: str) -> tuple[str, Any]:
    if not isinstance(file, tuple | list) or len(file) != 2 or not isinstance(file[0], str):
        raise InvalidInput(f"{where} must be a pair (name, content), not {type(file).__name__}")
    name, content = file
    if not isinstance(content, bytes | bytearray | memoryview | str | os.PathLike) and not hasattr(content, "read"):
        kind = type(content).__name__
        raise InvalidInput(f"the content of {where} must be bytes, a binary file or the path of a file, not {kind}")
    last = name.replace("\\", "/").rpartition("/")[2]
    try:
        length = len(os.fsencode(last))
    except UnicodeEncodeError:
        raise InvalidInput(f"{where}: the name {name!r} has a lone surrogate, which no file name has") from None
    if not last.strip() or "\0" in last:
        raise InvalidInput(f"{where}: a file needs a name, not {name!r}")
    if length > _MAX_NAME_BYTES:
        raise InvalidInput(f"{where}: a file name has up to {_MAX_NAME_BYTES} bytes, not {length:,}: {last[:60]!r}…")
    return last, content


def is_annotation_file(name: str) -> bool:
    """Return whether a file is read as annotations: its whole name is that of such a file."""
    return name in (*label_files(), *box_files())


def _parts(content: Any, where: str, allowed: AllowedFolders | None) -> Iterator[bytes]:
    if isinstance(content, bytes | bytearray | memoryview):
        yield bytes(content)
    elif isinstance(content, str | os.PathLike):
        try:
            with within(allowed):
                file = open_binary(user_path(content))
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise InvalidInput(f"{where}: cannot read {os.fspath(content)!r}: {reason}") from None
        with file:
            yield from read_parts(file, where)
    else:
        yield from read_parts(content, where)


def _counted(parts: Iterable[bytes], received: list[int], name: str, remaining: int) -> Iterator[bytes]:
    """Yield chunks, and append their sizes to those of a file.

    Raises:
        InvalidInput: the files of the call have too many bytes.
    """
    total = 0
    for data in parts:
        received.append(len(data))
        total += len(data)
        if total > remaining:
            raise InvalidInput(
                f"the files of this call are too large: {name!r} goes beyond the limit (FRAMEDEX_MAX_UPLOAD_BYTES); "
                "send fewer files in a call"
            )
        yield data


def collect_files(path: Path, end: int, dataset: Path) -> UploadSource:
    """Return the upload of all files of a transaction, for a task: of annotation files of one name the last one counts.

    Args:
        path: the list of the transaction.
        end: its length.
        dataset: folder of the dataset.

    Raises:
        InvalidInput: there are no images or videos.
        WorkspaceError: the list is damaged, a content is missing, or the upload cannot be written.
    """
    annotations: dict[str, bytes] = {}
    repeated = media = 0
    with Upload(dataset) as upload:
        for file in listed_files(path, end):
            if is_annotation_file(file.name):
                repeated += file.name in annotations
                annotations[file.name] = file.digest
            else:
                upload.add_stored(file.name, file.digest)
                media += 1
        if not media:
            raise InvalidInput("The transaction holds no files: there are annotations without an image or a video")
        for name, digest in annotations.items():
            _copy(blob_path(dataset, digest, name), upload.folder / name)
        skipped = Skipped({REPEATED: repeated + upload.settle()})
    return UploadSource(dataset, upload.id, +skipped)


def _copy(blob: Path, target: Path) -> None:
    try:
        shutil.copyfile(blob, target)
    except OSError as error:
        raise WorkspaceError(f"cannot copy {blob}: {error.strerror or error}") from error
