"""Sessions: local log-in with bounded guessing, and the actors of sessions."""

import hashlib
import ipaddress
import math
import secrets
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from framedex.access import Action, Actor, Via
from framedex.core.naming import name_key
from framedex.errors import InvalidInput, NotAuthenticated, TooManyAttempts, WorkspaceError
from framedex.hub.actors import actor_of_row
from framedex.hub.context import HubContext
from framedex.storage.service_db import accounts, audit, sessions

IDLE, ABSOLUTE = timedelta(hours=8), timedelta(days=7)
"""A session ends after so much time without use, and after so much time in any case."""
_NOTED = timedelta(seconds=60)  # the last use is written at most this often
_FREE = 5  # failures of a name from an address before it has to wait
_FIRST_WAIT, _LONGEST_WAIT = timedelta(seconds=30), timedelta(minutes=15)
_FREE_OF_ADDRESS, _PERIOD = 50, timedelta(hours=1)  # failures of an address within a period before it has to wait
_FIRST_OF_ADDRESS, _LONGEST_OF_ADDRESS = timedelta(seconds=1), timedelta(minutes=1)  # many users may share it
_EACH = 10  # failures of an address after which its wait doubles
_REFUSED, _WRONG = "Invalid username or password", "The current password is wrong"


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


def begin_session(
    context: HubContext, connection: Any, user: Any, *, ip: str, user_agent: str, provider_session: str | None = None
) -> NewSession:
    """Begin a session of a user who has proved who they are.

    Args:
        context: the open parts of the hub.
        connection: of the service's database, in a transaction.
        user: the row of the user.
        ip: the address of the client.
        user_agent: the name of the client's program.
        provider_session: the id of the session at the identity provider, empty if that gives none; None for a log-in
            with a password.
    """
    token, now = secrets.token_urlsafe(32), context.clock()
    sessions.insert_session(
        connection,
        _hash(token.encode()),
        user,
        ip=ip,
        user_agent=user_agent,
        start=now,
        expires_at=now + ABSOLUTE,
        provider_session=provider_session,
    )
    accounts.update_user(connection, user.id, last_access=now)
    return NewSession(token, user.id, user.username, user.password_temporary, now + ABSOLUTE)


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
        of a name from an address the next attempt waits for 30 s, doubling up to 15 min. After 50 failures of an
        address within an hour, whatever the names, the next one waits for 1 s, doubling up to a minute. Attempts at the
        same time count as if they came one after the other.

        Args:
            username: the name of the user.
            password: the password.
            ip: the address of the client.
            user_agent: the name of the client's program.

        Raises:
            NotAuthenticated: the name or the password is wrong, or the account is disabled.
            TooManyAttempts: too many attempts have failed.
        """
        attempt = _Attempt(_name_hash(username), _origin(ip), self._context.clock())
        with self._context.database.read() as connection:
            _check_attempts(connection, attempt)
            user = accounts.user_named(connection, username)
        stored = None if user is None else user.password_hash
        matches = self._context.passwords.matches(stored, password)
        changes = {}
        if matches and stored is not None and self._context.passwords.is_outdated(stored):
            changes = {"password_hash": self._context.passwords.hash(password)}
        with self._context.database.write() as connection:
            _check_attempts(connection, attempt)  # of many attempts at once only the first few learn anything
            user = None if user is None else accounts.user_named(connection, username)
            if user is not None and user.enabled and matches and user.password_hash == stored:
                sessions.forget_failures(connection, attempt.name_hash, attempt.origin)
                audit.insert_entry(connection, user.id, "log_in", ip=ip)
                if changes:
                    accounts.update_user(connection, user.id, **changes)
                return begin_session(self._context, connection, user, ip=ip, user_agent=user_agent)
            attempt.add_failure(connection)
            target = None if user is None else user.id
            audit.insert_entry(connection, None, "log_in", target=target, ip=ip, outcome="refused")
        raise NotAuthenticated(_REFUSED)

    def actor(self, token: str, *, is_use: bool = True) -> Actor:
        """Return the actor of a session.

        Args:
            token: the secret of the cookie.
            is_use: whether the session is used, so that it lives on.

        Raises:
            NotAuthenticated: there is no such session, or it has ended.
        """
        now = self._context.clock()
        with self._context.database.read() as connection:
            row = self._find(connection, token, now)
            actor = actor_of_row(connection, row, Via.SESSION, session_id=row.session_id)
        if is_use and now - row.session_access > _NOTED and not self._context.database.read_only:
            # A full disk does not log users out.
            with suppress(WorkspaceError), self._context.database.write() as connection:
                sessions.note_access(connection, row.session_id, row.id, now)
        return actor

    def id_of(self, token: str) -> str | None:
        """Return the id of a session, which users see; None if there is no such session, or it has ended."""
        with suppress(NotAuthenticated), self._context.database.read() as connection:
            return str(self._find(connection, token, self._context.clock()).session_id)
        return None

    def actor_of_user(self, user_id: str) -> Actor:
        """Return the actor of a user for whom a link was signed.

        Raises:
            NotAuthenticated: there is no such user, or the account is disabled.
        """
        with self._context.database.read() as connection:
            row = accounts.enabled_user(connection, user_id)
            if row is None:
                raise NotAuthenticated("Not authenticated")
            return actor_of_row(connection, row, Via.TOKEN)

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

        The new session belongs to the same session at the identity provider as the present one, with which it ends.

        Raises:
            NotAuthenticated: the session has ended meanwhile, or the user was disabled or deleted.
            Forbidden: the actor has no session.
            InvalidInput: the current password is wrong, or the new one is too short, too long, or the same.
            TooManyAttempts: too many attempts to give the current password have failed.
        """
        self._context.require(actor, Action.OWN_PASSWORD)
        assert actor.user_id is not None, "the actor is logged in"
        with self._context.database.read() as connection:
            user = self._present(connection, actor)
            attempt = _Attempt(_name_hash(user.username), _origin(ip), self._context.clock())
            _check_attempts(connection, attempt)
        if not self._context.passwords.matches(user.password_hash, current):
            with self._context.database.write() as connection:
                _check_attempts(connection, attempt)
                attempt.add_failure(connection)
            raise InvalidInput(_WRONG)
        if current == password:
            raise InvalidInput("The new password is the present one; choose another")
        password_hash = self._context.passwords.hash(password)
        with self._context.database.write() as connection:
            _check_attempts(connection, attempt)
            present = self._present(connection, actor)
            if present.password_hash != user.password_hash:  # another session changed it meanwhile
                raise InvalidInput(_WRONG)
            accounts.update_user(connection, user.id, password_hash=password_hash, password_temporary=False)
            accounts.end_sessions(connection, [user.id])
            audit.insert_entry(connection, user.id, "change_password", ip=ip)
            fresh = accounts.find_user(connection, user.id)
            return begin_session(
                self._context,
                connection,
                fresh,
                ip=ip,
                user_agent=user_agent,
                provider_session=present.provider_session,
            )

    def _present(self, connection: Any, actor: Actor) -> Any:
        """Return the row of an actor's session, which may have ended since the actor was read."""
        now = self._context.clock()
        row = sessions.session_of_id(connection, actor.session_id or "", now=now, idle_since=now - IDLE)
        if row is None:
            raise NotAuthenticated("Not authenticated")
        return row

    def sweep(self) -> int:
        """Delete the rows of ended sessions; return their number."""
        now = self._context.clock()
        with self._context.database.write() as connection:
            return sessions.delete_dead(connection, now=now, idle_since=now - IDLE)


