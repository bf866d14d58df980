"""Order: clusters of a dataset against those of the same rows in another order, with another seed, and without 1 %.

Of clustered vectors, of the same under noise, and of embeddings of changed photos by MobileNetV2 and by ``gist``, at
five cuts each. Agreement is the F1 of the pairs of rows that share a cluster. Up to some rows, clusters are also
compared with those of all distances and with scikit-learn's, and those of all distances without 1 % with those of all
rows. Processor time is that of neighbours and clusters, and with ``--before`` that of other sources. Another part adds
5 % of the rows and counts the rows whose cluster keeps its number, and those for which any numbers of the new clusters
could.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import parents  # isort: skip
from common import RESULTS, ROOT, arguments, photos, save, table, verdict
from framedex.encoders.gist import Gist
from index_agreement import pair_f1, sklearn_labels
from index_jobs import CUTS, photo_embeddings
from photo_versions import versions
from vectors import SEED, Clustered, unit

AIM, REMOVED_AIM, KEPT_AIM, TIME_AIM = 0.999, 0.99, 0.97, 1.3
REMOVED, ADDED = 0.01, 0.05
KINDS = {"clustered": CUTS, "noisy": CUTS, "photos": (0.1, 0.2, 0.28, 0.33, 0.38), "gist": Gist.thresholds}
GIST_SIDE = 96  # pixels of what gist describes, more than it uses
CASES = ("base", "shuffled", "seed", "removed")
EXACT_CASES = ("exact", "removed, exact")
Vectors = npt.NDArray[np.float32]
Labels = npt.NDArray[np.int64]
Answer = dict[str, Any]

assert parents


def main() -> None:
    """Measure, print and write; or, with ``--case``, compute the clusters of one case in this process."""
    parser = arguments(__doc__)
    parser.add_argument("--rows", type=int, default=30_000, help="vectors of each kind")
    parser.add_argument("--dimension", type=int, default=64, help="of the clustered and noisy vectors")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS), help="of vectors")
    parser.add_argument("--cases", nargs="+", choices=CASES[1:], default=list(CASES[1:]), help="to compare with")
    parser.add_argument("--exact", type=int, default=20_000, help="maximum number of rows with all distances")
    parser.add_argument("--sklearn", type=int, default=10_000, help="maximum number of rows for scikit-learn")
    parser.add_argument("--before", type=Path, help="folder of other sources to compare the time with")
    parser.add_argument("--embeddings", type=Path, help="a NumPy file with embeddings of photos; made by default")
    parser.add_argument("--case", nargs=4, metavar=("CASE", "KIND", "VECTORS", "TARGET"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.case:
        print(json.dumps(_compute(*options.case)))
        return
    kinds: dict[str, Answer] = {}
    for kind in options.kinds:
        with tempfile.TemporaryDirectory(prefix="order-") as folder:
            vectors = _vectors(kind, options)
            kinds[kind] = _measure(kind, vectors, Path(folder), options)
        _print(kind, kinds[kind])
    save("quality-order", {"rows": options.rows, "dimension": options.dimension, "kinds": kinds})


def _vectors(kind: str, options: argparse.Namespace) -> Vectors:
    if kind == "photos":
        path = options.embeddings
        if path is None:
            path = photo_embeddings(options.peers, options.data, versions=-(-options.rows // 1250))
        return np.array(np.load(path, mmap_mode="r")[: options.rows])
    if kind == "gist":
        return _gist(options.data, options.rows)
    vectors = Clustered(options.rows, options.dimension).all()
    if kind == "clustered":
        return vectors
    random = np.random.default_rng(SEED)
    length = random.uniform(0, 1, (len(vectors), 1)).astype(np.float32) / np.float32(np.sqrt(options.dimension))
    return unit(vectors + length * random.standard_normal(vectors.shape, dtype=np.float32))


def _gist(data: Path, rows: int) -> Vectors:
    """Return the descriptors of so many versions of the photos; those of a photo are one behind all photos another."""
    paths = photos(data)
    each = -(-rows // len(paths))
    target = RESULTS / f"gist-{len(paths)}x{each}.npy"
    if not target.is_file():
        encoder = Gist()
        out = np.empty((each, len(paths), encoder.dimension), np.float32)
        for place, path in enumerate(paths):
            prepared = [encoder.prepare(image) for image in versions(path, each, seed=place, side=GIST_SIDE)]
            out[:, place] = encoder.encode_images(np.stack(prepared))
        RESULTS.mkdir(exist_ok=True)
        np.save(target, out.reshape(-1, encoder.dimension))
    return np.array(np.load(target, mmap_mode="r")[:rows])


def _measure(kind: str, vectors: Vectors, folder: Path, options: argparse.Namespace) -> Answer:
    """Return agreement by case, and processor time."""
    path = folder / "vectors.npy"
    np.save(path, vectors)
    cases, f1 = {}, {}
    found_labels: dict[str, Labels] = {}
    for case in ("base", *options.cases, *(EXACT_CASES if len(vectors) <= options.exact else [])):
        labels, cases[case] = _run(case, kind, path, folder / f"{case}.npy")
        found_labels[case] = labels
        base = found_labels["exact" if case in EXACT_CASES[1:] else "base"]
        inside = labels[:, 0] >= 0
        f1[case] = [
            pair_f1(*_numbered(each[inside], other[inside])) for each, other in zip(labels.T, base.T, strict=True)
        ]
    base = found_labels["base"]
    if len(vectors) <= options.sklearn:
        theirs = sklearn_labels(vectors, KINDS[kind])
        f1["scikit-learn"] = [pair_f1(*pair) for pair in zip(base.T, theirs.T, strict=True)]
    del f1["base"]
    old = round(len(vectors) / (1 + ADDED))
    np.save(path, vectors[:old])
    before, _ = _run("base", kind, path, folder / "part.npy")
    found: Answer = {"rows": len(vectors), "f1": f1, "cases": cases, "kept": _kept(before, base)}
    if options.before:
        np.save(path, vectors)
        other, found["before"] = _run("base", kind, path, folder / "before.npy", source=options.before)
        shuffled, _ = _run("shuffled", kind, path, folder / "before-shuffled.npy", source=options.before)
        f1["shuffled, before"] = [pair_f1(*pair) for pair in zip(other.T, shuffled.T, strict=True)]
    return found


def _numbered(*columns: Labels) -> tuple[Labels, ...]:
    """Return partitions with numbers from 0 without gaps."""
    return tuple(np.unique(each, return_inverse=True)[1] for each in columns)


def _run(case: str, kind: str, path: Path, target: Path, *, source: Path | None = None) -> tuple[Labels, Answer]:
    """Return the labels of a case, -1 for removed rows, and its times, from a process of its own."""
    command = [sys.executable, str(Path(__file__).resolve()), "--case", case, kind, str(path), str(target)]
    variables = {**os.environ, "PYTHONPATH": str((source or ROOT / "src").absolute())}
    done = subprocess.run(command, env=variables, stdout=subprocess.PIPE, text=True, check=True)
    return np.load(target), json.loads(done.stdout)


def _compute(case: str, kind: str, path: str, target: str) -> Answer:
    """Write the labels of a case; return its processor times and numbers of clusters."""
    from inspect import signature

    from framedex.analysis.linkage import average_linkage
    from framedex.analysis.neighbours import nearest, unique_rows

    given, random = np.load(path), np.random.default_rng(SEED)
    rows = np.arange(len(given))
    if case == "shuffled":
        rows = random.permutation(rows)
    if case.startswith("removed"):
        rows = np.sort(random.permutation(rows)[round(len(rows) * REMOVED) :])
    vectors = given[rows]
    first, inverse = unique_rows(vectors)
    vectors = vectors[first]
    seed = {"seed": 1} if case == "seed" else {}
    started = time.process_time()
    graph = nearest(vectors, **seed)
    searched = time.process_time()
    options: dict[str, Any] = {"dense_rows": len(vectors)} if case in EXACT_CASES else {}
    if "seed" in signature(average_linkage).parameters:
        options |= seed
    clusters = average_linkage(vectors, np.bincount(inverse), graph, KINDS[kind], **options)
    ended = time.process_time()
    labels = np.full((len(given), clusters.shape[1]), -1, dtype=np.int64)
    labels[rows] = clusters[inverse]
    np.save(target, labels)
    return {
        "neighbours_s": searched - started,
        "clusters_s": ended - searched,
        "compared": getattr(graph, "n_comparisons", None),  # which sources before do not count
        "clusters": (clusters.max(axis=0) + 1).tolist(),
    }


def _kept(before: Labels, after: Labels) -> list[dict[str, float]]:
    """Return by level the share of old rows whose cluster keeps its number, and the most that any numbers could keep.

    A number is kept by at most one new cluster, and a new cluster has one number. So the rows that keep theirs are at
    most the sum of each old cluster's largest part, and of each new cluster's largest part.
    """
    from framedex.analysis.stability import keep_numbers

    levels = []
    for old, new in zip(before.T, after.T, strict=True):
        former = np.concatenate([old, np.full(len(new) - len(old), -1)]).astype(np.int32)
        numbers, _ = keep_numbers(former, new.astype(np.int32), first_free=int(old.max()) + 1)
        cells, shared = np.unique(old * (int(new.max()) + 1) + new[: len(old)], return_counts=True)
        most = []
        for group in (cells // (int(new.max()) + 1), cells % (int(new.max()) + 1)):
            largest = np.zeros(int(group.max()) + 1, dtype=np.int64)
            np.maximum.at(largest, group, shared)
            most.append(int(largest.sum()))
        levels.append({"kept": float((numbers[: len(old)] == old).mean()), "possible": min(most) / len(old)})
    return levels


def _print(kind: str, found: Answer) -> None:
    cuts: Sequence[float] = KINDS[kind]
    print(f"\n{found['rows']:,} {kind} vectors: pair F1 by cut")
    print(
        table(
            ["against", *(f"{cut:g}" for cut in cuts)], [[case, *map(_digits, f1)] for case, f1 in found["f1"].items()]
        )
    )
    print(f"\nShare of rows whose cluster keeps its number after {ADDED:.0%} more rows")
    rows = [[name, *(_digits(level[name]) for level in found["kept"])] for name in ("kept", "possible")]
    print(table(["", *(f"{cut:g}" for cut in cuts)], rows))
    times = {**found["cases"], **({"before": found["before"]} if "before" in found else {})}
    print("\nProcessor seconds")
    print(
        table(
            ["case", "neighbours", "clusters"],
            [[case, each["neighbours_s"], each["clusters_s"]] for case, each in times.items()],
        )
    )
    print()
    for case, f1 in found["f1"].items():
        if "before" not in case:
            print(
                verdict(f"least pair F1, {kind}, {case}", min(f1), REMOVED_AIM if case.startswith("removed") else AIM)
            )
    if "before" in found:
        seconds = [each["neighbours_s"] + each["clusters_s"] for each in (found["cases"]["base"], found["before"])]
        print(verdict(f"processor time, {kind}, relative to before", seconds[0] / seconds[1], TIME_AIM, at_most=True))
    print(
        verdict(
            f"rows with the same number, {kind}, coarsest two levels",
            min(each["kept"] for each in found["kept"][3:]),
            KEPT_AIM,
        ),
        flush=True,
    )


def _digits(value: float) -> str:
    return f"{value:.4f}"


if __name__ == "__main__":
    main()
