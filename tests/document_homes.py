"""Homes for the examples of documents: the files that they read, and the names that they use without making them."""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import framedex
from framedex import Workspace, vql
from framedex.hub import Hub
from tests.image_files import encode, photo, write
from tests.prepared import prepared as copied


@dataclass(frozen=True)
class Home:
    """A home folder with ``photos``, the images of the demo.

    Attributes:
        folder: also the working folder of the examples.
        patch: sets variables of the environment until the document ends.
        names: what the examples use without making it.
        changes: texts of the document that stand for something that is elsewhere in a test, such as an address.
        until_end: what is open until the document ends.
    """

    folder: Path
    patch: pytest.MonkeyPatch
    names: dict[str, Any] = field(default_factory=dict)
    changes: dict[str, str] = field(default_factory=dict)
    until_end: ExitStack = field(default_factory=ExitStack)

    def open(self) -> Workspace:
        """Return the workspace ``~/framedex``, which the examples know as ``ws``."""
        workspace = self.until_end.enter_context(Workspace(self.folder / "framedex"))
        self.names.update({"framedex": framedex, "vql": vql, "ws": workspace})
        return workspace


@contextmanager
def prepared(document: str, folder: Path) -> Iterator[Home]:
    """Yield a home in a folder that has ``photos``, or gets them here, with all that a document needs besides.

    Args:
        document: its name without the suffix.
        folder: it becomes the home and the working folder.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(folder))
        patch.chdir(folder)
        home = Home(folder, patch)
        with home.until_end:
            if (prepare := _PREPARED.get(document)) is not None:
                prepare(home)
            yield home


def _comparison(home: Home) -> None:
    from tests.gallery import make_gallery

    make_gallery(home.folder / "photos")  # there are many datasets, so with few and small images, not verified
    home.patch.setenv("FRAMEDEX_COPY_BUDGET_MS", "0")


def _copy(home: Home) -> None:
    """Give the dataset of the photos as a copy of one that was made before: other documents show its creation."""
    create = Workspace.create_dataset

    def copy_or_create(workspace: Workspace, name: str, source: Any, *args: Any, **options: Any) -> Any:
        if (name, source) != ("pets", "~/photos") or args or options:
            return create(workspace, name, source, *args, **options)
        return copied(workspace, name, home.folder / "photos")

    home.patch.setattr(Workspace, "create_dataset", copy_or_create)


def _debugging(home: Home) -> None:
    """Show the log as in a program without handlers; afterwards its loggers are as before."""
    import logging

    home.patch.setattr(logging.getLogger(), "handlers", [])
    for name in ("framedex", "framedex.tasks"):
        logger = logging.getLogger(name)
        home.patch.setattr(logger, "handlers", [])
        home.until_end.callback(logger.setLevel, logger.level)


def _detectors(home: Home) -> None:
    from tests.enrichers.onnx_detectors import head, saying

    saying(Path("yolox_nano.onnx"), head("yolox", {0: [1.0, 1.0, 0.0, 0.0, 1.0, 0.9]}, 2))
    Path("coco.names").write_text("cat\ndog\n", encoding="utf-8")
    home.names["pixels"] = photo(1)


def _encoders(home: Home) -> None:
    import onnx

    from tests.encoders.onnx_models import classifier

    Path("models").mkdir()
    for number, name in enumerate(("models/mobilenetv2.onnx", "models/net.onnx")):
        classifier(Path(name), seed=number)
    model = onnx.load("models/net.onnx")
    for name, size in zip(("height", "width"), model.graph.input[0].type.tensor_type.shape.dim[2:], strict=True):
        size.dim_param = name
    onnx.save(model, "models/any_size.onnx")
    _some_photos(home.folder / "some", 6)
    home.changes['"~/photos"'] = '"~/some"'
    home.open()


def _enrichment(home: Home) -> None:
    from tests.encoders.clip import TRAINED
    from tests.enrichers.captioners import write_tiny

    workspace = home.open()
    home.names["ds"] = workspace.create_dataset("pets", _some_photos(home.folder / "some", 6))
    models = workspace.path / "models"
    models.mkdir()
    (models / "ViT-B-32").symlink_to(TRAINED)
    (workspace.path / "animals.txt").write_text("cat\ndog\n", encoding="utf-8")
    entries = {
        "clip": 'type = "MULTIMODEL_IMAGE_ENCODING"\nencoder = "open_clip:models/ViT-B-32"\n',
        "animals": 'type = "IMAGE_TAGGING"\nencoder = "open_clip:models/ViT-B-32"\nvocabulary = "animals.txt"\n',
    }
    _register(workspace, entries)
    write_tiny(home.folder / "models" / "blip-image-captioning-base", "blip")
    home.names["pixels"] = photo(1)


def _exports(home: Home) -> None:
    dataset = _pets(home)
    home.names.update({"ds": dataset, "my_transform": lambda image: np.asarray(image.resize((32, 32)))})
    Path("boxes.csv").write_text("filename,col_x,row_y,width,height,label\nchelsea.jpg,10,10,90,90,dog\n", "utf-8")
    dataset.add_objects("boxes.csv")
    labelled = dataset.where(vql.labels("animal"))
    dataset.tag(labelled, "train")
    dataset.tag(dataset.where(vql.labels("food")), "val")


def _notebook(home: Home) -> None:
    home.names["ds"] = home.open().create_dataset("pets", _some_photos(home.folder / "some", 6))
    _close_at_the_end(home, "w")


def _objects(home: Home) -> None:
    from tests.enrichers.onnx_detectors import head, saying
    from tests.objects import paint_scenes, scenes, write_table

    workspace = home.open()
    things = scenes(home.folder / "street", 4)
    write_table(Path("more.csv"), [(name, (x + 5, y + 5, w, h), label) for name, (x, y, w, h), label in things])
    Path("labels").mkdir()
    Path("labels/instances.json").write_text(
        json.dumps(
            {
                "images": [{"id": 1, "file_name": "000.png", "width": 320, "height": 200}],
                "categories": [{"id": 1, "name": "person"}],
                "annotations": [{"id": 1, "image_id": 1, "category_id": 1, "bbox": [30, 30, 60, 60]}],
            }
        ),
        encoding="utf-8",
    )
    paint_scenes(home.folder / "query", ["0.png"], seed=0)
    (home.folder / "query" / "0.png").rename("query.jpg")
    Path("voc").mkdir()
    box = "<xmin>9</xmin><ymin>9</ymin><xmax>57</xmax><ymax>57</ymax>"
    Path("voc/000.xml").write_text(
        "<annotation><filename>000.png</filename><size><width>320</width><height>200</height><depth>3</depth></size>"
        f"<object><name>person</name><bndbox>{box}</bndbox></object></annotation>",
        encoding="utf-8",
    )
    saying(workspace.path / "yolox.onnx", head("yolox", {0: [1.0, 1.0, 1.0, 1.0, 1.0, 0.9]}, 2))
    (workspace.path / "coco.names").write_text("cat\ndog\n", encoding="utf-8")
    _register(workspace, {"yolox": 'type = "OBJECT_DETECTION"\ndetector = "onnx:yolox.onnx"\nnames = "coco.names"\n'})


def _people(home: Home) -> None:
    from framedex.access import Role, operator_actor

    home.patch.setenv("FRAMEDEX_WORKSPACE", str(home.folder / "of the commands"))
    home.patch.setenv("FRAMEDEX_MULTI_WORKSPACE", "true")
    with Workspace(home.folder / "of the commands") as workspace, Hub(workspace) as hub:
        for name, role in (("ann", Role.ADMIN), ("bob", Role.EDITOR)):
            hub.users.create(operator_actor("me@example.org"), name, "correct horse", role=role)


def _plugins(home: Home) -> None:
    home.patch.syspath_prepend(str(Path(__file__).parent / "example_plugin"))
    from framedex_example.detector import BrightSpot  # type: ignore[import-not-found] # a package of its own
    from framedex_example.encoder import MeanColour  # type: ignore[import-not-found] # a package of its own
    from framedex_example.formats import (  # type: ignore[import-not-found] # a package of its own
        _read,
        _write,
    )

    home.names.update({"BrightSpot": BrightSpot, "MeanColour": MeanColour, "read": _read, "write": _write})


def _python(home: Home) -> None:
    """Write a table of images whose labels agree with those of their neighbours, but for some."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from tests.analysis.arrays import unit
    from tests.crowds import LABELS, ROWS, WRONG

    rng = np.random.default_rng(0)
    centres = unit(rng.normal(size=(len(LABELS), 8)))
    vectors = unit(centres[np.arange(ROWS) % len(LABELS)] + 0.05 * rng.normal(size=(ROWS, 8)))
    labels = [WRONG[row][0] if row in WRONG else LABELS[row % len(LABELS)] for row in range(ROWS)]
    column = pa.array(vectors.tolist(), pa.list_(pa.float32()))
    table = pa.table(
        {"uri": [f"{row}.jpg" for row in range(ROWS)], "embedding": column, "label": [*labels[:-6], *[None] * 6]}
    )
    pq.write_table(table, "animals.parquet")


