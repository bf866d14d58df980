"""How the benchmarks of the index start their measured processes, and the vectors that they share.

Like ``common`` it imports the standard library only, and no vectors pass through it: the processes exchange files in a
folder that all of them are given.
"""

import argparse
import json
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common import RESULTS, Run, arguments, environment, photos, run_worker

CUTS = (0.04, 0.10, 0.20, 0.30, 0.45)  # cosine distances of Framedex's levels for embeddings of unknown origin
UNIFORM_CUTS = (0.66, 0.72, 0.78, 0.84, 0.90)  # where 128 random values begin to be near
K = 20
KINDS: dict[str, dict[str, Any]] = {
    "clustered": {"kind": "clustered", "dimension": 512},
    "noisy": {"kind": "noisy", "dimension": 512},
    "uniform-128": {"kind": "uniform", "dimension": 128},
    "uniform-512": {"kind": "uniform", "dimension": 512},
    "photos": {"kind": "photos"},
}
VERSIONS = 40  # of each photo, among the embeddings of photos
MODEL = "models/mobilenetv2-12-int8.onnx"
_SCRIPT = Path(__file__).resolve().parent / "index_workers.py"


@contextmanager
def job_folder() -> Iterator[Path]:
    """Yield a new folder that is removed at the end; ``TMPDIR`` says where."""
    with tempfile.TemporaryDirectory(prefix="bench-index-") as folder:
        yield Path(folder)


def run_job(python: Path, task: str, folder: Path, *, limit_s: int = 0, **options: Any) -> Run:
    """Run a task of ``index_workers.py`` in a process of its own; end the program where it fails.

    Args:
        python: of the environment it runs in.
        task: its name.
        folder: what the processes of a benchmark share.
        limit_s: seconds after which the process ends itself as failed; 0 for none.
        options: the task's own.
    """
    (folder / "job.json").write_text(json.dumps({"limit_s": limit_s, "options": options}, default=str), "utf-8")
    return run_worker(python, task, folder, script=_SCRIPT)


def addition_arguments(description: str | None, part: str, *, rows: int, added: float) -> argparse.ArgumentParser:
    """Return the options of a part that adds rows to a dataset, with its usual sizes."""
    parser = arguments(description, data=False)
    parser.prog = f"index.py {part}"
    parser.add_argument("--rows", type=int, default=rows, help="vectors of the dataset")
    parser.add_argument("--added", type=float, default=added, help="share of them that is added")
    parser.add_argument("--dimension", type=int, default=512, help="of the vectors")
    return parser


def write_parts(python: Path, folder: Path, rows: int, new: int, dimension: int) -> tuple[Path, Path]:
    """Write clustered vectors as two files, the dataset and what is added to it; return them."""
    whole, part = folder / "whole.parquet", folder / "part.parquet"
    run_job(python, "write_tables", folder, targets=[(str(whole), rows), (str(part), new)], dimension=dimension)
    return whole, part


def try_job(python: Path, task: str, folder: Path, *, limit_s: int, **options: Any) -> Run | str:
    """Do as :func:`run_job` for a tool that may not get through; return what it said where it failed."""
    try:
        return run_job(python, task, folder, limit_s=limit_s, **options)
    except SystemExit as ended:
        message = str(ended.code)
        if f"exit status {-signal.SIGALRM}." in message:
            return f"not done in {limit_s} s"
        if f"exit status {-signal.SIGKILL}." in message:
            return "ended by the system, as for want of memory"
        return message.strip().rpartition("\n")[2]


def framedex_python(peers: Path) -> Path:
    """Return the Python of this checkout with nothing but its base dependencies."""
    return environment(peers, "framedex")


@dataclass(frozen=True)
class VectorFile:
    """Vectors in a file, and a sample of their rows.

    Attributes:
        path: a NumPy file, float32, shape (rows, dimension), of unit length.
        sample: a NumPy file with rows, ascending.
        rows, dimension: of the vectors.
    """

    path: Path
    sample: Path
    rows: int
    dimension: int

    @property
    def options(self) -> dict[str, Any]:
        """The options of tasks that work on the file."""
        return {"vectors": self.path, "sample": self.sample}


def write_vectors(
    python: Path, folder: Path, name: str, rows: int, *, sample: int, embeddings: Path | None = None
) -> VectorFile:
    """Write vectors of one of the ``KINDS`` to a folder, block by block.

    Args:
        python: of an environment with NumPy.
        folder: where they go.
        name: of the kind.
        rows: how many.
        sample: rows that are drawn by chance.
        embeddings: the file of those of photos, for that kind.
    """
    target, drawn = folder / f"{name}-{rows}.npy", folder / f"{name}-{rows}-sample.npy"
    options: dict[str, Any] = {
        "target": target,
        "drawn": drawn,
        "sample": sample,
        "rows": rows,
        "embeddings": embeddings,
    }
    answer = run_job(python, "write_vectors", folder, **options, **KINDS[name]).result
    return VectorFile(target, drawn, rows, answer["dimension"])


def photo_embeddings(peers: Path, data: Path, *, versions: int = VERSIONS, threads: int = 1) -> Path:
    """Return the file with the embeddings of the photos, as ``embeddings.py`` says; make it where it is missing."""
    paths = photos(data)
    target = RESULTS / f"embeddings-{len(paths)}x{versions}.npy"
    if target.is_file():
        return target
    model = (data / MODEL).resolve()
    if not model.is_file():
        sys.exit(f"The network is absent: there is no file {MODEL!r} in {str(data)!r}. Name the folder with --data.")
    python = environment(peers, "onnxruntime")
    RESULTS.mkdir(exist_ok=True)
    print(
        f"Computing embeddings of {len(paths) * versions:,} versions of photos; they are kept for later runs …",
        flush=True,
    )
    with job_folder() as folder:
        run_job(python, "embed", folder, photos=paths, versions=versions, model=model, target=target, threads=threads)
    return target
