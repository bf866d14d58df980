"""Labels with counts, the copies of one image, the image at a location, and totals of pages."""

from contextlib import chdir
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from framedex import InvalidInput, NotFound, Workspace
from framedex.cli.program import app
from framedex.core.ids import new_id
from framedex.records import TaskType
from framedex.storage import datasets, schema, task_rows
from framedex.vql import labels
from tests.gallery import COPIES, NEAR, SETTINGS, Gallery, embedded, fill
from tests.inside import catalog_of
from tests.videos import numbered, write_video


@pytest.mark.slow
def test_labels__are_counted(workspace: Workspace) -> None:
    """Each label counts the images that have it, the most frequent first; a view counts its own."""
    table = embedded([[1, 0], [0, 1], [1, 1], [0, 2]], labels=[["dog", "big", "dog"], ["cat"], ["dog"], None])
    dataset = workspace.create_dataset("pets", table)
    assert [(each.name, each.count) for each in dataset.labels()] == [("dog", 2), ("big", 1), ("cat", 1)]
    assert [(each.name, each.count) for each in dataset.where([labels("cat")]).labels()] == [("cat", 1)]
    assert dataset.objects.labels() == []


@pytest.mark.slow
@pytest.mark.only_soak
def test_labels__of_objects(workspace: Workspace, folder: Path) -> None:
    """Objects are counted by their own labels, and the record of the dataset has their number."""
    names = sorted(path.name for path in folder.iterdir())
    rows = [f"{names[0]},0,0,9,9,cat", f"{names[0]},9,9,9,9,cat", f"{names[1]},0,0,9,9,dog"]
    (folder / "object_annotations.csv").write_text("\n".join(["filename,col_x,row_y,width,height,label", *rows]))
    dataset = workspace.create_dataset("pets", folder)
    assert [(each.name, each.count) for each in dataset.objects.labels()] == [("cat", 2), ("dog", 1)]
    assert dataset.info.n_objects == workspace.datasets()[0].n_objects == 3
    assert dataset.clone().info.n_objects == 3
    home = ["--workspace", str(workspace.path)]
    shown = CliRunner().invoke(app, ["labels", "pets", "--entity-type", "OBJECTS", *home]).output
    assert [line.split() for line in shown.splitlines()] == [["label", "objects"], ["cat", "2"], ["dog", "1"]]


def test_copies_of__are_those_of_the_group(gallery: Gallery) -> None:
    """The copies of each member are the other members, with the reasons of the group."""
    for names in (COPIES, *NEAR):
        groups = gallery.dataset.duplicates()
        (group,) = (each for each in groups if gallery.ids[names[0]] in each.media_ids)
        for name in names:
            copies = gallery.dataset.copies_of(gallery.ids[name])
            assert sorted(each.path for each in copies) == sorted({*names} - {name})
            for copy in copies:
                place = group.media_ids.index(copy.media_id)
                assert (copy.reason, copy.path) == (group.reasons[place], group.paths[place])
                assert copy.keep == (copy.media_id == group.keep)
            values = [each.similarity or 0.0 for each in copies]
            assert values == sorted(values, reverse=True)
            assert min(values) > 0.9
    assert gallery.dataset.copies_of(gallery.ids["towns/05.png"]) == []
    assert gallery.dataset.copies_of(gallery.ids[NEAR[0][0]], 1.0) == []


def test_copies_of__refuses(gallery: Gallery) -> None:
    """An unknown image and a similarity outside of the levels are refused by name."""
    with pytest.raises(NotFound, match="no media"):
        gallery.dataset.copies_of(new_id())
    with pytest.raises(InvalidInput, match=r"0\.5"):
        gallery.dataset.copies_of(gallery.ids[COPIES[0]], 0.5)


@pytest.mark.slow
def test_media_id__by_each_form_of_a_location(gallery: Gallery) -> None:
    """The path within the source, the absolute path, a relative one and the URI of previews lead to the image."""
    name = COPIES[0]
    path = gallery.folder / name
    preview = gallery.dataset.explore().clusters[0].previews[0]
    assert gallery.dataset.media_id(preview.original_uri) == preview.media_id
    for location in (name, path, str(path), path.as_uri(), f"{gallery.folder.name}/{name}"):
        with chdir(gallery.folder.parent):
            assert gallery.dataset.media_id(location) == gallery.ids[name]
    home = ["--workspace", str(gallery.workspace.path)]
    assert CliRunner().invoke(app, ["media-id", "gallery", name, *home]).output.strip() == gallery.ids[name]
    shown = CliRunner().invoke(app, ["duplicates", "gallery", "--of", str(path), *home]).output
    assert all(other in shown for other in COPIES[1:])


@pytest.mark.parametrize(
    "location", ["", "no.jpg", "/no.jpg", "file:///no.jpg", "file://[", "s3://b/no.jpg", "\ud800", "a\0"]
)
def test_media_id__nothing_there(gallery: Gallery, location: str) -> None:
    """Anything else is NotFound, with the location as it was given."""
    with pytest.raises(NotFound, match="no media at"):
        gallery.dataset.media_id(location)


@pytest.mark.slow
def test_media_id__of_a_table_and_of_uploads(workspace: Workspace, folder: Path) -> None:
    """Rows of a table are found by their uri, and uploads by their name."""
    vectors = workspace.create_dataset("vectors", embedded([[1, 0], [0, 1]]))
    assert [vectors.media_id(f"{number}.jpg") for number in range(2)] == vectors.where([]).media_ids()
    dataset = workspace.create_dataset("pets", folder)
    image = next(folder.iterdir()).read_bytes()
    dataset.add_media(files=[("new/a.jpg", image)])
    assert dataset.media_id("new/a.jpg") == dataset.where([]).media_ids()[-1]
    with pytest.raises(InvalidInput, match="7"):
        dataset.media_id(7)  # type: ignore[arg-type]


