"""Enriching a dataset makes a new one of it; the source stays as it was."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from framedex import Conflict, Dataset, InvalidInput, NotFound, Unavailable, Workspace
from framedex.records import DatasetStatus, SnapshotReason, TaskStatus, TaskType
from framedex.storage.media_rows import index_schema
from framedex.storage.table_files import data_files
from tests.enrichments import COLOURS, ENCODE, TAG, Hues, paint, register_models
from tests.gallery import SETTINGS
from tests.growth import columns_of, part, status_of
from tests.inside import stored_media
from tests.prepared import prepared
from tests.tuning import Tuning
from tests.videos import write_video


@pytest.fixture
def hues(workspace: Workspace) -> Hues:
    encoder = Hues()
    register_models(workspace, encoder)
    return encoder


@pytest.fixture
def images(tmp_path: Path) -> Path:
    return paint(tmp_path / "images")


@pytest.fixture
def source(workspace: Workspace, images: Path, hues: Hues) -> Dataset:
    return prepared(workspace, "colours", images, "gist")


def files_of(workspace: Workspace, dataset: Dataset) -> dict[str, tuple[int, int]]:
    """Return inode and time of change of all files of a dataset."""
    folder = workspace.path / "datasets" / dataset.id
    return {
        str(path.relative_to(folder)): (path.stat().st_ino, path.stat().st_mtime_ns)
        for path in folder.rglob("*")
        if path.is_file()
    }


def labels_of(dataset: Dataset) -> dict[str, list[str] | None]:
    found = columns_of(dataset, ["path", "labels"])
    return dict(zip(found["path"], found["labels"], strict=True))


def errors_of(dataset: Dataset) -> dict[str, str | None]:
    found = columns_of(dataset, ["path", "error"])
    return dict(zip(found["path"], found["error"], strict=True))


@pytest.mark.slow
def test_models__are_listed(source: Dataset) -> None:
    """Registered models have the interface's fields, in the order of the file."""
    first, second, built_in = source.list_models()
    assert first.model_dump(mode="json") == {
        "id": "hues",
        "name": "hues",
        "type": "MULTIMODEL_IMAGE_ENCODING",
        "status": "Active",
        "vendor": "ours",
        "description": "colours",
        "dependencies": None,
    }
    assert (second.id, second.vendor, second.status) == ("names", "local", "Active")
    assert (built_in.id, built_in.type, built_in.status) == ("faces", "OBJECT_DETECTION", "Active")


@pytest.mark.slow
@pytest.mark.only_soak
def test_enrich__makes_a_new_dataset(workspace: Workspace, source: Dataset) -> None:
    """The new dataset is READY, has the media of the source by the same ids, a snapshot, and other clusters."""
    source.tag(source.where([]), "seen")
    enriched = source.enrich(ENCODE)
    assert (enriched.name, status_of(enriched), status_of(source)) == ("colours (enriched)", "READY", "READY")
    assert source.enrich(ENCODE).name == "colours (enriched 2)"
    config = enriched.embedding_config
    assert (config.encoder, config.dimension, config.thresholds) == ("hues", 3, Hues.thresholds)
    assert columns_of(enriched, ["media_id", "path"]) == columns_of(source, ["media_id", "path"])
    assert [tag.count for tag in enriched.tags()] == [6]
    assert [each.reason for each in enriched.snapshots()] == [SnapshotReason.CREATION]
    assert sorted(cluster.n_images for cluster in enriched.explore(level=4).clusters) == [2, 2, 2]
    mine, theirs = ({each.cluster_id for each in ds.explore(level=4).clusters} for ds in (enriched, source))
    assert not mine & theirs
    assert enriched.task is not None
    record = enriched.task.record
    assert (record.task_type, record.dataset_id, record.status) == (
        TaskType.ENRICHMENT, enriched.id, TaskStatus.COMPLETED,
    )  # fmt: skip


@pytest.mark.slow
def test_enrich__text_search(source: Dataset) -> None:
    """Sentences find images in the new dataset, where they could not in the source."""
    enriched = source.enrich(ENCODE)
    for colour in COLOURS:
        found = enriched.search(f"something {colour}", by="meaning", limit=2).to_arrow()["image_filename"].to_pylist()
        assert all(colour in name for name in found)
    with pytest.raises(InvalidInput):
        source.search("red", by="meaning").count()


