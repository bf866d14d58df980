"""The grid of a million rows: its ends, the wheel and the scrubber.

The workspace is made once, by ``python benchmarks/web.py --rows 1000000 --keep FOLDER``, and named by an environment
variable.
"""

import os
import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from framedex import Dataset
from tests.acceptance.place import NAME, Place

_FOLDER = os.environ.get("FRAMEDEX_LARGE_WORKSPACE", "")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.soak,
    pytest.mark.skipif(not _FOLDER, reason="FRAMEDEX_LARGE_WORKSPACE names no workspace of web.py --keep"),
]
_SETTLED = """() => {
    const window = document.querySelector('.grid-scroller')?.getBoundingClientRect();
    const cells = [...document.querySelectorAll('.cell')].filter((each) => {
        const box = each.getBoundingClientRect();
        return box.top < window.bottom && box.bottom > window.top;
    });
    return cells.length > 0 && cells.every((each) => each.querySelector('.tile.shown img'));
}"""
"""Whether all tiles within the window of the grid have their image."""


@pytest.fixture
def dataset(place: Place) -> Dataset:
    """The dataset of the large workspace, which is served."""
    place.workspace_path = Path(_FOLDER)
    place.serve()
    return place.workspace.dataset(NAME)


def opened(place: Place, query: str = "", **options: float) -> Page:
    """Open the grid once its first images are there."""
    page = place.page(f"/d/{NAME}/pictures{query}", **options)
    page.wait_for_function(_SETTLED)
    return page


@pytest.mark.parametrize("scale", [1, 2])
def test_ends__are_reached_by_keys(place: Place, dataset: Dataset, scale: int) -> None:
    """The first images, the last and the first again are shown, on plain and on dense displays."""
    page, last = opened(place, device_scale_factor=scale), len(dataset.view) - 1
    page.locator("[data-position='0']").focus()
    page.keyboard.press("Control+End")
    expect(page.locator(f"[data-position='{last}'] img")).to_be_visible()
    expect(page.locator(f"[data-position='{last}']")).to_have_attribute("aria-label", re.compile(f"{last:07}"))
    page.keyboard.press("Control+Home")
    expect(page.locator("[data-position='0'] img")).to_be_visible()


@pytest.mark.usefixtures("dataset")
def test_wheel__leaves_nothing_blank(place: Place) -> None:
    """After ten seconds of the wheel all that is in view is there, and the page has kept few elements."""
    page = opened(place)
    box = page.locator(".grid-scroller").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    most = 0
    for _ in range(200):
        page.mouse.wheel(0, 60)
        page.wait_for_timeout(40)
        most = max(most, page.evaluate("document.getElementsByTagName('*').length"))
    page.wait_for_function(_SETTLED)
    assert page.evaluate("document.querySelector('.grid-scroller').scrollTop") > 5000
    assert most < 800


def test_scrubber__shows_what_is_there(place: Place, dataset: Dataset) -> None:
    """The scrubber leads to the middle of the images in the order of a value."""
    ordered = dataset.view.sort_by("image_filename", descending=True)
    page = opened(place, "?sort=image_filename%3Adesc")
    rail = page.locator(".scrubber").bounding_box()
    assert rail is not None
    page.mouse.move(rail["x"] + rail["width"] / 2, rail["y"] + 5)
    page.mouse.down()
    page.mouse.move(rail["x"] + rail["width"] / 2, rail["y"] + rail["height"] / 2, steps=5)
    page.mouse.up()
    page.wait_for_function(_SETTLED)
    focus = page.locator("[role=gridcell][tabindex='0']")
    position = int(focus.get_attribute("data-position") or -1)
    assert abs(position - len(ordered) / 2) < len(ordered) / 50
    name = ordered[position]["image_filename"].rpartition("/")[2]
    expect(focus).to_have_attribute("aria-label", re.compile(re.escape(name)))
