"""Search by vectors: times and recall, without filters and with those that keep half, a hundredth and a ten-thousandth.

``ds.similar(query, 100)``, and the engine alone, beside faiss, LanceDB, Chroma, the local qdrant client and comparing
everything with NumPy, on the same clustered vectors and queries, each tool in a process of its own, one query at a
time, warm. Recall counts against the exact answers. Tools that compare everything are left out above 100,000 rows, and
Chroma, whose graph takes an hour to build there.
"""

import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from common import arguments, environment, run_worker, save, table, verdict

AIM_RECALL, AIM_OVERHEAD, AIM_FILTERED = 0.95, 1.5, 2.0
_SCRIPT = Path(__file__).resolve().parent / "search_workers.py"
_TOOLS = {
    "framedex": ("framedex", "framedex:similar"),
    "framedex, engine alone": ("framedex", "framedex:engine"),
    "faiss IVF flat": ("faiss-cpu", "faiss:Flat"),
    "faiss IVF SQ8": ("faiss-cpu", "faiss:SQ8"),
    "LanceDB IVF_SQ": ("lancedb", "lancedb:IVF_SQ"),
    "LanceDB IVF_RQ": ("lancedb", "lancedb:IVF_RQ"),
    "NumPy, everything": ("framedex", "numpy:"),
    "Chroma": ("chromadb", "chroma:"),
    "qdrant, local": ("qdrant-client", "qdrant:"),
}
_SMALL_ONLY = {"Chroma": 100_000, "qdrant, local": 100_000}
_PLAIN = "1.0"


def main() -> None:
    """Measure, print and write."""
    parser = arguments(__doc__, data=False)
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--dimension", type=int, default=512)
    parser.add_argument("--tools", nargs="+", choices=list(_TOOLS), default=list(_TOOLS))
    options = parser.parse_args()
    found = {}
    for rows in options.rows:
        tools = [name for name in options.tools if rows <= _SMALL_ONLY.get(name, sys.maxsize)]
        found[str(rows)] = measure(options.peers, rows, options.dimension, tools)
        _print(rows, found[str(rows)])
    save("search", {"dimension": options.dimension, "rows": found})


def measure(peers: Path, rows: int, dimension: int, tools: list[str]) -> dict[str, Any]:
    """Return what each tool's process measured."""
    out: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="bench-search-") as name:
        folder = Path(name)
        run_worker(environment(peers, "framedex"), f"make:{rows}x{dimension}", folder, script=_SCRIPT)
        for tool in tools:
            where, task = _TOOLS[tool]
            run = run_worker(environment(peers, where), task, folder, script=_SCRIPT)
            out[tool] = run.result | {"peak_mib": run.peak_mib}
            shutil.rmtree(folder / "lancedb", ignore_errors=True)
    return out


def _print(rows: int, found: dict[str, Any]) -> None:
    print(f"\n{rows:,} rows: p50 / p95 in ms (recall@100)")
    shares = list(next(iter(found.values()))["shares"])
    lines = [
        [tool, each["build_s"], round(each["peak_mib"]), *(_cell(each["shares"][share]) for share in shares)]
        for tool, each in found.items()
    ]
    print(table(["tool", "build s", "peak MiB", *(f"{float(share):.2%} kept" for share in shares)], lines))
    if "framedex" not in found:
        return
    own = found["framedex"]["shares"]
    print(verdict("recall@100", own[_PLAIN]["recall"], AIM_RECALL))
    bare = [each["shares"][_PLAIN]["p50_ms"] for tool, each in found.items() if tool.startswith(("faiss", "LanceDB"))]
    if bare:
        overhead = own[_PLAIN]["p50_ms"] / min(bare)
        print(verdict("times the p50 of the fastest index alone", overhead, AIM_OVERHEAD, at_most=True))
    for share in shares[1:]:
        times = own[share]["p50_ms"] / own[_PLAIN]["p50_ms"]
        print(verdict(f"times the unfiltered p50 with {float(share):.2%} kept", times, AIM_FILTERED, at_most=True))
        print(verdict(f"recall@100 with {float(share):.2%} kept", own[share]["recall"], AIM_RECALL))


def _cell(measured: dict[str, float]) -> str:
    return f"{measured['p50_ms']:.2f} / {measured['p95_ms']:.2f} ({measured['recall']:.3f})"


if __name__ == "__main__":
    main()
