"""The place of a check of ``acceptance.py``: a workspace, a server in a process of its own, pages, commands."""

import json
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, Self

import numpy as np
from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect

from framedex import Dataset, Workspace
from service import Server, server_of
from web_data import NAME, make

ARGUMENTS = [
    "--no-sandbox",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
]


class Place:
    """What a check works with; the server, the workspace and the pages are closed at its end.

    Args:
        browser: shows the pages.
        folder: for all files of the check.
        large: the workspace of a million rows; None where there is none.

    Attributes:
        problems: what pages logged as errors, and requests to other hosts.
    """

    def __init__(self, browser: Browser, folder: Path, large: Path | None) -> None:
        self._browser, self.folder, self._large = browser, folder, large
        self.workspace_path = folder / "workspace"
        self._workspace: Workspace | None = None
        self._server: Server | None = None
        self._contexts: list[BrowserContext] = []
        self._processes: list[subprocess.Popen[str]] = []
        self._allowed: tuple[str, ...] = ()
        self.problems: list[str] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for context in self._contexts:
            context.close()
        for process in self._processes:
            if process.poll() is None:
                process.kill()
            process.wait(60)
        self.stop()
        if self._workspace is not None:
            self._workspace.close()

    @property
    def workspace(self) -> Workspace:
        """The workspace, opened in this process beside the server's."""
        if self._workspace is None:
            self._workspace = Workspace(self.workspace_path)
        return self._workspace

    @property
    def url(self) -> str:
        """The address of the server."""
        assert self._server is not None
        return self._server.url

    def use_large(self) -> Dataset:
        """Use the workspace of a million rows."""
        assert self._large is not None
        self.workspace_path = self._large
        return self.workspace.dataset(NAME)

    def demo(self) -> Dataset:
        """Make the dataset of ``framedex demo``."""
        self.command("demo", "--output", str(self.folder / "report.html"))
        return self.workspace.dataset("demo")

    def vectors(self, rows: int) -> Dataset:
        """Make a dataset of clustered vectors with copies and wrong labels, whose rows name photographs."""
        make(self.workspace_path, rows)
        return self.workspace.dataset(NAME)

    def serve(self, port: int = 0, **environment: str) -> str:
        """Start the server; return its address."""
        self._server = server_of(self.workspace_path, port=port, **environment)
        return self._server.url

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        """End the server."""
        if self._server is not None:
            self._server.process.send_signal(how)
            self._server.process.wait(60)
            self._server = None

    def page(self, path: str, *, allowed: tuple[str, ...] = (), **options: Any) -> Page:
        """Open a page.

        Args:
            path: its address.
            allowed: parts of errors that the browser may log.
            options: of the browser's context.
        """
        context = self._browser.new_context(**{"viewport": {"width": 1400, "height": 900}, **options})
        context.set_default_timeout(30_000)
        self._contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: self._note(message.type, message.text, allowed))
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        page.on("request", lambda request: self._check_host(request.url))
        page.goto(self.url + path)
        return page

    def _note(self, kind: str, text: str, allowed: tuple[str, ...]) -> None:
        if kind == "error" and not any(each in text for each in allowed):
            self.problems.append(text)

    def _check_host(self, url: str) -> None:
        if not url.startswith(("http://127.0.0.1:", "data:", "blob:")):
            self.problems.append(f"asked for {url}")

    def command(self, *arguments: str, typed: str | None = None) -> str:
        """Run a command of Framedex on the workspace; return what it printed."""
        done = subprocess.run(self._program(arguments), capture_output=True, text=True, input=typed, check=False)
        if done.returncode:
            raise RuntimeError(f"framedex {' '.join(arguments)}: {done.stderr}")
        return done.stdout

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start a command of Framedex on the workspace."""
        process = subprocess.Popen(
            self._program(arguments), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True
        )
        self._processes.append(process)
        return process

    def _program(self, arguments: tuple[str, ...]) -> list[str]:
        return [sys.executable, "-m", "framedex", *arguments, "--workspace", str(self.workspace_path)]

    def json(self, *arguments: str) -> Any:
        """Run a command and return what it printed as JSON."""
        return json.loads(self.command(*arguments, "--json"))


def number_in(locator: Locator) -> int:
    """Return the first number in the text of an element."""
    found = re.search(r"\d[\d,]*", locator.inner_text())
    assert found is not None
    return int(found.group().replace(",", ""))


def saved(page: Page) -> None:
    """Wait until the server has confirmed all changes of a page."""
    expect(page.get_by_text(re.compile("^Saving "))).to_have_count(0)


def boxes_of(images: Path, count: int) -> dict[str, list[list[int]]]:
    """Write wide and tall images with a bright rectangle each, half of them turned by EXIF; return the rectangles."""
    import cv2
    from PIL import Image

    images.mkdir(parents=True)
    rectangles, draw = {}, np.random.default_rng(0)
    for number in range(count):
        size = (640, 480) if number < count // 2 else (420, 640)
        pixels = cv2.resize(draw.integers(0, 90, (6, 8, 3), np.uint8), size, interpolation=cv2.INTER_CUBIC)
        x, y, width, height = 40 + 30 * number, 50 + 30 * number, 200, 120
        pixels[y : y + height, x : x + width] = (255, 40, 40)
        name, orientation = f"{number}.jpg", 6 if number % 2 else 1
        stored = np.rot90(pixels) if orientation == 6 else pixels  # EXIF 6: turned clockwise when it is shown
        exif = Image.Exif()
        exif[0x0112] = orientation
        Image.fromarray(np.ascontiguousarray(stored)).save(images / name, quality=95, subsampling=0, exif=exif)
        rectangles[name] = [[x, y, width, height]]
    lines = ["filename,col_x,row_y,width,height,label"]
    lines += [f"{name},{','.join(map(str, box))},thing" for name, boxes in rectangles.items() for box in boxes]
    (images / "object_annotations.csv").write_text("\n".join(lines), encoding="utf-8")
    return rectangles
