"""Clusters: Framedex's average linkage against scikit-learn's, on 5,000 vectors of three kinds, at five cuts each.

Both cut the same distances. scikit-learn keeps clusters apart whose distance is the cut or more, Framedex those whose
distance is more: no distance here is exactly a cut. Agreement is the F1 of the pairs of vectors that share a cluster.
"""

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt
from PIL import Image, ImageEnhance

from common import arguments, photos, save, table, verdict
from framedex.analysis.linkage import average_linkage
from framedex.analysis.neighbours import nearest, unique_rows
from framedex.encoders.gist import Gist
from framedex.media.decode import decode
from index_agreement import pair_f1, sklearn_labels

AIM = 0.99
SEED = 20240229
MOST_PIXELS = 100_000_000
UNIFORM_DIMENSION, UNIFORM_CUTS = 32, (0.4, 0.5, 0.6, 0.7, 0.8)
CLUSTERED_DIMENSION, CLUSTERED_CUTS = 128, (0.06, 0.1, 0.14, 0.18, 0.25)
Vectors = npt.NDArray[np.float32]
Labels = npt.NDArray[np.int64]
Pixels = npt.NDArray[np.uint8]
Random = np.random.Generator


@dataclass(frozen=True)
class Cut:
    """How two partitions agree at one cut."""

    kind: str
    cut: float
    clusters: int
    sklearn_clusters: int
    largest: int
    pair_f1: float


@dataclass(frozen=True)
class Times:
    """Seconds of both on one kind of vectors."""

    kind: str
    framedex_s: float
    sklearn_s: float


def main() -> None:
    """Measure, print and write."""
    parser = arguments(__doc__, peers=False)
    parser.add_argument("--count", type=int, default=5000, help="vectors of each kind")
    options = parser.parse_args()
    paths = photos(options.data)
    cuts: list[Cut] = []
    times: list[Times] = []
    for kind, vectors, distances in _kinds(paths, options.count):
        found, seconds = _compare(kind, vectors, distances)
        cuts, times = [*cuts, *found], [*times, seconds]
        print(f"{kind}: {len(vectors):,} vectors of {vectors.shape[1]} values done", flush=True)
    _print_all(cuts, times)
    save("clusters", {"cuts": [asdict(cut) for cut in cuts], "times": [asdict(each) for each in times]})


def _kinds(paths: Sequence[Path], count: int) -> Iterator[tuple[str, Vectors, Sequence[float]]]:
    """Yield (name, vectors, cuts)."""
    yield "clustered", _clustered(count), CLUSTERED_CUTS
    yield "uniform", _uniform(count), UNIFORM_CUTS
    yield "photos", _embeddings(paths, count), Gist.thresholds


def _unit(vectors: npt.NDArray[np.floating[Any]]) -> Vectors:
    return np.ascontiguousarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), dtype=np.float32)


def _uniform(count: int) -> Vectors:
    """Return vectors uniform on the sphere, where nothing is clustered and neighbours are of little use."""
    return _unit(np.random.default_rng(SEED).normal(size=(count, UNIFORM_DIMENSION)))


def _clustered(count: int) -> Vectors:
    """Return clusters of many sizes and widths that stand in larger clusters."""
    random = np.random.default_rng(SEED)
    scale = 1 / np.sqrt(CLUSTERED_DIMENSION)
    regions = random.normal(scale=scale, size=(30, CLUSTERED_DIMENSION))
    centres = regions[random.integers(0, 30, 300)] + random.normal(scale=0.5 * scale, size=(300, CLUSTERED_DIMENSION))
    share = random.pareto(1.2, 300) + 0.1
    cluster = random.choice(300, size=count, p=share / share.sum())
    width = random.uniform(0.1, 0.45, 300)[cluster, None] * scale
    return _unit(centres[cluster] + width * random.normal(size=(count, CLUSTERED_DIMENSION)))


