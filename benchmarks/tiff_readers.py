"""Readers of TIFF beside each other: of files of many kinds, how many each reads with the stored values, and how fast.

Run in an environment that has tifffile, imagecodecs and pyvips-binary beside Framedex; what is not installed is left
out. Files are written by tifffile with imagecodecs, so the stored values are known:

    python benchmarks/tiff_readers.py
"""

import io
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt
from PIL import Image

Values = npt.NDArray[Any]
WIDTH, HEIGHT = 70, 50
TYPES = ("u1", "u2", "u4", "i1", "i2", "i4", "f2", "f4", "f8")
PACKINGS = ("lzw", "deflate", "packbits", "zstd", "lzma")


def values_of(kind: str, bands: int = 1, *, planar: bool = False, size: tuple[int, int] = (HEIGHT, WIDTH)) -> Values:
    """Return values of a type, which use its range; shape (H, W), (H, W, bands), or (bands, H, W) if planar."""
    rng, dtype = np.random.default_rng(1), np.dtype(kind)
    shape = size if bands == 1 else (bands, *size) if planar else (*size, bands)
    smooth = np.cumsum(rng.normal(0, 1, shape), axis=-1)
    share = (smooth - smooth.min()) / np.ptp(smooth)
    if dtype.kind == "f":
        return (share * 400 - 100).astype(dtype)
    info = np.iinfo(dtype)
    return (info.min + share * (float(info.max) - info.min)).astype(dtype)


def files() -> Iterator[tuple[str, bytes, Values]]:
    """Yield the kind, the content and the stored values of each file."""
    import tifffile

    def written(values: Values, **options: Any) -> bytes:
        out = io.BytesIO()
        options = {"photometric": "minisblack", "metadata": None, **options}
        with tifffile.TiffWriter(
            out, bigtiff=options.pop("bigtiff", False), byteorder=options.pop("order", "<")
        ) as file:
            for first in options.pop("before", ()):
                file.write(first, photometric="minisblack", subfiletype=1, metadata=None)
            file.write(values, **options)
        return out.getvalue()

    for kind in TYPES:
        values = values_of(kind)
        yield f"{kind} 1 band", written(values), values
        yield f"{kind} big-endian", written(values, order=">"), values
        yield f"{kind} tiles", written(values, tile=(32, 32)), values
        yield f"{kind} min-is-white", written(values, photometric="miniswhite"), values
        for packing in PACKINGS:
            yield f"{kind} {packing}", written(values, compression=packing), values
        predictor = 3 if np.dtype(kind).kind == "f" else 2
        yield f"{kind} lzw, predictor", written(values, compression="lzw", predictor=predictor), values
        yield f"{kind} deflate, predictor", written(values, compression="deflate", predictor=predictor), values
        for bands in (2, 3, 4, 5, 6):
            shown = {"photometric": "rgb" if bands in (3, 4) else "minisblack"}
            extra = {"extrasamples": ["unassalpha"]} if bands in (2, 4) else {"extrasamples": [0] * (bands - 1)}
            extra = {} if bands == 3 else extra
            for planar in (False, True):
                values = values_of(kind, bands, planar=planar)
                config = "separate" if planar else "contig"
                stored = np.moveaxis(values, 0, -1) if planar else values
                yield f"{kind} {bands} bands, {config}", written(values, planarconfig=config, **shown, **extra), stored
    small = values_of("u2", size=(10, 14))
    for kind in ("u1", "u2", "f4"):
        values = values_of(kind)
        yield f"{kind} BigTIFF", written(values, bigtiff=True), values
        yield f"{kind} after a thumbnail", written(values, before=[small.astype(kind)]), values
        yield f"{kind} strips of 7 rows", written(values, rowsperstrip=7), values
    byte = np.repeat(values_of("u1")[..., None], 3, axis=2)
    yield "u1 3 bands, JPEG", written(byte, photometric="rgb", compression="jpeg", compressionargs={"level": 99}), byte
    yield "u1 CMYK", written(values_of("u1", 4), photometric="separated"), values_of("u1", 4)
    palette = np.stack([np.arange(256, dtype=np.uint16) * 257] * 3)
    yield "u1 palette", written(values_of("u1"), photometric="palette", colormap=palette), values_of("u1")
    bits = values_of("u1") > 128
    yield "1 bit", written(bits), bits
    yield "c8 1 band", written(values_of("f4").astype("c8")), values_of("f4").astype("c8")
    blank = values_of("f4")
    blank[:9], blank[9:20] = np.nan, -9999
    yield "f4 NaN and nodata", written(blank, extratags=[(42113, "s", 6, "-9999", True)]), blank


