"""Removal of what a file says about its image: camera, owner, place and time, without changing a pixel.

Color profiles stay, because colours depend on them. The orientation of Exif stays, because viewers turn the image by
it; it is all that is left of Exif.
"""

import struct
import zlib
from collections.abc import Callable, Iterator, Mapping

from framedex.errors import CannotDecode

_EXIF_HEADER = b"Exif\0\0"
_ORIENTATION = 0x0112
_SHORT = 3
_JPEG_KEPT = {0xE0: b"JFIF", 0xE2: b"ICC_PROFILE", 0xEE: b"Adobe"}
"""The beginnings of the application segments that a JPEG keeps: what decoders need."""
_PNG_START = b"\x89PNG\r\n\x1a\n"
_PNG_DROPPED = frozenset({b"eXIf", b"tEXt", b"zTXt", b"iTXt", b"tIME", b"dSIG", b"caBX"})
_WEBP_KEPT = frozenset({b"VP8 ", b"VP8L", b"VP8X", b"ALPH", b"ANIM", b"ANMF", b"ICCP"})
_WEBP_EXIF, _WEBP_XMP = 0x08, 0x04  # flags in VP8X
_GIF_KEPT = (b"NETSCAPE2.0", b"ANIMEXTS1.0")
"""The application extensions that a GIF keeps: they repeat the animation."""
_TRUNCATED = "its parts cannot be told apart, so what they say cannot be removed"


def without_metadata(data: bytes) -> bytes:
    """Return an image file without Exif (except the orientation), GPS, XMP, IPTC, comments and embedded previews.

    Args:
        data: the content of a JPEG, PNG, WebP, GIF or BMP file.

    Raises:
        CannotDecode: the file is damaged, or of a format whose metadata cannot be removed without decoding it.
    """
    try:
        for matches, remove in _FORMATS.items():
            if matches(data):
                return remove(data)
    except (struct.error, IndexError):
        raise CannotDecode(_TRUNCATED) from None
    raise CannotDecode("what a file of its format says about the image cannot be removed without decoding it")


def _of_jpeg(data: bytes) -> bytes:
    parts, exif = [b"\xff\xd8"], b""
    for marker, start, end in _jpeg_segments(data):
        body = data[start + 4 : end]
        if marker == 0xE1 and body.startswith(_EXIF_HEADER):
            exif = exif or body[len(_EXIF_HEADER) :]
        if _is_kept(marker, body):
            parts.append(data[start:end])
    if (orientation := _orientation(exif)) > 1:
        body = _EXIF_HEADER + _minimal_exif(orientation)
        # After the JFIF segment, which is the first if there is one (JFIF 1.02).
        place = 2 if len(parts) > 1 and parts[1][:2] == b"\xff\xe0" else 1
        parts.insert(place, b"\xff\xe1" + struct.pack(">H", len(body) + 2) + body)
    return b"".join(parts)


def _is_kept(marker: int, body: bytes) -> bool:
    if 0xE0 <= marker <= 0xEF:
        return marker in _JPEG_KEPT and body.startswith(_JPEG_KEPT[marker])
    return marker != 0xFE  # a comment


def _jpeg_segments(data: bytes) -> Iterator[tuple[int, int, int]]:
    """Yield (marker, start, end) of each segment; the entropy-coded data belongs to its scan.

    What follows the end of the image, such as further images with metadata of their own, is left out.
    """
    place = 2
    while True:
        while data[place] == 0xFF and data[place + 1] == 0xFF:  # filling
            place += 1
        if data[place] != 0xFF:
            raise CannotDecode(_TRUNCATED)
        marker = data[place + 1]
        if marker == 0xD9:
            yield marker, place, place + 2
            return
        end = place + 2 + struct.unpack_from(">H", data, place + 2)[0]
        if marker == 0xDA:
            end = _end_of_scan(data, end)
        if end > len(data):
            raise CannotDecode(_TRUNCATED)
        yield marker, place, end
        if end == len(data):  # only the end marker is missing
            return
        place = end


def _end_of_scan(data: bytes, place: int) -> int:
    """Return the start of the next marker: 0xFF is followed by 0 within data, and restarts belong to it."""
    while (place := data.find(b"\xff", place)) >= 0 and place + 1 < len(data):
        following = data[place + 1]
        if following not in (0, 0xFF) and not 0xD0 <= following <= 0xD7:
            return place
        place += 1 if following == 0xFF else 2
    return len(data)


