"""Searches by image: ``python by_image_workers.py TASK FOLDER ANSWER``, in the environment of each tool.

The folder holds ``gallery`` and ``queries``, and ``asked.json``: the queries by edit, each with the file of the gallery
that it was made from. A worker answers, for each edit, how often that file came first and among the first five, and
how long a query took from its file to the answer. The first queries are not timed.
"""

import json
import statistics
import sys
import time
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

Answer = dict[str, Any]
FEW, WARM_UP = 5, 20
_BITS = 64


def framedex(folder: Path, encoder: str) -> Answer:
    """Search a dataset by ``ds.similar(path)``."""
    from framedex import Workspace

    asked = _asked(folder)
    if encoder != "gist":
        encoder = f"onnx:{asked['model']}"
    started = time.perf_counter()
    with Workspace(folder / "workspace") as workspace:
        dataset = workspace.create_dataset(f"gallery {time.time_ns()}", folder / "gallery", encoder)
        build_s = time.perf_counter() - started
        names = {
            row["media_id"]: row["image_filename"]
            for row in dataset.to_arrow(["media_id", "image_filename"]).to_pylist()
        }
        return _measured(
            folder, lambda path: [[names[each]] for each in dataset.similar(path, FEW).media_ids()], build_s
        )


def imagededup(folder: Path, method: str) -> Answer:
    """Compare a hash with those of the gallery; what is equally near is in no order."""
    import numpy as np

    # torchvision, which imagededup imports for other methods, cannot register its operators on CPU builds of torch.
    sys.modules["torchvision._meta_registrations"] = types.ModuleType("_meta_registrations")
    from imagededup import methods

    hasher = getattr(methods, method)(verbose=False)
    started = time.perf_counter()
    hashes = hasher.encode_images(image_dir=str(folder / "gallery"))
    build_s = time.perf_counter() - started
    names = np.array(list(hashes))
    bits = np.array([_bits(each) for each in hashes.values()])

    def nearest(path: str) -> list[list[str]]:
        distances = (bits != _bits(hasher.encode_image(image_file=path))).sum(axis=1)
        least = np.unique(distances)[:FEW]
        return [names[distances == each].tolist() for each in least]

    return _measured(folder, nearest, build_s)


def _bits(text: str) -> list[bool]:
    return [digit == "1" for digit in f"{int(text, 16):0{_BITS}b}"]


def fastdup(folder: Path, _option: str) -> Answer:
    """Search by ``fastdup.search``."""
    import fastdup as tool

    work = folder / "fastdup"
    started = time.perf_counter()
    tool.create(str(work), str(folder / "gallery")).run(overwrite=True)
    tool.init_search(FEW, str(work), threshold=0.0)
    build_s = time.perf_counter() - started

    def nearest(path: str) -> list[list[str]]:
        found = tool.search(path)
        return [] if found is None else [[Path(each).name] for each in found["to"]]

    return _measured(folder, nearest, build_s)


def _asked(folder: Path) -> dict[str, Any]:
    asked: dict[str, Any] = json.loads((folder / "asked.json").read_text("utf-8"))
    return asked


def _measured(folder: Path, nearest: Callable[[str], list[list[str]]], build_s: float) -> Answer:
    """Return the recall of all edits and the time of a query.

    Args:
        folder: with the queries.
        nearest: given the path of a query, returns names of the gallery, the nearest first; those as near as each other
            together.
        build_s: what it took to make the gallery searchable.
    """
    asked = _asked(folder)["queries"]
    for query, _ in next(iter(asked.values()))[:WARM_UP]:
        nearest(str(folder / "queries" / query))
    first, few, times = {}, {}, []
    for edit, pairs in asked.items():
        chances = []
        for query, original in pairs:
            started = time.perf_counter()
            found = nearest(str(folder / "queries" / query))
            times.append(time.perf_counter() - started)
            chances.append(_chances(found, original))
        first[edit] = statistics.fmean(chance[0] for chance in chances)
        few[edit] = statistics.fmean(chance[1] for chance in chances)
    return {
        "seconds": sum(times),
        "build_s": build_s,
        "median_ms": 1000 * statistics.median(times),
        "first": first,
        "few": few,
    }


def _chances(found: list[list[str]], original: str) -> tuple[float, float]:
    """Return how likely a file is the first, and among the first few, where those as near come in any order."""
    nearer = 0
    for group in found:
        if original in group:
            return float(nearer == 0) / len(group), min(max((FEW - nearer) / len(group), 0.0), 1.0)
        nearer += len(group)
    return 0.0, 0.0


TASKS: dict[str, Callable[[Path, str], Answer]] = {"framedex": framedex, "imagededup": imagededup, "fastdup": fastdup}


def main() -> None:
    """Run the task that the command line names."""
    (tool, _, option), folder, answer = sys.argv[1].partition(":"), Path(sys.argv[2]), Path(sys.argv[3])
    answer.write_text(json.dumps(TASKS[tool](folder, option)), "utf-8")


if __name__ == "__main__":
    main()