def by_pillow(data: bytes) -> Values:
    """Return the values that Pillow reads."""
    with Image.open(io.BytesIO(data)) as image:
        return np.asarray(image)


def by_opencv(data: bytes) -> Values:
    """Return the values that OpenCV reads, colours in the order RGB."""
    values = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_UNCHANGED)
    if values.ndim == 3 and values.shape[2] in (3, 4):
        values = values[..., [2, 1, 0, 3][: values.shape[2]]]
    return values


def by_tifffile(data: bytes) -> Values:
    """Return the values that tifffile reads of the largest page."""
    import tifffile

    with tifffile.TiffFile(io.BytesIO(data)) as file:
        page = max(file.pages, key=lambda each: each.imagewidth * each.imagelength)
        values = page.asarray(maxworkers=1)
        return np.moveaxis(values, 0, -1) if page.axes.startswith("S") else values


def by_vips(data: bytes) -> Values:
    """Return the values that libvips reads of the largest page."""
    import pyvips

    image = pyvips.Image.new_from_buffer(data, "", fail_on="error")
    if (image.get("n-pages") if image.get_typeof("n-pages") else 1) > 1:
        pages = [pyvips.Image.new_from_buffer(data, "", page=number) for number in range(image.get("n-pages"))]
        image = max(pages, key=lambda each: each.width)
    return image.numpy()


def by_framedex(data: bytes) -> Values:
    """Return the values that Framedex takes from a file, before they are scaled; of more bands the first three."""
    from framedex.errors import CannotDecode
    from framedex.media import tiff

    try:
        with Image.open(io.BytesIO(data)) as image:
            tiff.seek_whole(image)
            return np.asarray(image)
    except (CannotDecode, OSError, ValueError):
        read = tiff.decode_values(data, tiff.read_directory(data))
    return read.values if read.alpha is None else np.dstack([read.values, read.alpha])


def is_read(found: Values, stored: Values, *, loss: int) -> bool:
    """Return whether values are those stored, or inverted ones of a file whose smallest value is white."""
    if found.shape != stored.shape:
        return False
    if found.dtype != stored.dtype and not (stored.dtype == bool or stored.dtype.kind == "f"):
        return False
    wanted, found = (each.astype(np.float64) if each.dtype.kind != "c" else each for each in (stored, found))
    if stored.dtype == bool:
        found = found > 0
    if loss:
        return bool(np.abs(found - wanted).mean() < loss)
    inverted = (
        np.iinfo(stored.dtype).max + np.iinfo(stored.dtype).min - wanted if stored.dtype.kind in "iu" else -wanted
    )
    return bool(np.array_equal(found, wanted, equal_nan=True) or np.array_equal(found, inverted, equal_nan=True))


READERS: dict[str, Callable[[bytes], Values]] = {
    "Pillow": by_pillow, "OpenCV": by_opencv, "tifffile": by_tifffile, "pyvips": by_vips, "Framedex": by_framedex,
}  # fmt: skip


def main() -> None:
    """Print the numbers of files that each reader reads, which it does not, and the times of three large ones."""
    kinds = list(files())
    for name, reader in READERS.items():
        if name in ("tifffile", "pyvips") and find_spec(name) is None:
            continue
        wrong, refused = [], []
        for kind, data, stored in kinds:
            try:
                found = reader(data)
            except Exception:
                refused.append(kind)
                continue
            is_cut = name == "Framedex" and stored.ndim == 3 and stored.shape[2] > 4
            if not is_read(found, stored[..., :3] if is_cut else stored, loss=3 * ("JPEG" in kind)):
                wrong.append(kind)
        print(f"{name}: {len(kinds) - len(wrong) - len(refused)} of {len(kinds)} kinds with the stored values")
        print(f"  refused: {len(refused)}: {'; '.join(refused)}\n  other values: {len(wrong)}: {'; '.join(wrong)}")
    print("Seconds of processor time for 3,000 × 2,000 pixels:")
    import tifffile

    for kind, options in (
        ("u2", {}),
        ("u2", {"compression": "lzw"}),
        ("f4", {"compression": "deflate", "predictor": 3}),
    ):
        out = io.BytesIO()
        tifffile.imwrite(out, values_of(kind, size=(2000, 3000)), rowsperstrip=64, **options)
        for name, reader in READERS.items():
            start = time.process_time()
            try:
                reader(out.getvalue())
            except Exception:
                continue
            print(f"  {kind} {options.get('compression', 'not packed')}: {name} {time.process_time() - start:.2f}")


if __name__ == "__main__":
    main()
