"""Take the images of docs/images: pages of the app, a moving image of a clean-up, and a report, all of the demo.

Usage: make pictures, or python docs/make_images.py [--browser /usr/bin/chromium] [--into FOLDER].

Beside each image is the text of its page, as a screen reader has it. A test takes all of them again and compares. Texts
must be equal but for times and sizes of files. Images are compared as thumbnails of 80 × 50 pixels, by their mean
difference. Taken twice on one machine, no image differs by more than 0.006: the map shows other images of the same
cluster. So that it is the same on all x86 processors, whose BLAS differs in last bits, the script runs with the BLAS of
one of them. Without its list of pages, or a photograph of the grid, a page differs by 0.01 to 0.02. Letters of another
font (Liberation in the place of DejaVu Sans) are narrower, move what follows, and make up to 0.045; two pages of the
app differ by 0.06 to 0.39. So the limit is ``SAME_LETTERS`` where letters are as wide as those of the images, which
letters.txt says, and else ``OTHER_LETTERS``.

The photographs are sample data of scikit-image and scikit-learn. Those whose licence is not stated there
(``NOT_SHOWN``) are deleted from the dataset first; docs/app.md names the licences of the others.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Literal
from urllib.parse import quote
from weakref import WeakKeyDictionary

import numpy as np
from PIL import Image
from playwright.sync_api import Page, Playwright, Request, ViewportSize, expect, sync_playwright

from framedex import Workspace, demo

TARGET = Path(__file__).with_name("images")
NOT_SHOWN = ("moon", "page")
"""The photographs of the demo whose licence scikit-image does not state."""
Theme = Literal["light", "dark"]
WIDTH, HEIGHT = 1280, 800
MOVING_SIZE = (960, 600)
REPORT_SIZE: ViewportSize = {"width": 880, "height": 700}
MOVING = "clean-up"
LETTERS = "letters.txt"
SAME_LETTERS, OTHER_LETTERS = 0.01, 0.055
"""The largest mean difference of the thumbnails of an image, of 0 to 1."""
MOST_BYTES, MOST_MOVING_BYTES = 2_500_000, 1_500_000
_SAME_BITS = {"OPENBLAS_CORETYPE": "Haswell"}
_THUMBNAIL = (80, 50)
_MOST_TRIES, _PAUSE_MS, _PATIENCE_MS = 80, 250, 30_000
_FILTER = quote(json.dumps([{"labels": {"op": "one_of", "value": ["animal", "food"]}}]))
_BROWSER_ARGUMENTS = (
    "--no-sandbox",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    "--disable-gpu-compositing",
    "--disable-gpu-rasterization",
    "--font-render-hinting=none",
    "--hide-scrollbars",
)
_MASKS = (
    (r"^ *- /url: .*\n", ""),
    (r"(?<!\w)\d+(\.\d+)?\s?(B|kB|KB|MB)\b", "… bytes"),
    (r"\b\d+ [A-Z][a-z]{2} \d{4}, \d\d:\d\d\b", "a time"),
    (r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d)?", "a time"),
    (r"\d+ (seconds?|minutes?|hours?) ago|just now|now", "some time ago"),
    (r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "an id"),
)
_NAMES_ON_MAP = re.compile(r'^( *)- list "Clusters in view":\n(?:\1 .*\n?)*', re.MULTILINE)
_UNDER_WAY: WeakKeyDictionary[Page, set[Request]] = WeakKeyDictionary()
"""The requests of each page that are not answered yet, but for the stream of events, which never ends."""
_CAP_STYLE = (
    "position:fixed;left:50%;bottom:44px;transform:translateX(-50%);z-index:99;white-space:nowrap;"
    "padding:10px 22px;border-radius:10px;"
    "background:#111d;color:#fff;font:400 22px system-ui,sans-serif"
)


@dataclass(frozen=True)
class Shot:
    """An image of a page.

    Attributes:
        path: of the page, below that of the dataset.
        ready: a CSS selector of what is there once the page is.
        theme: light or dark.
    """

    path: str
    ready: str
    theme: Theme = "light"


SHOTS = {
    "overview": Shot("", "main h2"),
    "images": Shot(f"/pictures?f={_FILTER}", ".tile.shown"),
    "duplicates": Shot("/duplicates", "button[aria-pressed=true] img"),
    "map": Shot("/map?x=0.79&y=0.22&z=1.2", ".map-tiles img", "dark"),
}
"""Each image of a page of the app, by its name."""


@dataclass
class Moving:
    """The frames of a moving image, with how long each is shown and the text of its page."""

    frames: list[Image.Image] = field(default_factory=list)
    durations_ms: list[int] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)

    def add(self, page: Page, duration_ms: int, *, keys: str = "", does: str = "") -> None:
        """Add a frame of a page as it is, below it the keys that were pressed and what they do."""
        if keys:
            page.evaluate(
                """([keys, does, style]) => {
                    const cap = Object.assign(document.createElement('div'), { id: 'cap' });
                    cap.setAttribute('aria-hidden', 'true');
                    cap.style.cssText = style;
                    const key = Object.assign(document.createElement('b'), { textContent: keys });
                    key.style.cssText = 'padding:2px 10px;margin-right:14px;border:2px solid #fff;border-radius:6px';
                    cap.append(key, does);
                    (document.querySelector('dialog[open]') ?? document.body).append(cap);
                }""",
                [keys, does, _CAP_STYLE],
            )
        self.frames.append(settled(page).resize(MOVING_SIZE, Image.Resampling.LANCZOS))
        page.evaluate("document.getElementById('cap')?.remove()")
        self.durations_ms.append(duration_ms)
        main = "dialog[open]" if page.locator("dialog[open]").count() else "main"
        title = f"{keys}: {does}" if keys else "At first"
        self.texts.append(f"# {title}\n\n{text_of(page, main)}")

    def save(self, folder: Path) -> None:
        """Write the image and the text."""
        self.frames[0].save(
            folder / f"{MOVING}.webp",
            save_all=True,
            append_images=self.frames[1:],
            duration=self.durations_ms,
            loop=0,
            quality=72,
            method=6,
        )
        (folder / f"{MOVING}.txt").write_text("\n".join(self.texts), encoding="utf-8")


def take(folder: Path, browser: str | None = None) -> None:
    """Take all images and write them, with their texts, into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    expect.set_options(timeout=_PATIENCE_MS)
    with tempfile.TemporaryDirectory() as home, sync_playwright() as playwright:
        workspace, report = make_demo(Path(home))
        with served(workspace) as url, opened(playwright, browser) as open_page:
            for name, shot in SHOTS.items():
                page = open_page(shot.theme)
                page.goto(f"{url}/d/{demo.DATASET}{shot.path}")
                page.locator(shot.ready).first.wait_for()
                save(page, folder, name)
                page.close()
            film(open_page("light"), f"{url}/d/{demo.DATASET}").save(folder)
            page = open_page("light")
            page.set_viewport_size(REPORT_SIZE)
            page.goto(report.as_uri())
            save(page, folder, "report")
            (folder / LETTERS).write_text(f"{width_of_letters(page)}\n", encoding="utf-8")
    size = sum(each.stat().st_size for each in folder.glob("*.webp"))
    assert size < MOST_BYTES, f"the images have {size:,} bytes; choose smaller ones"
    assert (folder / f"{MOVING}.webp").stat().st_size < MOST_MOVING_BYTES, "show fewer frames"


