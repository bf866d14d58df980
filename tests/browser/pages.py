"""A browser, and the pages that it shows in a test.

Chromium is found on the PATH, best as the shell that has no windows, which needs a quarter less time. Where it is
missing tests are skipped, unless ``FRAMEDEX_TEST_BROWSER`` is set, as in CI: then they fail. A page that logs an error,
or asks for anything of another host, fails its test. Pages move nothing smoothly unless a test asks for it: each frame
is drawn by the processor.
"""

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, expect, sync_playwright

from framedex.web import BUILD_HINT, AppPages

expect.set_options(timeout=15_000)  # machines are shared
_NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
CHROMIUM = next(filter(None, map(shutil.which, _NAMES)), None)
_READS_PIXELS = "GPU stall due to ReadPixels"  # a hint of graphics that the processor computes
MUST_RUN = bool(os.environ.get("FRAMEDEX_TEST_BROWSER"))


class Served(Protocol):
    """A service whose pages a browser shows."""

    @property
    def url(self) -> str:
        """Its address."""


@contextmanager
def running_browser() -> Iterator[Browser]:
    """Run a browser; skip or fail the test if that is not possible."""
    for problem in (
        None if CHROMIUM else "no chromium on the PATH",
        None if AppPages().exist else BUILD_HINT,
    ):
        if problem is not None:
            (pytest.fail if MUST_RUN else pytest.skip)(problem)
    arguments = [
        "--no-sandbox",
        "--disable-quic",
        "--disable-background-networking",
        "--disable-component-update",
        "--use-angle=swiftshader",
        "--enable-unsafe-swiftshader",
        "--disable-gpu-compositing",
        "--disable-gpu-rasterization",
    ]
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)
        yield running
        running.close()


@contextmanager
def opened_pages(browser: Browser) -> Iterator[Callable[..., Page]]:
    """Yield a function that opens pages; at the end none has logged an error or asked another host."""
    contexts, problems = [], []

    def opened(site: Served, path: str = "/", *, allowed: tuple[str, ...] = (), **options: Any) -> Page:
        options = {"viewport": {"width": 1280, "height": 800}, "reduced_motion": "reduce", **options}
        context = browser.new_context(base_url=site.url, **options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(15_000)

        def log(message: ConsoleMessage) -> None:
            known = (*allowed, _READS_PIXELS)
            if message.type in {"error", "warning"} and not any(each in message.text for each in known):
                problems.append(message.text)

        page.on("console", log)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("request", lambda request: _check_host(request.url, site.url, problems))
        page.goto(path)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert not problems, problems


def check_accessible(page: Page, *, context: str | None = None, themes: Sequence[str] = ("light", "dark")) -> None:
    """Check that axe finds nothing on a page, or in a part of it, in some themes."""
    from axe_playwright_python.sync_playwright import Axe

    for theme in themes:
        page.emulate_media(color_scheme=theme)  # type: ignore[arg-type] # these are themes
        found = Axe().run(page, context=context)
        assert found.response["violations"] == [], found.generate_report()


def _check_host(url: str, site: str, problems: list[str]) -> None:
    if not url.startswith((site, "data:", "blob:")):
        problems.append(f"the page asked for {url}")
