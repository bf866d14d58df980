"""What the benchmarks share: arguments, photos, environments of other tools, measured processes, tables, results.

It imports the standard library only: a process starts with the memory peak of the one that started it, so the
benchmark that measures peaks must stay small itself.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench-results"
WORKERS = Path(__file__).resolve().parent / "workers.py"
PHOTO_FOLDERS = ("photos/imagenet-sample", "photos/flickr8k-1000")
PHOTO_SUFFIXES = (".jpg", ".jpeg", ".png", ".webp")

# The first pin of each environment is the tool that is compared with; the others keep its dependencies as they were.
PINS = {
    "fastdup": (
        "fastdup==2.54",
        "numpy==1.26.4",
        "opencv-python-headless==4.11.0.86",
        "pandas==3.0.6",
        "pillow==10.3.0",
        "scikit-learn==1.5.0",
        "scipy==1.17.1",
    ),
    "cleanvision": (
        "cleanvision==0.3.7",
        "ImageHash==4.3.2",
        "numpy==2.4.6",
        "pandas==3.1.1",
        "pillow==13.0.0",
        "scipy==1.17.1",
    ),
    "pdqhash": ("pdqhash==0.2.8", "ImageHash==4.3.2", "numpy==2.4.6", "pillow==13.0.0", "scipy==1.17.1"),
    "imagededup": (
        "imagededup==0.3.3.post2",
        "numpy==2.4.6",
        "pillow==13.0.0",
        "scikit-learn==1.9.1",
        "scipy==1.17.1",
        "torch==2.13.0",
        "torchvision==0.28.0",
    ),
    "faiss-cpu": ("faiss-cpu==1.15.1", "numpy==2.4.6", "scipy==1.17.1"),
    "hdbscan": ("hdbscan==0.8.44", "joblib==1.6.0", "numpy==2.4.6", "scikit-learn==1.9.1", "scipy==1.17.1"),
    "fast-hdbscan": (
        "fast-hdbscan==0.3.4",
        "numba==0.68.1",
        "numpy==2.4.6",
        "pynndescent==0.7.0",
        "scikit-learn==1.9.1",
        "scipy==1.17.1",
    ),
    "cleanlab": ("cleanlab==2.9.0", "numpy==2.4.6", "pandas==3.1.1", "scikit-learn==1.9.1", "scipy==1.17.1"),
    "lancedb": ("lancedb==0.40.0", "numpy==2.4.6"),
    "chromadb": ("chromadb==1.5.9", "numpy==2.4.6"),
    "qdrant-client": ("qdrant-client==1.20.0", "numpy==2.4.6"),
    "tantivy": ("tantivy==0.27.0",),
    "rank-bm25": ("rank-bm25==0.2.2", "numpy==2.4.6"),
    "pycocotools": ("pycocotools==2.0.11", "matplotlib==3.11.2", "numpy==2.4.6", "pillow==13.0.0"),
    "torchvision": (
        "torchvision==0.28.0",
        "numpy==2.4.6",
        "pillow==13.0.0",
        "pycocotools==2.0.11",
        "torch==2.13.0",
    ),
    "ultralytics": (
        "ultralytics==8.4.190",
        "numpy==2.4.6",
        "opencv-python==5.0.0.93",
        "pillow==13.0.0",
        "torch==2.13.0",
        "torchvision==0.28.0",
    ),
    "umap-learn": ("umap-learn==0.5.12", "numba==0.68.1", "numpy==2.4.6", "scikit-learn==1.9.1", "scipy==1.17.1"),
    "pacmap": ("pacmap==0.9.1", "numba==0.68.1", "numpy==2.4.6", "scikit-learn==1.9.1", "scipy==1.17.1"),
    "openTSNE": ("openTSNE==1.0.4", "numpy==2.4.6", "scikit-learn==1.9.1", "scipy==1.17.1"),
    "lightly-studio": (
        "lightly-studio==1.2.0",
        "duckdb==1.5.6",
        "numpy==2.4.6",
        "pillow==13.0.0",
        "torch==2.13.0",
        "torchvision==0.28.0",
    ),
    "renumics-spotlight": ("renumics-spotlight==1.8.2", "numpy==2.4.6", "pandas==2.3.3", "pillow==13.0.0"),
    "datumaro": (
        "datumaro==1.13.12",
        "lxml==6.1.3",
        "numpy==2.4.6",
        "opencv-python-headless==4.14.0.94",
        "orjson==3.13.0",
        "pandas==2.3.3",
        "pillow==12.3.0",
        "pycocotools==2.0.11",
    ),
    "fiftyone": (
        "fiftyone==1.22.1",
        "fiftyone-brain==0.25.0",
        "fiftyone-db==1.4.1",
        "mongoengine==0.29.3",
        "numpy==2.4.6",
        "opencv-python-headless==4.14.0.94",
        "pandas==3.1.1",
        "pillow==13.0.0",
        "pymongo==4.9.2",
    ),
    "onnxruntime": ("onnxruntime==1.31.1", "numpy==2.4.6", "onnx==1.23.2", "pillow==13.0.0", "protobuf==7.36.2"),
}
# fastdup reports usage over the network unless it is told not to.
_QUIET = {"SENTRY_OPT_OUT": "1", "PYTHONWARNINGS": "ignore"}
# Modules are compiled once, as where a tool is installed, and come from the tool's own environment.
_UNSET = frozenset(("PYTHONPATH", "PYTHONDONTWRITEBYTECODE"))


def arguments(description: str | None, *, peers: bool = True, data: bool = True) -> argparse.ArgumentParser:
    """Return a parser with the options that the benchmarks share."""
    parser = argparse.ArgumentParser(
        description=(description or "").partition("\n")[0], formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    if data:
        parser.add_argument("--data", type=Path, default=ROOT / "../shared/data", help="folder with the test images")
    if peers:
        parser.add_argument(
            "--peers", type=Path, default=RESULTS / "peers", help="folder with an environment for each other tool"
        )
    return parser


def photos(data: Path) -> list[Path]:
    """Return the 1,250 photos, sorted by name; end the program with a clear message where they are absent."""
    found: list[Path] = []
    for folder in PHOTO_FOLDERS:
        where = require(data, folder)
        found += sorted(path for path in where.iterdir() if path.suffix.lower() in PHOTO_SUFFIXES)
    return found


def require(data: Path, folder: str) -> Path:
    """Return a folder of the test images; end the program with a clear message where it is absent."""
    where = (data / folder).resolve()
    if not where.is_dir():
        sys.exit(f"The test images are absent: there is no folder {folder!r} in {str(data)!r}. Name it with --data.")
    return where


def link_all(paths: Iterable[Path], folder: Path, *, times: int = 1) -> Path:
    """Fill a folder with links to files, by their names, each a number of times; return the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in paths:
        for copy in range(times):
            (folder / (f"{copy}-{path.name}" if copy else path.name)).symlink_to(path)
    return folder


