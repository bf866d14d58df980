"""Log-in and log-out with an identity provider over HTTP, and attacks on both."""

import logging
import threading
import time
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from framedex import Workspace
from framedex.access import Role
from framedex.hub import Hub
from framedex.service.settings import ServiceSettings
from tests.service.client import BASE, OWN, Client, client_of, token_of
from tests.service.oidc.conftest import Serve
from tests.service.oidc.provider import DISCOVERY, KEYS, SECRET, TOKEN, HostileProvider, rsa_key
from tests.service.users import OPERATOR, PASSWORD

LOGIN, CALLBACK, ME = "/api/v1/oidc/login", "/api/v1/oidc/callback", "/api/v1/me"
BACKCHANNEL, LOGOUT = "/api/v1/oidc/backchannel_logout", "/api/v1/oidc/logout"


def begin(client: Client, **query: str) -> str:
    """Begin a log-in and return the URL at the provider."""
    answer = client.get(LOGIN, params=query)
    assert answer.status_code == 302, answer.text
    return answer.headers["Location"]


def finish(client: Client, answer: dict[str, str]) -> Any:
    """Return the service's answer to that of the provider."""
    return client.get(CALLBACK, params=answer)


def log_in(client: Client, provider: HostileProvider, **query: str) -> Any:
    """Log in, as a browser does, and return the last answer."""
    return finish(client, provider.authorize(begin(client, **query)))


def refusal(answer: Any) -> tuple[int, str]:
    """Return the status and the sentence of an answer."""
    return answer.status_code, answer.json()["detail"]


def test_log_in__is_a_session(client: Client, provider: HostileProvider) -> None:
    """The browser comes back from the provider with a session, on the page where it began."""
    provider.claims = {"preferred_username": "zoe", "email": "zoe@example.org", "email_verified": True, "sid": "s"}
    answer = log_in(client, provider, next="/albums?page=2")
    assert (answer.status_code, answer.headers["Location"]) == (302, "/albums?page=2")
    session, state = sorted(answer.headers.get_list("Set-Cookie"), reverse=True)
    assert all(part in session for part in ("SESSION=", "HttpOnly", "SameSite=lax", "Path=/;"))
    assert state.startswith('OIDC_STATE=""')
    me = client.get(ME).json()
    assert (me["username"], me["email"], me["auth"], me["workspace_role"]) == (
        "zoe", "zoe@example.org", "session", "viewer",
    )  # fmt: skip


def test_log_in__sets_a_cookie_for_its_own_paths(client: Client, serve: Serve) -> None:
    """The cookie of a log-in lasts ten minutes, and scripts cannot read it; with https it is sent over https alone."""
    cookie = client.get(LOGIN).headers["Set-Cookie"]
    assert all(part in cookie for part in ("HttpOnly", "SameSite=lax", "Path=/api/v1/oidc;", "Max-Age=600"))
    assert "Secure" not in cookie
    settings = ServiceSettings(disable_auth=False, public_url="https://images.example.com/framedex")
    secure = serve(settings, oidc_redirect_uri=None)
    answer = secure.get(LOGIN)
    assert all(part in answer.headers["Set-Cookie"] for part in ("Secure", "Path=/framedex/api/v1/oidc;"))
    query = parse_qs(urlsplit(answer.headers["Location"]).query)
    assert query["redirect_uri"] == ["https://images.example.com/framedex/api/v1/oidc/callback"]


def test_log_in__where_passwords_are_on_or_off(client: Client, serve: Serve) -> None:
    """Both ways are open unless the settings close that by password, and a page can ask which."""
    assert client.get("/api/v1/oidc").json() == {"enabled": True, "password": True}
    client.log_in("ann")
    only = serve(oidc_only=True)
    assert only.get("/api/v1/oidc").json() == {"enabled": True, "password": False}
    body = {"username": "ann", "password": PASSWORD}
    assert refusal(only.post("/api/v1/login", json=body)) == (403, "Local login is disabled")