@pytest.mark.slow
def test_media_id__of_frames(workspace: Workspace, tmp_path: Path) -> None:
    """A frame is found by the URI of previews, which has its time; a video alone stands for its first frame."""
    (tmp_path / "films").mkdir()
    write_video(tmp_path / "films" / "a.mp4", numbered(30))
    dataset = workspace.create_dataset("films", tmp_path / "films", frames_per_second=2.0)
    previews = [preview for cluster in dataset.explore().clusters for preview in cluster.previews]
    assert len(previews) > 1
    assert [dataset.media_id(each.original_uri) for each in previews] == [each.media_id for each in previews]
    assert dataset.media_id("a.mp4") == dataset.where([]).media_ids()[0]
    with pytest.raises(NotFound):
        dataset.media_id("a.mp4#t=0.123")


@pytest.mark.slow
def test_explore__total_pages(workspace: Workspace) -> None:
    """A page tells its number and that of all pages."""
    dataset = workspace.create_dataset("many", embedded([[float(x == y) for x in range(210)] for y in range(210)]))
    pages = [dataset.explore(page_number=number) for number in range(4)]
    assert [len(page.clusters) for page in pages] == [100, 100, 10, 0]
    assert {page.total_pages for page in pages} == {3}
    assert [page.current_page for page in pages] == [0, 1, 2, 3]
    assert dataset.explore("OBJECTS").total_pages == 0


def with_tasks(workspace: Workspace, count: int) -> list[str]:
    """Add datasets with a task each, and return the datasets' ids."""
    ids = []
    with catalog_of(workspace).write() as connection:
        for number in range(count):
            record = datasets.find_dataset(connection, datasets.insert_dataset(connection, str(number), owned_by="me"))
            task_rows.insert_task(connection, record, task_type=TaskType.REINDEX, created_by=f"user{number % 3}")
            ids.append(record.id)
    return ids


@pytest.mark.slow
@pytest.mark.only_soak
def test_tasks__of_a_set_of_datasets(workspace: Workspace) -> None:
    """Tasks are restricted to any number of datasets before they are counted and paged."""
    ids = with_tasks(workspace, 40)
    assert workspace.tasks(datasets=ids[:30], page_size=20).total_pages == 2
    page = workspace.tasks(datasets=ids[:30], page=2, created_by="user0")
    assert (page.total, page.tasks) == (10, [])
    assert {task.dataset_id for task in workspace.tasks(datasets=ids[:3]).tasks} == {*ids[:3]}
    strangers = [new_id() for _ in range(40_000)]
    assert workspace.tasks(datasets=[*strangers, *ids]).total == 40
    assert workspace.tasks(datasets=strangers).total == workspace.tasks(datasets=[]).total == 0
    assert workspace.tasks(datasets=[ids[0]], dataset_id=ids[1]).total == 0
    filters = workspace.task_filters(datasets=ids[:2])
    assert (filters.dataset_names, filters.created_by) == (["0", "1"], ["user0", "user1"])
    assert workspace.task_filters(datasets=[]).task_types == []


def test_tasks__of_deleted_datasets(workspace: Workspace) -> None:
    """Beside those of a set of datasets, a user's own tasks in deleted datasets can be listed."""
    ids = with_tasks(workspace, 6)
    with catalog_of(workspace).write() as connection:
        for dataset_id in ids[:3]:
            connection.execute(schema.datasets.delete().where(schema.datasets.c.id == dataset_id))
    assert {task.dataset_id for task in workspace.tasks(datasets=[ids[5]], deleted_by="user0").tasks} == {
        ids[5],
        ids[0],
    }
    assert workspace.tasks(datasets=[], deleted_by="user7").total == 0
    assert workspace.tasks(datasets=[ids[1]]).total == 1
    assert workspace.task_filters(datasets=[], deleted_by="user1").dataset_names == ["1"]
    number: Any = 7
    for ask in (workspace.tasks, workspace.task_filters):
        with pytest.raises(InvalidInput, match="deleted_by"):
            ask(datasets=[], deleted_by=number)


@pytest.mark.parametrize("ids", ["abc", 7, [7], [None]])
def test_tasks__refuses_what_is_no_list_of_ids(workspace: Workspace, ids: Any) -> None:
    """Ids are a list of texts."""
    for ask in (workspace.tasks, workspace.task_filters):
        with pytest.raises(InvalidInput, match="datasets must be a list of ids"):
            ask(datasets=ids)


@pytest.mark.slow
def test_tasks__on_the_command_line(tmp_path: Path) -> None:
    """The tasks of some datasets are listed with their states."""
    with Workspace(tmp_path / "ws", settings=SETTINGS) as workspace:
        for name in ("pets", "cars"):
            workspace.create_dataset(name, fill(tmp_path / name, 2), "gist")
    home = ["--workspace", str(tmp_path / "ws")]
    shown = CliRunner().invoke(app, ["tasks", "--dataset", "pets", *home]).output
    assert "pets" in shown
    assert "cars" not in shown
    assert "COMPLETED" in CliRunner().invoke(app, ["tasks", *home]).output
    assert '"total_pages": 1' in CliRunner().invoke(app, ["tasks", "--json", *home]).output
