"""JPEG headers, read without decoding (ITU-T T.81 for the markers, Exif 2.3 for orientation).

Decoders accept everything that the standard allows: megabytes of fill bytes, millions of empty segments, hundreds of
scans. A crafted file can take minutes to decode. So there are limits, far above the files of cameras and programs.
"""

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

from framedex.errors import CannotDecode

_START_OF_FRAME = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_PROGRESSIVE = frozenset((0xC2, 0xC6, 0xCA, 0xCE))
_COMMON = frozenset((0xC0, 0xC1, 0xC2, 0xC9, 0xCA))  # baseline, extended, progressive; by Huffman or arithmetic codes
_LOSSLESS = frozenset((0xC3, 0xC7, 0xCB, 0xCF))
_WITHOUT_LENGTH = frozenset((0x01, *range(0xD0, 0xD9)))
_PRECISION = 8  # bits
_SCAN, _END, _TABLES = 0xDA, 0xD9, 0xDB
_IGNORED = frozenset((0xFE, *range(0xE1, 0xEE), 0xEF))  # comments, and application data except JFIF's and Adobe's
_EXIF, _XMP = b"Exif\0\0", b"http://ns.adobe.com/xap/1.0/\0"
_FILL = re.compile(b"\xff+")
_MARKER = re.compile(rb"\xff[^\x00\xd0-\xd7\xff]")  # in coded data
_NEXT = re.compile(rb"\xff[^\x00]")  # outside of segments, where a zero makes 0xFF a coded byte
_MAX_SEGMENTS, _MAX_FILL = 100_000, 2**20  # segments and fill bytes before the first scan
_MAX_STRAY = 2**20  # bytes that belong to no segment, before the first scan
_MAX_SCANS, _MAX_SCANNED_PIXELS = 64, 4 * 10**9  # scans, and the pixels of all scans; programs write about 10 scans


_ZIGZAG = (1, 2, 3, 4, 5, 7, 8, 12)
"""Places in a quantisation table, as it is stored, of the first three frequencies a side, but the first of all."""
_METADATA = frozenset((*range(0xE1, 0xEE), 0xEF, 0xFE))  # application data except JFIF's and Adobe's, and comments


@dataclass(frozen=True)
class Traits:
    """The facts about the making of a file that its header has: that of a JPEG, or of another format.

    Attributes:
        table: the 64 quantisation steps of brightness in zigzag order; empty if there is no table.
        colour_share: the number of its colour values as a share of those of brightness, in (0, 1].
        has_metadata: whether it has Exif or other data about the image.
        is_lossy: whether it is compressed with a loss in another way, whose steps are not known.
    """

    table: tuple[int, ...] = ()
    colour_share: float = 1.0
    has_metadata: bool = False
    is_lossy: bool = False

    @property
    def steps(self) -> tuple[int, ...]:
        """The steps at low frequencies; empty if there is no table.

        By row and column: (0, 1), (1, 0), (2, 0), (1, 1), (0, 2), (1, 2), (2, 1), (2, 2).
        """
        return tuple(self.table[place] for place in _ZIGZAG) if self.table else ()


@dataclass(frozen=True)
class Header:
    """The frame header of a JPEG.

    Attributes:
        width: stored width in pixels, before orientation is applied.
        height: stored height in pixels.
        components: colour components; 4 means CMYK or YCCK.
        orientation: Exif orientation, 1 to 8; 1 is upright.
        progressive: whether each scan adds detail to the whole image.
        process: the kind of coding, the second byte of the frame marker (T.81, table B.1).
        precision: bits of a value.
        end: the position of the first byte after the frame header.
        traits: what else the header says.
    """

    width: int
    height: int
    components: int
    orientation: int
    progressive: bool = field(default=False, compare=False)
    process: int = field(default=0xC0, compare=False)
    precision: int = field(default=8, compare=False)
    end: int = field(default=0, compare=False)
    traits: Traits = field(default=Traits(), compare=False)

    @property
    def is_rare(self) -> bool:
        """True if the coding is one that most decoders do not know."""
        return self.process not in _COMMON or self.precision != _PRECISION

    @property
    def words(self) -> str:
        """The kind of a rare coding, in words."""
        kind = "lossless" if self.process in _LOSSLESS else "hierarchical" if self.process not in _COMMON else ""
        return f"{kind} JPEG of {self.precision} bits".strip()

    @property
    def displayed_size(self) -> tuple[int, int]:
        """The displayed size (width, height), after orientation."""
        return (self.height, self.width) if self.orientation >= 5 else (self.width, self.height)


