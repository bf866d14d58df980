"""Files that end early, or whose end is zeros: which are seen, and which intact files are flagged, on both halves.

Photos are encoded by each encoder, and cut at several shares of their bytes; the rest is missing, or zeros, as after an
interrupted copy into a file of the final size. A cut file is silent if it is decoded without a word of damage. Intact
files are those of all encoders and of the odd ways in which programs write files. Uncompressed files whose end is
zeros are counted apart: they cannot be told from images with a black part.
"""

import io
import struct
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import parents  # noqa: F401
from halves import HALVES, half
from PIL import Image, ImageDraw

from common import arguments, save, table, verdict
from framedex.errors import CannotDecode
from framedex.media.decode import decode

Encode = Callable[[Image.Image], bytes]
CUTS = (0.1, 0.3, 0.5, 0.7, 0.9, 0.95)
AIM = 0.01
DETAIL = 256  # as ingestion decodes
TRAILING = bytes(5000) + b"data of another program" * 50
PLAIN = ("TIFF plain",)


def encoder(file_format: str, mode: str = "RGB", **options: object) -> Encode:
    """Return a function that encodes an image."""

    def encode(image: Image.Image) -> bytes:
        file = io.BytesIO()
        image.convert(mode).save(file, file_format, **options)
        return file.getvalue()

    return encode


JPEGS: dict[str, Encode] = {
    f"JPEG {quality} {name}": encoder("JPEG", quality=quality, subsampling=subsampling)
    for quality in (60, 75, 90, 95)
    for name, subsampling in (("4:2:0", 2), ("4:4:4", 0))
}
OTHERS: dict[str, Encode] = {
    "JPEG 90 optimised": encoder("JPEG", quality=90, optimize=True),
    "JPEG 90 progressive": encoder("JPEG", quality=90, progressive=True),
    "JPEG 90 restarts": encoder("JPEG", quality=90, restart_marker_rows=1),
    "JPEG 90 grey": encoder("JPEG", "L", quality=90),
    "JPEG 90 CMYK": encoder("JPEG", "CMYK", quality=90),
    "WebP 80": encoder("WEBP", quality=80),
    "WebP lossless": encoder("WEBP", lossless=True, method=2),
    "AVIF 70": encoder("AVIF", quality=70, speed=9),
    "PNG": encoder("PNG"),
    "TIFF LZW": encoder("TIFF", compression="tiff_lzw"),
    "TIFF Deflate": encoder("TIFF", compression="tiff_adobe_deflate"),
    "TIFF PackBits": encoder("TIFF", compression="packbits"),
    "TIFF plain": encoder("TIFF"),
    "GIF": encoder("GIF"),
    "JPEG 2000": encoder("JPEG2000"),
}


