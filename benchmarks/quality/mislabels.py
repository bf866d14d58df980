"""Wrong labels: rankings and estimated rates at 5 to 30 % wrong labels of three kinds, beside cleanlab and SimiFeat.

Kinds of images are photos of ImageNet by coarse group, crops by class, and digits; labels with fewer than eight images
are left out. Encoders are MobileNetV2 and, for digits, a network with one hidden layer that was trained on the other
half. Noise is *uniform*; by *class*, where each class has a rate and other classes of its own; or *near*, where it is
the class with the nearest mean. Framedex ranks by ``label_noise``, and by the support that an index stores (*votes*).
cleanlab gets the probabilities of cross-validated nearest neighbours and of logistic regression on the same vectors,
in an environment of its own. SimiFeat's rule compares the label with the labels of the ten nearest neighbours.
Figures are means over the seeds.
"""

import statistics
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import parents  # noqa: F401 - makes the modules of the benchmarks importable
from halves import HALVES
from labelled import digits_of, embed, labelled_images

from common import PINS, arguments, environment, require, run_worker, save, table, verdict
from framedex.analysis.label_entries import Labels
from framedex.analysis.label_noise import Evidence, label_noise
from framedex.analysis.labels import label_quality
from framedex.analysis.neighbour_lists import NeighbourGraph
from framedex.analysis.neighbours import nearest
from framedex.encoders import OnnxEncoder

Vectors = npt.NDArray[np.float32]
Codes = npt.NDArray[np.int32]
Mask = npt.NDArray[np.bool_]
LEAST_MEMBERS, NEIGHBOURS = 8, 20
MODEL = "models/mobilenetv2-12-int8.onnx"
WORKER = Path(__file__).with_name("mislabels_worker.py")
NOISE, SHARES = ("uniform", "class", "near"), (0.05, 0.1, 0.2, 0.3)
AT_LEAST, WITHIN = 0.99, 0.02  # AUROC at the least share; of the estimated rate
MOST = 0.48  # of the labels of a class, so that right ones stay the most


def main() -> None:
    """Measure, print and write."""
    parser = arguments(__doc__)
    parser.add_argument("--seeds", type=int, default=2, help="how many times")
    options = parser.parse_args()
    require(options.data, "models")
    python = environment(options.peers, "cleanlab")
    encoder = OnnxEncoder(options.data / MODEL)
    result: dict[str, Any] = {}
    for half, other in zip(HALVES, reversed(HALVES), strict=True):
        kinds = {
            f"{kind.name}, MobileNetV2": _frequent(embed(encoder, kind.pixels()), np.array(kind.labels))
            for kind in labelled_images(options.data, half)
        }
        kinds["digits, network"] = _hidden(half, other)
        result[half] = {name: _measure(python, *each, options.seeds) for name, each in kinds.items()}
        _print(half, result[half])
    for name in ("digits, MobileNetV2", "digits, network"):
        _judge(name, result[HALVES[1]][name])
    save("quality-mislabels", {"seeds": options.seeds, "halves": result})


def _frequent(vectors: Vectors, labels: npt.NDArray[np.str_]) -> tuple[Vectors, Codes]:
    """Return the embeddings of images whose label has enough of them, and the codes of the labels."""
    names, counts = np.unique(labels, return_counts=True)
    chosen = np.isin(labels, names[counts >= LEAST_MEMBERS])
    return vectors[chosen], np.unique(labels[chosen], return_inverse=True)[1].astype(np.int32)


def _hidden(half: str, other: str) -> tuple[Vectors, Codes]:
    """Return the hidden layer of a network that learned the digits of the other half, and the digits."""
    from sklearn.neural_network import MLPClassifier

    network = MLPClassifier((64,), max_iter=1000, random_state=0).fit(*digits_of(other))
    pixels, digits = digits_of(half)
    hidden = np.maximum(pixels @ network.coefs_[0] + network.intercepts_[0], 0)
    return (hidden / np.linalg.norm(hidden, axis=1, keepdims=True)).astype(np.float32), digits.astype(np.int32)


def _measure(python: Path, vectors: Vectors, true: Codes, seeds: int) -> dict[str, dict[str, float]]:
    """Return the mean figures of each kind and share of noise."""
    cases = [(noise, share, seed) for noise in NOISE for share in SHARES for seed in range(seeds)]
    given = np.stack([_noisy(vectors, true, *case) for case in cases])
    graph = nearest(vectors, k=NEIGHBOURS)
    with tempfile.TemporaryDirectory(prefix="bench-") as work:
        folder = Path(work)
        np.savez(folder / "labelled.npz", vectors=vectors, given=given)
        run_worker(python, "cleanlab", folder, script=WORKER)
        cleanlab = dict(np.load(folder / "scores.npz"))
    figures: dict[str, list[dict[str, float]]] = {}
    for place, (noise, share, _) in enumerate(cases):
        scores = {name: values[place] for name, values in cleanlab.items()}
        figures.setdefault(f"{noise} {share:.0%}", []).append(_figures(graph, vectors, true, given[place], scores))
    return {
        name: {each: statistics.mean(row[each] for row in rows) for each in rows[0]} for name, rows in figures.items()
    }


