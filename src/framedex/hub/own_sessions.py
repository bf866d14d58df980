"""The own sessions of a user: where the user is logged in, and the end of each."""

from framedex.access import Actor
from framedex.errors import NotFound
from framedex.hub.actors import own_id
from framedex.hub.context import HubContext
from framedex.hub.sessions import IDLE
from framedex.records import OwnSession
from framedex.storage.service_db import accounts, audit, sessions


class OwnSessions:
    """The sessions of whoever asks. API keys are no sessions: they go on until they are revoked.

    Args:
        context: the open parts of the hub.
    """

    def __init__(self, context: HubContext) -> None:
        self._context = context

    def live(self, actor: Actor) -> list[OwnSession]:
        """Return the sessions of the actor that have not ended, the newest first; none while authentication is off.

        Raises:
            NotAuthenticated: nobody is logged in.
            Forbidden: the password of the actor is temporary.
        """
        self._context.require_log_in(actor)
        user_id, now = own_id(actor), self._context.clock()
        if user_id is None:
            return []
        with self._context.database.read() as connection:
            return sessions.list_own_sessions(connection, user_id, now=now, idle_since=now - IDLE)

    def end(self, actor: Actor, session_id: str) -> None:
        """End a session of the actor.

        Args:
            actor: the user.
            session_id: the id of the session, as :meth:`live` has it.

        Raises:
            NotAuthenticated: nobody is logged in.
            Forbidden: the password of the actor is temporary.
            NotFound: the actor has no such session, or it has ended.
        """
        if session_id not in {each.id for each in self.live(actor)}:
            raise NotFound("Session not found")
        with self._context.database.write() as connection:
            sessions.delete_session(connection, session_id)
            audit.insert_entry(connection, actor.user_id, "log_out", target=session_id)

    def end_all(self, actor: Actor) -> int:
        """End all sessions of the actor, and return their number.

        Raises:
            NotAuthenticated: nobody is logged in.
            Forbidden: the password of the actor is temporary.
        """
        count = len(self.live(actor))
        if (user_id := own_id(actor)) is None:
            return 0
        with self._context.database.write() as connection:
            accounts.end_sessions(connection, [user_id])
            audit.insert_entry(connection, user_id, "log_out.everywhere")
        return count
