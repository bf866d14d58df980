"""Opening of log-in by OpenID Connect, for which the extra ``oidc`` is needed only if it is on."""

from typing import TYPE_CHECKING

from framedex.errors import InvalidInput, MissingDependency
from framedex.hub import Hub
from framedex.settings.oidc import OidcSettings, is_safe_url

if TYPE_CHECKING:
    from framedex.service.oidc.sign_on import SingleSignOn

CALLBACK = "/api/v1/oidc/callback"
"""The path to which the provider sends browsers back."""


def open_sign_on(settings: OidcSettings, hub: Hub, *, public_url: str | None) -> "SingleSignOn | None":
    """Return log-in by OpenID Connect; None if it is off.

    Args:
        settings: the settings of it.
        hub: the users.
        public_url: the URL under which clients reach the service; None if it is not known.

    Raises:
        InvalidInput: the settings are not complete.
        MissingDependency: the extra ``oidc`` is not installed.
    """
    if not settings.is_complete():
        return None
    redirect_uri = settings.oidc_redirect_uri
    if redirect_uri is None:
        if public_url is None:
            raise InvalidInput(
                f"OIDC_ISSUER needs OIDC_REDIRECT_URI, or FRAMEDEX_PUBLIC_URL, below which {CALLBACK} is"
            )
        redirect_uri = public_url + CALLBACK
        if not is_safe_url(redirect_uri):
            raise InvalidInput(f"log-in by OpenID Connect needs https, but FRAMEDEX_PUBLIC_URL is {public_url!r}")
    if not redirect_uri.endswith(CALLBACK):
        raise InvalidInput(f"OIDC_REDIRECT_URI is {redirect_uri!r}; it must end with {CALLBACK}")
    try:
        from framedex.service.oidc.sign_on import SingleSignOn
    except ImportError as error:
        raise MissingDependency(f"log-in by OpenID Connect needs {error.name}: pip install 'framedex[oidc]'") from None
    return SingleSignOn(settings, hub, redirect_uri)
