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
