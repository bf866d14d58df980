"""Tags: people put them on media and take them off; everything that shows media shows them."""

import io
import json
import zipfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from framedex import Conflict, Dataset, InvalidInput, NotFound, ReadOnly, Workspace
from framedex.errors import Error
from framedex.jobs.edits.tag_lists import with_tag
from framedex.records import Tag
from tests.gallery import SETTINGS, Gate, embedded, fill, grouped
from tests.growth import columns_of, ids_of, part
from tests.inside import stored_media
from tests.laws import examples
from tests.prepared import prepared

ROWS = 6
NAMES = ("keep", "naïve 雪", "'; --")
Step = tuple[str, frozenset[int], str, str]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(("tag", "tag", "tag", "untag", "rename", "delete", "create")),
        st.frozensets(st.integers(0, ROWS - 1)),
        st.sampled_from(NAMES),
        st.sampled_from(NAMES),
    ),
    max_size=10,
)


@pytest.fixture
def dataset(workspace: Workspace) -> Dataset:
    """A dataset of six media in three clusters, of which the first four have labels."""
    labels = [["cat"], ["cat", "dog"], ["dog"], ["dog"], None, None]
    return prepared(workspace, "d", grouped([3, 2, 1]).append_column("label", pa.array(labels)))


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    """A dataset that the examples of one law use in turn."""
    workspace = Workspace(tmp_path_factory.mktemp("tags") / "workspace", settings=SETTINGS)
    return workspace.create_dataset("d", embedded(np.eye(ROWS).tolist()))


def all_ids(dataset: Dataset) -> list[str]:
    return dataset.where([]).media_ids()


def tags_of(dataset: Dataset) -> list[list[str]]:
    tags: list[list[str]] = dataset.to_arrow(["tags"])["tags"].to_pylist()
    return tags


def tagged(dataset: Dataset, *values: str) -> list[int]:
    """Return the numbers of the rows that a filter for tags leaves."""
    ids = all_ids(dataset)
    return [ids.index(each) for each in dataset.where([{"tags": {"op": "is", "value": list(values)}}]).media_ids()]


def applied(dataset: Dataset, step: Step) -> type[Error] | None:
    """Do one edit; return the class of the error that it raises."""
    action, rows, name, other = step
    selection = [media_id for row, media_id in enumerate(all_ids(dataset)) if row in rows]
    edits: dict[str, Callable[[], Any]] = {
        "tag": lambda: dataset.tag(selection, name),
        "untag": lambda: dataset.untag(selection, name),
        "rename": lambda: dataset.rename_tag(name, other),
        "delete": lambda: dataset.delete_tag(name),
        "create": lambda: dataset.create_tag(name),
    }
    try:
        edits[action]()
    except Error as error:
        return type(error)
    return None


def model(tags: dict[str, list[int]], step: Step) -> tuple[dict[str, list[int]], type[Error] | None]:
    """Return what the tags are after an edit, by name the rows in the order of tagging, and the error if it raises."""
    action, rows, name, other = step
    match action:
        case "create":
            return (tags, Conflict) if name in tags else ({**tags, name: []}, None)
        case "tag":
            had = tags.get(name, [])
            return {**tags, name: had + sorted(rows - set(had))}, None
        case _ if name not in tags:
            return tags, NotFound
        case "untag":
            return {**tags, name: [row for row in tags[name] if row not in rows]}, None
        case "delete":
            return {key: value for key, value in tags.items() if key != name}, None
        case _ if other in tags and other != name:
            return tags, Conflict
        case _:
            return {other if key == name else key: value for key, value in tags.items()}, None


@pytest.mark.slow
@examples(15)
@given(STEPS)
def test_tags__any_sequence_of_edits_agrees_with_a_dict(shared: Dataset, steps: list[Step]) -> None:
    """After any edits, refused ones among them, the tags, their counts and their media are those of a plain dict."""
    for tag in shared.tags():
        shared.delete_tag(tag.tag_id)
    expected: dict[str, list[int]] = {}
    for step in steps:
        expected, error = model(expected, step)
        assert applied(shared, step) is error
    assert [(tag.name, tag.count) for tag in shared.tags()] == [(name, len(rows)) for name, rows in expected.items()]
    assert [set(tags) for tags in tags_of(shared)] == [
        {name for name, rows in expected.items() if row in rows} for row in range(ROWS)
    ]
    for name in NAMES:
        assert tagged(shared, name) == sorted(expected.get(name, []))
    assert tagged(shared, "untagged") == [row for row, tags in enumerate(tags_of(shared)) if not tags]
    assert tagged(shared, "untagged", NAMES[0]) == sorted({*tagged(shared, "untagged"), *tagged(shared, NAMES[0])})


