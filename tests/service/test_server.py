"""The server as a process: its one line, its place, its end, and what a later one continues."""

import json
import os
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from framedex import Workspace
from tests.gallery import make_gallery
from tests.prepared import prepared
from tests.processes import start
from tests.programs import Program, completed

PROGRAM = ["-m", "framedex", "serve"]
ENVIRONMENT = {
    name: value
    for name, value in os.environ.items()
    # Without the last one output to a pipe waits in a buffer, as it does for users.
    if not name.startswith(("FRAMEDEX_", "DISABLE_AUTH")) and name != "PYTHONUNBUFFERED"
}


class Served:
    """A server in a process of its own.

    Args:
        folder: of the workspace.
        options: of the command.
        environment: further variables.
    """

    def __init__(self, folder: Path, *options: str, **environment: str) -> None:
        self.errors = folder.parent / "errors.txt"
        with self.errors.open("w") as errors:
            self.process = Program(
                [*PROGRAM, "--workspace", folder, "--port", 0, *options],
                stdout=subprocess.PIPE,
                stderr=errors,
                env=ENVIRONMENT | environment,
            )
        assert self.process.stdout is not None
        self.line = self.process.stdout.readline()
        self.url = next((word for word in self.line.split() if word.startswith("http")), "")

    def get(self, path: str, **headers: str) -> Any:
        """Return the JSON of a path."""
        request = urllib.request.Request(self.url + path, headers=headers)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)

    def kill(self) -> None:
        """End the server at once, if it runs."""
        self.process.kill()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()

    def stop(self, number: int = signal.SIGTERM) -> float:
        """Stop the server and return the seconds until its process has ended."""
        began = time.monotonic()
        self.process.send_signal(number)
        self.process.wait(60)
        return time.monotonic() - began


@contextmanager
def served(folder: Path, *options: str, **environment: str) -> Iterator[Served]:
    """Serve a workspace in a process of its own while the context is open."""
    server = Served(folder, *options, **environment)
    try:
        yield server
    finally:
        server.kill()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of an empty workspace."""
    Workspace(tmp_path / "ws").close()
    return tmp_path / "ws"


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_server__starts_and_ends(folder: Path, number: int) -> None:
    """One line names the URL; a signal ends the server within 5 s, with an open connection, and with status 0."""
    with served(folder) as server:
        assert server.line.startswith(f"Framedex serves {folder} at http://127.0.0.1:")
        assert server.get("/api/v1/healthcheck") == {"status": "healthy"}
        assert server.get("/api/v1/me")["auth"] == "disabled"
        host, port = server.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port))) as connection:
            head = (
                b"POST /api/v1/login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\nExpect: 100-continue\r\n\r\n"
            )
            connection.sendall(head)
            assert connection.recv(100).startswith(b"HTTP/1.1 100")  # it waits for the content
            connection.sendall(b"{")
            assert server.stop(number) < 5
        assert server.process.returncode == 0
    assert not (folder / "service.json").exists()


STOPS_AT_ONCE = """
    import os, signal, sys
    from pathlib import Path
    from framedex.service.server import serve
    from framedex.service.settings import ServiceSettings

    def announce(url):
        print(url, flush=True)
        os.kill(os.getpid(), signal.SIGTERM)

    serve(Path(sys.argv[1]), ServiceSettings(), host="127.0.0.1", port=0, announce=announce, warn=print)
    print("ended", flush=True)
