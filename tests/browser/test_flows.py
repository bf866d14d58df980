"""The main flows through the app, from the overview on, by keys alone."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from framedex import vql
from tests.browser.site import Site, all_saved

Open = Callable[..., Page]


@pytest.mark.slow
def test_thing__is_found_by_a_part_of_an_image(own_site: Site, open_page: Open) -> None:
    """Words find an image, a region of it finds similar images, and one of these gets a tag."""
    dataset = own_site.dataset
    page = open_page(own_site, "/d/pets")
    expect(page.get_by_role("heading", name="pets")).to_be_visible()
    page.keyboard.press("/")
    page.keyboard.type("street")
    page.keyboard.press("Enter")
    found = dataset.search("street", None).media_ids()
    expect(page.locator(".count")).to_have_text(re.compile(rf"^{len(found)} of "))
    expect(page.locator("[data-position='0']")).to_have_accessible_name(re.compile("street"))
    page.keyboard.press("ArrowRight")
    expect(page.locator("[data-position='1']")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(f"/m/{found[1]}"))
    expect(page.locator(".canvas img").first).to_be_visible()
    expect(page.get_by_text(f"2 of {len(found)}")).to_be_visible()
    page.keyboard.press("r")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Shift+ArrowRight")
    expect(page.locator("rect.drawn")).to_be_attached()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(f"like={found[1]}&region="))
    expect(page.locator(".count")).not_to_have_text(re.compile(rf"^{len(found)} of "))  # the region finds others
    first = page.locator("[data-position='0']")
    expect(first).to_have_accessible_name(re.compile("street"))
    page.keyboard.press("t")
    page.keyboard.type("keep")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Tagged 1 image with keep")).to_be_visible()
    all_saved(page)
    assert dataset.where(vql.tags("keep")).count() == 1


@pytest.mark.slow
def test_cluster__gets_a_label(own_site: Site, open_page: Open) -> None:
    """From the coarsest level down to the images of one cluster, all of which get a label in one step."""
    dataset = own_site.dataset
    page = open_page(own_site, "/d/pets")
    expect(page.get_by_role("heading", name="pets")).to_be_visible()
    page.keyboard.press("g")
    page.keyboard.press("c")
    page.locator("[data-cluster='0']").wait_for()
    page.keyboard.press("4")
    steps = page.get_by_role("navigation", name="Where you are").get_by_role("button")
    for depth in range(1, 5):
        expect(steps).to_have_count(depth)
        page.locator("main [aria-busy=true]").wait_for(state="detached")
        page.locator("[data-cluster='0']").wait_for()
        page.keyboard.press("Enter")
    expect(steps).to_have_count(5)
    page.locator("[data-cluster='0']").wait_for()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("/pictures"))
    expect(page.get_by_role("gridcell").first).to_be_visible()
    number = int(page.locator(".count").inner_text().split()[0])
    page.keyboard.press("Control+a")
    expect(page.get_by_text(f"{number} selected", exact=True)).to_be_visible()
    page.keyboard.press("l")
    page.get_by_role("dialog").wait_for()
    page.keyboard.type("dog")
    page.keyboard.press("Enter")
    expect(page.get_by_text(re.compile(f"^Labelled {number} images? as dog"))).to_be_visible()
    all_saved(page)
    assert dataset.where(vql.labels("dog")).count() == number
