"""Search by edited images: is the original the first, or among the first five, of 1,250 photos?

Photos are edited in eleven ways (``by_image_edits.py``), and each result is searched by: with ``ds.similar(path)``
and the encoders ``gist`` and MobileNetV2 (in ONNX, the input of its last layer), with hashes of imagededup, and with
``fastdup.search``, each tool in a process of its own. imagededup's network is left out: it downloads its weights.

    python benchmarks/by_image.py [--photos 200] [--tools gist fastdup …]
"""

import json
import random
import sys
import tempfile
from pathlib import Path
from statistics import fmean
from typing import Any

from bars import bars
from by_image_edits import EDITS, write_edits
from common import RESULTS, arguments, environment, link_all, photos, require, run_worker, save, table

SEED = 20261122
_SCRIPT = Path(__file__).resolve().parent / "by_image_workers.py"
_MODEL = "mobilenetv2-12-int8.onnx"
# By name: the environment (none is this one, which has ONNX Runtime) and the task.
_TOOLS: dict[str, tuple[str | None, str]] = {
    "gist": (None, "framedex:gist"),
    "MobileNetV2": (None, "framedex:onnx"),
    "fastdup": ("fastdup", "fastdup"),
    "PHash": ("imagededup", "imagededup:PHash"),
    "DHash": ("imagededup", "imagededup:DHash"),
    "WHash": ("imagededup", "imagededup:WHash"),
    "AHash": ("imagededup", "imagededup:AHash"),
}


def main() -> None:
    """Measure, print and write."""
    parser = arguments(__doc__)
    parser.add_argument("--photos", type=int, default=200, help="photos that are edited, of the 1,250 in the gallery")
    parser.add_argument("--tools", nargs="+", choices=list(_TOOLS), default=list(_TOOLS))
    options = parser.parse_args()
    images, model = photos(options.data), require(options.data, "models") / _MODEL
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="bench-by-image-") as name:
        folder = Path(name)
        _write(images, random.Random(SEED).sample(images, options.photos), model, folder)
        for tool in options.tools:
            where, task = _TOOLS[tool]
            python = Path(sys.executable) if where is None else environment(options.peers, where)
            run = run_worker(python, task, folder, script=_SCRIPT)
            found[tool] = run.result | {"peak_mib": run.peak_mib}
            print(f"{tool}: {run.wall_s:.0f} s", flush=True)
    _print(found, len(images), options.photos)
    _plot(found)
    save("by_image", {"gallery": len(images), "photos": options.photos, "tools": found})


def _write(images: list[Path], chosen: list[Path], model: Path, folder: Path) -> None:
    """Write the gallery, the queries, and which belongs to which."""
    link_all(images, folder / "gallery")
    queries = folder / "queries"
    queries.mkdir()
    asked: dict[str, list[tuple[str, str]]] = {name: [] for name in EDITS}
    for photo in chosen:
        for edit, file_name in write_edits(photo, photo.stem, queries).items():
            asked[edit].append((file_name, photo.name))
    (folder / "asked.json").write_text(json.dumps({"model": str(model), "queries": asked}), "utf-8")


def _print(found: dict[str, Any], gallery: int, count: int) -> None:
    tools = list(found)
    print(f"\nShare of {count} photos, among {gallery:,}, that come first | among the first five")
    cells = [[edit, *(_pair(each["first"][edit], each["few"][edit]) for each in found.values())] for edit in EDITS]
    overall = [_pair(fmean(each["first"].values()), fmean(each["few"].values())) for each in found.values()]
    print(table(["edit", *tools], [*cells, ["all", *overall]]))
    print()
    rows = [[tool, each["median_ms"], each["build_s"], each["peak_mib"]] for tool, each in found.items()]
    print(table(["tool", "ms a query (median)", "s to make the gallery searchable", "peak MiB"], rows))


def _pair(first: float, few: float) -> str:
    return f"{first:.3f} | {few:.3f}"


def _plot(found: dict[str, Any]) -> None:
    RESULTS.mkdir(exist_ok=True)
    shares = {tool: [each["first"][edit] for edit in EDITS] for tool, each in found.items()}
    text = bars("Searching by an edited image: share of originals that come first", list(EDITS), shares)
    (RESULTS / "by_image.svg").write_text(text, "utf-8")


if __name__ == "__main__":
    main()
