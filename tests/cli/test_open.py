"""`framedex open`: from a folder to the app by one command, again, interrupted, and with what it refuses."""

import json
import os
import shutil
import signal
import socket
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from framedex import Workspace
from framedex.cli import main
from tests.gallery import SETTINGS, fill
from tests.laws import rest_slow
from tests.pauses import wait_until
from tests.processes import start as start_process
from tests.programs import ROOT, Program

IMAGES = 40
STEP = 8
ENVIRONMENT = {
    name: value
    for name, value in os.environ.items()
    if not name.startswith(("FRAMEDEX_", "DISABLE_AUTH"))
    and name not in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER", "PYTHONUNBUFFERED")
}
# Runs the command. With a first argument reading waits after two steps of eight images, until a file of that name is
# there, or the process is to stop. At the end it prints how many images it read.
PROGRAM = f"""
import sys
from pathlib import Path
from framedex.cli import main
from framedex.jobs.ingest import encoding, ingest
from tests.laws import rest_slow
from tests.pauses import wait_until
from tests.tuning import Tuning
from tests.laws import rest_slow
from tests.laws import rest_slow

tuning = Tuning()
tuning.encoded_images = tuning.committed_rows = {STEP}
gate, report, encode = sys.argv.pop(1), ingest._Meter.report, encoding.file_vectors
read = []

def count(files, encoder, vectors):
    read.extend(files)
    return encode(files, encoder, vectors)

def report_and_wait(meter):
    report(meter)
    if gate and len(read) >= {2 * STEP}:
        wait_until(lambda: report(meter) or Path(gate).exists())  # a report raises once the task is to stop

encoding.file_vectors, ingest._Meter.report = count, report_and_wait
try:
    main()
finally:
    print("read", len(read), flush=True)
"""