def environment(peers: Path, name: str) -> Path:
    """Return the Python of a tool's environment; make the environment where it is missing or not as pinned.

    ``framedex`` is this checkout with its base dependencies and what agreement is computed with, ``framedex[http]``
    with those of the service.
    """
    folder = peers.absolute() / name
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if _is_ready(python, name):
        return python
    print(f"Making the environment of {name} in {peers.name}/{name} …", flush=True)
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    install = [str(python), "-m", "pip", "install", "-qq", "--disable-pip-version-check"]
    subprocess.run([*install, *_requirements(name)], check=True)
    return python


def _requirements(name: str) -> list[str]:
    if name in PINS:
        return list(PINS[name])
    constraints = ROOT / "constraints.txt"
    pins = ["-c", str(constraints)] if constraints.is_file() else []
    # Editable, so that a later run measures the sources as they are then.
    return [*pins, "-e", f"{ROOT}{name.removeprefix('framedex')}", *_beside(name)]


def _beside(name: str) -> tuple[str, ...]:
    return ("scikit-learn", "scipy") if name == "framedex" else ()


def _is_ready(python: Path, name: str) -> bool:
    if not python.is_file():
        return False
    names = (name.partition("[")[0], *_beside(name))
    text = f"from importlib.metadata import version; print([version(each) for each in {names!r}][0])"
    asked = subprocess.run([str(python), "-c", text], capture_output=True, text=True, check=False)
    version = asked.stdout.strip()
    return bool(version) and (name not in PINS or PINS[name][0] == f"{name}=={version}")


