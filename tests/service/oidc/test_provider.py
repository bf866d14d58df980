"""The protocol of log-in by OpenID Connect: an honest provider, and those that lie."""

import base64
import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from joserfc import jwt

from framedex.errors import InvalidInput, Unavailable
from framedex.service.oidc.provider import OpenIdProvider
from framedex.service.oidc.states import LoginState, LoginStates, new_browser_secret
from tests.service.oidc.provider import (
    CLIENT,
    DISCOVERY,
    KEYS,
    REDIRECT,
    TOKEN,
    USERINFO,
    HostileProvider,
    ec_key,
    rsa_key,
    signed_with_public_key,
    unsigned,
)


def derive(*parts: object) -> str:
    """Return a text of 43 characters that follows from its parts."""
    return f"{abs(hash(parts)):043d}"[-43:]


class Times:
    """A clock that a test moves, which counts the age of keys and documents; tokens have the real time."""

    def __init__(self) -> None:
        self.passed = 0.0

    def clock(self) -> float:
        return self.passed


@pytest.fixture
def times() -> Times:
    """The clock of the service."""
    return Times()


def of(provider: HostileProvider, times: Times, **changes: Any) -> OpenIdProvider:
    """Return what the service knows of a provider."""
    return OpenIdProvider(provider.settings(**changes), REDIRECT, clock=times.clock)


def new_login() -> LoginState:
    """Return a log-in that begins."""
    return LoginStates(derive).new(new_browser_secret(), "/", now=int(time.time()))


def log_in(client: OpenIdProvider, provider: HostileProvider, **changes: str) -> dict[str, Any]:
    """Log in and return the claims of the user."""
    login = new_login()
    answer = provider.authorize(client.login_url(login), **changes)
    return client.redeem(client.check_answer(answer), login)


def test_login__of_an_honest_provider(provider: HostileProvider, times: Times) -> None:
    """The code is redeemed with the secret and the verifier; documents and keys are read once."""
    provider.claims = {"email": "ann@example.org", "preferred_username": "ann"}
    client = of(provider, times)
    for _ in range(3):
        claims = log_in(client, provider)
    assert (claims["sub"], claims["email"]) == ("subject-1", "ann@example.org")
    assert dict(provider.requests) == {DISCOVERY: 1, KEYS: 1, TOKEN: 3}


def test_login__with_a_key_on_a_curve(provider: HostileProvider, times: Times) -> None:
    """Signatures with elliptic curves are accepted."""
    provider.key, provider.keys = ec_key("curve"), [rsa_key("first"), ec_key("curve")]
    assert log_in(of(provider, times), provider)["sub"] == "subject-1"


def test_login__of_a_public_client_and_with_the_secret_in_the_form(provider: HostileProvider, times: Times) -> None:
    """Without a secret the client names itself in the form; providers that want the secret there get it there."""
    bodies: list[bytes] = []

    def note(handler: Any) -> tuple[int, dict[str, str], bytes]:
        bodies.append(b"Authorization" if "Authorization" in handler.headers else b"")
        return 400, {}, b'{"error": "invalid_client"}'

    provider.answers[TOKEN] = note
    provider.document = {"token_endpoint_auth_methods_supported": ["client_secret_post"]}
    for changes in ({"oidc_client_secret": None}, {}):
        with pytest.raises(InvalidInput, match="no ID token for the code: invalid_client"):
            log_in(of(provider, times, **changes), provider)
    assert bodies == [b"", b""]


