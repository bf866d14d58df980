"""Headers of proxies: the addresses and schemes that they name count only from proxies that the settings trust."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from framedex import Dataset, Workspace
from framedex.hub import Hub
from framedex.service.settings import ServiceSettings
from tests.service.client import OWN, Client, client_of
from tests.service.users import OPERATOR, PASSWORD

PROXY = "127.0.0.1"
"""The address from which the client's requests come."""


@contextmanager
def behind(workspace: Workspace, hub: Hub, *trusted: str) -> Iterator[Client]:
    """Serve a workspace that trusts proxies, and return a client without a session."""
    settings = ServiceSettings(disable_auth=False, trusted_proxies=trusted)
    with client_of(workspace, hub, settings) as client:
        yield client


def log_in(client: Client, password: str = PASSWORD, **headers: str) -> tuple[int, str]:
    """Return the status of a log-in and the cookie that it sets."""
    sent = {**OWN, **{name.replace("_", "-"): value for name, value in headers.items()}}
    answer = client.post("/api/v1/login", json={"username": "ann", "password": password}, headers=sent)
    return answer.status_code, answer.headers.get("Set-Cookie", "")


def address_of(hub: Hub) -> str:
    """Return the address of the newest session of the admin."""
    return hub.users.sessions(OPERATOR, hub.users.find(OPERATOR, "ann").id)[0].ip_address


@pytest.mark.slow
@pytest.mark.parametrize(
    ("trusted", "forwarded", "address"),
    [
        ((), "192.0.2.7", PROXY),
        (("10.0.0.1",), "192.0.2.7", PROXY),
        ((PROXY,), "192.0.2.7", "192.0.2.7"),
        ((PROXY,), "198.51.100.9, 192.0.2.7", "192.0.2.7"),
        ((PROXY, "192.0.2.7"), "203.0.113.1, 198.51.100.9, 192.0.2.7", "198.51.100.9"),
        ((PROXY,), " , ", PROXY),
        ((PROXY,), "x" * 500, "x" * 45),
    ],
)
def test_address__of_a_client(
    workspace: Workspace, hub: Hub, trusted: tuple[str, ...], forwarded: str, address: str
) -> None:
    """The address is the last one that no trusted proxy has; what a client wrote before it does not count."""
    with behind(workspace, hub, *trusted) as client:
        assert log_in(client, X_Forwarded_For=forwarded)[0] == 200
    assert address_of(hub) == address


@pytest.mark.parametrize("trusted", [(), (PROXY,)])
def test_guessing__from_invented_addresses(workspace: Workspace, hub: Hub, trusted: tuple[str, ...]) -> None:
    """Who invents another address for each attempt has to wait as others do, also behind a trusted proxy."""
    with behind(workspace, hub, *trusted) as client:
        real = ", 192.0.2.7" if trusted else ""
        statuses = [log_in(client, "wrong one", X_Forwarded_For=f"10.1.1.{n}{real}")[0] for n in range(6)]
    assert statuses == [401] * 5 + [429]


def test_cookies__by_scheme(workspace: Workspace, hub: Hub) -> None:
    """A session's cookie is for https alone if a trusted proxy says that the client uses it."""
    for trusted, scheme, is_secure in (((), "https", False), ((PROXY,), "http", False), ((PROXY,), "https", True)):
        with behind(workspace, hub, *trusted) as client:
            status, cookie = log_in(client, X_Forwarded_Proto=scheme)
        assert (status, "; Secure" in cookie) == (200, is_secure), (trusted, scheme)


@pytest.mark.slow
def test_hosts__that_proxies_name(workspace: Workspace, hub: Hub, dataset: Dataset) -> None:
    """No header of a proxy changes the address in links, or lets pages of another site in; a setting says it."""
    evil = {"X-Forwarded-Host": "evil.example", "X-Forwarded-Prefix": "/evil", "Forwarded": "host=evil.example"}
    with behind(workspace, hub, PROXY) as client:
        client.log_in("ann")
        page = client.get(f"/api/v1/explore/{dataset.id}", headers=evil)
        status = client.get(f"/api/v1/dataset/{dataset.id}", headers=evil)
        assert (page.status_code, status.status_code) == (200, 200)
        assert "evil" not in page.text + status.text
        changed = client.post("/api/v1/logout", headers={"Origin": "https://evil.example", **evil})
        assert changed.status_code == 403
