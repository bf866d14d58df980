"""Archives as streams of images and annotation files. Contents are not trusted; nothing is written here.

A file in an archive that cannot be taken is left out and counted: it is encrypted, broken, larger than the limit for a
file, or its name leads out of the archive. No name of a member is used as a path here. An archive is refused as a whole
if it cannot be opened, or if the whole could do harm: its contents, headers or directory exceed a limit. Of a tar that
ends early, or is broken at some place, the files before this place are taken; the problem says where it is.
"""

import errno
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

from framedex.annotations.formats import box_files, label_files
from framedex.core.allowed_folders import AllowedFolders, within
from framedex.core.counts import counted
from framedex.core.left_out import MASK_FILES, count_others, file_reason
from framedex.core.regular_files import open_binary
from framedex.core.skipped import Skipped
from framedex.core.suffixes import ARCHIVE_SUFFIXES, is_media
from framedex.errors import InvalidInput
from framedex.settings import user_path

_ANNOTATIONS = frozenset((".json", ".jsonl", ".xml", ".csv", ".parquet", ".yaml", ".yml", ".names", ".data", ".txt"))
_BLOCK = 2**18  # bytes; also larger than any valid header
_MAX_HEADERS = 1000  # global headers of a tar, which tarfile keeps in memory
_SMALL = 64 * 2**20  # bytes; the ratio of smaller contents is not checked
_MAX_DIRECTORY = 256 * 2**20  # bytes of a ZIP's directory: about two million members, 0.6 KB each in memory
_ENCRYPTED = 0x1
_UTF8 = 0x800
_DAMAGE = (None, errno.EINVAL, errno.EOVERFLOW)  # error numbers of damaged contents; others are those of the disk
_DRIVE = re.compile(r"[A-Za-z]:(/|$)")
_BROKEN = (
    zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError, EOFError, OSError, struct.error, ValueError,
    OverflowError, IndexError, NotImplementedError, RuntimeError,
)  # fmt: skip
"""The exceptions of the readers for archives that are broken, or compressed by an unknown method."""
ENCRYPTED = "encrypted files; unpack them with their password first"
TOO_LARGE = "files above a limit"
BROKEN = "broken files"
LEADS_OUT = "names that lead out of the archive"
END_MISSING = "archives that cannot be read to their end"
"""The reasons under which files in an archive that cannot be taken are counted, and what a broken tar lacks."""


class BrokenMember(Exception):
    """The content of a member cannot be read; it has been counted."""


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
        parts: the content in blocks, to be read before the next member is requested; :class:`BrokenMember` is raised if
            it is broken or too large.
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
    return path if path.name.lower().endswith(ARCHIVE_SUFFIXES) and not os.path.isdir(path) else None  # noqa: PTH112 - a name may be too long


def open_archive(
    path: Path, limits: ArchiveLimits, skipped: Skipped, allowed: AllowedFolders | None = None
) -> Iterator[ArchiveMember]:
    """Yield the images of an archive, and files that may be annotations, without writing to the disk.

    Links, devices, hidden files, files in system folders, other files, and files that cannot be taken are skipped and
    counted. If several members have the same name, all are yielded.

    Args:
        path: a ``.zip``, ``.tar``, ``.tar.gz`` or ``.tgz`` file.
        limits: checked while reading, regardless of the headers.
        skipped: the numbers of skipped members by reason, updated while reading.
        allowed: the folders from which files may be read; None for any.

    Raises:
        InvalidInput: the file is not such an archive, its directory or its first header is broken, or its headers or
            all its contents exceed a limit.
        Forbidden: the file is in no allowed folder.
    """
    name = path.name.lower()
    if not name.endswith(ARCHIVE_SUFFIXES):
        raise InvalidInput(f"an archive is a {', '.join(ARCHIVE_SUFFIXES)} file, not {str(path)!r}")
    if allowed is not None:
        allowed.check(path)
    try:
        with within(allowed):
            file = open_binary(path)
    except OSError as error:
        raise InvalidInput(f"cannot read the archive {str(path)!r}: {error.strerror}") from None
    with file:
        meter = _Meter(str(path), limits, os.fstat(file.fileno()).st_size, skipped)
        with _as_invalid_input(str(path)):
            if name.endswith(".zip"):
                yield from _zip_members(file, meter)
            else:
                yield from _tar_members(file, meter, packed=name.endswith("gz"))


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


