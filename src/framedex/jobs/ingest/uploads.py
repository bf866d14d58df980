"""Media that are uploaded: brought to a dataset's blob store before anything is read of them, and found there again."""

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from framedex.annotations.formats import box_files, label_files
from framedex.annotations.label_index import Annotations
from framedex.annotations.sources import BoxSource, find_box_sources, read_annotations
from framedex.errors import InvalidInput
from framedex.media.archives import ArchiveLimits, ArchiveMember, clean_name, open_archive
from framedex.media.sources import Item, Source
from framedex.progress import ShareProgress
from framedex.settings import Settings, user_path
from framedex.storage.blobs import BLOBS_ROOT, Upload, blob_path, upload_folder, uploaded

_PART = 2**20


@dataclass
class UploadSource(Source):
    """The files of one upload: those in the blob store, and those that stay where they are.

    Attributes:
        dataset: the dataset's folder.
        upload_id: the upload.
        root: the blob store; or the deepest folder that holds all files, where all stay.
        other_roots: that folder, where only some stay.
    """

    dataset: Path
    upload_id: str
    skipped: Counter[str] = field(default_factory=Counter)
    root: str = BLOBS_ROOT
    other_roots: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self._folder = upload_folder(self.dataset, self.upload_id)
        home, any_blob = _common_folder(self._folder)
        if any_blob:
            self.other_roots = () if home is None else (home,)
        else:
            self.root = home or self.root
        self._home, self._part = home or "", 1 if any_blob else 0

    def items(self) -> Iterator[Item]:
        """Yield the files, in the order in which they were given."""
        for name, digest in uploaded(self._folder):
            if digest is None:
                yield Item(os.path.relpath(name, self._home), part=self._part)
            else:
                yield Item(name, location=str(blob_path(self.dataset, digest, name)))

    def annotations(self) -> Annotations:
        """Return what annotation files say that came with an archive."""
        return read_annotations(str(self._folder))

    def boxes(self) -> list[BoxSource]:
        """Return the files of boxes that came with an archive."""
        return find_box_sources(self._folder)


def _common_folder(upload: Path) -> tuple[str | None, bool]:
    """Return the deepest folder that holds all files that stay, and whether there are others."""
    common, any_blob = None, False
    for name, digest in uploaded(upload):
        folder = os.path.dirname(name)  # noqa: PTH120 - names may be any bytes
        if digest is not None:
            any_blob = True
        elif common is None:
            common = folder
        elif folder != common:
            common = os.path.commonpath([common, folder])
    return common, any_blob


def upload_archive(archive: Any, dataset: Path, settings: Settings, progress: ShareProgress) -> UploadSource:
    """Bring the pictures of an archive to the blob store. If it cannot be read to its end, none of them stays.

    Args:
        archive: path of a ``.zip``, ``.tar``, ``.tar.gz`` or ``.tgz`` file.
        dataset: the dataset's folder.
        settings: limits.
        progress: called with the share that is done; raises to stop.

    Raises:
        InvalidInput: the archive is broken, encrypted or too large, or it holds no pictures.
        WorkspaceError: the blob store cannot be written.
    """
    if not isinstance(archive, str | os.PathLike):
        raise InvalidInput(f"archive must be the path of a file, not {type(archive).__name__}")
    path, skipped = user_path(archive), Counter[str]()
    limits = ArchiveLimits(settings.max_file_bytes, settings.max_archive_bytes, settings.max_archive_ratio)
    pictures = 0
    with Upload(dataset) as upload:
        for member in open_archive(path, limits, skipped):
            if member.name in (*label_files(), *box_files()):
                _put_beside(upload.folder, member)
            else:
                upload.add(member.name, member.parts)
                pictures += 1
            progress(member.done)
        if not pictures:
            seen = ", ".join(f"{count:,} {reason}" for reason, count in skipped.items())
            raise InvalidInput(f"no pictures in the archive {str(path)!r}" + (f"; it holds {seen}" if seen else ""))
        _check_annotations(upload.folder, str(path))
        return _settled(upload, dataset, skipped)


def _put_beside(folder: Path, member: ArchiveMember) -> None:
    with (folder / member.name).open("wb") as file:
        file.writelines(member.parts)


