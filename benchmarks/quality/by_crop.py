"""Search by crops: is the source of a crop the first result of ``ds.similar``, and the first copy of ``ds.copies_of``?

Photos of a half, with 1,000 others, are a dataset. Parts of half and of a quarter of the area, at random places, are
cut out and saved as JPEG. Each is searched for by both calls, and by its embedding alone for comparison. Crops of
photos that the dataset lacks show false copies. With ``--fill`` the dataset has that many images, most of them
generated. The first search makes the index, and is timed apart. Copies are then not verified at its creation.

    python benchmarks/quality/by_crop.py [--half tuning] [--photos 200] [--fill 100000]
"""

import io
import multiprocessing
import tempfile
import time
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import cv2
import numpy as np
import parents  # noqa: F401 - makes the modules of the benchmarks importable
from halves import HALVES, half, photos_of
from image_edits import original
from PIL import Image

from common import arguments, save, table, verdict
from framedex import Dataset, Workspace
from framedex.settings import Settings

SEED, QUALITY = 30, 90
AREAS = {0.5: 0.95, 0.25: 0.8}
"""Areas of crops, and the share of sources that should come first."""
OTHERS = "photos/flickr8k-1000"
MOST_MS = 150
"""Time of a search among 100,000 images."""


def main() -> None:
    """Measure, print and write."""
    parser = arguments(__doc__, peers=False)
    parser.add_argument("--half", choices=HALVES, default=HALVES[1])
    parser.add_argument("--photos", type=int, default=200, help="photos that are cropped, at most")
    parser.add_argument("--others", type=int, default=1000, help="further photos of the dataset, at most")
    parser.add_argument("--fill", type=int, default=0, help="images of the dataset, at least")
    parser.add_argument("--absent", type=int, default=50, help="photos that the dataset lacks, and that are cropped")
    options = parser.parse_args()
    photos = [original(Image.open(path)) for path in half(options.data, options.half)]
    others = [original(Image.open(path)) for path in photos_of(options.data, OTHERS)]
    inside, outside = others[: -options.absent][: options.others], others[-options.absent :]
    random = np.random.default_rng(SEED)
    chosen = random.permutation(len(photos))[: options.photos].tolist()
    rows: list[dict[str, Any]] = []
    settings = Settings(copy_budget_ms=0) if options.fill else Settings()
    with (
        tempfile.TemporaryDirectory(prefix="bench-") as work,
        Workspace(Path(work) / "ws", settings=settings) as workspace,
    ):
        folder = Path(work) / "photos"
        folder.mkdir()
        for number, photo in enumerate([*photos, *inside]):
            (folder / f"o{number:04d}.jpg").write_bytes(_jpeg(photo))
        with multiprocessing.Pool() as pool:
            missing = range(max(0, options.fill - len(photos) - len(inside)))
            pool.map(partial(_write_generated, folder), missing, chunksize=200)
        dataset = workspace.create_dataset("crops", folder, "gist")
        first_ms = {}
        for name, search in (("similar", dataset.similar), ("copies_of", dataset.copies_of)):
            started = time.perf_counter()
            list(search(_crop(outside[0], 0.5, random)))
            first_ms[name] = (time.perf_counter() - started) * 1000
        print(f"{len(dataset.view):,} images; first search, ms: {first_ms}", flush=True)
        for area, aim in AREAS.items():
            rows.append(_row(dataset, [(place, photos[place]) for place in chosen], outside, area, random))
            for call in ("similar", "copies_of"):
                name = f"{options.half}: source of {area:.0%} of the area first by {call}"
                print(verdict(name, rows[-1][f"first by {call}"], aim), flush=True)
                print(f"{rows[-1][f'{call} ms']:.0f} ms (aim: at most {MOST_MS} at 100,000)", flush=True)
    print(table(list(rows[0]), [list(row.values()) for row in rows]))
    images = max(options.fill, len(photos) + len(inside))
    save(f"quality-by-crop-{options.half}-{images}", {"images": images, "first search ms": first_ms, "rows": rows})


def _row(
    dataset: Dataset, photos: list[tuple[int, Image.Image]], outside: list[Image.Image], area: float, random: Any
) -> dict[str, Any]:
    """Return what searches by crops of one area find."""
    first = found = wrong = shown = nearest = 0
    times: dict[str, list[float]] = {"similar": [], "copies_of": []}
    for number, photo in photos:
        data, name = _crop(photo, area, random), f"o{number:04d}.jpg"
        started = time.perf_counter()
        results = dataset.similar(data).to_arrow(["image_filename", "copy"]).to_pylist()
        times["similar"].append(time.perf_counter() - started)
        shown += results[0]["image_filename"] == name and results[0]["copy"] is not None
        data = _crop(photo, area, random)  # another one, as copies of the first are known now
        vector = dataset.similar(data, limit=1, diversity=1e-9)
        nearest += vector[0]["image_filename"] == name
        started = time.perf_counter()
        names = [copy.path for copy in dataset.copies_of(data)]
        times["copies_of"].append(time.perf_counter() - started)
        first += names[:1] == [name]
        found += name in names
        wrong += len(set(names) - {name})
    false = sum(len(dataset.copies_of(_crop(photo, area, random))) for photo in outside)
    count = len(photos)
    return {
        "area": area, "crops": count, "first by similar": shown / count, "first by copies_of": first / count,
        "found": found / count, "other copies": wrong, "copies of absent photos": false,
        "first by embedding": nearest / count,
        **{f"{call} ms": median(seconds) * 1000 for call, seconds in times.items()},
    }  # fmt: skip


def _write_generated(folder: Path, number: int) -> None:
    """Write an image with structure at several sizes, which no other one shows."""
    random = np.random.default_rng([SEED, number])
    width, height = ((320, 240), (240, 320), (320, 320))[number % 3]
    pixels = np.zeros((height, width, 3), np.float32)
    for weight, side in zip((0.4, 0.25, 0.2, 0.15), (3, 7, 16, 40), strict=True):
        layer = random.integers(0, 256, (side, side, 3)).astype(np.float32)
        pixels += weight * cv2.resize(layer, (width, height), interpolation=cv2.INTER_CUBIC)
    pixels = np.clip((pixels - 128) * 1.6 + 128, 0, 255).astype(np.uint8)
    cv2.imwrite(str(folder / f"g{number:06d}.jpg"), pixels, [cv2.IMWRITE_JPEG_QUALITY, QUALITY])


def _crop(image: Image.Image, area: float, random: Any) -> bytes:
    """Return a random part of an image, of its aspect, as JPEG."""
    width, height = (round(side * area**0.5) for side in image.size)
    left, top = (
        int(random.integers(0, all_of - part + 1)) for all_of, part in zip(image.size, (width, height), strict=True)
    )
    return _jpeg(image.crop((left, top, left + width, top + height)))


def _jpeg(image: Image.Image) -> bytes:
    file = io.BytesIO()
    image.save(file, "JPEG", quality=QUALITY)
    return file.getvalue()


if __name__ == "__main__":
    main()
