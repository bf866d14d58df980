"""Work on a dataset that is larger than memory: pages, filters, search, snapshots, additions, a new index.

The workspace is one that scale_out_index.py left in the folder of ``--keep``. Each kind of work runs in a process of
its own, in which nothing is known before, and which notes the anonymous memory of itself and of its workers. The
dataset is changed: one per cent is added, and it is indexed anew. Exact answers come of all vectors, read in blocks.
``--work retry`` goes on with a task that was killed, such as the process of ``--work reindex``.
"""

from pathlib import Path
from typing import Any

from common import arguments, environment, run_worker, save, table, verdict

SCRIPT = Path(__file__).resolve().parent / "scale_out_use_workers.py"
WORK = ("pages", "filters", "similar", "snapshot", "read", "add", "reindex")
RETRY = "retry"
PAGE_S, FILTER_MS, SIMILAR_MS, RECALL, MEMORY_GIB = 3.0, 1000.0, 30.0, 0.95, 8.0


def main() -> None:
    """Measure, print and write."""
    parser = arguments(__doc__, data=False)
    parser.add_argument("workspace", type=Path, help="with one dataset, which is changed")
    parser.add_argument("--work", nargs="+", choices=[*WORK, RETRY], default=WORK, help="in this order")
    parser.add_argument("--memory", type=float, default=6.0, help="GiB that an index by groups may take")
    options = parser.parse_args()
    python = environment(options.peers, "framedex")
    measured: dict[str, dict[str, Any]] = {}
    for work in options.work:
        task = f"{work}:{int(options.memory * 2**30)}"
        measured[work] = run_worker(python, task, options.workspace, script=SCRIPT).result
        print(f"\n{work}", flush=True)
        lines = [
            [name, f"{value:,.3f}" if isinstance(value, float) else value] for name, value in _flat(measured[work])
        ]
        print(table(["", "measured"], lines), flush=True)
    print()
    _print_verdicts(measured)
    save("scale-out-use", {"measured": measured})


def _flat(answer: dict[str, Any], before: str = "") -> list[tuple[str, Any]]:
    """Return the figures of an answer, with the names that lead to them."""
    found: list[tuple[str, Any]] = []
    for name, value in answer.items():
        found += _flat(value, f"{before}{name}: ") if isinstance(value, dict) else [(before + name, value)]
    return found


def _print_verdicts(measured: dict[str, dict[str, Any]]) -> None:
    if "pages" in measured:
        print(verdict("first page of a new process, s", measured["pages"]["first page, s"], PAGE_S, at_most=True))
    if "filters" in measured:
        for name, times in measured["filters"]["filters"].items():
            print(verdict(f"{name}: p50, ms", times["p50, ms"], FILTER_MS, at_most=True))
    if "similar" in measured:
        print(verdict("similar, p50, ms", measured["similar"]["p50, ms"], SIMILAR_MS, at_most=True))
        print(verdict("recall of the nearest hundred", measured["similar"]["recall"], RECALL))
    for work, answer in measured.items():
        peak = answer["memory"]["peak_gib"]
        print(verdict(f"{work}: anonymous memory, GiB", peak, MEMORY_GIB, at_most=True))


if __name__ == "__main__":
    main()
