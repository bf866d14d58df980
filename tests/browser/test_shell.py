"""The frame of the app in a browser: pages, keys, themes, accessibility."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.pages import check_accessible
from tests.browser.site import Site, first_image

Open = Callable[..., Page]
PATHS = ["/", "/tasks", "/import", "/notifications", "/d/pets", *(f"/d/pets/{page}" for page in (
    "pictures", "clusters", "map", "duplicates", "labels", "issues/dark", "cleanup", "history", "views", "settings",
))]  # fmt: skip


@pytest.mark.slow
def test_home__lists_datasets(site: Site, open_page: Open) -> None:
    """The first page has a card for each dataset, which leads to its overview."""
    page = open_page(site, "/")
    expect(page.get_by_role("heading", name="Datasets")).to_be_visible()
    page.get_by_role("link", name="pets").click()
    expect(page).to_have_url(f"{site.url}/d/pets")
    expect(page.get_by_role("heading", name="pets")).to_be_visible()
    assert page.title() == "Overview · pets · Framedex"


@pytest.mark.slow
def test_overview__has_the_counts_of_the_library(site: Site, open_page: Open) -> None:
    """Each finding has the number that the library counts, and leads to its review."""
    page = open_page(site, "/d/pets")
    for summary in site.dataset.view.issue_summaries():
        review = {"duplicates": "duplicates", "mislabels": "labels"}.get(kind := summary.issue_type, f"issues/{kind}")
        finding = page.locator(".finding", has=page.locator(f"a[href$='/d/pets/{review}']"))
        if summary.count:
            expect(finding.locator(".finding-count")).to_have_text(str(summary.count))
        else:
            expect(finding).to_have_count(0)


def test_missing__pages_and_datasets(site: Site, open_page: Open) -> None:
    """An address without a page, and one of a dataset that does not exist, say so."""
    page = open_page(site, "/d/nothing")
    expect(page.get_by_text("There is no dataset “nothing” that you may see.")).to_be_visible()
    page.goto("/d/pets/nothing")
    expect(page.get_by_text("There is no such page.")).to_be_visible()


@pytest.mark.slow
def test_keys__lead_to_pages(site: Site, open_page: Open) -> None:
    """Two letters after one another go to a page; letters that are typed into a field stay there."""
    page = open_page(site, "/d/pets")
    expect(page.get_by_role("heading", name="pets")).to_be_visible()
    page.keyboard.press("g")
    page.keyboard.press("p")
    expect(page).to_have_url(f"{site.url}/d/pets/pictures")
    expect(page.get_by_role("grid")).to_be_visible()
    page.keyboard.press("/")
    page.keyboard.type("t x g o")
    expect(page.get_by_role("searchbox")).to_have_value("t x g o")
    assert page.url == f"{site.url}/d/pets/pictures"


@pytest.mark.slow
def test_keys__are_listed(site: Site, open_page: Open) -> None:
    """A question mark lists the keys; Escape closes the list and gives the focus back."""
    page = open_page(site, "/d/pets/pictures")
    first = first_image(page)
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
    expect(page.get_by_text("Put the selection into the basket, or take it out")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(first).to_be_focused()


@pytest.mark.slow
@pytest.mark.parametrize("path", PATHS)
def test_pages__are_accessible(site: Site, open_page: Open, path: str) -> None:
    """Checks by axe find nothing, in both themes."""
    page = open_page(site, path)
    page.get_by_role("heading", level=1).wait_for(state="attached")
    page.wait_for_load_state("networkidle") if "pictures" not in path else page.get_by_role("gridcell").first.wait_for()
    check_accessible(page)


@pytest.mark.slow
def test_pages__are_accessible_while_they_load(site: Site, open_page: Open) -> None:
    """Checks by axe find nothing on a page whose code has not arrived."""
    page = open_page(site, "/")
    page.route("**/ofDataset-*.js", lambda route: None)  # whose answer does not come
    page.get_by_role("link", name="pets").click()
    expect(page.get_by_role("progressbar", name="Loading")).to_be_visible()
    check_accessible(page, context="#content")
