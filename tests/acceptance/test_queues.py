"""Findings, queues, the clean-up and clusters: what the app shows and does is what commands and the library do."""

import re
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from playwright.sync_api import expect

from framedex import Dataset, vql
from tests.acceptance.place import LEVELS, NAME, Place
from tests.browser.site import all_saved
from tests.laws import trials

pytestmark = [pytest.mark.slow, pytest.mark.soak]
_ROWS = 1000
_GROUPS, _LEVEL = 10, 0.98
_PAIRS = trials(1_000, 100_000)
_DIMENSION = 64


def test_duplicates__that_were_accepted_stay_accepted(place: Place) -> None:
    """Groups that Enter accepted stay accepted after loading the page again, a refused one also after a new index."""
    dataset = place.vectors(_ROWS)
    groups = dataset.duplicates(_LEVEL)
    place.serve()
    page = place.page(f"/d/{NAME}/duplicates?level={_LEVEL}")
    expect(page.get_by_role("button", name="★ keep")).to_be_visible()
    for left in range(len(groups), len(groups) - _GROUPS, -1):
        expect(page.get_by_text(f"Group 1 of {left} ")).to_be_visible()
        page.keyboard.press("Enter")
    expect(page.get_by_text(f"Group 1 of {len(groups) - _GROUPS} ")).to_be_visible()
    all_saved(page)
    page.reload()
    expect(page.get_by_text(f"Group 1 of {len(groups) - _GROUPS} ")).to_be_visible()
    removed = {each for group in groups[:_GROUPS] for each in group.media_ids if each != group.keep}
    assert set(dataset.basket.media_ids()) == removed
    refused = next(group for group in dataset.duplicates(_LEVEL) if not removed & set(group.media_ids))
    page.keyboard.press("a")
    expect(page.get_by_text("not duplicates. Undo: Ctrl Z")).to_be_visible()
    all_saved(page)
    dataset.reindex(thresholds=LEVELS)
    again = [set(group.media_ids) for group in dataset.duplicates(_LEVEL)]
    assert set(refused.media_ids) not in again
    page.reload()
    expect(page.get_by_text(f"Group 1 of {len(groups) - _GROUPS - 1} ")).to_be_visible()


def test_cleanup__is_undone_as_a_whole(place: Place) -> None:
    """A plan that is applied and undone leaves rows, tags, labels, decisions and files as they were."""
    dataset = place.vectors(_ROWS)
    ids = dataset.view.media_ids()
    dataset.tag(ids[:50], "keep")
    dataset.set_labels(ids[50:60], ["set by hand"])
    groups = dataset.duplicates()
    dataset.not_duplicates(groups[0].media_ids)
    dataset.basket.add([group.media_ids[-1] for group in groups[1:30]])
    before = (dataset.view.to_arrow(), dataset.duplicate_decisions(), dataset.tags())
    files = sorted((place.folder / "files").rglob("*.jpg"))
    place.serve()
    page = place.page(f"/d/{NAME}/cleanup")
    expect(page.get_by_text("29 images leave the dataset")).to_be_visible()
    page.keyboard.press("Enter")
    page.get_by_role("dialog").get_by_role("button", name="Remove 29 images").press("Enter")
    expect(page.get_by_text(re.compile(r"Removed 29 images.*Undo: Ctrl Z"))).to_be_visible()
    assert len(dataset.view) == _ROWS - 29
    assert sorted((place.folder / "files").rglob("*.jpg")) == files
    page.keyboard.press("Control+z")
    expect(page.get_by_text("Undone: Removed")).to_be_visible()
    after = (dataset.view.to_arrow(), dataset.duplicate_decisions(), dataset.tags())
    assert after[0].equals(before[0])
    assert after[1:] == before[1:]


