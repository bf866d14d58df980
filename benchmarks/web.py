"""The web app in Chromium at growing numbers of rows: loading, scrolling, keys, filters, edits, memory.

Each size has a workspace of clustered vectors whose rows name small photographs (``web_data.py``), served by a process
of its own. Times are those of the page: from a key, or from the start of loading, to the frame that shows the result.
The server has an environment with the packages of the service alone, as users install it: pandas, which the tests need,
would be loaded with pyarrow. Then the app is measured beside other tools on photographs (``web_peers.py``). Chromium
must be on the PATH, and playwright installed.
"""

import gzip
import re
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, sync_playwright

import framedex.web
from common import arguments, environment, save, table
from service import memory_mib, served
from web_data import NAME, make
from web_page import measure_page
from web_peers import SERVICE, measure_tools
from web_peers import SIZES as PHOTOS

SIZES = (1000, 10_000, 1_000_000)
# Requests of pages to other hosts fail, and are counted.
_LOOPBACK = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost"
# The most that each figure may be at each size.
AIMS: dict[str, tuple[float, float, float]] = {
    "reopen to usable page, ms": (2000, 2000, 3000),
    "first contentful paint, on disk": (400, 400, 500),
    "shell usable, on disk": (800, 800, 800),
    "40 thumbnails, first made": (2500, 2500, 2500),
    "40 thumbnails, on disk": (1000, 1000, 1000),
    "requests of the first page": (60, 60, 60),
    "kB of the first page": (1000, 1000, 1000),
    "other hosts, on disk": (0, 0, 0),
    "scroll 400 px a frame, p50": (17, 17, 17),
    "scroll 400 px a frame, p95": (50, 50, 50),
    "scroll 400 px a frame, longest": (250, 250, 250),
    "scroll 4000 px a frame, p50": (17, 17, 50),
    "scroll 4000 px a frame, p95": (33, 33, 100),
    "last image": (300, 300, 500),
    "key to focus": (50, 50, 50),
    "accept to next group": (100, 100, 100),
    "filter to count": (500, 500, 500),
    "filter to images": (200, 300, 500),
    "filter to images, tiles of the app": (200, 300, 500),
    "edit confirmed": (300, 300, 300),
    "JS heap, MB": (80, 80, 80),
    "elements of the grid": (800, 800, 800),
    "elements of the queue": (800, 800, 800),
    "server memory, MiB": (350, 450, 2048),
    "boot path, kB": (120, 120, 120),
    "boot path compressed, kB": (40, 40, 40),
    "files of the boot path": (30, 30, 30),
}


def main() -> None:
    """Measure, print and write."""
    parser = arguments(__doc__)
    parser.add_argument("--rows", type=int, nargs="*", default=list(SIZES), choices=SIZES, help="of the app alone")
    parser.add_argument("--keep", type=Path, help="folder for the workspaces, which a later run uses again")
    parser.add_argument("--photos", type=int, nargs="*", default=list(PHOTOS), help="photographs for all tools")
    parser.add_argument("--rounds", type=int, default=3, help="turns of each tool")
    options = parser.parse_args()
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        sys.exit("Chromium is absent: install it, so that it is on the PATH")
    python = environment(options.peers, SERVICE)
    found: dict[int, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory(prefix="bench-web-") as scratch, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", _LOOPBACK])
        browser.new_page().goto("data:text/html,<p>The browser runs already when the app is opened.")
        for rows in options.rows:
            workspace = (options.keep or Path(scratch)) / f"rows-{rows}"
            if not workspace.exists():
                make(workspace, rows)
            found[rows] = _measure(browser, workspace, rows, python)
        if found:
            _print(found)
            save("web", {"sizes": {str(rows): figures for rows, figures in found.items()}})
        if options.photos:
            tools = measure_tools(browser, options.data, options.peers, options.photos, options.rounds)
            save("web_peers", {"photographs": tools})
        browser.close()


def _measure(browser: Browser, workspace: Path, rows: int, python: Path) -> dict[str, Any]:
    """Return the figures of one size; the server is run by *python*."""
    shutil.rmtree(workspace / "cache" / "thumbnails", ignore_errors=True)
    began = time.perf_counter()
    with served(workspace, python) as (site, pid):
        started = 1000 * (time.perf_counter() - began)
        page = browser.new_page(base_url=site)
        page.goto(f"/d/{NAME}/pictures")
        page.get_by_role("gridcell").first.wait_for()
        reopened = 1000 * (time.perf_counter() - began)
        page.context.close()
        shutil.rmtree(workspace / "cache" / "thumbnails", ignore_errors=True)
        figures: dict[str, Any] = {"server starts, ms": started, "reopen to usable page, ms": reopened}
        figures |= measure_page(browser, site, rows)
        figures["server memory, MiB"] = memory_mib(pid)
    return {**figures, **_boot_path()}


def _boot_path() -> dict[str, float]:
    """Return the size of what the first page loads before its data."""
    static = Path(framedex.web.__file__).parent / "static"
    index = (static / "index.html").read_text(encoding="utf-8")
    files = [(static / name).read_bytes() for name in re.findall(r'(?:src|href)="/static/([^"]+\.(?:js|css))"', index)]
    return {
        "boot path, kB": sum(map(len, files)) / 1000,
        "boot path compressed, kB": sum(len(gzip.compress(each)) for each in files) / 1000,
        "files of the boot path": len(files),
    }


def _print(found: dict[int, dict[str, Any]]) -> None:
    names = list(dict.fromkeys(name for figures in found.values() for name in figures))
    rows = [[name, *(_cell(name, size, figures) for size, figures in found.items())] for name in names]
    print(table(["milliseconds, unless named", *(f"{size:,} rows" for size in found)], rows))
    missed = [name for name in AIMS if any("MISSED" in _cell(name, size, each) for size, each in found.items())]
    print(f"missed: {', '.join(missed) or 'none'}")


def _cell(name: str, size: int, figures: dict[str, Any]) -> str:
    value = figures.get(name)
    if value is None or isinstance(value, bool):
        return {None: "-", True: "yes", False: "no"}[value]
    text = f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:,.1f}"
    if name not in AIMS:
        return text
    aim = AIMS[name][SIZES.index(size)]
    return f"{text} (≤ {aim:g}){'' if value <= aim else ' MISSED'}"


if __name__ == "__main__":
    main()
