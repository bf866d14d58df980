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
from framedex.storage.service_db.schema import user_roles, users

_NOT_LOCAL = users.c.id != LOCAL_USER_ID


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
    user_id, key = new_id(), name_key(username)
    if connection.execute(sa.select(users.c.id).where(users.c.username_key == key)).scalar() is not None:
        raise InvalidInput(f"Username {username!r} is already taken")
    if email is not None:
        taken = sa.select(users.c.id).where(users.c.email_key == name_key(email))
        if connection.execute(taken).scalar() is not None:
            raise InvalidInput(f"E-mail address {email!r} is already taken")
    connection.execute(
        users.insert().values(
            id=user_id,
            username=username,
            username_key=key,
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


def find_user(connection: sa.Connection, user_id: str) -> sa.Row[Any]:
    """Return the row of a user.

    Raises:
        NotFound: there is no such user.
    """
    row = _first(connection, users.c.id == user_id)
    if row is None:
        raise NotFound("User not found")
    return row


def user_named(connection: sa.Connection, username: str) -> sa.Row[Any] | None:
    """Return the row of the user with a name; None if there is none."""
    return _first(connection, users.c.username_key == name_key(username))


def user_addressed(connection: sa.Connection, address: str) -> sa.Row[Any] | None:
    """Return the row of the user with an e-mail address, or else with that username; None if there is none."""
    row = _first(connection, users.c.email_key == name_key(address))
    return user_named(connection, address) if row is None else row


def _first(connection: sa.Connection, condition: sa.ColumnElement[bool]) -> sa.Row[Any] | None:
    try:
        return connection.execute(sa.select(users).where(condition, _NOT_LOCAL)).one_or_none()
    except UnicodeEncodeError:  # half of a surrogate pair, so nobody's name
        return None


def list_users(connection: sa.Connection, *, search: str = "", limit: int, offset: int = 0) -> tuple[list[User], int]:
    """Return a page of the users whose name contains a text, by username, and the number of all of them."""
    condition = _NOT_LOCAL
    if search:
        text = name_key(search)
        names = (users.c.username_key, sa.func.lower(users.c.first_name), sa.func.lower(users.c.last_name))
        condition = sa.and_(condition, sa.or_(*(name.contains(text, autoescape=True) for name in names)))
    total = connection.execute(sa.select(sa.func.count()).select_from(users).where(condition)).scalar_one()
    query = sa.select(users).where(condition).order_by(users.c.username_key).limit(limit).offset(offset)
    rows = connection.execute(query).all()
    roles = _roles_of(connection, [row.id for row in rows])
    return [_record(row, roles.get(row.id, [])) for row in rows], int(total)


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
    other = user_named(connection, username)
    if other is not None and other.id != user_id:
        raise InvalidInput(f"Username {username!r} is already taken")
    update_user(connection, user_id, username=username, username_key=name_key(username))


def end_sessions(connection: sa.Connection, user_ids: Collection[str]) -> None:
    """End all sessions of users: those of an older epoch are dead."""
    connection.execute(users.update().where(users.c.id.in_(list(user_ids))).values(epoch=users.c.epoch + 1))


def delete_user(connection: sa.Connection, user_id: str) -> None:
    """Delete a user with roles, memberships, grants, sessions and keys."""
    connection.execute(users.delete().where(users.c.id == user_id))


def realm_roles(connection: sa.Connection, user_id: str) -> frozenset[str]:
    """Return the roles of a user that hold in all tenants."""
    return frozenset(_roles_of(connection, [user_id]).get(user_id, []))


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