def test_log_in__that_is_off(open_client: Client, local: Client, serve: Serve) -> None:
    """Without a provider the paths answer 404, and while authentication is off 403."""
    for path in (LOGIN, CALLBACK):
        assert refusal(open_client.get(path)) == (404, "OIDC is not configured")
        assert refusal(serve(ServiceSettings()).get(path)) == (403, "Authentication is disabled")
    assert refusal(open_client.post(BACKCHANNEL)) == (404, "OIDC is not configured")
    assert open_client.get("/api/v1/oidc").json() == {"enabled": False, "password": True}
    assert local.get("/api/v1/oidc").json() == {"enabled": False, "password": False}


@pytest.mark.slow
@pytest.mark.parametrize(
    "target", ["//evil.example", "/\\evil.example", "https:evil.example", "/\r\nSet-Cookie:x=y", "/a\\b", "x", ""]
)
def test_redirects__stay_within_the_service(client: Client, provider: HostileProvider, target: str) -> None:
    """A log-in leads to a page of this service, whatever it was asked for."""
    answer = log_in(client, provider, next=target)
    assert (answer.status_code, answer.headers["Location"]) == (302, "/")
    assert "x" not in client.cookies


def test_redirects__below_a_path(serve: Serve, provider: HostileProvider) -> None:
    """Behind a proxy with a path the first page is that of the path."""
    settings = ServiceSettings(disable_auth=False, public_url="https://images.example.com/framedex")
    client = serve(settings, oidc_redirect_uri="https://images.example.com/framedex/api/v1/oidc/callback")
    answer = client.get(LOGIN)
    cookie = answer.headers["Set-Cookie"].partition(";")[0]
    state = parse_qs(urlsplit(answer.headers["Location"]).query)["state"][0]
    answer = client.get(CALLBACK, params={"state": state, "error": "access_denied"}, headers={"Cookie": cookie})
    assert refusal(answer) == (400, "Login failed: the identity provider answered access_denied")
    begun = client.app.state.service.sign_on._states.check(  # type: ignore[attr-defined] # the application
        state, cookie.partition("=")[2], now=int(time.time())
    )
    assert begun.path == "/framedex/"


def test_states__are_used_once(client: Client, provider: HostileProvider) -> None:
    """An answer that was used is refused, also in the browser that used it, and also if it was not accepted."""
    answer = provider.authorize(begin(client))
    cookie = {"Cookie": f"OIDC_STATE={client.cookies['OIDC_STATE']}"}
    assert finish(client, answer).status_code == 302
    client.cookies.clear()
    for changes in ({}, {"code": "another"}):
        again = client.get(CALLBACK, params={**answer, **changes}, headers=cookie)
        assert refusal(again) == (400, "Login failed: the log-in was ended before; begin again")
    assert provider.requests[TOKEN] == 1
    assert "SESSION" not in client.cookies


@pytest.mark.slow
def test_states__are_those_of_one_browser(client: Client, serve: Serve, provider: HostileProvider) -> None:
    """The answer to the log-in of an attacker makes no session in the browser of somebody else."""
    other = serve()
    answer = provider.authorize(begin(client))
    begin(other)
    for browser in (other, serve()):
        assert refusal(finish(browser, answer)) == (
            400, "Login failed: the log-in was not begun in this browser; begin again",
        )  # fmt: skip
        assert "SESSION" not in browser.cookies
    assert finish(client, answer).status_code == 302, "the browser that began it still can end it"


@pytest.mark.slow
def test_states__of_several_tabs(client: Client, provider: HostileProvider) -> None:
    """Two tabs of a browser can log in at the same time."""
    answers = [provider.authorize(begin(client, next=f"/{tab}")) for tab in "ab"]
    cookie = {"Cookie": f"OIDC_STATE={client.cookies['OIDC_STATE']}"}
    paths = [client.get(CALLBACK, params=answer, headers=cookie).headers["Location"] for answer in answers]
    assert paths == ["/a", "/b"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"state": "x"}, "the log-in was not begun in this browser; begin again"),
        ({"state": ""}, "the log-in was not begun in this browser; begin again"),
        ({"code": "x"}, "the identity provider gave no ID token for the code: invalid_grant"),
        ({"code": ""}, "the answer has no code"),
        ({"iss": "https://evil.example"}, "the answer is not one of the identity provider"),
        ({"error": "access_denied"}, "the identity provider answered access_denied"),
        ({"error": "<b>x</b>"}, "the identity provider answered an error"),
    ],
)
def test_answers__that_are_refused(
    client: Client, provider: HostileProvider, changes: dict[str, str], reason: str
) -> None:
    """An answer that is not the provider's to this log-in is a 400 with a reason, and begins no session."""
    answer = finish(client, {**provider.authorize(begin(client)), **changes})
    assert refusal(answer) == (400, f"Login failed: {reason}")
    assert "SESSION" not in client.cookies