class Opened:
    """A command in a process of its own.

    Args:
        home: of the workspace.
        arguments: of the command.
        gate: the file that lets reading go on; empty to read without a stop.
        environment: further variables.

    Attributes:
        url: the address that the command prints.
        lines: the first two lines that it prints.
    """

    def __init__(self, home: Path, *arguments: object, gate: object = "", **environment: str) -> None:
        command = ["-c", PROGRAM, gate, *arguments, "--workspace", home]
        self.errors = home.parent / "errors.txt"
        with self.errors.open("w") as errors:
            self.process = Program(
                command,
                stdout=subprocess.PIPE,
                stderr=errors,
                env={**ENVIRONMENT, **environment},
                cwd=ROOT,  # so that it can import from tests
            )
        assert self.process.stdout is not None
        self.lines = [self.process.stdout.readline(), self.process.stdout.readline()]
        self.url = next((word for word in self.lines[0].split() if word.startswith("http")), self.errors.read_text())
        self.site = self.url.partition("/d/")[0]

    def ask(self, path: str, body: Any = None) -> Any:
        """Return the JSON of a path of the API."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"{self.site}/api/v1{path}", data=data, headers=headers)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)

    def dataset(self, name: str = "photos") -> dict[str, Any]:
        """Return the record of a dataset."""
        return next(dict(each) for each in self.ask("/datasets") if each["display_name"] == name)

    def rows(self) -> int:
        """Return the number of images that the app shows of the dataset; 0 before the first."""
        try:
            return int(self.ask(f"/dataset/{self.dataset()['id']}/results", {})["count"])
        except urllib.error.HTTPError as error:
            if error.code != 409:
                raise
            return 0

    def end(self, number: int | None = None) -> tuple[int, str]:
        """Send a signal, if there is one; return the status of the process and the rest of its output."""
        if number is not None:
            self.process.send_signal(number)
        assert self.process.stdout is not None
        rest = self.process.stdout.read()
        return self.process.wait(60), rest

    def kill(self) -> None:
        """End the process at once, if it runs."""
        self.process.kill()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()


Open = Callable[..., Opened]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Open]:
    """Start commands on a workspace; all end with the test."""
    running = []

    def started(*arguments: object, **options: Any) -> Opened:
        running.append(Opened(tmp_path / "ws", *arguments, **options))
        return running[-1]

    yield started
    for each in running:
        each.kill()


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """A folder of images."""
    return fill(tmp_path / "photos", IMAGES)


def is_ready(opened: Opened) -> Callable[[], bool]:
    """Return a test whether the dataset is indexed."""
    return lambda: opened.dataset()["status_new"] == "READY"


@pytest.mark.slow
def test_open__a_folder_then_again(start: Open, photos: Path, tmp_path: Path) -> None:
    """A folder is shown while it is read; the next call adds what is new and replaces what has changed."""
    gate = tmp_path / "gate"
    first = start("open", photos, "--port", 0, gate=gate)
    assert first.url.endswith("/d/photos/pictures")
    assert first.lines[0] == f"Framedex shows photos at {first.url} (Ctrl-C stops it)\n"
    assert first.lines[1] == f"creating photos from {photos}: {IMAGES} files\n"
    wait_until(lambda: first.rows() == 2 * STEP)
    assert first.dataset()["status_new"] == "INDEXING"
    gate.touch()
    wait_until(is_ready(first))
    assert first.rows() == IMAGES
    assert first.end(signal.SIGTERM) == (0, f"read {IMAGES}\n")
    fill(photos / "more", 30, first_seed=500)
    shutil.copy(photos / "more" / "000.png", photos / "000.png")
    gate.unlink()
    second = start("open", f"{photos}/", "--port", 0, gate=gate)
    assert second.url.endswith("/d/photos")
    assert second.lines[1] == f"adding what is new to photos from {photos}: {IMAGES + 30} files\n"
    assert second.rows() == IMAGES  # the old state
    gate.touch()
    wait_until(lambda: second.rows() == IMAGES + 30)
    wait_until(is_ready(second))
    assert second.end(signal.SIGINT) == (0, "read 31\n")
    with Workspace(tmp_path / "ws", read_only=True) as workspace:
        assert workspace.dataset("photos").skipped["changed files, replaced"] == 1


@pytest.mark.slow
@pytest.mark.parametrize("number", rest_slow([signal.SIGKILL, signal.SIGINT, signal.SIGTERM], 0, long=1))
def test_open__continues_what_was_interrupted(start: Open, photos: Path, tmp_path: Path, number: int) -> None:
    """A signal in the middle says that the dataset is not complete; the next call continues from the checkpoint."""
    first = start("open", photos, "--port", 0, gate=tmp_path / "gate")
    wait_until(lambda: first.rows() == 2 * STEP)
    status, rest = first.end(number)
    if number != signal.SIGKILL:
        hint = "the next `framedex open` or `framedex serve` continues it"
        assert (status, rest) == (0, f"photos is not complete yet; {hint}\nread {2 * STEP}\n")
    second = start("open", photos, "--port", 0)
    assert second.lines[1] == f"continuing to create photos from {photos}: {IMAGES} files\n"
    wait_until(is_ready(second))
    assert second.rows() == IMAGES
    assert second.end(signal.SIGINT) == (0, f"read {IMAGES - 2 * STEP}\n")
    with Workspace(tmp_path / "ws", settings=SETTINGS) as workspace:
        assert workspace.check().findings == []


@pytest.mark.slow
def test_open__by_the_server_of_the_workspace(start: Open, photos: Path, tmp_path: Path) -> None:
    """The server that is there shows the folder; the command reads it, can be interrupted, and ends when it is done."""
    gate = tmp_path / "gate"
    other = fill(tmp_path / "other", 1)
    server = start("open", other, "--port", 0)
    first = start("open", photos, "--port", 0, gate=gate)
    assert first.lines[0] == f"Framedex shows photos at {server.site}/d/photos/pictures (served by another process)\n"
    watching = start("open", photos)
    assert watching.lines[1] == "photos is being created by another call\n"
    assert watching.end() == (0, "read 0\n")
    wait_until(lambda: server.rows() == 2 * STEP)
    status, rest = first.end(signal.SIGINT)
    assert (status, rest.splitlines()[0].partition(";")[0]) == (130, "photos is not complete yet")
    second = start("open", photos)
    assert second.lines[1].startswith("continuing to create photos from ")
    assert second.end()[0] == 0
    assert server.rows() == IMAGES
    third = start("open", photos / "..", "--name", "all")
    assert (third.process.wait(60), "holds the workspace" in third.errors.read_text()) == (1, True)


@pytest.mark.slow
def test_open__twice_at_once(start: Open, photos: Path) -> None:
    """Of two calls at the same moment one serves and the other one uses its server; there is one dataset."""
    with ThreadPoolExecutor(2) as threads:
        both = list(threads.map(lambda _: start("open", photos, "--port", 0), range(2)))
    assert both[0].url.removesuffix("/pictures") == both[1].url.removesuffix("/pictures")
    (serving,) = (each for each in both if "Ctrl-C stops it" in each.lines[0])
    (other,) = (each for each in both if "served by another process" in each.lines[0])
    assert other.end()[0] == 0
    wait_until(is_ready(serving))
    assert (serving.rows(), len(serving.ask("/datasets"))) == (IMAGES, 1)


@pytest.mark.slow
def test_open__opens_a_browser(start: Open, photos: Path, tmp_path: Path) -> None:
    """The browser of the user gets the address of the page; one that fails, or --no-browser, changes nothing else."""
    browser, seen = tmp_path / "browser", tmp_path / "seen"
    browser.write_text(f'#!/bin/sh\necho "$1" >> {seen}\nexit 1\n')
    browser.chmod(0o755)
    inner = fill(photos / "a b", 1)
    first = start("open", photos, "--port", 0, BROWSER=f"{browser} %s")
    wait_until(lambda: seen.exists() and bool(seen.read_text()))
    wait_until(is_ready(first))
    assert start("open", photos, "--no-browser", BROWSER=f"{browser} %s").end()[0] == 0
    within = start("open", inner, BROWSER=f"{browser} %s")
    assert within.end()[0] == 0
    vql = '[{"folder":{"op":"starts","value":"a b"}}]'
    assert unquote(within.url) == f"{first.site}/d/photos/pictures?f={vql}"
    assert seen.read_text().splitlines() == [first.url, within.url]


@pytest.fixture
def refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Run the command, which must fail with one line; return it. No workspace is made."""

    def call(*arguments: object, home: Path = tmp_path / "ws", status: int = 1, is_new: bool = True) -> str:
        with pytest.raises(SystemExit) as exit_:
            main(["open", *map(str, arguments), "--workspace", str(home), "--no-browser"])
        out, error = capsys.readouterr()
        assert (exit_.value.code, out, error.count("\n")) == (status, "", 1)
        assert not is_new or not home.exists()
        return error.removeprefix("error: ")

    return call


