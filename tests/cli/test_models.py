"""The command line: models on this machine, fetched and added."""

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from framedex import Workspace
from framedex.cli import main
from framedex.settings import Settings
from tests.enrichments import paint
from tests.environment import Environment
from tests.extras import need
from tests.pauses import wait_until
from tests.processes import is_blocked
from tests.publisher import Publisher, publish

need("onnx", "onnx", "onnxruntime")

from tests.encoders.onnx_models import classifier  # noqa: E402 - it imports onnx

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def publisher(tmp_path: Path, environment: Environment) -> Iterator[Publisher]:
    """A publisher of one model in ONNX, which the settings list."""
    with publish(classifier(tmp_path / "original.onnx").read_bytes()) as server:
        listed = server.list_file(tmp_path / "list.toml", "tiny", file="tiny.onnx", kind="onnx")
        environment["FRAMEDEX_MODEL_LIST"] = str(listed)
        environment["FRAMEDEX_MODELS"] = str(tmp_path / "models")
        yield server


@pytest.fixture
def run(publisher: Publisher, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command; return its status, output and errors."""

    def call(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as exit_:
            main(arguments)
        captured = capsys.readouterr()
        return int(exit_.value.code or 0), captured.out, captured.err

    return call


def test_models__before_and_after(run: Run, publisher: Publisher, tmp_path: Path) -> None:
    """Models that can be fetched are listed with size and licence; fetched ones with file, hash and encoder."""
    status, out, _ = run("models")
    assert status == 0
    assert "no models were fetched" in out
    assert "can be fetched: ViT-B-32 (605 MB, MIT): CLIP ViT-B/32" in out
    assert "can be fetched: tiny (not published, MIT): for tests" in out
    status, out, _ = run("models", "fetch", "tiny", "--yes")
    path = tmp_path / "models" / "tiny.onnx"
    assert status == 0
    for line in (
        f"source   {publisher.url('/page')}", f"address  {publisher.url()}", "size     not published", "licence  MIT",
        "sha256   not published; that of the first download is kept", f"tiny: {path}", f"sha256   {publisher.sha256}",
        f"encoder  onnx:{path}",
    ):  # fmt: skip
        assert line in out
    out = run("models")[1]
    assert f"sha256   {publisher.sha256}" in out
    assert "can be fetched: tiny" not in out
    content = json.loads(run("models", "--json")[1])
    assert [model["name"] for model in content["models"]] == ["tiny"]
    assert [model["name"] for model in content["can_be_fetched"]] == [
        "ViT-B-32", "ViT-L-14", "dinov2-base", "dinov2-small",
    ]  # fmt: skip


def test_fetch__asks(run: Run, publisher: Publisher) -> None:
    """Without a terminal and without --yes nothing is fetched, and one line says why."""
    status, out, err = run("models", "fetch", "tiny")
    assert (status, publisher.requests) == (1, [])
    assert "licence  MIT" in out
    assert err == "error: to fetch 'tiny' needs an answer, and there is no terminal to ask on: give --yes\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("fetch", "nothing"), "no model 'nothing' can be fetched; there are: ViT-B-32"),
        (("add", "nowhere.onnx"), "no file '"),
        (("fetch", "tiny", "--yes"), "answers 404 Not Found"),
    ],
)
def test_models__errors(run: Run, publisher: Publisher, arguments: tuple[str, ...], message: str) -> None:
    """An error is one line."""
    publisher.status = 404
    status, _, err = run("models", *arguments)
    assert status == 1
    assert message in err
    assert err.count("\n") == 1


@pytest.mark.slow
def test_add__then_create(run: Run, publisher: Publisher, tmp_path: Path) -> None:
    """A listed model that was carried over is the encoder of new datasets, which say so; others keep theirs."""
    images, workspace = paint(tmp_path / "images"), tmp_path / "ws"
    assert "encoder gist (auto: " in run("create", "before", str(images), "-w", str(workspace))[1]
    added = json.loads(run("models", "add", str(tmp_path / "original.onnx"), "--name", "tiny", "--json")[1])
    assert (added["sha256"], added["missing_packages"]) == (publisher.sha256, "")
    out = run("create", "after", str(images), "-w", str(workspace))[1]
    assert f"encoder onnx:{tmp_path / 'models' / 'tiny.onnx'} (auto: the fetched model tiny is on this machine" in out
    with Workspace(workspace, settings=Settings()) as opened:
        assert opened.dataset("before").embedding_config.encoder == "gist"
        messages = [task.status_message for task in opened.tasks().tasks]
        (message,) = (each for each in messages if "auto: the fetched model tiny" in each)
        assert str(tmp_path) not in message


@pytest.mark.slow
def test_fetch__is_interrupted(publisher: Publisher, tmp_path: Path) -> None:
    """Ctrl-C keeps the part and says that the next call continues, which it does."""
    publisher.pause = threading.Event()
    command = [sys.executable, "-m", "framedex", "models", "fetch", "tiny", "--yes"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    partial, half = tmp_path / "models" / "tiny.onnx.partial", len(publisher.content) // 2
    wait_until(lambda: process.poll() is not None or (partial.exists() and partial.stat().st_size >= half))
    # Python loses an interrupt that comes between its last look for one and the wait for more bytes.
    wait_until(lambda: is_blocked(process.pid))
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=20)
    assert process.returncode == 130
    assert err.startswith("interrupted: what is there is kept, and the next `framedex models fetch tiny` continues\n")
    publisher.pause.set()
    publisher.pause = None
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert publisher.sha256 in done.stdout
    assert publisher.requests[-1] == ("/file", f"bytes={half}-")
