"""Credentials of requests: tokens, sessions, signed URIs; requests of other sites; names of hosts."""

import base64
import json
import time
from collections.abc import Callable
from typing import Any

import jwt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from framedex import Workspace
from framedex.access import Role
from framedex.hub import Hub
from framedex.service.settings import ServiceSettings, auth_is_off
from framedex.service.uris import Uris
from tests.service.client import BASE, CLOSED, OWN, Client, client_of, token_of
from tests.service.users import OPERATOR, PASSWORD

ME = "/api/v1/me"


@pytest.fixture
def key(open_client: Client) -> tuple[str, str]:
    """The API key of a user and its secret."""
    open_client.log_in("ann")
    answer = open_client.get("/api/v1/api_credentials", headers=OWN).json()
    open_client.cookies.clear()
    return answer["api_key"], answer["api_secret"]


def status_with(client: Client, token: str) -> int:
    """Return the status of a request with a token, and check the form of a refusal."""
    answer = client.get(ME, headers={"Authorization": f"Bearer {token}"})
    if answer.status_code == 401:
        assert answer.json()["detail"] == "Invalid or expired token"
        assert answer.headers["WWW-Authenticate"] == 'Bearer error="invalid_token"'
    return answer.status_code


def raw_token(header: dict[str, Any], claims: dict[str, Any], signature: bytes = b"") -> str:
    """Return a token of any header and claims."""
    parts = [json.dumps(header).encode(), json.dumps(claims).encode(), signature]
    return ".".join(base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts)


def test_tokens__as_clients_make_them(open_client: Client, key: tuple[str, str]) -> None:
    """Tokens of 10 minutes, an hour and a day are accepted, and clocks may differ by a minute."""
    now = int(time.time())
    for changes in (
        {},
        {"exp": now + 3600},
        {"exp": now + 86_400},
        {"exp": now - 50, "iat": now - 600},
        {"iat": now + 50},
        {"aud": "anything", "more": 1},
    ):
        assert status_with(open_client, token_of(*key, **changes)) == 200, changes


def test_tokens__with_wrong_claims(open_client: Client, key: tuple[str, str]) -> None:
    """Expired, future, too long, foreign and mistyped claims get the same 401."""
    now = int(time.time())
    wrong: list[dict[str, Any]] = [
        {"exp": now - 61, "iat": now - 600},
        {"iat": now + 70},
        {"exp": now + 86_500},
        {"exp": now + 10 * 365 * 86_400},
        {"exp": now - 10, "iat": now},
        {"exp": now + 0.5},
        {"exp": str(now + 600)},
        {"exp": True},
        {"exp": None},
        {"iat": float(now)},
        {"iat": [now]},
        {"iss": "other"},
        {"iss": ["sdk"]},
        {"sub": "other"},
        {"sub": 1},
        {"nbf": now + 3600},
    ]
    for changes in wrong:
        try:
            token = token_of(*key, **changes)
        except TypeError:
            continue  # the library refuses to make it
        assert status_with(open_client, token) == 401, changes


@pytest.mark.slow
@pytest.mark.parametrize("missing", ["sub", "iss", "exp", "iat"])
def test_tokens__with_a_missing_claim(open_client: Client, key: tuple[str, str], missing: str) -> None:
    """Each of the four claims is required."""
    now = int(time.time())
    claims = {"sub": key[0], "iss": "sdk", "iat": now, "exp": now + 600}
    del claims[missing]
    assert status_with(open_client, jwt.encode(claims, key[1], algorithm="HS256", headers={"kid": key[0]})) == 401


@pytest.mark.slow
def test_tokens__with_other_algorithms(open_client: Client, key: tuple[str, str]) -> None:
    """Only HS256 with the key's own secret is accepted, whatever the header says."""
    now = int(time.time())
    claims = {"sub": key[0], "iss": "sdk", "iat": now, "exp": now + 600}
    for algorithm in ("none", "None", "HS512", "HS384", "RS256", "ES256", "hs256", None, 1, ["HS256"]):
        for signature in (b"", b"x" * 32):
            assert status_with(open_client, raw_token({"alg": algorithm, "kid": key[0]}, claims, signature)) == 401
    with pytest.warns(jwt.warnings.InsecureKeyLengthWarning):
        token = jwt.encode(claims, key[1], algorithm="HS512", headers={"kid": key[0]})
    assert status_with(open_client, token) == 401
    for secret in ("x" * 43, key[1][:-1], key[1] + "x", key[0]):
        assert status_with(open_client, jwt.encode(claims, secret, algorithm="HS256", headers={"kid": key[0]})) == 401


