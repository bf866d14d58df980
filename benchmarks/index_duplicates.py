"""Near-duplicates: precision and recall over all thresholds of Framedex's ``gist``, fastdup and imagededup.

Eleven edits of 200 photos among all other photos; pairs of files that come from one photo are the truth, as in
``duplicates.py``, which looks closer at Framedex's levels. Groups are the connected components of the pairs above a
threshold, which is how both Framedex and fastdup make them. The curves are drawn where matplotlib is installed in
imagededup's environment.
"""

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from common import RESULTS, Run, arguments, environment, photos, save, table
from index_jobs import framedex_python, job_folder, run_job

TITLES = {"gist": "Framedex gist", "fastdup": "fastdup", "phash": "imagededup PHash"}
THRESHOLDS: dict[str, list[float]] = {
    "gist": [round(0.86 + 0.005 * step, 3) for step in range(28)] + [0.999],
    "fastdup": [round(0.70 + 0.01 * step, 2) for step in range(30)] + [0.995, 0.999],
    "phash": [float(-bits) for bits in range(12, 0, -1)] + [0.0],
}
USUAL = {"gist": 0.96, "fastdup": 0.96, "phash": -10.0}  # Framedex's first level, and the tools' defaults
LEVELS = (0.96, 0.97, 0.98, 0.985, 0.99, 0.995, 0.999, 1.0)
PRECISION = 0.99
NEIGHBOURS = 20


def main(given: Sequence[str]) -> None:
    """Measure, print and write."""
    parser = arguments(__doc__)
    parser.prog = "index.py duplicates"
    parser.add_argument("--sources", type=int, default=200, help="photos that are edited")
    parser.add_argument("--distractors", type=int, default=None, help="at most so many unedited photos beside them")
    options = parser.parse_args(given)
    pythons = {name: environment(options.peers, name) for name in ("fastdup", "imagededup")}
    pythons["framedex"] = framedex_python(options.peers)
    with job_folder() as folder:
        runs, answer = _measure(pythons, folder, options)
        (folder / "curves.json").write_text(
            json.dumps({TITLES[tool]: points for tool, points in answer["curves"].items()}), "utf-8"
        )
        RESULTS.mkdir(exist_ok=True)
        target = RESULTS / "index-duplicates.png"
        drawn = run_job(pythons["imagededup"], "plot_curves", folder, curves=folder / "curves.json", target=target)
    summary = {tool: _summary(tool, points) for tool, points in answer["curves"].items()}
    _print(runs, answer, summary)
    if drawn.result["drawn"]:
        print(f"\nDrawn in {target.name}")
    times = {
        tool: {"process_s": run.wall_s, "call_s": run.call_s, "peak_mib": run.peak_mib} for tool, run in runs.items()
    }
    save(
        "index-duplicates",
        {"images": answer["images"], "times": times, "summary": summary, "curves": answer["curves"]},
    )


def _measure(
    pythons: Mapping[str, Path], folder: Path, options: argparse.Namespace
) -> tuple[dict[str, Run], dict[str, Any]]:
    images = folder / "images"
    run_job(
        pythons["framedex"], "write_edits", folder,
        target=images, photos=photos(options.data), sources=options.sources, distractors=options.distractors,
    )  # fmt: skip
    found = {tool: folder / f"{tool}.npz" for tool in TITLES}
    given: dict[str, Any] = {"images": images}
    runs = {
        "gist": run_job(pythons["framedex"], "gist", folder, target=found["gist"], levels=LEVELS, **given),
        "fastdup": run_job(
            pythons["fastdup"], "fastdup_images", folder, target=found["fastdup"], k=NEIGHBOURS, **given
        ),
        "phash": run_job(pythons["imagededup"], "phash", folder, target=found["phash"], **given),
    }
    paths = {tool: str(path) for tool, path in found.items()}
    return runs, run_job(
        pythons["framedex"], "duplicate_curves", folder, found=paths, thresholds=THRESHOLDS, levels=LEVELS
    ).result


def _summary(tool: str, points: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the groups' figures at the usual threshold, and the highest recall at a precision of 0.99 or more."""
    usual = next(each for each in points if each["threshold"] == USUAL[tool])
    precise = [each for each in points if each["groups"]["precision_scene"] >= PRECISION]
    best = max(precise, key=lambda each: float(each["groups"]["recall"]), default=None)
    return {"usual": usual, "most_recall": best}


def _print(runs: Mapping[str, Run], answer: Mapping[str, Any], summary: Mapping[str, Any]) -> None:
    read = answer["read"]
    print(f"{answer['images']:,} files that all tools read; pairs within groups, photos of one scene counted as alike")
    best_name = f"best recall at ≥ {PRECISION}"
    headers = [
        "tool", "files", "process s", "peak MiB", "threshold", "precision", "recall", best_name, "threshold",
    ]  # fmt: skip
    rows = []
    for tool, each in summary.items():
        usual, best = each["usual"], each["most_recall"]
        groups = usual["groups"]
        rows.append(
            [
                TITLES[tool], read[tool], runs[tool].wall_s, runs[tool].peak_mib, usual["threshold"],
                groups["precision_scene"], groups["recall"],
                best and best["groups"]["recall"], best and best["threshold"],
            ]
        )  # fmt: skip
    print(table(headers, rows))
    for tool, points in answer["curves"].items():
        print(f"\n{TITLES[tool]}: pairs within groups, and the pairs themselves")
        print(
            table(
                ["threshold", "precision", "recall", "precision of pairs", "recall of pairs"],
                [
                    [
                        f"{each['threshold']:g}",
                        *(each[way][key] for way in ("groups", "pairs") for key in ("precision_scene", "recall")),
                    ]
                    for each in points
                ],
            )
        )
    wrong = answer["levels_unlike"]
    print(f"\nRows that Framedex's own groups, at its {len(LEVELS)} levels, put otherwise than these curves: {wrong}")
