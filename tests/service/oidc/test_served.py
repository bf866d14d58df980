"""Log-in by OpenID Connect of a server as a process: what it prints, and mistakes in its settings."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest

from tests.pauses import wait_until
from tests.service.oidc.provider import CLIENT, REDIRECT, SECRET, HostileProvider
from tests.service.test_server import Served

pytestmark = pytest.mark.slow


@contextmanager
def served(folder: Path, **environment: str) -> Iterator[Served]:
    """Run a server with log-ins; its lines are read up to the one with its URL."""
    server = Served(folder, DISABLE_AUTH="false", **environment)
    assert server.process.stdout is not None
    last = server.line
    try:
        while last and "serves" not in last:
            server.line += (last := server.process.stdout.readline())
        server.url = next((word for word in last.split() if word.startswith("http")), "")
        yield server
    finally:
        server.kill()


def variables(provider: HostileProvider) -> dict[str, str]:
    """Return the environment of a server whose users log in at a provider."""
    return {
        "OIDC_ISSUER": provider.issuer,
        "OIDC_CLIENT_ID": CLIENT,
        "OIDC_CLIENT_SECRET": SECRET,
        "OIDC_REDIRECT_URI": REDIRECT,
    }


def log_in(client: Any, server: Served, provider: HostileProvider, path: str) -> int:
    """Log in with a link to a server, and return the status of its last answer."""
    url = client.get(server.url + path).headers["Location"]
    callback = server.url + urlsplit(REDIRECT).path
    return int(client.get(callback, params=provider.authorize(url)).status_code)


def test_first_admin__logs_in_with_the_printed_link(tmp_path: Path, provider: HostileProvider) -> None:
    """A server without users prints a link; who logs in with it is the admin, and the next start prints none."""
    folder = tmp_path / "ws"
    with served(folder, **variables(provider)) as server:
        printed = re.search(r"/api/v1/oidc/login\?first_admin=\S+", server.line)
        assert printed is not None
        with httpx2.Client() as client:
            assert log_in(client, server, provider, printed.group()) == 302
            assert client.get(server.url + "/api/v1/me").json()["workspace_role"] == "admin"
            cookies = {"Cookie": f"SESSION={client.cookies['SESSION']}"}
    provider.claims = {"sub": "subject-2"}
    with served(folder, **variables(provider)) as server:
        assert "first_admin=" not in server.errors.read_text() + server.line
        assert server.get("/api/v1/me", **cookies)["workspace_role"] == "admin", "sessions outlive the server"
        with httpx2.Client() as client:
            assert log_in(client, server, provider, "/api/v1/oidc/login") == 302
            assert client.get(server.url + "/api/v1/me").json()["workspace_role"] == "viewer"
        assert SECRET not in server.errors.read_text() + server.line


def test_states__outlive_the_server(tmp_path: Path, provider: HostileProvider) -> None:
    """A log-in that began before a restart ends after it, and once: its use is known to the next server, too."""
    folder = tmp_path / "ws"
    with httpx2.Client() as client:
        with served(folder, **variables(provider)) as server:
            url = client.get(f"{server.url}/api/v1/oidc/login").headers["Location"]
        answer = provider.authorize(url)
        cookie = {"Cookie": f"OIDC_STATE={client.cookies['OIDC_STATE']}"}
        statuses = []
        for _ in range(2):
            with served(folder, **variables(provider)) as server:
                reply = httpx2.get(server.url + urlsplit(REDIRECT).path, params=answer, headers=cookie)
                statuses.append(reply.status_code)
        assert statuses == [302, 400]


def test_provider__that_is_down_at_the_start(tmp_path: Path) -> None:
    """The server starts without its provider, says so in its log, and answers 502 to log-ins."""
    environment = {"OIDC_ISSUER": "http://127.0.0.1:1", "OIDC_CLIENT_ID": CLIENT, "OIDC_REDIRECT_URI": REDIRECT}
    with served(tmp_path / "ws", **environment) as server:
        assert server.get("/api/v1/healthcheck") == {"status": "healthy"}
        assert httpx2.get(f"{server.url}/api/v1/oidc/login").status_code == 502
        wait_until(lambda: "log-in by OpenID Connect does not work at present" in server.errors.read_text())


def test_settings__that_are_not_complete(tmp_path: Path) -> None:
    """A server with settings that are not complete does not start, and names what is missing."""
    with served(tmp_path / "ws", OIDC_ISSUER="https://idp.example.org") as server:
        assert server.process.wait(60) != 0
        assert "OIDC_ISSUER needs OIDC_CLIENT_ID, which is not set" in server.errors.read_text()