@pytest.mark.slow
@pytest.mark.only_soak
def test_tag__selections(dataset: Dataset) -> None:
    """A view, one id and a sequence of ids name media; the same ones twice count once."""
    ids = all_ids(dataset)
    assert dataset.tag(dataset.where([{"labels": {"op": "is", "value": "dog"}}]), "a").count == 3
    assert dataset.tag(ids[0], "b").count == 1
    assert dataset.tag((ids[5], ids[5], ids[2]), "c").count == 2
    assert dataset.tag(dataset.where([]), "d").count == 6
    assert dataset.tag([], "e").count == 0
    assert dataset.tag(dataset.where([{"tags": {"op": "is", "value": "a"}}]), "f").count == 3
    assert tags_of(dataset) == [["b", "d"], ["a", "d", "f"], ["a", "c", "d", "f"], ["a", "d", "f"], ["d"], ["c", "d"]]


@pytest.mark.slow
def test_tag__of_unknown_media_changes_nothing(dataset: Dataset) -> None:
    """The first unknown id is named, and neither the tag is made nor anything tagged."""
    ids = all_ids(dataset)
    for unknown in ("nobody", "", "\ud800"):
        with pytest.raises(NotFound) as raised:
            dataset.tag([ids[0], unknown, "other"], "a")
        assert repr(unknown) in str(raised.value)
        assert "other" not in str(raised.value)
    assert dataset.tags() == []
    assert tags_of(dataset) == [[]] * 6
    assert "tags" not in stored_media(dataset).generation.tables


@pytest.mark.slow
@pytest.mark.parametrize("selection", [None, 5, {"a": 1}, [5], [None], b"bytes"])
def test_tag__of_what_is_no_selection(dataset: Dataset, selection: Any) -> None:
    """Anything else than a view or ids is refused, and says what would be right."""
    with pytest.raises(InvalidInput, match=r"a selection must be a view|a media id is text"):
        dataset.tag(selection, "a")


@pytest.mark.slow
def test_tag__of_a_view_of_another_dataset(workspace: Workspace, dataset: Dataset) -> None:
    """A view selects media of its own dataset only."""
    other = workspace.create_dataset("other", grouped([2]))
    with pytest.raises(InvalidInput, match="view of the same dataset"):
        dataset.tag(other.where([]), "a")


@pytest.mark.parametrize("name", ["", "a\nb", "x" * 256, "untagged", "018f9c1e-3b2a-7c4d-9e5f-0123456789ab", 5, None])
def test_tag__names_that_cannot_be(dataset: Dataset, name: Any) -> None:
    """No method creates a tag with an invalid name."""
    existing = dataset.create_tag("a")
    with pytest.raises(InvalidInput):
        dataset.create_tag(name)
    with pytest.raises(InvalidInput):
        dataset.tag(dataset.where([]), name)
    with pytest.raises(InvalidInput):
        dataset.rename_tag("a", name)
    assert dataset.tags() == [existing]


@pytest.mark.slow
def test_tag__record(dataset: Dataset) -> None:
    """A tag has an id that stays, who made it and when; it is found by id and by name."""
    made = dataset.create_tag("a")
    assert (made.name, made.count, made.created_by) == ("a", 0, "tester@example.org")
    renamed = dataset.rename_tag(made.tag_id, "b")
    assert renamed == made.model_copy(update={"name": "b"})
    assert dataset.tag(all_ids(dataset)[:2], made.tag_id) == renamed.model_copy(update={"count": 2})
    assert dataset.untag(all_ids(dataset)[0], "b").count == 1
    assert dataset.tags() == [renamed.model_copy(update={"count": 1})]
    assert dataset.rename_tag("b", "b").name == "b"
    dataset.delete_tag(made.tag_id)
    assert dataset.create_tag("b").tag_id != made.tag_id
    assert tagged(dataset, "b") == []


def test_tag__messages_name_the_tags_that_there_are(dataset: Dataset) -> None:
    """An error for a misspelt name lists the existing names."""
    with pytest.raises(NotFound, match="no tag 'x' in this dataset; there are: none yet"):
        dataset.untag(dataset.where([]), "x")
    dataset.create_tag("a")
    with pytest.raises(NotFound, match="no tag 'x' in this dataset; there are: 'a'"):
        dataset.delete_tag("x")
    with pytest.raises(Conflict, match="a tag named 'a' exists already"):
        dataset.create_tag("a")


