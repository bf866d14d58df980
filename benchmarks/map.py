"""The map: layouts by Framedex beside umap-learn, PaCMAP and openTSNE on one graph, and how far rows move later.

Vectors are clustered, as in the benchmarks of the index, with 128 values. A tool that exceeds the limit of time at a
size is left out there.
"""

import json
import tempfile
from pathlib import Path
from typing import Any

from common import Run, arguments, environment, run_worker, save, table, verdict

SCRIPT = Path(__file__).resolve().parent / "map_workers.py"
TOOLS = {"framedex": None, "umap": "umap-learn", "pacmap": "pacmap", "opentsne": "openTSNE"}
AIM_S, AIM_PURITY, AIM_MOVED = 300.0, 0.98, 0.05


def main() -> None:
    """Measure, and print tables."""
    parser = arguments(__doc__, data=False)
    parser.add_argument("--rows", type=int, nargs="+", default=[20_000, 100_000])
    parser.add_argument("--tools", nargs="+", choices=TOOLS, default=list(TOOLS))
    parser.add_argument("--dimension", type=int, default=128)
    parser.add_argument("--grown", type=float, default=0.01, help="share of rows that come later; 0 for none")
    parser.add_argument("--limit", type=int, default=600, help="seconds that a tool may take")
    options = parser.parse_args()
    sizes = []
    for rows in options.rows:
        with tempfile.TemporaryDirectory(prefix="bench-map-") as folder:
            sizes.append(_measure(options, rows, Path(folder)))
        _show(sizes[-1])
    save("map", {"dimension": options.dimension, "sizes": sizes})


def _measure(options: Any, rows: int, folder: Path) -> dict[str, Any]:
    """Return the figures of all tools at one size."""
    own = environment(options.peers, "framedex")
    graph = _run(own, "make", folder, rows=rows, dimension=options.dimension, grown=options.grown)
    found: dict[str, Any] = {"rows": rows, "graph, s": graph.call_s, "tools": {}}
    for tool in options.tools:
        name = TOOLS[tool]
        python = own if name is None else environment(options.peers, name)
        try:
            made = _run(python, tool, folder, rows=rows, limit_s=options.limit)
        except SystemExit as error:
            print(f"{tool} is left out at {rows:,} rows: {str(error).splitlines()[0]}")
            continue
        kept = _run(own, "quality", folder, rows=rows, tool=tool).result
        found["tools"][tool] = {**kept, "seconds": made.call_s, "process": made.wall_s, "peak": made.peak_mib}
    if options.grown and "framedex" in found["tools"]:
        found["again"] = _run(own, "again", folder, rows=rows).result
    return found


def _run(python: Path, task: str, folder: Path, **job: Any) -> Run:
    (folder / "job.json").write_text(json.dumps(job), "utf-8")
    return run_worker(python, task, folder, script=SCRIPT)


def _show(found: dict[str, Any]) -> None:
    print(f"\n{found['rows']:,} rows; the graph took {found['graph, s']:.1f} s")
    names = ("seconds", "process", "peak", "kept", "purity", "trustworthiness")
    headers = ["tool", "layout, s", "process, s", "peak, MiB", "10-NN kept", "same sub-cluster", "trustworthiness"]
    print(table(headers, [[tool, *(each[name] for name in names)] for tool, each in found["tools"].items()]))
    own, other = (found["tools"].get(each) for each in ("framedex", "umap"))
    if own is not None:
        print(verdict("layout, s", own["seconds"], AIM_S, at_most=True))
    if own is not None and other is not None:
        print(verdict("10-NN kept, times that of umap-learn", own["kept"] / other["kept"], 1.0))
        print(verdict("same sub-cluster, times that of umap-learn", own["purity"] / other["purity"], AIM_PURITY))
    if "again" in found:
        moved = found["again"]
        print(f"after more rows: {moved['seconds']:.1f} s")
        print(verdict("median move, share of the width", moved["moved"], AIM_MOVED, at_most=True))


if __name__ == "__main__":
    main()
