"""Rows of users and their roles. Each function takes an open connection of the service's database."""

from collections.abc import Collection, Iterable
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

from framedex.access import LOCAL_USER_ID, RealmRole
from framedex.core.ids import new_id
from framedex.core.naming import name_key
from framedex.errors import InvalidInput, NotFound
from framedex.records import User
from framedex.storage.datasets import now
from framedex.storage.service_db.schema import identities, sessions, user_roles, users

_NOT_LOCAL = users.c.id != LOCAL_USER_ID
_BY_ID = sa.select(users).where(users.c.id == sa.bindparam("key"), _NOT_LOCAL)
_REALM_ROLES = sa.select(user_roles.c.role).where(user_roles.c.user_id == sa.bindparam("user"))


def insert_user(
    connection: sa.Connection,
    username: str,
    *,
    password_hash: str | None,
    first_name: str | None = None,
    last_name: str | None = None,
    email: str | None = None,
    enabled: bool = True,
    password_temporary: bool = False,
) -> str:
    """Add a user and return the id.

    Raises:
        InvalidInput: the name or the e-mail address is taken.
    """
    check_free(connection, username, email)
    user_id = new_id()
    connection.execute(
        users.insert().values(
            id=user_id,
            username=username,
            username_key=name_key(username),
            email=email,
            email_key=None if email is None else name_key(email),
            first_name=first_name,
            last_name=last_name,
            enabled=enabled,
            password_hash=password_hash,
            password_temporary=password_temporary,
            created_at=now(),
            epoch=0,
        )
    )
    return user_id


def check_free(connection: sa.Connection, username: str, email: str | None = None, *, user_id: str = "") -> None:
    """Check that no other user has a name or an e-mail address, as the name or the address.

    Both name a user where a dataset is shared and in records, so nobody's name is the address of somebody else.

    Raises:
        InvalidInput: the name or the address is taken.
    """
    for noun, text in (("Username", username), ("E-mail address", email)):
        if text is not None:
            key = name_key(text)
            same = sa.or_(users.c.username_key == key, users.c.email_key == key)
            if connection.execute(sa.select(users.c.id).where(same, users.c.id != user_id)).first() is not None:
                raise InvalidInput(f"{noun} {text!r} is already taken")


def put_identity(connection: sa.Connection, issuer: str, subject: str, user_id: str) -> None:
    """Store the account of a user at an identity provider.

    Args:
        connection: of the service's database.
        issuer: the provider.
        subject: the id of the account there.
        user_id: the user.
    """
    connection.execute(identities.insert().values(issuer=issuer, subject=subject, user_id=user_id))


def identity_of(connection: sa.Connection, issuer: str, user_id: str) -> str | None:
    """Return the id of a user's account at an identity provider; None without one."""
    query = sa.select(identities.c.subject).where(identities.c.issuer == issuer, identities.c.user_id == user_id)
    return connection.execute(query).scalars().first()


def user_of_identity(connection: sa.Connection, issuer: str, subject: str) -> str | None:
    """Return the id of the user who has an account at an identity provider; None without one."""
    query = sa.select(identities.c.user_id).where(identities.c.issuer == issuer, identities.c.subject == subject)
    return connection.execute(query).scalar_one_or_none()


def users_of_provider_session(connection: sa.Connection, issuer: str, provider_session: str) -> list[str]:
    """Return the ids of the users with an account at an identity provider, of whom a session has an id there."""
    query = (
        sa.select(identities.c.user_id)
        .join(sessions, sessions.c.user_id == identities.c.user_id)
        .where(identities.c.issuer == issuer, sessions.c.provider_session == provider_session)
        .distinct()
    )
    return list(connection.execute(query).scalars())


def subjects_of(connection: sa.Connection, user_ids: Collection[str]) -> dict[str, str]:
    """Return the ids of users' accounts at identity providers by the ids of the users; the first one of several."""
    query = sa.select(identities.c.user_id, identities.c.subject).where(identities.c.user_id.in_(list(user_ids)))
    found: dict[str, str] = {}
    for user_id, subject in connection.execute(query.order_by(identities.c.issuer)).all():
        found.setdefault(user_id, subject)
    return found


def user_of_subject(connection: sa.Connection, subject: str) -> str | None:
    """Return the id of the one user who has an account of an id at any identity provider; None without one."""
    query = sa.select(identities.c.user_id).where(identities.c.subject == subject).distinct()
    try:
        found = connection.execute(query).scalars().all()
    except UnicodeEncodeError:  # half of a surrogate pair, so nobody's id
        return None
    return found[0] if len(found) == 1 else None


def find_user(connection: sa.Connection, user_id: str) -> sa.Row[Any]:
    """Return the row of a user.

    Raises:
        NotFound: there is no such user.
    """
    row = _by_id(connection, user_id)
    if row is None:
        raise NotFound("User not found")
    return row


def _by_id(connection: sa.Connection, user_id: str) -> sa.Row[Any] | None:
    try:
        return connection.execute(_BY_ID, {"key": user_id}).one_or_none()
    except UnicodeEncodeError:  # half of a surrogate pair, so nobody's id
        return None


def users_of(connection: sa.Connection, user_ids: Collection[str]) -> dict[str, sa.Row[Any]]:
    """Return the rows of users by their ids; those that do not exist are left out."""
    rows = connection.execute(sa.select(users).where(users.c.id.in_(list(user_ids)), _NOT_LOCAL)).all()
    return {row.id: row for row in rows}


