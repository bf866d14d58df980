"""Ingestion side by side: Framedex, fastdup and CleanVision on the same photos, and bare decoding.

Each tool runs with its defaults as a whole process in an environment of its own, in turns over several rounds. Ratios
are taken within a round and their median is reported, because other work on the machine changes from round to round.
``--before`` compares the processor time with that of other sources of Framedex, too.
"""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from common import Run, arguments, environment, link_all, median, photos, run_worker, save, table, verdict

PEERS = ("fastdup", "cleanvision")
FRAMEDEX = ("framedex", "framedex_unverified", "framedex_warm")
BEFORE = "before"
TASKS = (*FRAMEDEX, *PEERS, "decode")
TITLES = {
    "framedex": "Framedex",
    "framedex_unverified": "Framedex, copies not verified",
    "framedex_warm": "Framedex, second dataset",
    "fastdup": "fastdup",
    "cleanvision": "CleanVision",
    "decode": "bare decoding",
    BEFORE: "Framedex before, copies not verified",
}
COMPARED = FRAMEDEX[:2]
FASTER_PEER = "the faster of them"
FASTER = 4.0  # times the faster peer, but for the verification of copies
OF_DECODING = 0.35  # of the rate of bare decoding
MEMORY_MIB = 1024.0
OF_BEFORE = 1.25  # of the processor time before, but for the verification of copies
PARTS = {
    "process": "whole process",
    "call": "main call",
    "processor": "processor time",
    "call_processor": "processor time of the main call",
}
Round = dict[str, Run]


def main() -> None:
    """Measure, print and write the comparison."""
    parser = arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="measured rounds; one more goes before, unmeasured")
    parser.add_argument("--limit", type=int, default=None, help="only every n-th photo, so that so many are left")
    parser.add_argument("--repeat", type=int, default=1, help="take each photo so many times, as a larger dataset")
    parser.add_argument("--before", type=Path, help="the Python of an environment with other sources of Framedex")
    options = parser.parse_args()
    chosen = _thinned(photos(options.data), options.limit)
    pythons = {name: environment(options.peers, name) for name in ("framedex", *PEERS)}
    pythons |= dict.fromkeys((*FRAMEDEX, "decode"), pythons["framedex"])
    with tempfile.TemporaryDirectory(prefix="bench-photos-") as folder:
        source = link_all(chosen, Path(folder), times=options.repeat)
        rounds = [_round(place, pythons, source, options.before) for place in range(options.rounds + 1)][1:]
    count = len(chosen) * options.repeat
    _check_counts(rounds, count)
    _print_rounds(rounds)
    _print_tools(rounds, count)
    summary = _summary(rounds)
    _print_summary(summary)
    save(f"ingestion-{count}", {"images": count, "summary": summary, "rounds": [_plain(each) for each in rounds]})


