"""Archives as streams of images and annotation files. Contents are not trusted; nothing is written here."""

import gzip
import lzma
import os
import posixpath
import re
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from framedex.annotations.class_folders import CLASS_LISTS
from framedex.annotations.formats import box_files, label_files
from framedex.annotations.mask_images import LABEL_MAP
from framedex.annotations.parts import part_of
from framedex.core.allowed_folders import AllowedFolders, within
from framedex.core.counts import counted
from framedex.core.left_out import MASK_FILES, count_others, file_reason
from framedex.core.regular_files import open_binary
from framedex.core.skipped import Skipped
from framedex.core.suffixes import is_media
from framedex.errors import InvalidInput
from framedex.settings import user_path

_ANNOTATIONS = frozenset((".json", ".jsonl", ".xml", ".csv", ".parquet", ".yaml", ".yml", ".names", ".data"))
SUFFIXES = (".zip", ".tar", ".tar.gz", ".tgz")
_BLOCK = 2**18  # bytes; also larger than any valid header
_MAX_HEADERS = 1000  # global headers of a tar, which tarfile keeps in memory
_SMALL = 64 * 2**20  # bytes; the ratio of smaller contents is not checked
_MAX_DIRECTORY = 256 * 2**20  # bytes of a ZIP's directory: about two million members, 0.6 KB each in memory
_ENCRYPTED = 0x1
_UTF8 = 0x800
_DRIVE = re.compile(r"[A-Za-z]:(/|$)")
_BROKEN = (
    zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError, EOFError, OSError, struct.error, ValueError,
    OverflowError, IndexError, NotImplementedError, RuntimeError,
)  # fmt: skip
"""The exceptions of the readers for archives that are broken, or compressed by an unknown method."""


@dataclass(frozen=True)
class ArchiveLimits:
    """Limits for the contents of an archive.

    Attributes:
        member_bytes: the maximum size of one member.
        total_bytes: the maximum size of all members.
        ratio: the maximum ratio of the size of all members to the size of the archive.
    """

    member_bytes: int
    total_bytes: int
    ratio: int


@dataclass(frozen=True)
class ArchiveMember:
    """An image, or a file that may be annotations.

    Attributes:
        name: a normalised relative path with slashes; undecodable bytes are surrogate escapes.
        parts: the content in blocks, to be read before the next member is requested.
        done: the fraction of the archive that was read before this member, 0 to 1.
    """

    name: str
    parts: Iterator[bytes]
    done: float


def archive_path(source: Any) -> Path | None:
    """Return the path of an archive that a source is by its suffix; None for another source."""
    if not isinstance(source, str | os.PathLike) or "://" in os.fspath(source):
        return None
    path = user_path(source)
    return path if path.name.lower().endswith(SUFFIXES) and not os.path.isdir(path) else None  # noqa: PTH112 - a name may be too long


def open_archive(
    path: Path, limits: ArchiveLimits, skipped: Skipped, allowed: AllowedFolders | None = None
) -> Iterator[ArchiveMember]:
    """Yield the images of an archive, and files that may be annotations, without writing to the disk.

    Links, devices, hidden files, files in system folders and other files are skipped; files that may be annotations are
    counted with the others, but for those in the root that are known by their names. If several members have the same
    name, all are yielded.

    Args:
        path: a ``.zip``, ``.tar``, ``.tar.gz`` or ``.tgz`` file.
        limits: checked while reading, regardless of the headers.
        skipped: the numbers of skipped members by reason, updated while reading.
        allowed: the folders from which files may be read; None for any.

    Raises:
        InvalidInput: the file is not such an archive, it is broken or encrypted, a member's path leads out of the
            archive, or the contents exceed the limits.
        Forbidden: the file is in no allowed folder.
    """
    name = path.name.lower()
    if not name.endswith(SUFFIXES):
        raise InvalidInput(f"an archive is a {', '.join(SUFFIXES)} file, not {str(path)!r}")
    if allowed is not None:
        allowed.check(path)
    try:
        with within(allowed):
            file = open_binary(path)
    except OSError as error:
        raise InvalidInput(f"cannot read the archive {str(path)!r}: {error.strerror}") from None
    with file:
        meter = _Meter(str(path), limits, os.fstat(file.fileno()).st_size)
        reader = _zip_members if name.endswith(".zip") else _tar_members
        with _as_invalid_input(str(path)):
            yield from reader(file, meter, skipped, packed=name.endswith("gz"))


@contextmanager
def _as_invalid_input(archive: str) -> Iterator[None]:
    """Convert the exceptions of the readers into an error that names the archive."""
    try:
        yield
    except InvalidInput as error:
        raise InvalidInput(f"cannot take the archive {archive!r}: {error}") from None
    except RecursionError:
        raise InvalidInput(f"cannot read the archive {archive!r}: its headers are nested too deep") from None
    except _BROKEN as error:
        raise InvalidInput(f"cannot read the archive {archive!r}: {str(error) or type(error).__name__}") from None