def _check_annotations(folder: Path, archive: str) -> None:
    try:
        read_annotations(str(folder))
    except InvalidInput as error:
        raise InvalidInput(str(error).replace(str(folder), archive)) from None


def _settled(upload: Upload, dataset: Path, skipped: Counter[str]) -> UploadSource:
    repeated = upload.settle()
    if repeated:
        skipped["repeated names, of which the last one counts"] += repeated
    return UploadSource(dataset, upload.id, skipped)


def upload_files(files: Any, dataset: Path, settings: Settings, progress: ShareProgress) -> UploadSource:
    """Take note of files that stay where they are, and bring given contents to the blob store.

    Args:
        files: paths, pairs (name, bytes), and binary files with a ``name``. A name may have folders; of a file's, its
            last part is taken.
        dataset: the dataset's folder.
        settings: limits.
        progress: called with the share that is done; raises to stop.

    Raises:
        InvalidInput: one cannot be used, or there is none; the message says which.
        WorkspaceError: the blob store cannot be written.
    """
    if isinstance(files, str | bytes | os.PathLike) or not isinstance(files, Sequence):
        raise InvalidInput(
            f"files must be a list of paths, (name, bytes) pairs or binary files, not {type(files).__name__}"
        )
    if not files:
        raise InvalidInput("files holds no pictures")
    with Upload(dataset) as upload:
        for place, each in enumerate(files):
            _take(upload, each, f"files[{place}]", settings.max_file_bytes)
            progress(place / len(files))
        return _settled(upload, dataset, Counter())


def _take(upload: Upload, given: Any, where: str, max_bytes: int) -> None:
    """Add one of the given files to an upload."""
    name, content = _named(given, where)
    if content is None:
        upload.add_path(_existing(name, where))
    else:
        upload.add(name, _limited(content, f"{where} ({name!r})", max_bytes))


def _named(given: Any, where: str) -> tuple[str, Iterable[bytes] | None]:
    """Return (name, content) of one of the given files; (path, None) of one that stays where it is."""
    if isinstance(given, str | os.PathLike):
        return os.path.abspath(user_path(given)), None  # noqa: PTH100 - keeps links
    if isinstance(given, tuple | list) and len(given) == 2 and isinstance(given[0], str):
        name, content = given
        if isinstance(content, bytes | bytearray | memoryview):
            return _relative(name, where), (bytes(content),)
        if hasattr(content, "read"):
            return _relative(name, where), _parts(content, f"{where} ({name!r})")
    name = getattr(given, "name", None)
    if hasattr(given, "read") and isinstance(name, str):
        return _relative(name.replace("\\", "/").rpartition("/")[2], where), _parts(given, f"{where} ({name!r})")
    raise InvalidInput(
        f"{where} must be a path, a pair (name, bytes) or a binary file with a name, not {type(given).__name__}"
    )


def _relative(name: str, where: str) -> str:
    try:
        clean = clean_name(name)
    except InvalidInput as error:
        raise InvalidInput(f"{where}: {error}") from None
    if not clean:
        raise InvalidInput(f"{where}: a file needs a name, not {name!r}")
    return clean


def _existing(path: str, where: str) -> str:
    try:
        os.stat(path)  # noqa: PTH116 - names may be any bytes
    except (OSError, ValueError) as error:
        raise InvalidInput(f"{where}: cannot read {path!r}: {getattr(error, 'strerror', None) or error}") from None
    if os.path.isdir(path):  # noqa: PTH112
        raise InvalidInput(f"{where}: {path!r} is a folder; give it as path")
    return path


def _parts(file: BinaryIO, where: str) -> Iterator[bytes]:
    try:
        for data in iter(partial(file.read, _PART), b""):
            if not isinstance(data, bytes):
                raise InvalidInput(f"{where} must be a file of bytes; it was opened as text")
            yield data
    except (OSError, ValueError) as error:
        if isinstance(error, InvalidInput):
            raise
        raise InvalidInput(f"{where} cannot be read: {error}") from error


def _limited(parts: Iterable[bytes], where: str, max_bytes: int) -> Iterator[bytes]:
    size = 0
    for data in parts:
        size += len(data)
        if size > max_bytes:
            raise InvalidInput(f"{where} has more than {max_bytes:,} bytes (FRAMEDEX_MAX_FILE_BYTES)")
        yield data
