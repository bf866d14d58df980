"""Container formats of video files, and the reasons why a file cannot be opened as a video."""

import struct
from collections.abc import Iterator
from typing import BinaryIO

from framedex.errors import CannotDecode

_RIFF, _EBML = b"RIFF", b"\x1a\x45\xdf\xa3"
_ASF = bytes.fromhex("3026b2758e66cf11")
_ASF_FILE = bytes.fromhex("a1dcab8c47a9cf118ee400c00c205365")  # its file properties
_ASF_BROADCAST = 1
_SEGMENT = b"\x18\x53\x80\x67"
_UNKNOWN_RIFF = (0, 0xFFFFFFFF)
_BOX = 8
_LARGE_BOX = 16
_MAX_BOXES = 10_000
HEAD = 1024
"""The number of bytes from which a container is recognised."""
_FIRST_BOXES = frozenset(
    (b"moov", b"wide", b"free", b"skip", b"pnot", b"udta", b"ediw", b"junk", b"pict", b"prfl", b"uuid", b"styp",
     b"sidx", b"moof")
)  # fmt: skip
_FIRST_BOX_BYTES = 2**27  # the first bytes of images are larger sizes
_PACKET, _TIMED_PACKET, _PACKETS = 188, 192, 3  # of an MPEG transport stream; with a time before each, in camcorders


def container_of(head: bytes) -> str | None:
    """Return the container format of a file from its first :data:`HEAD` bytes; None if unknown.

    FFmpeg takes a file with the beginning of an image for one frame, and reads the whole file into memory. Such a file
    has no container here.
    """
    if head[4:8] == b"ftyp":
        return "mov" if head[8:12] == b"qt  " else "mp4"
    if head[4:8] == b"mdat" or (head[4:8] in _FIRST_BOXES and int.from_bytes(head[:4], "big") < _FIRST_BOX_BYTES):
        return "mov"
    if head[:4] == _RIFF and head[8:12] in (b"AVI ", b"AVIX"):
        return "avi"
    if head[:4] == _EBML:
        return "webm" if b"webm" in head[:64] else "mkv"
    if head[:8] == _ASF:
        return "wmv"
    if head[:3] == b"FLV":
        return "flv"
    return _stream_of(head)


def _stream_of(head: bytes) -> str | None:
    """Return the format of a stream, which some programs write to files with the suffix of a container."""
    if head[:4] == b"OggS":
        return "ogg"
    if head[: _PACKET * _PACKETS : _PACKET] == b"G" * _PACKETS and head[:3] != b"GIF":
        return "ts"
    if head[4 : _TIMED_PACKET * _PACKETS : _TIMED_PACKET] == b"G" * _PACKETS:
        return "ts"
    if head[:4] == b"\0\0\1\xba":  # a pack header, ISO/IEC 13818-1
        return "mpg"
    # Start codes of streams without a container: ISO/IEC 13818-2, 14496-2 and 14496-10.
    return "es" if head[:4] == b"\0\0\0\1" or (head[:3] == b"\0\0\1" and head[3:4] >= b"\xb0") else None


def codec_name(fourcc: int) -> str:
    """Return a FourCC as lower-case text; empty if it is not a valid code."""
    text = (fourcc & 0xFFFFFFFF).to_bytes(4, "little").rstrip(b"\0 ")
    return text.decode("ascii").lower() if text.isalnum() else ""


def not_opened(file: BinaryIO, container: str | None) -> CannotDecode:
    """Return the reason why a file could not be opened as a video; it is damage only if nothing else is possible."""
    if container is None:
        return CannotDecode("not a video of a supported format, or its beginning is damaged", "not_supported")
    if container in ("mp4", "mov") and not _has_box(file, b"moov"):
        return CannotDecode(f"{container} without its index (moov): truncated, or never finished")
    return CannotDecode(
        f"{container} without a video stream that can be decoded: audio only, damaged, or an unknown codec",
        "not_supported",
    )


def is_short(file: BinaryIO, container: str) -> bool:
    """Return whether a file ends before the end that its header names; False if that names none."""
    end = file.seek(0, 2)
    file.seek(0)
    head = file.read(HEAD)
    match container:
        case "mp4" | "mov":
            return any(begin + size > end for begin, _, size in _boxes(file))
        case "avi":
            size = int.from_bytes(head[4:8], "little")
            return size not in _UNKNOWN_RIFF and _BOX + size > end + 1  # some writers leave out the last byte
        case "mkv" | "webm":
            return _matroska_end(head) > end
        case "wmv":
            place = head.find(_ASF_FILE)
            size, flags = (int.from_bytes(head[place + at : place + at + 8], "little") for at in (40, 88))
            return place >= 0 and not flags & _ASF_BROADCAST and size > end
        case _:
            return False


def _matroska_end(head: bytes) -> int:
    """Return where the segment of a Matroska file ends (RFC 9559, section 4.5); 0 if that is unknown."""
    body, size = _element(head, 0)
    if not head.startswith(_SEGMENT, body + size):
        return 0
    body, size = _element(head, body + size)
    return body + size if size >= 0 else 0


def _element(head: bytes, place: int) -> tuple[int, int]:
    """Return where the content of an EBML element with an id of four bytes begins, and its size; -1 if unknown."""
    first = head[place + 4] if place + 4 < len(head) else 0
    width = 9 - first.bit_length()
    value = int.from_bytes(head[place + 4 : place + 4 + width], "big") & ((1 << 7 * width) - 1)
    return place + 4 + width, -1 if value == (1 << 7 * width) - 1 else value


def _has_box(file: BinaryIO, box_type: bytes) -> bool:
    """Return whether an ISO base media file has a whole box of a type at its top level."""
    end = file.seek(0, 2)
    return any(kind == box_type and begin + size <= end for begin, kind, size in _boxes(file))


def _boxes(file: BinaryIO) -> Iterator[tuple[int, bytes, int]]:
    """Yield the place, type and size of the boxes at the top level of a file (ISO/IEC 14496-12); 0: to its end."""
    position = 0
    for _ in range(_MAX_BOXES):
        file.seek(position)
        head = file.read(_LARGE_BOX)
        if len(head) < _BOX:
            return
        size, kind = struct.unpack(">I4s", head[:_BOX])
        if size == 1 and len(head) == _LARGE_BOX:
            size = struct.unpack(">Q", head[_BOX:])[0]
        yield position, kind, size
        if size < _BOX:
            return
        position += size
