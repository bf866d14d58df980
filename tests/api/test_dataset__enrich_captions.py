"""Captions that a model writes make a new dataset, in which words and filters find them."""

import json
import shutil
import zipfile
from pathlib import Path
from typing import Any

import pytest

from framedex import Dataset, InvalidInput, Unavailable, Workspace
from framedex.encoders.weights import sha256_of
from framedex.records import DatasetStatus, ModelStatus
from tests.captioning import CAPTION, SCENES, draw_all, register_captioner
from tests.enrichers.captioners import TRAINED
from tests.enrichments import ENCODE, TAG, Hues, register_models
from tests.gallery import SETTINGS
from tests.growth import columns_of, ids_of, status_of, summary_of
from tests.meanings import Meanings
from tests.prepared import prepared

SAID = {f"{number}.png": scene.caption for number, scene in enumerate(SCENES)}


@pytest.fixture
def images(tmp_path: Path) -> Path:
    return draw_all(tmp_path / "images")


@pytest.fixture
def source(workspace: Workspace, images: Path) -> Dataset:
    register_captioner(workspace)
    return prepared(workspace, "shapes", images, "gist")


def captions_of(dataset: Dataset) -> dict[str, str | None]:
    found = columns_of(dataset, ["path", "caption"])
    return dict(zip(found["path"], found["caption"], strict=True))


def exported(dataset: Dataset, folder: Path) -> dict[str, dict[str, Any] | None]:
    """Return the caption items of the JSON export by file name."""
    dataset.export(folder / "export.zip", "json")
    with zipfile.ZipFile(folder / "export.zip") as archive:
        items = json.loads(archive.read("metadata.json"))["media_items"]
    return {
        item["file_name"]: next(
            (each["properties"] for each in item["metadata_items"] if each["type"] == "caption"), None
        )
        for item in items
    }


@pytest.mark.slow
@pytest.mark.only_soak
def test_enrich__captions(workspace: Workspace, source: Dataset) -> None:
    """Every image of the new dataset has a caption; the source and the index stay as they were."""
    enriched = source.enrich(CAPTION)
    assert captions_of(enriched) == SAID
    assert set(captions_of(source).values()) == {None}
    assert columns_of(enriched) == columns_of(source)
    assert (status_of(source), status_of(enriched)) == (DatasetStatus.READY, DatasetStatus.READY)
    assert enriched.enrichment_context().dataset_enrichment_models.enrichment_models == CAPTION
    assert summary_of(enriched)["captioned_by"]["sha256"] == sha256_of(TRAINED / "model.safetensors")
    shown = [preview.caption for cluster in enriched.explore(level=4).clusters for preview in cluster.previews]
    assert set(shown) <= set(SAID.values())
    assert shown


@pytest.mark.slow
def test_enrich__captions_are_found(source: Dataset) -> None:
    """Words and filters find the new captions, and none in the source."""
    enriched = source.enrich(CAPTION)
    assert enriched.search("yellow stars", by="words").to_arrow(["image_filename"])["image_filename"].to_pylist() == [
        "3.png"
    ]
    assert source.search("yellow stars", by="words").count() == 0
    assert enriched.where([{"text": {"op": "fts", "value": "triangle"}}]).count() == 1
    assert enriched.clone().search("ring", by="words").count() == 1


@pytest.mark.slow
@pytest.mark.only_soak
def test_enrich__captions_are_found_by_meaning(tmp_path: Path, images: Path) -> None:
    """An encoder of texts searches the new captions by what they mean."""
    with Workspace(tmp_path / "workspace", settings=SETTINGS, text_encoder=Meanings()) as workspace:
        register_captioner(workspace)
        enriched = workspace.create_dataset("shapes", images, "gist").enrich(CAPTION)
        found = enriched.search("a brown triangle", by="meaning", limit=1).to_arrow(["image_filename"])
        assert found["image_filename"].to_pylist() == ["5.png"]


@pytest.mark.slow
@pytest.mark.only_soak
def test_enrich__captions_of_people_stay(source: Dataset, tmp_path: Path) -> None:
    """They stay unless the model's entry says otherwise; those of a model make way. The export tells them apart."""
    ids = ids_of(source)
    source.set_captions({ids["0.png"]: "my circle"})
    enriched = source.enrich(CAPTION)
    assert captions_of(enriched) == {**SAID, "0.png": "my circle"}
    enriched.set_captions({ids["1.png"]: "my square", ids["2.png"]: None})
    (tmp_path / "a").mkdir()
    told = exported(enriched, tmp_path / "a")
    assert told["0.png"] == {"text": "my circle", "caption": "my circle", "source": "import"}
    assert told["1.png"] == {"text": "my square", "caption": "my square", "source": "import"}
    assert told["2.png"] is None
    assert told["3.png"] == {"text": SAID["3.png"], "caption": SAID["3.png"], "source": "model"}
    again = enriched.enrich(CAPTION)
    assert captions_of(again) == {**SAID, "0.png": "my circle", "1.png": "my square"}
    anew = again.enrich({"CAPTION_IMAGES": "anew"})
    assert all((text or "").startswith("a small ") for text in captions_of(anew).values())