def _thinned(paths: list[Path], limit: int | None) -> list[Path]:
    return paths if limit is None else paths[:: max(1, len(paths) // limit)]


def _round(place: int, pythons: dict[str, Path], source: Path, before: Path | None) -> Round:
    """Run all tools once, each round beginning with another one."""
    start = place % len(TASKS)
    runs = {}
    for task in (*TASKS[start:], *TASKS[:start]):
        runs[task] = run_worker(pythons[task], task, source)
        if task == COMPARED[-1] and before is not None:
            runs[BEFORE] = run_worker(before.absolute(), task, source)
    print(f"round {place or 'of warming up'} done", flush=True)
    return runs


def _check_counts(rounds: Sequence[Round], count: int) -> None:
    for each in rounds:
        for task, run in each.items():
            if run.result["images"] != count:
                print(f"NOTE: {TITLES[task]} took {run.result['images']} of {count} images")
                return


def _print_rounds(rounds: Sequence[Round]) -> None:
    print("\nSeconds a round: whole process / main call without imports")
    print(
        table(
            ["round", *(TITLES[task] for task in rounds[0])],
            [
                [str(place), *(f"{each[task].wall_s:.2f} / {each[task].call_s:.2f}" for task in rounds[0])]
                for place, each in enumerate(rounds, 1)
            ],
        )
    )


def _print_tools(rounds: Sequence[Round], count: int) -> None:
    print("\nMedians; memory is the peak of the largest process")
    rows = []
    for task in rounds[0]:
        call, wall, processor, call_processor = (
            median(getattr(each[task], name) for each in rounds)
            for name in ("call_s", "wall_s", "processor_s", "call_processor_s")
        )
        memory = max(each[task].peak_mib for each in rounds)
        rows.append([TITLES[task], wall, call, count / call, processor, call_processor, memory])
    print(table(["tool", "process s", "main call s", "images/s", "processor s", "of the call", "peak MiB"], rows))


def _summary(rounds: Sequence[Round]) -> dict[str, float]:
    """Return medians of ratios within rounds, and the highest memory peak."""
    found: dict[str, float] = {}
    for task in COMPARED:
        for name, peers in {**{peer: (peer,) for peer in PEERS}, FASTER_PEER: PEERS}.items():
            found[f"{task}_{name}_process_ratio"] = median(
                min(each[peer].wall_s for peer in peers) / each[task].wall_s for each in rounds
            )
            found[f"{task}_{name}_call_ratio"] = median(
                min(each[peer].call_s for peer in peers) / each[task].call_s for each in rounds
            )
            found[f"{task}_{name}_processor_ratio"] = median(
                min(each[peer].processor_s for peer in peers) / each[task].processor_s for each in rounds
            )
            found[f"{task}_{name}_call_processor_ratio"] = median(
                min(each[peer].call_processor_s for peer in peers) / each[task].call_processor_s for each in rounds
            )
    if BEFORE in rounds[0]:
        now = COMPARED[-1]
        found["before_process_ratio"] = median(each[now].processor_s / each[BEFORE].processor_s for each in rounds)
        found["before_call_ratio"] = median(
            each[now].call_processor_s / each[BEFORE].call_processor_s for each in rounds
        )
    # The decoder is loaded before its clock starts; Framedex loads its engines during its first call.
    for task in FRAMEDEX:
        found[f"{task}_share_of_decoding_rate"] = median(each["decode"].call_s / each[task].call_s for each in rounds)
    found["framedex_peak_mib"] = max(each["framedex"].peak_mib for each in rounds)
    return found


def _print_summary(summary: dict[str, float]) -> None:
    print("\nHow many times as fast as (median of the ratios within rounds)")
    rows = [
        [TITLES[task], peer, *(summary[f"{task}_{peer}_{part}_ratio"] for part in PARTS)]
        for task in COMPARED
        for peer in (*PEERS, FASTER_PEER)
    ]
    print(table(["", "peer", *PARTS.values()], rows))
    print()
    for part, title in PARTS.items():
        ratio = summary[f"{COMPARED[-1]}_{FASTER_PEER}_{part}_ratio"]
        print(verdict(f"times as fast as the faster peer, copies not verified, {title}", ratio, FASTER))
        if f"before_{part}_ratio" in summary:
            name = f"processor time, copies not verified, relative to before, {title}"
            print(verdict(name, summary[f"before_{part}_ratio"], OF_BEFORE, at_most=True))
    for task in FRAMEDEX:
        name = f"share of the rate of bare decoding, {TITLES[task]}"
        print(verdict(name, summary[f"{task}_share_of_decoding_rate"], OF_DECODING))
    print(verdict("peak memory in MiB", summary["framedex_peak_mib"], MEMORY_MIB, at_most=True))


def _plain(each: Round) -> dict[str, dict[str, Any]]:
    return {
        task: {
            "process_s": run.wall_s, "call_s": run.call_s, "peak_mib": run.peak_mib,
            "processor_s": run.processor_s, "call_processor_s": run.call_processor_s,
        }
        for task, run in each.items()
    }  # fmt: skip


if __name__ == "__main__":
    main()
