"""Images of pets and a workspace with their dataset: what the examples in docstrings work with."""

import csv
import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cached_property
from pathlib import Path
from queue import SimpleQueue
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

import framedex
from framedex import Client, Dataset, Encoder, SearchBenchmark, Task, TaskFailed, UploadTransaction, Workspace, vql
from framedex.access import Role
from framedex.encoders import choose_encoder
from framedex.hub import Hub
from framedex.service.settings import ServiceSettings
from framedex.settings import Settings
from framedex.tasks.runner import Run
from tests.encoders.onnx_models import classifier
from tests.enrichments import Hues
from tests.gallery import Averages, Faulty
from tests.image_files import Pixels, detailed, encode, photo, resized, write
from tests.service.live import live_service
from tests.service.users import OPERATOR, PASSWORD
from tests.videos import numbered, write_video

SETTINGS = Settings(threads=2, user="ann@example.org", heartbeat_s=0.2, copy_budget_ms=0)
KINDS = ("cat", "dog", "bird")
_EACH = 8
_PLACES = ("a sofa", "a lawn", "a chair", "a wall", "the stairs", "a bed", "a fence", "the floor")
CHECKPOINT = Path(__file__).parent / "checkpoints" / "shapes-clip"
_MODELS = """
[colours]
type = "IMAGE_TAGGING"
encoder = "hues"
vocabulary = "colours.txt"
threshold = 0.8
"""
_BOXES = (("cat-1.jpg", "cat", 0.9), ("cat-2.jpg", "cat", 0.8), ("dog-1.jpg", "cat", 0.7), ("dog-2.jpg", "dog", 0.6))
"""What a model found: the image, the label, and the confidence; in the third image it took a dog for a cat."""


def animal(kind: str, seed: int) -> Pixels:
    """Return an image of one kind of animal: those of a kind look alike."""
    kept = photo(KINDS.index(kind)).astype(np.float32)
    return np.asarray(0.62 * kept + 0.38 * photo(100 + seed), np.uint8)


