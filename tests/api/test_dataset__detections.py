"""Objects that detectors find, and what other models say of objects, in an enriched dataset."""

import json
from pathlib import Path

import numpy as np
import pytest

from framedex import Aborted, Conflict, Dataset, InvalidInput, Unavailable, Workspace
from framedex.encoders import choose_encoder
from framedex.encoders.gist import Gist
from framedex.records import DatasetStatus, ModelStatus
from tests.enrichers.onnx_detectors import head, saying
from tests.enrichments import ENCODE, Hues, paint
from tests.growth import status_of
from tests.image_files import photo, write
from tests.objects import objects_in, rows_of, scenes, things_of, write_table
from tests.pauses import Pause, run_of, watched
from tests.prepared import prepared
from tests.shapes import Scene, draw
from tests.videos import numbered, write_video

DETECT = {"OBJECT_DETECTION": "boxes"}
FOUND = ("dog", (60.0, 60.0, 80.0, 80.0)), ("cat", (200.0, 100.0, 40.0, 20.0))
CAPTIONER = Path(__file__).parent.parent / "checkpoints" / "shapes-captioner"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An empty folder for images."""
    path = tmp_path / "scenes"
    path.mkdir()
    return path


@pytest.fixture
def hues(workspace: Workspace) -> Hues:
    """Register a detector that finds two things in each image of 320 × 200, and an encoder."""
    encoder = Hues()
    choose_encoder(encoder)
    rows = {0: [10.0, 16.0, 8.0, 8.0, 0.0, 0.75], 3: [22.0, 17.0, 4.0, 2.0, 0.5, 0.0]}
    saying(workspace.path / "boxes.onnx", head("yolov8", rows, 2))
    (workspace.path / "boxes.names").write_text("cat\ndog\n")
    (workspace.path / "models.toml").write_text(
        f"""
        [boxes]
        type = "OBJECT_DETECTION"
        detector = "onnx:boxes.onnx"
        form = "yolov8"

        [hues]
        type = "MULTIMODEL_IMAGE_ENCODING"
        encoder = "hues"

        [words]
        type = "CAPTION_OBJECTS"
        captioner = "{CAPTIONER}"
        """
    )
    return encoder


@pytest.mark.slow
@pytest.mark.only_soak
def test_detect__in_every_image(workspace: Workspace, hues: Hues, folder: Path) -> None:
    """The new dataset has what was found, with confidence and the model's id; the source has none."""
    for number in range(3):
        write(folder / f"{number}.png", photo(number, width=320, height=200))
    source = workspace.create_dataset("scenes", folder, "gist")
    found = source.enrich(DETECT)
    assert things_of(found) == [(f"{number}.png", box, label) for number in range(3) for label, box in FOUND]
    rows = rows_of(found)
    assert {(row["source"], row["labels"][0], row["confidence"]) for row in rows} == {
        ("boxes", "dog", 0.75), ("boxes", "cat", 0.5),
    }  # fmt: skip
    first = rows[0]
    crop = photo(0, width=320, height=200)[60:140, 60:140]
    (alone,) = Gist().encode_images(np.stack([Gist().prepare(crop)]))
    assert np.allclose(first["embedding"], alone, atol=1e-6)
    assert first["cluster_0"] > 0
    assert rows_of(source) == []


@pytest.mark.slow
@pytest.mark.only_soak
def test_detect__beside_what_people_said(workspace: Workspace, hues: Hues, folder: Path) -> None:
    """Objects of annotations stay, with their ids; those of the model come behind them. Again adds nothing."""
    things = scenes(folder, 2)
    source = workspace.create_dataset("scenes", folder, "gist")
    found = source.enrich(DETECT)
    assert things_of(found)[: len(things)] == things
    assert [row["media_id"] for row in rows_of(found)[: len(things)]] == [row["media_id"] for row in rows_of(source)]
    assert len(rows_of(found)) == len(things) + 2 * found.count()
    assert len(rows_of(found.enrich(DETECT))) == len(rows_of(found))


