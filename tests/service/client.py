"""A client of the service that runs in the process of the test."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jwt
from starlette.testclient import TestClient

from framedex import Workspace
from framedex.hub import Hub
from framedex.service.app import create_app
from framedex.service.settings import OidcSettings, ServiceSettings
from tests.gallery import SETTINGS
from tests.service.users import PASSWORD

BASE = "http://127.0.0.1:8765"
OWN = {"Origin": BASE}
LOCAL = ServiceSettings()
"""The settings of a service without log-ins; to read them from the environment takes twenty milliseconds."""
CLOSED = ServiceSettings(disable_auth=False)
"""Those of a service with log-ins."""


class Client(TestClient):
    """A client with cookies, whose requests come from the service's own pages unless a header says otherwise."""

    def log_in(self, name: str) -> "Client":
        """Log in as a user and return the client."""
        answer = self.post("/api/v1/login", json={"username": name, "password": PASSWORD}, headers=OWN)
        assert answer.status_code == 200, answer.text
        return self

    def bearer(self, name: str, **changes: Any) -> dict[str, str]:
        """Return the headers of a user's requests with a token; changes replace claims."""
        self.log_in(name)
        credentials = self.post("/api/v1/api_credentials/rotate", headers=OWN).json()
        self.cookies.clear()
        return {"Authorization": f"Bearer {token_of(credentials['api_key'], credentials['api_secret'], **changes)}"}


def token_of(key: str, secret: str, **changes: Any) -> str:
    """Return a token as clients make it; changes replace claims."""
    now = int(time.time())
    claims = {"sub": key, "iss": "sdk", "iat": now, "exp": now + 600, **changes}
    return jwt.encode(claims, secret, algorithm="HS256", headers={"kid": key})


@contextmanager
def client_of(
    workspace: Workspace,
    hub: Hub,
    settings: ServiceSettings,
    *,
    host: str = "127.0.0.1",
    oidc: OidcSettings | None = None,
) -> Iterator[Client]:
    """Serve a workspace within the process, and return a client."""
    app = create_app(workspace, hub, settings, host=host, oidc=oidc)
    with Client(app, base_url=BASE, raise_server_exceptions=False, client=("127.0.0.1", 50000)) as client:
        yield client


@contextmanager
def many_tenants(folder: Path) -> Iterator[tuple[Workspace, Hub, Client]]:
    """Serve a new workspace of many tenants with log-ins."""
    with (
        Workspace(folder, settings=SETTINGS) as workspace,
        Hub(workspace, is_multi=True) as hub,
        client_of(workspace, hub, CLOSED) as client,
    ):
        yield workspace, hub, client
