"""A dataset that a CLIP model indexed: sentences find images, in any process."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from framedex import Dataset, InvalidInput, Workspace
from tests.encoders.clip import TRAINED
from tests.gallery import SETTINGS
from tests.image_files import write
from tests.processes import run
from tests.shapes import HELD_OUT, PAIRS, Scene, draw, gallery, queries

SCENES = list(gallery())


pytestmark = pytest.mark.slow  # PyTorch and the encoder take seconds to load


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folders of the images and their workspace."""
    return tmp_path_factory.mktemp("shapes")


@pytest.fixture(scope="module")
def shapes(home: Path) -> Iterator[Dataset]:
    """Images of shapes, as JPEG and wide; the name of each is its number."""
    rng = np.random.default_rng(2)
    for number, scene in enumerate(SCENES):
        write(home / "images" / f"{number:03}.jpg", draw(scene, rng, width=200, height=150), quality=90)
    with Workspace(home / "workspace", settings=SETTINGS) as workspace:
        yield workspace.create_dataset("shapes", home / "images", f"open_clip:{TRAINED}")


def shown(names: list[str]) -> list[Scene]:
    """Return what images show."""
    return [SCENES[int(Path(name).stem)] for name in names]


def first(dataset: Dataset, text: str) -> Scene:
    """Return what the image shows that a text finds first."""
    return shown(dataset.search(text, by="meaning", limit=1).to_arrow()["image_filename"].to_pylist())[0]


@pytest.mark.only_soak
def test_search__by_sentences(shapes: Dataset) -> None:
    """Of all sentences about a pair of colour and shape nine in ten find such an image first; new pairs, too."""
    for pairs in (PAIRS, HELD_OUT):
        asked = queries(pairs)
        assert np.mean([query.fits(first(shapes, query.caption)) for query in asked]) >= 0.9


def test_explore__by_caption(shapes: Dataset) -> None:
    """Pages of clusters come in the order of how well they fit a sentence."""
    page = shapes.explore(level=0, caption="a blue star")
    best = page.clusters[0]
    assert best.relevance_score_type == "cosine_distance"
    assert all(Scene("blue", "star").fits(scene) for scene in shown([each.file_name for each in best.previews]))
    scores = [cluster.relevance_score for cluster in page.clusters]
    assert scores == sorted(scores)


def test_vql__by_meaning(shapes: Dataset) -> None:
    """A filter by meaning keeps what is at least as similar to a sentence as was asked for."""
    best = shapes.search("a green ring", by="meaning", limit=4).to_arrow()
    third, fourth = (1 - best["relevance_score"][place].as_py() for place in (2, 3))
    test = {"op": "semantic", "value": "a green ring", "threshold": (third + fourth) / 2}
    found = shapes.where([{"text": test}]).to_arrow()["image_filename"].to_pylist()
    assert sorted(found) == sorted(best["image_filename"].to_pylist()[:3])
    assert all(Scene("green", "ring").fits(scene) for scene in shown(found))
    assert shapes.where([{"text": test | {"threshold": 1.0}}]).count() == 0


def test_similar__by_image(shapes: Dataset, tmp_path: Path) -> None:
    """A new image of a shape finds images of the same."""
    asked = Scene("purple", "square", "grey", "large")
    query = write(tmp_path / "query.png", draw(asked, np.random.default_rng(3)))
    names = shapes.similar(query, limit=1).to_arrow()["image_filename"].to_pylist()
    assert Scene("purple", "square").fits(shown(names)[0])


def test_config__keeps_the_weights(shapes: Dataset) -> None:
    """The dataset knows the file of the weights and its hash."""
    config = shapes.embedding_config
    assert config.encoder == f"open_clip:{TRAINED}"
    assert config.weights is not None
    assert config.weights.path == str(TRAINED / "open_clip_model.safetensors")


@pytest.mark.only_soak
def test_search__in_another_process(shapes: Dataset, home: Path, tmp_path: Path) -> None:
    """A process that knows nothing but the workspace finds the same, from any working directory."""
    mine = shapes.search("a red circle", by="meaning", limit=3).to_arrow()["image_filename"].to_pylist()
    code = """
        import os, sys
        import framedex
        os.chdir(sys.argv[2])
        with framedex.Workspace(sys.argv[1]) as workspace:
            found = workspace.dataset("shapes").search("a red circle", by="meaning", limit=3)
            print(found.to_arrow()["image_filename"].to_pylist())
        """
    assert run(code, home / "workspace", tmp_path) == f"{mine}\n"


def test_weights__others_than_before(tmp_path: Path) -> None:
    """With other weights, searches and additions raise, because embeddings could not be compared."""
    folder = tmp_path / "model"
    shutil.copytree(TRAINED, folder)
    image = write(tmp_path / "images" / "one.png", draw(SCENES[0], np.random.default_rng(4)))
    write(tmp_path / "images" / "two.png", draw(SCENES[1], np.random.default_rng(4)))
    with Workspace(tmp_path / "workspace", settings=SETTINGS) as workspace:
        dataset = workspace.create_dataset("two", image.parent, f"open_clip:{folder}")
        assert dataset.search("a red circle", by="meaning").count() == 2
        path = folder / "open_clip_model.safetensors"
        path.write_bytes(path.read_bytes()[:-2] + b"\0\0")
        changed = "is another one than this dataset was indexed with"
        with pytest.raises(InvalidInput, match=changed):
            dataset.search("a red circle", by="meaning").count()
        with pytest.raises(InvalidInput, match=changed):
            dataset.similar(image).count()
        with pytest.raises(InvalidInput, match=changed):
            dataset.add_media(path=image)