def _is_damage(error: Exception) -> bool:
    """Return whether an exception of a reader says that contents are broken, and not that a limit is exceeded."""
    if isinstance(error, OSError):
        return error.errno in _DAMAGE
    return not isinstance(error, InvalidInput | RecursionError)


class _Meter:
    """A counter of the bytes read from an archive, which raises when a limit is exceeded.

    Attributes:
        size: of the archive, in bytes.
        skipped: the numbers of skipped members by reason.
    """

    def __init__(self, archive: str, limits: ArchiveLimits, size: int, skipped: Skipped) -> None:
        self._archive, self._limits, self.size, self.skipped = archive, limits, max(size, 1), skipped
        self._total = 0

    def parts(self, name: str, read: Callable[[int], bytes]) -> Iterator[bytes]:
        """Yield the content of a member in blocks.

        Raises:
            BrokenMember: the member cannot be read, or exceeds the limit for one.
            InvalidInput: all members so far exceed the limits.
        """
        size = 0
        while True:
            # The consumer iterates over this generator while open_archive is suspended, so errors are converted here.
            with _as_invalid_input(self._archive), self.counting(name):
                if not (data := read(_BLOCK)):
                    return
                size, self._total = size + len(data), self._total + len(data)
                self.check(self._total)
                if self.is_too_large(name, size):
                    raise BrokenMember
            yield data

    @contextmanager
    def counting(self, name: str) -> Iterator[None]:
        """Count a member whose content turns out broken.

        Raises:
            BrokenMember: it is broken.
        """
        try:
            yield
        except _BROKEN as error:
            if not _is_damage(error):
                raise
            self.skipped.note(BROKEN, f"{name}: {str(error) or type(error).__name__}")
            raise BrokenMember from None

    def is_too_large(self, name: str, size: int) -> bool:
        """Return whether a member exceeds the limit for media, and count it; annotations may be larger."""
        is_larger = size > self._limits.member_bytes and is_media(name)
        if is_larger:
            limit = f"more than {self._limits.member_bytes:,} bytes (FRAMEDEX_MAX_FILE_BYTES)"
            self.skipped.note(TOO_LARGE, f"{name}: {limit}")
        return is_larger

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


def _clean(name: str, skipped: Skipped) -> str | None:
    """Return the normalised name of a member; None for one that leads out of the archive, which is counted."""
    try:
        return clean_name(name)
    except InvalidInput:
        skipped.note(LEADS_OUT, name)
        return None


def _is_readable(name: str, skipped: Skipped) -> bool:
    """Return whether a member is an image, a video or may be annotations; else count it as skipped."""
    if name in (*label_files(), *box_files()):
        return True
    if is_mask(name):
        return True
    if (reason := file_reason(name)) is not None:
        skipped.note(reason, name)
        return False
    if is_media(name) or may_be_annotations(name):
        return True
    count_others(skipped, [name])
    return False


def is_mask(name: str) -> bool:
    """Return whether a member is an image of segmentation masks, which is a file of annotations."""
    return file_reason(name) == MASK_FILES and name.lower().endswith(".png")


def may_be_annotations(name: str) -> bool:
    """Return whether a member may be a file of a layout, by its suffix."""
    return posixpath.splitext(name)[1].lower() in _ANNOTATIONS


def _zip_members(file: BinaryIO, meter: _Meter) -> Iterator[ArchiveMember]:
    _check_directory(file, meter.size)
    with zipfile.ZipFile(file) as archive:
        infos = archive.infolist()
        # All entries are checked before any member is read.
        selected = bytearray(_is_selected(info, meter) for info in infos)
        for number, info in enumerate(infos):
            if not selected[number]:
                continue
            name = clean_name(_zip_name(info))
            with suppress(BrokenMember):
                with meter.counting(name):
                    content = archive.open(info)
                with content:
                    yield ArchiveMember(name, meter.parts(name, content.read), number / len(infos))


