"""Ten typical filters over a million media: how long a count and a first page take, beside pandas in memory.

The first page is Explore's at the finest level: a hundred clusters with nine previews each and their most frequent
labels and tags. The first call of a process reads the columns that the filter looks at; later ones have them in memory
and ask with other values, so that no answer is known before. Pandas holds the same columns, read before it is timed.
"""

import sys
import tempfile
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from common import arguments, median, run_worker, save, table, verdict

AIM_MS = 100.0
_SCRIPT = Path(__file__).resolve().parent / "search_filters_workers.py"


def main() -> None:
    """Measure, print and write."""
    parser = arguments(__doc__, peers=False, data=False)
    parser.add_argument("--rows", type=int, default=1_000_000, help="media of the dataset")
    parser.add_argument("--workspace", type=Path, help="folder whose `workspace` an earlier run made; made if missing")
    parser.add_argument("--turns", type=int, default=21, help="calls of each filter; pandas gets a third")
    options = parser.parse_args()
    python = Path(sys.executable)
    kept = options.workspace
    with tempfile.TemporaryDirectory(prefix="bench-filters-") if kept is None else nullcontext(kept) as work:
        folder = Path(work)
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / "workspace").exists():
            made = run_worker(python, f"create:{options.rows}", folder, script=_SCRIPT)
            print(f"{options.rows:,} rows made, indexed, tagged and rated in {made.call_s:.0f} s\n", flush=True)
        ours = run_worker(python, f"ours:{options.turns}", folder, script=_SCRIPT).result
        peer = run_worker(python, f"pandas:{max(1, options.turns // 3)}", folder, script=_SCRIPT).result
    found = {name: _figures(times, peer["filters"][name]) for name, times in ours["filters"].items()}
    _print(found, ours["peak_mib"], peer["peak_mib"])
    peaks = {"peak_mib": ours["peak_mib"], "pandas_peak_mib": peer["peak_mib"]}
    save("search_filters", {"rows": options.rows, "filters": found, **peaks})


def _figures(ours: dict[str, Any], peer: dict[str, Any]) -> dict[str, Any]:
    """Return the figures of one filter, in milliseconds; end the program where both count differently."""
    if ours["rows"] != peer["rows"]:
        sys.exit(f"Framedex counts {ours['rows']}, pandas {peer['rows']}.")
    found: dict[str, Any] = {"rows": ours["rows"][0], "cold_count": ours["cold"], "cold_page": ours["cold_page"]}
    for name in ("count", "page"):
        found |= {name: median(ours[name]), f"{name}_p95": _p95(ours[name]), f"pandas_{name}": median(peer[name])}
    found["count_again"] = median(ours["again"])
    return {name: value if name == "rows" else 1000 * value for name, value in found.items()}


def _p95(values: list[float]) -> float:
    return sorted(values)[min(len(values) - 1, round(0.95 * len(values)))]


def _print(found: dict[str, dict[str, Any]], peak: float, peer_peak: float) -> None:
    columns = ["rows", "count", "count_p95", "count_again", "page", "page_p95", "cold_count", "cold_page"]
    columns += ["pandas_count", "pandas_page"]
    print(table(["ms", *columns], [[name, *(values[each] for each in columns)] for name, values in found.items()]))
    print(f"\nPeak of memory: {peak:,.0f} MiB; of pandas {peer_peak:,.0f} MiB\n")
    for name, values in found.items():
        print(verdict(f"{name}: count, p50 ms", values["count"], AIM_MS, at_most=True))
        print(verdict(f"{name}: first page, p50 ms", values["page"], AIM_MS, at_most=True))
    for each in ("count", "page"):
        slowest = max(values[each] / values[f"pandas_{each}"] for values in found.values())
        print(verdict(f"{each}: at most times pandas's time", slowest, 1.0, at_most=True))


if __name__ == "__main__":
    main()
