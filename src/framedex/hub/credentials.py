"""API keys of users; their secrets are computed from the master key and shown once."""

import secrets
from contextlib import suppress
from datetime import timedelta

from framedex.access import Action, Actor, Via
from framedex.errors import NotAuthenticated, NotFound, WorkspaceError
from framedex.hub.actors import actor_of_row
from framedex.hub.context import HubContext
from framedex.records import ApiCredentials
from framedex.storage.service_db import accounts, audit, sessions

_NOTED = timedelta(seconds=60)
_LABEL = "api-secret"
_NEW = "Keep the secret: it is shown only once"
_OLD = "The secret was shown before; rotate the credentials for a new one"


class Credentials:
    """The API keys of a hub.

    Args:
        context: the open parts of the hub.
    """

    def __init__(self, context: HubContext) -> None:
        self._context = context

    def get(self, actor: Actor) -> ApiCredentials:
        """Return the API key of the actor, made at the first call, which alone shows the secret.

        Raises:
            Forbidden: the actor has no session.
            NotFound: the actor has no account.
        """
        return self._key(actor, rotate=False)

    def rotate(self, actor: Actor) -> ApiCredentials:
        """Return the API key of the actor with a new secret; the former one stops at once.

        Raises:
            Forbidden: the actor has no session.
            NotFound: the actor has no account.
        """
        return self._key(actor, rotate=True)

    def _key(self, actor: Actor, *, rotate: bool) -> ApiCredentials:
        self._context.require(actor, Action.OWN_CREDENTIALS)
        assert actor.user_id is not None, "the actor is logged in"
        with self._context.change(actor, Action.OWN_CREDENTIALS) as connection:
            accounts.find_user(connection, actor.user_id)  # the operator has no account
            row = sessions.find_key(connection, actor.user_id)
            if row is not None and not rotate:
                return ApiCredentials(api_key=row.key, api_secret="", message=_OLD)
            key, version = (secrets.token_hex(16), 1) if row is None else (row.key, row.version + 1)
            sessions.put_key(connection, actor.user_id, key, version, self._context.clock())
            audit.insert_entry(
                connection, actor.user_id, "credentials.rotate" if rotate else "credentials.create", target=key
            )
        return ApiCredentials(api_key=key, api_secret=self._secret(key, version), message=_NEW)

    def revoke(self, actor: Actor) -> None:
        """Revoke the API key of the actor.

        Raises:
            Forbidden: the actor has no session.
            NotFound: the actor has no API key.
        """
        self._context.require(actor, Action.OWN_CREDENTIALS)
        assert actor.user_id is not None, "the actor is logged in"
        with self._context.database.write() as connection:
            if not sessions.revoke_key(connection, actor.user_id, self._context.clock()):
                raise NotFound("There are no API credentials")
            audit.insert_entry(connection, actor.user_id, "credentials.revoke")

    def secret_of(self, key: str) -> str:
        """Return the secret of an API key, with which the signatures of tokens are checked.

        Raises:
            NotAuthenticated: there is no such key, it was revoked, or its user is disabled.
        """
        with self._context.database.read() as connection:
            row = sessions.user_of_key(connection, key)
        if row is None:
            raise NotAuthenticated("Invalid or expired token")
        return self._secret(row.key, row.version)

    def actor(self, key: str) -> Actor:
        """Return the actor of an API key whose token was verified.

        Raises:
            NotAuthenticated: there is no such key, it was revoked, or its user is disabled.
        """
        now = self._context.clock()
        with self._context.database.read() as connection:
            row = sessions.user_of_key(connection, key)
            if row is None:
                raise NotAuthenticated("Invalid or expired token")
            actor = actor_of_row(connection, row, Via.TOKEN)
        is_noted = row.last_used_at is not None and now - row.last_used_at <= _NOTED
        if not is_noted and not self._context.database.read_only:
            with suppress(WorkspaceError), self._context.database.write() as connection:
                sessions.note_key_use(connection, key, now)
        return actor

    def _secret(self, key: str, version: int) -> str:
        return self._context.key.derived(_LABEL, key, version)
