"""Relevance: whether a match is one, against labels, and whether queries without anything related get no match.

Of each kind of labelled images, every image is a query among the others. *Precision* is the share of matches (relevance
0.5 or more) with the label of the query, *recall* the share of images with its label that match. Then the images of the
query's label are taken out, and nothing should match: *false queries* is the share of queries that get a match. Crops
are compared with those of other photos, since boxes of one photo overlap and show the same thing under two labels. The
last column includes them. Photos of ImageNet, one of each class, have hardly anything related: *matches* is the median
number per query.

The small CLIP of the tests searches drawn shapes by texts. The distances of texts that fit an image, of partly right
ones, and of those without any right word show the meaning of a cosine distance with this encoder.
"""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import parents  # noqa: F401 - first, since it makes the next ones importable
from halves import HALVES, SEED
from labelled import embed, labelled_images, read_all, single_photos

from common import ROOT, arguments, require, save, table, verdict
from framedex.analysis.relevance import measure_relevance
from framedex.encoders import Encoder, OnnxEncoder, OpenClipEncoder
from framedex.encoders.gist import Gist

Vectors = npt.NDArray[np.float32]
Mask = npt.NDArray[np.bool_]
MATCH, PAIRED = 0.5, 512
PRECISION, FALSE = 0.7, 0.1
SHAPES = 288  # images of a half
MODEL = "models/mobilenetv2-12-int8.onnx"


def main() -> None:
    """Measure, print and write."""
    options = arguments(__doc__, peers=False).parse_args()
    require(options.data, "models")
    encoders: dict[str, Encoder] = {"gist": Gist(), "MobileNetV2": OnnxEncoder(options.data / MODEL)}
    clip = OpenClipEncoder(ROOT / "tests/checkpoints/shapes-clip", device="cpu")
    result: dict[str, Any] = {}
    for half in HALVES:
        labelled = labelled_images(options.data, half)
        rows = {
            f"{kind.name}, {name}": _of_labels(embed(encoder, kind.pixels()), kind.labels, kind.photos)
            for kind in labelled
            for name, encoder in encoders.items()
        }
        images, labels, texts, fits, right = _shapes(clip, half)
        rows["shapes, small CLIP"] = _of_labels(images, labels, list(map(str, range(len(labels)))))
        rows["texts, small CLIP"] = _of_texts(texts @ images.T, fits)
        single = {name: _single(options.data, encoder, half) for name, encoder in encoders.items()}
        distances = _distances(texts @ images.T, fits, right)
        result[half] = {"labels": rows, "single": single, "distances": distances}
        _print(half, rows, single, distances)
    _judge(result[HALVES[1]])
    save("quality-relevance", result)


def _limit(similarity: Vectors) -> float:
    """Return the similarity of a match among rows with these similarities to one another, from a sample of pairs."""
    rows = np.random.default_rng(0).permutation(len(similarity))[:PAIRED]
    pairs = similarity[np.ix_(rows, rows)][np.triu_indices(len(rows), 1)]
    return measure_relevance(pairs, len(similarity)).min_similarity(MATCH)


def _of_labels(vectors: Vectors, labels: list[str], photos: list[str]) -> dict[str, float | int | None]:
    similarity, label, photo = vectors @ vectors.T, np.array(labels), np.array(photos)
    others = photo[:, None] != photo
    same = (label[:, None] == label) & others
    matches = (similarity >= _limit(similarity)) & others
    false: list[bool] = []
    overlapping: list[bool] = []
    for each in np.unique(label):
        rest = label != each
        limit = _limit(similarity[np.ix_(rest, rest)])
        false += ((similarity >= limit) & others)[np.ix_(~rest, rest)].any(axis=1).tolist()
        overlapping += (similarity >= limit)[np.ix_(~rest, rest)].any(axis=1).tolist()
    return _figures(matches, same, false, overlapping)


def _of_texts(similarity: Vectors, fits: Mask) -> dict[str, float | int | None]:
    matches, false = np.zeros_like(fits), []
    for query, own in enumerate(fits):
        matches[query] = _text_matches(similarity[query])
        false.append(bool(_text_matches(similarity[query][~own]).any()))
    return _figures(matches, fits, false, false)


def _text_matches(similarity: Vectors) -> Mask:
    return np.asarray(measure_relevance(similarity, len(similarity)).of(similarity) >= MATCH)