@pytest.mark.slow
@pytest.mark.parametrize(
    "header",
    [
        {"kid": "other"},
        {"kid": None},
        {"kid": 1},
        {"kid": "../service.key"},
        {"jku": "https://evil.example/keys"},
        {"jwk": {"kty": "oct", "k": "AAAA"}},
        {"x5u": "https://evil.example/cert"},
        {"crit": ["exp"], "exp": 1},
        {"b64": False, "crit": ["b64"]},
    ],
)
def test_tokens__with_other_headers(open_client: Client, key: tuple[str, str], header: dict[str, Any]) -> None:
    """Keys are looked up by a known id alone; headers that name or bring a key are refused."""
    now = int(time.time())
    claims = {"sub": key[0], "iss": "sdk", "iat": now, "exp": now + 600}
    headers = {"alg": "HS256", "typ": "JWT", "kid": key[0], **header}
    signing = ".".join(raw_token(headers, claims).split(".")[:2])
    signature = jwt.algorithms.HMACAlgorithm(jwt.algorithms.HMACAlgorithm.SHA256).sign(
        signing.encode(), key[1].encode()
    )
    assert status_with(open_client, raw_token(headers, claims, signature)) == 401


def test_tokens__of_another_user(open_client: Client, hub: Hub, key: tuple[str, str]) -> None:
    """The secret of one user signs nothing for another."""
    other = open_client.log_in("eve").get("/api/v1/api_credentials", headers=OWN).json()
    open_client.cookies.clear()
    assert status_with(open_client, token_of(other["api_key"], key[1])) == 401
    assert status_with(open_client, token_of(other["api_key"], other["api_secret"])) == 200


@pytest.mark.parametrize("token", ["", "x", "a.b.c", "é.é.é", "." * 9, "x" * 9000, "eyJhbGciOiJIUzI1NiJ9..", "null"])
def test_tokens__that_are_none(open_client: Client, token: str) -> None:
    """Text that is no token is a 401."""
    answer = open_client.get(ME, headers={b"Authorization": b"Bearer " + token.encode("utf-8")})
    assert answer.status_code == 401


def test_credentials__fall_through_to_no_other(open_client: Client, key: tuple[str, str]) -> None:
    """A token that is not valid is refused, though the session beside it is."""
    open_client.log_in("ann")
    for header in ("Bearer x", "Basic YW5uOng=", "x", "Bearer"):
        assert open_client.get(ME, headers={"Authorization": header}).status_code == 401
    open_client.cookies.clear()
    open_client.cookies.set("SESSION", "x")
    assert open_client.get(ME, headers={"Authorization": f"Bearer {token_of(*key)}"}).status_code == 200


def test_credentials__need_a_session(open_client: Client, key: tuple[str, str]) -> None:
    """A token manages neither API credentials nor the password."""
    headers = {"Authorization": f"Bearer {token_of(*key)}"}
    answer = open_client.get("/api/v1/api_credentials", headers=headers)
    assert (answer.status_code, answer.json()["detail"]) == (403, "API credentials need a browser session")
    assert open_client.post("/api/v1/api_credentials/rotate", headers=headers).status_code == 403
    assert open_client.delete("/api/v1/api_credentials", headers=headers).status_code == 403
    body = {"current_password": PASSWORD, "password": "another one"}
    assert open_client.post("/api/v1/password", headers=headers, json=body).status_code == 403


def test_credentials__show_a_secret_once(open_client: Client) -> None:
    """The second call has the same key and no secret; after a rotation the old secret stops; a revoked key is gone."""
    open_client.log_in("ann")
    first, second = (open_client.get("/api/v1/api_credentials", headers=OWN).json() for _ in range(2))
    assert first["api_secret"]
    assert (second["api_key"], second["api_secret"]) == (first["api_key"], "")
    assert "rotate" in second["message"]
    rotated = open_client.post("/api/v1/api_credentials/rotate", headers=OWN).json()
    assert rotated["api_key"] == first["api_key"]
    cookies = dict(open_client.cookies)
    open_client.cookies.clear()
    assert status_with(open_client, token_of(first["api_key"], first["api_secret"])) == 401
    assert status_with(open_client, token_of(rotated["api_key"], rotated["api_secret"])) == 200
    open_client.cookies.update(cookies)
    assert open_client.delete("/api/v1/api_credentials", headers=OWN).status_code == 200
    assert open_client.delete("/api/v1/api_credentials", headers=OWN).status_code == 404
    open_client.cookies.clear()
    assert status_with(open_client, token_of(rotated["api_key"], rotated["api_secret"])) == 401


