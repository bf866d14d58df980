"""Peers: neighbours and clusters of Framedex beside those of other tools, on the same vectors and in the same run.

Each tool is a process of its own, loads the vectors from a file, and is ended where it exceeds the limit of time.
Agreement is pair F1 against average linkage, at each cut: scikit-learn's where it ran, else Framedex's from exact
neighbours, up to some 100,000 rows. Tools that join pairs nearer than a threshold (FAISS, fastdup) have their own idea
of a cluster, so their best over many thresholds stands beside the same one; HDBSCAN has a single partition, which is
compared with each cut.
"""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common import PINS, Run, arguments, environment, save, table
from index_jobs import (
    CUTS,
    UNIFORM_CUTS,
    K,
    VectorFile,
    framedex_python,
    job_folder,
    photo_embeddings,
    run_job,
    try_job,
    write_vectors,
)

KINDS = ("clustered", "photos", "uniform-128")
OTHERS = tuple(round(0.02 * step, 2) for step in range(1, 26))  # distances at which pairs are joined besides
LIMIT_S = 1800


@dataclass(frozen=True)
class Tool:
    """What is run.

    Attributes:
        title: for people.
        task: of ``index_workers.py``.
        environment: where it runs.
        most_rows: more do not fit into memory or time.
        options: of the task.
    """

    title: str
    task: str
    environment: str
    most_rows: int
    options: Mapping[str, Any]


_EVER = 10**9
TOOLS = {
    "framedex": Tool("Framedex", "framedex", "framedex", _EVER, {}),
    "approximate": Tool("Framedex, approximate neighbours", "framedex", "framedex", _EVER, {"exact": False}),
    "exact": Tool("Framedex, exact neighbours", "framedex", "framedex", 150_000, {"exact": True}),
    "sklearn": Tool("scikit-learn average linkage", "sklearn", "framedex", 30_000, {}),
    "faiss": Tool("FAISS + components", "faiss", "faiss-cpu", _EVER, {}),
    "fastdup": Tool("fastdup", "fastdup", "fastdup", _EVER, {}),
    "hdbscan": Tool("HDBSCAN", "hdbscan", "hdbscan", 50_000, {}),
    "fast-hdbscan": Tool("fast_hdbscan", "fast_hdbscan", "fast-hdbscan", _EVER, {}),
}
USUAL = ("framedex", "sklearn", "faiss", "fastdup", "hdbscan")


def main(given: Sequence[str]) -> None:
    """Measure, print and write."""
    parser = arguments(__doc__)
    parser.prog = "index.py peers"
    parser.add_argument("--rows", type=int, nargs="+", default=[20_000, 100_000], help="sizes; 1000000 takes long")
    parser.add_argument("--kind", choices=KINDS, default="clustered", help="of vectors")
    parser.add_argument("--tools", nargs="+", choices=TOOLS, default=list(USUAL), help="what is run")
    parser.add_argument("--limit", type=int, default=LIMIT_S, help="seconds that a tool may take")
    parser.add_argument(
        "--reference",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="where scikit-learn does not run, take Framedex's clusters from exact neighbours",
    )
    parser.add_argument("--sample", type=int, default=1000, help="rows whose neighbours are checked")
    options = parser.parse_args(given)
    pythons = tool_pythons(options.peers, options.tools)
    embeddings = photo_embeddings(options.peers, options.data) if options.kind == "photos" else None
    sizes = []
    for rows in options.rows:
        with job_folder() as folder:
            vectors = write_vectors(
                pythons["framedex"], folder, options.kind, rows, sample=options.sample, embeddings=embeddings
            )
            tools = _with_reference(options.tools, rows) if options.reference else options.tools
            sizes.append(measure(pythons, folder, vectors, tools, cuts=cuts_of(options.kind), limit_s=options.limit))
        _print_size(options, sizes[-1])
    save("index-peers", {"kind": options.kind, "cuts": cuts_of(options.kind), "versions": _versions(), "sizes": sizes})


def tool_pythons(peers: Path, tools: Sequence[str]) -> dict[str, Path]:
    """Return the Python of each environment that the tools need, and of Framedex's own."""
    names = {"framedex", *(TOOLS[tool].environment for tool in tools)}
    return {name: framedex_python(peers) if name == "framedex" else environment(peers, name) for name in sorted(names)}


