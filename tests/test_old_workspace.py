"""A workspace that an earlier version of the code wrote, kept as an archive, can be used as one of today's.

``tests/make_old_workspace.py`` made the archive, at the commit that it is named by.
"""

import json
import shutil
import sqlite3
import tarfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from framedex import Dataset, Workspace
from framedex.errors import Conflict
from framedex.records import TaskStatus
from framedex.storage import datasets, tables
from framedex.storage.media_rows import COPY_DESCRIPTOR, OF_FAULTS, PANEL_DESCRIPTORS
from framedex.storage.table_versions import Table
from framedex.vql import issues, tags
from tests.failures import failing
from tests.gallery import VERIFYING
from tests.image_files import detailed, encode, photo, write
from tests.inside import catalog_of, context_of, layout_of

ARCHIVE = Path(__file__).parent / "workspaces" / "aefb06e.tar.xz"
COLUMNS = ("media_id", "image_filename", "labels", "caption", "tags", "rating", "cluster_3", "issues")
MEASURE = "colourfulness"
THRESHOLDS = (0.01, 0.02, 0.05, 0.1, 0.2)


def unpack(archive: tarfile.TarFile, folder: Path) -> None:
    """Unpack an archive of ours."""
    # Python before 3.11.4 has no filters, and later versions warn without one.
    archive.extraction_filter = getattr(tarfile, "data_filter", None)
    archive.extractall(folder)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The folder with the images and the workspace, whose source root is where the images are now."""
    with tarfile.open(ARCHIVE) as archive:
        unpack(archive, tmp_path)
    with Workspace(tmp_path / "workspace", settings=VERIFYING) as workspace:
        for record in workspace.datasets():
            with catalog_of(workspace).write() as connection:
                datasets.put_roots(connection, record.id, [str(tmp_path / "images")])
    return tmp_path


@pytest.fixture
def old(home: Path) -> Iterator[Workspace]:
    """The old workspace, opened."""
    with Workspace(home / "workspace", settings=VERIFYING) as workspace:
        yield workspace


def expected(home: Path) -> dict[str, Any]:
    """Return what the earlier version read from the workspace."""
    read: dict[str, Any] = json.loads((home / "expected.json").read_text())
    return read


def contents(dataset: Dataset) -> dict[str, Any]:
    """Return the same, as it is read now."""
    read = {
        "rows": sorted(dataset.to_arrow(COLUMNS).to_pylist(), key=lambda row: str(row["image_filename"])),
        "objects": sorted(dataset.objects.media_ids()),
        "tags": {tag.name: tag.count for tag in dataset.tags()},
        "fields": [field.field_name for field in dataset.fields()],
        "decisions": [decision.media_ids for decision in dataset.duplicate_decisions()],
        "snapshots": {snapshot.snapshot_name: snapshot.description for snapshot in dataset.snapshots()},
    }
    plain: dict[str, Any] = json.loads(json.dumps(read, default=str))
    return plain


def ids_of(dataset: Dataset) -> dict[str, str]:
    """Return media ids by file name."""
    rows = dataset.to_arrow(["image_filename", "media_id"]).to_pylist()
    return {row["image_filename"]: row["media_id"] for row in rows}


def colours_of(dataset: Dataset) -> dict[str, float | None]:
    """Return the values of one measure, by the path of the image."""
    rows = media_of(dataset).scan(["path", MEASURE]).read_all().to_pylist()
    return {row["path"]: row[MEASURE] for row in rows}


def media_of(dataset: Dataset) -> Table:
    """Return the table of the images."""
    return Table(layout_of(dataset).media(dataset.id), head_of(dataset).tables["media"])


def copies_of(dataset: Dataset) -> list[dict[str, str]]:
    """Return the near-duplicate groups: what was done to each copy, by path."""
    return sorted((dict(zip(each.paths, each.reasons, strict=True)) for each in dataset.duplicates()), key=sorted)


def undescribed(dataset: Dataset) -> list[str]:
    """Return the paths of the images without a copy descriptor."""
    rows = media_of(dataset).scan(["path", COPY_DESCRIPTOR]).read_all().to_pylist()
    return [row["path"] for row in rows if row[COPY_DESCRIPTOR] is None]


def head_of(dataset: Dataset) -> Any:
    """Return the generation that readers see."""
    with catalog_of(dataset).read() as connection:
        head = datasets.head(connection, dataset.id)
    assert head is not None
    return head


def without_measure(dataset: Dataset) -> None:
    """Make the dataset one of a time when there was a measure less, of images and of objects."""
    head, context = head_of(dataset), context_of(dataset)
    versions = dict(head.tables)
    for name in ("media", "objects"):
        versions[name] = tables.drop_columns(Table(context.layout.table(dataset.id, name), versions[name]), [MEASURE])
    with context.catalog.write() as connection:
        datasets.commit_generation(
            connection,
            dataset.id,
            tables=versions,
            n_images=head.n_images,
            config=dataset.embedding_config,
            summary=head.summary,
        )


@pytest.mark.slow
def test_old_workspace__shows_what_it_held(home: Path, old: Workspace) -> None:
    """Rows, tags, labels, captions, fields, decisions, objects and snapshots are those of the earlier version."""
    read = {record.display_name: contents(old.dataset(record.id)) for record in old.datasets()}
    assert read == expected(home)
    assert len(read) == 2


def rows_of_catalog(path: Path) -> dict[str, list[Any]]:
    """Return all rows of the tables that refer to datasets, and the names of datasets with their counts."""
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
        names = ("generations", "snapshots", "source_roots", "tasks")
        rows = {name: sorted(connection.execute(f"SELECT * FROM {name}"), key=repr) for name in names}
        datasets_ = connection.execute("SELECT id, name, status, head, n_images, current_snapshot FROM datasets")
        return rows | {"datasets": sorted(datasets_)}


@pytest.mark.slow
def test_old_workspace__its_catalog_is_migrated(tmp_path: Path) -> None:
    """The rebuilt table of datasets has all rows, nothing that refers to them is lost, and the workspace is sound."""
    with tarfile.open(ARCHIVE) as archive:
        unpack(archive, tmp_path)
    path = tmp_path / "workspace" / "catalog.db"
    before = rows_of_catalog(path)
    assert before["generations"]
    assert before["snapshots"]
    with Workspace(tmp_path / "workspace", settings=VERIFYING) as workspace:
        assert rows_of_catalog(path) == before
        assert workspace.namespaces() == [""]
        for record in workspace.datasets():
            assert record.n_objects == workspace.dataset(record.id).objects.count() > 0
        assert workspace.check().findings == []
        moved = workspace.in_namespace("other").create_dataset("old", pa.table({"uri": ["a"], "embedding": [[1.0]]}))
        assert workspace.dataset("old").id != moved.id
    with Workspace(tmp_path / "workspace", settings=VERIFYING) as workspace:
        assert workspace.in_namespace("other").dataset("old").id == moved.id


@pytest.mark.slow
def test_old_workspace__an_interrupted_migration(tmp_path: Path) -> None:
    """A migration is one transaction: one that fails at the end leaves the catalog as it was, and runs again."""
    with tarfile.open(ARCHIVE) as archive:
        unpack(archive, tmp_path)
    path = tmp_path / "workspace" / "catalog.db"
    before = rows_of_catalog(path)

    step = "alembic.runtime.migration.HeadMaintainer.update_to_step"
    with failing(step, error=KeyboardInterrupt()), pytest.raises(KeyboardInterrupt):
        Workspace(tmp_path / "workspace", settings=VERIFYING)
    assert rows_of_catalog(path) == before
    with Workspace(tmp_path / "workspace", settings=VERIFYING) as workspace:
        assert len(workspace.datasets()) == 2


@pytest.mark.slow
def test_old_workspace__is_searched(old: Workspace) -> None:
    """Filters, texts and similar images are found."""
    dataset = old.dataset("old")
    ids = ids_of(dataset)
    assert sorted(dataset.where([tags("keep")]).media_ids()) == sorted([ids["01.png"], ids["02.png"]])
    assert dataset.where([issues("dark")]).media_ids() == [ids["05.png"]]
    assert dataset.search("ball").media_ids()[:1] == [ids["02.png"]]
    assert set(dataset.similar(ids["00.png"]).media_ids()[:2]) == {ids["00.png"], ids["11.png"]}
    assert dataset.thumbnail(ids["03.png"]).startswith(b"\xff\xd8")


def test_old_workspace__takes_additions_and_restores(home: Path, old: Workspace) -> None:
    """New images join the dataset, those that are there add nothing, and the snapshot brings the state of then back."""
    dataset, then = old.dataset("old"), expected(home)["old (cloned)"]
    write(home / "images" / "new.png", photo(77))
    dataset.add_media(home / "images")
    assert dataset.count() == len(then["rows"]) + 1
    kept = next(each for each in dataset.snapshots() if each.snapshot_name == "kept")
    dataset.restore(kept)
    numbered = {"cluster_3": None, "issues": None}  # a cluster's id is made of its dataset's
    rows = [row | numbered for row in contents(dataset)["rows"]]
    assert rows == [row | numbered for row in then["rows"]]
    assert contents(dataset)["tags"] == then["tags"]


def coco_of(dataset: Any, home: Path) -> dict[str, Any]:
    """Return the COCO file of an export."""
    dataset.export(home / "out.json", "coco")
    found: dict[str, Any] = json.loads((home / "out.json").read_text())
    return found


@pytest.mark.slow
def test_old_workspace__exports_its_classes(home: Path, old: Workspace) -> None:
    """Without a class list, classes count in the alphabetical order of the whole dataset; later ones follow."""
    dataset = old.dataset("old")
    cars = dataset.objects.where([{"labels": {"op": "is", "value": "dog"}}])
    found = coco_of(dataset, home)
    classes = {each["name"]: each["id"] for each in found["categories"]}
    everything = sorted({"car", "dog", *(label for row in contents(dataset)["rows"] for label in row["labels"])})
    assert classes == {name: everything.index(name) + 1 for name in ("car", "dog")}
    assert coco_of(cars, home)["categories"] == found["categories"]
    assert [each["segmentation"] for each in found["annotations"]] == [[], [], []]
    dataset.export(home / "out.zip", "yolo", include_images=True)
    dataset.export(home / "all.json")
    (home / "more.csv").write_text("filename,col_x,row_y,width,height,label\n03.png,5,5,20,20,ant\n")
    dataset.add_objects(home / "more.csv")
    found = coco_of(dataset, home)
    assert {each["name"]: each["id"] for each in found["categories"]} == {**classes, "ant": len(everything) + 1}


@pytest.mark.slow
def test_old_workspace__reindexes(home: Path, old: Workspace) -> None:
    """All images may be gone at a reindex: what is known of them stays, and one line says what cannot be measured."""
    shutil.rmtree(home / "images")
    dataset = old.dataset("old")
    before = contents(dataset)
    task = dataset.reindex(thresholds=THRESHOLDS)
    unread = (
        "12 images could not be read to be measured; their rows keep the values they had, without a copy descriptor"
    )
    assert (task.status, task.record.status_message) == (TaskStatus.COMPLETED, f"done; {unread}")
    assert not {COPY_DESCRIPTOR, PANEL_DESCRIPTORS} & set(media_of(dataset).schema.names)
    assert dataset.embedding_config.copy_descriptor is None
    after = contents(dataset)
    for row in (*before["rows"], *after["rows"]):
        del row["cluster_3"]
    assert after == before


@pytest.mark.slow
def test_reindex__measures_what_older_versions_did_not(home: Path, old: Workspace) -> None:
    """A measure that the tables lack is taken from the images; rows of images that are gone keep what they had."""
    dataset = old.dataset("old")
    before = colours_of(dataset)
    without_measure(dataset)
    write(home / "images" / "new.png", photo(77))
    dataset.add_media(home / "images", auto_reindex=False)
    (home / "images" / "01.png").unlink()
    (home / "images" / "02.png").unlink()
    task = dataset.reindex()
    after = colours_of(dataset)
    assert task.record.status_message == (
        "done; 2 images could not be read to be measured; their rows keep the values they had, "
        "without a copy descriptor"
    )
    assert after.pop("new.png") is not None
    assert after == before | {"01.png": None, "02.png": None}
    assert dataset.objects.count() == 3
    write(home / "images" / "01.png", photo(1))
    assert dataset.reindex(thresholds=THRESHOLDS).status is TaskStatus.COMPLETED
    assert (colours_of(dataset)["01.png"] is None, colours_of(dataset)["02.png"] is None) == (False, True)


@pytest.mark.slow
def test_reindex__finds_the_copies_of_a_new_dataset(home: Path, old: Workspace) -> None:
    """After a reindex, duplicates are those of a new dataset of the same images, also crops, frames, mirror images."""
    dataset, images = old.dataset("old"), home / "images"
    for number in (1, 2, 3):
        write(images / f"detailed_{number}.png", detailed(number))
    dataset.add_media(images, auto_reindex=False)
    write(images / "cropped.png", detailed(1)[40:200, 50:270])
    write(images / "mirrored.png", np.ascontiguousarray(detailed(2)[:, ::-1]))
    dataset.add_media(images, auto_reindex=False)
    assert copies_of(dataset) == []
    (decision,) = dataset.duplicate_decisions()
    dataset.withdraw_decision(decision.decision_id)
    assert dataset.reindex().record.status_message == "done"
    new = old.create_dataset("new", images, "gist")
    expected = copies_of(new)
    assert [sorted(group) for group in expected] == [
        ["00.png", "11.png"], ["cropped.png", "detailed_1.png"], ["detailed_2.png", "mirrored.png"]
    ]  # fmt: skip
    assert copies_of(dataset) == expected
    assert dataset.embedding_config.copy_descriptor == "gist"
    write(images / "framed.png", np.pad(detailed(3), ((40, 40), (40, 40), (0, 0)), constant_values=255))
    for each in (dataset, new):
        each.add_media(images, auto_reindex=False)
    assert copies_of(dataset) == copies_of(new) != expected
    stored, recent = (
        {row["path"]: row for row in media_of(each).scan(["path", name, PANEL_DESCRIPTORS]).read_all().to_pylist()}
        for each, name in ((dataset, COPY_DESCRIPTOR), (new, "embedding"))
    )
    for path, row in recent.items():
        assert stored[path][COPY_DESCRIPTOR] == row["embedding"], path
        assert stored[path][PANEL_DESCRIPTORS] == row[PANEL_DESCRIPTORS], path


@pytest.mark.slow
def test_reindex__images_that_are_gone_have_no_copies(home: Path, old: Workspace) -> None:
    """Images that cannot be read have no descriptor and are copies of nothing; a later reindex gives them one."""
    dataset, images = old.dataset("old"), home / "images"
    decision = dataset.duplicate_decisions()[0]
    names = ("00.png", "01.png", "11.png")
    for name in names:
        (images / name).rename(home / name)
    dataset.withdraw_decision(decision.decision_id)
    assert copies_of(dataset) == [{"00.png": "kept", "11.png": "same pixels"}]
    task = dataset.reindex(thresholds=THRESHOLDS)
    assert str(task.record.status_message).endswith("keep the values they had, without a copy descriptor")
    assert undescribed(dataset) == [*names, "broken.jpg"]
    assert copies_of(dataset) == []
    dataset.not_duplicates([ids_of(dataset)[name] for name in ("00.png", "02.png")])
    write(images / "new.png", photo(77))
    dataset.add_media(images / "new.png", auto_reindex=False)
    dataset.delete_media([ids_of(dataset)["03.png"]])
    assert copies_of(dataset) == []
    for name in names:
        (home / name).rename(images / name)
    assert dataset.reindex().record.status_message == "done"
    assert undescribed(dataset) == ["broken.jpg"]
    assert [sorted(group) for group in copies_of(dataset)] == [["00.png", "11.png"]]


@pytest.mark.slow
def test_old_workspace__files_that_were_not_decoded(home: Path, old: Workspace) -> None:
    """Rows of a time without kinds of faults count as damaged, and no clean-up removes them before a reindex."""
    dataset, images = old.dataset("old"), home / "images"
    (images / "page.png").write_text("<!DOCTYPE html><html></html>")
    (images / "cut.jpg").write_bytes(encode(photo(5), "JPEG")[:2000])
    png = encode(photo(78))
    write(images / "new.png", photo(77))
    dataset.add_media(images, auto_reindex=True)
    without_faults(dataset)
    assert sorted(dataset.issues("corrupted")["path"].to_pylist()) == ["broken.jpg", "cut.jpg"]
    assert dataset.media_item(dataset.media_id("page.png")).fault is None
    (images / "cut.jpg").write_bytes(png)  # as if this version could decode it
    with pytest.raises(Conflict, match="an older version could not decode 3 files"):
        dataset.plan_cleanup(issues=["corrupted"])
    dataset.reindex(thresholds=THRESHOLDS)
    assert sorted(dataset.issues("not_supported")["path"].to_pylist()) == ["cut.jpg", "page.png"]
    assert dataset.plan_cleanup(issues=["corrupted"]).removed_ids() == [dataset.media_id("broken.jpg")]


def without_faults(dataset: Dataset) -> None:
    """Make the dataset one of a time when rows had no kind of fault."""
    head, context = head_of(dataset), context_of(dataset)
    table = Table(context.layout.table(dataset.id, "media"), head.tables["media"])
    versions = head.tables | {"media": tables.drop_columns(table, OF_FAULTS.names)}
    with context.catalog.write() as connection:
        datasets.commit_generation(
            connection,
            dataset.id,
            tables=versions,
            n_images=head.n_images,
            config=dataset.embedding_config,
            summary=head.summary,
        )
