"""PNG files without what pixels do not need, and the check that all rows are there (PNG specification, third edition).

Chunks for information may be too large for a reader, or have a wrong checksum, while the image is in order.
"""

import struct
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from framedex.errors import CannotDecode
from framedex.media.jpeg_ends import MIN_ZEROS, trailing_zeros

SIGNATURE = b"\x89PNG\r\n\x1a\n"
_BANDS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}  # by colour type
_PASSES = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))
"""First column, first row, and steps in both directions of the passes of an interlaced image."""
_TRANSPARENT_BYTES = {0: (2,), 2: (6,), 3: range(1, 257)}  # of tRNS, by colour type; the others have none
_INFORMATION = frozenset((b"tRNS", b"iCCP", b"iTXt", b"eXIf"))  # what is read beside pixels
_XMP = b"XML:com.adobe.xmp\0\0"  # not compressed
_MOST_INFORMATION = 2**20  # the limit of Pillow
_ANCILLARY = 0x20  # the bit that makes the first letter of a name small
_PART = 2**20


@dataclass(frozen=True)
class _Chunk:
    """A chunk of a file, maybe cut off.

    Attributes:
        name: the name, four letters.
        content: the content that is there.
        start, end: the positions of the whole chunk in the file.
        is_whole: whether nothing is cut off.
    """

    name: bytes
    content: memoryview
    start: int
    end: int
    is_whole: bool
    checksum: bytes

    @property
    def is_right(self) -> bool:
        """True if the checksum is right."""
        return self.is_whole and zlib.crc32(self.content, zlib.crc32(self.name)) == int.from_bytes(self.checksum, "big")


def readable(data: bytes) -> bytes:
    """Return a PNG file that has the pixels of another one, and whose chunks can all be read; mostly the same file.

    Raises:
        CannotDecode: rows of the image are missing or wrong.
    """
    chunks = list(_chunks(data))
    header = next((each for each in chunks if each.name == b"IHDR"), None)
    if header is None or len(header.content) != 13 or not header.is_right:
        raise CannotDecode("its beginning is damaged: it has no valid header (IHDR)")
    if any(each.name == b"CgBI" for each in chunks):
        raise CannotDecode("PNG files that Xcode changed for iOS (CgBI) are not supported", "not_supported")
    depth, colour_type = header.content[8:10]
    kept = [_scaled(each, depth, colour_type) for each in chunks if _is_kept(each, colour_type)]
    pixels = [each for each in kept if each.name == b"IDAT"]
    has_end = kept[-1].name == b"IEND"
    if not pixels or not all(each.is_right for each in pixels) or not has_end:
        _check_rows(pixels, header.content)
        kept = [each for each in kept if each.name == b"IDAT" or each.is_right]
    elif kept == chunks:
        return data
    parts = [data[each.start : each.end] if each.is_right else _chunk(each.name, each.content) for each in kept]
    return b"".join([SIGNATURE, *parts, b"" if has_end else _chunk(b"IEND", b"")])


def _chunks(data: bytes) -> Iterator[_Chunk]:
    """Yield the chunks up to the end marker."""
    view, at = memoryview(data), len(SIGNATURE)
    while at + 8 <= len(data):
        size, name = int.from_bytes(view[at : at + 4], "big"), bytes(view[at + 4 : at + 8])
        if not name.isalpha():
            return  # zeros, or another file
        content, end = view[at + 8 : at + 8 + size], at + 12 + size
        yield _Chunk(name, content, at, end, end <= len(data), bytes(view[end - 4 : end]))
        if name == b"IEND":
            return
        at = end


def _is_kept(chunk: _Chunk, colour_type: int) -> bool:
    """Return whether a chunk is needed, or says something of the image that can be read."""
    if not chunk.name[0] & _ANCILLARY:
        return True
    if chunk.name not in _INFORMATION or not chunk.is_right:
        return False
    if chunk.name == b"tRNS":
        return len(chunk.content) in _TRANSPARENT_BYTES.get(colour_type, ())
    if chunk.name == b"iTXt":
        return bytes(chunk.content[: len(_XMP)]) == _XMP and len(chunk.content) < _MOST_INFORMATION
    return chunk.name != b"iCCP" or _is_small_profile(bytes(chunk.content))


def _scaled(chunk: _Chunk, depth: int, colour_type: int) -> _Chunk:
    """Return the chunk with the transparent grey value in 8 bits, as Pillow takes it, of an image of 2 or 4 bits."""
    if chunk.name != b"tRNS" or colour_type != 0 or depth not in (2, 4):
        return chunk
    value = int.from_bytes(chunk.content, "big") * 255 // (2**depth - 1)
    return replace(chunk, content=memoryview(value.to_bytes(2, "big")) if value <= 255 else chunk.content)


def _is_small_profile(content: bytes) -> bool:
    _, _, packed = content.partition(b"\0")
    unpacked = zlib.decompressobj()
    try:
        return packed[:1] == b"\0" and len(unpacked.decompress(packed[1:], _MOST_INFORMATION + 1)) <= _MOST_INFORMATION
    except zlib.error:
        return False


def _check_rows(pixels: list[_Chunk], header: memoryview) -> None:
    """Check that the data of all rows is there, by its length and its own checksum.

    Raises:
        CannotDecode: it is not.
    """
    needed, wrong = _size(header), next((each for each in pixels if each.is_whole and not each.is_right), None)
    done, is_whole = _unpacked(pixels, needed)
    if done >= needed and (wrong is None or is_whole):
        return
    if wrong is not None:  # up to its zeros, if it has some
        content = bytes(wrong.content)
        filled = trailing_zeros(content) >= MIN_ZEROS
        before = pixels[: pixels.index(wrong)]
        done, _ = _unpacked(
            [*before, replace(wrong, content=memoryview(content.rstrip(b"\0")))] if filled else before, needed
        )
        if not filled:
            raise CannotDecode(f"its data is damaged: the first {_percent(done, needed)} of the image is in order")
    raise CannotDecode(f"it ends early: {_percent(done, needed)} of the image is there")


def _percent(done: int, needed: int) -> str:
    return f"{min(100, 100 * done // max(1, needed))} %"


def _unpacked(pixels: Sequence[_Chunk], needed: int) -> tuple[int, bool]:
    """Return the number of bytes of rows in chunks, at most about those needed, and whether the checksum is right."""
    done, unpacked = 0, zlib.decompressobj()
    for chunk in pixels:
        packed = bytes(chunk.content)
        try:
            while packed and done <= needed:
                done += len(unpacked.decompress(packed, _PART))
                packed = unpacked.unconsumed_tail
        except zlib.error:
            return done, False
    return done, unpacked.eof


def _size(header: memoryview) -> int:
    """Return the number of bytes of all rows, each with the byte of its filter."""
    width, height, depth, colour, _, _, interlaced = struct.unpack(">IIBBBBB", header)
    bits = depth * _BANDS.get(colour, 1)
    passes = _PASSES if interlaced else ((0, 0, 1, 1),)
    sides = ((-(-(width - left) // across), -(-(height - top) // down)) for left, top, across, down in passes)
    return sum(rows * (1 + -(-columns * bits // 8)) for columns, rows in sides if columns > 0 and rows > 0)


def _chunk(name: bytes, content: bytes | memoryview) -> bytes:
    checksum = zlib.crc32(content, zlib.crc32(name))
    return struct.pack(">I", len(content)) + name + bytes(content) + struct.pack(">I", checksum)
