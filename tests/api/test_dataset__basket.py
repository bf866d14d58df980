"""The basket: a set of media with verbs of its own, stored with the dataset and kept apart from tags."""

import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from framedex import Basket, Conflict, Dataset, InvalidInput, NotFound, View, Workspace, vql
from framedex.jobs.edits import tags as tag_jobs
from framedex.operations.starting import delete_dataset
from tests.gallery import SETTINGS
from tests.growth import families, part
from tests.image_files import photo, write
from tests.inside import context_of, stored_media
from tests.laws import examples
from tests.prepared import prepared

ROWS = 20


@pytest.fixture
def dataset(workspace: Workspace) -> Dataset:
    """A dataset of twenty rows."""
    return prepared(workspace, "d", part(families(ROWS)))


def in_basket(dataset: Dataset) -> list[str]:
    """Return the file names in the basket, in row order."""
    return [row["image_filename"] for row in dataset.basket]


@pytest.mark.slow
@pytest.mark.only_soak
def test_basket__is_a_view(dataset: Dataset) -> None:
    """The basket has the methods of a view, and its parts are views."""
    ids = dataset.where([]).media_ids()
    assert (len(dataset.basket), list(dataset.basket)) == (0, [])
    dataset.basket.add(ids[3])
    dataset.basket.add(dataset.where(vql.ids([ids[1], ids[3], ids[5]])))
    assert isinstance(dataset.basket, Basket)
    assert isinstance(dataset.basket, View)
    assert dataset.basket.media_ids() == [ids[1], ids[3], ids[5]]
    assert dataset.basket[-1]["media_id"] == ids[5]
    assert dataset.basket.limit(2).media_ids() == [ids[1], ids[3]]
    assert repr(dataset.basket) == f"<framedex.Basket of dataset {dataset.name!r}: 3 media>"
    dataset.basket.remove([ids[1], ids[2]])
    assert dataset.basket.media_ids() == [ids[3], ids[5]]
    dataset.basket.where(vql.ids([ids[3]])).clear()
    assert dataset.basket.media_ids() == [ids[5]]
    dataset.basket.clear()
    assert len(dataset.basket) == 0


@pytest.mark.slow
def test_basket__in_filters(dataset: Dataset) -> None:
    """The reserved name selects the basket in VQL, alone and with others; its media may be untagged."""
    ids = dataset.where([]).media_ids()
    dataset.basket.add(ids[:4])
    dataset.tag(ids[2:6], "keep")
    assert dataset.where(vql.tags("basket")).media_ids() == ids[:4]
    assert dataset.where(vql.tags(["basket", "keep"])).media_ids() == ids[:6]
    assert dataset.where(vql.tags("basket") & vql.tags("keep")).media_ids() == ids[2:4]
    assert dataset.where(~vql.tags("basket")).media_ids() == ids[4:]
    assert dataset.where(vql.tags("untagged")).media_ids() == [*ids[:2], *ids[6:]]
    assert sum(cluster.n_images for cluster in dataset.explore(tags="basket").clusters) == 4


@pytest.mark.slow
def test_basket__is_no_tag(dataset: Dataset, tmp_path: Path) -> None:
    """The basket is in no list of tags, neither of the dataset nor of media, clusters and exports."""
    ids = dataset.where([]).media_ids()
    dataset.tag(ids[:2], "keep")
    dataset.basket.add(ids)
    assert [tag.name for tag in dataset.tags()] == ["keep"]
    assert dataset.to_arrow(["tags"])["tags"].to_pylist() == [["keep"]] * 2 + [[]] * (ROWS - 2)
    assert {tag for cluster in dataset.explore(level=4).clusters for tag in cluster.user_tags or ()} == {"keep"}
    dataset.export(tmp_path / "all.zip", format="json")
    with zipfile.ZipFile(tmp_path / "all.zip") as archive:
        text = b"".join(archive.read(name) for name in archive.namelist())
    assert b"basket" not in text
    assert b"keep" in text


def test_basket__name_is_reserved(dataset: Dataset) -> None:
    """No tag can be created with the name, get it, or be deleted by it."""
    ids = dataset.where([]).media_ids()
    dataset.create_tag("keep")
    dataset.basket.add(ids[0])
    refused: list[Any] = [
        lambda: dataset.create_tag("basket"),
        lambda: dataset.rename_tag("keep", "basket"),
        lambda: dataset.tag(ids[1], "basket"),
        lambda: dataset.untag(ids[0], "basket"),
        lambda: dataset.delete_tag("basket"),
        lambda: dataset.rename_tag("basket", "other"),
    ]
    for call in refused:
        with pytest.raises(InvalidInput, match="'basket'"):
            call()
    assert dataset.basket.media_ids() == ids[:1]