class _Meter:
    """A counter of the bytes read from an archive, which raises when a limit is exceeded."""

    def __init__(self, archive: str, limits: ArchiveLimits, size: int) -> None:
        self._archive, self._limits, self.size = archive, limits, max(size, 1)
        self._total = 0

    def parts(self, name: str, read: Callable[[int], bytes]) -> Iterator[bytes]:
        """Yield the content of a member in blocks.

        Raises:
            InvalidInput: the member, or all members so far, exceed the limits.
        """
        size = 0
        while True:
            # The consumer iterates over this generator while open_archive is suspended, so errors are converted here.
            with _as_invalid_input(self._archive):
                if not (data := read(_BLOCK)):
                    return
                size, self._total = size + len(data), self._total + len(data)
                self.check_member(name, size)
                self.check(self._total)
            yield data

    def check_member(self, name: str, size: int) -> None:
        """Check the size of one member against the limit for media; annotations of all images may be larger."""
        if size > self._limits.member_bytes and is_media(name):
            raise InvalidInput(
                f"{name!r} in it has more than {self._limits.member_bytes:,} bytes (FRAMEDEX_MAX_FILE_BYTES)"
            )

    def check(self, total: int) -> None:
        """Check the size of all members so far against the limits."""
        if total > self._limits.total_bytes:
            raise InvalidInput(
                f"its contents have more than {self._limits.total_bytes:,} bytes (FRAMEDEX_MAX_ARCHIVE_BYTES)"
            )
        if total > max(_SMALL, self.size * self._limits.ratio):
            raise InvalidInput(
                f"its contents are more than {self._limits.ratio} times larger than itself: possibly a decompression "
                "bomb (FRAMEDEX_MAX_ARCHIVE_RATIO raises the limit)"
            )


def clean_name(name: str) -> str:
    r"""Return a normalised relative path: without empty and ``.`` parts, with slashes for backslashes.

    Raises:
        InvalidInput: the name is an absolute path, has ``..`` parts, or has a null character.
    """
    text = name.replace("\\", "/")
    parts = [part for part in text.split("/") if part not in ("", ".")]
    if text.startswith("/") or _DRIVE.match(text) or ".." in parts or "\0" in text:
        raise InvalidInput(f"the name {name!r} is no path within a folder")
    return "/".join(parts)


def _is_readable(name: str, skipped: Skipped) -> bool:
    """Return whether a member is an image, a video or may be annotations; count it as skipped if it is no image."""
    if name in (*label_files(), *box_files()):
        return True
    if (reason := file_reason(name)) is not None:
        if is_mask(name):
            return True
        skipped.note(reason, name)
    elif is_media(name):
        return True
    else:
        count_others(skipped, [name])
        return may_be_annotations(name)
    return False


def is_mask(name: str) -> bool:
    """Return whether a member is an image of segmentation masks, which is a file of annotations."""
    return file_reason(name) == MASK_FILES and name.lower().endswith(".png")


def may_be_annotations(name: str) -> bool:
    """Return whether a member may be a file of a layout: by its suffix; a text in a folder, or a list of the root."""
    home, _, last = name.rpartition("/")
    stem, suffix = posixpath.splitext(last)
    return suffix.lower() in _ANNOTATIONS or (
        suffix.lower() == ".txt" and bool(home or last in (*CLASS_LISTS, LABEL_MAP) or part_of(stem))
    )


def _zip_members(file: BinaryIO, meter: _Meter, skipped: Skipped, *, packed: bool) -> Iterator[ArchiveMember]:
    del packed
    _check_directory(file, meter.size)
    with zipfile.ZipFile(file) as archive:
        infos = archive.infolist()
        # All entries are checked before any member is read.
        selected = bytearray(_is_selected(info, meter, skipped) for info in infos)
        for number, info in enumerate(infos):
            if selected[number]:
                name = _zip_name(info)
                with archive.open(info) as content:
                    yield ArchiveMember(name, meter.parts(name, content.read), number / len(infos))


def _is_selected(info: zipfile.ZipInfo, meter: _Meter, skipped: Skipped) -> bool:
    name = _zip_name(info)
    if not _is_file(info, skipped) or not _is_readable(name, skipped):
        return False
    if info.flag_bits & _ENCRYPTED:
        raise InvalidInput(f"{name!r} in it is encrypted; unpack it with its password first")
    meter.check_member(name, info.file_size)
    return True


