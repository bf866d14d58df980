"""Recall: the neighbours that the engine finds by default, against exact search on a sample of rows.

Of clustered vectors, of vectors uniform on the sphere (which have no structure to go by), and of embeddings of photos.
Beside its time stands that of the engine's own exact search of all rows.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from common import arguments, save, table, verdict
from index_jobs import KINDS, K, framedex_python, job_folder, photo_embeddings, run_job, write_vectors
from index_scale import product_rate

RECALL = 0.95


def main(given: Sequence[str]) -> None:
    """Measure, print and write."""
    parser = arguments(__doc__)
    parser.prog = "index.py recall"
    parser.add_argument("--clustered", type=int, default=100_000, help="clustered vectors")
    parser.add_argument("--rows", type=int, default=50_000, help="vectors of each of the other kinds")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS), help="of vectors")
    parser.add_argument("--sample", type=int, default=1000, help="rows that are compared with exact search")
    parser.add_argument("--recall", type=float, default=None, help="the wanted recall; the engine's default if absent")
    parser.add_argument("--exact-rows", type=int, default=100_000, help="more are not searched exactly")
    parser.add_argument("--approximate", action="store_true", help="never compare all rows, whatever is cheaper")
    options = parser.parse_args(given)
    python = framedex_python(options.peers)
    embeddings = photo_embeddings(options.peers, options.data) if "photos" in options.kinds else None
    kinds = [_measure(python, kind, options, embeddings) for kind in options.kinds]
    _print_kinds(kinds)
    save("index-recall", {"k": K, "wanted": options.recall, "approximate": options.approximate, "kinds": kinds})


def _measure(python: Path, kind: str, options: argparse.Namespace, embeddings: Path | None) -> dict[str, Any]:
    rows = options.clustered if kind == "clustered" else options.rows
    with job_folder() as folder:
        vectors = write_vectors(python, folder, kind, rows, sample=options.sample, embeddings=embeddings)
        rate = product_rate(python, folder, vectors.dimension)
        found, given = folder / "found.npy", {**vectors.options, "k": K, "recall": options.recall}
        run = run_job(python, "neighbours", folder, **given, target=found, exact=False if options.approximate else None)
        answer = run_job(python, "recall_of", folder, **vectors.options, k=K, found=found).result
        exact_s = None
        if rows <= options.exact_rows:
            exact_s = run_job(python, "neighbours", folder, **given, target=folder / "exact.npy", exact=True).call_s
    result = {
        "kind": kind,
        "rows": rows,
        "dimension": vectors.dimension,
        "recall": answer["recall"],
        "seconds": run.call_s,
        "exact_s": exact_s,
        "of_all_pairs": run.result["compared"] / rows**2,
        "products_s": run.result["compared"] * vectors.dimension / rate,
        "peak_mib": run.peak_mib,
    }
    print(f"{kind}: recall {result['recall']:.4f} in {run.call_s:.1f} s", flush=True)
    return result


def _print_kinds(kinds: Sequence[dict[str, Any]]) -> None:
    print(f"\nThe {K} nearest neighbours; products s: bare matrix products of as many pairs as were compared")
    headers = [
        "vectors", "rows", "dimension", "recall", "seconds", "exact s", "times as fast", "of all pairs", "products s",
        "peak MiB",
    ]  # fmt: skip
    keys = ("kind", "rows", "dimension", "recall", "seconds", "exact_s")
    print(
        table(
            headers,
            [
                [
                    *(each[key] for key in keys),
                    each["exact_s"] and each["exact_s"] / each["seconds"],
                    each["of_all_pairs"],
                    each["products_s"],
                    each["peak_mib"],
                ]
                for each in kinds
            ],
        )
    )
    print()
    for each in kinds:
        print(verdict(f"recall of {each['kind']}", each["recall"], RECALL))