def _of_png(data: bytes) -> bytes:
    parts, place, orientation = [_PNG_START], len(_PNG_START), 1
    while True:
        length = struct.unpack_from(">I", data, place)[0]
        kind, end = data[place + 4 : place + 8], place + 12 + length
        if end > len(data):
            raise CannotDecode(_TRUNCATED)
        if kind == b"eXIf":
            orientation = _orientation(data[place + 8 : end - 4])
        if kind not in _PNG_DROPPED:
            parts.append(data[place:end])
        if kind == b"IEND":
            break
        place = end
    if orientation > 1:
        body = b"eXIf" + _minimal_exif(orientation)
        chunk = struct.pack(">I", len(body) - 4) + body + struct.pack(">I", zlib.crc32(body))
        parts.insert(2, chunk)  # after the header
    return b"".join(parts)


def _of_webp(data: bytes) -> bytes:
    chunks, place, orientation = list[tuple[bytes, bytes]](), 12, 1
    last = min(len(data), 8 + struct.unpack_from("<I", data, 4)[0])
    while place < last:
        kind, length = data[place : place + 4], struct.unpack_from("<I", data, place + 4)[0]
        body = data[place + 8 : place + 8 + length]
        if len(body) < length:
            raise CannotDecode(_TRUNCATED)
        if kind == b"EXIF":
            orientation = _orientation(body.removeprefix(_EXIF_HEADER))
        if kind in _WEBP_KEPT:
            chunks.append((kind, body))
        place += 8 + length + length % 2
    if orientation > 1:
        chunks.append((b"EXIF", _minimal_exif(orientation)))
    flags = _WEBP_EXIF if orientation > 1 else 0
    written = b"".join(
        kind + struct.pack("<I", len(body)) + _with_flags(kind, body, flags) + b"\0" * (len(body) % 2)
        for kind, body in chunks
    )
    return b"RIFF" + struct.pack("<I", len(written) + 4) + b"WEBP" + written


def _with_flags(kind: bytes, body: bytes, flags: int) -> bytes:
    if kind != b"VP8X":
        return body
    return bytes([body[0] & ~(_WEBP_EXIF | _WEBP_XMP) | flags]) + body[1:]


def _of_gif(data: bytes) -> bytes:
    place = 13 + _table_bytes(data[10])
    parts = [data[:place]]
    while data[place] != 0x3B:
        start = place
        if data[place] == 0x2C:  # an image
            place = _end_of_blocks(data, place + 10 + _table_bytes(data[place + 9]) + 1)
            parts.append(data[start:place])
        elif data[place] == 0x21:  # an extension
            label = data[place + 1]
            place = _end_of_blocks(data, place + 2)
            is_application = label == 0xFF and data[start + 3 : start + 14] in _GIF_KEPT
            if label == 0xF9 or is_application:
                parts.append(data[start:place])
        else:
            raise CannotDecode(_TRUNCATED)
    return b"".join([*parts, b";"])


def _table_bytes(flags: int) -> int:
    """Return the length of the colour table that a descriptor's flags announce."""
    return 3 << ((flags & 7) + 1) if flags & 0x80 else 0


def _end_of_blocks(data: bytes, place: int) -> int:
    while data[place]:
        place += 1 + data[place]
    return place + 1


def _orientation(exif: bytes) -> int:
    """Return the orientation, 1 to 8, of Exif data that begins with a TIFF header; 1 if it has none."""
    try:
        order = {b"II": "<", b"MM": ">"}[exif[:2]]
        place = struct.unpack_from(f"{order}I", exif, 4)[0]
        for number in range(struct.unpack_from(f"{order}H", exif, place)[0]):
            tag, kind, _count, value = struct.unpack_from(f"{order}HHIH", exif, place + 2 + 12 * number)
            if tag == _ORIENTATION and kind == _SHORT and 1 <= value <= 8:
                return int(value)
    except (KeyError, struct.error):
        pass
    return 1


def _minimal_exif(orientation: int) -> bytes:
    """Return Exif data that holds the orientation alone (Exif 2.3; TIFF 6.0)."""
    return struct.pack(">2sHIHHHIHHI", b"MM", 42, 8, 1, _ORIENTATION, _SHORT, 1, orientation, 0, 0)


_FORMATS: Mapping[Callable[[bytes], bool], Callable[[bytes], bytes]] = {
    lambda data: data[:3] == b"\xff\xd8\xff": _of_jpeg,
    lambda data: data[:8] == _PNG_START: _of_png,
    lambda data: data[:4] == b"RIFF" and data[8:12] == b"WEBP": _of_webp,
    lambda data: data[:6] in (b"GIF87a", b"GIF89a"): _of_gif,
    lambda data: data[:2] == b"BM": bytes,  # a bitmap has no place for metadata
}
"""The removal for each format, by a test of a file's beginning."""