"""


@pytest.mark.slow
def test_server__ends_by_a_signal_at_its_start(folder: Path) -> None:
    """A signal that comes when the address was just printed is not lost, and the server ends as ever."""
    process = start(STOPS_AT_ONCE, folder)
    output, error = process.communicate(timeout=60)
    assert (process.returncode, output.splitlines()[-1:]) == (0, ["ended"]), error
    assert not (folder / "service.json").exists()


@pytest.mark.slow
def test_server__writes_logs_of_json(folder: Path) -> None:
    """Each request is a line of JSON with an id, and without its query, which may hold a signature."""
    with served(folder) as server:
        with pytest.raises(urllib.error.HTTPError):
            server.get("/api/v1/nothing?sig=planted", Authorization="Bearer planted", Cookie="SESSION=planted")
        server.stop()
        text = server.errors.read_text()
    lines = [json.loads(line) for line in text.splitlines()]
    assert any(line.get("path") == "/api/v1/nothing" and line["status"] == 404 and line["request_id"] for line in lines)
    assert "planted" not in text


@pytest.mark.slow
def test_server__is_the_only_one(folder: Path) -> None:
    """A second server of a workspace is refused with the address of the first; after a kill the place is free."""
    with served(folder) as first:
        command = [*PROGRAM, "-w", str(folder), "--port", "0"]
        second = completed(command, env=ENVIRONMENT)
        assert second.returncode == 1
        assert f"is served already, at {first.url}" in second.stderr
        first.kill()
        with served(folder) as third:
            assert third.get("/api/v1/healthcheck") == {"status": "healthy"}


@pytest.mark.slow
def test_server__creates_a_workspace(tmp_path: Path) -> None:
    """A missing folder becomes a workspace, but neither with --read-only nor if it has other files."""
    missing = tmp_path / "new"
    command = [*PROGRAM, "-w", str(missing), "--port", "0"]
    refused = completed([*command, "--read-only"], env=ENVIRONMENT)
    assert (refused.returncode, "no workspace at" in refused.stderr, missing.exists()) == (1, True, False)
    with served(missing) as server:
        assert server.line.startswith(f"Framedex serves {missing}, a new workspace, at http://127.0.0.1:")
        assert server.get("/api/v1/datasets") == []
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").write_text("mine")
    command[command.index(str(missing))] = str(tmp_path / "other")
    refused = completed(command, env=ENVIRONMENT)
    assert refused.returncode == 1
    assert [entry.name for entry in (tmp_path / "other").iterdir()] == ["notes.txt"]


@pytest.mark.slow
def test_server__needs_a_free_port(folder: Path) -> None:
    """A port in use, and an address of another machine, are errors in one line."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        for options in (["--port", port], ["--host", "203.0.113.7"], ["--host", "no such host"]):
            command = [*PROGRAM, "-w", str(folder), *options]
            result = completed(command, env=ENVIRONMENT)
            assert result.returncode == 1
            assert result.stderr.startswith("error: cannot listen at ")
            assert len(result.stderr.splitlines()) == 1


@pytest.mark.slow
def test_server__with_accounts(folder: Path) -> None:
    """With authentication the first admin comes from the environment, once; the password is not temporary."""
    accounts = {"DISABLE_AUTH": "false", "FRAMEDEX_ADMIN_PASSWORD": "correct horse"}
    for _ in range(2):
        with served(folder, **accounts) as server:
            with pytest.raises(urllib.error.HTTPError, match="401"):
                server.get("/api/v1/me")
            request = urllib.request.Request(
                f"{server.url}/api/v1/login",
                data=b'{"username": "admin", "password": "correct horse"}',
                headers={"Content-Type": "application/json"},
            )
            with urllib.request.urlopen(request, timeout=60) as answer:
                assert json.load(answer)["must_change_password"] is False
                cookie = answer.headers["Set-Cookie"].partition(";")[0]
            assert server.get("/api/v1/me", Cookie=cookie)["workspace_role"] == "admin"
            server.stop()
            assert "correct horse" not in server.errors.read_text()


@pytest.mark.slow
def test_server__with_a_password_that_is_too_short(folder: Path) -> None:
    """A password of the first admin that cannot be used is an error that names the setting, and not the password."""
    environment = {**ENVIRONMENT, "DISABLE_AUTH": "false", "FRAMEDEX_ADMIN_PASSWORD": "planted"}
    command = [*PROGRAM, "-w", str(folder)]
    result = completed(command, env=environment)
    reason = "a password has 8 to 1,024 characters"
    assert (result.returncode, result.stderr) == (1, f"error: FRAMEDEX_ADMIN_PASSWORD cannot be used: {reason}\n")


@pytest.mark.slow
def test_server__reads_alone(folder: Path, tmp_path: Path) -> None:
    """A workspace that is served read-only answers, and says that it is not ready for changes."""
    make_gallery(tmp_path / "gallery")
    with Workspace(folder) as workspace:
        prepared(workspace, "pets", tmp_path / "gallery")
    with served(folder, "--read-only") as server:
        assert server.get("/api/v1/me")["auth"] == "disabled"
        with pytest.raises(urllib.error.HTTPError, match="503"):
            server.get("/api/v1/ready")