@pytest.mark.slow
def test_tag__twice_keeps_the_first_date(dataset: Dataset) -> None:
    """The date of a tag is when it was first put on, until it is taken off."""
    ids = all_ids(dataset)
    dataset.tag(ids[:2], "a")
    first = columns_of(dataset, ["tagged_at"])["tagged_at"]
    dataset.tag(ids[1:3], "a")
    second = columns_of(dataset, ["tagged_at"])["tagged_at"]
    assert first[:2] == second[:2]
    assert second[2][0] > second[1][0]
    dataset.untag(ids[1], "a")
    dataset.tag(ids[1], "a")
    assert columns_of(dataset, ["tagged_at"])["tagged_at"][1][0] > second[2][0]


@pytest.mark.slow
def test_tag__each_edit_is_one_generation_and_leaves_the_rest(dataset: Dataset) -> None:
    """Readers that hold a state keep it; embeddings and all else are as before."""
    before, seen = stored_media(dataset), dataset.to_arrow()
    names = [name for name in before.table.schema.names if "neighbour" not in name]
    columns = columns_of(dataset, names)
    dataset.tag(dataset.where([]), "a")
    after = stored_media(dataset)
    assert before.table.scan(names).read_all().to_pydict() == columns == columns_of(dataset, names)
    assert "tags" not in before.table.schema.names
    assert after.generation.id != before.generation.id
    assert after.generation.n_images == before.generation.n_images
    assert dataset.to_arrow().drop_columns(["tags"]).equals(seen.drop_columns(["tags"]))
    assert dataset.info.status_new == "READY"


@pytest.mark.slow
@pytest.mark.only_soak
def test_tag__stays_by_additions_and_reindexing(workspace: Workspace) -> None:
    """Added media have no tags, and those that were there keep theirs, also in another process's workspace."""
    dataset = workspace.create_dataset("d", part(np.eye(4)))
    ids = ids_of(dataset)
    dataset.tag([ids["1.jpg"], ids["3.jpg"]], "a")
    dataset.add_media(part(np.eye(4)[:2] + 0.5, 4))
    assert tags_of(dataset) == [[], ["a"], [], ["a"], [], []]
    assert dataset.tag(dataset.where([{"tags": {"op": "is", "value": "untagged"}}]), "rest").count == 4
    assert dataset.info.status_new == "PARTIAL INDEX"
    dataset.reindex()
    expected = [["rest"], ["a"], ["rest"], ["a"], ["rest"], ["rest"]]
    assert tags_of(dataset) == expected
    with Workspace(workspace.path, settings=SETTINGS) as again:
        reopened = again.dataset("d")
        assert reopened.tags() == dataset.tags()
        assert tags_of(reopened) == expected


def test_tag__after_an_edit_that_was_cut_off(dataset: Dataset) -> None:
    """Uncommitted data of a dead process is invisible, and not part of the next edit."""
    ids = all_ids(dataset)
    dataset.tag(ids[0], "a")
    with_tag(stored_media(dataset), np.ones(6, dtype=bool), 0, datetime.now(UTC))
    assert tags_of(dataset) == [["a"], [], [], [], [], []]
    dataset.tag(ids[1], "b")
    assert tags_of(dataset) == [["a"], ["b"], [], [], [], []]


@pytest.mark.slow
@pytest.mark.only_soak
def test_tag__by_many_at_a_time(workspace: Workspace, dataset: Dataset) -> None:
    """Edits of several threads come one after the other, and none is lost."""
    ids = all_ids(dataset)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda number: workspace.dataset("d").tag(ids[number % 6], f"tag {number // 6}"), range(24)))
    assert sorted((tag.name, tag.count) for tag in dataset.tags()) == [(f"tag {number}", 6) for number in range(4)]


@pytest.mark.slow
def test_tag__waits_for_no_task(workspace: Workspace, tmp_path: Path) -> None:
    """While a task works on the dataset nothing can be tagged, and the message says why."""
    gate = Gate()
    dataset = workspace.create_dataset("d", fill(tmp_path / "images", 3), gate, wait=False)
    assert gate.reached.wait(60)
    with pytest.raises(Conflict, match="Operation 'tag' is blocked while DATASET_CREATION task is running"):
        dataset.tag(dataset.where([]), "a")
    gate.opened.set()
    assert dataset.task is not None
    dataset.task.wait()
    assert dataset.tag(dataset.where([]), "a").count == 3


def test_tag__in_a_workspace_that_is_read_only(workspace: Workspace, dataset: Dataset) -> None:
    """Tags can be read there and not written."""
    dataset.tag(dataset.where([]), "a")
    with Workspace(workspace.path, read_only=True, settings=SETTINGS) as reader:
        seen = reader.dataset("d")
        assert seen.tags() == dataset.tags()
        with pytest.raises(ReadOnly):
            seen.tag(seen.where([]), "b")
        with pytest.raises(ReadOnly):
            seen.delete_tag("a")


