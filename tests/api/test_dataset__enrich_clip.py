"""A dataset by the built-in encoder, enriched by CLIP: sentences find images, and tags name what they show."""

from pathlib import Path

import numpy as np
import pytest

from framedex import Dataset, Workspace
from framedex.records import ModelStatus
from tests.encoders.clip import TRAINED
from tests.gallery import SETTINGS
from tests.image_files import write
from tests.shapes import COLOURS, PAIRS, draw, gallery, queries

SCENES = list(gallery())[::2]
MODELS = f"""
[clip]
type = "MULTIMODEL_IMAGE_ENCODING"
encoder = "open_clip:{TRAINED}"

[colours]
type = "IMAGE_TAGGING"
encoder = "open_clip:{TRAINED}"
vocabulary = "colours.toml"
top_k = 1
dependencies = ["MULTIMODEL_IMAGE_ENCODING"]

[none]
type = "MULTIMODEL_IMAGE_ENCODING"
encoder = "open_clip:ViT-B-32/nowhere.pt"
"""


@pytest.fixture(scope="module")
def enriched(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    home = tmp_path_factory.mktemp("shapes")
    rng = np.random.default_rng(5)
    for number, scene in enumerate(SCENES):
        write(home / "images" / f"{number:03}.png", draw(scene, rng))
    workspace = Workspace(home / "workspace", settings=SETTINGS)
    (workspace.path / "models.toml").write_text(MODELS)
    (workspace.path / "colours.toml").write_text(
        "".join(f'[{name}]\nprompts = ["a {name} shape"]\n' for name in COLOURS)
    )
    source = workspace.create_dataset("shapes", home / "images", "gist")
    return source.enrich({"MULTIMODEL_IMAGE_ENCODING": "clip", "IMAGE_TAGGING": "colours"})


@pytest.mark.slow
@pytest.mark.only_soak
def test_enrich__sentences_find_images(enriched: Dataset) -> None:
    """Of all sentences about a colour and a shape nine in ten find such an image first."""
    asked = [query for query in queries(PAIRS) if any(query.fits(scene) for scene in SCENES)]
    hits = []
    for query in asked:
        name = enriched.search(query.caption, by="meaning", limit=1).to_arrow()["image_filename"][0].as_py()
        hits.append(query.fits(SCENES[int(Path(name).stem)]))
    assert np.mean(hits) >= 0.9
    assert enriched.embedding_config.weights is not None


@pytest.mark.slow
def test_enrich__tags_name_colours(enriched: Dataset) -> None:
    """Nine of ten tags are right."""
    rows = enriched.to_arrow(["image_filename", "labels"]).to_pylist()
    right = [[SCENES[int(Path(row["image_filename"]).stem)].colour] == row["labels"] for row in rows]
    assert np.mean(right) >= 0.9


@pytest.mark.slow
def test_models__whose_weights_are_missing(enriched: Dataset) -> None:
    """Such a model is Coming Soon and names the file, beside models.toml."""
    model = enriched.list_models()[2]
    assert model.status is ModelStatus.COMING_SOON
    assert "nowhere.pt" in model.description
