"""Checks that files of formats other than JPEG and PNG hold all data of their image.

A copy that was interrupted leaves a file that ends early, or whose end has zeros. The coders of WebP, AVIF, HEIC and
JPEG 2000 have no checksum, so decoders take zeros for pixels. The coded data of an image does not end with many zeros.
"""

from collections.abc import Iterator, Mapping
from io import BytesIO
from typing import Any, Literal, NamedTuple

from framedex.errors import CannotDecode
from framedex.media.jpeg_ends import MIN_ZEROS, trailing_zeros

_MANY_ZEROS, _SPARED = 64, 8
_OFFSETS, _COUNTS = (273, 324), (279, 325)  # tags of TIFF: of strips and of tiles
_SIDES, _ROWS, _BITS, _COMPRESSION = (256, 257), 278, 258, 259  # of the image, of a strip, of bands of a pixel
_ENDING_WITH_DATA = frozenset((5, 7, 8, 32773, 32946, 34925, 50000, 50001))
"""Compressions of TIFF whose data does not end with many zeros: LZW, JPEG, Deflate, PackBits, LZMA, Zstandard, WebP."""
_DIRECTORY: dict[bytes, Literal["little", "big"]] = {b"II*\0": "little", b"MM\0*": "big"}
_TIFF_HEADER = 8
_FRAME = 24  # bytes of the header of a frame in an animated WebP file, with that of its chunk


class _Part(NamedTuple):
    """The place of coded data in a file, which may end before the part does."""

    start: int
    end: int


def check_end(data: bytes) -> None:
    """Check that a WebP, AVIF, HEIC or JPEG 2000 file has all coded data of its image, and a TIFF file its directory.

    Raises:
        CannotDecode: the file ends early, or its end is filled with zeros.
    """
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        _check_webp(data)
    elif data[4:8] == b"ftyp":
        _check_boxes(data)
    elif data.startswith((b"\xff\x4f\xff\x51", b"\0\0\0\x0cjP  ")):
        _check_zeros(data, _Part(0, len(data)))
    elif data[:4] in _DIRECTORY and len(data) >= _TIFF_HEADER:
        _check_directory(data)


def _check_directory(data: bytes) -> None:
    """Check that a TIFF file has a directory of its first image, which often follows the pixels."""
    start = int.from_bytes(data[4:_TIFF_HEADER], _DIRECTORY[data[:4]])
    if start + 2 > len(data) or not any(data[start : start + 2]):
        there = len(data.rstrip(b"\0")) if start + 2 <= len(data) else len(data)
        raise _early(there, _Part(0, max(start, 1)))


def check_strips(tags: Mapping[int, Any], data: bytes) -> None:
    """Check that all strips or tiles of a TIFF file are there: within the file, and not of zeros where compressed.

    Args:
        tags: the values of the directory of the image, by tag.
        data: the content of the file.

    Raises:
        CannotDecode: some are missing.
    """
    names = next((each for each in zip(_OFFSETS, _COUNTS, strict=True) if all(name in tags for name in each)), None)
    if names is None:
        return
    offsets, counts = ([int(each) for each in _values(tags[name])] for name in names)
    is_packed = tags.get(_COMPRESSION, 1) in _ENDING_WITH_DATA
    if tags.get(_COMPRESSION, 1) == 1 and names[0] == _OFFSETS[0]:
        most = _strip_bytes(tags)  # some programs write the size of the whole file
        counts = [min(count, most) for count in counts]
    parts = [_Part(start, start + size) for start, size in zip(offsets, counts, strict=False)]
    there = [_share_there(data, part, is_packed=is_packed) for part in parts]
    if missing := sum(share < 1 for share in there):
        unit = "strips" if names[0] == _OFFSETS[0] else "tiles"
        raise CannotDecode(
            f"{missing:,} of {len(parts):,} {unit} are missing or incomplete: "
            f"{100 * sum(there) / len(there):.0f} % of the image is there"
        )


def _values(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


def _strip_bytes(tags: Mapping[int, Any]) -> int:
    """Return the size of a strip that is not compressed."""
    width, height = (int(tags[name]) for name in _SIDES)
    rows = min(int(tags.get(_ROWS, height)), height)
    return rows * -(-width * sum(map(int, _values(tags.get(_BITS, 1)))) // 8)


def _share_there(data: bytes, part: _Part, *, is_packed: bool) -> float:
    """Return the share of a strip that is there, 0 to 1."""
    if part.start == 0 or (is_packed and part.end == part.start):
        return 0.0
    content = data[part.start : part.end]
    if is_packed and not any(content[-MIN_ZEROS:]):
        content = content.rstrip(b"\0")
    return min(1.0, len(content) / max(1, part.end - part.start)) if part.end > part.start else 1.0


def _check_webp(data: bytes) -> None:
    part = _webp_part(data)
    if part is None:
        return
    _check_part(data, part)
    zeros = trailing_zeros(data[part.start : part.end])
    if zeros >= MIN_ZEROS and _decodes(_still(data, _Part(part.start, part.end - _SPARED))):
        raise _early(part.end - part.start - zeros, part)


def _webp_part(data: bytes) -> _Part | None:
    """Return the place of the first coded image."""
    at = 12
    while at + 8 <= len(data):
        name, start = data[at : at + 4], at + 8
        end = start + int.from_bytes(data[at + 4 : start], "little")
        if name in (b"VP8 ", b"VP8L"):
            return _Part(start, end)
        at = at + _FRAME if name == b"ANMF" else end + (end - start) % 2
    return None


def _still(data: bytes, part: _Part) -> bytes:
    """Return a file of one coded image alone."""
    content = data[part.start : part.end]
    chunk = data[part.start - 8 : part.start - 4] + len(content).to_bytes(4, "little") + content
    chunk += bytes(len(content) % 2)
    return b"RIFF" + (len(chunk) + 4).to_bytes(4, "little") + b"WEBP" + chunk


def _decodes(data: bytes) -> bool:
    from PIL import Image

    try:
        with Image.open(BytesIO(data)) as image:
            image.load()
    except Exception:  # decoders raise errors of every kind
        return False
    return True


def _check_boxes(data: bytes) -> None:
    """Check the last box of media data of an AVIF or HEIC file."""
    parts = [part for name, part in _boxes(data) if name == b"mdat"]
    if parts:
        _check_part(data, parts[-1])
        _check_zeros(data, parts[-1])


def _boxes(data: bytes) -> Iterator[tuple[bytes, _Part]]:
    """Yield the names and contents of the outer boxes (ISO/IEC 14496-12, 4.2)."""
    at = 0
    while at + 8 <= len(data):
        size, name, start = int.from_bytes(data[at : at + 4], "big"), data[at + 4 : at + 8], at + 8
        if size == 1:
            size, start = int.from_bytes(data[start : start + 8], "big"), start + 8
        end = len(data) if size == 0 else at + size
        if end < start:
            return
        yield name, _Part(start, end)
        at = end


def _check_part(data: bytes, part: _Part) -> None:
    if part.end > len(data):
        raise _early(max(0, len(data) - part.start), part)


def _check_zeros(data: bytes, part: _Part) -> None:
    zeros = trailing_zeros(data[part.start : part.end])
    if zeros >= _MANY_ZEROS:
        raise _early(part.end - part.start - zeros, part)


def _early(size: int, part: _Part) -> CannotDecode:
    share = min(1.0, size / max(1, part.end - part.start))
    return CannotDecode(f"it ends early: {100 * share:.0f} % of its data is there")
