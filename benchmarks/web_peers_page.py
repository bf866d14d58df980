"""What is measured in the page of each tool: an app says where its images are, and how a person moves among them.

Times are those of the page, from an event to the first frame with the result. An app without a way leaves it out.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import ClassVar
from urllib.parse import urlencode, urlsplit

from PIL import Image
from playwright.sync_api import Browser, Page
from playwright.sync_api import Error as BrowserError

from web_data import NAME
from web_page import HEIGHT, LIMIT_MS, SCRIPT, WIDTH

GROUPS = 8
_TILE = 128  # gives six in a row, as LightlyStudio has; those that Framedex begins with are larger
_SCREENS, _FILTERED, _OPENED = 5, (3, 4, 5), (1, 2, 3)

_MORE = """
Object.assign(bench, {
  loaded: (image) => image.complete && image.naturalWidth > 0,
  inView: () => {
    const view = document.querySelector(bench.app.view)?.getBoundingClientRect();
    return view ? [...document.querySelectorAll(bench.app.tile)].filter((tile) => {
      const box = tile.getBoundingClientRect();
      return box.top < view.bottom && box.bottom > view.top;
    }) : [];
  },
  hasImage: (tile) => {
    const image = tile.querySelector(bench.app.image);
    return !!image && bench.loaded(image);
  },
  // Whether tiles fill the view, and all of them have their image and are of a group.
  settled: (group = null) => {
    const view = document.querySelector(bench.app.view)?.getBoundingClientRect(), tiles = bench.inView();
    if (tiles.length === 0) return false;
    const boxes = tiles.map((tile) => tile.getBoundingClientRect()), height = boxes[0].height;
    return Math.min(...boxes.map((box) => box.top)) < view.top + height
      && Math.max(...boxes.map((box) => box.bottom)) > view.bottom - height
      && tiles.every((tile) => bench.hasImage(tile) && (group === null || bench.app.group(tile) === group));
  },
  // The milliseconds from scrolling by a screen until its images are there; some apps load more rows on the way.
  further: async () => {
    const view = document.querySelector(bench.app.view), began = performance.now();
    const target = view.scrollTop + view.clientHeight;
    const at = await bench.until(() => {
      if (view.scrollTop < target - 1) view.scrollTop = target;
      return view.scrollTop >= target - 1 && bench.settled();
    });
    return at - began;
  },
});
"""


@dataclass(frozen=True)
class Opened:
    """A photograph that was opened.

    Attributes:
        took_ms: from the event until it was there.
        size: its width and height, as they were loaded.
        name: of its file, where the page says it.
    """

    took_ms: float
    size: list[int]
    name: str | None


class App:
    """The page of a tool, as a person uses it.

    Attributes:
        path: of its images.
        script: run before the page: preferences, and where its tiles and images are (``bench.app``).
    """

    path: ClassVar[str] = "/"
    script: ClassVar[str]

    def first(self, page: Page) -> dict[str, Callable[[], object]]:
        """Return what is waited for after the start, in order."""
        return {
            "command to the first image": lambda: _wait(page, "bench.inView().some(bench.hasImage)"),
            "command to all images in view": lambda: _wait(page, "bench.settled()"),
        }

    def moved(self, page: Page) -> dict[str, float]:
        """Return the milliseconds of moving in the grid, and the number of images on a screen."""
        count = page.evaluate("bench.inView().length")
        further = median(page.evaluate("bench.further()") for _ in range(_SCREENS))
        page.evaluate("document.querySelector(bench.app.view).scrollTop = 0")
        self._wait_for_all(page)
        filtered = median(self.filtered(page, number) for number in _FILTERED)
        return {"images in view": count, "one screen further": further, "filter by a label": filtered}

    def filtered(self, page: Page, number: int) -> float:
        """Return the milliseconds until all images in view are those of a group; show all images again."""
        raise NotImplementedError

    def last(self, page: Page, rows: int) -> float | None:
        """Return the milliseconds until the last image and those around it are there."""

    def opened(self, page: Page, number: int) -> Opened:
        """Open the image with a number, from 0, and go back."""
        raise NotImplementedError

    @staticmethod
    def _wait_for_all(page: Page) -> None:
        page.evaluate("bench.until(() => bench.settled('group 0'))")

    @staticmethod
    def _after(page: Page, event: str, test: str, act: Callable[[], object]) -> float:
        """Act; return the milliseconds from the event until a test holds."""
        page.evaluate(f"window.measured = bench.after('{event}', () => {test}); 0")
        act()
        return float(page.evaluate("measured"))


class Framedex(App):
    """The images page of the web app, by its keys and addresses."""

    path = f"/d/{NAME}/pictures"
    script = (
        f"localStorage.setItem('framedex.tile-size', '{_TILE}');"
        "bench.app = {view: '.grid-scroller', tile: '.cell', image: '.tile.shown img',"
        " group: (tile) => tile.querySelector('.mark.label')?.textContent.trim()};"
    )
    _OPEN = (
        "document.querySelectorAll('.canvas img').length === 1 && bench.loaded(document.querySelector('.canvas img'))"
    )

    def filtered(self, page: Page, number: int) -> float:
        """Follow the address of the filter."""
        query = "?" + urlencode({"f": f'[{{"labels":{{"op":"is","value":"group {number}"}}}}]'})
        seconds = page.evaluate(
            """async ([query, group]) => {
                const began = performance.now();
                bench.go(query);
                return (await bench.until(() => bench.settled(group))) - began;
            }""",
            [query, f"group {number}"],
        )
        page.evaluate("bench.go('')")
        self._wait_for_all(page)
        return float(seconds)

    def last(self, page: Page, rows: int) -> float:
        """Press Ctrl+End."""
        page.locator("[data-position='0']").focus()
        test = f"bench.shown({rows - 1}) && bench.settled()"
        there = self._after(page, "keydown", test, lambda: page.keyboard.press("Control+End"))
        page.keyboard.press("Control+Home")
        self._wait_for_all(page)
        return there

    def opened(self, page: Page, number: int) -> Opened:
        """Press Enter; the thumbnail, which is shown before, does not count."""
        page.locator(f"[data-position='{number}']").focus()
        took = self._after(page, "keydown", self._OPEN, lambda: page.keyboard.press("Enter"))
        opened = Opened(took, _natural_size(page, ".canvas img"), page.locator(".viewer-head h1").inner_text())
        page.keyboard.press("Escape")
        self._wait_for_all(page)
        return opened


class LightlyStudio(App):
    """The grid of LightlyStudio, by the mouse."""

    # The dialog of a first visit would cover the grid.
    script = (
        "localStorage.setItem('lightly-studio:onboarding-invitation:v1', 'shown');"
        "bench.app = {view: '[data-testid=images-grid]', tile: '[data-testid=sample-grid-item]', image: 'img',"
        " group: (tile) => tile.querySelector('img').alt.split('/').at(-2)};"
    )
    _OPEN = "[data-testid=sample-details] img"

    def filtered(self, page: Page, number: int) -> float:
        """Click on the tag, and again afterwards."""
        label = page.get_by_test_id("tags-menu-label").get_by_text(f"group {number}", exact=True)
        took = self._after(page, "click", f"bench.settled('group {number}')", label.click)
        label.click()
        self._wait_for_all(page)
        return took

    def opened(self, page: Page, number: int) -> Opened:
        """Double-click on the tile."""
        test = f"[...document.querySelectorAll('{self._OPEN}')].some(bench.loaded)"
        took = self._after(page, "dblclick", test, page.get_by_test_id("sample-grid-item").nth(number).dblclick)
        name = page.get_by_test_id("sample-metadata-filename").inner_text()
        opened = Opened(took, _natural_size(page, self._OPEN), name)
        page.go_back()
        self._wait_for_all(page)
        return opened


class Spotlight(App):
    """The table of Spotlight, which has no images: they come into the inspector of the rows that are clicked on."""

    script = (
        "bench.app = {images: () => [...document.querySelectorAll('img[alt=picture]')].filter("
        " (image) => bench.loaded(image) && image.getBoundingClientRect().width > 0)};"
    )
    _ROW = "[data-rowindex='%d'] span"

    def first(self, page: Page) -> dict[str, Callable[[], object]]:
        """Wait for the table, then click on its first row."""

        def image() -> None:
            page.locator(self._ROW % 0).first.click()
            _wait(page, "bench.app.images().length > 0")

        return {
            "command to the table": page.locator(self._ROW % 0).first.wait_for,
            "command to the first image": image,
        }

    def moved(self, page: Page) -> dict[str, float]:
        """Return nothing: there are no images to wait for."""
        return {}

    def opened(self, page: Page, number: int) -> Opened:
        """Click on the row."""
        page.evaluate("window.before = new Set(bench.app.images().map((image) => image.src)); 0")
        test = "bench.app.images().some((image) => !before.has(image.src))"
        took = self._after(page, "click", test, page.locator(self._ROW % number).first.click)
        image = "bench.app.images().find((image) => !before.has(image.src))"
        size: list[int] = page.evaluate(f"[{image}.naturalWidth, {image}.naturalHeight]")
        return Opened(took, size, None)


def measure_app(app: App, browser: Browser, site: str, began: float, photos: list[Path]) -> dict[str, float | None]:
    """Return the figures of a tool's page: milliseconds, where no other unit is named.

    Args:
        app: the page.
        browser: in which it opens for the first time.
        site: the address of the server.
        began: when the command was given, by ``time.perf_counter``.
        photos: all photographs, in the order of their paths.

    Raises:
        RuntimeError: a photograph was not shown at its full size.
    """
    figures: dict[str, float | None] = {}
    with browser.new_context(base_url=site, viewport={"width": WIDTH, "height": HEIGHT}) as context:
        context.add_init_script(SCRIPT + _MORE + app.script)
        context.set_default_timeout(LIMIT_MS)
        page, others = context.new_page(), list[str]()
        page.on("request", lambda request: others.append(request.url) if _is_other(request.url, site) else None)
        page.goto(app.path, wait_until="commit")
        for name, wait in app.first(page).items():
            wait()
            figures[name] = 1000 * (time.perf_counter() - began)
        figures |= app.moved(page)
        figures["last image"] = app.last(page, len(photos))
        figures["open a photograph"] = median(_opened(app, page, number, photos) for number in _OPENED)
        figures["requests of the page to other hosts"] = len(others)
    for url in sorted(set(others)):
        print(f"  the page asked for {url}")
    return figures


def _opened(app: App, page: Page, number: int, photos: list[Path]) -> float:
    """Return the milliseconds until a photograph was open, of the size of its file."""
    opened = app.opened(page, number)
    path = photos[number] if opened.name is None else next(each for each in photos if each.name == opened.name)
    with Image.open(path) as image:
        if list(image.size) != opened.size:
            raise RuntimeError(f"it showed {path.name} at {opened.size}, not at {list(image.size)}")
    return opened.took_ms


def _wait(page: Page, test: str) -> None:
    """Wait until a test holds, in whatever document the page has by then: apps lead on to others."""
    while True:
        try:
            page.evaluate(f"bench.until(() => {test})")
        except BrowserError as error:
            if "context was destroyed" not in str(error):
                raise
        else:
            return


def _natural_size(page: Page, selector: str) -> list[int]:
    size: list[int] = page.evaluate(
        "(selector) => { const it = document.querySelector(selector); return [it.naturalWidth, it.naturalHeight]; }",
        selector,
    )
    return size


def _is_other(url: str, site: str) -> bool:
    """Return whether an address is of another host; data and blobs are of none."""
    parts = urlsplit(url)
    return parts.scheme in {"http", "https", "ws", "wss"} and parts.netloc != urlsplit(site).netloc
