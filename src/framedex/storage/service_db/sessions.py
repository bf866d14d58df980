"""Rows of sessions, failed log-ins and API keys. Each function takes an open connection of the service's database."""

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from framedex.core.ids import new_id
from framedex.records import OwnSession, UserSession
from framedex.storage.service_db.accounts import milliseconds
from framedex.storage.service_db.schema import api_keys, login_failures, sessions, users

_ALL_NAMES = bytes(32)
"""In the place of a name's hash: the row counts the failures from an address, and has the time of the first one."""


def _alive(now: Any, idle_since: Any) -> tuple[sa.ColumnElement[bool], ...]:
    return (
        users.c.enabled,
        sessions.c.epoch == users.c.epoch,
        sessions.c.expires_at > now,
        sessions.c.last_access > idle_since,
    )


# Each request runs one of these; built once, they take a tenth of the time.
_LIVE = (
    sa.select(
        users,
        sessions.c.id.label("session_id"),
        sessions.c.last_access.label("session_access"),
        sessions.c.provider_session,
    )
    .join(users, users.c.id == sessions.c.user_id)
    .where(*_alive(sa.bindparam("at"), sa.bindparam("idle_since")))
)
_LIVE_SESSION = _LIVE.where(sessions.c.token_hash == sa.bindparam("digest"))
_LIVE_SESSION_OF_ID = _LIVE.where(sessions.c.id == sa.bindparam("session"))
_USER_OF_KEY = (
    sa.select(users, api_keys.c.key, api_keys.c.version, api_keys.c.last_used_at)
    .join(users, users.c.id == api_keys.c.user_id)
    .where(api_keys.c.key == sa.bindparam("api_key"), api_keys.c.revoked_at.is_(None), users.c.enabled)
)


def insert_session(
    connection: sa.Connection,
    token_hash: bytes,
    user: sa.Row[Any],
    *,
    ip: str,
    user_agent: str,
    start: datetime,
    expires_at: datetime,
    provider_session: str | None = None,
) -> str:
    """Add a session of a user and return its public id.

    Args:
        connection: of the service's database.
        token_hash: the SHA-256 digest of the token.
        user: the row of the user.
        ip: the address of the client.
        user_agent: the name of the client's program.
        start: the time at which it begins.
        expires_at: its latest end.
        provider_session: the id of the session at the identity provider where it began, empty if that gives none; None
            for a log-in with a password.
    """
    session_id = new_id()
    connection.execute(
        sessions.insert().values(
            id=session_id,
            token_hash=token_hash,
            user_id=user.id,
            epoch=user.epoch,
            ip=ip[:45],
            user_agent=user_agent[:200],
            start=start,
            last_access=start,
            expires_at=expires_at,
            provider_session=provider_session,
        )
    )
    return session_id


def delete_provider_sessions(connection: sa.Connection, user_ids: Collection[str], provider_session: str | None) -> int:
    """Delete the sessions of users that began at an identity provider; return the number of those not ended before.

    Args:
        connection: of the service's database.
        user_ids: the users.
        provider_session: the id of the one session there; None for all.
    """
    column = sessions.c.provider_session
    which = (
        sessions.c.user_id.in_(list(user_ids)),
        column.is_not(None) if provider_session is None else column == provider_session,
    )
    present = sessions.c.epoch == sa.select(users.c.epoch).where(users.c.id == sessions.c.user_id).scalar_subquery()
    number = connection.execute(sa.select(sa.func.count()).select_from(sessions).where(*which, present)).scalar_one()
    connection.execute(sessions.delete().where(*which))
    return int(number)


def find_session(connection: sa.Connection, token_hash: bytes, *, now: datetime, idle_since: datetime) -> Any:
    """Return the row of a live session with that of its user; None if there is none.

    Args:
        connection: of the service's database.
        token_hash: the SHA-256 digest of the token.
        now: sessions that have expired by then are dead,
        idle_since: and so are those that were not used since this time.
    """
    values = {"digest": token_hash, "at": now, "idle_since": idle_since}
    return connection.execute(_LIVE_SESSION, values).one_or_none()


def session_of_id(connection: sa.Connection, session_id: str, *, now: datetime, idle_since: datetime) -> Any:
    """Return the row of a live session with that of its user; None if there is none.

    Args:
        connection: of the service's database.
        session_id: the public id of the session.
        now: as for :func:`find_session`,
        idle_since: as this.
    """
    values = {"session": session_id, "at": now, "idle_since": idle_since}
    return connection.execute(_LIVE_SESSION_OF_ID, values).one_or_none()


def note_access(connection: sa.Connection, session_id: str, user_id: str, time: datetime) -> None:
    """Store the time of the last use of a session."""
    connection.execute(sessions.update().where(sessions.c.id == session_id).values(last_access=time))
    connection.execute(users.update().where(users.c.id == user_id).values(last_access=time))


def delete_session(connection: sa.Connection, session_id: str) -> None:
    """Delete a session."""
    connection.execute(sessions.delete().where(sessions.c.id == session_id))


