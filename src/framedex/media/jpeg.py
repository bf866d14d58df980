"""What a JPEG's header says, read without decoding it (ITU-T T.81 for the markers, Exif 2.3 for orientation)."""

import struct
from dataclasses import dataclass

_START_OF_FRAME = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_WITHOUT_LENGTH = frozenset((0x01, *range(0xD0, 0xD9)))


@dataclass(frozen=True)
class Header:
    """A JPEG's frame header.

    Attributes:
        width: stored width in pixels, before orientation is applied.
        height: stored height in pixels.
        components: colour components; 4 means CMYK or YCCK.
        orientation: Exif orientation, 1 to 8; 1 is upright.
    """

    width: int
    height: int
    components: int
    orientation: int

    @property
    def displayed_size(self) -> tuple[int, int]:
        """(width, height) as shown, after orientation."""
        return (self.height, self.width) if self.orientation >= 5 else (self.width, self.height)


def read_header(data: bytes) -> Header | None:
    """Return the frame header of a JPEG; None if *data* is no JPEG or ends before its frame header."""
    if data[:2] != b"\xff\xd8":
        return None
    orientation, at = 1, 2
    while at + 4 <= len(data):
        if data[at] != 0xFF:
            return None
        marker = data[at + 1]
        if marker == 0xFF:  # fill byte
            at += 1
        elif marker in _WITHOUT_LENGTH:
            at += 2
        elif marker in _START_OF_FRAME:
            if at + 10 > len(data):
                return None
            height, width, components = struct.unpack_from(">HHB", data, at + 5)
            return Header(width, height, components, orientation)
        elif marker in (0xDA, 0xD9):
            return None
        else:
            length = int.from_bytes(data[at + 2 : at + 4], "big")
            if marker == 0xE1 and data[at + 4 : at + 10] == b"Exif\0\0":
                orientation = _orientation(data[at + 10 : at + 2 + length])
            at += 2 + length
    return None


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
