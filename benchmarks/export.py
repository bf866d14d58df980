"""Exports of a million media: seconds and memory of each format, and Parquet beside pyarrow's own writing.

Each measured process opens the same dataset. In a round the Parquet export is made once, and pyarrow writes the same
table, which it holds in memory, once; their ratio is taken within the round. The formats' peaks of memory come from
processes that do nothing else.
"""

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from common import arguments, median, run_worker, save, table, verdict

FORMATS = ("parquet", "json", "coco", "csv", "yolo")
SLOWDOWN = 1.5  # aim for Parquet, times pyarrow's seconds
_SCRIPT = Path(__file__).resolve().parent / "export_workers.py"


def main() -> None:
    """Measure, print and write."""
    parser = arguments(__doc__, peers=False, data=False)
    parser.add_argument("--rows", type=int, default=1_000_000, help="media of the dataset")
    parser.add_argument("--rounds", type=int, default=7, help="of Parquet and pyarrow in turn")
    options = parser.parse_args()
    python = Path(sys.executable)
    with tempfile.TemporaryDirectory(prefix="bench-export-") as work:
        folder = Path(work)
        made = run_worker(python, f"create:{options.rows}", folder, script=_SCRIPT)
        print(f"{options.rows:,} rows made and indexed in {made.call_s:.0f} s\n", flush=True)
        formats = [_format(python, folder, name) for name in FORMATS]
        _print_formats(formats)
        rounds = run_worker(python, f"rounds:{options.rounds}", folder, script=_SCRIPT).result
    result = _ratios(rounds)
    save("export", {"rows": options.rows, "formats": formats, "parquet": result, "rounds": rounds["rounds"]})


def _format(python: Path, folder: Path, name: str) -> dict[str, Any]:
    """Return the figures of one format: its first export in a process, and the next ones."""
    run = run_worker(python, f"format:{name}", folder, script=_SCRIPT)
    seconds: Sequence[float] = run.result["all_seconds"]
    return {
        "format": name,
        "first_s": seconds[0],
        "median_s": median(seconds[1:]),
        "peak_mib": run.result["peak_mib"],
        "before_mib": run.result["before_mib"],
        "size_mib": run.result["size_bytes"] / 2**20,
        "content_mib": run.result["content_bytes"] / 2**20,
    }


def _print_formats(formats: Sequence[dict[str, Any]]) -> None:
    headers = ["format", "first s", "next s", "peak MiB", "MiB before", "file MiB", "content MiB"]
    print(table(headers, [list(each.values()) for each in formats]))


def _ratios(found: dict[str, Any]) -> dict[str, Any]:
    """Print and return the ratios of Parquet to pyarrow."""
    rounds: Sequence[dict[str, float]] = found["rounds"]
    result = {
        "export_s": median(each["export"] for each in rounds),
        "pyarrow_s": median(each["pyarrow"] for each in rounds),
        "pyarrow_tuned_s": median(each["tuned"] for each in rounds),
        "ratio": median(each["export"] / each["pyarrow"] for each in rounds),
        "ratio_tuned": median(each["export"] / each["tuned"] for each in rounds),
    }
    print("\nParquet, medians of the rounds; pyarrow with its defaults, and with the dictionaries of the export")
    print(table(["", "s", "export / it"], [
        ["export", result["export_s"], None],
        ["pyarrow", result["pyarrow_s"], result["ratio"]],
        ["pyarrow, same options", result["pyarrow_tuned_s"], result["ratio_tuned"]],
    ]))  # fmt: skip
    print()
    print(verdict("times pyarrow's seconds", result["ratio"], SLOWDOWN, at_most=True))
    print(verdict("times pyarrow's seconds with the same options", result["ratio_tuned"], SLOWDOWN, at_most=True))
    return result


if __name__ == "__main__":
    main()