def list_sessions(connection: sa.Connection, user_id: str, *, now: datetime, idle_since: datetime) -> list[UserSession]:
    """Return the live sessions of a user, the newest first."""
    query = (
        sa.select(sessions, users.c.username)
        .join(users, users.c.id == sessions.c.user_id)
        .where(sessions.c.user_id == user_id, *_alive(now, idle_since))
        .order_by(sessions.c.start.desc())
    )
    return [
        UserSession(
            id=row.id,
            username=row.username,
            ip_address=row.ip,
            start=milliseconds(row.start),
            last_access=milliseconds(row.last_access),
        )
        for row in connection.execute(query).all()
    ]


def list_own_sessions(
    connection: sa.Connection, user_id: str, *, now: datetime, idle_since: datetime
) -> list[OwnSession]:
    """Return the live sessions of a user as the user sees them, the newest first."""
    query = (
        sa.select(sessions)
        .join(users, users.c.id == sessions.c.user_id)
        .where(sessions.c.user_id == user_id, *_alive(now, idle_since))
        .order_by(sessions.c.start.desc())
    )
    return [
        OwnSession(id=row.id, ip=row.ip, user_agent=row.user_agent, start=row.start, last_access=row.last_access)
        for row in connection.execute(query).all()
    ]


def delete_dead(connection: sa.Connection, *, now: datetime, idle_since: datetime) -> int:
    """Delete ended sessions, and failures of log-ins that count no more; return the number of sessions."""
    live = sa.select(sessions.c.id).join(users, users.c.id == sessions.c.user_id).where(*_alive(now, idle_since))
    dead = sessions.delete().where(sessions.c.id.not_in(live))
    connection.execute(login_failures.delete().where(login_failures.c.last_at < now - timedelta(days=1)))
    return connection.execute(dead).rowcount


def failures(connection: sa.Connection, username_hash: bytes, ip: str) -> tuple[int, datetime | None]:
    """Return the number of failed log-ins of a name from an address, and the time of the last one."""
    query = sa.select(login_failures.c["count"].label("number"), login_failures.c.last_at).where(
        login_failures.c.username_hash == username_hash, login_failures.c.ip == ip[:45]
    )
    row = connection.execute(query).one_or_none()
    return (0, None) if row is None else (row.number, row.last_at)


def failures_from(connection: sa.Connection, ip: str, since: datetime) -> tuple[int, datetime | None]:
    """Return the number of failed log-ins from an address in its present period, and the time of the last one.

    Args:
        connection: of the service's database.
        ip: the address.
        since: a period that began before this time is over.
    """
    count, start = failures(connection, _ALL_NAMES, ip)
    if start is None or start <= since:
        return 0, None
    last = sa.select(sa.func.max(login_failures.c.last_at)).where(login_failures.c.ip == ip[:45])
    return count, connection.execute(last).scalar_one()


def add_failure(connection: sa.Connection, username_hash: bytes, ip: str, time: datetime, since: datetime) -> None:
    """Count a failed log-in, of the name and of the address.

    Args:
        connection: of the service's database.
        username_hash: of the name.
        ip: the address.
        time: of the failure.
        since: a period of the address that began before this time is over.
    """
    count, _ = failures(connection, username_hash, ip)
    _put_failures(connection, username_hash, ip, count + 1, time)
    count, start = failures_from(connection, ip, since)
    _put_failures(connection, _ALL_NAMES, ip, count + 1, start or time)


def _put_failures(connection: sa.Connection, username_hash: bytes, ip: str, count: int, time: datetime) -> None:
    forget_failures(connection, username_hash, ip)
    values = {"username_hash": username_hash, "ip": ip[:45], "count": count, "last_at": time}
    connection.execute(login_failures.insert().values(**values))


def forget_failures(connection: sa.Connection, username_hash: bytes, ip: str) -> None:
    """Forget the failed log-ins of a name from an address, after a success."""
    own = (login_failures.c.username_hash == username_hash, login_failures.c.ip == ip[:45])
    connection.execute(login_failures.delete().where(*own))


def find_key(connection: sa.Connection, user_id: str) -> Any:
    """Return the row of a user's API key that was not revoked; None without one."""
    query = sa.select(api_keys).where(api_keys.c.user_id == user_id, api_keys.c.revoked_at.is_(None))
    return connection.execute(query).one_or_none()


def user_of_key(connection: sa.Connection, key: str) -> Any:
    """Return the row of a live API key with that of its enabled user; None without such a key."""
    try:
        return connection.execute(_USER_OF_KEY, {"api_key": key}).one_or_none()
    except UnicodeEncodeError:  # half of a surrogate pair, so no key
        return None


def put_key(connection: sa.Connection, user_id: str, key: str, version: int, time: datetime) -> None:
    """Store the API key of a user in the place of an earlier one."""
    connection.execute(api_keys.delete().where(api_keys.c.user_id == user_id))
    values = {"key": key, "user_id": user_id, "version": version, "created_at": time, "shown_at": time}
    connection.execute(api_keys.insert().values(**values))


def note_key_use(connection: sa.Connection, key: str, time: datetime) -> None:
    """Store the time of the last use of an API key."""
    connection.execute(api_keys.update().where(api_keys.c.key == key).values(last_used_at=time))


def revoke_key(connection: sa.Connection, user_id: str, time: datetime) -> bool:
    """Revoke the API key of a user; return whether there was one."""
    own = (api_keys.c.user_id == user_id, api_keys.c.revoked_at.is_(None))
    return bool(connection.execute(api_keys.update().where(*own).values(revoked_at=time)).rowcount)
