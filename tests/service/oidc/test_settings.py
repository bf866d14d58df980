"""Settings of log-in by OpenID Connect: names, values, what needs what, and the secret."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from framedex import Workspace
from framedex.cli import main
from framedex.errors import InvalidInput, MissingDependency
from framedex.hub import Hub
from framedex.service.settings import OidcSettings, load_oidc_settings
from framedex.service.sign_on import open_sign_on
from framedex.settings.registry import present_settings
from tests.environment import Environment
from tests.extras import missing

ISSUER = "https://idp.example.org/realms/images"


@pytest.fixture
def hub_of_nobody(workspace: Workspace) -> Iterator[Hub]:
    """A hub without users."""
    with Hub(workspace) as opened:
        yield opened


@pytest.fixture(autouse=True)
def _no_variables(environment: Environment) -> None:
    for name in OidcSettings.model_fields:
        for variable in (name.upper(), f"FRAMEDEX_{name.upper()}"):
            environment.pop(variable, None)


def test_names__with_and_without_the_prefix(environment: Environment) -> None:
    """Variables have the names of the interface, or these with the prefix, which count more; empty ones are not set."""
    assert not load_oidc_settings().is_complete()
    for name, value in (
        ("OIDC_ISSUER", ISSUER),
        ("FRAMEDEX_OIDC_CLIENT_ID", "images"),
        ("OIDC_CLIENT_ID", "other"),
        ("OIDC_CLIENT_SECRET", ""),
        ("OIDC_REDIRECT_URI", " "),
        ("OIDC_LINK_BY_EMAIL", "yes"),
    ):
        environment[name] = value
    settings = load_oidc_settings()
    assert settings.is_complete()
    assert (settings.oidc_issuer, settings.oidc_client_id, settings.oidc_client_secret) == (ISSUER, "images", None)
    assert (settings.oidc_redirect_uri, settings.oidc_link_by_email) == (None, True)
    assert not OidcSettings.off().is_complete()


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("OIDC_ISSUER", "http://idp.example.org", "https"),
        ("OIDC_ISSUER", "https://idp.example.org/?a=b", "without a query"),
        ("OIDC_ISSUER", "https://a:b@idp.example.org", "https"),
        ("OIDC_ISSUER", "idp.example.org", "https"),
        ("OIDC_ISSUER", "https://[", "https"),
        ("OIDC_REDIRECT_URI", "http://images.example.com/api/v1/oidc/callback", "https"),
        ("OIDC_DEFAULT_ROLE", "admin", "viewer or editor"),
        ("OIDC_SCOPES", "profile", "pattern"),
        ("OIDC_TIMEOUT_S", "0", "greater than 0"),
    ],
)
def test_values__that_cannot_be(environment: Environment, name: str, value: str, reason: str) -> None:
    """A value that is not safe, or that means nothing, is refused with the name of the variable."""
    environment[name] = value
    with pytest.raises(InvalidInput, match=rf"^{name} is .*{reason}"):
        load_oidc_settings()


@pytest.mark.parametrize("url", ["http://localhost:8080/realms/x", "http://127.0.0.1:9", "http://[::1]/", "https://a/"])
def test_issuers__that_are_safe(url: str) -> None:
    """Plain http is accepted for this machine alone; a slash at the end stays."""
    assert OidcSettings(oidc_issuer=url).oidc_issuer == url


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"oidc_client_id": "x"}, "OIDC_CLIENT_ID needs OIDC_ISSUER"),
        ({"oidc_only": True}, "OIDC_ONLY needs OIDC_ISSUER"),
        ({"oidc_bearer_audience": "x"}, "OIDC_BEARER_AUDIENCE needs OIDC_ISSUER"),
        ({"oidc_issuer": ISSUER}, "OIDC_ISSUER needs OIDC_CLIENT_ID"),
        ({"oidc_issuer": ISSUER, "oidc_client_id": "x"}, "needs OIDC_REDIRECT_URI, or FRAMEDEX_PUBLIC_URL"),
        (
            {"oidc_issuer": ISSUER, "oidc_client_id": "x", "oidc_redirect_uri": "https://a/callback"},
            "must end with /api/v1/oidc/callback",
        ),
    ],
)
def test_settings__that_others_need(hub_of_nobody: Hub, settings: dict[str, object], reason: str) -> None:
    """A setting without another that it needs is refused at the start of the service, with the name of that."""
    with pytest.raises(InvalidInput, match=reason):
        open_sign_on(OidcSettings(**settings), hub_of_nobody, public_url=None)  # type: ignore[arg-type] # of many types


def test_redirect_uri__below_the_public_url(hub_of_nobody: Hub) -> None:
    """Without a redirect URI the public URL is used, which must be safe, too."""
    settings = OidcSettings(oidc_issuer=ISSUER, oidc_client_id="x")
    found = open_sign_on(settings, hub_of_nobody, public_url="https://images.example.com/framedex")
    assert found is not None
    assert (found.cookie_path, found.is_secure) == ("/framedex/api/v1/oidc", True)
    with pytest.raises(InvalidInput, match=r"needs https, but FRAMEDEX_PUBLIC_URL is 'http://images\.example\.com'"):
        open_sign_on(settings, hub_of_nobody, public_url="http://images.example.com")


def test_extra__that_is_missing(hub_of_nobody: Hub) -> None:
    """Without the extra the service starts unless log-in by OpenID Connect is on; then the error names the extra."""
    settings = OidcSettings(oidc_issuer=ISSUER, oidc_client_id="x")
    with missing("framedex.service.oidc.sign_on"):
        assert open_sign_on(OidcSettings.off(), hub_of_nobody, public_url=None) is None
        with pytest.raises(MissingDependency, match=r"pip install 'framedex\[oidc\]'"):
            open_sign_on(settings, hub_of_nobody, public_url="https://images.example.com")


def test_secret__is_not_shown(tmp_path: Path, environment: Environment, capsys: pytest.CaptureFixture[str]) -> None:
    """Neither the command, nor its JSON, nor the repr of the settings shows the secret of the client."""
    environment["OIDC_CLIENT_SECRET"] = "planted-secret"
    environment["OIDC_ISSUER"] = ISSUER
    shown = {each.definition.name: each.value for each in present_settings(tmp_path)}
    assert (shown["OIDC_CLIENT_SECRET"], shown["OIDC_ISSUER"]) == ("not shown", ISSUER)
    assert "planted-secret" not in repr(load_oidc_settings())
    for more in ([], ["--json"]):
        with pytest.raises(SystemExit) as ended:
            main(["settings", "-w", str(tmp_path), *more])
        assert ended.value.code == 0
        output = capsys.readouterr().out
        assert "not shown" in output
        assert "planted-secret" not in output