def _is_selected(info: zipfile.ZipInfo, meter: _Meter) -> bool:
    if not _is_file(info, meter.skipped) or (name := _clean(_zip_name(info), meter.skipped)) is None:
        return False
    if not _is_readable(name, meter.skipped):
        return False
    if info.flag_bits & _ENCRYPTED:
        meter.skipped.note(ENCRYPTED, name)
        return False
    return not meter.is_too_large(name, info.file_size)


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
    """Return the name of a member.

    A name without the UTF-8 flag is decoded as UTF-8 if possible, because many programs do not set the flag; otherwise
    as code page 437, as the format specifies.
    """
    name = info.orig_filename  # ``filename`` ends at the first null character
    if not info.flag_bits & _UTF8:
        with suppress(UnicodeError):
            name = name.encode("cp437").decode("utf-8")
    return name


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

    Skipping compressed data means decompressing it; these bytes count, too. After an error nothing more is read,
    because a decompressor could go on at a wrong place.

    Attributes:
        fault: the error that a read has raised; None before.
    """

    def __init__(self, file: BinaryIO, meter: _Meter, *, packed: bool) -> None:
        self._file, self._meter, self._packed = file, meter, packed
        self.fault: Exception | None = None

    def tell(self) -> int:
        return self._file.tell()

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= _BLOCK:
            raise InvalidInput(f"it has a header of more than {_BLOCK:,} bytes")
        if self.fault is not None:
            raise self.fault
        try:
            data = self._file.read(size)
        except _BROKEN as error:
            self.fault = error
            raise
        if self._packed:
            self._meter.check(self._file.tell())
        return data

    def seek(self, target: int) -> int:
        if not self._packed or target < self.tell():
            return self._file.seek(target)
        while (gap := target - self.tell()) > 0 and self.read(min(gap, _BLOCK)):
            pass
        return self.tell()


def _tar_members(file: BinaryIO, meter: _Meter, *, packed: bool) -> Iterator[ArchiveMember]:
    with gzip.GzipFile(fileobj=file) if packed else nullcontext(file) as content:
        tape = _Tape(content, meter, packed=packed)  # type: ignore[arg-type] # GzipFile has the methods that are used
        yield from _taped_members(tape, meter, lambda: file.tell() / meter.size)


def _taped_members(tape: _Tape, meter: _Meter, done: Callable[[], float]) -> Iterator[ArchiveMember]:
    opened: Any = tarfile.TarFile(fileobj=tape, encoding="utf-8", errors="surrogateescape")  # type: ignore[arg-type] # has the methods that it uses
    last: str | None = None  # the name of the last member
    with closing(opened) as archive:
        try:
            while (info := archive.next()) is not None:
                archive.members.clear()  # tarfile keeps all members otherwise
                if len(archive.pax_headers) > _MAX_HEADERS:
                    raise InvalidInput(f"it has more than {_MAX_HEADERS:,} global headers")
                last = info.name
                if not _is_tar_file(info, meter.skipped) or (name := _clean(last, meter.skipped)) is None:
                    continue
                if _is_readable(name, meter.skipped) and not meter.is_too_large(name, info.size):
                    with archive.extractfile(info) as member:
                        yield ArchiveMember(name, meter.parts(name, member.read), done())
            _check_end(tape, archive.offset)
        except _BROKEN as error:
            if last is None or not _is_damage(error):
                raise
            _note_end(meter.skipped, last, error)


def _note_end(skipped: Skipped, last: str, error: Exception) -> None:
    """Count a tar that cannot be read beyond a member, and say what that means for the files before and behind it."""
    others = "files that may follow are lost"
    if isinstance(error, zlib.error | gzip.BadGzipFile):
        others += ", and files before it may be changed, because no checksum proves them"
    skipped.note(END_MISSING, f"behind or within {last}: {str(error) or type(error).__name__}; {others}")


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

    Raises:
        tarfile.ReadError: it does not.
    """
    tape.seek(offset)
    block = tape.read(tarfile.BLOCKSIZE)
    if len(block) < tarfile.BLOCKSIZE or block.strip(b"\0"):
        raise tarfile.ReadError("a header is broken, or the end is missing")
    while tape.read(_BLOCK):
        pass
