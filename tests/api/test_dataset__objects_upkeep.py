"""Data about objects outside of their table: caches, snapshots, other processes, and datasets without objects left."""

from pathlib import Path

import pytest

from framedex import Dataset, Workspace, vql
from framedex.core.ids import objects_dataset
from tests.processes import run
from tests.things import THINGS, make_things


@pytest.fixture
def dataset(workspace: Workspace, tmp_path: Path) -> Dataset:
    return workspace.create_dataset("street", make_things(tmp_path / "images"))


def caches(workspace: Workspace, dataset_id: str) -> set[str]:
    """Return the kinds of what is cached of a dataset's objects."""
    own = objects_dataset(dataset_id)
    return {path.parent.name for path in (workspace.path / "cache").glob(f"*/{own}") if any(path.iterdir())}


def small(workspace: Workspace, dataset: Dataset) -> set[str]:
    """Return the ids of the objects that have a thumbnail."""
    folder = workspace.path / "cache/thumbnails" / objects_dataset(dataset.id)
    return {path.name[:36] for path in folder.glob("*/*.jpg")}


@pytest.mark.slow
@pytest.mark.only_soak
def test_caches__of_objects_are_their_own(workspace: Workspace, dataset: Dataset) -> None:
    """Thumbnails and texts of objects lie beside those of media, are counted, stay, and go with the dataset."""
    before = workspace.disk_usage()
    dataset.objects.thumbnails(dataset.objects.media_ids())
    dataset.search("cat", entity_type="OBJECTS").media_ids()
    assert small(workspace, dataset) == set(dataset.objects.media_ids())
    assert caches(workspace, dataset.id) == {"thumbnails", "text"}
    after = workspace.disk_usage()
    assert after.by_part["thumbnails"] > before.by_part.get("thumbnails", 0)
    assert after.by_part["text index"] > before.by_part.get("text index", 0)
    assert "deleted datasets" not in after.by_part
    assert workspace.vacuum(older_than_s=0).thumbnails == 0
    assert small(workspace, dataset) == set(dataset.objects.media_ids())
    workspace.delete_dataset("street")
    assert caches(workspace, dataset.id) == set()


@pytest.mark.slow
def test_disk_usage__counts_objects_as_rows(workspace: Workspace, dataset: Dataset) -> None:
    """Embeddings and index columns of objects are such; all parts together are all files."""
    usage = workspace.disk_usage()
    held = 4 * (len(THINGS) + 6) * dataset.embedding_config.dimension
    assert usage.by_part["embeddings"] >= held
    assert sum(usage.by_part.values()) == usage.total_bytes


@pytest.mark.slow
@pytest.mark.only_soak
def test_vacuum__forgets_thumbnails_of_objects_that_are_gone(workspace: Workspace, dataset: Dataset) -> None:
    """With an image its objects go, and then what was cached of them."""
    dataset.objects.thumbnails(dataset.objects.media_ids())
    dataset.delete_media(dataset.where(vql.file_name("is", "1.png")))
    left = set(dataset.objects.media_ids())
    gone = small(workspace, dataset) - left
    assert len(gone) == 2
    assert workspace.vacuum(older_than_s=0).thumbnails == 2
    assert small(workspace, dataset) == left


@pytest.mark.slow
def test_none_left__all_is_empty(dataset: Dataset) -> None:
    """After its last object is deleted with the image, the dataset is like one without objects."""
    some = dataset.objects.media_ids()[0]
    dataset.delete_media(dataset.where(vql.objects()))
    objects = dataset.objects
    (left,) = dataset.where([]).media_ids()
    assert (objects.count(), objects.media_ids(), objects.to_arrow().num_rows) == (0, [], 0)
    assert objects.explore().clusters == objects.explore(anchor_media_id=left).clusters == []
    assert objects.explore(caption="cat").clusters == []
    assert list(objects.duplicates()) == list(objects.duplicates(exact=True)) == []
    assert objects.issues().num_rows == 0
    assert dataset.similar(left, entity_type="OBJECTS").media_ids() == []
    assert dataset.search("cat", None, entity_type="OBJECTS").media_ids() == []
    assert objects.thumbnails([some]) == [None]
    assert dataset.where(vql.objects()).count() == 0
    assert dataset.where(~vql.objects("cat")).media_ids() == [left]


@pytest.mark.slow
@pytest.mark.only_soak
def test_restore__brings_objects_back(dataset: Dataset) -> None:
    """A snapshot has its objects, with their ids and clusters; a view opened before sees each state as it comes."""
    view = dataset.objects
    rows, clusters = view.to_arrow(), view.explore(level=1).clusters
    kept = dataset.snapshot("before")
    dataset.delete_media(dataset.where(vql.objects("dog")))
    assert view.count() == len(THINGS) - 4
    dataset.restore(kept)
    assert view.to_arrow().equals(rows)
    assert view.explore(level=1).clusters == clusters


@pytest.mark.slow
@pytest.mark.only_soak
def test_reading__by_another_process(workspace: Workspace, dataset: Dataset) -> None:
    """Another process that only reads sees the same objects, and searches them."""
    text = (
        "from framedex import Workspace\n"
        f"with Workspace({str(workspace.path)!r}, read_only=True) as ws:\n"
        "    ds = ws.dataset('street')\n"
        "    print(ds.objects.count(), len(ds.search('cat', entity_type='OBJECTS').media_ids()),\n"
        "          len(ds.similar(ds.objects.media_ids()[0], 3, entity_type='OBJECTS').media_ids()))\n"
    )
    assert run(text).split() == [str(len(THINGS)), "2", "3"]
    assert caches(workspace, dataset.id) == set()