def read_header(data: bytes) -> Header | None:
    """Return the frame header of a JPEG; None if *data* is not a JPEG or ends before the frame header.

    Raises:
        CannotDecode: there are too many segments or fill bytes before the frame header.
    """
    if data[:2] != b"\xff\xd8":
        return None
    orientation, has_metadata = 1, False
    table: tuple[int, ...] = ()
    for marker, at, end in _segments(data, 2):
        if marker in _START_OF_FRAME:
            if at + 10 > len(data):
                return None
            height, width, components = struct.unpack_from(">HHB", data, at + 5)
            traits = Traits(table, _colour_share(data[at + 10 : end]), has_metadata)
            precision = data[at + 4]
            return Header(
                width, height, components, orientation, marker in _PROGRESSIVE, marker, precision, end, traits
            )
        if marker in (_SCAN, _END):
            return None
        has_metadata |= marker in _METADATA
        if marker == _TABLES:
            table = _table(data[at + 4 : end]) or table
        if marker == 0xE1 and data[at + 4 : at + 10] == _EXIF:
            orientation = _orientation(data[at + 10 : end])
    return None


def _table(tables: bytes) -> tuple[int, ...]:
    """Return the 64 steps of the first quantisation table; nothing if the segment does not have it."""
    at = 0
    while at < len(tables):
        size = 2 if tables[at] >> 4 else 1
        values = tables[at + 1 : at + 1 + 64 * size]
        if tables[at] & 15 == 0 and len(values) == 64 * size:
            return tuple(values) if size == 1 else struct.unpack(">64H", values)
        at += 1 + 64 * size
    return ()


def _colour_share(components: bytes) -> float:
    """Return :attr:`Traits.colour_share` from the descriptions of components in a frame header."""
    samples = [(value >> 4) * (value & 15) for value in components[1::3]]
    return samples[1] / samples[0] if len(samples) > 1 and samples[0] >= samples[1] > 0 else 1.0


def without_application_data(data: bytes, header: Header) -> bytes:
    """Return a JPEG without comments and application data before its frame header, JFIF's and Adobe's included."""
    parts = [data[begin:end] for marker, begin, end in _segments(data, 2) if end <= header.end and marker < 0xE0]
    return b"".join([data[:2], *parts, data[header.end :]])


@dataclass
class _SkippedParts:
    """Numbers of skipped segments and fill bytes.

    Attributes:
        segments: the number of segments, including damaged ones.
        filled: the number of fill bytes.
        stray: the number of bytes that belong to no segment.
    """

    segments: int = 0
    filled: int = 0
    stray: int = 0

    def add(self, *, segments: int = 0, filled: int = 0, stray: int = 0) -> None:
        """Add to the counts.

        Raises:
            CannotDecode: a count exceeds its limit.
        """
        self.segments, self.filled = self.segments + segments, self.filled + filled
        self.stray += stray
        if self.stray > _MAX_STRAY:
            raise CannotDecode(f"more than {_MAX_STRAY:,} bytes between the segments of its header", "over_limit")
        if self.filled > _MAX_FILL:
            raise CannotDecode(f"more than {_MAX_FILL:,} fill bytes in its header", "over_limit")
        if self.segments > _MAX_SEGMENTS:
            raise CannotDecode(f"more than {_MAX_SEGMENTS:,} segments in its header", "over_limit")