@pytest.mark.slow
def test_tokens__that_are_refused(client: Client, provider: HostileProvider) -> None:
    """A token that cannot be trusted is a 400 without any part of it, and makes no user."""
    for claims in ({"nonce": "planted"}, {"aud": "planted"}, {"iss": "https://planted.example"}, {"exp": 1}):
        provider.claims = claims
        answer = log_in(client, provider)
        assert answer.status_code == 400
        assert answer.json()["detail"].startswith("Login failed: the ID token is not valid")
        assert "planted" not in answer.text
    assert [user.username for user in client.app.state.service.hub.users.page(OPERATOR)[0]] == ["ann", "eve", "vic"]  # type: ignore[attr-defined] # the application


def test_provider__that_is_down(client: Client, provider: HostileProvider) -> None:
    """While the provider is down after the browser was there, the log-in is a 502 and begins no session."""
    answer = provider.authorize(begin(client))
    provider.answers[TOKEN] = lambda _handler: (503, {}, b"")
    broken = finish(client, answer)
    assert (broken.status_code, broken.json()["code"]) == (502, "unavailable")
    assert "SESSION" not in client.cookies


def test_provider__that_cannot_be_discovered(serve: Serve, provider: HostileProvider) -> None:
    """The service starts without its provider, and says so at each log-in until it is there."""
    provider.answers[DISCOVERY] = lambda _handler: (404, {}, b"")
    client = serve()
    assert client.get("/api/v1/healthcheck").status_code == 200
    answer = client.get(LOGIN)
    assert (answer.status_code, answer.json()["code"]) == (502, "unavailable")
    client.log_in("ann")


def test_provider__that_is_slow(client: Client, provider: HostileProvider) -> None:
    """Eight requests wait for a slow provider; others are told to come again, and the rest of the service goes on."""
    answers = [provider.authorize(begin(client)) for _ in range(9)]
    cookie = {"Cookie": f"OIDC_STATE={client.cookies['OIDC_STATE']}"}
    arrived, over = threading.Semaphore(0), threading.Event()

    def wait(_handler: Any) -> None:
        arrived.release()
        over.wait(10)

    provider.answers[TOKEN] = wait
    threads = [
        threading.Thread(target=client.get, args=(CALLBACK,), kwargs={"params": answer, "headers": cookie})
        for answer in answers[:8]
    ]
    try:
        for thread in threads:
            thread.start()
        assert all(arrived.acquire(timeout=10) for _ in threads)
        ninth = client.get(CALLBACK, params=answers[8], headers=cookie)
        assert (ninth.status_code, ninth.headers["Retry-After"]) == (429, "1")
        assert client.get("/api/v1/healthcheck").status_code == 200
    finally:
        over.set()
        for thread in threads:
            thread.join(10)


@pytest.mark.slow
def test_failures__of_an_address(client: Client, provider: HostileProvider, hub: Hub) -> None:
    """An address with 50 failures an hour causes no more requests to the provider."""
    for _ in range(49):
        hub.external.count_failure("127.0.0.1")
    answers = [provider.authorize(begin(client), code="wrong") for _ in range(2)]
    assert [finish(client, answer).status_code for answer in answers] == [400, 429]
    assert provider.requests[TOKEN] == 1


