"""Snapshots of a dataset in a browser: taken, restored, and the restore undone."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from framedex import vql
from tests.browser.site import Site

Open = Callable[..., Page]


@pytest.mark.slow
def test_snapshot__is_restored_and_the_restore_undone(own_site: Site, open_page: Open) -> None:
    """A restore brings back what a snapshot has, and Ctrl Z what was there before it."""
    dataset = own_site.dataset
    page = open_page(own_site, "/d/pets/history")
    page.get_by_role("button", name="Take a snapshot").click()
    page.get_by_label("Name of the snapshot").fill("before the tag")
    page.keyboard.press("Enter")
    row = page.get_by_role("listitem").filter(has_text="before the tag")
    expect(row).to_be_visible()
    ids = dataset.view.media_ids()[:2]
    dataset.tag(ids, "keep")
    row.get_by_role("button", name="Restore").click()
    page.get_by_role("dialog").get_by_role("button", name="Restore").click()
    expect(page.get_by_text("Restore: before the tag. Undo: Ctrl Z")).to_be_visible()
    assert not [tag for tag in dataset.tags() if tag.name == "keep"]
    page.keyboard.press("Control+z")
    expect(page.get_by_text("Undone: Restore: before the tag")).to_be_visible()
    assert dataset.where(vql.tags("keep")).media_ids() == ids


@pytest.mark.slow
def test_compare__two_states_by_keys(own_site: Site, open_page: Open) -> None:
    """Two states are chosen by keys; each change has its number, and its images with what was before and after."""
    dataset = own_site.dataset
    dataset.snapshot("before")
    ids = dataset.view.media_ids()
    dataset.tag(ids[:3], "keep")
    dataset.set_labels(ids[2:4], ["new"])
    dataset.delete_media(ids[10])
    page = open_page(own_site, "/d/pets/history")
    before = page.locator(".compare-states select").first
    before.focus()
    before.select_option(label=before.get_by_role("option").filter(has_text="before").first.inner_text())
    kinds = page.get_by_role("list", name="Kinds of changes").get_by_role("button")
    counts = {change: count for change, count in dataset.compare("before").counts.items() if count}
    expect(kinds).to_have_count(len(counts))
    labels = kinds.filter(has_text="Labels")
    expect(labels).to_have_text("Labels 2")
    labels.press("Enter")
    expect(labels).to_have_attribute("aria-pressed", "true")
    changed = page.get_by_role("table", name="Labels: 2 images")
    expect(changed.get_by_role("row")).to_have_count(3)
    expect(changed.get_by_role("row").nth(1)).to_contain_text("new")
    expect(changed.get_by_role("img")).to_have_count(0)  # their names stand beside them
    page.reload()  # the address has the states and the change
    expect(page.get_by_role("table", name="Labels: 2 images")).to_be_visible()
    dataset.tag(ids[5], "keep")  # the present state is followed
    expect(kinds.filter(has_text="Tags")).to_have_text("Tags 4")
    page.locator(".compare-states select").last.select_option(index=1)
    expect(page.get_by_text("Nothing differs.")).to_be_visible()


@pytest.mark.slow
def test_trends__of_all_snapshots(own_site: Site, open_page: Open) -> None:
    """The numbers of images, issues and changed labels stand from the first snapshot to now."""
    dataset = own_site.dataset
    dataset.delete_media(dataset.view.media_ids()[:4])
    page = open_page(own_site, "/d/pets/history")
    trends = page.locator("table.trends")
    row = trends.get_by_role("row").filter(has=page.get_by_role("rowheader", name="Images", exact=True))
    first, last = (dataset.trends()[place].n_images for place in (0, -1))
    expect(row.locator("td.number")).to_have_text([str(first), str(last), "−4"])
    expect(trends.get_by_role("rowheader", name="Label animal")).to_be_visible()