def cuts_of(kind: str) -> tuple[float, ...]:
    """Return the distances at which vectors of a kind are cut."""
    return UNIFORM_CUTS if kind.startswith("uniform") else CUTS


def _with_reference(tools: Sequence[str], rows: int) -> list[str]:
    needed = "sklearn" not in tools or rows > TOOLS["sklearn"].most_rows
    return [*tools, *(["exact"] if needed and "exact" not in tools else [])]


def measure(
    pythons: Mapping[str, Path],
    folder: Path,
    vectors: VectorFile,
    tools: Sequence[str],
    *,
    cuts: Sequence[float],
    limit_s: int,
) -> dict[str, Any]:
    """Run tools on vectors, one after another, and compare what they found.

    Args:
        pythons: by environment.
        folder: for the files that are exchanged.
        vectors: what they get.
        tools: of ``TOOLS``.
        cuts: cosine distances.
        limit_s: seconds that a tool may take.

    Returns:
        ``tools``: by name the figures of what ran, or ``failed`` with the reason. ``reference``: which tool the others
        were compared with; None without one.
    """
    found = {tool: folder / f"{tool}.npz" for tool in tools}
    results: dict[str, dict[str, Any]] = {}
    for tool in tools:
        run = _run(pythons, folder, vectors, TOOLS[tool], found[tool], cuts=cuts, limit_s=limit_s)
        results[tool] = {"failed": run} if isinstance(run, str) else _plain(run)
        print(f"{TOOLS[tool].title}, {vectors.rows:,} rows: {_told(results[tool])}", flush=True)
    ran = {tool: path for tool, path in found.items() if "failed" not in results[tool]}
    reference = next((tool for tool in ("sklearn", "exact") if tool in ran), None)
    options = {
        **vectors.options,
        "k": K,
        "exact": found.get(reference or ""),
        "found": {t: str(p) for t, p in ran.items()},
    }
    answer = run_job(pythons["framedex"], "agree", folder, **options).result
    for tool in ran:
        results[tool] |= {key: answer[key].get(tool) for key in ("clusters", "recall", "f1", "best_f1")}
    return {"rows": vectors.rows, "dimension": vectors.dimension, "reference": reference, "tools": results}


def _run(
    pythons: Mapping[str, Path],
    folder: Path,
    vectors: VectorFile,
    tool: Tool,
    target: Path,
    *,
    cuts: Sequence[float],
    limit_s: int,
) -> Run | str:
    if vectors.rows > tool.most_rows:
        return f"not run above {tool.most_rows:,} rows"
    options = {**vectors.options, "k": K, "cuts": cuts, "others": OTHERS, "target": target, **tool.options}
    return try_job(pythons[tool.environment], tool.task, folder, limit_s=limit_s, **options)


def _plain(run: Run) -> dict[str, Any]:
    return {"process_s": run.wall_s, "call_s": run.call_s, "peak_mib": run.peak_mib, **run.result}


def _told(result: Mapping[str, Any]) -> str:
    return result["failed"] if "failed" in result else f"{result['call_s']:.1f} s"


def _print_size(options: argparse.Namespace, size: Mapping[str, Any]) -> None:
    cuts, results = cuts_of(options.kind), size["tools"]
    print(f"\n{size['rows']:,} {options.kind} vectors of {size['dimension']} values")
    rows = [
        [TOOLS[tool].title, result.get("process_s"), result.get("call_s"), result.get("peak_mib"), result.get("recall"),
         result.get("failed", "")]
        for tool, result in results.items()
    ]  # fmt: skip
    print(table(["tool", "process s", "main call s", "peak MiB", f"recall of {K}", ""], rows))
    if size["reference"] is None:
        print("No exact average linkage to compare the clusters with.")
        return
    headers = ["tool", *(f"{cut:g}" for cut in cuts)]
    print(f"\nPair F1 against {TOOLS[size['reference']].title}, by cut; in brackets the best of all thresholds")
    print(table(headers, [[TOOLS[tool].title, *_cells(result)] for tool, result in results.items() if "f1" in result]))


def _cells(result: Mapping[str, Any]) -> list[str]:
    return [
        f"{same:.4f}" + (f" ({best:.3f})" if best > same + 5e-4 else "")
        for same, best in zip(result["f1"], result["best_f1"], strict=True)
    ]


def _versions() -> dict[str, str]:
    return {name: PINS[name][0] for name in sorted({tool.environment for tool in TOOLS.values()} & set(PINS))}