def test_labels__that_are_suggested_are_taken_and_refused(place: Place) -> None:
    """A suggestion is taken and undone; once it is refused it does not come back with a new index."""
    dataset = place.vectors(_ROWS)
    queue = dataset.issues("mislabels").to_pylist()
    first, n = queue[0], len(queue)
    before = _labels(dataset, first["media_id"])
    place.serve()
    page = place.page(f"/d/{NAME}/labels")
    expect(page.get_by_text(f"1 of {n:,}", exact=True)).to_be_visible()
    page.keyboard.press("Enter")
    expect(page.get_by_text(re.compile(f"Labelled 1 image as {first['suggested_label']}"))).to_be_visible()
    all_saved(page)
    assert _labels(dataset, first["media_id"]) == [first["suggested_label"]]
    page.keyboard.press("u")
    expect(page.get_by_text("Undone: Labelled 1 image")).to_be_visible()
    assert _labels(dataset, first["media_id"]) == before
    expect(page.get_by_text(f"1 of {n:,}", exact=True)).to_be_visible()
    page.keyboard.press("Backspace")
    expect(page.get_by_text("The labels of 1 image are right")).to_be_visible()
    all_saved(page)
    dataset.reindex(thresholds=LEVELS)
    assert first["media_id"] not in dataset.issues("mislabels")["media_id"].to_pylist()


def _labels(dataset: Dataset, media_id: str) -> list[str]:
    found: list[str] = dataset.select([media_id]).to_arrow(["labels"])["labels"].to_pylist()[0]
    return found


def test_duplicates__of_many_groups_are_accepted_in_one_step(place: Place) -> None:
    """The proposals of many pairs are one step of the journal, and one undo."""
    draw = np.random.default_rng(0)
    centres = draw.standard_normal((_PAIRS // 50, _DIMENSION), np.float32)
    vectors = centres[draw.integers(len(centres), size=_PAIRS)]
    vectors += 0.5 * draw.standard_normal(vectors.shape, np.float32)
    vectors = np.concatenate([vectors, vectors + 0.004 * draw.standard_normal(vectors.shape, np.float32)])
    uris = [f"/images/{number:07}.jpg" for number in range(2 * _PAIRS)]
    column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), _DIMENSION)
    dataset = place.workspace.create_dataset("pairs", pa.table({"uri": uris, "embedding": column}))
    place.serve()
    page = place.page("/d/pairs/duplicates", allowed=("404",))  # there are no files behind the rows
    expect(page.get_by_role("button", name="★ keep")).to_be_visible()
    page.keyboard.press("Shift+Enter")
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("spinbutton").fill("0")
    expect(dialog.get_by_text(f"{_PAIRS:,} images of {_PAIRS:,} groups")).to_be_visible()
    page.keyboard.press("Enter")
    expect(page.get_by_text(f"Put {_PAIRS:,} images into the basket")).to_be_visible()
    all_saved(page)
    assert len(dataset.journal()) == 1
    assert dataset.basket.count() == _PAIRS
    page.keyboard.press("Control+z")
    expect(page.get_by_text("Undone: Put")).to_be_visible()
    assert dataset.basket.count() == 0


def test_clusters__add_up(place: Place) -> None:
    """Enter leads from level 4 to the images; children add up to their parent, and a tag is that of the cluster."""
    dataset = place.vectors(_ROWS)
    place.serve()
    page = place.page(f"/d/{NAME}/clusters?level=4")
    path = page.get_by_role("navigation", name="Where you are").get_by_role("button")
    rows = dataset.to_arrow([f"cluster_{level}" for level in range(5)]).to_pylist()
    for level in range(4, -1, -1):
        expect(path).to_have_count(5 - level)
        (cluster, parent), *others = Counter(row[f"cluster_{level}"] for row in rows).most_common()
        expect(page.locator(".card-open > .hint")).to_have_text([f"{parent:,}", *(f"{size:,}" for _, size in others)])
        rows = [row for row in rows if row[f"cluster_{level}"] == cluster]
        page.locator("[data-cluster='0']").focus()
        with page.expect_response(re.compile("explore|results")):  # until then the cards of this level are shown
            page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("/pictures"))
    expect(page.locator(".count")).to_have_text(f"{parent:,} of {_ROWS:,} images")
    page.get_by_role("gridcell").first.focus()
    page.keyboard.press("Control+a")
    page.keyboard.press("t")
    page.get_by_role("dialog").wait_for()
    page.keyboard.type("cluster")
    page.keyboard.press("Enter")
    expect(page.get_by_text(re.compile(f"^Tagged {parent:,} images? with cluster"))).to_be_visible()
    all_saved(page)
    tagged = dataset.where(vql.tags("cluster")).media_ids()
    assert tagged == dataset.where(vql.cluster(cluster)).media_ids()
