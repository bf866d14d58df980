"""Clusters: Framedex's average linkage from approximate neighbours against scikit-learn's, at five cuts.

Of clustered vectors, of vectors uniform on the sphere, and of embeddings of photos. Agreement is the F1 of the pairs of
vectors that share a cluster. ``clusters.py`` compares the linkage from exact neighbours on other vectors.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from common import arguments, save, table, verdict
from index_jobs import job_folder, photo_embeddings, write_vectors
from index_peers import KINDS, LIMIT_S, cuts_of, measure, tool_pythons

AIM = 0.99
TOOLS = ("approximate", "exact", "sklearn")


def main(given: Sequence[str]) -> None:
    """Measure, print and write."""
    parser = arguments(__doc__)
    parser.prog = "index.py clusters"
    parser.add_argument("--rows", type=int, default=10_000, help="vectors of each kind")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS), help="of vectors")
    options = parser.parse_args(given)
    pythons = tool_pythons(options.peers, TOOLS)
    embeddings = photo_embeddings(options.peers, options.data) if "photos" in options.kinds else None
    kinds = {}
    for kind in options.kinds:
        with job_folder() as folder:
            vectors = write_vectors(pythons["framedex"], folder, kind, options.rows, sample=1000, embeddings=embeddings)
            kinds[kind] = measure(pythons, folder, vectors, TOOLS, cuts=cuts_of(kind), limit_s=LIMIT_S)
    _print_cuts(kinds)
    _print_times(kinds)
    print()
    for kind, found in kinds.items():
        print(verdict(f"least pair F1 of {kind}", min(found["tools"]["approximate"]["f1"]), AIM))
    save("index-clusters", {"cuts": {kind: cuts_of(kind) for kind in kinds}, "kinds": kinds})


def _print_cuts(kinds: Mapping[str, Any]) -> None:
    headers = ["vectors", "cut", "clusters", "scikit-learn", "pair F1", "from exact neighbours"]
    rows = []
    for kind, found in kinds.items():
        ours, exact, theirs = (found["tools"][tool] for tool in TOOLS)
        for place, cut in enumerate(cuts_of(kind)):
            counts = (ours["clusters"][place], theirs["clusters"][place])
            rows.append([kind, cut, *counts, f"{ours['f1'][place]:.6f}", f"{exact['f1'][place]:.6f}"])
    print()
    print(table(headers, rows))


def _print_times(kinds: Mapping[str, Any]) -> None:
    headers = ["vectors", "recall", "neighbours s", "clusters s", "with exact s", "scikit-learn s", "times as fast"]
    rows = []
    for kind, found in kinds.items():
        ours, exact, theirs = (found["tools"][tool] for tool in TOOLS)
        times = (ours["neighbours_s"], ours["clusters_s"], exact["call_s"], theirs["call_s"])
        rows.append([kind, ours.get("recall"), *times, theirs["call_s"] / ours["call_s"]])
    print("\nSeconds; times as fast: with approximate neighbours, which do not pay at few rows")
    print(table(headers, rows))