def make_photos(folder: Path) -> Path:
    """Write the images, with labels, captions and boxes; return the folder."""
    rows = []
    for number, kind in enumerate(KINDS):
        for place in range(_EACH):
            name = f"{kind}-{place + 1}.jpg"
            write(folder / name, animal(kind, 10 * number + place), quality=95)
            rows.append((name, "cat" if name == "dog-8.jpg" else kind, f"a {kind} on {_PLACES[place]}"))
    for number, kind in enumerate(KINDS[:2]):
        write(folder / f"new-{number + 1}.jpg", animal(kind, 50 + number), quality=95)
    (folder / "cat-1-copy.jpg").write_bytes((folder / "cat-1.jpg").read_bytes())
    write(folder / "garden.jpg", detailed(70), quality=95)
    write(folder / "garden-small.jpg", resized(detailed(70), 0.5), quality=90)
    write(folder / "night.jpg", (photo(71) // 14).astype(np.uint8), quality=95)
    (folder / "broken.jpg").write_bytes(encode(photo(72), "JPEG")[:900])
    write_video(folder / "clips" / "walk.mp4", numbered(20, seed=73))
    (folder / "notes.txt").write_text("no image")
    with (folder / "image_annotations.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("filename", "label", "caption"), *rows])
    with (folder / "object_annotations.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(("filename", "col_x", "row_y", "width", "height", "label", "confidence"))
        for name, found, confidence in _BOXES:
            table.writerow((name, 20, 10, 90, 80, name[:3], ""))
            table.writerow((name, 22, 12, 88, 80, found, confidence))
        table.writerow(("dog-3.jpg", 40, 30, 64, 64, "dog", ""))
    return folder


def make_home(home: Path) -> Path:
    """Make a home folder: ``photos``, ``new`` with further ones, and the workspace ``framedex``; return it."""
    photos = make_photos(home / "photos")
    for name, row in (("more", "bird-1.jpg,30,20,60,60,bird"), ("bad", "bird-1.jpg,30,20,-5,60,bird")):
        (home / f"{name}_boxes.csv").write_text(f"filename,col_x,row_y,width,height,label\n{row}\n")
    for number, kind in enumerate(("cat", "dog")):
        write(home / "new" / f"{kind}-9.jpg", animal(kind, 60 + number), quality=95)
    shutil.copy(photos / "cat-3.jpg", home / "new" / "cat-3.jpg")
    listed = "path;label;score\nphotos/cat-1.jpg;cat;0,5\nphotos/dog-1.jpg;dog;1,25\n"
    (home / "list.csv").write_text(listed)
    classifier(home / "classifier.onnx")
    (home / "shapes-clip").symlink_to(CHECKPOINT)
    with Workspace(home / "framedex", settings=SETTINGS) as ws, Hub(ws) as hub:
        ds = ws.create_dataset("pets", photos)
        ws.create_dataset("new", home / "new")
        ds.tag([ds.media_id(photos / f"cat-{number}.jpg") for number in (1, 2, 3)], "reviewed")
        ds.add_field("rating", "float", values={ds.media_id(photos / "cat-1.jpg"): 4.5})
        ds.save_view("dark images", ds.where([{"issues": {"op": "issue", "value": "dark"}}]))
        ds.snapshot("first look")
        ds.map()
        (home / "benchmark.json").write_text(ds.benchmark_search(queries=5).model_dump_json())
        (ws.path / "models.toml").write_text(_MODELS)
        (ws.path / "colours.txt").write_text("red\ngreen\nblue\n")
        hub.users.create(OPERATOR, "ann", PASSWORD, role=Role.ADMIN, email="ann@example.org")
        made = hub.credentials.rotate(hub.sessions.actor(hub.sessions.log_in("ann", PASSWORD).token))
    (home / "key.txt").write_text(f"{made.api_key}\n{made.api_secret}\n")
    return home


class Homes:
    """Copies of a home folder: another one after an example that changed its copy.

    Args:
        folder: the folder for them.
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self._template = folder, make_home(folder / "template")
        self._state, self._count = state_of(self._template), 0
        self._home: Path | None = None

    @contextmanager
    def lent(self) -> Iterator[Path]:
        """Lend a copy that nobody has changed."""
        home = self._home
        if home is None:
            self._count += 1
            home = self._folder / f"{self._count}"
            shutil.copytree(self._template, home, symlinks=True)
        self._home = None
        yield home
        if state_of(home) == self._state:
            self._home = home
        else:
            shutil.rmtree(home)


def state_of(home: Path) -> dict[str, tuple[int, int]]:
    """Return the size and the time of each file of a folder."""
    files = (Path(folder, name) for folder, _, names in os.walk(home) for name in names)
    return {each.relative_to(home).as_posix(): (each.stat().st_size, each.stat().st_mtime_ns) for each in files}


class Patient(Averages):
    """An encoder that goes on when its task is stopped."""

    def __init__(self) -> None:
        self.runs: SimpleQueue[Run] = SimpleQueue()

    def encode_images(self, batch: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
        self.runs.get(timeout=60).progress.cancelled.wait(60)
        return super().encode_images(batch)


class Names:
    """The names that examples use; each is made when it is first read.

    Args:
        home: a copy of what :func:`make_home` made, which is also the working directory.
    """

    framedex: ModuleType = framedex
    vql: ModuleType = vql

    def __init__(self, home: Path) -> None:
        self._home, self._open = home, ExitStack()

    def __enter__(self) -> "Names":
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    @cached_property
    def ws(self) -> Workspace:
        """The workspace, in which an encoder is a model."""
        choose_encoder(Hues())
        return self._open.enter_context(Workspace(self._home / "framedex", settings=SETTINGS))

    @cached_property
    def ds(self) -> Dataset:
        """The dataset of the photos."""
        return self.ws.dataset("pets")

    @cached_property
    def transaction(self) -> UploadTransaction:
        """An open transaction of a new dataset, with a file."""
        opened = self.ws.create_draft("inbox").open_upload()
        opened.add([("cat-9.jpg", self._home / "new" / "cat-9.jpg")])
        return opened

    @cached_property
    def running(self) -> Task:
        """A task that runs until it is stopped: it creates the dataset ``more``."""
        encoder = Patient()
        task = self.ws.create_dataset("more", self._home / "new", encoder, wait=False).task
        assert task is not None
        run = task._run
        assert run is not None
        encoder.runs.put(run)
        return task

    @cached_property
    def failed(self) -> Task:
        """A task that failed, whose encoder is repaired now."""
        encoder = Faulty()
        task = self.ws.create_dataset("more", self._home / "new", encoder, wait=False).task
        assert task is not None
        with suppress(TaskFailed):
            task.wait()
        encoder.broken = False
        return task

    @cached_property
    def benchmark(self) -> SearchBenchmark:
        """A benchmark of searches in the dataset, run when the home was made."""
        return SearchBenchmark.model_validate_json((self._home / "benchmark.json").read_text())

    @cached_property
    def encoder(self) -> Encoder:
        """The built-in encoder."""
        return choose_encoder("gist")[0]

    @cached_property
    def url(self) -> str:
        """The address of a service of the workspace."""
        hub = self._open.enter_context(Hub(self.ws))
        return self._open.enter_context(live_service(self.ws, hub, ServiceSettings(disable_auth=False)))[0]

    @cached_property
    def key(self) -> str:
        """The key of its admin."""
        return (self._home / "key.txt").read_text().splitlines()[0]

    @cached_property
    def secret(self) -> str:
        """The secret of the key."""
        return (self._home / "key.txt").read_text().splitlines()[1]

    @cached_property
    def client(self) -> Client:
        """A client of the service."""
        return self._open.enter_context(Client(self.url, self.key, self.secret))