def test_credentials__while_authentication_is_off(local: Client) -> None:
    """Without log-ins there are no credentials, and those that are sent are ignored."""
    answer = local.get("/api/v1/api_credentials")
    assert (answer.status_code, answer.json()["detail"]) == (403, "Authentication is disabled")
    assert local.get(ME, headers={"Authorization": "Bearer x"}).json()["auth"] == "disabled"
    body = {"username": "ann", "password": PASSWORD}
    assert local.post("/api/v1/login", json=body).status_code == 403


CHANGES: list[Callable[[Client, dict[str, str]], Any]] = [
    lambda client, headers: client.post("/api/v1/api_credentials/rotate", headers=headers),
    lambda client, headers: client.get("/api/v1/api_credentials", headers=headers),
    lambda client, headers: client.delete("/api/v1/api_credentials", headers=headers),
    lambda client, headers: client.post("/api/v1/logout", headers=headers),
]
FOREIGN = [
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
    {"Sec-Fetch-Site": "cross-site", "Origin": BASE},
    {"Origin": "https://evil.example"},
    {"Origin": "null"},
    {"Origin": f"{BASE}.evil.example"},
    {"Referer": "https://evil.example/page"},
    {"Origin": "http://[evil"},
    {"Accept": "text/html,application/xhtml+xml"},  # follows a link of a page that hides its address, without TLS
]


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("headers", FOREIGN)
@pytest.mark.slow
def test_other_sites__change_nothing(
    open_client: Client, change: Callable[[Client, dict[str, str]], Any], headers: dict[str, str]
) -> None:
    """With a session's cookie, a request that changes something must come from a page of this service."""
    open_client.log_in("ann")
    answer = change(open_client, headers)
    assert (answer.status_code, answer.json()["detail"]) == (403, "Cross-site request refused")
    assert open_client.get(ME, headers=headers).status_code == 200, "reading changes nothing"


@pytest.mark.slow
@pytest.mark.parametrize(
    "headers", [{"Sec-Fetch-Site": "same-origin"}, {"Sec-Fetch-Site": "none"}, OWN, {"Referer": f"{BASE}/page?x=1"}]
)
def test_own_pages__may_change(open_client: Client, headers: dict[str, str]) -> None:
    """A page of this service may change something."""
    open_client.log_in("ann")
    assert open_client.get("/api/v1/api_credentials", headers=headers).status_code == 200


def test_programs__may_change(open_client: Client) -> None:
    """A program that has the cookie needs no header: it says nothing of what every browser says."""
    open_client.log_in("ann")
    assert open_client.get("/api/v1/api_credentials").status_code == 200
    assert open_client.get("/api/v1/ingestion/new_dataset", params={"dataset_name": "new"}).status_code == 200
    assert open_client.post("/api/v1/logout").status_code == 200


def test_other_sites__with_authentication_off(local: Client) -> None:
    """Without log-ins other sites change nothing either; programs need no header."""
    for headers in FOREIGN[:-1]:
        assert local.post("/api/v1/login", json={"username": "a", "password": "b"}, headers=headers).json()[
            "detail"
        ] == ("Cross-site request refused")
    assert local.post("/api/v1/logout").status_code == 401


def test_tokens__from_other_sites(open_client: Client, key: tuple[str, str]) -> None:
    """A token is no cookie that a browser adds: requests of programs with it need no header."""
    headers = {"Authorization": f"Bearer {token_of(*key)}"}
    assert open_client.post("/api/v1/logout", headers=headers).json()["detail"] == "Not authenticated"


@pytest.mark.slow
@pytest.mark.parametrize("host", ["evil.example", "evil.example:8765", "127.0.0.1.evil.example", "[evil", "", "a b"])
def test_hosts__of_others(local: Client, host: str) -> None:
    """Without log-ins a name that is not this machine's is refused, so that no page can rebind its own."""
    answer = local.get("/api/v1/healthcheck", headers={"Host": host})
    assert (answer.status_code, answer.json()["detail"]) == (400, "Invalid host")


@pytest.mark.slow
@pytest.mark.parametrize(
    "host", ["localhost", "localhost:1", "127.0.0.1:8765", "[::1]:8765", "LOCALHOST", "a.localhost"]
)
def test_hosts__of_this_machine(local: Client, host: str) -> None:
    """Names of this machine are accepted."""
    assert local.get("/api/v1/healthcheck", headers={"Host": host}).status_code == 200