def _figures(
    graph: NeighbourGraph, vectors: Vectors, true: Codes, given: Codes, cleanlab: Mapping[str, Any]
) -> dict[str, float]:
    count, wrong = len(given), given != true
    labels, each = Labels(given, np.arange(count + 1), int(true.max()) + 1), np.arange(count)
    quality = label_quality(graph, each, labels)
    evidence = frozenset({Evidence.NEIGHBOURS, Evidence.HEAD})
    found = label_noise(graph, each, labels, evidence=evidence, vectors=vectors)
    assert found is not None, "there are labels"
    score = np.empty(count)
    score[found.item] = found.score
    listed, first, n_wrong = np.isfinite(quality.mislabel_confidence), wrong[found.item], int(wrong.sum())
    return {
        "AUROC": _auroc(score, wrong),
        "votes": _auroc(-quality.support, wrong),
        "SimiFeat": _auroc(-_simifeat(graph, given, labels.count), wrong),
        "cleanlab, neighbours": _auroc(cleanlab["neighbours"], wrong),
        "cleanlab, regression": _auroc(cleanlab["regression"], wrong),
        "wrong": n_wrong,
        "listed": int(listed.sum()),
        "right among them": int((listed & wrong).sum()),
        "precision": float(first[:n_wrong].mean()),
        "expected": float(found.probability[:n_wrong].mean()),
        "rate": n_wrong / count,
        "estimate": found.rate,
        "off": abs(found.rate - n_wrong / count),
        "low": found.low,
        "high": found.high,
        "uncertain": float(found.is_uncertain),
        "cleanlab's estimate": float(cleanlab["rate"]),
    }


def _simifeat(graph: NeighbourGraph, given: Codes, labels: int) -> npt.NDArray[np.float64]:
    """Return the ranking score of SimiFeat: the cosine of the given label and those of ten neighbours."""
    votes = np.eye(labels)[given[graph.rows[:, :10]]].mean(axis=1)
    return np.asarray(votes[np.arange(len(given)), given] / np.linalg.norm(votes, axis=1))


def _auroc(scores: npt.NDArray[Any], wrong: Mask) -> float:
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(wrong, scores))


def _noisy(vectors: Vectors, true: Codes, noise: str, share: float, seed: int) -> Codes:
    """Return labels of which a share was replaced by other labels."""
    random, count = np.random.default_rng(seed), int(true.max()) + 1
    given = true.copy()
    if noise == "class":
        rates, chances = random.uniform(0.1, 1.9, count), random.dirichlet(np.full(count, 0.5), count)
        for _ in range(20):  # until the mean is the share, as far as no class has more than the most
            rates = np.minimum(rates * share / rates[true].mean(), MOST)
        np.fill_diagonal(chances, 0)
        for place in np.flatnonzero(random.random(len(true)) < rates[true]):
            row = chances[true[place]]
            given[place] = random.choice(count, p=row / row.sum())
        return given
    wrong = random.choice(len(true), round(share * len(true)), replace=False)
    if noise == "uniform":
        given[wrong] = (true[wrong] + random.integers(1, count, len(wrong))) % count
        return given
    means = np.stack([vectors[true == code].mean(axis=0) for code in range(count)])
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    similarity = means @ means.T
    np.fill_diagonal(similarity, -2)
    given[wrong] = similarity.argmax(axis=1)[true[wrong]]
    return given


def _print(half: str, kinds: Mapping[str, Mapping[str, Mapping[str, float]]]) -> None:
    print(f"\n{half} half; {PINS['cleanlab'][0]}")
    rows = [
        [name, noise, *(f"{value:.4g}" for value in figures.values())]
        for name, cases in kinds.items()
        for noise, figures in cases.items()
    ]
    headers = list(next(iter(next(iter(kinds.values())).values())))
    print(table(["kind, encoder", "noise", *headers], rows))


def _judge(name: str, cases: Mapping[str, Mapping[str, float]]) -> None:
    print()
    for noise, row in cases.items():
        best = max(row["SimiFeat"], row["cleanlab, neighbours"], row["cleanlab, regression"])
        print(
            verdict(f"AUROC, {name}, {noise}, against the best of the others", round(row["AUROC"], 4), round(best, 4))
        )
        if noise.endswith(f" {SHARES[0]:.0%}"):
            print(verdict(f"AUROC, {name}, {noise}", round(row["AUROC"], 4), AT_LEAST))
        is_near = "within" if row["off"] <= WITHIN else "ABOVE"
        print(f"estimate, {name}, {noise}: off by {row['off']:.3f}, {is_near} {WITHIN}")


if __name__ == "__main__":
    main()
