"""Providers as they are: their discovery documents, and the claims of their tokens."""

from typing import Any

import pytest

from framedex.access import Role
from framedex.hub import Hub
from framedex.service.oidc.claims import verified_identity
from framedex.service.oidc.metadata import read_metadata
from tests.service.oidc.conftest import Serve
from tests.service.oidc.provider import HostileProvider
from tests.service.oidc.shapes import (
    ENTRA,
    ENTRA_ID_CLAIMS,
    GOOGLE,
    GOOGLE_ID_CLAIMS,
    KEYCLOAK,
    KEYCLOAK_ACCESS_CLAIMS,
    KEYCLOAK_ID_CLAIMS,
)
from tests.service.oidc.test_sign_on import BACKCHANNEL, ME, begin, finish
from tests.service.users import OPERATOR

EXPECTED = {"Keycloak": (KEYCLOAK, 7, True), "Entra": (ENTRA, 1, True), "Google": (GOOGLE, 1, False)}


@pytest.mark.parametrize(("document", "n_algorithms", "has_logout"), EXPECTED.values(), ids=EXPECTED)
def test_documents__can_be_used(document: dict[str, Any], n_algorithms: int, has_logout: bool) -> None:
    """What a log-in needs is found, symmetric algorithms are left out, and the secret is sent in the header."""
    metadata = read_metadata(document, document["issuer"])
    assert metadata.token_endpoint == document["token_endpoint"]
    assert (metadata.end_session_endpoint is not None) is has_logout
    assert not metadata.sends_secret_in_form
    assert len(metadata.algorithms) == n_algorithms
    assert not any(each.startswith(("HS", "none")) for each in metadata.algorithms)
    assert metadata.names_issuer is (document is KEYCLOAK)


def test_claims__of_entra() -> None:
    """An address of Entra counts as verified only if the owner of its domain vouches for it."""
    identity = verified_identity(ENTRA_ID_CLAIMS, ENTRA["issuer"])
    assert (identity.username, identity.email_verified, identity.session) == ("zoe@contoso.example", False, None)
    values: list[Any] = [True, "1", 1, False, "0", None, "false", 0]
    claims = [{**ENTRA_ID_CLAIMS, "xms_edov": value} for value in values]
    verified = [verified_identity(each, ENTRA["issuer"]).email_verified for each in claims]
    assert verified == [True] * 3 + [False] * 5


def test_claims__of_google() -> None:
    """Google gives no username and no roles, but a verified address."""
    identity = verified_identity(GOOGLE_ID_CLAIMS, GOOGLE["issuer"])
    assert (identity.username, identity.email, identity.email_verified) == (None, "zoe@gmail.example", True)
    assert (identity.first_name, identity.roles) == ("Zoë", frozenset())


def as_keycloak(provider: HostileProvider) -> None:
    """Let a provider describe itself, and sign, as Keycloak does."""
    own = ("issuer", "authorization_endpoint", "token_endpoint", "jwks_uri", "userinfo_endpoint")
    provider.document = {name: value for name, value in KEYCLOAK.items() if name not in own}
    provider.claims = dict(KEYCLOAK_ID_CLAIMS)


@pytest.mark.slow
def test_keycloak__from_log_in_to_log_out(serve: Serve, provider: HostileProvider, hub: Hub) -> None:
    """A user of Keycloak logs in, has its roles, uses its access token, and is logged out by its back channel."""
    as_keycloak(provider)
    client = serve(oidc_trust_roles=True, oidc_bearer_audience="images", oidc_default_role=Role.EDITOR)
    answer = provider.authorize(begin(client))
    assert finish(client, answer).status_code == 400, "it must name its issuer"
    answer = provider.authorize(begin(client), iss=provider.issuer, session_state=KEYCLOAK_ID_CLAIMS["sid"])
    assert finish(client, answer).status_code == 302
    me = client.get(ME).json()
    assert (me["username"], me["email"], me["lastName"], me["roles"], me["workspace_role"]) == (
        "zoe", "zoe@example.org", "Lee", ["manage-users"], "editor",
    )  # fmt: skip
    tokens = [provider.token(provider.claims_of(**each)) for each in (KEYCLOAK_ACCESS_CLAIMS, KEYCLOAK_ID_CLAIMS)]
    program = serve(oidc_bearer_audience="images")
    statuses = [program.get(ME, headers={"Authorization": f"Bearer {token}"}).status_code for token in tokens]
    assert statuses == [200, 401]
    sid = KEYCLOAK_ID_CLAIMS["sid"]
    logout_token = provider.logout_token(sub=KEYCLOAK_ID_CLAIMS["sub"], sid=sid, typ="Logout")
    assert client.post(BACKCHANNEL, data={"logout_token": logout_token}).json() == {"ended": 1}
    assert client.get(ME).status_code == 401
    provider.claims["realm_access"] = {"roles": ["default-roles-images"]}
    finish(client, provider.authorize(begin(client), iss=provider.issuer))
    assert client.get(ME).json()["roles"] == []
    assert hub.users.find(OPERATOR, "zoe").roles == []