@pytest.mark.slow
@pytest.mark.only_soak
def test_detect__classes_follow_those_of_the_source(workspace: Workspace, hues: Hues, folder: Path) -> None:
    """Classes that a detector finds get the ids above those of the annotation file; its other classes stay."""
    write(folder / "a.png", photo(1, width=320, height=200))
    content = {
        "images": [{"id": 40, "file_name": "a.png"}],
        "categories": [{"id": 9, "name": "dog"}, {"id": 5, "name": "ape"}],
        "annotations": [{"id": 1, "image_id": 40, "category_id": 9, "bbox": [1, 2, 30, 40]}],
    }
    (folder / "annotations.json").write_text(json.dumps(content))
    detected = workspace.create_dataset("d", folder, hues).enrich(DETECT)
    detected.export(folder / "out.json", "coco")
    found = json.loads((folder / "out.json").read_text())
    assert [(each["id"], each["name"]) for each in found["categories"]] == [(9, "dog"), (5, "ape"), (10, "cat")]
    assert [each["category_id"] for each in found["annotations"]] == [9, 9, 10]
    assert [each["id"] for each in found["images"]] == [40]


@pytest.mark.slow
def test_detect__in_frames(workspace: Workspace, hues: Hues, tmp_path: Path) -> None:
    """Objects in frames of videos know their frame; what is in the box is read from that very frame."""
    folder = tmp_path / "film"
    folder.mkdir()
    write_video(folder / "a.mp4", numbered(24, width=320, height=200), fps=8)
    found = workspace.create_dataset("film", folder, "gist").enrich(DETECT)
    rows = rows_of(found)
    assert [row["frame_number"] for row in rows] == [number for number in (0, 8, 16) for _ in FOUND]
    assert all(row["error"] is None and row["kind"] == "video_frame" for row in rows)


@pytest.mark.slow
@pytest.mark.only_soak
def test_encode__objects_too(workspace: Workspace, hues: Hues, folder: Path) -> None:
    """With a new encoder the objects that there are are encoded by it, as the images and new ones are."""
    paint(folder, 3)
    write_table(folder / "object_annotations.csv", [("0-red.png", (2.0, 2.0, 20.0, 20.0), "patch")])
    source = workspace.create_dataset("colours", folder, "gist")
    both = source.enrich({**ENCODE, **DETECT})
    rows = rows_of(both)
    assert len(rows) == 1 + 2 * 3
    assert {len(row["embedding"]) for row in rows} == {3}
    assert rows[0]["embedding"][0] > 0.9  # red
    assert rows[0]["uniqueness"] is not None
    again = both.enrich(ENCODE)
    assert [row["media_id"] for row in rows_of(again)] == [row["media_id"] for row in rows]
    assert np.allclose([row["embedding"] for row in rows_of(again)], [row["embedding"] for row in rows])


@pytest.mark.slow
def test_detect__images_that_are_gone(workspace: Workspace, hues: Hues, folder: Path) -> None:
    """In an image that cannot be read nothing is found; the others go on."""
    scenes(folder, 3)
    (folder / "object_annotations.csv").unlink()
    source = workspace.create_dataset("scenes", folder, "gist")
    (folder / "001.png").unlink()
    found = source.enrich(DETECT)
    assert "001.png" not in {row["path"] for row in rows_of(found)}
    assert {"000.png", "002.png"} <= {row["path"] for row in rows_of(found)}
    folder.rename(folder.with_name("elsewhere"))
    with pytest.raises(Unavailable, match="no image could be read: 3 images"):
        source.enrich(DETECT)


@pytest.mark.slow
def test_encode__objects_whose_image_is_gone(workspace: Workspace, hues: Hues, folder: Path) -> None:
    """They have no embedding then, with the reason; that all of them are in that image stops nothing."""
    paint(folder, 3)
    write_table(folder / "object_annotations.csv", [("0-red.png", (2.0, 2.0, 20.0, 20.0), "patch")])
    source = workspace.create_dataset("colours", folder, "gist")
    (folder / "0-red.png").unlink()
    (row,) = rows_of(source.enrich(ENCODE))
    assert (row["embedding"], row["cluster_0"]) == (None, 0)
    assert "0-red.png" in row["error"]


def test_detect__without_an_encoder(workspace: Workspace, hues: Hues, folder: Path) -> None:
    """A dataset that brought its embeddings needs an encoder with the detector."""
    write(folder / "a.png", np.zeros((200, 320, 3), np.uint8))
    source = workspace.create_dataset("vectors", {"uri": [str(folder / "a.png")], "embedding": [[1.0, 0.0]]})
    with pytest.raises(InvalidInput, match="brought its embeddings"):
        source.enrich(DETECT)
    assert status_of(source) is DatasetStatus.READY
    assert len(rows_of(source.enrich({**ENCODE, **DETECT}))) == 2


