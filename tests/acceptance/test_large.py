"""Checks of ``acceptance.py`` at a million rows."""

import re
from collections.abc import Callable
from typing import Any

from playwright.sync_api import Page, expect

from acceptance_site import Place
from web_data import NAME
from web_page import SCRIPT

_ROWS = 1_000_000


def _opened(place: Place, query: str = "", **options: Any) -> Page:
    """Open the grid with the clock of the measurements in it."""
    page = place.page("/", **options)
    page.context.add_init_script(SCRIPT)
    page.goto(f"{place.url}/d/{NAME}/pictures{query}", wait_until="commit")
    return page


def _pressed(page: Page, keys: str, test: str) -> float:
    page.evaluate(f"window.measured = bench.key(() => {test}); 0")
    page.keyboard.press(keys)
    return float(page.evaluate("measured"))


def ends_are_reached_at_once(place: Place) -> str:
    """Show the first images, the last and the first again, on plain and on dense displays."""
    place.use_large()
    place.serve()
    cold = _opened(place).evaluate("bench.until(bench.settled)")
    seen = [f"first visit of the server {cold:.0f} ms"]
    for scale in (1, 2):
        page = _opened(place, device_scale_factor=scale)
        first = page.evaluate("bench.until(bench.settled)")
        page.locator("[data-position='0']").focus()
        last = _pressed(page, "Control+End", f"bench.shown({_ROWS - 1})")
        expect(page.locator(f"[data-position='{_ROWS - 1}']")).to_have_attribute("aria-label", re.compile("0999999"))
        back = _pressed(page, "Control+Home", "bench.shown(0)")
        assert first <= 1500, first
        assert last <= 500, last
        seen.append(f"scale {scale}: first {first:.0f} ms, last {last:.0f} ms, back {back:.0f} ms")
        page.context.close()
    return "; ".join(seen)


def wheel_leaves_nothing_blank(place: Place) -> str:
    """Turn the wheel for ten seconds; what is in view is there within half a second after the end."""
    place.use_large()
    place.serve()
    page = _opened(place)
    page.evaluate("bench.until(bench.settled)")
    box = page.locator(".grid-scroller").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.evaluate(
        """() => {
            window.times = []; let last = performance.now();
            const step = (now) => {
                times.push(now - last); last = now;
                if (window.counting) requestAnimationFrame(step);
            };
            window.counting = true; requestAnimationFrame(step);
        }"""
    )
    most = 0
    for _ in range(200):
        page.mouse.wheel(0, 60)
        page.wait_for_timeout(40)
        most = max(most, page.evaluate("document.getElementsByTagName('*').length"))
    times = sorted(page.evaluate("(window.counting = false, times.slice(1))"))
    settled = page.evaluate("bench.passed(bench.settled)")
    top = page.evaluate("document.querySelector('.grid-scroller').scrollTop")
    assert top > 5000, top
    assert settled <= 500, settled
    assert most < 800, most
    p50, p95 = times[len(times) // 2], times[int(0.95 * len(times))]
    return (
        f"{top:,.0f} px; frames p50 {p50:.1f}, p95 {p95:.1f} ms; complete {settled:.0f} ms after it; ≤ {most} elements"
    )


def scrubber_says_what_is_there(place: Place) -> str:
    """Drag the scrubber to the middle of the images in the order of a measured value."""
    dataset = place.use_large()
    place.serve()
    ordered = dataset.view.sort_by("image_filename", descending=True)
    page = _opened(place, "?sort=image_filename%3Adesc")
    page.evaluate("bench.until(bench.settled)")
    rail = page.locator(".scrubber").bounding_box()
    assert rail is not None
    page.mouse.move(rail["x"] + rail["width"] / 2, rail["y"] + 5)
    page.mouse.down()
    page.mouse.move(rail["x"] + rail["width"] / 2, rail["y"] + rail["height"] / 2, steps=5)
    page.mouse.up()
    page.evaluate("bench.until(bench.settled)")
    focus = page.locator("[role=gridcell][tabindex='0']")
    position = int(focus.get_attribute("data-position") or -1)
    shown = focus.get_attribute("aria-label") or ""
    name = ordered[position]["image_filename"]
    assert abs(position - _ROWS / 2) < _ROWS / 50, position
    assert name.rpartition("/")[2] in shown, (name, shown)
    return f"position {position:,}: {name}"


CHECKS: dict[str, Callable[[Place], str]] = {
    "a million rows: the ends are reached at once": ends_are_reached_at_once,
    "a million rows: the wheel leaves nothing blank": wheel_leaves_nothing_blank,
    "a million rows: the scrubber says what is there": scrubber_says_what_is_there,
}