def test_login__with_claims_of_the_endpoint_for_users(provider: HostileProvider, times: Times) -> None:
    """What the ID token does not have is added, for the same user alone; what it has stays."""
    provider.document = {"userinfo_endpoint": provider.issuer + USERINFO}
    provider.claims = {"email": "ann@example.org"}
    provider.profile = {"sub": "subject-1", "email": "other@example.org", "preferred_username": "ann"}
    claims = log_in(of(provider, times), provider)
    assert (claims["email"], claims["preferred_username"]) == ("ann@example.org", "ann")
    provider.profile["sub"] = "subject-2"
    with pytest.raises(InvalidInput, match="those of another user"):
        log_in(of(provider, times), provider)
    provider.answers[USERINFO] = lambda _handler: (403, {}, b"")
    assert "preferred_username" not in log_in(of(provider, times), provider)
    with pytest.raises(Unavailable, match="403"):
        log_in(of(provider, times, oidc_trust_roles=True), provider)


WRONG: dict[str, dict[str, Any]] = {
    "nonce": {"nonce": "another"},
    "no nonce": {"nonce": None},
    "audience": {"aud": "another-client"},
    "audiences without azp": {"aud": [CLIENT, "another-client"]},
    "authorized party": {"aud": [CLIENT, "another-client"], "azp": "another-client"},
    "authorized party of one audience": {"azp": "another-client"},
    "no audience": {"aud": None},
    "issuer": {"iss": "https://evil.example"},
    "issuer with a slash": {"iss": "slash"},
    "no issuer": {"iss": None},
    "expired": {"exp": int(time.time()) - 120},
    "no expiry": {"exp": None},
    "expiry as text": {"exp": "9999999999"},
    "expiry that is no number": {"exp": float("nan")},
    "expiry true": {"exp": True},
    "issued in the future": {"iat": int(time.time()) + 86_400},
    "no time of issue": {"iat": None},
    "not valid yet": {"nbf": int(time.time()) + 86_400},
    "no subject": {"sub": None},
    "empty subject": {"sub": ""},
    "subject of another type": {"sub": 7},
    "long subject": {"sub": "x" * 256},
    "another access token": {"at_hash": "x" * 22},
    "hash of another type": {"at_hash": [1]},
}


@pytest.mark.parametrize("claims", WRONG.values(), ids=WRONG)
def test_login__with_wrong_claims(provider: HostileProvider, times: Times, claims: dict[str, Any]) -> None:
    """An ID token for another log-in, client, issuer or time is refused."""
    provider.claims = {**claims, **({"iss": provider.issuer + "/"} if claims.get("iss") == "slash" else {})}
    with pytest.raises(InvalidInput):
        log_in(of(provider, times), provider)


@pytest.mark.parametrize("claims", [{"aud": [CLIENT]}, {"aud": [CLIENT, "x"], "azp": CLIENT}, {"azp": CLIENT}])
def test_login__with_audiences(provider: HostileProvider, times: Times, claims: dict[str, Any]) -> None:
    """Several audiences are accepted if the token was made for this client."""
    provider.claims = claims
    assert log_in(of(provider, times), provider)["sub"] == "subject-1"


def of_another_key(header: dict[str, Any], claims: dict[str, Any]) -> str:
    """Return a token of another key that claims to be the provider's."""
    return jwt.encode({**header, "jwk": rsa_key("evil").as_dict(False)}, claims, rsa_key("evil"))


def changed_afterwards(header: dict[str, Any], claims: dict[str, Any]) -> str:
    """Return a token whose claims were changed after the signature."""
    head, _, signature = jwt.encode(header, {**claims, "sub": "other"}, rsa_key("first")).split(".")
    return ".".join([head, jwt.encode(header, claims, rsa_key("first")).split(".")[1], signature])


FORGED: dict[str, Callable[[dict[str, Any], dict[str, Any]], str]] = {
    "none": unsigned,
    "HS256 with the public key": signed_with_public_key,
    "another key": of_another_key,
    "changed": changed_afterwards,
    "two parts": lambda _header, _claims: "a.b",
    "no token": lambda _header, _claims: "é.é.é",
    "not JSON": lambda _header, _claims: "e30.e30.e30",
    "very long": lambda _header, _claims: f"{'e' * 70_000}.e30.e30",
    "deep": lambda _header, _claims: f"{'W1tb' * 15_000}.e30.e30",
}


