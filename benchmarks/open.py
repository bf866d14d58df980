"""From a folder to images and findings in the browser: `framedex open`, and beside it fastdup with its gallery.

Each round makes a new workspace, whose tables were made before. Chromium runs already, and opens the page as soon as
the command has printed its address. Times are seconds from the start of the command. fastdup shows nothing before its
gallery is written, which Chromium then opens. Chromium must be on the PATH, and playwright installed.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

from common import arguments, environment, median, photos, run_worker, save, table, verdict
from framedex import Workspace

SIZES = (1000, 20_000)
AIM_S = 3.0
_ORIGINALS = 1000
_LONGEST_S = 1800
_SHOWN = "[...document.querySelectorAll('.tile.shown img')].some(each => each.complete && each.naturalWidth)"
_GALLERY = "[...document.images].some(each => each.complete && each.naturalWidth)"
Figures = dict[str, float]


def main() -> None:
    """Measure, print and write."""
    parser = arguments(__doc__)
    parser.add_argument("--photos", type=int, nargs="*", default=list(SIZES), help="numbers of photos")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--alone", action="store_true", help="without fastdup")
    options = parser.parse_args()
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        sys.exit("Chromium is absent: install it, so that it is on the PATH")
    peer = None if options.alone else environment(options.peers, "fastdup")
    found: dict[str, Any] = {}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for size in options.photos:
            with tempfile.TemporaryDirectory(prefix="bench-open-") as name:
                folder = _write_photos(photos(options.data)[:_ORIGINALS], Path(name) / "photos", size)
                found[str(size)] = _measure(browser, folder, peer, options.rounds)
            _print(size, found[str(size)])
        browser.close()
    save("open", {"photos": found, "load": os.getloadavg()[0]})


def _write_photos(originals: Sequence[Path], folder: Path, size: int) -> Path:
    """Write so many photos to a folder: copies of the originals, and beyond these hard links to the copies."""
    folder.mkdir()
    written: list[Path] = []
    for number in range(size):
        original = originals[number % len(originals)]
        path = folder / f"{number:05}-{original.name}"
        if number < len(originals):
            shutil.copy(original, path)
        else:
            os.link(written[number % len(originals)], path)
        written.append(path)
    return folder


def _measure(browser: Browser, folder: Path, peer: Path | None, rounds: int) -> dict[str, list[Figures]]:
    found: dict[str, list[Figures]] = {"framedex open": [], "again, nothing new": [], "fastdup": []}
    for _ in range(rounds):
        workspace = folder.parent / "workspace"
        shutil.rmtree(workspace, ignore_errors=True)
        Workspace(workspace).close()
        found["framedex open"].append(_opened(browser, folder, workspace, is_new=True))
        found["again, nothing new"].append(_opened(browser, folder, workspace, is_new=False))
        if peer is not None:
            found["fastdup"].append(_gallery(browser, folder, peer))
    return found


def _opened(browser: Browser, folder: Path, workspace: Path, *, is_new: bool) -> Figures:
    """Return the seconds from the start of the command to what it shows."""
    began = time.perf_counter()

    def passed() -> float:
        return time.perf_counter() - began

    options = ["--workspace", str(workspace), "--port", "0", "--no-browser"]
    command = [sys.executable, "-m", "framedex", "open", str(folder), *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        address = next(word for word in process.stdout.readline().split() if word.startswith("http"))
        figures = {"address": passed()}
        dataset = re.sub("/pictures$", "", address)
        page = _page(browser, f"{dataset}/pictures")
        page.wait_for_function(_SHOWN, timeout=1000 * _LONGEST_S)
        figures["first image"] = passed()
        page.context.close()
        page = _page(browser, dataset)
        page.wait_for_selector(".finding", timeout=1000 * _LONGEST_S)
        figures["first finding"] = passed()
        page.context.close()
        if is_new:
            site = dataset.partition("/d/")[0]
            _wait_until_ready(site)
            figures["complete"] = passed()
        return figures
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)


def _page(browser: Browser, address: str) -> Page:
    page = browser.new_context(bypass_csp=True, viewport={"width": 1400, "height": 900}).new_page()
    page.goto(address, wait_until="commit")
    return page


def _wait_until_ready(site: str) -> None:
    while True:
        with urllib.request.urlopen(f"{site}/api/v1/datasets") as answer:
            (dataset,) = json.load(answer)
        if dataset["status_new"] == "READY":
            return
        time.sleep(0.1)


def _gallery(browser: Browser, folder: Path, python: Path) -> Figures:
    """Return the seconds to the end of fastdup's run, to its gallery of outliers, and to an image of that."""
    shutil.rmtree(folder.parent / "gallery", ignore_errors=True)
    run = run_worker(python, "fastdup_gallery", folder)
    began = time.perf_counter()
    page = browser.new_page()
    page.goto(Path(run.result["page"]).as_uri(), wait_until="commit")
    page.wait_for_function(_GALLERY, timeout=60_000)
    shown_s = run.wall_s + time.perf_counter() - began
    page.close()
    return {"first image": shown_s, "first finding": shown_s, "complete": run.result["run_s"]}


def _print(size: int, found: dict[str, list[Figures]]) -> None:
    names = ["address", "first image", "first finding", "complete"]
    rows = [
        [name, *(median(each[key] for each in rounds) if key in rounds[0] else None for key in names)]
        for name, rounds in found.items()
        if rounds
    ]
    print(table([f"{size:,} photos, seconds", *names], rows))
    for name in ("framedex open", "again, nothing new"):
        value = median(each["first image"] for each in found[name])
        print(verdict(f"{name}, first image", value, AIM_S, at_most=True), flush=True)


if __name__ == "__main__":
    main()
