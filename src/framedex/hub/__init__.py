"""A workspace with users: accounts, roles, sharing, sessions and API keys. It needs the extra ``http``."""

from framedex.hub.hub import Hub
from framedex.hub.providers import IdentityProvider, LocalProvider, NewAccount

__all__ = ["Hub", "IdentityProvider", "LocalProvider", "NewAccount"]