def test_open__refuses_what_is_no_folder_of_images(refused: Callable[..., str], tmp_path: Path) -> None:
    """Each wrong argument is one line with what would be right, and leaves nothing."""
    images = fill(tmp_path / "images", 2)
    (tmp_path / "empty").mkdir()
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "notes.txt").write_text("no image")
    expected = {
        (tmp_path / "nothing",): "there is nothing at",
        (images / "000.png",): f"its folder is {str(images)!r}",
        (images / "000.png", images / "001.png"): "takes one folder, not 2 paths",
        (f"{images}/*.png",): "name the folder that has the images",
        ("s3://bucket/photos",): "`framedex create NAME s3://…` reads a bucket",
        ("https://example.org/photos",): "takes one folder of this machine",
        (tmp_path / "empty",): "it is empty",
        (tmp_path / "texts",): "it holds 1 other files",
        (tmp_path,): "holds the workspace",
        (images, "--name", "a/b"): "must not contain slashes",
    }
    for arguments, sentence in expected.items():
        assert sentence in refused(*arguments)
    assert "Missing argument 'FOLDER'" in refused(status=2)
    assert "--port" in refused(images, "--port", "99999", status=2)


@pytest.mark.slow
def test_open__refuses_the_workspace(refused: Callable[..., str], tmp_path: Path) -> None:
    """Neither the workspace nor what is in it is a folder of images; a hidden workspace is no part of a folder."""
    images = fill(tmp_path / "images", 1)
    Workspace(images / "ws").close()
    Workspace(images / ".ws").close()
    assert "is the workspace; `framedex serve` opens a workspace" in refused(
        images / "ws", home=images / "ws", is_new=False
    )
    assert "is within the workspace" in refused(images / "ws" / "datasets", home=images / "ws", is_new=False)
    assert "name a folder beside it" in refused(images, home=images / "ws", is_new=False)
    (tmp_path / "link").symlink_to(images / "ws")
    assert "is the workspace" in refused(tmp_path / "link", home=images / "ws", is_new=False)
    with socket.create_server(("127.0.0.1", 0)) as taken:  # ends the command before it serves
        port = taken.getsockname()[1]
        assert "cannot listen at" in refused(images, "--port", port, home=images / ".ws", is_new=False)


def test_open__needs_a_free_port(refused: Callable[..., str], tmp_path: Path) -> None:
    """A port in use is one line; no dataset and no workspace is made."""
    images = fill(tmp_path / "images", 1)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert refused(images, "--port", port).startswith(f"cannot listen at 127.0.0.1:{port}: ")
        Workspace(tmp_path / "old").close()
        assert refused(images, "--port", port, home=tmp_path / "old", is_new=False).startswith("cannot listen at ")
    with Workspace(tmp_path / "old") as workspace:
        assert workspace.datasets() == []


@pytest.mark.slow
def test_open__a_name_of_another_folder(refused: Callable[..., str], tmp_path: Path) -> None:
    """A name that another folder's dataset has is refused with the option that gives another one."""
    with Workspace(tmp_path / "old", settings=SETTINGS) as workspace:
        workspace.create_dataset("photos", fill(tmp_path / "images", 1))
    other = fill(tmp_path / "photos", 1)
    for options in ((), ("--name", "photos")):
        line = refused(other, *options, "--port", 0, home=tmp_path / "old", is_new=False)
        assert f"the name 'photos' is taken by another dataset of {tmp_path / 'images'}" in line
        assert "(--name NAME)" in line


@pytest.mark.slow
def test_open__without_rights(tmp_path: Path) -> None:
    """A folder that cannot be read, and a workspace that cannot be written, are refused in one line."""
    images, home = fill(tmp_path / "images", 1), tmp_path / "ws"
    Workspace(home).close()
    code = "import sys; from framedex.cli import main; main(sys.argv[1:])"
    for locked, mode, sentence in ((images, 0o000, "cannot read the folder"), (home, 0o555, "cannot be written")):
        locked.chmod(mode)
        process = start_process(code, "open", images, "--workspace", home, "--port", 0, unprivileged=True)
        _, error = process.communicate(timeout=60)
        locked.chmod(0o755)
        assert (process.returncode, sentence in error, error.count("\n")) == (1, True, 1)