def make_demo(home: Path) -> tuple[Path, Path]:
    """Make the demo below a folder as a user does, without the photographs that are not shown.

    Returns:
        The paths of the workspace and of a report.
    """
    folder, report = home / "workspace", home / "report.html"
    run("demo", "--workspace", str(folder), "--output", str(home / "whole.html"))
    with Workspace(folder) as workspace:
        dataset = workspace.dataset(demo.DATASET)
        rows = dataset.to_arrow(["media_id", "file_name"]).to_pylist()
        dataset.delete_media([row["media_id"] for row in rows if re.match("|".join(NOT_SHOWN), row["file_name"])])
        dataset.map()
        dataset.report(report)
    return folder, report


def run(*arguments: str) -> None:
    """Run the command line to its end."""
    subprocess.run([sys.executable, "-m", "framedex", *arguments], check=True, stdout=subprocess.DEVNULL)


@contextmanager
def served(workspace: Path) -> Iterator[str]:
    """Serve a workspace at a free port of this machine; yield the URL."""
    command = [sys.executable, "-m", "framedex", "serve", "--workspace", str(workspace), "--port", "0", "--no-browser"]
    quiet = subprocess.DEVNULL
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=quiet, text=True) as server:
        assert server.stdout is not None
        lines = (re.search(r"http://[\d.]+:\d+", line) for line in server.stdout)
        try:
            yield next(found[0] for found in lines if found)
        finally:
            server.terminate()


@contextmanager
def opened(playwright: Playwright, browser: str | None) -> Iterator[Callable[[Theme], Page]]:
    """Start Chromium; yield a function that opens a page in a theme."""
    chromium = playwright.chromium.launch(executable_path=browser, args=_BROWSER_ARGUMENTS)

    def open_page(theme: Theme) -> Page:
        context = chromium.new_context(
            viewport={"width": WIDTH, "height": HEIGHT}, color_scheme=theme, reduced_motion="reduce", locale="en-GB"
        )
        return watched(context.new_page())

    yield open_page
    chromium.close()


def watched(page: Page) -> Page:
    """Note which requests of a page are under way; return the page."""
    under_way = _UNDER_WAY[page] = set()
    page.on("request", lambda request: None if request.resource_type == "eventsource" else under_way.add(request))
    page.on("requestfinished", lambda request: under_way.discard(request))  # noqa: PLW0108 - it looks at the signature
    page.on("requestfailed", lambda request: under_way.discard(request))  # noqa: PLW0108
    return page


_HAS_IMAGES = """() => [...document.images].every((image) => {
    const { top, bottom } = image.getBoundingClientRect();
    return image.complete || (image.loading === "lazy" && (bottom < 0 || top > innerHeight));
})"""