def test_basket__where_a_tag_of_an_older_version_has_the_name(
    dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such a tag keeps its meaning in filters, and can be renamed; until then the basket is refused."""
    ids = dataset.where([]).media_ids()
    with monkeypatch.context() as patch:
        patch.setattr(tag_jobs, "BASKET", "another name")
        dataset.tag(ids[:3], "basket")
    with pytest.raises(Conflict, match="rename the tag first"):
        dataset.basket.add(ids[4])
    assert dataset.where(vql.tags("basket")).media_ids() == ids[:3]
    dataset.rename_tag("basket", "old basket")
    dataset.basket.add(ids[4])
    assert dataset.basket.media_ids() == [ids[4]]
    assert [(tag.name, tag.count) for tag in dataset.tags()] == [("old basket", 3)]


def test_basket__what_cannot_be(workspace: Workspace, dataset: Dataset) -> None:
    """Unknown media, views of other datasets and of objects are refused, and nothing changes."""
    ids = dataset.where([]).media_ids()
    dataset.basket.add(ids[0])
    other = workspace.create_dataset("other", part(families(3)))
    with pytest.raises(NotFound, match="no media 'x'"):
        dataset.basket.add([ids[1], "x"])
    wrong: list[Any] = [other.where([]), dataset.objects, {}, 3]
    for each in wrong:
        with pytest.raises(InvalidInput, match="selection must be"):
            dataset.basket.add(each)
    assert dataset.basket.media_ids() == ids[:1]


@pytest.mark.slow
@pytest.mark.only_soak
def test_basket__is_kept(workspace: Workspace, folder: Path) -> None:
    """Snapshots, clones, additions, changed files, reindexes and another process carry the basket."""
    dataset = workspace.create_dataset("files", folder, "gist")
    dataset.basket.add(dataset.where(vql.file_name("is", "000.png") | vql.file_name("is", "001.png")))
    before = dataset.snapshot("two")
    write(folder / "000.png", photo(99))
    write(folder / "more.png", photo(98))
    dataset.add_media(folder)
    dataset.reindex(thresholds=(0.02, 0.05, 0.1, 0.2, 0.5))
    assert sorted(in_basket(dataset)) == ["000.png", "001.png"]
    assert sorted(in_basket(dataset.clone())) == ["000.png", "001.png"]
    dataset.basket.clear()
    with Workspace(workspace.path, settings=SETTINGS) as second:
        assert in_basket(second.dataset("files")) == []
    dataset.restore(before)
    assert sorted(in_basket(dataset)) == ["000.png", "001.png"]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dataset]:
    """A dataset whose clones are edited."""
    with Workspace(tmp_path_factory.mktemp("basket") / "workspace", settings=SETTINGS) as workspace:
        yield workspace.create_dataset("source", part(families(ROWS)))


STEPS = st.lists(
    st.tuples(
        st.sampled_from(("add", "add", "remove", "clear", "tag", "delete")),
        st.lists(st.integers(0, ROWS - 1), min_size=1, max_size=6, unique=True),
    ),
    max_size=12,
)


@pytest.mark.slow
@examples(15)
@given(steps=STEPS)
def test_basket__any_sequence_agrees_with_a_set(source: Dataset, steps: list[tuple[str, list[int]]]) -> None:
    """After any edits the basket has the media that a set of ids has; tags are not touched."""
    dataset, basket = source.clone(), set[str]()
    tagged = set[str]()
    for kind, places in steps:
        ids = dataset.where([]).media_ids()
        chosen = list(dict.fromkeys(ids[place % len(ids)] for place in places))
        match kind:
            case "add":
                dataset.basket.add(chosen)
                basket.update(chosen)
            case "remove":
                dataset.basket.remove(dataset.where([]).select(chosen))
                basket.difference_update(chosen)
            case "clear":
                dataset.basket.clear()
                basket.clear()
            case "tag":
                dataset.tag(chosen, "seen")
                tagged.update(chosen)
            case _:
                if len(chosen) < len(ids):
                    dataset.delete_media(chosen)
                    basket.difference_update(chosen)
                    tagged.difference_update(chosen)
        assert (set(dataset.basket.media_ids()), len(dataset.basket)) == (basket, len(basket))
        assert set(dataset.where(vql.tags("seen")).media_ids()) == tagged
    delete_dataset(context_of(dataset), dataset.id)


@pytest.mark.slow
def test_basket__remove_after_a_restore(dataset: Dataset) -> None:
    """Taking media out of an empty basket changes nothing, also where the present state is an earlier one."""
    kept = dataset.snapshot("kept")
    ids = dataset.where([]).media_ids()
    dataset.tag(ids[0], "later")
    dataset.restore(kept)
    dataset.basket.remove(ids[1])
    assert (dataset.basket.count(), [each.operation for each in dataset.journal()]) == (0, ["restore", "tag"])


def test_basket__writes_what_changes(dataset: Dataset) -> None:
    """Media that are in the basket already are not written again."""
    ids = dataset.where([]).media_ids()
    dataset.basket.add(ids[:2])
    version = stored_media(dataset).table.version
    dataset.basket.add(ids[:2])
    dataset.basket.remove(ids[5])
    assert stored_media(dataset).table.version == version