def _figures(matches: Mask, same: Mask, false: list[bool], overlapping: list[bool]) -> dict[str, float | int | None]:
    found = int(matches.sum())
    return {
        "queries": len(matches),
        "matches": found,
        "precision": int((matches & same).sum()) / found if found else None,
        "recall": int((matches & same).sum()) / int(same.sum()),
        "queries with a match": float(matches.any(axis=1).mean()),
        "false queries": float(np.mean(false)),
        "with the same photo": float(np.mean(overlapping)),
    }


def _single(data: Path, encoder: Encoder, half: str) -> dict[str, float]:
    """Return the matches per query among the photos of a half, and among all photos of ImageNet."""
    found = {}
    photos, own = single_photos(data), set(single_photos(data, half))
    every = embed(encoder, read_all(photos, encoder))
    for name, vectors in (("half", every[[path in own for path in photos]]), ("all", every)):
        similarity = vectors @ vectors.T
        limit, random = _limit(similarity), 1 - similarity[np.triu_indices(len(vectors), 1)]
        matches = ((similarity >= limit) & ~np.eye(len(vectors), dtype=bool)).sum(axis=1)
        found |= {
            f"{name}, median": float(np.median(matches)),
            f"{name}, mean": float(matches.mean()),
            f"{name}, distance of a match": 1 - limit,
            f"{name}, distance of random pairs": float(np.median(random)),
        }
    return found


def _shapes(clip: OpenClipEncoder, half: str) -> tuple[Vectors, list[str], Vectors, Mask, npt.NDArray[np.int64]]:
    """Return images and their labels, texts, whether each text fits each image, and the number of its wrong words."""
    sys.path.append(str(ROOT))
    from tests.shapes import COLOURS, PAIRS, Scene, draw, gallery, queries
    from tests.shapes import SHAPES as NAMES

    rng = np.random.default_rng([SEED, half == HALVES[1]])
    scenes = [scene for _ in range(SHAPES // 144) for scene in gallery()]
    images = embed(clip, (draw(scene, rng) for scene in scenes))
    asked = [*queries(PAIRS), *(Scene(colour, None) for colour in COLOURS), *(Scene(None, shape) for shape in NAMES)]
    order = np.random.default_rng(SEED).permutation(len(asked))
    middle = len(asked) // 2
    asked = [asked[place] for place in sorted(order[:middle] if half == HALVES[0] else order[middle:])]
    wrong = [
        [
            sum(word not in (None, seen) for word, seen in zip(*map(_words, (query, scene)), strict=True))
            for scene in scenes
        ]
        for query in asked
    ]
    words = [sum(word is not None for word in _words(query)) for query in asked]
    right = np.array(words)[:, None] - np.array(wrong)
    fits = np.array([[query.fits(scene) for scene in scenes] for query in asked])
    labels = [f"{scene.colour} {scene.shape}" for scene in scenes]
    return images, labels, clip.encode_texts([query.caption for query in asked]), fits, right


def _words(scene: Any) -> list[str | None]:
    return list(vars(scene).values())


def _distances(similarity: Vectors, fits: Mask, right: npt.NDArray[np.int64]) -> dict[str, list[float]]:
    """Return the 5th, 50th and 95th percentile of cosine distances of texts, by how well they fit."""
    groups = {"fits": fits, "partly right": ~fits & (right > 0), "no word right": right == 0}
    return {name: np.quantile(1 - similarity[mask], (0.05, 0.5, 0.95)).tolist() for name, mask in groups.items()}


def _print(half: str, rows: Mapping[str, Any], single: Mapping[str, Any], distances: Mapping[str, Any]) -> None:
    print(f"\n{half} half")
    headers = list(next(iter(rows.values())))
    print(table(["kind, encoder", *headers], [[name, *row.values()] for name, row in rows.items()]))
    print()
    headers = list(next(iter(single.values())))
    print(
        table(["photos, one of each class: matches", *headers], [[name, *row.values()] for name, row in single.items()])
    )
    print()
    print(table(["distance of texts", "5 %", "50 %", "95 %"], [[name, *row] for name, row in distances.items()]))


def _judge(result: Mapping[str, Any]) -> None:
    print()
    for name, row in result["labels"].items():
        if "gist" not in name:
            matched = row["precision"] is not None
            print(verdict(f"precision, {name}", row["precision"], PRECISION) if matched else f"no match, {name}")
        print(verdict(f"false queries, {name}", row["false queries"], FALSE, at_most=True))
    print(verdict("median matches of 250 photos, gist", result["single"]["gist"]["all, median"], 0, at_most=True))


if __name__ == "__main__":
    main()
