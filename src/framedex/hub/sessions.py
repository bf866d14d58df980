"""Sessions: local log-in with bounded guessing, and the actors of sessions."""

import hashlib
import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from framedex.access import Action, Actor, Via
from framedex.core.naming import name_key
from framedex.errors import InvalidInput, NotAuthenticated, TooManyAttempts
from framedex.hub.context import HubContext
from framedex.storage.service_db import accounts, audit, sessions, tenants

IDLE, ABSOLUTE = timedelta(hours=8), timedelta(days=7)
"""A session ends after so much time without use, and after so much time in any case."""
_NOTED = timedelta(seconds=60)  # the last use is written at most this often
_FREE = 5  # failures of a name from an address before it has to wait
_FIRST_WAIT, _LONGEST_WAIT = timedelta(seconds=30), timedelta(minutes=15)
_FROM_ADDRESS, _PERIOD = 50, timedelta(hours=1)
_REFUSED = "Invalid username or password"


@dataclass(frozen=True)
class NewSession:
    """A session that has begun.

    Attributes:
        token: the secret of the cookie, 32 random bytes as URL-safe text; only its hash is stored.
        user_id: the user.
        username: the name of the user.
        must_change_password: whether the password is temporary.
        expires_at: the latest end of the session, in UTC.
    """

    token: str
    user_id: str
    username: str
    must_change_password: bool
    expires_at: datetime


class Sessions:
    """The sessions of a hub.

    Args:
        context: the open parts of the hub.
    """

    def __init__(self, context: HubContext) -> None:
        self._context = context

    def log_in(self, username: str, password: str, *, ip: str = "", user_agent: str = "") -> NewSession:
        """Begin a session of a user with a password.

        Unknown users, wrong passwords and disabled accounts get the same answer after the same work. After 5 failures
        of a name from an address the next attempt waits for 30 s, doubling up to 15 min; an address has 50 failures an
        hour.

        Args:
            username: the name of the user.
            password: the password.
            ip: the address of the client.
            user_agent: the name of the client's program.

        Raises:
            NotAuthenticated: the name or the password is wrong, or the account is disabled.
            TooManyAttempts: too many attempts have failed.
        """
        name_hash, now = _hash(name_key(username).encode("utf-8", "surrogatepass")), self._context.clock()
        self._check_attempts(name_hash, ip, now)
        with self._context.database.read() as connection:
            user = accounts.user_named(connection, username)
        matches = self._context.passwords.matches(None if user is None else user.password_hash, password)
        with self._context.database.write() as connection:
            user = None if user is None else accounts.user_named(connection, username)  # it may have changed meanwhile
            if user is None or not user.enabled or not matches:
                sessions.add_failure(connection, name_hash, ip, now)
                target = None if user is None else user.id
                audit.insert_entry(connection, None, "log_in", target=target, ip=ip, outcome="refused")
            else:
                sessions.forget_failures(connection, name_hash, ip)
                audit.insert_entry(connection, user.id, "log_in", ip=ip)
                return self._begin(connection, user, ip=ip, user_agent=user_agent)
        raise NotAuthenticated(_REFUSED)

    def _check_attempts(self, name_hash: bytes, ip: str, now: datetime) -> None:
        with self._context.database.read() as connection:
            count, last = sessions.failures(connection, name_hash, ip)
            of_address = sessions.failures_from(connection, ip, now - _PERIOD)
        wait = timedelta()
        if last is not None and count >= _FREE:
            wait = last + min(_FIRST_WAIT * 2 ** min(count - _FREE, 10), _LONGEST_WAIT) - now
        if of_address >= _FROM_ADDRESS:
            wait = max(wait, _LONGEST_WAIT)
        if wait > timedelta():
            seconds = int(wait.total_seconds()) + 1
            raise TooManyAttempts(f"Too many failed attempts; try again in {seconds} s", seconds)

    def _begin(self, connection: Any, user: Any, *, ip: str, user_agent: str) -> NewSession:
        token, now = secrets.token_urlsafe(32), self._context.clock()
        end = now + ABSOLUTE
        sessions.insert_session(
            connection, _hash(token.encode()), user, ip=ip, user_agent=user_agent, start=now, expires_at=end
        )
        return NewSession(token, user.id, user.username, user.password_temporary, end)

    def actor(self, token: str) -> Actor:
        """Return the actor of a session.

        Raises:
            NotAuthenticated: there is no such session, or it has ended.
        """
        now = self._context.clock()
        with self._context.database.read() as connection:
            row = self._find(connection, token, now)
            actor = actor_of_row(connection, row, Via.SESSION)
        if now - row.session_access > _NOTED and not self._context.database.read_only:
            with self._context.database.write() as connection:
                sessions.note_access(connection, row.session_id, row.id, now)
        return actor

    def _find(self, connection: Any, token: str, now: datetime) -> Any:
        digest = _hash(token.encode("utf-8", "surrogatepass"))
        row = sessions.find_session(connection, digest, now=now, idle_since=now - IDLE)
        if row is None:
            raise NotAuthenticated("Not authenticated")
        return row

    def log_out(self, token: str) -> None:
        """End a session.

        Raises:
            NotAuthenticated: there is no such session, or it has ended.
        """
        with self._context.database.write() as connection:
            row = self._find(connection, token, self._context.clock())
            sessions.delete_session(connection, row.session_id)
            audit.insert_entry(connection, row.id, "log_out")

    def change_password(
        self, actor: Actor, current: str, password: str, *, ip: str = "", user_agent: str = ""
    ) -> NewSession:
        """Change the password of the actor; all sessions end, and a new one begins.

        Raises:
            Forbidden: the actor has no session.
            InvalidInput: the current password is wrong, or the new one is too short, too long, or the same.
        """
        self._context.require(actor, Action.OWN_PASSWORD)
        assert actor.user_id is not None, "the actor is logged in"
        with self._context.database.read() as connection:
            user = accounts.find_user(connection, actor.user_id)
        if not self._context.passwords.matches(user.password_hash, current):
            raise InvalidInput("The current password is wrong")
        if current == password:
            raise InvalidInput("The new password is the present one; choose another")
        password_hash = self._context.passwords.hash(password)
        with self._context.database.write() as connection:
            accounts.update_user(connection, user.id, password_hash=password_hash, password_temporary=False)
            accounts.end_sessions(connection, [user.id])
            audit.insert_entry(connection, user.id, "change_password", ip=ip)
            fresh = accounts.find_user(connection, user.id)
            return self._begin(connection, fresh, ip=ip, user_agent=user_agent)

    def sweep(self) -> int:
        """Delete the rows of ended sessions; return their number."""
        now = self._context.clock()
        with self._context.database.write() as connection:
            return sessions.delete_dead(connection, now=now, idle_since=now - IDLE)


def actor_of_row(connection: Any, row: Any, via: Via) -> Actor:
    """Return the actor of a user's row, with the roles of this moment."""
    return Actor(
        row.id,
        row.email or row.username,
        roles=tenants.roles_of(connection, row.id),
        realm_roles=accounts.realm_roles(connection, row.id),
        via=via,
        password_is_temporary=row.password_temporary,
    )


def _hash(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()
