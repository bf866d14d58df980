"""Wrong labels: what Framedex lists beside cleanlab's flags, where 8 % of the labels were replaced by chance.

Kinds are photos of ImageNet by coarse group, those of animals alone, crops by class, and digits; labels with fewer than
five images are left out. *Agreement* is the share of labels that agree with those of the neighbours. cleanlab gets the
probabilities of cross-validated nearest neighbours on the same vectors, in an environment of its own. Figures are sums
over the seeds.
"""

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import parents  # noqa: F401 - makes the modules of the benchmarks importable
from halves import HALVES
from labelled import embed, labelled_images

from common import PINS, arguments, environment, require, run_worker, save, table, verdict
from framedex.analysis.label_entries import Labels
from framedex.analysis.labels import label_quality
from framedex.analysis.neighbour_lists import NeighbourGraph
from framedex.analysis.neighbours import nearest, unique_rows
from framedex.encoders import Encoder, OnnxEncoder
from framedex.encoders.gist import Gist

Vectors = npt.NDArray[np.float32]
Codes = npt.NDArray[np.int32]
Mask = npt.NDArray[np.bool_]
LEAST_MEMBERS, NEIGHBOURS = 5, 20
ANIMALS = {"fish", "bird", "reptile or amphibian", "arthropod", "dog", "mammal"}
MODEL = "models/mobilenetv2-12-int8.onnx"
WORKER = Path(__file__).with_name("mislabels_worker.py")
PRECISION = 0.8


def main() -> None:
    """Measure, print and write."""
    parser = arguments(__doc__)
    parser.add_argument("--share", type=float, default=0.08, help="of the labels that are replaced")
    parser.add_argument("--seeds", type=int, default=5, help="how many times")
    options = parser.parse_args()
    require(options.data, "models")
    python = environment(options.peers, "cleanlab")
    encoders: dict[str, Encoder] = {"gist": Gist(), "MobileNetV2": OnnxEncoder(options.data / MODEL)}
    result: dict[str, Any] = {}
    for half in HALVES:
        rows = {}
        for kind in labelled_images(options.data, half):
            for name, encoder in encoders.items():
                vectors, labels = embed(encoder, kind.pixels()), np.array(kind.labels)
                parts = {kind.name: np.ones(len(labels), bool)}
                if kind.name == "groups":
                    parts["animals"] = np.isin(labels, list(ANIMALS))
                for part, mask in parts.items():
                    true, chosen = _frequent(labels, mask)
                    rows[f"{part}, {name}"] = _measure(python, vectors[chosen], true, options.share, options.seeds)
        result[half] = rows
        _print(half, rows, options.share)
    _judge(result[HALVES[1]])
    save("quality-mislabels", {"share": options.share, "seeds": options.seeds, "halves": result})


def _frequent(labels: npt.NDArray[np.str_], mask: Mask) -> tuple[Codes, npt.NDArray[np.intp]]:
    """Return the codes of labels with enough images, and the images that have them."""
    names, counts = np.unique(labels[mask], return_counts=True)
    chosen = np.flatnonzero(mask & np.isin(labels, names[counts >= LEAST_MEMBERS]))
    return np.unique(labels[chosen], return_inverse=True)[1].astype(np.int32), chosen


def _measure(python: Path, vectors: Vectors, true: Codes, share: float, seeds: int) -> dict[str, Any]:
    given = np.stack([_flipped(true, share, seed) for seed in range(seeds)])
    wrong = given != true
    first, inverse = unique_rows(vectors)
    graph = nearest(vectors[first], k=NEIGHBOURS)
    quality = [_quality(graph, inverse, labels) for labels in given]
    with tempfile.TemporaryDirectory(prefix="bench-") as work:
        folder = Path(work)
        np.savez(folder / "labelled.npz", vectors=vectors, given=given)
        run_worker(python, "cleanlab", folder, script=WORKER)
        flags = np.load(folder / "flags.npy")
    listed = np.stack([each[0] for each in quality])
    return {
        "images": len(true),
        "labels": int(true.max()) + 1,
        "agreement": float(np.mean([each[1] for each in quality])),
        **_shares("", listed, wrong),
        **_shares("cleanlab ", flags, wrong),
    }


def _flipped(true: Codes, share: float, seed: int) -> Codes:
    """Return labels of which a share was replaced by other labels."""
    random, count = np.random.default_rng(seed), int(true.max()) + 1
    given = true.copy()
    wrong = random.choice(len(true), round(share * len(true)), replace=False)
    given[wrong] = (true[wrong] + random.integers(1, count, len(wrong))) % count
    return given


def _quality(graph: NeighbourGraph, inverse: Any, given: Codes) -> tuple[Mask, float]:
    labels = Labels(given, np.arange(len(given) + 1), int(given.max()) + 1)
    quality = label_quality(graph, inverse, labels)
    assert quality.agreement is not None, "there are labels"
    return np.isfinite(quality.mislabel_confidence), quality.agreement


def _shares(name: str, flags: Mask, wrong: Mask) -> dict[str, float | int | None]:
    found, right = int(flags.sum()), int((flags & wrong).sum())
    return {
        f"{name}flags": found,
        f"{name}precision": right / found if found else None,
        f"{name}recall": right / int(wrong.sum()),
    }


def _print(half: str, rows: Mapping[str, Any], share: float) -> None:
    print(f"\n{half} half; {share:.0%} of the labels replaced; {PINS['cleanlab'][0]}")
    headers = list(next(iter(rows.values())))
    print(table(["kind, encoder", *headers], [[name, *row.values()] for name, row in rows.items()]))


def _judge(rows: Mapping[str, Any]) -> None:
    print()
    for name, row in rows.items():
        if row["flags"]:
            print(verdict(f"precision of what is listed, {name}", row["precision"], PRECISION))
        else:
            print(f"none listed, {name}: agreement {row['agreement']:.2f}")


if __name__ == "__main__":
    main()
