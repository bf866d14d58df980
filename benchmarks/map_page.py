"""The map's page in Chromium with a software renderer: points, panning, regions, and the bytes that it takes.

The workspace is that of ``web.py``: clustered vectors whose rows name small photographs. Its map is made first, if it
has none. Times are those of the page, from the start of loading or from an event to the frame that shows the result.
Chromium must be on the PATH, and playwright installed.
"""

import json
import shutil
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any
from urllib.parse import parse_qs, urlsplit

from playwright.sync_api import Browser, Page, Response, sync_playwright

from common import arguments, save, table
from framedex import Workspace
from service import memory_mib, served
from web_data import NAME, make
from web_page import SCRIPT

WIDTH, HEIGHT = 1400, 900
PAN_MS = 6000
COLUMNS = ("cluster_2", "blur", "uniqueness_score", "labels")
AIMS = {
    "first points, ms": 1000,
    "all points, ms": 4000,
    "frames a second of a pan": 8,
    "kB of a filter": 130,
    "kB of a colour": 2000,
    "requests of the map while it moves": 0,
    "JS heap, MB": 150,
    "elements of the page": 800,
}
"""The most of each figure; of the frames a second the least."""
_DRAWN = "Number(document.querySelector('.map-canvas')?.dataset.drawn ?? 0)"
_PAN = """async (ms) => {
    const canvas = document.querySelector('.map-canvas');
    const box = canvas.getBoundingClientRect();
    const send = (kind, x, y) => canvas.dispatchEvent(new PointerEvent(kind, {
        bubbles: true, pointerId: 1, button: 0, clientX: box.left + x, clientY: box.top + y,
    }));
    const frame = () => new Promise(requestAnimationFrame);
    canvas.parentElement.setPointerCapture = () => {};
    send('pointerdown', 300, 300);
    await frame();
    const times = [], points = [], began = performance.now();
    for (let last = began, step = 0; last - began < ms; step++) {
        send('pointermove', 300 + 200 * Math.sin(step / 10), 300 + 100 * Math.cos(step / 14));
        await frame();
        const now = performance.now();
        times.push(now - last);
        points.push(Number(canvas.dataset.drawn));
        last = now;
    }
    send('pointerup', 0, 0);
    return {times, points};
}"""


def main() -> None:
    """Measure, print and write."""
    parser = arguments(__doc__, peers=False, data=False)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--keep", type=Path, help="folder for the workspace, which a later run uses again")
    options = parser.parse_args()
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        sys.exit("Chromium is absent: install it, so that it is on the PATH")
    with tempfile.TemporaryDirectory(prefix="bench-map-") as scratch, sync_playwright() as playwright:
        flags = ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
        browser = playwright.chromium.launch(executable_path=chromium, args=flags)
        workspace = (options.keep or Path(scratch)) / f"rows-{options.rows}"
        if not workspace.exists():
            make(workspace, options.rows)
        rounds = [_measure(browser, workspace) for _ in range(options.rounds)]
        browser.close()
    figures = {name: median(each[name] for each in rounds) for name in rounds[0]}
    rows = [[name, value, *(each[name] for each in rounds), _aim(name, value)] for name, value in figures.items()]
    print(table(["", "median", *(f"round {number + 1}" for number in range(len(rounds))), "aim"], rows))
    save("map_page", {"rows": options.rows, "rounds": rounds, "median": figures})


def _aim(name: str, value: float) -> str:
    """Return the aim of a figure, and whether it was missed."""
    if name not in AIMS:
        return ""
    is_least = name.startswith("frames")
    is_met = value >= AIMS[name] if is_least else value <= AIMS[name]
    return f"{'≥' if is_least else '≤'} {AIMS[name]}{'' if is_met else ' MISSED'}"


def _measure(browser: Browser, folder: Path) -> dict[str, float]:
    """Return the figures of one round, whose server has nothing in memory at first."""
    with Workspace(folder) as workspace:
        began = time.perf_counter()
        points = len(workspace.dataset(NAME).map())
        figures: dict[str, float] = {"points": points, "map in Python, s": time.perf_counter() - began}
    with served(folder) as (site, pid):
        page = browser.new_page(base_url=site, viewport={"width": WIDTH, "height": HEIGHT})
        page.add_init_script(SCRIPT)
        sizes: dict[str, int] = {}
        page.on("response", lambda response: _note(response, sizes))
        for name in (", first visit", ""):
            page.goto(f"/d/{NAME}/map?colour=none", wait_until="commit")
            figures[f"first points{name}, ms"] = page.evaluate(f"bench.until(() => {_DRAWN} > 0)")
            figures[f"all points{name}, ms"] = page.evaluate(f"bench.until(() => {_DRAWN} === {points})")
        page.evaluate("bench.until(() => document.querySelectorAll('.map-name').length > 0)")
        page.wait_for_load_state("networkidle")
        figures["MB of the points"] = sizes["map"] / 1e6
        figures |= _panned(page, sizes)
        figures |= _coloured(page, sizes)
        figures |= _filtered(page, folder, sizes)
        figures |= _size_of(page)
        figures["server memory, MiB"] = memory_mib(pid)
        page.context.close()
    return figures