@pytest.mark.slow
@pytest.mark.only_soak
def test_enrich__respects_decisions_about_labels(workspace: Workspace, hues: Hues, tmp_path: Path) -> None:
    """The copy has the decisions; with new embeddings decided media are no issue."""
    dataset = workspace.create_dataset("many", paint(tmp_path / "many", 45), hues)
    rows = dataset.to_arrow(["media_id", "image_filename"]).to_pylist()
    labels = {row["media_id"]: row["image_filename"].removesuffix(".png").split("-")[1] for row in rows}
    reds = [media_id for media_id, label in labels.items() if label == "red"][:2]
    dataset.set_labels(labels | {reds[0]: "blue", reds[1]: "green"})
    assert {*reds} <= set(dataset.issues("mislabels")["media_id"].to_pylist())
    decision = dataset.label_is_right(reds[0])
    enriched = dataset.enrich(ENCODE)
    listed = enriched.issues("mislabels")["media_id"].to_pylist()
    assert (enriched.label_decisions(), reds[0] in listed, reds[1] in listed) == ([decision], False, True)
    enriched.withdraw_decision(decision.decision_id)
    assert reds[0] in enriched.issues("mislabels")["media_id"].to_pylist()


@pytest.mark.slow
def test_enrich__leaves_the_source_alone(workspace: Workspace, source: Dataset) -> None:
    """The source has the same head and the same files as before; columns that stay are shared with it."""
    before, head = files_of(workspace, source), stored_media(source).generation
    enriched = source.enrich({**ENCODE, **TAG})
    assert files_of(workspace, source) == before
    assert stored_media(source).generation == head
    media, new = stored_media(enriched), files_of(workspace, enriched)
    for file in data_files(media.table.path, media.table.version):
        path = f"media.lance/{file.path}"
        assert new[path] == before.get(path) or set(file.bytes_of) <= {
            *index_schema().names,
            "embedding",
            "copy_descriptor",
            "error",
            "labels",
        }
    assert {path for path in before if path.startswith("media.lance/data")} & new.keys()


@pytest.mark.slow
def test_enrich__holds_the_source(workspace: Workspace, source: Dataset, hues: Hues, images: Path) -> None:
    """While it runs the source is READ ONLY: it can be read, and neither be changed, enriched again nor deleted."""
    hues.opened.clear()
    enriched = source.enrich(ENCODE, wait=False)
    assert hues.reached.wait(60)
    assert (status_of(source), status_of(enriched)) == (DatasetStatus.READ_ONLY, DatasetStatus.INDEXING)
    assert source.count() == 6
    blocked = "is blocked while ENRICHMENT task is running"
    for change in (
        lambda: source.set_labels({columns_of(source, ["media_id"])["media_id"][0]: ["x"]}),
        lambda: source.add_media(images),
        source.snapshot,
        lambda: source.enrich(TAG),
    ):
        with pytest.raises(Conflict, match=blocked):
            change()
    with pytest.raises(Conflict, match="while a task of it is under way"):
        workspace.delete_dataset("colours")
    hues.opened.set()
    assert enriched.task is not None
    enriched.task.wait()
    assert (status_of(source), status_of(enriched)) == (DatasetStatus.READY, DatasetStatus.READY)
    workspace.delete_dataset("colours")
    assert enriched.count() == 6


@pytest.mark.slow
def test_context__of_enriched_datasets(source: Dataset) -> None:
    """The context says what was applied, by type; snapshots, clones, restores and further enrichments keep it."""
    new = source.enrichment_context()
    assert (new.status, new.dataset_enrichment_models.enrichment_models) == ("NEW", {})
    enriched = source.enrich(ENCODE)
    context = enriched.enrichment_context()
    assert context.status == "ENRICHED"
    assert context.model_dump(mode="json")["dataset_enrichment_models"] == {"enrichment_models": ENCODE}
    assert context.enrichment_context_id != new.enrichment_context_id
    assert source.enrichment_context() == new
    assert enriched.clone().enrichment_context().dataset_enrichment_models == context.dataset_enrichment_models
    kept = enriched.snapshot("kept")
    enriched.delete_media(columns_of(enriched, ["media_id"])["media_id"][0])
    assert enriched.enrichment_context() == context
    enriched.restore(kept)
    assert enriched.enrichment_context() == context
    both = enriched.enrich(TAG)
    assert both.enrichment_context().dataset_enrichment_models.enrichment_models == {**ENCODE, **TAG}


