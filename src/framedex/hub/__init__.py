"""A workspace with users: accounts, roles, sharing, sessions and API keys. It needs the extra ``http``."""

from framedex.hub.external import ExternalRules, VerifiedIdentity
from framedex.hub.hub import Hub
from framedex.hub.providers import IdentityProvider, LocalProvider, NewAccount

__all__ = ["ExternalRules", "Hub", "IdentityProvider", "LocalProvider", "NewAccount", "VerifiedIdentity"]
