"""Search by crops: is the source of a crop among the copies that ``ds.copies_of`` finds, and is it the first one?

Photos of a half, with 1,000 others, are a dataset. Parts of half and of a quarter of the area, at random places, are
cut out and saved as JPEG. Each is searched for by ``copies_of``, and by ``similar`` for comparison. Crops of photos
that the dataset lacks show false copies.

    python benchmarks/quality/by_crop.py [--half tuning] [--photos 200]
"""

import io
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import parents  # noqa: F401 - makes the modules of the benchmarks importable
from halves import HALVES, half, photos_of
from image_edits import original
from PIL import Image

from common import arguments, save, table, verdict
from framedex import Dataset, Workspace

SEED, QUALITY = 30, 90
AREAS = {0.5: 0.95, 0.25: 0.8}
"""Areas of crops, and the share of sources that should come first."""
OTHERS = "photos/flickr8k-1000"


def main() -> None:
    """Measure, print and write."""
    parser = arguments(__doc__, peers=False)
    parser.add_argument("--half", choices=HALVES, default=HALVES[1])
    parser.add_argument("--photos", type=int, default=200, help="photos that are cropped, at most")
    parser.add_argument("--others", type=int, default=1000, help="further photos of the dataset, at most")
    parser.add_argument("--absent", type=int, default=50, help="photos that the dataset lacks, and that are cropped")
    options = parser.parse_args()
    photos = [original(Image.open(path)) for path in half(options.data, options.half)]
    others = [original(Image.open(path)) for path in photos_of(options.data, OTHERS)]
    inside, outside = others[: -options.absent][: options.others], others[-options.absent :]
    random = np.random.default_rng(SEED)
    chosen = random.permutation(len(photos))[: options.photos].tolist()
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="bench-") as work, Workspace(Path(work) / "ws") as workspace:
        folder = Path(work) / "photos"
        folder.mkdir()
        for number, photo in enumerate([*photos, *inside]):
            (folder / f"o{number:04d}.jpg").write_bytes(_jpeg(photo))
        dataset = workspace.create_dataset("crops", folder, "gist")
        for area, aim in AREAS.items():
            rows.append(_row(dataset, [(place, photos[place]) for place in chosen], outside, area, random))
            print(
                verdict(f"{options.half}: source of {area:.0%} of the area first", rows[-1]["first"], aim), flush=True
            )
    print(table(list(rows[0]), [list(row.values()) for row in rows]))
    save(f"quality-by-crop-{options.half}", {"photos": len(photos) + len(inside), "rows": rows})


def _row(
    dataset: Dataset, photos: list[tuple[int, Image.Image]], outside: list[Image.Image], area: float, random: Any
) -> dict[str, Any]:
    """Return what searches by crops of one area find."""
    first = found = wrong = nearest = 0
    seconds: list[float] = []
    for number, photo in photos:
        data, name = _crop(photo, area, random), f"o{number:04d}.jpg"
        started = time.perf_counter()
        names = [copy.path for copy in dataset.copies_of(data)]
        seconds.append(time.perf_counter() - started)
        first += names[:1] == [name]
        found += name in names
        wrong += len(set(names) - {name})
        nearest += dataset.similar(data, limit=1)[0]["image_filename"] == name
    false = sum(len(dataset.copies_of(_crop(photo, area, random))) for photo in outside)
    count = len(photos)
    return {
        "area": area, "crops": count, "first": first / count, "found": found / count, "other copies": wrong,
        "copies of absent photos": false, "first by similar": nearest / count, "median ms": median(seconds) * 1000,
    }  # fmt: skip


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
