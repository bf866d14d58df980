"""The place of a test: a workspace, a server in a process of its own, pages, commands."""

import subprocess
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa
from playwright.sync_api import Page

from framedex import Dataset, Workspace
from tests.gallery import SETTINGS
from tests.image_files import photo, write
from tests.programs import Program, completed
from tests.service.test_server import ENVIRONMENT, Served

NAME = "web"
LEVELS = (0.06, 0.11, 0.21, 0.31, 0.51)
_PHOTOS, _DIMENSION, _MEMBERS, _CLASSES = 64, 16, 50, 40
_COPIES, _MISLABELLED = 0.02, 0.02  # shares of the rows


class Place:
    """A workspace with what a test does to it; the server, commands and the workspace are closed at the end.

    Args:
        folder: for all files of the test.
        open_page: opens pages.

    Attributes:
        workspace_path: the workspace.
    """

    def __init__(self, folder: Path, open_page: Callable[..., Page]) -> None:
        self.folder, self.workspace_path = folder, folder / "workspace"
        self._open_page, self._stack = open_page, ExitStack()
        self._workspace: Workspace | None = None
        self._server: Served | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def workspace(self) -> Workspace:
        """The workspace, opened in this process beside the server's."""
        if self._workspace is None:
            self._workspace = self._stack.enter_context(Workspace(self.workspace_path, settings=SETTINGS))
        return self._workspace

    @property
    def url(self) -> str:
        """The address of the server."""
        assert self._server is not None
        return self._server.url

    def vectors(self, rows: int) -> Dataset:
        """Make a dataset of clustered vectors with copies and wrong labels, whose rows name a few images."""
        draw = np.random.default_rng(0)
        centres = draw.standard_normal((rows // _MEMBERS, _DIMENSION))
        clusters = draw.integers(len(centres), size=rows)
        vectors = centres[clusters] + 0.35 * draw.standard_normal((rows, _DIMENSION))
        copies = draw.choice(rows, int(rows * _COPIES), replace=False)
        originals = draw.integers(rows, size=len(copies))
        clusters[copies] = clusters[originals]
        vectors[copies] = vectors[originals] + 0.01 * draw.standard_normal((len(copies), _DIMENSION))
        wrong = draw.random(rows) < _MISLABELLED
        classes = np.where(wrong, draw.integers(_CLASSES, size=rows), clusters % _CLASSES)
        columns = {
            "uri": [str(self._linked(number)) for number in range(rows)],
            "embedding": pa.array(list(vectors.astype(np.float32)), pa.list_(pa.float32())),
            "label": [f"class {number:02}" for number in classes.tolist()],
        }
        return self.workspace.create_dataset(NAME, pa.table(columns), thresholds=LEVELS)

    def _linked(self, number: int) -> Path:
        """Return the path of a row: a link to one of a few images."""
        image, path = self.folder / "photos" / f"{number % _PHOTOS:02}.jpg", self.folder / "files" / f"{number:07}.jpg"
        if not image.exists():
            write(image, photo(number))
        path.parent.mkdir(exist_ok=True)
        path.hardlink_to(image)
        return path

    def serve(self, port: str = "0") -> None:
        """Start the server."""
        self._server = Served(self.workspace_path, "--port", port, LOG_LEVEL="WARNING")
        self._stack.callback(self._server.kill)

    def kill(self) -> None:
        """Kill the server."""
        assert self._server is not None
        self._server.kill()

    def page(self, path: str, **options: Any) -> Page:
        """Open a page of the server, which is closed before it; options as of ``open_page``."""
        page = self._open_page(self, path, **options)
        self._stack.callback(page.close)
        return page

    def command(self, *arguments: str) -> str:
        """Run a command of Framedex on the workspace; return what it printed."""
        done = completed(self._arguments(arguments), env=ENVIRONMENT)
        done.check_returncode()
        return done.stdout

    def start(self, *arguments: str) -> Program:
        """Start a command of Framedex on the workspace."""
        output = subprocess.DEVNULL
        process = Program(self._arguments(arguments), stdout=output, stderr=output, env=ENVIRONMENT)
        self._stack.callback(process.wait)
        self._stack.callback(process.kill)
        return process

    def _arguments(self, arguments: tuple[str, ...]) -> list[object]:
        return ["-m", "framedex", *arguments, "--workspace", self.workspace_path]