def _segments(data: bytes, at: int, skipped: _SkippedParts | None = None) -> Iterator[tuple[int, int, int]]:
    """Yield the marker, start and end position of each segment from a position on, until no marker follows.

    Raises:
        CannotDecode: there are too many segments or fill bytes.
    """
    skipped = skipped or _SkippedParts()
    while at + 4 <= len(data) and data[at] == 0xFF and data[at + 1]:
        marker = data[at + 1]
        if marker == 0xFF:
            fill = _FILL.match(data, at)
            assert fill is not None, "there are two"
            skipped.add(filled=fill.end() - at - 1)
            at = fill.end() - 1
            continue
        end = at + 2 if marker in _WITHOUT_LENGTH else at + 2 + int.from_bytes(data[at + 2 : at + 4], "big")
        skipped.add(segments=1)
        yield marker, at, end
        at = end


def check_scans(data: bytes, header: Header) -> None:
    """Check the number of scans of a JPEG, because decoding each scan takes as long as decoding an image.

    Raises:
        CannotDecode: there are too many scans, or the header is too long.
    """
    start = next((at for marker, at, _ in _segments(data, header.end) if marker == _SCAN), None)
    if start is None or (not header.progressive and data[start + 4 : start + 5] == bytes([header.components])):
        return  # all components in one scan
    max_scans = min(_MAX_SCANS, max(1, _MAX_SCANNED_PIXELS // max(1, header.width * header.height)))
    # This fast count may be too large: it includes bytes after the image and within segments.
    if data.count(b"\xff\xda", start) > max_scans and (scans := _count_scans(data, start, max_scans)) > max_scans:
        raise CannotDecode(
            f"at least {scans} scans of {header.width}×{header.height} pixels, more than {max_scans}", "over_limit"
        )


def _count_scans(data: bytes, at: int, max_scans: int) -> int:
    """Return the number of scans from a position on, counted up to *max_scans* + 1."""
    scans = segments = 0
    while scans <= max_scans and (match := _MARKER.search(data, at)) is not None:
        at, marker = match.start(), data[match.start() + 1]
        if marker == _END:
            break
        scans += marker == _SCAN
        segments += 1
        if segments > _MAX_SEGMENTS:
            raise CannotDecode(f"more than {_MAX_SEGMENTS:,} segments between its scans", "over_limit")
        at += 2 + (0 if marker in _WITHOUT_LENGTH else int.from_bytes(data[at + 2 : at + 4], "big"))
    return scans


def slimmed(data: bytes) -> bytes:
    """Return a JPEG without the segments that its pixels and orientation do not need, which slow down a decoder.

    Raises:
        CannotDecode: there are too many segments, fill bytes or other bytes before the first scan.
    """
    parts, skipped, exif, xmp, at = [data[:2]], _SkippedParts(), b"", b"", 2
    while (at := _next_marker(data, at, skipped)) < len(data):
        end = at
        for marker, begin, end in _segments(data, at, skipped):
            if marker in (_SCAN, _END) or marker < 0xC0:
                return b"".join([*parts, exif, xmp, data[begin:]])
            segment = data[begin:end]
            if segment.startswith(_EXIF, 4):
                exif = exif or segment
            elif segment.startswith(_XMP, 4):
                xmp = segment
            elif marker not in _IGNORED:
                parts.append(segment)
        skipped.add(segments=1)
        at = max(at + 1, end)
    return b"".join([*parts, exif, xmp])


def _next_marker(data: bytes, at: int, skipped: _SkippedParts) -> int:
    """Return the position of the next marker, or the length of the data.

    Raises:
        CannotDecode: it is too far away.
    """
    match = _NEXT.search(data, at, at + _MAX_STRAY + 2)
    position = len(data) if match is None else match.start()
    skipped.add(stray=position - at)
    return position


def _orientation(tiff: bytes) -> int:
    """Return the orientation (tag 0x0112 of the first image directory) of an Exif block; 1 if missing or invalid."""
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