@pytest.mark.parametrize("sign", FORGED.values(), ids=FORGED)
def test_login__with_forged_tokens(
    provider: HostileProvider, times: Times, sign: Callable[[dict[str, Any], dict[str, Any]], str]
) -> None:
    """A token that the provider's key did not sign is refused, though the provider offers such algorithms."""
    provider.sign = sign
    with pytest.raises(InvalidInput):
        log_in(of(provider, times), provider)


@pytest.mark.parametrize("header", [{"crit": ["b64"], "b64": False}, {"kid": 7}, {"kid": "unknown"}])
def test_login__with_strange_headers(provider: HostileProvider, times: Times, header: dict[str, Any]) -> None:
    """Headers that change the meaning of a token, and keys that the provider does not have, are refused."""
    provider.sign = lambda honest, claims: _with_header(
        jwt.encode(honest, claims, rsa_key("first")), {**honest, **header}
    )
    with pytest.raises(InvalidInput):
        log_in(of(provider, times), provider)


def _with_header(token: str, header: dict[str, Any]) -> str:
    encoded = base64.urlsafe_b64encode(json.dumps(header).encode()).rstrip(b"=").decode()
    return f"{encoded}.{token.partition('.')[2]}"


def test_login__without_the_id_of_the_key(provider: HostileProvider, times: Times) -> None:
    """A token need not name its key if the provider has one; with several it must."""
    provider.header = {"kid": None}
    assert log_in(of(provider, times), provider)["sub"] == "subject-1"
    provider.keys.append(rsa_key("second"))
    with pytest.raises(InvalidInput, match="signature"):
        log_in(of(provider, times), provider)


def test_code__of_another_log_in(provider: HostileProvider, times: Times) -> None:
    """A code that was given for another log-in is refused by PKCE, and a code is used once."""
    client, login, other = of(provider, times), new_login(), new_login()
    code = provider.authorize(client.login_url(login))["code"]
    with pytest.raises(InvalidInput, match="no ID token for the code: invalid_grant"):
        client.redeem(code, other)
    code = provider.authorize(client.login_url(login))["code"]
    client.redeem(code, login)
    with pytest.raises(InvalidInput, match="invalid_grant"):
        client.redeem(code, login)


def test_answer__of_another_provider(provider: HostileProvider, times: Times) -> None:
    """The answer to a log-in names no other issuer, and names one if the provider says that it does (RFC 9207)."""
    client = of(provider, times)
    assert client.check_answer({"code": "x", "iss": provider.issuer}) == "x"
    with pytest.raises(InvalidInput, match="not one of the identity provider"):
        client.check_answer({"code": "x", "iss": "https://evil.example"})
    provider.document = {"authorization_response_iss_parameter_supported": True}
    with pytest.raises(InvalidInput, match="not one of the identity provider"):
        of(provider, times).check_answer({"code": "x"})


def test_answer__that_is_an_error(provider: HostileProvider, times: Times) -> None:
    """A refusal is told by its code alone; other text in it is not repeated."""
    client = of(provider, times)
    for answer, reason in (
        ({"error": "access_denied", "error_description": "x"}, "answered access_denied$"),
        ({"error": "<script>", "code": "x"}, "answered an error$"),
        ({}, "has no code"),
        ({"code": ""}, "has no code"),
    ):
        with pytest.raises(InvalidInput, match=reason):
            client.check_answer(answer)


def test_keys__that_are_replaced(provider: HostileProvider, times: Times) -> None:
    """A new key is read when a token names it; a key that was taken back is trusted no longer than an hour."""
    client = of(provider, times)
    log_in(client, provider)
    provider.key = rsa_key("second")
    provider.keys = [provider.key]
    times.passed = 31
    log_in(client, provider)
    assert provider.requests[KEYS] == 2
    provider.key, provider.keys = rsa_key("second"), [rsa_key("first")]
    times.passed = 60
    log_in(client, provider)
    times.passed = 31 + 3601
    with pytest.raises(InvalidInput, match="signature"):
        log_in(client, provider)