@dataclass(frozen=True)
class _Attempt:
    """An attempt to prove a password.

    Attributes:
        name_hash: the hash of the username.
        origin: the address of the client.
        time: of the attempt.
    """

    name_hash: bytes
    origin: str
    time: datetime

    def add_failure(self, connection: Any) -> None:
        """Count the attempt as failed."""
        sessions.add_failure(connection, self.name_hash, self.origin, self.time, self.time - _PERIOD)


def _check_attempts(connection: Any, attempt: _Attempt) -> None:
    """Check that not too many attempts have failed.

    Raises:
        TooManyAttempts: too many have.
    """
    count, last = sessions.failures(connection, attempt.name_hash, attempt.origin)
    of_address, last_of_address = sessions.failures_from(connection, attempt.origin, attempt.time - _PERIOD)
    ends = []
    if last is not None and count >= _FREE:
        ends.append(last + min(_FIRST_WAIT * 2 ** min(count - _FREE, 10), _LONGEST_WAIT))
    if last_of_address is not None and of_address >= _FREE_OF_ADDRESS:
        doubled = _FIRST_OF_ADDRESS * 2 ** min((of_address - _FREE_OF_ADDRESS) // _EACH, 10)
        ends.append(last_of_address + min(doubled, _LONGEST_OF_ADDRESS))
    wait = max((end - attempt.time for end in ends), default=timedelta())
    if wait > timedelta():
        seconds = math.ceil(wait.total_seconds())
        raise TooManyAttempts(f"Too many failed attempts; try again in {seconds} s", seconds)


def check_address(context: HubContext, ip: str) -> None:
    """Check that an address has not had too many failed log-ins.

    Raises:
        TooManyAttempts: it had 50 within an hour, the last one just now.
    """
    with context.database.read() as connection:
        _check_attempts(connection, _nameless(context, ip))


def count_failure(context: HubContext, ip: str) -> None:
    """Count a failed log-in of an address in which no name of a user was given."""
    with context.database.write() as connection:
        _nameless(context, ip).add_failure(connection)


def _nameless(context: HubContext, ip: str) -> _Attempt:
    """Return an attempt that counts for the address alone: no other has its name."""
    return _Attempt(secrets.token_bytes(32), _origin(ip), context.clock())


def _origin(ip: str) -> str:
    """Return the address under which failures are counted: with IPv6, of which a client has many, its network."""
    try:
        address = ipaddress.ip_address(ip)
    except ValueError:
        return ip
    if isinstance(address, ipaddress.IPv6Address):
        mapped = address.ipv4_mapped
        return str(ipaddress.ip_network((int(address), 64), strict=False) if mapped is None else mapped)
    return ip


def _name_hash(username: str) -> bytes:
    return _hash(name_key(username).encode("utf-8", "surrogatepass"))


def _hash(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()
