"""The parts of a JPEG that are read without decoding it (ITU-T T.81 for the markers, Exif 2.3 for orientation).

Decoders take what the standard allows: megabytes of fill bytes, millions of empty segments, hundreds of scans of the
whole picture. That costs minutes for a file that somebody made for it, so there are limits far above what cameras and
programs write.
"""

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

from framedex.errors import CannotDecode

_START_OF_FRAME = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_PROGRESSIVE = frozenset((0xC2, 0xC6, 0xCA, 0xCE))
_WITHOUT_LENGTH = frozenset((0x01, *range(0xD0, 0xD9)))
_SCAN, _END = 0xDA, 0xD9
_IGNORED = frozenset((0xFE, *range(0xE1, 0xEE), 0xEF))  # comments, and data of applications but JFIF's and Adobe's
_EXIF, _XMP = b"Exif\0\0", b"http://ns.adobe.com/xap/1.0/\0"
_FILL = re.compile(b"\xff+")
_MARKER = re.compile(rb"\xff[^\x00\xd0-\xd7\xff]")  # in coded data
_MOST_SEGMENTS, _MOST_FILL = 100_000, 2**20  # segments and fill bytes before the first scan
_MOST_SCANS, _MOST_SCANNED = 64, 4 * 10**9  # of a picture, and pixels of all of them; programs make 10 scans or so


@dataclass(frozen=True)
class Header:
    """A JPEG's frame header.

    Attributes:
        width: stored width in pixels, before orientation is applied.
        height: stored height in pixels.
        components: colour components; 4 means CMYK or YCCK.
        orientation: Exif orientation, 1 to 8; 1 is upright.
        progressive: whether each scan adds detail to all of the picture.
        end: place of the first byte behind the frame header.
    """

    width: int
    height: int
    components: int
    orientation: int
    progressive: bool = field(default=False, compare=False)
    end: int = field(default=0, compare=False)

    @property
    def displayed_size(self) -> tuple[int, int]:
        """(width, height) as shown, after orientation."""
        return (self.height, self.width) if self.orientation >= 5 else (self.width, self.height)


def read_header(data: bytes) -> Header | None:
    """Return the frame header of a JPEG; None if *data* is no JPEG or ends before its frame header.

    Raises:
        CannotDecode: more comes before the frame header than any program writes.
    """
    if data[:2] != b"\xff\xd8":
        return None
    orientation = 1
    for marker, at, end in _segments(data, 2):
        if marker in _START_OF_FRAME:
            if at + 10 > len(data):
                return None
            height, width, components = struct.unpack_from(">HHB", data, at + 5)
            return Header(width, height, components, orientation, marker in _PROGRESSIVE, end)
        if marker in (_SCAN, _END):
            return None
        if marker == 0xE1 and data[at + 4 : at + 10] == _EXIF:
            orientation = _orientation(data[at + 10 : end])
    return None


@dataclass
class _Passed:
    """The parts of a header that were passed over so far.

    Attributes:
        segments: with damaged places.
        filled: fill bytes.
    """

    segments: int = 0
    filled: int = 0

    def add(self, *, segments: int = 0, filled: int = 0) -> None:
        """Count more of them.

        Raises:
            CannotDecode: these are more than any program writes.
        """
        self.segments, self.filled = self.segments + segments, self.filled + filled
        if self.filled > _MOST_FILL:
            raise CannotDecode(f"more than {_MOST_FILL:,} fill bytes in its header")
        if self.segments > _MOST_SEGMENTS:
            raise CannotDecode(f"more than {_MOST_SEGMENTS:,} segments in its header")