def cut_files(data: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield the kind and the content of each damaged version of a file."""
    for share in CUTS:
        end = int(len(data) * share)
        yield "missing", data[:end]
        yield "zeros", data[:end] + bytes(len(data) - end)


def with_thumbnail(image: Image.Image) -> bytes:
    """Return a JPEG whose Exif data has another JPEG, with an end marker of its own."""
    small = image.copy()
    small.thumbnail((160, 160))
    content = b"Exif\0\0II*\0\x08\0\0\0\0\0\0\0\0\0" + JPEGS["JPEG 60 4:2:0"](small)
    data = JPEGS["JPEG 90 4:2:0"](image)
    return data[:2] + b"\xff\xe1" + struct.pack(">H", len(content) + 2) + content + data[2:]


def with_other(image: Image.Image) -> bytes:
    """Return an MPO file of two images."""
    file = io.BytesIO()
    image.save(file, "MPO", save_all=True, append_images=[image.resize((64, 48))])
    return file.getvalue()


INTACT: dict[str, Encode] = {
    **JPEGS,
    **OTHERS,
    "JPEG without its end marker": lambda image: JPEGS["JPEG 90 4:2:0"](image)[:-2],
    "progressive without its end marker": lambda image: OTHERS["JPEG 90 progressive"](image)[:-2],
    "optimised without its end marker": lambda image: OTHERS["JPEG 90 optimised"](image)[:-2],
    "JPEG with trailing data": lambda image: JPEGS["JPEG 90 4:2:0"](image) + TRAILING,
    "JPEG with a thumbnail": with_thumbnail,
    "JPEG with a thumbnail, without its end marker": lambda image: with_thumbnail(image)[:-2],
    "MPO": with_other,
    "PNG with trailing data": lambda image: OTHERS["PNG"](image) + TRAILING,
    "PNG without its end": lambda image: OTHERS["PNG"](image)[:-12],
    "WebP with trailing data": lambda image: OTHERS["WebP 80"](image) + TRAILING,
}


def drawings() -> Iterator[Image.Image]:
    """Yield images whose coded data has long runs of zeros."""
    for side in (1, 8, 64, 250, 1000):
        for colour in ("black", "white", "teal"):
            yield Image.new("RGB", (side, side), colour)
        page = Image.new("RGB", (side * 2, side), "white")
        ImageDraw.Draw(page).rectangle((side // 3, side // 3, side // 2 + 1, side // 2 + 1), fill="black")
        yield page
        yield Image.fromarray((np.indices((side, side)).sum(axis=0) % 2 * 255).astype(np.uint8)).convert("RGB")


def fault_of(data: bytes) -> str | None:
    """Return what is said of a file; None if it is decoded without a word."""
    try:
        return decode(data, max_pixels=10**9, detail=DETAIL).damage
    except CannotDecode as error:
        return f"{error.fault}: {error}"


def silent(photos: list[Path], encoders: dict[str, Encode]) -> list[tuple[str, str, int, float]]:
    """Return the share of silent files by encoder and kind of damage."""
    counts, missed = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for photo in photos:
        with Image.open(photo) as opened:
            image = opened.convert("RGB")
        for name, encode in encoders.items():
            for kind, data in cut_files(encode(image)):
                counts[name, kind] += 1
                missed[name, kind] += not (fault_of(data) or "").startswith(("damaged", "Corrupt"))
    return [(*each, count, missed[each] / count) for each, count in counts.items()]


def flagged(images: Iterator[Image.Image]) -> tuple[int, list[str]]:
    """Return the number of intact files, and what is said of those that are flagged."""
    count, said = 0, []
    for image in images:
        for name, encode in INTACT.items():
            count += 1
            if (fault := fault_of(encode(image))) is not None:
                said.append(f"{name}, {image.width}×{image.height}: {fault}")
    return count, said


def opened(photos: list[Path]) -> Iterator[Image.Image]:
    """Yield photos in RGB."""
    for photo in photos:
        with Image.open(photo) as image:
            yield image.convert("RGB")


def main() -> None:
    parser = arguments(__doc__, peers=False)
    parser.add_argument("--photos", type=int, default=150, help="photos of each half for JPEG")
    parser.add_argument("--others", type=int, default=30, help="photos of each half for other encoders")
    parser.add_argument("--halves", nargs="+", choices=HALVES, default=list(HALVES))
    options = parser.parse_args()
    result: dict[str, object] = {}
    for name in options.halves:
        photos = half(options.data, name)
        photos = photos[:: max(1, len(photos) // options.photos)][: options.photos]
        few = photos[:: max(1, len(photos) // options.others)][: options.others]
        rows = silent(photos, JPEGS) + silent(few, OTHERS)
        print(f"\n{name} half\n" + table(("encoder", "rest", "files", "silent"), rows), flush=True)
        count, said = flagged(opened(few))
        drawn, said_drawn = flagged(drawings())
        print(f"{len(said) + len(said_drawn)} of {count + drawn:,} intact files flagged")
        print("\n".join([*said, *said_drawn][:20]), flush=True)
        told = [row for row in rows if not (row[0] in PLAIN and row[1] == "zeros")]
        share = sum(row[2] * row[3] for row in told) / sum(row[2] for row in told)
        print(verdict("silent files", share, AIM, at_most=True))
        print(verdict("intact files flagged", len(said) + len(said_drawn), 0, at_most=True))
        result[name] = {"silent": rows, "intact": count + drawn, "flagged": said + said_drawn}
    save("quality-damaged-files", result)


if __name__ == "__main__":
    main()
