"""Actors, read from the rows of their users."""

from dataclasses import replace
from typing import Any

from framedex.access import Actor, Via
from framedex.errors import NotAuthenticated, NotFound
from framedex.storage.service_db import accounts, tenants


def actor_of_row(connection: Any, row: Any, via: Via, *, session_id: str | None = None) -> Actor:
    """Return the actor of a user's row, with the roles of this moment."""
    return Actor(
        row.id,
        row.email or row.username,
        roles=tenants.roles_of(connection, row.id),
        realm_roles=accounts.realm_roles(connection, row.id),
        via=via,
        password_is_temporary=row.password_temporary,
        session_id=session_id,
    )


def present_actor(connection: Any, actor: Actor) -> Actor:
    """Return an actor with the roles of this moment; they may have changed since the actor was read.

    Raises:
        NotAuthenticated: the user was deleted or disabled meanwhile.
    """
    if actor.user_id is None or actor.via not in (Via.SESSION, Via.TOKEN):
        return actor
    try:
        row = accounts.find_user(connection, actor.user_id)
    except NotFound:
        raise NotAuthenticated("Not authenticated") from None
    if not row.enabled:
        raise NotAuthenticated("Not authenticated")
    return replace(actor_of_row(connection, row, actor.via, session_id=actor.session_id), name=actor.name)


def own_id(actor: Actor) -> str | None:
    """Return the id of an actor with an account; None for the operator and the local user."""
    return actor.user_id if actor.via in (Via.SESSION, Via.TOKEN) else None
