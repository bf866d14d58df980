"""Records of datasets: description, origin, time of the last change, and which searches can find something."""

from pathlib import Path

import pytest

from framedex import Conflict, Dataset, InvalidInput, Workspace
from framedex.records import SourceType, TaskType
from tests.buckets import Service
from tests.enrichments import ENCODE, Hues, register_models
from tests.gallery import embedded
from tests.image_files import encode, photo
from tests.prepared import prepared


@pytest.fixture
def dataset(workspace: Workspace, folder: Path) -> Dataset:
    """A dataset of six images."""
    return prepared(workspace, "pets", folder)


@pytest.mark.slow
def test_description__is_kept(workspace: Workspace, dataset: Dataset) -> None:
    """A description survives a rename, a snapshot's restore, a check and the loss of the catalog."""
    assert dataset.info.description == ""
    dataset.update(description="cats of Berlin\nand dogs")
    dataset.update(name="animals")
    dataset.restore("current")
    copy = dataset.clone().info
    assert (copy.source_dataset_id, copy.description) == (dataset.id, "")
    assert (dataset.name, dataset.info.description) == ("animals", "cats of Berlin\nand dogs")
    assert workspace.check().findings == []
    workspace.close()
    (workspace.path / "catalog.db").unlink()
    for rest in ("-wal", "-shm"):
        (workspace.path / f"catalog.db{rest}").unlink(missing_ok=True)
    Workspace.recover(workspace.path)
    with Workspace(workspace.path) as again:
        record = again.dataset("animals").info
        assert again.dataset(copy.id).info == copy
    assert record.description == "cats of Berlin\nand dogs"
    assert record.source_type is SourceType.LOCAL


def test_update__is_all_or_nothing(workspace: Workspace, dataset: Dataset) -> None:
    """A name or a description that cannot be used changes neither."""
    workspace.create_draft("taken")
    dataset.update(description="x" * 10_000)
    for name, description in (("a/b", "y"), ("free", "y" * 10_001), ("free", "\ud800"), ("free", 7)):
        with pytest.raises(InvalidInput):
            dataset.update(name=name, description=description)  # type: ignore[arg-type] # the wrong type is one case
    with pytest.raises(Conflict, match="'taken' exists already"):
        dataset.update(name="taken", description="y")
    assert (dataset.name, dataset.info.description) == ("pets", "x" * 10_000)


@pytest.mark.slow
def test_record__of_folders_files_and_copies(workspace: Workspace, dataset: Dataset, folder: Path) -> None:
    """The source is the folder; a copy names the dataset that it was made of."""
    record = dataset.info
    assert (record.source_type, record.source_uri) == (SourceType.LOCAL, str(folder))
    assert record.source_dataset_id is None
    assert record.created_by == record.owned_by == workspace.user
    register_models(workspace, Hues())
    for copy in (dataset.clone(), dataset.enrich(ENCODE)):
        made = copy.info
        assert (made.source_dataset_id, made.source_uri) == (dataset.id, str(folder))
    assert dataset.info.updated_at == record.updated_at
    table = workspace.create_dataset("table", embedded([[1.0, 0.0], [0.0, 1.0]])).info
    assert (table.source_type, table.source_dataset_id) == (SourceType.LOCAL, None)


@pytest.mark.slow
def test_record__of_uploads(workspace: Workspace) -> None:
    """A draft and what becomes of it are uploads, without a place of their own."""
    draft = workspace.create_draft("draft")
    upload = draft.open_upload()
    upload.add([("a.png", encode(photo(1))), ("b.png", encode(photo(2)))])
    assert (draft.info.source_type, draft.info.source_uri, draft.info.updated_at) == (SourceType.UPLOAD, None, None)
    upload.process()
    record = draft.info
    assert (record.source_type, record.source_uri) == (SourceType.UPLOAD, None)
    assert record.updated_at is not None
    assert record.updated_at >= record.created_at
    draft.add_media(files=[("c.png", encode(photo(3)))])
    later = draft.info.updated_at
    assert later is not None
    assert later > record.updated_at


@pytest.mark.slow
@pytest.mark.only_soak
def test_record__of_buckets(service: Service, tmp_path: Path) -> None:
    """The source is the URI that was given, at once and afterwards."""
    service.put("origin/set/0.png", encode(photo(1)))
    service.put("origin/set/1.png", encode(photo(2)))
    with Workspace(tmp_path / "ws", settings=service.settings()) as workspace:
        dataset = workspace.create_dataset("remote", "s3://origin/set", wait=False)
        before = dataset.info
        assert dataset.task is not None
        dataset.task.wait()
        for record in (before, dataset.info):
            assert (record.source_type, record.source_uri) == (SourceType.BUCKET, "s3://origin/set")


def test_text_searches__follow_labels_captions_and_encoders(workspace: Workspace, dataset: Dataset) -> None:
    """A search by meaning needs an encoder of texts; the others need labels or captions."""
    assert set(dict(dataset.text_searches()).values()) == {False}
    assert set(dict(workspace.create_draft("draft").text_searches()).values()) == {False}
    (first, *_) = dataset.view.media_ids()
    dataset.set_labels(first, ["cat"])
    dataset.set_captions({first: "a cat"})
    found = dataset.text_searches()
    assert (found.labels, found.captions, found.semantic) == (True, True, False)
    register_models(workspace, Hues())
    assert dataset.enrich(ENCODE).text_searches().semantic


@pytest.mark.slow
def test_last_enrichment__of_source_and_copy(workspace: Workspace, dataset: Dataset) -> None:
    """The newest enrichment is that of the source and of the copy."""
    assert (dataset.last_enrichment, dataset.running_task) == (None, None)
    register_models(workspace, Hues())
    copy = dataset.enrich(ENCODE)
    assert dataset.last_enrichment is not None
    assert dataset.last_enrichment.task_type is TaskType.ENRICHMENT
    assert dataset.last_enrichment == copy.last_enrichment


def test_add_field__under_an_id(dataset: Dataset) -> None:
    """A task whose id the caller chose is started once."""
    task_id = "11111111-2222-4333-8444-555555555555"
    assert dataset.add_field("a", "float", task_id=task_id).task_id == task_id
    with pytest.raises(Conflict, match="was started already"):
        dataset.add_field("b", "float", task_id=task_id)
    dataset.check_field("b", "float")
    with pytest.raises(Conflict, match="'a' exists already"):
        dataset.check_field("a", "float")
    assert [field.field_name for field in dataset.fields()] == ["a"]