@pytest.mark.slow
@pytest.mark.only_soak
def test_enrich__exports_have_the_captions(workspace: Workspace, source: Dataset, tmp_path: Path) -> None:
    """Label files of the enriched dataset have the captions; a dataset made of them has them, too."""
    enriched = source.enrich(CAPTION)
    for format_ in ("coco", "csv"):
        enriched.export(tmp_path / f"{format_}.zip", format_, include_images=True)
        with zipfile.ZipFile(tmp_path / f"{format_}.zip") as archive:
            archive.extractall(tmp_path / format_)
        assert sorted(filter(None, captions_of(workspace.create_dataset(format_, tmp_path / format_)).values())) == (
            sorted(SAID.values())
        )


@pytest.mark.slow
def test_enrich__a_file_that_changes_keeps_its_caption(source: Dataset, images: Path, tmp_path: Path) -> None:
    """Captions go over to rows that replace others, and it is still known who wrote them; new rows have none."""
    enriched = source.enrich(CAPTION)
    shutil.copy(images / "0.png", images / "new.png")
    shutil.copy(images / "4.png", images / "0.png")
    enriched.add_media(images)
    assert captions_of(enriched) == {**SAID, "new.png": None}
    assert exported(enriched, tmp_path)["0.png"] == {"text": SAID["0.png"], "caption": SAID["0.png"], "source": "model"}
    enriched.reindex()
    kept = enriched.snapshot("kept")
    enriched.set_captions({ids_of(enriched)["0.png"]: "changed"})
    enriched.restore(kept)
    assert captions_of(enriched)["0.png"] == SAID["0.png"]


@pytest.mark.slow
def test_enrich__images_that_are_gone_or_broken(source: Dataset, images: Path) -> None:
    """They get no caption, and the others do."""
    (images / "0.png").unlink()
    (images / "1.png").write_text("no image")
    assert captions_of(source.enrich(CAPTION)) == {**SAID, "0.png": None, "1.png": None}


@pytest.mark.slow
@pytest.mark.only_soak
def test_enrich__only_looks_where_a_caption_is_missing(source: Dataset, images: Path) -> None:
    """Images whose captions stay are not opened; that the others cannot be read stops nothing."""
    ids = ids_of(source)
    images.rename(images.with_name("elsewhere"))
    with pytest.raises(Unavailable, match="no image could be read"):
        source.enrich(CAPTION)
    source.set_captions({media_id: "mine" for path, media_id in ids.items() if path != "2.png"})
    enriched = source.enrich(CAPTION)
    assert {path: said for path, said in captions_of(enriched).items() if said != "mine"} == {"2.png": None}
    assert enriched.enrichment_context().dataset_enrichment_models.enrichment_models == CAPTION


@pytest.mark.slow
@pytest.mark.only_soak
def test_enrich__with_other_types(workspace: Workspace, images: Path) -> None:
    """One call may encode, tag and caption, however they are ordered."""
    register_models(workspace, Hues())
    register_captioner(workspace, (workspace.path / "models.toml").read_text())
    source = workspace.create_dataset("shapes", images, "gist")
    enriched = source.enrich({**TAG, **CAPTION, **ENCODE})
    assert captions_of(enriched) == SAID
    assert enriched.embedding_config.encoder == "hues"
    labels = columns_of(enriched, ["path", "labels"])
    assert dict(zip(labels["path"], labels["labels"], strict=True))["0.png"] == ["red"]
    models = enriched.enrichment_context().dataset_enrichment_models.enrichment_models
    assert models == {**TAG, **CAPTION, **ENCODE}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("entry", "missing"),
    [
        ('captioner = "gone"', "no folder"),
        ('captioner = "."', "no file config.json"),
    ],
)
def test_models__that_cannot_caption(workspace: Workspace, source: Dataset, entry: str, missing: str) -> None:
    """A captioner that is not there is Coming Soon, says what is missing, and cannot be applied."""
    register_captioner(workspace, f'[other]\ntype = "CAPTION_IMAGES"\n{entry}\n')
    shapes, _, other, _ = source.list_models()
    assert (shapes.status, other.status) == (ModelStatus.ACTIVE, ModelStatus.COMING_SOON)
    assert missing in other.description
    with pytest.raises(InvalidInput, match="Coming Soon"):
        source.enrich({"CAPTION_IMAGES": "other"})


def test_models__that_caption_objects(workspace: Workspace, source: Dataset) -> None:
    """Such models are registered by the same keys."""
    register_captioner(workspace, f'[parts]\ntype = "CAPTION_OBJECTS"\ncaptioner = "{TRAINED}"\nmax_tokens = 9\n')
    assert source.list_models()[2].type == "CAPTION_OBJECTS"


@pytest.mark.slow
def test_enrich__a_captioner_that_is_damaged(workspace: Workspace, source: Dataset, tmp_path: Path) -> None:
    """A folder that looks whole and is not fails before anything is made."""
    broken = Path(shutil.copytree(TRAINED, tmp_path / "broken"))
    (broken / "tokenizer.json").write_text("{}")
    register_captioner(workspace, f'[broken]\ntype = "CAPTION_IMAGES"\ncaptioner = "{broken}"\n')
    with pytest.raises(InvalidInput, match="tokenizer"):
        source.enrich({"CAPTION_IMAGES": "broken"})
    assert len(workspace.datasets()) == 1
    assert status_of(source) is DatasetStatus.READY