def settled(page: Page) -> Image.Image:
    """Return an image of a page once its requests are answered, its images are there and nothing changes any more."""
    before, was_quiet = b"", False
    for _ in range(_MOST_TRIES):
        is_quiet = page.evaluate(_HAS_IMAGES) and not _UNDER_WAY[page]
        present = page.screenshot(animations="disabled", caret="hide")
        if was_quiet and is_quiet and present == before:
            return Image.open(BytesIO(present)).convert("RGB")
        before, was_quiet = present, is_quiet
        page.wait_for_timeout(_PAUSE_MS)
    raise TimeoutError(f"{page.url} does not come to rest")


def save(page: Page, folder: Path, name: str) -> None:
    """Write an image of a page, and its text."""
    settled(page).save(folder / f"{name}.webp", quality=92, method=6)
    (folder / f"{name}.txt").write_text(text_of(page, "body"), encoding="utf-8")


def text_of(page: Page, selector: str) -> str:
    """Return the text of a page as a screen reader has it, without what differs by time and machine.

    The names that fit on the map depend on the widths of letters, so they are left out.
    """
    text = _NAMES_ON_MAP.sub(r'\1- list "Clusters in view"\n', page.locator(selector).aria_snapshot() + "\n")
    for pattern, words in _MASKS:
        text = re.sub(pattern, words, text, flags=re.MULTILINE)
    return text


def film(page: Page, url: str) -> Moving:
    """Film the way from the overview to a clean-up that is undone."""
    moving = Moving()
    page.goto(url)
    page.locator("main h2").first.wait_for()
    moving.add(page, 1300)
    _film_review(page, moving)
    _film_cleanup(page, moving)
    return moving


def _film_review(page: Page, moving: Moving) -> None:
    _press(page, "g", "d")
    group = page.get_by_text(re.compile(r"^Group 1 of "))
    first = group.text_content() or ""
    expect(page.locator("button[aria-pressed=true] img")).to_be_visible()
    moving.add(page, 1400, keys="G D", does="review the duplicates")
    _press(page, "Enter")
    expect(group).not_to_have_text(first)
    expect(page.get_by_text(re.compile("^Put .* Undo: Ctrl Z"))).to_be_visible()
    moving.add(page, 1100, keys="Enter", does="keep ★, put the others into the basket")
    _press(page, "u")
    expect(group).to_have_text(first)
    expect(page.get_by_text(re.compile("^Undone: "))).to_be_visible()
    moving.add(page, 900, keys="U", does="undo")


def _film_cleanup(page: Page, moving: Moving) -> None:
    badge = page.get_by_role("link", name=re.compile("^Duplicates"))
    before = badge.text_content() or ""
    _press(page, "g", "x")
    page.get_by_role("combobox", name="Duplicates of at least").select_option("0.96")
    for issue in ("Blurred", "Damaged files"):
        page.get_by_role("checkbox", name=issue).check()
    page.get_by_role("region", name="Blurred").get_by_role("img").first.wait_for()
    moving.add(page, 1300, keys="G X", does="choose what to remove")
    page.get_by_role("region", name="Duplicates").evaluate("(section) => section.scrollIntoView()")
    moving.add(page, 1700, keys="", does="what goes, what stays in its place, and why")
    page.get_by_role("button", name=re.compile("^Remove [0-9]")).click()
    page.get_by_role("dialog").get_by_role("img").first.wait_for()
    moving.add(page, 1000, keys="Enter", does="a snapshot first")
    _press(page, "Enter")
    expect(page.get_by_text(re.compile("^Removed .* Undo: Ctrl Z"))).to_be_visible()
    expect(badge).not_to_have_text(before)
    moving.add(page, 1400, keys="Enter", does="done; the files stay")
    _press(page, "Control+z")
    expect(page.get_by_text(re.compile("^Undone: Removed"))).to_be_visible()
    expect(badge).to_have_text(before)
    moving.add(page, 1600, keys="Ctrl Z", does="all is as before")


def _press(page: Page, *keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)


def width_of_letters(page: Page) -> float:
    """Return the width in pixels of a text in the font of pages."""
    return float(
        page.evaluate("""() => {
            const context = document.createElement('canvas').getContext('2d');
            context.font = '16px system-ui, sans-serif';
            return Math.round(context.measureText('Framedex 0123456789').width * 100) / 100;
        }""")
    )


def difference(one: Image.Image, other: Image.Image) -> float:
    """Return the mean difference of the thumbnails of two images, 0 to 1."""
    small = [
        np.asarray(each.convert("RGB").resize(_THUMBNAIL, Image.Resampling.BOX), np.float64) for each in (one, other)
    ]
    return float(np.abs(small[0] - small[1]).mean() / 255)


def main() -> None:
    """Take the images."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--browser", help="path of Chromium; by default the one that Playwright installed")
    parser.add_argument("--into", type=Path, default=TARGET, help="folder for the images")
    arguments = parser.parse_args()
    take(arguments.into, arguments.browser)


if __name__ == "__main__":
    if not _SAME_BITS.items() <= os.environ.items():
        os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | _SAME_BITS)  # noqa: S606  # BLAS reads it once
    main()