@pytest.mark.slow
@pytest.mark.only_soak
def test_enrich__media_can_be_added(source: Dataset, tmp_path: Path, images: Path) -> None:
    """An enriched dataset grows as any other: what is there is known, what is new is encoded by the new encoder."""
    enriched = source.enrich(ENCODE)
    paint(images, 9)
    enriched.add_media(images)
    assert (enriched.count(), enriched.skipped["media that are there already"]) == (9, 6)
    assert len(enriched.embeddings()[1]) == 9
    enriched.reindex()
    assert sorted(cluster.n_images for cluster in enriched.explore(level=4).clusters) == [3, 3, 3]


def test_enrich__tags(source: Dataset, hues: Hues) -> None:
    """Tags join the labels that are there; labels of neighbours are judged anew."""
    first = columns_of(source, ["media_id"])["media_id"][0]
    source.set_labels({first: ["kept", "red"]})
    tagged = source.enrich(TAG)
    assert hues.prepared == 6
    assert labels_of(tagged) == {
        f"{number}-{name}.png": [name] if number else ["kept", "red"] for number, name in enumerate([*COLOURS] * 2)
    }
    assert tagged.embedding_config == source.embedding_config
    assert columns_of(tagged, ["cluster_0"]) == columns_of(source, ["cluster_0"])
    assert any(value is not None for value in columns_of(tagged, ["label_support"])["label_support"])
    assert labels_of(source)["1-green.png"] is None


@pytest.mark.slow
@pytest.mark.only_soak
def test_enrich__tags_by_known_vectors(source: Dataset, hues: Hues, images: Path) -> None:
    """If the tagger uses the dataset's encoder, no image is read again."""
    enriched = source.enrich(ENCODE)
    seen = hues.prepared
    tagged = enriched.enrich(TAG)
    assert hues.prepared == seen
    assert labels_of(tagged) == labels_of(source.enrich({**TAG, **ENCODE}))
    assert labels_of(tagged)["1-green.png"] == ["green"]


@pytest.mark.slow
@pytest.mark.only_soak
def test_enrich__images_that_are_gone_or_broken(source: Dataset, images: Path) -> None:
    """They are rows without a vector, with the reason, and without tags; an image that came back is one again."""
    (images / "0-red.png").unlink()
    (images / "1-green.png").write_text("no image")
    enriched = source.enrich({**ENCODE, **TAG})
    errors = errors_of(enriched)
    assert "No such file" in (errors.pop("0-red.png") or "")
    assert errors.pop("1-green.png")
    assert set(errors.values()) == {None}
    assert len(enriched.embeddings()[0]) == 4
    assert labels_of(enriched)["0-red.png"] is None
    assert len(enriched.issues("corrupted")) == 2
    paint(images)
    assert set(errors_of(enriched.enrich(ENCODE)).values()) == {None}


