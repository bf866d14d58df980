"""Scale: the whole index of clustered vectors at growing numbers of rows, by stages, with the peak of memory.

The vectors are written to Parquet before. Each dataset is made in a process of its own. The growth exponent is e where
time grows as rows to the power of e. Beside it stands what bare float32 matrix products would take for the comparisons
of the neighbour search, at the rate that the machine had before and after.
"""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from common import Run, arguments, save, table, verdict
from index_jobs import framedex_python, job_folder, run_job

EXPONENT, SECONDS, MEMORY_MIB = 1.25, 600.0, 8192.0
AIMED_ROWS = 1_000_000
READING = "reading"  # stages of that word are ingestion


def main(given: Sequence[str]) -> None:
    """Measure, print and write."""
    parser = arguments(__doc__, data=False)
    parser.prog = "index.py scale"
    parser.add_argument("--rows", type=int, nargs="+", default=[62_500, 250_000, AIMED_ROWS], help="sizes, ascending")
    parser.add_argument("--dimension", type=int, default=512, help="of the vectors")
    options = parser.parse_args(given)
    python = framedex_python(options.peers)
    sizes = [_measure(python, rows, options.dimension) for rows in options.rows]
    _print_stages(sizes)
    _print_sizes(sizes)
    _print_verdicts(sizes)
    save("index-scale", {"dimension": options.dimension, "sizes": sizes})


def _measure(python: Path, rows: int, dimension: int) -> dict[str, Any]:
    """Return the figures of one size."""
    with job_folder() as folder:
        source = folder / "vectors.parquet"
        run_job(python, "write_tables", folder, targets=[(str(source), rows)], dimension=dimension)
        rate = [product_rate(python, folder, dimension)]
        run = run_job(python, "create", folder, source=source)
        rate.append(product_rate(python, folder, dimension))
    found = {"rows": rows, **index_figures(run), "product_rates": rate}
    found["products_s"] = found["compared"] * dimension / (sum(rate) / len(rate))
    print(f"{rows:,} rows: {found['whole_s']:.1f} s, of which index {found['index_s']:.1f} s", flush=True)
    return found


def product_rate(python: Path, folder: Path, dimension: int) -> float:
    """Return the multiply-adds a second of bare float32 matrix products."""
    return float(run_job(python, "products", folder, dimension=dimension).result["rate"])


def index_figures(run: Run) -> dict[str, Any]:
    """Return seconds in all and without ingestion, by stages, and the peak of memory, of a task that indexed."""
    stages: dict[str, float] = run.result["stages"]
    reading = sum(seconds for stage, seconds in stages.items() if READING in stage)
    return {
        "whole_s": run.call_s,
        "index_s": run.call_s - reading,
        "process_s": run.wall_s,
        "peak_mib": run.peak_mib,
        "stages": stages,
        "compared": run.result.get("compared"),
    }


def _print_stages(sizes: Sequence[dict[str, Any]]) -> None:
    print("\nSeconds by stage")
    names = list(dict.fromkeys(stage for size in sizes for stage in size["stages"]))
    headers = ["stage", *(f"{size['rows']:,} rows" for size in sizes)]
    print(table(headers, [[name, *(size["stages"].get(name) for size in sizes)] for name in names]))


def _print_sizes(sizes: Sequence[dict[str, Any]]) -> None:
    print("\nWhole tasks; pairs compared by the neighbour search, and bare matrix products of as many")
    headers = ["rows", "whole s", "index s", "process s", "peak MiB", "pairs a row", "of all pairs", "products s"]
    keys = ("whole_s", "index_s", "process_s", "peak_mib")
    print(
        table(
            headers,
            [
                [
                    f"{size['rows']:,}",
                    *(size[key] for key in keys),
                    size["compared"] / size["rows"],
                    size["compared"] / size["rows"] ** 2,
                    size["products_s"],
                ]
                for size in sizes
            ],
        )
    )
    rates = [rate / 1e9 for size in sizes for rate in size["product_rates"]]
    print(f"Bare products: {min(rates):.1f} to {max(rates):.1f} thousand million multiply-adds a second")


def _print_verdicts(sizes: Sequence[dict[str, Any]]) -> None:
    print()
    first, last = sizes[0], sizes[-1]
    if last["rows"] > first["rows"]:
        for key, name in (("index_s", "index alone"), ("whole_s", "with ingestion")):
            exponent = math.log(last[key] / first[key]) / math.log(last["rows"] / first["rows"])
            print(verdict(f"growth exponent, {name}", exponent, EXPONENT, at_most=True))
            last[f"{key}_exponent"] = exponent
    if last["rows"] >= AIMED_ROWS:
        print(verdict(f"seconds at {last['rows']:,} rows, with ingestion", last["whole_s"], SECONDS, at_most=True))
        print(verdict(f"peak memory in MiB at {last['rows']:,} rows", last["peak_mib"], MEMORY_MIB, at_most=True))
    else:
        print(f"The aims for time and memory are those of {AIMED_ROWS:,} rows, which were not measured.")