def _service(home: Home) -> None:
    from framedex.service.settings import ServiceSettings
    from tests.service.live import live_service

    workspace = home.open()
    dataset = workspace.create_dataset("pets", _some_photos(home.folder / "some", 8))
    dataset.snapshot("before the import")
    dataset.set_labels(dataset.view.media_ids()[:2], ["dog"])
    dataset.set_captions({dataset.view.media_ids()[0]: "a dog on the beach"})
    _some_photos(home.folder / "photos of the holidays", 4)
    hub = home.until_end.enter_context(Hub(workspace))
    url, _ = home.until_end.enter_context(live_service(workspace, hub, ServiceSettings()))
    _close_at_the_end(home, "ws")  # then a client of the service
    home.names.update({"key": "a key", "secret": "a secret of at least 32 characters"})
    home.changes["https://images.example.com/framedex"] = url
    home.changes["~/photos/holidays"] = str(home.folder / "photos of the holidays")


def _sources(home: Home) -> None:
    from tests.buckets import Service

    account = {"AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "key", "AWS_DEFAULT_REGION": "us-east-1"}
    for name, value in account.items():
        home.patch.setenv(name, value)
    service = Service()
    home.until_end.callback(service.stop)
    for name in ("FRAMEDEX_S3_ENDPOINT", "AWS_ENDPOINT_URL"):  # of objects, and of roles
        home.patch.setenv(name, service.address)
    for number in range(3):
        service.put(f"bucket/folder/{number}.png", encode(photo(number), "PNG"))
        service.put(f"bucket/more/{number}.png", encode(photo(number + 9), "PNG"))
    service.put("bucket/manifest.txt", b"s3://bucket/more/0.png\ns3://bucket/more/1.png\n")
    rows = ["photos/chelsea.jpg;cat;0,5", "photos/coffee.jpg;cup;1,25"]
    Path("list.csv").write_text("\n".join(["path;label;score", *rows]), "utf-8")
    home.open()


def _videos(home: Home) -> None:
    from tests.videos import numbered, write_video

    for name in ("one", "again"):
        write_video(home.folder / "trips" / f"{name}.mp4", numbered(30))
    home.open()


_PREPARED: dict[str, Callable[[Home], None]] = {
    "comparison": _comparison,
    "debugging": _debugging,
    "detectors": _detectors,
    "encoders": _encoders,
    "enrichment": _enrichment,
    "exports": _exports,
    "interop": _copy,
    "notebook": _notebook,
    "objects": _objects,
    "people": _people,
    "plugins": _plugins,
    "python": _python,
    "search": _copy,
    "service": _service,
    "sources": _sources,
    "videos": _videos,
    "views": _copy,
    "vql": _copy,
}
"""What makes the home of a document, by its name."""


def _close_at_the_end(home: Home, name: str) -> None:
    """Close what a name stands for when the document ends."""

    def close() -> None:
        home.names[name].close()

    home.until_end.callback(close)


def _pets(home: Home) -> framedex.Dataset:
    """Return the dataset of the photos."""
    return copied(home.open(), "pets", home.folder / "photos")


def _some_photos(folder: Path, count: int) -> Path:
    """Write a few images that are all different, and return their folder."""
    for number in range(count):
        write(folder / f"{number}.jpg", photo(number))
    return folder


def _register(workspace: Workspace, models: dict[str, str]) -> None:
    """Register models of a workspace, by their ids."""
    text = "".join(f"[{name}]\n{entry}" for name, entry in models.items())
    (workspace.path / "models.toml").write_text(text, encoding="utf-8")