def _embeddings(paths: Sequence[Path], count: int) -> Vectors:
    """Return gist embeddings of the photos, and of changed versions of them in turns, until there are enough."""
    gist = Gist()
    jobs = [(paths[place % len(paths)], place // len(paths), place) for place in range(count)]
    with ThreadPoolExecutor() as pool:
        prepared = list(pool.map(lambda job: gist.prepare(_changed(*job)), jobs))
    return np.concatenate([gist.encode_images(np.stack(prepared[at : at + 64])) for at in range(0, count, 64)])


def _changed(path: Path, turn: int, seed: int) -> Pixels:
    """Return a photo: in the first turn as it is, then flipped, cropped and with other colours."""
    pixels = decode(path.read_bytes(), max_pixels=MOST_PIXELS, detail=Gist.min_side_px * 4).pixels
    random = np.random.default_rng((SEED, seed))
    changes = (lambda same, _: same, _flipped, _cropped, _coloured)
    return changes[turn % len(changes)](pixels, random)


def _flipped(pixels: Pixels, _: Random) -> Pixels:
    return np.ascontiguousarray(pixels[:, ::-1])


def _cropped(pixels: Pixels, random: Random) -> Pixels:
    """Return a part that has 75 to 95 % of both sides."""
    height, width = (np.array(pixels.shape[:2]) * random.uniform(0.75, 0.95)).astype(int)
    top = random.integers(0, pixels.shape[0] - height + 1)
    left = random.integers(0, pixels.shape[1] - width + 1)
    return np.ascontiguousarray(pixels[top : top + height, left : left + width])


def _coloured(pixels: Pixels, random: Random) -> Pixels:
    """Return other brightness, contrast, saturation and a turned hue."""
    image = Image.fromarray(pixels)
    for change in (ImageEnhance.Brightness, ImageEnhance.Contrast, ImageEnhance.Color):
        image = change(image).enhance(random.uniform(0.6, 1.4))
    hsv = cv2.cvtColor(np.asarray(image), cv2.COLOR_RGB2HSV)
    hsv[..., 0] = (hsv[..., 0].astype(int) + random.integers(-10, 11)) % 180
    return np.asarray(cv2.cvtColor(hsv, cv2.COLOR_HSV2RGB), dtype=np.uint8)


def _compare(kind: str, vectors: Vectors, cuts: Sequence[float]) -> tuple[list[Cut], Times]:
    started = time.perf_counter()
    ours = _framedex(vectors, cuts)
    between = time.perf_counter()
    theirs = sklearn_labels(vectors, cuts)
    ended = time.perf_counter()
    found = [
        Cut(
            kind,
            cut,
            len(np.unique(ours[:, level])),
            len(np.unique(theirs[:, level])),
            int(np.bincount(ours[:, level]).max()),
            pair_f1(ours[:, level], theirs[:, level]),
        )
        for level, cut in enumerate(cuts)
    ]
    return found, Times(kind, between - started, ended - between)


def _framedex(vectors: Vectors, cuts: Sequence[float]) -> Labels:
    """Return labels by row and cut: neighbours, then all five cuts."""
    first, inverse = unique_rows(vectors)
    distinct = vectors[first]
    weights = np.bincount(inverse, minlength=len(first))
    return average_linkage(distinct, weights, nearest(distinct), cuts)[inverse].astype(np.int64)


def _print_all(cuts: Sequence[Cut], times: Sequence[Times]) -> None:
    print()
    rows = [
        [each.kind, each.cut, each.clusters, each.sklearn_clusters, each.largest, f"{each.pair_f1:.6f}"]
        for each in cuts
    ]
    print(table(["vectors", "cut", "clusters", "scikit-learn", "largest", "pair F1"], rows))
    print()
    headers = ["vectors", "Framedex s", "scikit-learn s", "times as fast"]
    print(
        table(
            headers, [[each.kind, each.framedex_s, each.sklearn_s, each.sklearn_s / each.framedex_s] for each in times]
        )
    )
    print()
    for kind in dict.fromkeys(each.kind for each in cuts):
        print(verdict(f"least pair F1 of {kind}", min(each.pair_f1 for each in cuts if each.kind == kind), AIM))


if __name__ == "__main__":
    main()
