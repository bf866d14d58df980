"""The measured processes of candidates.py: ``python candidates_workers.py TASK FOLDER ANSWER``.

A task is ``write:ROWS`` or ``find:WAY:BYTES``.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.append(str(Path(__file__).resolve().parent))
from framedex.analysis.copies import OnDisk, Units, find_candidates
from framedex.encoders.copy_descriptor import DIMENSION, POSES, cells, layouts, poses
from framedex.executors import ProcessExecutor
from scale_out_index_workers import Memory, memory_of
from vectors import Clustered, unit

Answer = dict[str, Any]
COPIES, PANELS = 0.01, 5
DOUBTFUL = 0.7
_MIB = 2**20


def write(folder: Path, rows: int) -> Answer:
    """Write the descriptors of images and of panels, the images of these, and the planted copies."""
    random, panels = np.random.default_rng(1), rows // PANELS
    order = random.permutation(rows + panels)
    out = np.lib.format.open_memmap(folder / "units.npy", "w+", np.float32, (rows + panels, DIMENSION))
    start = 0
    for block in Clustered(rows + panels, DIMENSION).blocks():
        out[order[start : start + len(block)]] = block
        start += len(block)
    a, b = np.split(random.choice(rows, 2 * int(rows * COPIES), replace=False), 2)
    similarity = random.uniform(0.97, 0.9999, len(a))
    for one, other, similar in zip(a.tolist(), b.tolist(), similarity.tolist(), strict=True):
        noise = unit(random.normal(size=(1, DIMENSION)))
        copy = unit(out[[one]] + np.sqrt(1 / similar**2 - 1) * noise)
        out[other] = poses(copy)[random.integers(POSES), 0]
    out.flush()
    image = np.concatenate([np.arange(rows), random.integers(0, rows, panels)]).astype(np.int32)
    np.savez(folder / "facts.npz", image=image, a=np.minimum(a, b), b=np.maximum(a, b))
    return {}


def find(folder: Path, way: str, memory_bytes: int) -> Answer:
    """Find candidates; return what it took, and the share of the planted copies among them."""
    facts = np.load(folder / "facts.npz")
    stored = np.load(folder / "units.npy", mmap_mode="r")
    spill, path = folder / "spill", folder / "units.f16"
    spill.mkdir(exist_ok=True)
    on_disk = None
    vectors: Any = np.array(stored)
    if way == "disk":
        del vectors
        with path.open("wb") as file:
            for start in range(0, len(stored), 8192):
                stored[start : start + 8192].astype(np.float16).tofile(file)
        vectors = np.memmap(path, np.float16, "r").reshape(-1, DIMENSION)
        on_disk = OnDisk(spill, memory_bytes)
    before = memory_of("self")[0] / _MIB
    with Memory(spill) as memory, ProcessExecutor(2) as executor:
        started = time.perf_counter()
        found = find_candidates(
            Units(vectors, facts["image"]), poses, layouts, cells,
            least=DOUBTFUL, on_disk=on_disk, executor=executor,
        )  # fmt: skip
        seconds = time.perf_counter() - started
    pairs = found.a.astype(np.int64) * len(stored) + found.b
    planted = facts["a"] * len(stored) + facts["b"]
    return {
        "seconds": seconds,
        "before_mib": before,
        "peak_mib": memory.peak / _MIB,
        "files_mib": memory.spilled / _MIB + (path.stat().st_size / _MIB if way == "disk" else 0),
        "pairs": len(pairs),
        "recall": float(np.isin(planted, pairs).mean()),
    }


def main(task: str, folder: str, answer: str) -> None:
    """Do a task and write its answer."""
    name, *given = task.split(":")
    found = write(Path(folder), int(given[0])) if name == "write" else find(Path(folder), given[0], int(given[1]))
    Path(answer).write_text(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
