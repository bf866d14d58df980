"""Ids of accounts at identity providers, which stand for users as their own ids do."""

from collections.abc import Collection
from contextlib import suppress

from framedex.access import Action, Actor
from framedex.core.ids import is_id
from framedex.errors import NotFound
from framedex.hub.context import HubContext
from framedex.storage.service_db import accounts


class Identities:
    """The accounts at identity providers of the users of a hub.

    Args:
        context: the open parts of the hub.
    """

    def __init__(self, context: HubContext) -> None:
        self._context = context

    def resolve(self, actor: Actor, user_id: str) -> str:
        """Return the id of a user by that id, or by the id of the account at an identity provider.

        Raises:
            Forbidden: the actor may not view users.
            NotFound: there is no such user.
        """
        self._context.require(actor, Action.USERS_READ)
        with self._context.database.read() as connection:
            if is_id(own_id := user_id.lower()):
                with suppress(NotFound):
                    return str(accounts.find_user(connection, own_id).id)
            return str(accounts.find_user(connection, accounts.user_of_subject(connection, user_id) or "").id)

    def of_users(self, actor: Actor, user_ids: Collection[str]) -> dict[str, str]:
        """Return the ids of accounts at identity providers by the ids of their users; others are left out.

        Raises:
            Forbidden: the actor may not view users.
        """
        self._context.require(actor, Action.USERS_READ)
        with self._context.database.read() as connection:
            return accounts.subjects_of(connection, user_ids)