def _segments(data: bytes, at: int, passed: _Passed | None = None) -> Iterator[tuple[int, int, int]]:
    """Yield (marker, place of its 0xFF, place behind its segment) from a place on, until there is no marker.

    Raises:
        CannotDecode: there are more segments or fill bytes than any program writes.
    """
    passed = passed or _Passed()
    while at + 4 <= len(data) and data[at] == 0xFF:
        marker = data[at + 1]
        if marker == 0xFF:
            fill = _FILL.match(data, at)
            assert fill is not None, "there are two"
            passed.add(filled=fill.end() - at - 1)
            at = fill.end() - 1
            continue
        end = at + 2 if marker in _WITHOUT_LENGTH else at + 2 + int.from_bytes(data[at + 2 : at + 4], "big")
        passed.add(segments=1)
        yield marker, at, end
        at = end


def check_scans(data: bytes, header: Header) -> None:
    """Check that a picture does not consist of more scans than any program writes: each takes the time of a picture.

    Raises:
        CannotDecode: it does, or its header does not end.
    """
    start = next((at for marker, at, _ in _segments(data, header.end) if marker == _SCAN), None)
    if start is None or (not header.progressive and data[start + 4 : start + 5] == bytes([header.components])):
        return  # all components in one scan
    most = min(_MOST_SCANS, max(1, _MOST_SCANNED // max(1, header.width * header.height)))
    # What comes behind the picture, or lies within segments, is counted too, but that takes no time.
    if data.count(b"\xff\xda", start) > most and (scans := _count_scans(data, start, most)) > most:
        raise CannotDecode(f"at least {scans} scans of {header.width}×{header.height} pixels, more than {most}")


def _count_scans(data: bytes, at: int, most: int) -> int:
    """Return the number of scans from the first one on; no more are counted than one too many."""
    scans = segments = 0
    while scans <= most and (found := _MARKER.search(data, at)) is not None:
        at, marker = found.start(), data[found.start() + 1]
        if marker == _END:
            break
        scans += marker == _SCAN
        segments += 1
        if segments > _MOST_SEGMENTS:
            raise CannotDecode(f"more than {_MOST_SEGMENTS:,} segments between its scans")
        at += 2 + (0 if marker in _WITHOUT_LENGTH else int.from_bytes(data[at + 2 : at + 4], "big"))
    return scans


def slimmed(data: bytes) -> bytes:
    """Return a JPEG without what its pixels and its orientation do not need, for a decoder that reads all of it slowly.

    Raises:
        CannotDecode: more comes before the first scan than any program writes.
    """
    kept, passed, exif, xmp, at = [data[:2]], _Passed(), b"", b"", 2
    while (at := data.find(b"\xff", at)) >= 0:
        end = at
        for marker, begin, end in _segments(data, at, passed):
            if marker in (_SCAN, _END) or marker < 0xC0:
                return b"".join([*kept, exif, xmp, data[begin:]])
            segment = data[begin:end]
            if segment.startswith(_EXIF, 4):
                exif = exif or segment
            elif segment.startswith(_XMP, 4):
                xmp = segment
            elif marker not in _IGNORED:
                kept.append(segment)
        passed.add(segments=1)
        at = max(at + 1, end)
    return b"".join([*kept, exif, xmp])


def _orientation(tiff: bytes) -> int:
    """Return tag 0x0112 of the first image directory of an Exif block; 1 where it is missing or unusable."""
    order = {b"II": "<", b"MM": ">"}.get(tiff[:2])
    if order is None or len(tiff) < 8:
        return 1
    (start,) = struct.unpack_from(order + "I", tiff, 4)
    if start + 2 > len(tiff):
        return 1
    (count,) = struct.unpack_from(order + "H", tiff, start)
    for entry in range(start + 2, min(start + 2 + 12 * count, len(tiff) - 11), 12):
        tag, kind = struct.unpack_from(order + "HH", tiff, entry)
        if tag == 0x0112 and kind in (3, 4):  # SHORT, and the LONG that some writers use
            (value,) = struct.unpack_from(order + ("H" if kind == 3 else "I"), tiff, entry + 8)
            return value if 1 <= value <= 8 else 1
    return 1