@pytest.mark.slow
def test_filter__tags_by_id_and_by_name(dataset: Dataset) -> None:
    """A filter names any of some tags, as the interface does by id; unknown ones find nothing."""
    ids = all_ids(dataset)
    first, second = dataset.tag(ids[:2], "a"), dataset.tag(ids[1:3], "b")
    assert tagged(dataset, first.tag_id) == tagged(dataset, "a") == [0, 1]
    assert tagged(dataset, first.tag_id, second.tag_id) == [0, 1, 2]
    assert tagged(dataset, "nobody") == tagged(dataset) == []
    both = [{"tags": {"op": "is", "value": each}} for each in ("a", second.tag_id)]
    assert dataset.where(both).media_ids() == [ids[1]]
    assert dataset.where([{"not": both[0]}]).count() == 4
    dataset.delete_tag("a")
    assert tagged(dataset, first.tag_id) == []


def test_filter__a_dataset_that_was_never_tagged(dataset: Dataset) -> None:
    """There no media have a tag, and all are untagged."""
    assert tagged(dataset, "a") == []
    assert tagged(dataset, "untagged") == list(range(6))


@pytest.mark.slow
def test_explore__shows_tags(dataset: Dataset) -> None:
    """Previews have the names of their tags, clusters the most frequent ones; None where there are none."""
    assert all(cluster.user_tags is None for cluster in dataset.explore().clusters)
    clusters = dataset.explore().clusters
    members = [[preview.media_id for preview in cluster.previews] for cluster in clusters]
    dataset.tag(members[0][0], "rare")
    dataset.tag(members[0], "often")
    dataset.tag(members[1][1], "rare")
    dataset.rename_tag("rare", "renamed")
    shown = dataset.explore().clusters
    assert [cluster.user_tags for cluster in shown] == [["often", "renamed"], ["renamed"], None]
    assert [preview.user_tags for preview in shown[0].previews] == [["renamed", "often"], ["often"], ["often"]]
    assert [preview.user_tags for preview in shown[1].previews] == [None, ["renamed"]]
    untagged = dataset.explore(vql=[{"tags": {"op": "is", "value": "untagged"}}]).clusters
    assert [cluster.user_tags for cluster in untagged] == [None, None]


@pytest.mark.slow
def test_export__has_tags_with_their_dates(dataset: Dataset, tmp_path: Path) -> None:
    """JSON has an item for each tag with the day it was put on, Parquet the names."""
    ids = all_ids(dataset)
    dataset.tag(ids[1], 'a "b"')
    dataset.tag(ids[:2], "c")
    dates = columns_of(dataset, ["tagged_at"])["tagged_at"]
    dataset.export(tmp_path / "out.zip")
    items = [
        [part["properties"] for part in item["metadata_items"] if part["type"] == "user_tag"]
        for item in json.loads(zipfile.ZipFile(tmp_path / "out.zip").read("metadata.json"))["media_items"]
    ]
    assert [[item["tag_name"] for item in each] for each in items[:3]] == [["c"], ['a "b"', "c"], []]
    assert items[1][0]["assigned_date"] == f"{dates[1][0]:%Y-%m-%dT%H:%M:%S.%fZ}"
    dataset.export(tmp_path / "out.zip", "parquet")
    content = io.BytesIO(zipfile.ZipFile(tmp_path / "out.zip").read("metadata.parquet"))
    assert pq.read_table(content)["tags"].to_pylist() == [["c"], ['a "b"', "c"], [], [], [], []]


@pytest.mark.slow
def test_tags__are_records(dataset: Dataset) -> None:
    """The list of tags is oldest first, whatever was renamed."""
    for name in ("b", "a", "c"):
        dataset.create_tag(name)
    dataset.rename_tag("b", "z")
    tags = dataset.tags()
    assert [tag.name for tag in tags] == ["z", "a", "c"]
    assert all(isinstance(tag, Tag) for tag in tags)
    assert [tag.created_at for tag in tags] == sorted(tag.created_at for tag in tags)


def test_tag__blanks_around_a_name(dataset: Dataset) -> None:
    """A tag is named without the blanks around it, however it comes, and is found with and without them."""
    first, second, *_ = all_ids(dataset)
    dataset.tag(first, " keep ")
    dataset.tag(second, "keep")
    with pytest.raises(Conflict):
        dataset.create_tag("keep ")
    dataset.rename_tag("keep ", " kept")
    assert [(tag.name, tag.count) for tag in dataset.tags()] == [("kept", 2)]