@pytest.mark.slow
@pytest.mark.parametrize("rows", [2, 4096])
def test_enrich__no_image_is_there(
    source: Dataset, images: Path, rows: int, tuning: Tuning, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If no image can be read, the task fails with a clear message, for any size of batches."""
    tuning.enriched_rows = rows
    monkeypatch.setattr(Hues, "batch", 2, raising=False)
    images.rename(images.with_name("elsewhere"))
    with pytest.raises(Unavailable, match="no image could be read: 6 images failed"):
        source.enrich(ENCODE)
    assert status_of(source) is DatasetStatus.READY


@pytest.mark.slow
def test_enrich__of_precomputed_vectors(workspace: Workspace, hues: Hues, images: Path) -> None:
    """A dataset that brought its embeddings gets new ones where its uris are files."""
    paths = sorted(map(str, images.iterdir()))
    table = pa.table({"uri": paths, "embedding": [[1.0, float(number)] for number in range(6)]})
    enriched = workspace.create_dataset("brought", table).enrich(ENCODE)
    assert enriched.embedding_config.encoder == "hues"
    assert np.allclose(np.linalg.norm(enriched.embeddings()[1], axis=1), 1)
    assert "red" in enriched.search("red", limit=1, by="meaning").to_arrow()["image_filename"][0].as_py()


def test_enrich__of_uris_that_are_no_files(workspace: Workspace, hues: Hues) -> None:
    """Models that look at images do not fit such a dataset, and say it."""
    table = pa.table({"uri": ["http://x/1.png", "http://x/2.png"], "embedding": [[1.0, 0.0], [0.0, 1.0]]})
    dataset = workspace.create_dataset("elsewhere", table)
    assert {model.status for model in dataset.list_models()} == {"Coming Soon"}
    with pytest.raises(InvalidInput, match="neither local files nor objects"):
        dataset.enrich(ENCODE)


@pytest.mark.parametrize(
    ("models", "error", "message"),
    [
        ({}, InvalidInput, "one at least"),
        (["hues"], InvalidInput, "one at least"),
        ({"CAPTIONS": "hues"}, InvalidInput, "no type of enrichment 'CAPTIONS'"),
        ({"IMAGE_TAGGING": 3}, InvalidInput, "by its id"),
        ({"IMAGE_TAGGING": "gone"}, NotFound, "no model 'gone'; there are: 'hues', 'names', 'faces'"),
        ({"IMAGE_TAGGING": "hues"}, InvalidInput, "is of the type MULTIMODEL_IMAGE_ENCODING"),
    ],
)
def test_enrich__bad_requests(
    workspace: Workspace, source: Dataset, models: object, error: type[Exception], message: str
) -> None:
    """Models that cannot be applied are refused, and no dataset is created."""
    with pytest.raises(error, match=message):
        source.enrich(models)  # type: ignore[arg-type]
    assert len(workspace.datasets()) == 1
    assert status_of(source) is DatasetStatus.READY


@pytest.mark.slow
def test_enrich__dependencies(workspace: Workspace, source: Dataset) -> None:
    """A model that depends on a type can be applied behind it, or together with it, and not without."""
    path = workspace.path / "models.toml"
    path.write_text(path.read_text() + 'dependencies = ["MULTIMODEL_IMAGE_ENCODING"]\n')
    with pytest.raises(Conflict, match="'names' needs MULTIMODEL_IMAGE_ENCODING to be applied first"):
        source.enrich(TAG)
    source.enrich({**TAG, **ENCODE})
    source.enrich(ENCODE).enrich(TAG)


@pytest.mark.slow
def test_enrich__needs_a_ready_dataset(workspace: Workspace, hues: Hues) -> None:
    """A dataset with media that are not settled yet cannot be enriched."""
    dataset = workspace.create_dataset("d", part(np.eye(4)[:3]))
    dataset.add_media(part(np.eye(4)[3:], 3))
    with pytest.raises(Conflict, match="needs the dataset status READY; it is PARTIAL INDEX"):
        dataset.enrich(ENCODE)


@pytest.mark.slow
@pytest.mark.only_soak
def test_enrich__of_uploads(workspace: Workspace, source: Dataset, images: Path, tmp_path: Path) -> None:
    """Uploaded images are shared with the new dataset, which has them when the source is gone."""
    for path in paint(tmp_path / "more", 8).iterdir():
        if path.name[0] in "67":
            source.add_media(files=[(path.name, path.read_bytes())], auto_reindex=True)
    enriched = source.enrich(ENCODE)
    workspace.delete_dataset(source.id)
    assert len(enriched.embeddings()[0]) == 8
    uploaded = columns_of(enriched, ["media_id"])["media_id"][-1]
    assert enriched.read(uploaded).shape[2] == 3


def test_enrich__of_a_read_only_workspace(workspace: Workspace, source: Dataset) -> None:
    """Models can be listed there, and not applied."""
    with Workspace(workspace.path, read_only=True, settings=SETTINGS) as opened:
        dataset = opened.dataset("colours")
        assert len(dataset.list_models()) == 3
        with pytest.raises(OSError, match="opened for reading"):
            dataset.enrich(ENCODE)
    assert [path.name for path in (workspace.path / "datasets").iterdir()] == [source.id]


@pytest.mark.slow
@pytest.mark.only_soak
def test_enrich__frames_of_videos(workspace: Workspace, images: Path, hues: Hues) -> None:
    """A frame is looked at as it was at ingestion; a video without frames keeps its reason."""
    colours = [np.full((48, 64, 3), COLOURS[name], np.uint8) for name in COLOURS for _ in range(10)]
    write_video(images / "clip.avi", colours, fps=10)
    (images / "empty.avi").write_bytes(b"")
    source = workspace.create_dataset("colours", images, hues)
    made = workspace.create_dataset("again", images, "gist").enrich(ENCODE)
    wanted, found = (columns_of(each, ["path", "kind", "embedding", "error"]) for each in (source, made))
    assert found["kind"].count("video_frame") == 3
    assert found["path"] == wanted["path"]
    for one, other in zip(wanted["embedding"], found["embedding"], strict=True):
        assert (one is None and other is None) or np.allclose(one, other)
    assert found["error"] == wanted["error"]
    assert sum(each is not None for each in found["error"]) == 1
