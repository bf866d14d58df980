"""The number of pages or frames in the file of an image, from the headers of each, which are not decoded.

Only the first one is read. Reduced versions and masks of a page are no pages.
"""

from collections.abc import Iterator
from typing import Any, Literal

from framedex.media.tiff import NOT_WHOLE, SUBFILE

_KNOWN_TO_READER = frozenset(("AVIF", "HEIF", "WEBP"))
_GIF_START, _GIF_FLAGS, _GIF_IMAGE, _GIF_EXTENSION = 13, 10, 0x2C, 0x21
_SHORT = 3  # the type of a TIFF field of 16 bits


def count_pages(image: Any, data: bytes) -> int:
    """Return the number of pages or frames in a file, at least 1.

    Args:
        image: of Pillow.
        data: the content of the file.
    """
    match image.format:
        case "PNG":
            return _frames_of_png(data)
        case "GIF":
            return max(1, sum(1 for _ in _frames_of_gif(data)))
        case "TIFF":
            return count_tiff_pages(data)
        case kind:
            return max(1, int(getattr(image, "n_frames", 1))) if kind in _KNOWN_TO_READER else 1


def count_tiff_pages(data: bytes) -> int:
    """Return the number of pages of a TIFF file that are no thumbnails and no masks, at least 1."""
    return max(1, sum(not kind & NOT_WHOLE for kind in _kinds_of_pages(data)))


def _frames_of_png(data: bytes) -> int:
    """Return the number of frames by the chunk acTL, which comes before the pixels (PNG, third edition, 11.3.6)."""
    at = data.find(b"acTL", 0, data.find(b"IDAT"))
    return max(1, int.from_bytes(data[at + 4 : at + 8], "big")) if data[at - 4 : at] == b"\0\0\0\x08" else 1


def _frames_of_gif(data: bytes) -> Iterator[int]:
    """Yield where the images of a GIF file begin (GIF89a, 17 to 26), up to a block that is damaged."""
    try:
        at = _GIF_START + _bytes_of_colours(data[_GIF_FLAGS])
        while (kind := data[at]) in (_GIF_IMAGE, _GIF_EXTENSION):
            if kind == _GIF_IMAGE:
                yield at
                at += 11 + _bytes_of_colours(data[at + 9])
            else:
                at += 2
            while size := data[at]:
                at += size + 1
            at += 1
    except IndexError:
        return


def _bytes_of_colours(flags: int) -> int:
    return 3 << (flags & 7) + 1 if flags & 0x80 else 0


def _kinds_of_pages(data: bytes) -> Iterator[int]:
    """Yield the NewSubfileType of each directory in the chain of a TIFF file, up to one that is damaged."""
    order: Literal["little", "big"] = "little" if data[:2] == b"II" else "big"
    is_big = data[2:4] in (b"\x2b\0", b"\0\x2b")
    first, place_size, count_size, entry_size = (8, 8, 8, 20) if is_big else (4, 4, 2, 12)

    def number(at: int, size: int) -> int:
        return int.from_bytes(data[at : at + size], order)

    seen, at = set[int](), number(first, place_size)
    while 0 < at < len(data) and at not in seen:
        seen.add(at)
        start = at + count_size
        end = start + number(at, count_size) * entry_size
        tags = {number(each, 2): each for each in range(start, min(end, len(data)), entry_size)}
        field = tags.get(SUBFILE)
        yield (
            0 if field is None else number(field + entry_size - place_size, 2 if number(field + 2, 2) == _SHORT else 4)
        )
        at = number(end, place_size)
