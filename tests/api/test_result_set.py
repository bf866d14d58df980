"""Results: rows of a view in one state, by position."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from framedex import Dataset, Gone, InvalidInput, NotFound, Workspace
from framedex.api.result_set import ResultSet
from tests.gallery import SETTINGS, Gallery, make_gallery


@pytest.fixture
def dataset(tmp_path: Path) -> Iterator[Dataset]:
    """A dataset of the gallery, which the test may change."""
    make_gallery(tmp_path / "gallery")
    with Workspace(tmp_path / "ws", settings=SETTINGS) as workspace:
        yield workspace.create_dataset("pets", tmp_path / "gallery")


@pytest.mark.slow
@pytest.mark.only_soak
def test_rows__are_those_of_the_view(gallery: Gallery) -> None:
    """Pages together are the table of the view, for all rows, a filter, an order and a search."""
    dataset = gallery.dataset
    first = dataset.media_id("animals/02.jpg")
    for view in (
        dataset.view,
        dataset.where([{"folder": {"op": "is", "value": "animals"}}]),
        dataset.view.sort_by("width", descending=True),
        dataset.similar(first, 7),
        dataset.objects,
    ):
        results = ResultSet(view)
        whole = view.to_arrow()
        assert len(results) == view.count()
        assert results.rows().equals(whole)
        pages = [results.rows(offset, 5) for offset in range(0, len(results) + 5, 5)]
        assert [row for page in pages for row in page.to_pylist()] == whole.to_pylist()
        assert results.pinned().ids == view.ids
        assert results.view().ids == view.ids


@pytest.mark.slow
def test_rows__of_a_state(dataset: Dataset) -> None:
    """Later changes of the dataset do not change results, and the view for edits leaves out what is gone."""
    results = ResultSet(dataset.view.sort_by("width"))
    before = results.rows()
    ids = before["media_id"].to_pylist()
    assert not results.have_changed()
    dataset.tag(ids[:2], "seen")
    assert results.have_changed()
    dataset.delete_media(ids[3])
    assert results.rows().equals(before)
    assert results.view().media_ids() == [each for each in ids if each != ids[3]]
    assert results.generation != dataset.generation


def test_position_and_mask(gallery: Gallery) -> None:
    """Each row has a position, and a bit of the mask at its place in the table."""
    dataset = gallery.dataset
    everything = dataset.view.media_ids()
    results = ResultSet(dataset.view.sort_by("width", descending=True).limit(9))
    ids = results.rows(columns=["media_id"])["media_id"].to_pylist()
    assert [results.position(each) for each in ids] == list(range(9))
    bits = np.unpackbits(np.frombuffer(results.mask(), np.uint8), bitorder="little")[: results.total]
    assert [everything[place] for place in np.flatnonzero(bits)] == sorted(ids, key=everything.index)
    for missing in (next(each for each in everything if each not in ids), "nobody", "ä"):
        with pytest.raises(NotFound, match="among these results"):
            results.position(missing)
    assert ResultSet(dataset.view).position(everything[4]) == 4
    assert ResultSet(dataset.objects).mask() == b""


def test_quantiles__show_the_order(gallery: Gallery) -> None:
    """Quantiles begin with the first row, end with the last one, and have the values of the order."""
    dataset = gallery.dataset
    results = ResultSet(dataset.view.sort_by("width"))
    positions, values = results.quantiles(5)
    widths = results.rows(columns=["width"])["width"].to_pylist()
    assert (positions[0], positions[-1], len(positions)) == (0, len(results) - 1, 5)
    assert values == [widths[place] for place in positions]
    assert len(results.quantiles(1000)[0]) == len(results)
    assert ResultSet(dataset.view).order() == "path"
    assert ResultSet(dataset.objects).quantiles(2) == ([], [])
    for wrong in (1, 1001):
        with pytest.raises(InvalidInput):
            results.quantiles(wrong)


def test_facets__count_values(gallery: Gallery) -> None:
    """Values of texts and lists are counted in the results alone, and can be searched for."""
    dataset = gallery.dataset
    labels = {each.name: each.count for each in dataset.labels()}
    counted, total = ResultSet(dataset.view).facets("labels", limit=200)
    assert dict(counted) == labels
    assert total == len(labels)
    name = next(iter(labels))
    assert ResultSet(dataset.view).facets("labels", name[1:].upper(), 1)[0] == [(name, labels[name])]
    assert dict(ResultSet(dataset.view).facets("is_blur_issue")[0]).keys() <= {True, False}
    for field in ("width", "nothing", "embedding"):
        with pytest.raises(InvalidInput):
            ResultSet(dataset.view).facets(field)


def test_rows__have_a_version_of_their_content(gallery: Gallery) -> None:
    """The version is the same for equal files, and stands where it was asked for."""
    dataset = gallery.dataset
    rows = ResultSet(dataset.view).rows(columns=["path", "v", "media_id"])
    assert rows.column_names == ["path", "v", "media_id"]
    versions = dict(zip(rows["path"].to_pylist(), rows["v"].to_pylist(), strict=True))
    assert versions["animals/00.jpg"] == versions["copies/00.jpg"] != versions["animals/01.jpg"]
    assert all(each is None or len(each) == 8 for each in versions.values())
    assert ResultSet(dataset.view).rows(columns=["v"]).column_names == ["v"]


@pytest.mark.slow
def test_rows__of_a_state_that_was_freed(dataset: Dataset, tmp_path: Path) -> None:
    """Results whose state was freed are gone, in whatever way they are read."""
    results = ResultSet(dataset.view.sort_by("width"))
    dataset.reindex(thresholds=[0.1, 0.2, 0.3, 0.4, 0.5])
    with Workspace(tmp_path / "ws", settings=SETTINGS) as other:
        pets = other.dataset("pets")
        pets.snapshot("now")
        for snapshot in pets.snapshots():
            if not snapshot.is_current:
                pets.delete_snapshot(snapshot)
        assert other.vacuum(older_than_s=0).versions
    with pytest.raises(Gone, match="make them again"):
        results.rows(columns=["cluster_0", "is_blur_issue"])
