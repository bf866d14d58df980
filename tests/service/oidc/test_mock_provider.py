"""Log-in at another implementation of OpenID Connect, in a process of its own."""

import subprocess
import sys
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx2
import pytest

from framedex import Workspace
from framedex.hub import Hub
from framedex.service.settings import OidcSettings, ServiceSettings
from tests.service.client import OWN, Client, client_of
from tests.service.oidc.provider import REDIRECT

_RUN = """
import warnings
warnings.simplefilter("ignore")
from oidc_provider_mock import run_server_in_thread
with run_server_in_thread(require_client_registration=True, require_nonce=True) as server:
    print(server.server_port, flush=True)
    input()
"""


@pytest.fixture(scope="module")
def issuer() -> Iterator[str]:
    """The URL of a running provider."""
    command = [sys.executable, "-c", _RUN]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        yield f"http://localhost:{int(process.stdout.readline())}"
        process.communicate("\n", timeout=20)


@pytest.fixture
def settings(issuer: str) -> OidcSettings:
    """Settings of a client that was registered at the provider."""
    answer = httpx2.post(f"{issuer}/oauth2/clients", json={"redirect_uris": [REDIRECT]})
    registered = answer.raise_for_status().json()
    return OidcSettings(
        oidc_issuer=issuer,
        oidc_client_id=registered["client_id"],
        oidc_client_secret=registered["client_secret"],
        oidc_redirect_uri=REDIRECT,
        oidc_link_by_email=True,
        oidc_trust_roles=True,
    )


@pytest.fixture
def client(workspace: Workspace, hub: Hub, settings: OidcSettings) -> Iterator[Client]:
    """A client of a service whose users log in at the provider."""
    with client_of(workspace, hub, ServiceSettings(disable_auth=False), oidc=settings) as opened:
        opened.follow_redirects = False
        yield opened


def log_in(client: Client, issuer: str, subject: str, **claims: Any) -> Any:
    """Log in as a person with claims, and return the last answer of the service."""
    httpx2.put(f"{issuer}/users/{subject}", json=claims).raise_for_status()
    url = client.get("/api/v1/oidc/login", params={"next": "/albums"}).headers["Location"]
    form = httpx2.post(url, data={"sub": subject}, follow_redirects=False)
    back = urlsplit(form.headers["Location"])
    assert f"{back.scheme}://{back.netloc}{back.path}" == REDIRECT
    return client.get(back.path, params=dict(parse_qsl(back.query)))


def test_log_in__at_another_implementation(client: Client, issuer: str) -> None:
    """The whole way: the browser logs in there, comes back with a session, and logs out here and there."""
    answer = log_in(
        client, issuer, "4711", preferred_username="zoe", email="zoe@example.org", email_verified=True,
        given_name="Zoë", family_name="Lee", realm_access={"roles": ["view-users", "uma_authorization"]},
    )  # fmt: skip
    assert (answer.status_code, answer.headers["Location"]) == (302, "/albums")
    me = client.get("/api/v1/me").json()
    assert (me["username"], me["firstName"], me["email"], me["roles"]) == (
        "zoe", "Zoë", "zoe@example.org", ["view-users"],
    )  # fmt: skip
    url = client.post("/api/v1/oidc/logout", headers=OWN).json()["logout_url"]
    assert httpx2.get(url).status_code == 200
    assert client.get("/api/v1/me").status_code == 401


@pytest.mark.slow
def test_log_in__opens_a_present_account(client: Client, issuer: str) -> None:
    """A verified address opens the account that an admin made; one that was not verified does not."""
    assert log_in(client, issuer, "1", email="eve@example.org", email_verified=False).status_code == 302
    assert client.get("/api/v1/me").json()["username"] == "user"
    assert log_in(client, issuer, "2", email="eve@example.org", email_verified=True).status_code == 302
    assert client.get("/api/v1/me").json()["username"] == "eve"


@pytest.mark.slow
def test_log_in__that_the_user_denies(client: Client, issuer: str) -> None:
    """A user who declines at the provider gets a reason and no session."""
    url = client.get("/api/v1/oidc/login").headers["Location"]
    form = httpx2.post(url, data={"action": "deny"}, follow_redirects=False)
    query = dict(parse_qsl(urlsplit(form.headers["Location"]).query))
    answer = client.get(
        "/api/v1/oidc/callback", params={"state": dict(parse_qsl(urlsplit(url).query))["state"], **query}
    )
    assert answer.status_code == 400
    assert answer.json()["detail"] == "Login failed: the identity provider answered access_denied"
