"""Ingestion on one core and on all: threads, one process and several, beside fastdup and CleanVision.

Each runs as a whole process, in turns over several rounds; ratios are taken within a round. The processor time of the
process that writes the rows and of those that decode, at two sizes, gives what one image costs in each. The first is
the share that no further core takes over, and limits the rate on many cores.
"""

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from common import Run, arguments, environment, link_all, median, photos, run_worker, save, table

PEERS = ("fastdup", "cleanvision")
SCRIPT = Path(__file__).resolve().parent / "scale_out_workers.py"
PREDICTED = (2, 4, 8, 16, 32)
ASKED = 0.8  # of the number of processors, times the rate of one process
Round = dict[str, Run]


def main() -> None:
    """Measure, print and write the comparison."""
    parser = arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="measured rounds; one more goes before, unmeasured")
    parser.add_argument("--repeat", type=int, default=4, help="take each photo so many times, as a larger dataset")
    parser.add_argument("--without-peers", action="store_true", help="measure Framedex alone")
    options = parser.parse_args()
    chosen = photos(options.data)
    peers = () if options.without_peers else PEERS
    pythons = {name: environment(options.peers, name) for name in ("framedex", *peers)}
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    counts = sorted({1, *(each for each in PREDICTED if each <= cpus), cpus})
    tasks = ["threads", *(f"processes_{count}" for count in counts), "default"]
    with tempfile.TemporaryDirectory(prefix="bench-photos-") as folder:
        source = link_all(chosen, Path(folder) / "all", times=options.repeat)
        part = link_all(chosen, Path(folder) / "part")
        small = run_worker(pythons["framedex"], "processes_1", part, script=SCRIPT)
        rounds: list[Round] = []
        for place in range(options.rounds + 1):
            runs = {task: run_worker(pythons["framedex"], task, source, script=SCRIPT) for task in tasks}
            runs |= {peer: run_worker(pythons[peer], peer, source) for peer in peers}
            rounds += [runs] if place else []
            print(f"round {place or 'of warming up'} done", flush=True)
    count = len(chosen) * options.repeat
    _print_rates(rounds, [*tasks, *peers], count)
    costs = _costs(small, rounds, count - len(chosen))
    _print_prediction(*costs)
    rates = {task: median(count / each[task].call_s for each in rounds) for task in rounds[0]}
    save(f"scale-out-ingestion-{count}", {"images": count, "processors": cpus, "images_s": rates, "ms": costs})


def _print_rates(rounds: Sequence[Round], tasks: Sequence[str], count: int) -> None:
    print(f"\n{count:,} photos; medians of {len(rounds)} rounds; ratios are taken within a round")
    rows = []
    for task in tasks:
        runs = [each[task] for each in rounds]
        rows.append([
            task.replace("_", " "), median(count / run.call_s for run in runs),
            median(each["processes_1"].call_s / each[task].call_s for each in rounds),
            median(run.call_processor_s for run in runs), max(run.peak_mib for run in runs),
        ])  # fmt: skip
    print(table(["", "images/s", "times one process", "processor s", "peak MiB"], rows))


def _costs(small: Run, rounds: Sequence[Round], further: int) -> tuple[float, float]:
    """Return the processor milliseconds of an image: in the process that writes, and in the one that decodes."""
    first = small.result
    writing, decoding = (
        1000 * (median(each["processes_1"].result[name] for each in rounds) - first[name]) / further
        for name in ("own_s", "children_s")
    )
    return writing, decoding


def _print_prediction(writing_ms: float, decoding_ms: float) -> None:
    share = writing_ms / (writing_ms + decoding_ms)
    print(
        f"\nProcessor time of an image: {decoding_ms:.3f} ms where it is decoded, {writing_ms:.3f} ms where its row is "
        f"written: {share:.1%} stay on one core."
    )
    rows = []
    for cores in PREDICTED:
        times = min((writing_ms + decoding_ms) * cores, 1e9) / max(writing_ms * cores, writing_ms + decoding_ms)
        rows.append([str(cores), 1000 * times / (writing_ms + decoding_ms), times, ASKED * cores])
    print(table(["cores (computed)", "images/s", "times one", "asked for"], rows))


if __name__ == "__main__":
    main()
