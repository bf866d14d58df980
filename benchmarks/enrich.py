"""Enriching a dataset by columns: bytes added on the disk, and seconds beyond the model's own.

The dataset brings its embeddings; its uris are small images. A stub that answers at once stands for the model, so
that what is measured is all but the model: by stage, as the task reports them. What new embeddings add is compared with
their own size and with what a reindex of the source adds.
"""

import argparse
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import cv2
import numpy as np
import pyarrow as pa

from common import save, table, verdict
from snapshots import size_of

AIM_BYTES = 1.1
MODELS = """
[encoder]
type = "MULTIMODEL_IMAGE_ENCODING"
encoder = "answers-at-once"

[tagger]
type = "IMAGE_TAGGING"
encoder = "answers-at-once"
vocabulary = "tags.txt"
"""


class AnswersAtOnce:
    """Vectors of clusters, in the order in which it is asked; nothing is looked at."""

    name, detail, batch = "answers-at-once", 8, 256
    thresholds = (0.06, 0.12, 0.18, 0.25, 0.32)

    def __init__(self, vectors: Any) -> None:
        self._vectors, self._asked, self.dimension, self.seconds = vectors, 0, vectors.shape[1], 0.0

    def prepare(self, pixels: Any) -> Any:
        """Return next to nothing."""
        return pixels[0, 0]

    def encode_images(self, batch: Any) -> Any:
        """Return the next vectors: float32, shape (N, D), unit length."""
        start = time.perf_counter()
        rows = np.arange(self._asked, self._asked + len(batch)) % len(self._vectors)
        self._asked += len(batch)
        found = self._vectors[rows]
        self.seconds += time.perf_counter() - start
        return found

    def encode_texts(self, texts: Sequence[str]) -> Any:
        """Return the first vectors, likewise."""
        return self._vectors[: len(texts)]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--dimension", type=int, default=512)
    options = parser.parse_args()
    with TemporaryDirectory() as folder:
        found = measure(Path(folder), options.rows, options.dimension)
    _print(found)
    save("enrich", {"rows": options.rows, "dimension": options.dimension, **found})


def measure(folder: Path, rows: int, dimension: int) -> dict[str, Any]:
    """Return bytes and seconds of each step."""
    import framedex
    from framedex.encoders import choose_encoder

    vectors = clustered(rows, dimension)
    encoder = AnswersAtOnce(vectors[::-1])
    choose_encoder(encoder)  # so that its name is known
    uris = write_images(folder / "images", rows)
    with framedex.Workspace(folder / "workspace") as workspace:
        column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), dimension)
        source = workspace.create_dataset("source", pa.table({"uri": uris, "embedding": column}))
        (workspace.path / "models.toml").write_text(MODELS)
        (workspace.path / "tags.txt").write_text("\n".join(f"tag {number}" for number in range(20)))
        before = size_of(workspace.path)
        index_bytes, reindex_s = timed(lambda: source.reindex(thresholds=AnswersAtOnce.thresholds), workspace.path)
        stages: dict[str, float] = {}
        encoded_bytes, encoded_s = timed(lambda: stages.update(encode(source)), workspace.path)
        copy = workspace.dataset("source (enriched)")
        tagged_bytes, tagged_s = timed(lambda: copy.enrich({"IMAGE_TAGGING": "tagger"}), workspace.path)
        clone_bytes, clone_s = timed(copy.clone, workspace.path)
    return {
        "bytes": before,
        "embeddings_bytes": vectors.nbytes,
        "model_s": encoder.seconds,
        "stages": stages,
        "reindex": {"bytes": index_bytes, "seconds": reindex_s},
        "encode": {"bytes": encoded_bytes, "seconds": encoded_s},
        "tag": {"bytes": tagged_bytes, "seconds": tagged_s},
        "clone": {"bytes": clone_bytes, "seconds": clone_s},
    }


def clustered(rows: int, dimension: int) -> Any:
    """Return float32, shape (rows, dimension), unit length, around one centre for every 40 rows."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(max(rows // 40, 2), dimension)).astype(np.float32)
    found = centres[rng.integers(0, len(centres), rows)]
    found += 0.4 * rng.normal(size=found.shape).astype(np.float32)
    return found / np.linalg.norm(found, axis=1, keepdims=True)


def write_images(folder: Path, rows: int) -> list[str]:
    """Write one small image under many names; return their paths."""
    folder.mkdir()
    image = folder / "image.png"
    image.write_bytes(cv2.imencode(".png", np.full((64, 64, 3), 90, np.uint8))[1].tobytes())
    names = [f"{folder}/{number}.png" for number in range(rows)]
    for start in range(0, rows, 10_000):  # file systems allow so many names of a file, and not many more
        copy = Path(names[start])
        copy.write_bytes(image.read_bytes())
        for name in names[start + 1 : start + 10_000]:
            os.link(copy, name)
    return names


def encode(source: Any) -> dict[str, float]:
    """Encode a dataset anew; return the seconds of each stage, in order."""
    begun: dict[str, float] = {}
    task = source.enrich({"MULTIMODEL_IMAGE_ENCODING": "encoder"}, wait=False).task
    task.wait(progress=lambda stage, _share: begun.setdefault(stage, time.perf_counter()))
    ends = [*list(begun.values())[1:], time.perf_counter()]
    return {stage: end - start for (stage, start), end in zip(begun.items(), ends, strict=True)}


def timed(operation: Callable[[], Any], workspace: Path) -> tuple[int, float]:
    """Return the bytes that an operation adds to a workspace, and its seconds."""
    before, start = size_of(workspace), time.perf_counter()
    operation()
    seconds = time.perf_counter() - start
    return size_of(workspace) - before, seconds


def _print(found: dict[str, Any]) -> None:
    rows = [
        [name, found[name]["seconds"], found[name]["bytes"], found[name]["bytes"] / found["bytes"]]
        for name in ("reindex", "encode", "tag", "clone")
    ]
    print(table(["step", "s", "bytes added", "share of all bytes"], rows))
    print(table(["stage of encode", "s"], found["stages"].items()))
    print(f"of which the model: {found['model_s']:.2f} s")
    needed = found["embeddings_bytes"] + found["reindex"]["bytes"]
    print(
        verdict(
            "encode: bytes for new embeddings and an index", found["encode"]["bytes"] / needed, AIM_BYTES, at_most=True
        )
    )


if __name__ == "__main__":
    main()