@dataclass(frozen=True)
class Run:
    """What a process used and gave.

    Attributes:
        wall_s: from its start to its end.
        processor_s: user and system time, with that of the processes it started.
        peak_mib: most memory that it, or the largest of the processes it started, had at a time.
        result: what the worker returned; ``seconds`` is its main call alone, without imports.
    """

    wall_s: float
    processor_s: float
    peak_mib: float
    result: dict[str, Any]

    @property
    def call_s(self) -> float:
        """Seconds of the main call."""
        return float(self.result["seconds"])

    @property
    def call_processor_s(self) -> float:
        """Processor seconds of the main call, for workers that return them."""
        return float(self.result["processor_s"])


def run_worker(python: Path, task: str, source: Path, *, script: Path = WORKERS) -> Run:
    """Run a task of a script on a folder in a process of its own; end the program where it fails."""
    with tempfile.TemporaryDirectory(prefix="bench-") as work:
        answer, log = Path(work) / "answer.json", Path(work) / "log.txt"
        # -P: the benchmarks' own modules must not hide a tool's modules of the same name.
        command = [str(python), "-P", str(script), task, str(source.absolute()), str(answer)]
        variables = {key: value for key, value in os.environ.items() if key not in _UNSET} | _QUIET
        with log.open("wb") as output:
            started = time.perf_counter()
            process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=variables, cwd=work)
            _, status, usage = os.wait4(process.pid, 0)
            wall = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0 or not answer.is_file():
            tail = log.read_text("utf-8", "replace")[-4000:]
            sys.exit(f"The worker {task!r} ended with exit status {process.returncode}. The end of its output:\n{tail}")
        unit = 1 if sys.platform == "darwin" else 1024  # ru_maxrss is in bytes on macOS, in KiB on Linux
        processor = usage.ru_utime + usage.ru_stime
        return Run(wall, processor, usage.ru_maxrss * unit / 2**20, json.loads(answer.read_text("utf-8")))


def median(values: Iterable[float]) -> float:
    """Return the median of values."""
    return statistics.median(values)


def table(headers: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return a text table: the first column left, the others right aligned; fractions with three digits."""
    cells = [[_text(cell) for cell in row] for row in rows]
    widths = [max(len(line[place]) for line in [list(headers), *cells]) for place in range(len(headers))]
    lines = [list(headers), ["-" * width for width in widths], *cells]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if place else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def _text(cell: Any) -> str:
    if cell is None:
        return "-"
    if isinstance(cell, float):
        return f"{cell:,.3f}"
    return f"{cell:,}" if isinstance(cell, int) else str(cell)


def verdict(name: str, value: float, aim: float, *, at_most: bool = False) -> str:
    """Return a line that says whether an aim was met."""
    met = value <= aim if at_most else value >= aim
    return f"{name}: {value:,.4g}, aim {'≤' if at_most else '≥'} {aim:g}: {'met' if met else 'MISSED'}"


def ratio(part: int, whole: int) -> float:
    """Return part / whole; 1 where there is nothing, which cannot be wrong."""
    return part / whole if whole else 1.0


def save(name: str, result: dict[str, Any]) -> None:
    """Write a result with what it was measured on to ``bench-results/<name>.json``."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps({"machine": machine(), **result}, indent=1, ensure_ascii=False) + "\n", "utf-8")
    print(f"\nWritten to {path.relative_to(ROOT)}")


def machine() -> dict[str, Any]:
    """Return what the figures were measured on."""
    affinity = getattr(os, "sched_getaffinity", None)
    return {
        "system": platform.system(),
        "machine": platform.machine(),
        "processors": len(affinity(0)) if affinity else os.cpu_count(),
        "python": platform.python_version(),
    }