def enabled_user(connection: sa.Connection, user_id: str) -> sa.Row[Any] | None:
    """Return the row of a user who may log in; None without one. The local user never may."""
    row = _by_id(connection, user_id)
    return row if row is not None and row.enabled else None


def user_named(connection: sa.Connection, username: str) -> sa.Row[Any] | None:
    """Return the row of the user with a name; None if there is none."""
    return _first(connection, users.c.username_key == name_key(username))


def user_with_email(connection: sa.Connection, email: str) -> sa.Row[Any] | None:
    """Return the row of the user with an e-mail address; None if there is none."""
    return _first(connection, users.c.email_key == name_key(email))


def user_addressed(connection: sa.Connection, address: str) -> sa.Row[Any] | None:
    """Return the row of the user with an e-mail address, or else with that username; None if there is none."""
    row = user_with_email(connection, address)
    return user_named(connection, address) if row is None else row


def _first(connection: sa.Connection, condition: sa.ColumnElement[bool]) -> sa.Row[Any] | None:
    try:
        return connection.execute(sa.select(users).where(condition, _NOT_LOCAL)).one_or_none()
    except UnicodeEncodeError:  # half of a surrogate pair, so nobody's name
        return None


def list_users(connection: sa.Connection, *, search: str = "", limit: int, offset: int = 0) -> tuple[list[User], int]:
    """Return a page of the users whose name contains a text, by username, and the number of all of them."""
    order = users.c.username_key
    if not search:
        total = count_users(connection)
        rows = connection.execute(sa.select(users).where(_NOT_LOCAL).order_by(order).limit(limit).offset(offset)).all()
    else:
        # SQLite folds the case of ASCII letters alone.
        text, names = name_key(search), sa.select(users.c.id, order, users.c.first_name, users.c.last_name)
        ids = [
            user_id
            for user_id, *parts in connection.execute(names.where(_NOT_LOCAL).order_by(order))
            if any(text in name_key(part) for part in parts if part)
        ]
        total, chosen = len(ids), ids[offset : offset + limit]
        rows = connection.execute(sa.select(users).where(users.c.id.in_(chosen)).order_by(order)).all()
    roles = _roles_of(connection, [row.id for row in rows])
    return [_record(row, roles.get(row.id, [])) for row in rows], total


def read_user(connection: sa.Connection, user_id: str) -> User:
    """Return a user.

    Raises:
        NotFound: there is no such user.
    """
    row = find_user(connection, user_id)
    return _record(row, _roles_of(connection, [user_id]).get(user_id, []))


def update_user(connection: sa.Connection, user_id: str, **values: Any) -> None:
    """Set columns of a user's row."""
    connection.execute(users.update().where(users.c.id == user_id).values(**values))


def rename_user(connection: sa.Connection, user_id: str, username: str) -> None:
    """Rename a user.

    Raises:
        InvalidInput: the name is taken.
    """
    check_free(connection, username, user_id=user_id)
    update_user(connection, user_id, username=username, username_key=name_key(username))


def set_email(connection: sa.Connection, user_id: str, email: str) -> None:
    """Set the e-mail address of a user, which nobody else has."""
    update_user(connection, user_id, email=email, email_key=name_key(email))


def end_sessions(connection: sa.Connection, user_ids: Collection[str]) -> None:
    """End all sessions of users: those of an older epoch are dead."""
    connection.execute(users.update().where(users.c.id.in_(list(user_ids))).values(epoch=users.c.epoch + 1))


def delete_user(connection: sa.Connection, user_id: str) -> None:
    """Delete a user with roles, memberships, grants, sessions and keys."""
    connection.execute(users.delete().where(users.c.id == user_id))


def realm_roles(connection: sa.Connection, user_id: str) -> frozenset[str]:
    """Return the roles of a user that hold in all tenants."""
    return frozenset(connection.execute(_REALM_ROLES, {"user": user_id}).scalars())


def set_realm_roles(connection: sa.Connection, user_id: str, roles: Iterable[str]) -> None:
    """Replace the roles of a user that hold in all tenants."""
    connection.execute(user_roles.delete().where(user_roles.c.user_id == user_id))
    rows = [{"user_id": user_id, "role": role} for role in sorted(set(map(str, roles)))]
    if rows:
        connection.execute(user_roles.insert(), rows)


def count_users(connection: sa.Connection) -> int:
    """Return the number of user accounts."""
    return int(connection.execute(sa.select(sa.func.count()).select_from(users).where(_NOT_LOCAL)).scalar_one())


def _roles_of(connection: sa.Connection, user_ids: Collection[str]) -> dict[str, list[str]]:
    rows = connection.execute(sa.select(user_roles).where(user_roles.c.user_id.in_(list(user_ids)))).all()
    roles: dict[str, list[str]] = {}
    for row in rows:
        roles.setdefault(row.user_id, []).append(row.role)
    return roles


def milliseconds(time: datetime) -> int:
    """Return a time in milliseconds since 1970, in UTC."""
    return round(time.astimezone(UTC).timestamp() * 1000)


def _record(row: sa.Row[Any], roles: Collection[str]) -> User:
    order = [str(role) for role in RealmRole]
    return User(
        id=row.id,
        username=row.username,
        first_name=row.first_name,
        last_name=row.last_name,
        enabled=row.enabled,
        created_timestamp=milliseconds(row.created_at),
        roles=sorted(roles, key=order.index),
        last_access=None if row.last_access is None else milliseconds(row.last_access),
    )
