"""`framedex open` in the browser: images while they are read, then the way to the findings."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.site import Site
from tests.cli.test_open import STEP, Opened
from tests.gallery import NAMES, make_gallery

Open = Callable[..., Page]


@pytest.mark.slow
def test_open__shows_images_then_findings(site: Site, open_page: Open, tmp_path: Path) -> None:
    """The page waits for the first images, shows them, follows the reading, and leads to the findings at its end."""
    make_gallery(tmp_path / "photos")
    opened = Opened(tmp_path / "ws", "open", tmp_path / "photos", "--port", 0, "--no-browser", gate=tmp_path / "gate")
    try:
        page = open_page(replace(site, url=opened.site), opened.url.removeprefix(opened.site), allowed=("409",))
        expect(page.locator(".tile.shown").first).to_be_visible()
        expect(page.locator(".count")).to_have_text(f"{2 * STEP} images")
        expect(page.get_by_text("Being created: images that were read can be looked at")).to_be_visible()
        (tmp_path / "gate").touch()
        expect(page.locator(".count")).to_have_text(f"{len(NAMES)} images")
        page.get_by_role("link", name="Findings").click()
        expect(page.get_by_role("heading", name="Damaged")).to_be_visible()
        expect(page).to_have_url(f"{opened.site}/d/photos")
        page.close()
    finally:
        opened.kill()