def test_hosts__of_settings(workspace: Workspace, hub: Hub) -> None:
    """The public URL and further hosts are accepted, and no other name, with log-ins or without."""
    settings = ServiceSettings(public_url="https://images.example.com/framedex", allowed_hosts="other.example")
    with client_of(workspace, hub, settings) as client:
        for host, status in (("images.example.com", 200), ("other.example", 200), ("evil.example", 400)):
            assert client.get("/api/v1/healthcheck", headers={"Host": host}).status_code == status
    with client_of(workspace, hub, CLOSED, host="10.1.2.3") as client:
        for host, status in (("10.1.2.3", 200), ("localhost:8765", 200), ("any.example", 400)):
            assert client.get("/api/v1/healthcheck", headers={"Host": host}).status_code == status
    with client_of(workspace, hub, ServiceSettings(disable_auth=True), host="10.1.2.3") as client:
        for host, status in (("10.1.2.3", 200), ("192.168.0.9", 200), ("evil.example", 400)):
            assert client.get("/api/v1/healthcheck", headers={"Host": host}).status_code == status


def test_log_ins__are_needed_at_other_addresses(workspace: Workspace, hub: Hub) -> None:
    """Log-ins are off by themselves at addresses of this machine alone; elsewhere somebody has to say so."""
    with client_of(workspace, hub, ServiceSettings(), host="0.0.0.0") as client:
        assert client.get("/api/v1/datasets").status_code == 401
    for host in ("0.0.0.0", "::", "192.168.1.5", "images.example.com"):
        assert not auth_is_off(ServiceSettings(), host)
        assert auth_is_off(ServiceSettings(disable_auth=True), host)
    for own in ("127.0.0.1", "127.0.0.9", "::1", "localhost"):
        assert auth_is_off(ServiceSettings(), own)
        assert not auth_is_off(ServiceSettings(disable_auth=False), own)


def test_log_in__is_a_new_session(open_client: Client) -> None:
    """Each log-in has a cookie of its own, which scripts of pages cannot read; logging out ends it."""
    body = {"username": "ANN", "password": PASSWORD}
    answer = open_client.post("/api/v1/login", json=body, headers=OWN)
    assert answer.json().keys() == {"user_id", "username", "must_change_password"}
    cookie = answer.headers["Set-Cookie"]
    assert all(part in cookie for part in ("HttpOnly", "SameSite=lax", "Path=/", "Max-Age=604800"))
    assert "Secure" not in cookie
    first = open_client.cookies["SESSION"]
    open_client.log_in("ann")
    assert open_client.cookies["SESSION"] != first
    assert open_client.post("/api/v1/logout", headers=OWN).status_code == 200
    assert open_client.get(ME).status_code == 401
    open_client.cookies.set("SESSION", first)
    assert open_client.get(ME).status_code == 200, "the other session goes on"


def test_log_in__over_https(workspace: Workspace, hub: Hub) -> None:
    """Behind https the cookie is sent over https alone."""
    settings = ServiceSettings(disable_auth=False, public_url="https://images.example.com")
    with client_of(workspace, hub, settings) as client:
        body = {"username": "ann", "password": PASSWORD}
        assert "Secure" in client.post("/api/v1/login", json=body).headers["Set-Cookie"]


def test_log_in__of_unknown_wrong_and_disabled(open_client: Client, hub: Hub) -> None:
    """Unknown names, wrong passwords and disabled accounts get the same answer."""
    user = next(user for user in hub.users.page(OPERATOR)[0] if user.username == "vic")
    hub.users.change(OPERATOR, user.id, enabled=False)
    answers = [
        open_client.post("/api/v1/login", json={"username": name, "password": password})
        for name, password in (("nobody", PASSWORD), ("ann", "wrong password"), ("vic", PASSWORD), ("\0", ""))
    ]
    assert {answer.status_code for answer in answers} == {401}
    assert {answer.json()["detail"] for answer in answers} == {"Invalid username or password"}


