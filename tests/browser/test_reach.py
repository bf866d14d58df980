"""Pages for people who enlarge text, have small screens, turn motion off, choose colours or listen."""

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.pages import check_accessible
from tests.browser.site import Site, first_image

Open = Callable[..., Page]
PATHS = ["/", "/tasks", "/import", "/d/pets", *(f"/d/pets/{page}" for page in (
    "pictures", "clusters", "map", "duplicates", "labels", "issues/dark", "cleanup", "history", "views", "settings",
))]  # fmt: skip
NARROW = {"width": 320, "height": 640}  # a window of 1280 pixels at 400 %
ENLARGED = {"width": 640, "height": 400}  # one of 1280 × 800 at 200 %
WIDER = """() => {
    const most = document.documentElement.clientWidth;
    const isShown = (each) => !each.closest('.visually-hidden, .skip, .canvas, table, .table');
    return [...document.querySelectorAll('button, a, input, select, h1, h2, p')]
        .filter((each) => isShown(each) && each.getBoundingClientRect().right > most + 1)
        .map((each) => each.outerHTML.slice(0, 120));
}"""

MOVING = """() => [...document.querySelectorAll('*')].filter((each) => {
    const { animationName, transitionDuration, scrollBehavior } = getComputedStyle(each);
    return animationName !== 'none' || parseFloat(transitionDuration) > 0 || scrollBehavior === 'smooth';
}).map((each) => each.outerHTML.slice(0, 80))"""


def settled(page: Page) -> None:
    """Wait until a page shows its data."""
    page.get_by_role("heading", level=1).wait_for(state="attached")
    expect(page.locator("main [aria-busy=true]")).to_have_count(0)


@pytest.mark.slow
def test_pages__fit_narrow_windows_without_motion(site: Site, open_page: Open) -> None:
    """No page scrolls sideways, no control lies beyond the edge, and whoever wants no motion gets none."""
    page = open_page(site, "/")
    media_id = site.dataset.view.media_ids()[0]
    for path in [*PATHS, f"/d/pets/m/{media_id}"]:
        page.goto(path)
        assert page.evaluate(MOVING) == [], path
        settled(page)
        assert page.evaluate(MOVING) == [], path
        for size in (ENLARGED, NARROW):
            page.set_viewport_size(size)  # type: ignore[arg-type] # its keys are known
            settled(page)
            width = page.evaluate("document.scrollingElement.scrollWidth")
            assert width <= size["width"], f"{path} is {width} px wide"
            assert page.evaluate(WIDER) == [], path


@pytest.mark.slow
def test_pages__with_forced_colours(site: Site, open_page: Open) -> None:
    """With colours of the system the focus and the selection are still seen, by a line and a mark."""
    page = open_page(site, "/d/pets/pictures", forced_colors="active")
    first = first_image(page)
    page.keyboard.press("Space")
    expect(first).to_have_attribute("aria-selected", "true")
    expect(first.locator(".check")).to_have_text("✓")
    page.keyboard.press("ArrowRight")
    focused = page.locator("[data-position='1']")
    expect(focused).to_be_focused()
    assert focused.evaluate("(each) => getComputedStyle(each).outlineStyle") != "none"


@pytest.mark.slow
def test_grid__for_those_who_listen(site: Site, open_page: Open) -> None:
    """The grid has its size, its cells their place and their name, and changes are announced."""
    page = open_page(site, "/d/pets/pictures?sort=image_filename%3Aasc")
    first = first_image(page)
    grid = page.get_by_role("grid", name="Images")
    columns = int(grid.get_attribute("aria-colcount") or 0)
    count = len(site.dataset.view)
    expect(grid).to_have_attribute("aria-rowcount", str(-(-count // columns)))
    expect(grid).to_have_attribute("aria-multiselectable", "true")
    expect(page.get_by_role("row").first).to_have_attribute("aria-rowindex", "1")
    expect(first).to_have_attribute("aria-colindex", "1")
    expect(first).to_have_accessible_name("animals/00.jpg, animal, fur, Duplicates")
    expect(page.get_by_role("status").filter(has_text=f"{count} images")).to_be_attached()
    page.keyboard.press("Space")
    expect(first).to_have_accessible_name("animals/00.jpg, animal, fur, Duplicates, selected")
    for role, name in (("navigation", "Pages of the dataset"), ("complementary", "Details"), ("search", "Search")):
        expect(page.get_by_role(role, name=name)).to_be_visible()  # type: ignore[arg-type] # these are roles
    for role in ("banner", "main", "contentinfo"):
        expect(page.get_by_role(role)).to_be_visible()  # type: ignore[arg-type] # these are roles


@pytest.mark.slow
def test_report__is_accessible(site: Site, open_page: Open, tmp_path: Path) -> None:
    """Checks by axe find nothing in the report."""
    report = site.dataset.report(tmp_path / "report.html")
    page = open_page(site, "/")
    page.goto("about:blank")
    page.set_content(report.read_text(encoding="utf-8"))
    check_accessible(page)


@pytest.mark.only_soak
@pytest.mark.slow
def test_page_of_the_api__is_accessible(site: Site, open_page: Open) -> None:
    """Checks by axe find nothing in the page of the API, which has one theme, while one of its operations is open."""
    page = open_page(site, "/")
    page.goto(f"{site.url}/api/v1/docs")
    summary = page.locator(".opblock-summary-control").filter(has_text="/api/v1/me").first
    summary.click()
    page.locator(".opblock-body .responses-table").wait_for()
    check_accessible(page, themes=("light",))