def test_keys__that_are_invented(provider: HostileProvider, times: Times) -> None:
    """Tokens with unknown keys cause one request in 30 s."""
    client = of(provider, times)
    log_in(client, provider)
    provider.header = {"kid": "invented"}
    for moment in (31, 32, 33, 60, 62, 63):
        times.passed = moment
        with pytest.raises(InvalidInput, match="signature"):
            log_in(client, provider)
    assert provider.requests[KEYS] == 3


def test_keys__while_the_provider_is_down(provider: HostileProvider, times: Times) -> None:
    """Present keys are used for a day if they cannot be read again; without any, log-ins wait for a while."""
    client = of(provider, times)
    log_in(client, provider)
    provider.answers[KEYS] = lambda _handler: (404, {}, b"")
    times.passed = 2 * 3600
    log_in(client, provider)
    times.passed = 25 * 3600
    with pytest.raises(Unavailable, match="404"):
        log_in(client, provider)
    asked = provider.requests[KEYS]
    with pytest.raises(Unavailable, match="try again in a minute"):
        log_in(client, provider)
    assert provider.requests[KEYS] == asked


@pytest.mark.parametrize(
    "keys",
    [
        [],
        [{"kty": "oct", "k": "AAAA", "kid": "first"}],
        [{"kty": "RSA", "n": "AQAB", "e": "AQAB", "kid": "first"}],
        [{"kty": "RSA", "kid": "first"}],
        [{"kty": 7}, 7, {}, {"kty": "EC", "crv": "P-256", "x": "AA", "y": "AA"}],
        [{"use": "enc", **rsa_key("encryption").as_dict(False), "kid": "first"} | {"use": "enc"}],
    ],
)
def test_keys__that_sign_nothing(provider: HostileProvider, times: Times, keys: list[Any]) -> None:
    """Secrets, short or broken keys and keys for encryption check no signature."""
    provider.keys = keys
    with pytest.raises(Unavailable, match="no keys for signatures"):
        log_in(of(provider, times), provider)


BROKEN: dict[str, dict[str, Any]] = {
    "another issuer": {"issuer": "https://evil.example"},
    "template of issuers": {"issuer": "https://login.example/{tenantid}/v2.0"},
    "no issuer": {"issuer": None},
    "plain http": {"token_endpoint": "http://example.org/token"},
    "script": {"authorization_endpoint": "javascript:alert(1)"},
    "user in a URL": {"jwks_uri": "https://a:b@example.org/"},
    "no keys": {"jwks_uri": None},
    "number": {"token_endpoint": 7},
    "log-out": {"end_session_endpoint": "file:///etc/passwd"},
    "algorithms": {"id_token_signing_alg_values_supported": ["HS256", "none"]},
    "algorithms of another type": {"id_token_signing_alg_values_supported": 7},
    "PKCE": {"code_challenge_methods_supported": ["plain"]},
}


@pytest.mark.parametrize("document", BROKEN.values(), ids=BROKEN)
def test_discovery__that_cannot_be_used(provider: HostileProvider, times: Times, document: dict[str, Any]) -> None:
    """A discovery document of another issuer, with unsafe URLs, or without what a log-in needs, is refused."""
    provider.document = document
    with pytest.raises(Unavailable, match="identity provider"):
        of(provider, times).discover()


def test_discovery__that_fails_is_tried_again_later(provider: HostileProvider, times: Times) -> None:
    """After a failure log-ins fail at once for 5 s; then the provider is asked again."""
    client = of(provider, times)
    provider.answers[DISCOVERY] = lambda _handler: (404, {}, b"")
    for _ in range(3):
        with pytest.raises(Unavailable, match="404"):
            client.discover()
    assert provider.requests[DISCOVERY] == 1
    del provider.answers[DISCOVERY]
    times.passed = 6
    log_in(client, provider)


