"""The map on a page: what is drawn, and regions."""

import json
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, urlsplit

from playwright.sync_api import Locator, Page, expect

from tests.browser.site import Site

PATIENCE_S = 15
COLOURED = """(canvas) => {
    const copy = document.createElement('canvas');
    [copy.width, copy.height] = [canvas.width, canvas.height];
    const context = copy.getContext('2d');
    context.drawImage(canvas, 0, 0);
    const pixels = context.getImageData(0, 0, copy.width, copy.height).data;
    const found = new Map();
    for (let at = 0; at < pixels.length; at += 4) {
        if (pixels[at + 3] < 200) continue;
        const name = [pixels[at], pixels[at + 1], pixels[at + 2]].map((each) => each >> 4).join(' ');
        found.set(name, (found.get(name) ?? 0) + 1);
    }
    return Object.fromEntries(found);
}"""
"""The number of drawn pixels by colour, in steps of 16."""


def drawn(page: Page, count: int) -> Locator:
    """Return the canvas once it has so many points."""
    canvas = page.locator(f".map-canvas[data-drawn='{count}']")
    expect(canvas).to_be_visible()
    return canvas


def placed(site: Site) -> int:
    """Return the number of media on the map, which is made."""
    return len(site.dataset.map())


def until(page: Page, check: Callable[[], bool]) -> None:
    """Wait until something is true of what is drawn."""
    end = time.monotonic() + PATIENCE_S
    while not check():
        assert time.monotonic() < end
        page.wait_for_timeout(50)


def colours(page: Page, canvas: Locator) -> dict[str, int]:
    """Return the drawn pixels by colour, once there are some that stay as they are."""
    found: dict[str, int] = {}

    def are_settled() -> bool:
        nonlocal found
        before, found = found, canvas.evaluate(COLOURED)
        return bool(found) and found == before

    until(page, are_settled)
    return found


def lasso(page: Page, corners: list[tuple[float, float]]) -> None:
    """Draw a region, whose corners are shares of the canvas."""
    box = page.locator(".map-canvas").bounding_box()
    assert box is not None
    points = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in corners]
    page.keyboard.press("o")
    expect(page.locator(".map-drawing")).to_have_count(1)
    page.mouse.move(*points[0])
    page.mouse.down()
    for point in points[1:]:
        page.mouse.move(*point, steps=12)
    page.mouse.up()


def filter_of(page: Page) -> list[dict[str, Any]]:
    """Return the filter in the address."""
    found: list[dict[str, Any]] = json.loads(parse_qs(urlsplit(page.url).query)["f"][0])
    return found
