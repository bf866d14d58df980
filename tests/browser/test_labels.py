"""The queue of labels that are probably wrong, in a browser, by keys alone."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from framedex import Dataset, Workspace, vql
from framedex.hub import Hub
from framedex.service.settings import ServiceSettings
from tests.browser.site import Site, all_saved
from tests.crowds import WRONG, create_crowds
from tests.gallery import SETTINGS
from tests.service.live import live_service

Open = Callable[..., Page]


@pytest.fixture
def crowds(tmp_path: Path) -> Iterator[Site]:
    """A service of a dataset with wrong labels, which the test may change."""
    with Workspace(tmp_path / "ws", settings=SETTINGS) as workspace, Hub(workspace) as hub:
        dataset = create_crowds(workspace, tmp_path / "images")
        with live_service(workspace, hub, ServiceSettings()) as (url, state):
            yield Site(url, workspace, dataset, tmp_path / "images", state)


def labels_of(dataset: Dataset, media_id: str) -> list[str]:
    """Return the labels of a media item."""
    found: list[str] = dataset.select([media_id]).to_arrow(["labels"])["labels"].to_pylist()[0]
    return found


@pytest.mark.slow
def test_labels__one_after_another(crowds: Site, open_page: Open) -> None:
    """A suggestion, an offered label, another label, a right label and an ambiguous one leave the queue; U undoes."""
    dataset = crowds.dataset
    queue = dataset.issues("mislabels").to_pylist()
    page = open_page(crowds, "/d/crowds/labels")
    n = len(queue)
    expect(page.get_by_text(f"1 of {n}", exact=True)).to_be_visible()
    expect(page.get_by_role("definition").get_by_text(queue[0]["suggested_label"], exact=True)).to_be_visible()
    page.keyboard.press("Enter")
    expect(page.get_by_text(re.compile(f"Labelled 1 image as {queue[0]['suggested_label']}"))).to_be_visible()
    expect(page.get_by_text(f"1 of {n - 1}", exact=True)).to_be_visible()
    assert labels_of(dataset, queue[0]["media_id"]) == [queue[0]["suggested_label"]]
    page.keyboard.press("u")
    expect(page.get_by_text("Undone: Labelled 1 image")).to_be_visible()
    expect(page.get_by_text(f"1 of {n}", exact=True)).to_be_visible()
    page.keyboard.press("Backspace")
    expect(page.get_by_text("The labels of 1 image are right")).to_be_visible()
    expect(page.get_by_text(f"1 of {n - 1}", exact=True)).to_be_visible()
    page.keyboard.press("m")
    expect(page.get_by_text("Tagged 1 image with ambiguous")).to_be_visible()
    expect(page.get_by_text(f"1 of {n - 2}", exact=True)).to_be_visible()
    page.reload()
    expect(page.get_by_text(f"1 of {n - 2}", exact=True)).to_be_visible()
    second = page.locator("dd.path").inner_text()
    expect(page.get_by_role("button", name=re.compile("another label", re.I))).to_be_visible()
    page.keyboard.press("l")
    page.get_by_label("Labels, with commas between them").fill("fox")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Labelled 1 image as fox")).to_be_visible()
    labelled = next(each for each in dataset.view.rows(["path", "labels"]) if each["path"] == second)
    assert labelled["labels"] == ["fox"]


@pytest.mark.slow
def test_labels__of_a_kind_at_once(crowds: Site, open_page: Open) -> None:
    """All suggestions of a kind are accepted in one step, which says before what it does, and is undone as one."""
    dataset = crowds.dataset
    ids = dataset.view.media_ids()
    page = open_page(crowds, "/d/crowds/labels")
    page.get_by_role("navigation", name="Suggestions").get_by_role("link", name="cat → dog").click()
    expect(page.get_by_text("1 of 3", exact=True)).to_be_visible()
    expect(page.get_by_role("definition").get_by_text("cat", exact=True)).to_be_visible()
    page.keyboard.press("Shift+Enter")
    dialog = page.get_by_role("dialog", name="Label cat as dog")
    dialog.get_by_label("Confidence of at least").fill("1")
    expect(dialog.get_by_text("0 images with the label cat get the label dog")).to_be_visible()
    page.keyboard.press("Enter")
    expect(dialog).to_be_visible()
    dialog.get_by_label("Confidence of at least").fill("0.2")
    expect(dialog.get_by_text("3 images with the label cat get the label dog")).to_be_visible()
    expect(dialog.get_by_role("listitem")).to_have_count(3)
    assert dataset.journal() == []
    page.keyboard.press("Enter")
    expect(page.get_by_text("Labelled 3 images as dog. Undo: Ctrl Z")).to_be_visible()
    changed = [row for row, (_, right) in WRONG.items() if right == "dog"]
    assert [labels_of(dataset, ids[row]) for row in changed] == [["dog"]] * 3
    assert len(dataset.journal()) == 1
    page.keyboard.press("Control+z")
    expect(page.get_by_text("Undone: Labelled 3 images as dog")).to_be_visible()
    assert [labels_of(dataset, ids[row]) for row in changed] == [["cat"]] * 3


@pytest.mark.slow
def test_labels__by_the_number_of_an_offer(crowds: Site, open_page: Open) -> None:
    """The keys 1 to 9 take the labels that are offered, the suggested one first."""
    dataset = crowds.dataset
    first = dataset.issues("mislabels").to_pylist()[0]
    page = open_page(crowds, "/d/crowds/labels")
    expect(page.get_by_role("definition").get_by_text(first["suggested_label"], exact=True)).to_be_visible()
    page.keyboard.press("1")
    expect(page.get_by_text(f"Labelled 1 image as {first['suggested_label']}")).to_be_visible()
    all_saved(page)
    assert labels_of(dataset, first["media_id"]) == [first["suggested_label"]]
    assert dataset.where(vql.issues("mislabels")).count() == len(WRONG) - 1


@pytest.mark.slow
def test_labels__all_ranked(crowds: Site, open_page: Open) -> None:
    """The estimate is shown by label; where no label is an issue, a button leads to all of them, in order."""
    dataset = crowds.dataset
    issues = dataset.label_issues()
    page = open_page(crowds, "/d/crowds/labels")
    noise = page.get_by_role("region", name="Wrong labels", exact=True)
    low, high = issues.interval
    expect(
        noise.get_by_text(f"About {issues.n_wrong} of 60 images have a wrong label: {issues.rate:.0%} (", exact=False)
    ).to_contain_text(f"({low:.0%} to {high:.0%})")
    expected = issues.to_arrow()["expected_precision"][issues.n_wrong - 1].as_py()
    expect(
        noise.get_by_text(f"About {expected:.0%} of the first {issues.n_wrong} images in the ranking")
    ).to_be_visible()
    expect(noise.get_by_text("The encoder suits these labels")).to_be_visible()
    noise.get_by_text("Wrong labels by label").click()
    expect(noise.get_by_role("row")).to_have_count(1 + len(issues.classes()))
    dataset.label_is_right(dataset.where(vql.issues("mislabels")))
    page.reload()
    page.get_by_role("button", name="Show anyway").click()
    ranked = dataset.label_issues().to_arrow()
    n = len(ranked)
    expect(noise.get_by_text(f"About 0 of {n} images have a wrong label")).to_be_visible()
    assert n == 60 - len(WRONG)
    expect(page.get_by_text(f"1 of {n}", exact=True)).to_be_visible()
    first = ranked["path"][0].as_py()
    assert page.locator("dd.path").inner_text() == first
    expect(page.get_by_text("Expected share of wrong labels up to here")).to_be_visible()
    page.keyboard.press("Backspace")
    expect(page.get_by_text("The labels of 1 image are right")).to_be_visible()
    expect(page.get_by_text(f"1 of {n - 1}", exact=True)).to_be_visible()
    page.keyboard.press("u")
    expect(page.get_by_text(f"1 of {n}", exact=True)).to_be_visible()
    expect(page.locator("dd.path")).to_have_text(first)