def _note(response: Response, sizes: dict[str, int]) -> None:
    """Note the bytes of an answer about the map, and how many there were."""
    name = urlsplit(response.url).path.rpartition("/")[2]
    if name in {"map", "mask", "colours", "labels"}:
        sizes[name] = int(response.headers.get("content-length", 0))
        sizes["answers"] = sizes.get("answers", 0) + 1


def _panned(page: Page, sizes: dict[str, int]) -> dict[str, float]:
    """Drag the map about, at two zooms."""
    figures: dict[str, float] = {}
    for name, keys in (("", ["0"]), (", four times as near", ["+"] * 4)):
        for key in keys:
            page.keyboard.press(key)
            page.wait_for_timeout(400)
        page.wait_for_timeout(2000)
        before = sizes["answers"]
        found: dict[str, list[float]] = page.evaluate(_PAN, PAN_MS)
        figures[f"frames a second of a pan{name}"] = 1000 * len(found["times"]) / sum(found["times"])
        figures[f"longest frame of a pan{name}, ms"] = max(found["times"])
        figures[f"points of a frame of a pan{name}"] = median(found["points"])
        figures[f"requests of the map while it moves{name}"] = sizes["answers"] - before
    page.keyboard.press("0")
    return figures


def _coloured(page: Page, sizes: dict[str, int]) -> dict[str, float]:
    """Choose colours one after another."""
    times = []
    for column in COLUMNS:
        began = page.evaluate("performance.now()")
        with page.expect_response(lambda response: "/map/colours" in response.url) as answer:
            page.get_by_role("combobox", name="Colour").select_option(column)
        answer.value.finished()
        page.evaluate("bench.until(() => document.querySelector('.map-legend'))")
        times.append(page.evaluate("performance.now()") - began)
    return {"colour to legend, ms": median(times), "kB of a colour": sizes["colours"] / 1000}


def _filtered(page: Page, folder: Path, sizes: dict[str, int]) -> dict[str, float]:
    """Draw a region, and compare its count with that of the library."""
    box = page.locator(".map-canvas").bounding_box()
    assert box is not None
    corners = [(0.3, 0.2), (0.55, 0.15), (0.7, 0.5), (0.5, 0.85), (0.25, 0.6)]
    places = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in corners]
    page.keyboard.press("o")
    page.mouse.move(*places[0])
    page.mouse.down()
    for place in places[1:]:
        page.mouse.move(*place, steps=10)
    page.evaluate("window.measured = bench.after('pointerup', () => / of /.test("
                  "document.querySelector('.count').textContent)); 0")  # fmt: skip
    with page.expect_response(lambda response: response.url.endswith("/mask")) as answer:
        page.mouse.up()
    answer.value.finished()
    counted = page.evaluate("measured")
    shown = int(page.locator(".count").inner_text().split(" of ")[0].replace(",", ""))
    elements = json.loads(parse_qs(urlsplit(page.url).query)["f"][0])
    with Workspace(folder) as workspace:
        count = workspace.dataset(NAME).where(elements).count()
    if shown != count:
        sys.exit(f"the page counts {shown} images in the region, the library {count}")
    return {"images of the region": count, "region to count, ms": counted, "kB of a filter": sizes["mask"] / 1000}


def _size_of(page: Page) -> dict[str, float]:
    session = page.context.new_cdp_session(page)
    session.send("HeapProfiler.enable")
    session.send("HeapProfiler.collectGarbage")
    session.send("Performance.enable")
    values: list[dict[str, Any]] = session.send("Performance.getMetrics")["metrics"]
    heap = next(float(each["value"]) for each in values if each["name"] == "JSHeapUsedSize")
    elements = page.evaluate("document.getElementsByTagName('*').length")
    return {"JS heap, MB": heap / 1e6, "elements of the page": float(elements)}


if __name__ == "__main__":
    main()
