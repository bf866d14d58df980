"""Pages of 100 rows at random places of views of a million rows: as ingested, sorted, filtered, sampled, searched.

The first page of a view is read before its order is known; the others read their own rows only. The limit is 20 ms for
the median page of eight columns, as a table of results shows them; pages of all columns are measured beside them.
"""

import sys
import tempfile
from contextlib import nullcontext
from pathlib import Path

from common import arguments, median, run_worker, save, table, verdict

LIMIT_MS = 20.0
_SCRIPT = Path(__file__).resolve().parent / "view_pages_workers.py"


def main() -> None:
    """Measure, print and write."""
    parser = arguments(__doc__, peers=False, data=False)
    parser.add_argument("--rows", type=int, default=1_000_000, help="media of the dataset")
    parser.add_argument("--workspace", type=Path, help="folder whose `workspace` an earlier run made; made if missing")
    parser.add_argument("--turns", type=int, default=31, help="pages of each view")
    options = parser.parse_args()
    python, kept = Path(sys.executable), options.workspace
    with tempfile.TemporaryDirectory(prefix="bench-pages-") if kept is None else nullcontext(kept) as work:
        folder = Path(work)
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / "workspace").exists():
            made = run_worker(python, f"create:{options.rows}", folder, script=_SCRIPT)
            print(f"{options.rows:,} rows made, indexed, tagged and rated in {made.call_s:.0f} s\n", flush=True)
        result = run_worker(python, f"pages:{options.turns}", folder, script=_SCRIPT).result
    found = {
        name: {
            "rows": each["rows"],
            "first": 1000 * each["first"],
            "page": 1000 * median(each["page"]),
            "page_max": 1000 * max(each["page"]),
            "all_columns": 1000 * median(each["all_columns"]),
        }
        for name, each in result["views"].items()
    }
    headers = ["ms", "rows", "first", "page", "page_max", "all_columns"]
    print(table(headers, [[name, *values.values()] for name, values in found.items()]))
    print(f"\nPeak of memory: {result['peak_mib']:,.0f} MiB\n")
    for name, values in found.items():
        print(verdict(f"{name}: page, p50 ms", values["page"], LIMIT_MS, at_most=True))
    save("view_pages", {"rows": options.rows, "views": found, "peak_mib": result["peak_mib"]})


if __name__ == "__main__":
    main()
