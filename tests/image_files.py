"""Makes images for tests: from arrays, deterministic, in any file format that Pillow writes."""

import functools
import io
import struct
import zlib
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt
from PIL import Image

Pixels = npt.NDArray[np.uint8]

RED, GREEN, BLUE, WHITE, BLACK = (255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 255), (0, 0, 0)
ORIENTATION = 0x0112
_SMALL = 2**18  # bytes of pixels whose file is kept in memory


def photo(seed: int, *, width: int = 160, height: int = 120) -> Pixels:
    """Return RGB pixels, shape (height, width, 3), with the structure of a photograph: smooth parts, edges, fine grain.

    Different seeds give images that have nothing in common.
    """
    return np.asarray(cv2.resize(_drawn(seed), (width, height), interpolation=cv2.INTER_AREA), dtype=np.uint8)


@functools.lru_cache(maxsize=256)
def _drawn(seed: int) -> Pixels:
    """Return the pixels of which :func:`photo` takes a size; most tests begin with the same few images."""
    rng = np.random.default_rng(seed)
    canvas = np.full((240, 320, 3), rng.integers(40, 200, 3), dtype=np.uint8)
    for _ in range(14):
        colour = tuple(int(value) for value in rng.integers(0, 256, 3))
        centre = (int(rng.integers(0, 320)), int(rng.integers(0, 240)))
        axes = (int(rng.integers(10, 90)), int(rng.integers(10, 90)))
        cv2.ellipse(canvas, centre, axes, float(rng.integers(0, 180)), 0, 360, colour, -1)
    soft = cv2.GaussianBlur(canvas, (0, 0), 1.5).astype(np.float32)
    soft += cv2.GaussianBlur(rng.normal(0, 60, canvas.shape[:2]).astype(np.float32), (0, 0), 2)[..., None] * 2
    return np.clip(soft, 0, 255).astype(np.uint8)


def detailed(seed: int, *, width: int = 320, height: int = 240) -> Pixels:
    """Return a photo with detail down to single pixels, which no image enlarged from a smaller one has."""
    rng = np.random.default_rng(seed)
    pixels = photo(seed, width=width, height=height).astype(np.float32)
    fine = cv2.GaussianBlur(rng.normal(0, 60, (height, width)).astype(np.float32), (0, 0), 1)
    pixels += (fine + rng.normal(0, 12, (height, width)))[..., None]
    return np.clip(pixels, 0, 255).astype(np.uint8)


def textured(seed: int, *, width: int = 320, height: int = 240) -> Pixels:
    """Return an image with structure at several sizes, so that a part of it is found; no other seed shows the same."""
    random = np.random.default_rng(seed)
    layers = [
        np.asarray(
            Image.fromarray(random.integers(0, 256, (side, side, 3), np.uint8)).resize((width, height), 3), np.float32
        )
        for side in (5, 11, 24, 60)
    ]
    mixed = sum(weight * layer for weight, layer in zip((0.4, 0.25, 0.2, 0.15), layers, strict=True))
    return np.asarray(np.clip((mixed - 128) * 1.6 + 128, 0, 255), np.uint8)


def resized(pixels: Pixels, factor: float) -> Pixels:
    """Return an image enlarged or reduced by a factor."""
    method = cv2.INTER_AREA if factor < 1 else cv2.INTER_CUBIC
    return np.asarray(cv2.resize(pixels, (0, 0), fx=factor, fy=factor, interpolation=method), dtype=np.uint8)


def flat(colour: tuple[int, int, int], *, width: int = 64, height: int = 48) -> Pixels:
    """Return pixels of one colour."""
    return np.full((height, width, 3), colour, dtype=np.uint8)


def quadrants(*, width: int = 64, height: int = 48) -> Pixels:
    """Return an image whose corners can be told apart: red, green / blue, white."""
    pixels = flat(WHITE, width=width, height=height)
    pixels[: height // 2, : width // 2] = RED
    pixels[: height // 2, width // 2 :] = GREEN
    pixels[height // 2 :, : width // 2] = BLUE
    return pixels


def encode(pixels: npt.NDArray[Any] | Image.Image, file_format: str = "PNG", **options: Any) -> bytes:
    """Return an image as the bytes of a file; *options* are Pillow's for the format."""
    if not isinstance(pixels, Image.Image) and not options and pixels.nbytes <= _SMALL:
        return _encoded(pixels.tobytes(), pixels.shape, pixels.dtype.str, file_format)
    image = pixels if isinstance(pixels, Image.Image) else Image.fromarray(pixels)
    out = io.BytesIO()
    image.save(out, file_format, **options)
    return out.getvalue()


@functools.lru_cache(maxsize=256)
def _encoded(content: bytes, shape: tuple[int, ...], dtype: str, file_format: str) -> bytes:
    """Return the file of pixels, which many tests write: encoding takes longer than all else that they prepare."""
    out = io.BytesIO()
    Image.fromarray(np.frombuffer(content, dtype).reshape(shape)).save(out, file_format)
    return out.getvalue()


def write(path: Path, pixels: npt.NDArray[Any], file_format: str | None = None, **options: Any) -> Path:
    """Write an image to *path*, in the format of its suffix unless told otherwise, and return the path."""
    if file_format is None:
        file_format = Image.registered_extensions()[path.suffix.lower()]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(encode(pixels, file_format, **options))
    return path


def oriented(pixels: Pixels, orientation: int, file_format: str, **options: Any) -> bytes:
    """Return a file that shows *pixels* when its Exif orientation is honoured."""
    # What turns the shown image into the stored one is the inverse of what the viewer does.
    inverse = {
        1: None,
        2: Image.Transpose.FLIP_LEFT_RIGHT,
        3: Image.Transpose.ROTATE_180,
        4: Image.Transpose.FLIP_TOP_BOTTOM,
        5: Image.Transpose.TRANSPOSE,
        6: Image.Transpose.ROTATE_90,
        7: Image.Transpose.TRANSVERSE,
        8: Image.Transpose.ROTATE_270,
    }[orientation]
    image = Image.fromarray(pixels)
    exif = Image.Exif()
    exif[ORIENTATION] = orientation
    return encode(image if inverse is None else image.transpose(inverse), file_format, exif=exif.tobytes(), **options)


def png_claiming(width: int, height: int) -> bytes:
    """Return a PNG of a few bytes whose header claims a size."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        check = zlib.crc32(kind + content)
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", check)

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", zlib.compress(bytes(100))) + chunk(b"IEND", b"")


def jpeg_claiming(width: int, height: int) -> bytes:
    """Return a small JPEG whose frame header claims a size."""
    data = bytearray(encode(photo(0), "JPEG"))
    at = data.index(b"\xff\xc0")
    data[at + 5 : at + 9] = struct.pack(">HH", height, width)
    return bytes(data)


def gif_claiming(width: int, height: int) -> bytes:
    """Return a small GIF whose screen and frame claim a size."""
    data = bytearray(encode(flat(RED), "GIF"))
    data[6:10] = struct.pack("<HH", width, height)
    return bytes(data)


def bmp_claiming(width: int, height: int) -> bytes:
    """Return a small BMP whose header claims a size."""
    data = bytearray(encode(flat(RED), "BMP"))
    data[18:26] = struct.pack("<ii", width, height)
    return bytes(data)
