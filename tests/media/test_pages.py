"""The pages and frames of a file are counted as they were written, and the first one is shown."""

import io
from typing import Any

import numpy as np
import pytest
import tifffile
from PIL import Image

from framedex.media.decode import decode
from framedex.media.pages import count_pages
from tests.image_files import photo


def animated(file_format: str, count: int, **options: Any) -> bytes:
    """Return an image with frames of different content, as Pillow writes it."""
    frames = [Image.fromarray(photo(number, width=48, height=40)) for number in range(count)]
    out = io.BytesIO()
    frames[0].save(out, file_format, save_all=True, append_images=frames[1:], **options)
    return out.getvalue()


def stacked(kind: str, count: int, **options: Any) -> bytes:
    """Return a TIFF file with pages of values and thumbnails, as tifffile writes it."""
    out = io.BytesIO()
    with tifffile.TiffWriter(out, **options) as file:
        for number in range(count):
            for subfile in (0, 1):
                values = np.full((20, 30), 7 * number + 9, kind)
                file.write(values, subfiletype=subfile, photometric="minisblack", metadata=None)
    return out.getvalue()


FILES = {
    "GIF": lambda count: animated("GIF", count),
    "PNG": lambda count: animated("PNG", count),
    "WebP": lambda count: animated("WEBP", count),
    "AVIF": lambda count: animated("AVIF", count),
    "TIFF": lambda count: animated("TIFF", count),
    "TIFF of bytes": lambda count: stacked("u1", count),
    "TIFF of values": lambda count: stacked("f4", count, byteorder=">"),
    "BigTIFF": lambda count: stacked("u2", count, bigtiff=True),
    "BigTIFF, big-endian": lambda count: stacked("i4", count, bigtiff=True, byteorder=">"),
}


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("kind", FILES)
def test_pages__are_counted(kind: str, count: int) -> None:
    """Thumbnails are no pages."""
    assert decode(FILES[kind](count), max_pixels=10_000).pages == count


@pytest.mark.parametrize("kind", FILES)
def test_pages__of_a_file_that_is_cut_off(kind: str) -> None:
    """No count fails or goes on for ever, wherever a file ends or leads."""
    data = FILES[kind](3)
    for end in range(8, len(data), max(1, len(data) // 40)):
        for each in (data[:end], data[:end] + bytes(8) + data[end + 8 :], data[:end] + data[4:8] + data[end + 4 :]):
            for file_format in ("GIF", "PNG", "TIFF"):
                image = Image.new("L", (1, 1))
                image.format = file_format
                assert 1 <= count_pages(image, each) <= len(each)