def _check_directory(file: BinaryIO, size: int) -> None:
    """Check the size of a ZIP's directory before it is read into memory.

    The end record has the size in four bytes. If all bits are set, the ZIP64 record before it has the size in eight
    bytes (APPNOTE.TXT 6.3.10, sections 4.3.14 to 4.3.16).
    """
    file.seek(max(0, size - 22 - 65535 - 20))
    tail = file.read()
    at = tail.rfind(b"PK\5\6")
    if at < 0 or len(tail) < at + 22:
        raise InvalidInput("it is no ZIP, or its end is missing")
    (directory,) = struct.unpack_from("<I", tail, at + 12)
    if at >= 20 and tail[at - 20 : at - 16] == b"PK\6\7":
        (where,) = struct.unpack_from("<Q", tail, at - 12)
        file.seek(min(where, size))
        record = file.read(56)
        if len(record) < 56 or not record.startswith(b"PK\6\6"):
            raise InvalidInput("its end is broken")
        (directory,) = struct.unpack_from("<Q", record, 40)
    if directory > _MAX_DIRECTORY:
        raise InvalidInput(
            f"its directory has {counted(directory, 'bytes')}, more than {_MAX_DIRECTORY:,}; split it into several"
        )
    file.seek(0)


def _zip_name(info: zipfile.ZipInfo) -> str:
    """Return the normalised name of a member.

    A name without the UTF-8 flag is decoded as UTF-8 if possible, because many programs do not set the flag; otherwise
    as code page 437, as the format specifies.
    """
    name = info.orig_filename  # ``filename`` ends at the first null character
    if not info.flag_bits & _UTF8:
        with suppress(UnicodeError):
            name = name.encode("cp437").decode("utf-8")
    return clean_name(name)


def _is_file(info: zipfile.ZipInfo, skipped: Skipped) -> bool:
    kind = stat.S_IFMT(info.external_attr >> 16)
    if info.is_dir() or stat.S_ISDIR(kind):
        return False
    if kind not in (0, stat.S_IFREG):
        skipped.note("links" if stat.S_ISLNK(kind) else "devices and pipes", info.filename)
        return False
    return True


class _Tape:
    """The file object of a tar, compressed or not, for tarfile. It bounds the size of headers and counts the bytes.

    Skipping compressed data means decompressing it; these bytes count, too.
    """

    def __init__(self, file: BinaryIO, meter: _Meter, *, packed: bool) -> None:
        self._file, self._meter, self._packed = file, meter, packed

    def tell(self) -> int:
        return self._file.tell()

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= _BLOCK:
            raise InvalidInput(f"it has a header of more than {_BLOCK:,} bytes")
        data = self._file.read(size)
        if self._packed:
            self._meter.check(self._file.tell())
        return data

    def seek(self, target: int) -> int:
        if not self._packed or target < self.tell():
            return self._file.seek(target)
        while (gap := target - self.tell()) > 0 and self.read(min(gap, _BLOCK)):
            pass
        return self.tell()


def _tar_members(file: BinaryIO, meter: _Meter, skipped: Skipped, *, packed: bool) -> Iterator[ArchiveMember]:
    with gzip.GzipFile(fileobj=file) if packed else nullcontext(file) as content:
        tape = _Tape(content, meter, packed=packed)  # type: ignore[arg-type] # GzipFile has the methods that are used
        yield from _taped_members(tape, meter, skipped, lambda: file.tell() / meter.size)


def _taped_members(tape: _Tape, meter: _Meter, skipped: Skipped, done: Callable[[], float]) -> Iterator[ArchiveMember]:
    opened: Any = tarfile.TarFile(fileobj=tape, encoding="utf-8", errors="surrogateescape")  # type: ignore[arg-type] # has the methods that it uses
    with closing(opened) as archive:
        while (info := archive.next()) is not None:
            archive.members.clear()  # tarfile keeps all members otherwise
            if len(archive.pax_headers) > _MAX_HEADERS:
                raise InvalidInput(f"it has more than {_MAX_HEADERS:,} global headers")
            name = clean_name(info.name)
            if not _is_tar_file(info, skipped) or not _is_readable(name, skipped):
                continue
            meter.check_member(name, info.size)
            with archive.extractfile(info) as member:
                yield ArchiveMember(name, meter.parts(name, member.read), done())
        _check_end(tape, archive.offset)


def _is_tar_file(info: tarfile.TarInfo, skipped: Skipped) -> bool:
    if info.issym() or info.islnk():
        skipped.note("links", info.name)
    elif info.isdev():
        skipped.note("devices and pipes", info.name)
    elif not info.isreg() and not info.isdir():
        skipped.note("other files", info.name)
    return info.isreg()


def _check_end(tape: _Tape, offset: int) -> None:
    """Check that a tar ends with a block of zeros; tarfile accepts anything as the end.

    The rest is read, too, because the checksum of a compressed tar comes last.
    """
    tape.seek(offset)
    block = tape.read(tarfile.BLOCKSIZE)
    if len(block) < tarfile.BLOCKSIZE or block.strip(b"\0"):
        raise InvalidInput("it is broken, or its end is missing")
    while tape.read(_BLOCK):
        pass
