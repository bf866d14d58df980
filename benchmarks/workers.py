"""What the measured processes do: ``python workers.py TASK FOLDER ANSWER`` runs one task and writes its answer as JSON.

Each task runs in the environment of its tool, so the tools are imported within the tasks. The answer's ``seconds``
are those of the tool's main call, without imports.
"""

import json
import os
import sys
import time
import types
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

Answer = dict[str, Any]
DECODING_THREADS = 2
MOST_DISTANT = 12  # of 64 bits of a perceptual hash


class Clock:
    """Seconds, and processor seconds of this process and of those that it started, since the clock was made."""

    def __init__(self) -> None:
        self._started, self._processor = time.perf_counter(), self._processor_s()

    @staticmethod
    def _processor_s() -> float:
        return sum(os.times()[:4])

    def read(self) -> Answer:
        """Return both times."""
        return {"seconds": time.perf_counter() - self._started, "processor_s": self._processor_s() - self._processor}


def framedex(source: Path, work: Path) -> Answer:
    """Make a Framedex dataset with everything in it."""
    from framedex import Workspace

    clock = Clock()
    with Workspace(work / "workspace") as workspace:
        dataset = workspace.create_dataset("bench", source, encoder="gist")
        return {**clock.read(), "images": dataset.count()}


def framedex_unverified(source: Path, work: Path) -> Answer:
    """Make a Framedex dataset without the verification of copies by keypoints."""
    os.environ["FRAMEDEX_COPY_BUDGET_MS"] = "0"
    return framedex(source, work)


def framedex_warm(source: Path, work: Path) -> Answer:
    """Make a Framedex dataset in a process that has made one before, so that its engines are loaded."""
    from framedex import Workspace

    with Workspace(work / "workspace") as workspace:
        workspace.create_dataset("first", source, encoder="gist")
        clock = Clock()
        dataset = workspace.create_dataset("bench", source, encoder="gist")
        return {**clock.read(), "images": dataset.count()}


def fastdup(source: Path, work: Path) -> Answer:
    """Run fastdup with its defaults."""
    import fastdup

    clock = Clock()
    found = fastdup.create(str(work / "fastdup"), str(source))
    found.run(overwrite=True)
    return {**clock.read(), "images": len(found.annotations(valid_only=True))}


def fastdup_gallery(source: Path, work: Path) -> Answer:
    """Run fastdup with its defaults, then write its gallery of outliers beside *source*; return the seconds of both.

    They count from the start of the process, with imports.
    """
    clock = Clock()
    import fastdup

    found = fastdup.create(str(work / "fastdup"), str(source))
    found.run(overwrite=True)
    run_s = clock.read()["seconds"]
    gallery = source.parent / "gallery"
    found.vis.outliers_gallery(save_path=str(gallery), num_images=20)
    images = len(found.annotations(valid_only=True))
    return {**clock.read(), "run_s": run_s, "page": str(gallery / "outliers.html"), "images": images}


def cleanvision(source: Path, work: Path) -> Answer:
    """Find issues with CleanVision's defaults."""
    times, lab = _find_issues(source)
    return {**times, "images": len(lab.issues)}


def cleanvision_scores(source: Path, work: Path) -> Answer:
    """Return all of CleanVision's scores and flags by file name, and its sets of duplicates."""
    times, lab = _find_issues(source)
    names = [Path(path).name for path in lab.issues.index]
    columns = {name: lab.issues[name].tolist() for name in lab.issues.columns}
    sets = {
        kind: [[Path(path).name for path in each] for each in lab.info[kind]["sets"]]
        for kind in ("exact_duplicates", "near_duplicates")
    }
    return {**times, "names": names, "columns": columns, "sets": sets}


def cleanvision_flags(source: Path, work: Path) -> Answer:
    """Return the paths that CleanVision flags, by issue."""
    times, lab = _find_issues(source)
    prefix, end = "is_", "_issue"
    names = [name for name in lab.issues.columns if name.startswith(prefix) and name.endswith(end)]
    flags = {
        name[len(prefix) : -len(end)]: [str(path) for path in lab.issues.index[lab.issues[name]]] for name in names
    }
    return {**times, "flags": flags}


def _find_issues(source: Path) -> tuple[Answer, Any]:
    from cleanvision import Imagelab

    clock = Clock()
    lab = Imagelab(data_path=str(source))
    lab.find_issues()
    return clock.read(), lab


def phash_pairs(source: Path, work: Path) -> Answer:
    """Return [file, file, Hamming distance] of all pairs whose perceptual hashes are close, by imagededup."""
    # torchvision, which imagededup imports for other methods, cannot register its operators on CPU builds of torch.
    sys.modules["torchvision._meta_registrations"] = types.ModuleType("_meta_registrations")
    from imagededup.methods import PHash

    started = time.perf_counter()
    hasher = PHash(verbose=False)
    found = hasher.find_duplicates(image_dir=str(source), max_distance_threshold=MOST_DISTANT, scores=True)
    seconds = time.perf_counter() - started
    pairs = [[name, other, int(distance)] for name, near in found.items() for other, distance in near if name < other]
    return {"seconds": seconds, "names": sorted(found), "pairs": pairs}


def decode(source: Path, work: Path) -> Answer:
    """Decode each file at full size with OpenCV, on two threads, and do nothing else."""
    import cv2

    cv2.setNumThreads(1)
    paths = sorted(os.fspath(path) for path in source.iterdir())
    clock = Clock()
    with ThreadPoolExecutor(DECODING_THREADS) as pool:
        decoded = sum(pool.map(lambda path: cv2.imread(path) is not None, paths))
    return {**clock.read(), "images": decoded}


TASKS: dict[str, Callable[[Path, Path], Answer]] = {
    "framedex": framedex,
    "framedex_unverified": framedex_unverified,
    "framedex_warm": framedex_warm,
    "fastdup": fastdup,
    "fastdup_gallery": fastdup_gallery,
    "cleanvision": cleanvision,
    "cleanvision_flags": cleanvision_flags,
    "cleanvision_scores": cleanvision_scores,
    "phash_pairs": phash_pairs,
    "decode": decode,
}


def main() -> None:
    """Run the task that the command line names."""
    task, source, answer = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    result = TASKS[task](source, answer.parent)
    answer.write_text(json.dumps(result), "utf-8")


if __name__ == "__main__":
    main()