@pytest.mark.slow
def test_users__that_are_disabled(client: Client, provider: HostileProvider, hub: Hub) -> None:
    """A disabled user is a 403, and gets no session."""
    provider.claims = {"preferred_username": "zoe"}
    log_in(client, provider)
    hub.users.change(OPERATOR, hub.users.find(OPERATOR, "zoe").id, enabled=False)
    client.cookies.clear()
    assert refusal(log_in(client, provider)) == (403, "Account is disabled")
    assert "SESSION" not in client.cookies


@pytest.mark.slow
def test_settings__of_new_users_links_and_roles(serve: Serve, provider: HostileProvider, hub: Hub) -> None:
    """The settings say which role new users get, and whether addresses and roles of the provider count."""
    provider.claims = {"email": "eve@example.org", "email_verified": True, "realm_access": {"roles": ["view-users"]}}
    log_in(serve(oidc_default_role="editor"), provider)
    assert {each.username: each.role for each in hub.tenants.members(OPERATOR)}["eve-2"] == "editor"
    provider.claims["sub"] = "subject-2"
    client = serve(oidc_link_by_email=True, oidc_trust_roles=True)
    log_in(client, provider)
    me = client.get(ME).json()
    assert (me["username"], me["roles"], me["workspace_role"]) == ("eve", ["view-users"], "editor")
    provider.claims["realm_access"] = {"roles": "view-users"}
    log_in(client, provider)
    assert client.get(ME).json()["roles"] == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "claims",
    [
        {"preferred_username": 7, "email": ["x"], "email_verified": True, "given_name": {}, "sid": 1.5},
        {"preferred_username": "x" * 2000, "email": "no address", "email_verified": True, "family_name": "\x00"},
        {"email": "ann@example.org", "email_verified": "false", "realm_access": {"roles": [1, None, {}]}},
        {"email": "ann@example.org", "email_verified": 0, "realm_access": 3},
    ],
)
def test_claims__of_other_types(serve: Serve, provider: HostileProvider, claims: dict[str, Any]) -> None:
    """Claims of other types are left out; the person still logs in, as somebody new without an address."""
    provider.claims = claims
    client = serve(oidc_link_by_email=True, oidc_trust_roles=True)
    assert log_in(client, provider).status_code == 302
    me = client.get(ME).json()
    assert (me["email"], me["roles"]) == (None, [])
    assert me["username"] not in ("ann", "eve", "vic")


def test_logout__ends_both_sessions(client: Client, provider: HostileProvider) -> None:
    """The session here ends at once, and the answer says where the browser ends that of the provider."""
    log_in(client, provider)
    evil = {"Sec-Fetch-Site": "cross-site"}
    assert refusal(client.post(LOGOUT, headers=evil)) == (403, "Cross-site request refused")
    answer = client.post(LOGOUT, headers=OWN)
    assert answer.json() == {
        "message": "Logged out successfully",
        "logout_url": f"{provider.issuer}/logout?realm=1&client_id=framedex&post_logout_redirect_uri="
        "http%3A%2F%2F127.0.0.1%3A8765%2F",
    }
    assert "SESSION" not in client.cookies
    assert client.get(ME).status_code == 401


def test_logout__without_a_session_at_the_provider(serve: Serve, provider: HostileProvider) -> None:
    """Where the provider has no page for it, or cannot be reached, the session here still ends."""
    provider.document = {"end_session_endpoint": None}
    client = serve().log_in("ann")
    assert client.post(LOGOUT, headers=OWN).json()["logout_url"] is None
    provider.answers[DISCOVERY] = lambda _handler: (404, {}, b"")
    client = serve().log_in("ann")
    assert client.post(LOGOUT, headers=OWN).json()["logout_url"] is None
    assert client.get(ME).status_code == 401


def test_back_channel__ends_sessions_at_once(client: Client, serve: Serve, provider: HostileProvider) -> None:
    """The provider ends a session by its id, or all of a user; the next request is refused."""
    browsers = [serve() for _ in range(3)]
    for number, browser in enumerate(browsers):
        provider.claims = {"sid": f"sid-{number}"}
        log_in(browser, provider)
    for token, ended, alive in (
        ({"sid": "unknown"}, 0, [200, 200, 200]),
        ({"sub": None, "sid": "sid-1"}, 1, [200, 401, 200]),
        ({"sub": "subject-2"}, 0, [200, 401, 200]),
        ({}, 2, [401, 401, 401]),
    ):
        answer = client.post(BACKCHANNEL, data={"logout_token": provider.logout_token(**token)})
        assert (answer.status_code, answer.json()) == (200, {"ended": ended})
        assert answer.headers["Cache-Control"] == "no-store"
        assert [browser.get(ME).status_code for browser in browsers] == alive


