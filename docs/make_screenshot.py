"""Take docs/report.png, the screenshot of a report in the README, with Chromium and Playwright.

Usage: pip install 'framedex[demo]' playwright, then python docs/make_screenshot.py [--browser /usr/bin/chromium].
The images in it are sample data of scikit-image and scikit-learn.
"""

import argparse
import tempfile
from pathlib import Path

import cv2

from framedex import Workspace, demo

WIDTH = 880
MAX_BYTES = 300_000
TARGET = Path(__file__).with_name("report.png")


def write_report(folder: Path) -> Path:
    """Write the report of the demo into *folder*; return its path."""
    with Workspace(folder / "workspace") as workspace:
        dataset, truth = demo.build(workspace)
        outcomes = demo.compare(dataset, truth)
        return dataset.report(folder / "report.html", extra=demo.outcome_html(outcomes))


def photograph(report: Path, target: Path, browser: str | None) -> None:
    """Write the top of a report, down to the images of the first issue type, to a PNG file."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        page = chromium.new_page(viewport={"width": WIDTH, "height": 1200}, color_scheme="light")
        page.goto(report.as_uri())
        images = page.locator(".row").first.bounding_box()
        assert images is not None, "a report of the demo has images with issues"
        bottom = images["y"] + images["height"] + 10
        page.screenshot(path=target, clip={"x": 0, "y": 0, "width": WIDTH, "height": bottom})
        chromium.close()
    cv2.imwrite(str(target), cv2.imread(str(target)), [cv2.IMWRITE_PNG_COMPRESSION, 9])
    size = target.stat().st_size
    assert size < MAX_BYTES, f"{target} has {size:,} bytes; choose a smaller part"


def main() -> None:
    """Take the screenshot."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--browser", help="path of Chromium; by default the one that Playwright installed")
    parser.add_argument("--report", type=Path, help="a report that is there already")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        report = arguments.report or write_report(Path(folder))
        photograph(report.resolve(), TARGET, arguments.browser)


if __name__ == "__main__":
    main()