def test_log_in__after_failures(open_client: Client) -> None:
    """After five failures a name waits, and the answer says how long; a header of the client changes nothing."""
    for _ in range(5):
        assert open_client.post("/api/v1/login", json={"username": "ann", "password": "wrong"}).status_code == 401
    for headers in ({}, {"X-Forwarded-For": "10.0.0.9"}):
        answer = open_client.post("/api/v1/login", json={"username": "ann", "password": PASSWORD}, headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (429, "rate_limited")
        assert 0 < int(answer.headers["Retry-After"]) <= 31


def test_password__that_is_temporary(open_client: Client, hub: Hub) -> None:
    """With a temporary password a session can only see the own account, change the password and end."""
    user = next(user for user in hub.users.page(OPERATOR)[0] if user.username == "eve")
    hub.users.reset_password(OPERATOR, user.id, PASSWORD)
    answer = open_client.post("/api/v1/login", json={"username": "eve", "password": PASSWORD})
    assert answer.json()["must_change_password"] is True
    assert open_client.get(ME).json()["must_change_password"] is True
    answer = open_client.get("/api/v1/api_credentials", headers=OWN)
    assert (answer.status_code, answer.json()["detail"]) == (403, "Password change required")
    for body, status in (
        ({"current_password": "wrong", "password": "a new password"}, 400),
        ({"current_password": PASSWORD, "password": "short"}, 422),
        ({"current_password": PASSWORD, "password": "a new password"}, 200),
    ):
        assert open_client.post("/api/v1/password", json=body, headers=OWN).status_code == status
    assert open_client.get("/api/v1/api_credentials", headers=OWN).status_code == 200


def test_revocation__is_at_once(open_client: Client, hub: Hub) -> None:
    """A log-out by an admin, a reset, disabling and a change of the role end sessions with the next request."""
    users = {user.username: user.id for user in hub.users.page(OPERATOR)[0]}
    events: list[Callable[[], object]] = [
        lambda: hub.users.log_out(OPERATOR, users["ann"]),
        lambda: hub.users.reset_password(OPERATOR, users["ann"], PASSWORD),
        lambda: hub.tenants.set_role(OPERATOR, users["eve"], Role.ADMIN),
        lambda: hub.users.change(OPERATOR, users["ann"], enabled=False),
    ]
    for event in events:
        open_client.log_in("ann")
        assert open_client.get(ME).status_code == 200
        event()
        assert open_client.get(ME).status_code == 401


@pytest.mark.slow
def test_keys__of_a_disabled_user(open_client: Client, hub: Hub) -> None:
    """The key of a disabled user stops at once."""
    users = {user.username: user.id for user in hub.users.page(OPERATOR)[0]}
    headers = open_client.bearer("eve")
    assert open_client.get(ME, headers=headers).status_code == 200
    hub.users.change(OPERATOR, users["eve"], enabled=False)
    assert open_client.get(ME, headers=headers).status_code == 401


def deriver(*parts: object) -> Callable[[str], str]:
    """Return a function that returns a text, which differs for other parts and another last one."""
    return lambda last: repr((*parts, last))


def test_uris__hold_for_a_path_a_user_and_a_time() -> None:
    """A signature fits its path, user and time alone, for 23 to 24 hours, and is the same within an hour."""
    now = [3600.0 * 1000 + 5]
    uris = Uris(deriver, lambda: now[0])
    path, _, query = uris.sign("/a/b c", "me", size=3).partition("?")
    values = dict(part.split("=") for part in query.split("&"))
    assert (path, values["size"]) == ("/a/b%20c", "3")
    good = {
        "user_id": "me",
        "expires": values["exp"],
        "signature": Uris(deriver)._signature("me", int(values["exp"]))("/a/b c"),
    }
    assert uris.user_of("/a/b c", **good) == "me"
    assert 23 * 3600 <= int(values["exp"]) - now[0] <= 24 * 3600
    now[0] += 3000
    assert uris.sign("/a/b c", "me", size=3).partition("?")[2] == query
    for path, wrong in (
        ("/a/b", good),
        ("/a/b c", {**good, "user_id": "you"}),
        ("/a/b c", {**good, "expires": str(int(values["exp"]) + 1)}),
        ("/a/b c", {**good, "signature": "x"}),
        ("/a/b c", {**good, "expires": "1e9"}),
        ("/a/b c", {**good, "expires": "٣"}),
    ):
        with pytest.raises(Exception, match="not valid any more"):
            uris.user_of(path, **wrong)
    now[0] = float(values["exp"])
    with pytest.raises(Exception, match="not valid any more"):
        uris.user_of("/a/b c", **good)


@given(st.text(), st.text(), st.text())
def test_uris__of_any_text(user: str, expires: str, signature: str) -> None:
    """No text is a signature by accident, and none breaks the check."""
    with pytest.raises(Exception, match="not valid any more"):
        Uris(deriver).user_of("/a", user_id=user, expires=expires, signature=signature)
