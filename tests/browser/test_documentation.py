"""The site of the documentation: a strict build of it, what it names, and its pages in a browser."""

import os
import re
import subprocess
import sys
import zlib
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from playwright.sync_api import Browser, expect

import framedex
from framedex.cli.program import app
from framedex.vql import registry

ROOT = Path(__file__).parent.parent.parent
pytestmark = pytest.mark.slow
_ASSET = re.compile(r"<(?:script|img|link|iframe|source)\b[^>]*?(?:src|href)=[\"']?(?P<address>[^\"'\s>]+)")


class _Quiet(SimpleHTTPRequestHandler):
    """A server of files that logs no request."""

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - a name of the base class
        """Log nothing."""


def build(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Build the site strictly into a folder."""
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder), *options]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built strictly: a broken link, a page without a place or an unknown reference fails the build."""
    made = tmp_path_factory.mktemp("site")
    process = build(made)
    assert process.returncode == 0, process.stderr
    return made


@pytest.fixture(scope="module")
def address(folder: Path) -> Iterator[str]:
    """The address of a server of the folder above the site, so that the site has a prefix."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=folder.parent))
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/{folder.name}"
    server.shutdown()
    server.server_close()


def test_reference__has_all_public_names(folder: Path) -> None:
    """The site documents each public name of the package, each key of filters, and each command."""
    inventory = (folder / "objects.inv").read_bytes().split(b"\n", 4)[4]
    names = {line.split()[0] for line in zlib.decompress(inventory).decode().splitlines()}
    wanted = {f"framedex.{name}" for name in framedex.__all__} | {f"framedex.vql.{key}" for key in registry.__all__}
    assert wanted - names == set()
    commands = (folder / "commands.html").read_text(encoding="utf-8")
    known = [command.name or command.callback.__name__ for command in app.registered_commands if command.callback]
    assert [name for name in known if f'id="framedex-{name.replace("_", "-")}"' not in commands] == []


def test_build__fails_for_what_is_broken(tmp_path: Path) -> None:
    """A link or an anchor that leads nowhere, a page without a place and an unknown reference fail the build."""
    pages = tmp_path / "docs"
    pages.mkdir()
    (pages / "index.md").write_text("# Start\n\n[a](nowhere.md) [b](other.md#nowhere) [c][framedex.nowhere]\n")
    (pages / "other.md").write_text("# Other\n")
    (tmp_path / "mkdocs.yml").write_text(
        f"INHERIT: {ROOT / 'mkdocs.yml'}\ndocs_dir: {pages}\nhooks: []\nnav: [index.md]\nwatch: []\n"
    )
    process = build(tmp_path / "made", "--config-file", str(tmp_path / "mkdocs.yml"))
    assert process.returncode != 0
    for part in ("'nowhere.md'", "'#nowhere'", "other.md", "framedex.nowhere"):
        assert part in process.stderr, process.stderr


def test_assets__are_those_of_the_site(folder: Path) -> None:
    """No page names a script, style, font or image of another host, nor does a style sheet."""
    pages, styles = sorted(folder.rglob("*.html")), sorted(folder.rglob("*.css"))
    assert len(pages) > 40
    foreign = {
        asset["address"]
        for page in pages
        for asset in _ASSET.finditer(page.read_text(encoding="utf-8"))
        if re.match(r"(?i)(https?:)?//", asset["address"])
    }
    foreign |= {
        name for style in styles for name in re.findall(r"url\([\"']?((?:https?:)?//[^)]*)", style.read_text("utf-8"))
    }
    assert foreign == set()


@pytest.mark.parametrize("served", [True, False], ids=["served", "opened as files"])
def test_pages__ask_no_other_host(browser: Browser, folder: Path, address: str, *, served: bool) -> None:
    """Pages and the search work below any prefix and from files, ask nothing of another host, and log no error."""
    start = address if served else folder.as_uri()
    problems: list[str] = []
    context = browser.new_context()
    page = context.new_page()
    page.on("request", lambda request: None if request.url.startswith(start) else problems.append(request.url))
    page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto(f"{start}/index.html")
    page.get_by_role("link", name="Usual tasks").first.click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Usual tasks")
    page.goto(f"{start}/api/workspace.html")
    expect(page.get_by_role("heading", name="create_dataset").first).to_be_visible()
    page.get_by_role("textbox", name="Search").press_sequentially("label_is_right")
    found = page.locator(".md-search-result__link", has_text="label_is_right")  # not those of a part of the word
    found.first.click()
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    assert "label_is_right" in (page.locator("article").text_content() or "")
    context.close()
    assert problems == []
