"""Discovery documents and claims in the shape that well-known providers give them."""

from typing import Any

_KEYCLOAK = "https://idp.example.org/realms/images"
_KEYCLOAK_PATH = f"{_KEYCLOAK}/protocol/openid-connect"
_ALL_ALGORITHMS = ["PS384", "RS384", "EdDSA", "ES384", "HS256", "HS512", "ES256", "RS256", "HS384", "ES512", "PS256"]

KEYCLOAK: dict[str, Any] = {
    "issuer": _KEYCLOAK,
    "authorization_endpoint": f"{_KEYCLOAK_PATH}/auth",
    "token_endpoint": f"{_KEYCLOAK_PATH}/token",
    "introspection_endpoint": f"{_KEYCLOAK_PATH}/token/introspect",
    "userinfo_endpoint": f"{_KEYCLOAK_PATH}/userinfo",
    "end_session_endpoint": f"{_KEYCLOAK_PATH}/logout",
    "jwks_uri": f"{_KEYCLOAK_PATH}/certs",
    "frontchannel_logout_session_supported": True,
    "frontchannel_logout_supported": True,
    "grant_types_supported": ["authorization_code", "client_credentials", "implicit", "password", "refresh_token"],
    "response_types_supported": ["code", "none", "id_token", "token", "id_token token", "code id_token"],
    "subject_types_supported": ["public", "pairwise"],
    "id_token_signing_alg_values_supported": _ALL_ALGORITHMS,
    "id_token_encryption_alg_values_supported": ["RSA-OAEP", "RSA-OAEP-256"],
    "response_modes_supported": ["query", "fragment", "form_post", "query.jwt", "jwt"],
    "token_endpoint_auth_methods_supported": [
        "private_key_jwt", "client_secret_basic", "client_secret_post", "tls_client_auth", "client_secret_jwt",
    ],
    "claims_supported": ["aud", "sub", "iss", "auth_time", "name", "given_name", "preferred_username", "email", "acr"],
    "claim_types_supported": ["normal"],
    "claims_parameter_supported": True,
    "scopes_supported": ["openid", "profile", "email", "roles", "offline_access", "web-origins"],
    "request_parameter_supported": True,
    "require_request_uri_registration": True,
    "code_challenge_methods_supported": ["plain", "S256"],
    "tls_client_certificate_bound_access_tokens": True,
    "mtls_endpoint_aliases": {"token_endpoint": f"{_KEYCLOAK_PATH}/token"},
    "authorization_response_iss_parameter_supported": True,
    "backchannel_logout_supported": True,
    "backchannel_logout_session_supported": True,
}  # fmt: skip
"""Keycloak's, of a realm."""

_ENTRA = "https://login.microsoftonline.com/5b3ac4d2-1111-4a4a-9b9b-0123456789ab"
ENTRA: dict[str, Any] = {
    "token_endpoint": f"{_ENTRA}/oauth2/v2.0/token",
    "token_endpoint_auth_methods_supported": ["client_secret_post", "private_key_jwt", "client_secret_basic"],
    "jwks_uri": f"{_ENTRA}/discovery/v2.0/keys",
    "response_modes_supported": ["query", "fragment", "form_post"],
    "subject_types_supported": ["pairwise"],
    "id_token_signing_alg_values_supported": ["RS256"],
    "response_types_supported": ["code", "id_token", "code id_token", "id_token token"],
    "scopes_supported": ["openid", "profile", "email", "offline_access"],
    "issuer": f"{_ENTRA}/v2.0",
    "request_uri_parameter_supported": False,
    "userinfo_endpoint": "https://graph.microsoft.com/oidc/userinfo",
    "authorization_endpoint": f"{_ENTRA}/oauth2/v2.0/authorize",
    "http_logout_supported": True,
    "end_session_endpoint": f"{_ENTRA}/oauth2/v2.0/logout",
    "cloud_instance_name": "microsoftonline.com",
}
"""Microsoft Entra's, of a tenant."""

GOOGLE: dict[str, Any] = {
    "issuer": "https://accounts.google.com",
    "authorization_endpoint": "https://accounts.google.com/o/oauth2/v2/auth",
    "device_authorization_endpoint": "https://oauth2.googleapis.com/device/code",
    "token_endpoint": "https://oauth2.googleapis.com/token",
    "userinfo_endpoint": "https://openidconnect.googleapis.com/v1/userinfo",
    "revocation_endpoint": "https://oauth2.googleapis.com/revoke",
    "jwks_uri": "https://www.googleapis.com/oauth2/v3/certs",
    "response_types_supported": ["code", "token", "id_token", "code token"],
    "subject_types_supported": ["public"],
    "id_token_signing_alg_values_supported": ["RS256"],
    "token_endpoint_auth_methods_supported": ["client_secret_post", "client_secret_basic"],
    "code_challenge_methods_supported": ["plain", "S256"],
}
"""Google's."""

KEYCLOAK_ID_CLAIMS: dict[str, Any] = {
    "auth_time": 1_790_000_000,
    "jti": "0b6d1c9e-6f9a-4f2e-8a3f-1f0f7c1a2b3c",
    "sub": "f3a9c0de-7c7c-4c53-9b58-2f6f7f1c9b11",
    "typ": "ID",
    "azp": "framedex",
    "sid": "9a1de4d3-2c9e-4b6b-8b8e-5a5c0b7e6d4f",
    "acr": "1",
    "email_verified": True,
    "realm_access": {"roles": ["default-roles-images", "offline_access", "manage-users", "uma_authorization"]},
    "resource_access": {"account": {"roles": ["manage-account", "view-profile"]}},
    "name": "Zoë Lee",
    "preferred_username": "zoe@example.org",
    "given_name": "Zoë",
    "family_name": "Lee",
    "email": "zoe@example.org",
}
"""The claims of Keycloak's ID tokens beside those of all tokens, in a realm whose usernames are addresses."""

KEYCLOAK_ACCESS_CLAIMS: dict[str, Any] = {
    **{name: KEYCLOAK_ID_CLAIMS[name] for name in ("auth_time", "sub", "azp", "sid", "acr", "realm_access")},
    "jti": "onrtac:5c1b8a0a-2a3f-4a66-9a1b-7a4f0e1d2c3b",
    "aud": ["images", "account"],
    "typ": "Bearer",
    "allowed-origins": ["https://images.example.com"],
    "scope": "openid profile email",
}
"""The claims of Keycloak's access tokens."""

ENTRA_ID_CLAIMS: dict[str, Any] = {
    "nbf": 1_790_000_000,
    "sub": "AAAAAAAAAAAAAAAAAAAAAIkzqFVrSaSaFHy782bbtaQ",
    "name": "Zoë Lee",
    "oid": "9f3b0c11-2222-4333-8444-abcdefabcdef",
    "preferred_username": "zoe@contoso.example",
    "email": "zoe@contoso.example",
    "rh": "0.AXkA",
    "tid": "5b3ac4d2-1111-4a4a-9b9b-0123456789ab",
    "uti": "Qm0",
    "ver": "2.0",
}
"""The claims of Entra's ID tokens, which do not say whether the address was verified."""

GOOGLE_ID_CLAIMS: dict[str, Any] = {
    "azp": "framedex",
    "sub": "110169484474386276334",
    "email": "zoe@gmail.example",
    "email_verified": True,
    "at_hash": None,
    "name": "Zoë Lee",
    "given_name": "Zoë",
    "family_name": "Lee",
}
"""The claims of Google's ID tokens."""