@pytest.mark.slow
def test_captions__of_objects(workspace: Workspace, hues: Hues, tmp_path: Path) -> None:
    """Each object is captioned by what is in its box; where there are none, that is said first."""
    shapes = [Scene("red", "circle", "black", "large"), Scene("blue", "square", "white", "small")]
    pixels = np.hstack([draw(shape, np.random.default_rng(3)) for shape in shapes])
    side = float(pixels.shape[0])
    write(tmp_path / "pair" / "pair.png", pixels)
    plain = workspace.create_dataset("plain", tmp_path / "pair", "gist")
    with pytest.raises(Conflict, match="OBJECT_DETECTION"):
        plain.enrich({"CAPTION_OBJECTS": "words"})
    boxes = [("pair.png", (place * side, 0.0, side, side), "thing") for place in range(2)]
    plain.add_objects(write_table(tmp_path / "boxes.csv", boxes))
    said = plain.enrich({"CAPTION_OBJECTS": "words"})
    assert [row["caption"] for row in rows_of(said)] == [shape.caption for shape in shapes]
    before, after = rows_of(plain, ["media_id", "cluster_0"]), rows_of(said, ["media_id", "cluster_0"])
    assert before == after


@pytest.mark.slow
@pytest.mark.only_soak
def test_abort__and_retry(workspace: Workspace, hues: Hues, folder: Path) -> None:
    """A detection that is aborted leaves the source as it was; a retry makes what an undisturbed one makes."""
    scenes(folder, 2)
    source = workspace.create_dataset("scenes", folder, "gist")
    pause, made = Pause("finding objects", 0.1), list[Dataset]()

    def begin() -> object:
        made.append(source.enrich(DETECT, wait=False))
        return made[0].task

    task = watched(workspace, begin, pause)  # type: ignore[arg-type] # an enrichment has a task
    assert pause.reached.wait(60)
    run_of(task).progress.cancel()
    pause.opened.set()
    with pytest.raises(Aborted):
        task.wait()
    assert status_of(source) is DatasetStatus.READY
    task.retry()
    task.wait()
    other = source.enrich(DETECT)
    assert things_of(made[0]) == things_of(other)
    assert objects_in(made[0]).table.count() == objects_in(other).table.count()


class TestModels:
    """The list of detectors and their states."""

    def test_faces__without_models_toml(self, workspace: Workspace, folder: Path) -> None:
        """The detector of faces is there, and in images without any it finds none."""
        write(folder / "a.png", photo(1))
        dataset = workspace.create_dataset("plain", folder, "gist")
        (model,) = dataset.list_models()
        assert (model.id, model.status) == ("faces", ModelStatus.ACTIVE)
        assert rows_of(dataset.enrich({"OBJECT_DETECTION": "faces"})) == []

    @pytest.mark.parametrize(
        ("detector", "words"),
        [
            ("onnx:missing.onnx", "missing.onnx"),
            ("boxes.onnx", "onnx:<path of the model>"),
            ("onnx:boxes.onnx?size=3", "keys of their own"),
        ],
    )
    def test_detector__that_cannot_be(
        self, workspace: Workspace, hues: Hues, folder: Path, detector: str, words: str
    ) -> None:
        """The description of a model names its missing requirement or error."""
        write(folder / "a.png", photo(1))
        dataset = prepared(workspace, "plain", folder, "gist")
        (workspace.path / "models.toml").write_text(f'[d]\ntype = "OBJECT_DETECTION"\ndetector = "{detector}"\n')
        model = dataset.list_models()[0]
        assert model.status is ModelStatus.COMING_SOON
        assert words in model.description

    @pytest.mark.slow
    def test_names__of_another_count(self, workspace: Workspace, hues: Hues, folder: Path) -> None:
        """A detector with other class counts than its names is refused before anything begins."""
        write(folder / "a.png", photo(1))
        dataset = workspace.create_dataset("plain", folder, "gist")
        (workspace.path / "boxes.names").write_text("cat\ndog\nfox\n")
        with pytest.raises(InvalidInput, match=r"knows 2 classes, and .* has 3 names"):
            dataset.enrich(DETECT)
        assert len(workspace.datasets()) == 1
        assert status_of(dataset) is DatasetStatus.READY