def test_back_channel__tokens_are_used_once(client: Client, provider: HostileProvider) -> None:
    """A logout token that was used ends no later session."""
    log_in(client, provider)
    token = provider.logout_token()
    assert client.post(BACKCHANNEL, data={"logout_token": token}).json() == {"ended": 1}
    log_in(client, provider)
    again = client.post(BACKCHANNEL, data={"logout_token": token})
    assert refusal(again) == (400, "the logout token was used before")
    assert client.get(ME).status_code == 200


@pytest.mark.slow
def test_back_channel__that_fails_may_be_repeated(client: Client, provider: HostileProvider, hub: Hub) -> None:
    """A logout token whose sessions could not be ended is not used up: the provider sends it again."""
    log_in(client, provider)
    token = {"logout_token": provider.logout_token()}
    with hub._database.write() as connection:
        connection.exec_driver_sql(
            "CREATE TRIGGER broken BEFORE DELETE ON sessions BEGIN SELECT RAISE(ABORT, 'out of order'); END"
        )
    assert client.post(BACKCHANNEL, data=token).status_code == 500
    assert client.get(ME).status_code == 200
    with hub._database.write() as connection:
        connection.exec_driver_sql("DROP TRIGGER broken")
    assert client.post(BACKCHANNEL, data=token).json() == {"ended": 1}
    assert client.get(ME).status_code == 401


@pytest.mark.slow
def test_back_channel__of_others(client: Client, provider: HostileProvider) -> None:
    """Nothing but a logout token of the provider ends a session."""
    log_in(client, provider)
    provider.key = rsa_key("evil")
    for data in ({"logout_token": provider.logout_token()}, {"logout_token": "x"}, {}, {"logout_token": "é" * 99_999}):
        assert client.post(BACKCHANNEL, data=data).status_code == 400
    provider.key = rsa_key("first")
    id_token = provider.token(provider.claims_of(nonce="x"))
    assert client.post(BACKCHANNEL, data={"logout_token": id_token}).status_code == 400
    assert client.get(ME).status_code == 200


def bearer(client: Client, token: str) -> int:
    """Return the status of a request with a token."""
    return client.get(ME, headers={"Authorization": f"Bearer {token}"}).status_code


def test_bearer_tokens__of_the_provider(client: Client, serve: Serve, provider: HostileProvider, hub: Hub) -> None:
    """Access tokens count only if the settings name their audience, and their user has logged in before."""
    token = provider.token(provider.claims_of(aud=["images"]))
    open_to_tokens = serve(oidc_bearer_audience="images")
    assert (bearer(client, token), bearer(open_to_tokens, token)) == (401, 401)
    provider.claims = {"preferred_username": "zoe"}
    log_in(client, provider)
    client.cookies.clear()
    assert (bearer(client, token), bearer(open_to_tokens, token)) == (401, 200)
    for claims in ({}, {"aud": "images", "iss": "https://evil.example"}, {"aud": "images", "exp": 1}):
        answer = open_to_tokens.get(
            ME, headers={"Authorization": f"Bearer {provider.token(provider.claims_of(**claims))}"}
        )
        assert refusal(answer) == (401, "Invalid or expired token")
        assert answer.headers["WWW-Authenticate"] == 'Bearer error="invalid_token"'
    credentials = open_to_tokens.get("/api/v1/api_credentials", headers={"Authorization": f"Bearer {token}", **OWN})
    assert credentials.status_code == 403
    hub.users.change(OPERATOR, hub.users.find(OPERATOR, "zoe").id, enabled=False)
    assert bearer(open_to_tokens, token) == 401


