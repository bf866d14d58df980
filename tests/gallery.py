"""A gallery of images with known truth, tables of embeddings, and encoders for tests."""

import csv
import functools
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from framedex import Dataset, Workspace
from framedex.settings import Settings
from tests.image_files import Pixels, detailed, encode, flat, photo, resized, write
from tests.prepared import prepared

VERIFYING = Settings(threads=2, user="tester@example.org", heartbeat_s=0.2)
SETTINGS = VERIFYING.model_copy(update={"copy_budget_ms": 0})
"""For tests that are not about copies: the keypoints of a few small images take as long as all else of a creation."""


ANIMALS = [f"animals/{number:02}.jpg" for number in range(12)]
FURRY = ANIMALS[:4]
TOWNS = [f"towns/{number:02}.png" for number in range(12)]
COPIES = [ANIMALS[0], "copies/00.jpg", "copies/01.jpg"]
NEAR = [[ANIMALS[2], "near/small.jpg"], [ANIMALS[3], "near/recompressed.jpg"]]
BAD = ["bad/bright.png", "bad/dark.png", "bad/grey.png", "bad/wide.png"]
BROKEN = ["broken/empty.jpg", "broken/text.png", "broken/truncated.jpg"]
NAMES = sorted([*ANIMALS, *TOWNS, *COPIES[1:], *(pair[1] for pair in NEAR), *BAD, *BROKEN])


@dataclass(frozen=True)
class Gallery:
    """A folder of images, and the dataset that was made of it.

    Attributes:
        folder: the images.
        workspace: where the dataset is; to be read only.
        dataset: named ``gallery``.
        ids: media ids by path within the folder.
    """

    folder: Path
    workspace: Workspace
    dataset: Dataset
    ids: dict[str, str]

    def names(self, media_ids: Sequence[str]) -> list[str]:
        """Return the paths within the folder of some media."""
        names = {media_id: name for name, media_id in self.ids.items()}
        return [names[media_id] for media_id in media_ids]


def make_gallery(folder: Path) -> None:
    """Write images whose clusters, duplicates and issues are known, with labels and captions for some."""
    for name, content in _gallery_files().items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


@functools.cache
def _gallery_files() -> dict[str, bytes]:
    """Return the files of the gallery, which take thirty milliseconds to draw, by path."""
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home)
        _draw_gallery(folder)
        return {
            path.relative_to(folder).as_posix(): path.read_bytes()
            for path in sorted(folder.rglob("*"))
            if path.is_file()
        }


def _draw_gallery(folder: Path) -> None:
    for seed, name in enumerate(ANIMALS):
        write(folder / name, detailed(seed, width=160, height=120) if seed == 2 else photo(seed), quality=95)
    for seed, name in enumerate(TOWNS, start=50):
        write(folder / name, photo(seed, width=200, height=150))
    for name in COPIES[1:]:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes((folder / ANIMALS[0]).read_bytes())
    write(folder / "near/small.jpg", resized(detailed(2, width=160, height=120), 0.5), quality=95)
    write(folder / "near/recompressed.jpg", photo(3), quality=60)
    write(folder / "bad/dark.png", (photo(201) // 12).astype(np.uint8))
    write(folder / "bad/bright.png", flat((252, 253, 252)))
    write(folder / "bad/grey.png", np.repeat(photo(202).mean(axis=2, keepdims=True).astype(np.uint8), 3, axis=2))
    write(folder / "bad/wide.png", photo(203, width=400, height=60))
    (folder / "broken").mkdir()
    (folder / "broken/empty.jpg").write_bytes(b"")
    (folder / "broken/text.png").write_text("no image at all")
    (folder / "broken/truncated.jpg").write_bytes(encode(photo(204), "JPEG")[:900])
    (folder / "notes.txt").write_text("not an image")
    (folder / ".hidden.png").write_bytes(b"left out")
    with (folder / "image_annotations.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["filename", "label", "caption"])
        table.writerows([name, '["animal", "fur"]' if name in FURRY else "animal", ""] for name in ANIMALS)
        table.writerows([name, "town", f"a street, number {name[6:8]}"] for name in TOWNS)


def fill(folder: Path, count: int, *, first_seed: int = 100) -> Path:
    """Write so many different images to a folder, which is made, and return it."""
    for number in range(count):
        write(folder / f"{number:03}.png", photo(first_seed + number))
    return folder


def embedded(vectors: Sequence[Sequence[float] | None], **columns: Sequence[Any]) -> pa.Table:
    """Return a table that brings embeddings, with the uris ``0.jpg``, ``1.jpg``…, and further columns."""
    uris = [f"{number}.jpg" for number in range(len(vectors))]
    return pa.table({"uri": uris, "embedding": pa.array(vectors, pa.list_(pa.float32())), **columns})


def grouped(sizes: Sequence[int]) -> pa.Table:
    """Return a table with groups of equal embeddings; different groups are orthogonal. Groups are interleaved."""
    numbers = [number for turn in range(max(sizes)) for number, size in enumerate(sizes) if turn < size]
    return embedded(np.eye(len(sizes), dtype=np.float32)[numbers].tolist())


class Averages:
    """A deterministic encoder: mean colours over a 4×4 grid."""

    name = "averages"
    dimension = 48
    min_side_px = 4
    thresholds = (0.001, 0.002, 0.005, 0.01, 0.02)

    def prepare(self, pixels: Pixels) -> npt.NDArray[Any]:
        return np.asarray(cv2.resize(pixels, (4, 4), interpolation=cv2.INTER_AREA), dtype=np.float32).ravel()

    def encode_images(self, batch: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
        raised = batch + np.float32(1)  # black has a direction too
        return np.asarray(raised / np.linalg.norm(raised, axis=1, keepdims=True), dtype=np.float32)


class Gate(Averages):
    """An encoder that waits before its first batch, so that a test decides when a task goes on.

    Attributes:
        reached: set when a task waits.
        opened: lets it go on.
    """

    def __init__(self) -> None:
        self.reached, self.opened = threading.Event(), threading.Event()

    def encode_images(self, batch: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
        self.reached.set()
        assert self.opened.wait(60), "the test did not open the gate"
        return super().encode_images(batch)


class Faulty(Averages):
    """An encoder that fails until it is repaired."""

    broken = True

    def encode_images(self, batch: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
        if self.broken:
            raise RuntimeError("the encoder is out of order")
        return super().encode_images(batch)


@contextmanager
def opened_gallery(home: Path) -> Iterator[Dataset]:
    """Yield a dataset of the images of :func:`make_gallery` in a workspace below a folder, which is open meanwhile."""
    make_gallery(home / "gallery")
    with Workspace(home / "ws", settings=SETTINGS) as workspace:
        yield prepared(workspace, "pets", home / "gallery")
