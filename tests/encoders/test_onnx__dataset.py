"""Datasets store the model that indexed them, and reject another one."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from framedex import Dataset, Workspace
from framedex.encoders import OnnxEncoder
from framedex.encoders.weights import sha256_of
from framedex.errors import InvalidInput, NotFound
from framedex.jobs.ingest.content import open_content
from tests.encoders.onnx_models import classifier
from tests.gallery import SETTINGS, fill
from tests.image_files import photo, write
from tests.processes import run


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A small classifier."""
    return classifier(tmp_path / "small.onnx")


@pytest.fixture
def dataset(workspace: Workspace, folder: Path, model: Path) -> Dataset:
    """Six images encoded by it."""
    return workspace.create_dataset("pets", folder, f"onnx:{model}")


def first_of(dataset: Dataset) -> tuple[str, Path]:
    """Return the id and the file of a media item."""
    row = dataset.to_arrow(["media_id", "file_path"]).to_pylist()[0]
    return row["media_id"], Path(row["file_path"])


@pytest.mark.slow
def test_config__names_the_weights(dataset: Dataset, model: Path) -> None:
    """The embedding config has the file, its hash, and all settings that the vectors depend on."""
    config = dataset.embedding_config
    assert (config.encoder, config.dimension) == (f"onnx:{model}", 6)
    assert config.weights is not None
    assert (config.weights.path, config.weights.sha256) == (str(model), sha256_of(model))
    assert config.weights.settings["output"] == "features"
    assert config.weights.settings["size"] == "8,8"


@pytest.mark.slow
def test_dataset__is_searched_and_grows(dataset: Dataset, tmp_path: Path) -> None:
    """Images find themselves, and added images are encoded by the same model."""
    media_id, path = first_of(dataset)
    assert dataset.similar(str(path), 1).media_ids() == [media_id]
    more = write(tmp_path / "more" / "new.png", photo(77))
    dataset.add_media(path=more.parent)
    assert dataset.count() == 7
    found = dataset.similar(str(more), 1).to_arrow(["image_filename"]).to_pylist()
    assert found[0]["image_filename"].endswith("new.png")


@pytest.mark.slow
def test_dataset__in_another_process(dataset: Dataset, workspace: Workspace) -> None:
    """The name in the embedding config is enough for another process to search by an image."""
    media_id, path = first_of(dataset)
    out = run(
        """
        import sys
        from framedex import Workspace
        with Workspace(sys.argv[1]) as workspace:
            print(workspace.dataset("pets").similar(sys.argv[2], 1).media_ids()[0])
        """,
        workspace.path,
        path,
    )
    assert out.strip() == media_id


@pytest.mark.slow
def test_changed_model__is_noticed(dataset: Dataset, model: Path, tmp_path: Path) -> None:
    """Another model at the same path is rejected with both hashes by searches and additions, unlike the original."""
    before = sha256_of(model)
    _, path = first_of(dataset)
    shutil.copy2(model, tmp_path / "kept.onnx")
    classifier(model, seed=5)
    after = sha256_of(model)
    assert before != after
    for act in (lambda: dataset.similar(str(path)), lambda: dataset.add_media(path=fill(tmp_path / "more", 1))):
        with pytest.raises(InvalidInput) as caught:
            act()
        message = str(caught.value)
        assert all(part in message for part in (str(model), before, after, "put back"))
    assert dataset.count() == 6
    shutil.copy2(tmp_path / "kept.onnx", model)
    assert len(dataset.similar(str(path), 3).media_ids()) == 3


@pytest.mark.slow
def test_changed_settings__are_noticed(dataset: Dataset, model: Path) -> None:
    """Changed settings that affect vectors are rejected by name; thresholds do not affect vectors."""
    _, path = first_of(dataset)
    sidecar = model.with_suffix(".toml")
    sidecar.write_text("thresholds = [0.1, 0.2, 0.3, 0.4, 0.5]\n")
    assert dataset.similar(str(path), 1).media_ids()
    sidecar.write_text("resize = 'crop'\n")
    with pytest.raises(InvalidInput, match="resize was stretch and is crop"):
        dataset.similar(str(path))


@pytest.mark.slow
def test_missing_model__leaves_the_dataset_usable(dataset: Dataset, model: Path) -> None:
    """Without the file, searches by new images fail, and stored vectors still work."""
    media_id, path = first_of(dataset)
    model.unlink()
    with pytest.raises(NotFound, match="no model file"):
        dataset.similar(str(path))
    assert dataset.similar(media_id, 2).media_ids()
    assert dataset.explore(level=0).clusters


def test_encoder_given_in_code__is_read_again(folder: Path, model: Path) -> None:
    """Another process can repeat a creation with an encoder object, because it loads the encoder by name."""
    assert open_content(folder, OnnxEncoder(model, resize="crop"), SETTINGS).config is not None


@pytest.mark.slow
def test_copies__have_equal_vectors(workspace: Workspace, folder: Path, model: Path) -> None:
    """Equal pixels have equal vectors anywhere in the dataset."""
    for place in range(40):
        shutil.copy2(sorted(folder.iterdir())[0], folder / f"copy-{place}.png")
    dataset = workspace.create_dataset("copies", folder, OnnxEncoder(model))
    names = dataset.to_arrow(["media_id", "image_filename"]).to_pylist()
    ids, vectors = dataset.embeddings()
    copies = {row["media_id"] for row in names if row["image_filename"].startswith("copy-")}
    rows = vectors[[each in copies for each in ids]]
    assert len(rows) == 40
    np.testing.assert_array_equal(rows, rows[:1].repeat(40, axis=0))