def test_bearer_tokens__of_api_keys_stay(serve: Serve, provider: HostileProvider) -> None:
    """Tokens of API keys work beside those of the provider, and what is neither is refused."""
    client = serve(oidc_bearer_audience="images")
    credentials = client.log_in("ann").get("/api/v1/api_credentials", headers=OWN).json()
    client.cookies.clear()
    assert bearer(client, token_of(credentials["api_key"], credentials["api_secret"])) == 200
    for token in (token_of(credentials["api_key"], "x" * 32), "x", "a.b.c", "", "x" * 9000):
        assert bearer(client, token) == 401


@pytest.mark.slow
def test_bearer_tokens__with_invented_keys(serve: Serve, provider: HostileProvider) -> None:
    """A flood of tokens with unknown keys causes one request to the provider."""
    client = serve(oidc_bearer_audience="images")
    for number in range(20):
        token = provider.token(provider.claims_of(aud="images"), {"kid": f"invented-{number}"})
        assert bearer(client, token) == 401
    assert provider.requests[KEYS] == 1


def test_first_admin__by_the_link_of_the_operator(
    workspace: Workspace, provider: HostileProvider, caplog: pytest.LogCaptureFixture
) -> None:
    """On an empty service the link makes the first user the admin, once; without it nobody becomes one."""
    settings = ServiceSettings(disable_auth=False)
    with Hub(workspace) as hub, client_of(workspace, hub, settings, oidc=provider.settings()) as client:
        client.follow_redirects = False
        sign_on = client.app.state.service.sign_on  # type: ignore[attr-defined] # the application
        link = sign_on.first_admin_link(BASE).removeprefix(BASE)
        assert refusal(client.get(LOGIN, params={"first_admin": "guessed"})) == (
            403, "The link for the first admin is not valid any more",
        )  # fmt: skip
        early = provider.authorize(client.get(link).headers["Location"])
        cookie = {"Cookie": f"OIDC_STATE={client.cookies['OIDC_STATE']}"}
        late = provider.authorize(client.get(link).headers["Location"])
        provider.claims = {"preferred_username": "zoe"}
        assert client.get(CALLBACK, params=early, headers=cookie).status_code == 302
        provider.claims = {"preferred_username": "yan", "sub": "subject-2"}
        assert client.get(CALLBACK, params=late, headers=cookie).status_code == 302
        assert {each.username: each.role for each in hub.tenants.members(OPERATOR)} == {"zoe": "admin", "yan": "viewer"}
        assert client.get(link).status_code == 403


def test_secrets__are_nowhere(
    serve: Serve, provider: HostileProvider, workspace: Workspace, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither the client's secret nor codes, tokens, states and nonces are in files, logs or answers of errors."""
    caplog.set_level(logging.DEBUG, logger="framedex")
    client = serve()
    seen: list[str] = [SECRET]
    original = provider.token

    def note(claims: dict[str, Any], header: dict[str, Any] | None = None) -> str:
        token = original(claims, header)
        seen.extend([token, claims["nonce"]])
        return token

    provider.token = note  # type: ignore[method-assign] # it sees what the provider sends
    answer = provider.authorize(begin(client))
    seen += [answer["code"], answer["state"], client.cookies["OIDC_STATE"]]
    finish(client, answer)
    provider.claims = {"aud": "another"}
    failed = provider.authorize(begin(client))
    seen += [failed["code"], failed["state"]]
    shown = finish(client, failed).text + caplog.text + repr(provider.settings())
    stored = b"".join(path.read_bytes() for path in workspace.path.rglob("*") if path.is_file())
    assert [text for text in seen if text in shown or text.encode() in stored] == []
    assert len(seen) == 10


def test_roles__are_those_of_the_hub(serve: Serve, provider: HostileProvider, hub: Hub) -> None:
    """A user of the provider whom an admin makes an editor is one at the next request."""
    provider.claims = {"preferred_username": "zoe"}
    client = serve()
    log_in(client, provider)
    hub.tenants.set_role(OPERATOR, hub.users.find(OPERATOR, "zoe").id, Role.EDITOR)
    assert client.get(ME).json()["workspace_role"] == "editor"
