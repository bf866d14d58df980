"""Index of vectors in memory and by groups: seconds by stage, memory of all processes, temporary bytes, agreement.

Each dataset is made of a Parquet file by a process of its own, which notes the anonymous memory of itself and of its
workers. Pages of mapped files do not count: the system drops them where memory is short; they are shown beside. Where
an index in memory is among the ways, the others are compared with it. The growth exponent is e where time grows as
rows to the power of e.
"""

import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from common import arguments, environment, run_worker, save, table, verdict
from index_jobs import job_folder, run_job

SCRIPT = Path(__file__).resolve().parent / "scale_out_index_workers.py"
WAYS = ("memory", "threads", "processes", "ray")
KINDS = ("clustered", "small", "noisy", "equal", "three", "one", "uniform")
EXPONENT, MEMORY_GIB, MINUTES, DISK = 1.15, 8.0, 60.0, 1.2
EQUAL = 0.999
MANY_ROWS = 10_000_000


def main() -> None:
    """Measure, print and write."""
    parser = arguments(__doc__, data=False)
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000], help="sizes, ascending")
    parser.add_argument("--dimension", type=int, default=512, help="of the vectors")
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=["memory", "processes"], help="how it is computed")
    parser.add_argument("--kind", choices=KINDS, default="clustered", help="of the vectors")
    parser.add_argument("--memory", type=float, default=6.0, help="GiB that an index by groups may take")
    parser.add_argument("--keep", type=Path, help="an empty folder for files and workspaces, which stay there")
    options = parser.parse_args()
    python = environment(options.peers, "framedex")
    measured = []
    for rows in options.rows:
        if options.keep is None:
            with job_folder() as folder:
                measured += _measure(python, folder, rows, options)
        else:
            options.keep.mkdir(parents=True, exist_ok=True)
            measured += _measure(python, options.keep, rows, options)
    _print(measured)
    _print_verdicts(measured, options.dimension)
    save(f"scale-out-index-{options.kind}", {"dimension": options.dimension, "measured": measured})


def _measure(python: Path, folder: Path, rows: int, options: Any) -> list[dict[str, Any]]:
    """Return the figures of one size, for each way."""
    source = folder / f"{options.kind}-{rows}.parquet"
    if not source.exists():
        run_job(python, "write_kind", folder, kind=options.kind, target=str(source), rows=rows,
                dimension=options.dimension)  # fmt: skip
    found = []
    for way in options.ways:
        workspace = folder / f"{way}-{rows}"
        task = f"create:{way}:{int(options.memory * 2**30)}:{workspace}"
        answer = run_worker(python, task, source, script=SCRIPT).result
        others = [each for each in options.ways if each == "memory" and way != "memory"]
        for other in others:
            compared = run_worker(python, f"compare:{folder / f'{other}-{rows}'}", workspace, script=SCRIPT)
            answer["agreement"] = compared.result["agreement"]
        found.append({"rows": rows, "way": way, **answer})
        print(f"{rows:,} rows, {way}: {answer['seconds']:.0f} s", flush=True)
    return found


def _print(measured: Sequence[dict[str, Any]]) -> None:
    stages = list(dict.fromkeys(stage for each in measured for stage in each["stages"]))
    headers = ["", *(f"{each['rows']:,} {each['way']}" for each in measured)]
    lines: list[list[Any]] = [[f"{stage}, s", *(each["stages"].get(stage) for each in measured)] for stage in stages]
    names = {
        "seconds": "in all, s",
        "peak_gib": "anonymous memory of all processes, GiB",
        "own_gib": "of the process itself, GiB",
        "worker_gib": "of a worker, GiB",
        "mapped_gib": "mapped files in memory, GiB",
        "spilled_gib": "temporary files, GiB",
    }
    lines += [[text, *(each[name] for each in measured)] for name, text in names.items()]
    print(table(headers, lines))
    for each in measured:
        for name, value in each.get("agreement", {}).items():
            print(verdict(f"{each['rows']:,} rows, {each['way']} like in memory: {name}", value, EQUAL))


def _print_verdicts(measured: Sequence[dict[str, Any]], dimension: int) -> None:
    for way in dict.fromkeys(each["way"] for each in measured):
        sizes = [each for each in measured if each["way"] == way]
        first, last = sizes[0], sizes[-1]
        if last["rows"] > first["rows"]:
            exponent = math.log(last["seconds"] / first["seconds"]) / math.log(last["rows"] / first["rows"])
            print(verdict(f"{way}: growth exponent", exponent, EXPONENT, at_most=True))
        vectors = last["rows"] * dimension * 4 / 2**30
        print(verdict(f"{way}: temporary bytes to those of vectors", last["spilled_gib"] / vectors, DISK, at_most=True))
        print(verdict(f"{way}: anonymous memory, GiB", last["peak_gib"], MEMORY_GIB, at_most=True))
        if last["rows"] >= MANY_ROWS:
            print(verdict(f"{way}: minutes of the index, without reading", last["index_s"] / 60, MINUTES, at_most=True))


if __name__ == "__main__":
    sys.exit(main())