def test_discovery__is_repeated(provider: HostileProvider, times: Times) -> None:
    """The document is read again after an hour; if that fails, the former one counts for a day."""
    client = of(provider, times)
    log_in(client, provider)
    provider.document = {"end_session_endpoint": None}
    times.passed = 3601
    assert client.discover().end_session_endpoint is None
    provider.answers[DISCOVERY] = lambda _handler: (404, {}, b"")
    for hour in (2.5, 20):
        times.passed = hour * 3600
        assert client.discover().issuer == provider.issuer
        log_in(client, provider)
    times.passed = 26 * 3600
    with pytest.raises(Unavailable, match="404"):
        client.discover()


def test_logout__at_the_provider(provider: HostileProvider, times: Times) -> None:
    """The URL of the log-out names this client and where to return to, beside what it has already."""
    url = of(provider, times).logout_url("https://images.example.com/?a=b")
    assert url == (
        f"{provider.issuer}/logout?realm=1&client_id={CLIENT}"
        "&post_logout_redirect_uri=https%3A%2F%2Fimages.example.com%2F%3Fa%3Db"
    )
    provider.document = {"end_session_endpoint": None}
    assert of(provider, times).logout_url("https://images.example.com/") is None


def test_logout_tokens(provider: HostileProvider, times: Times) -> None:
    """A logout token names a session or a user."""
    client = of(provider, times)
    assert client.logout_claims(provider.logout_token(sid="s"))["sid"] == "s"
    assert client.logout_claims(provider.logout_token(sub=None, sid="s"))["sid"] == "s"
    assert client.logout_claims(provider.logout_token(exp=None))["sub"] == "subject-1"


NO_LOGOUT: dict[str, dict[str, Any]] = {
    "nonce": {"nonce": "x"},
    "no events": {"events": None},
    "other events": {"events": {"http://example.org/": {}}},
    "events as a list": {"events": ["http://schemas.openid.net/event/backchannel-logout"]},
    "event of another type": {"events": {"http://schemas.openid.net/event/backchannel-logout": 1}},
    "no jti": {"jti": None},
    "jti of another type": {"jti": 7},
    "nobody": {"sub": None},
    "user of another type": {"sub": 7},
    "session of another type": {"sid": {}},
    "audience": {"aud": "another-client"},
    "issuer": {"iss": "https://evil.example"},
    "expired": {"exp": int(time.time()) - 120},
    "old": {"iat": int(time.time()) - 700, "exp": int(time.time()) + 9999},
    "no time of issue": {"iat": None},
    "time of another type": {"iat": "1"},
}


@pytest.mark.parametrize("claims", NO_LOGOUT.values(), ids=NO_LOGOUT)
def test_logout_tokens__that_are_none(provider: HostileProvider, times: Times, claims: dict[str, Any]) -> None:
    """Other tokens of the provider end no session."""
    with pytest.raises(InvalidInput):
        of(provider, times).logout_claims(provider.logout_token(**claims))


def test_access_tokens(provider: HostileProvider, times: Times) -> None:
    """Access tokens count only for the audience of the settings, and ID and logout tokens are none."""
    client = of(provider, times, oidc_bearer_audience="images")
    assert client.access_claims(provider.token(provider.claims_of(aud=["images", "x"])))["sub"] == "subject-1"
    for claims in (
        {},
        {"aud": None},
        {"aud": "images", "iss": "https://evil.example"},
        {"aud": "images", "exp": 1},
        {"aud": "images", "exp": None},
        {"aud": "images", "iat": None},
        {"aud": "images", "sub": None},
        {"aud": "images", "typ": "ID"},
        {"aud": "images", "at_hash": "x"},
        {"aud": "images", "events": {}},
    ):
        with pytest.raises(InvalidInput):
            client.access_claims(provider.token(provider.claims_of(**claims)))
    with pytest.raises(InvalidInput, match="not accepted"):
        of(provider, times).access_claims(provider.token(provider.claims_of()))
