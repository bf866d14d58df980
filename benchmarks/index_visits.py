"""Visits: how many other groups a row looks into, where neighbours are searched by groups of cells.

It decides what is read beside the vectors themselves. Of clustered vectors, of the same with noise, of embeddings of
photos, and of uniform ones, where all rows are compared. A visitor is a row in a group that is not its own; its vector
is read there once, for all of that group's cells that it visits.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from common import arguments, save, table, verdict
from index_jobs import KINDS, K, framedex_python, job_folder, photo_embeddings, run_job, write_vectors

RECALL = 0.95
USUAL = ("clustered", "noisy", "photos", "uniform-128")


def main(given: Sequence[str]) -> None:
    """Measure, print and write."""
    parser = arguments(__doc__)
    parser.prog = "index.py visits"
    parser.add_argument("--rows", type=int, default=200_000, help="vectors of each kind but photos")
    parser.add_argument("--photos", type=int, default=50_000, help="embeddings of photos")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(USUAL), help="of vectors")
    parser.add_argument("--groups", type=int, default=10, help="about how many groups there are")
    parser.add_argument("--sample", type=int, default=1000, help="rows that are compared with exact search")
    options = parser.parse_args(given)
    python = framedex_python(options.peers)
    embeddings = photo_embeddings(options.peers, options.data) if "photos" in options.kinds else None
    kinds = [_measure(python, kind, options, embeddings) for kind in options.kinds]
    headers = ["vectors", "rows", "dimension", "groups", "visitors a row", "visits a row", "comparisons a row",
               "recall", "seconds"]  # fmt: skip
    keys = ("kind", "rows", "dimension", "groups", "visitors", "visits", "compared", "recall", "seconds")
    print()
    print(table(headers, [[each[key] for key in keys] for each in kinds]))
    for each in kinds:
        print(verdict(f"recall of {each['kind']}", each["recall"], RECALL))
    save("index-visits", {"k": K, "kinds": kinds})


def _measure(python: Path, kind: str, options: argparse.Namespace, embeddings: Path | None) -> dict[str, Any]:
    rows = options.photos if kind == "photos" else options.rows
    with job_folder() as folder:
        vectors = write_vectors(python, folder, kind, rows, sample=options.sample, embeddings=embeddings)
        target = folder / "found.npy"
        run = run_job(python, "visits", folder, **vectors.options, k=K, groups=options.groups, target=target)
        recall = run_job(python, "recall_of", folder, **vectors.options, k=K, found=target).result["recall"]
    print(f"{kind}: {run.result['visitors']:.3f} visitors a row, {run.call_s:.0f} s", flush=True)
    return {"kind": kind, "rows": rows, "dimension": vectors.dimension, "recall": recall, **run.result}
