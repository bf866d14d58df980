"""Rows that say to whom datasets belong, and with whom they are shared.

Each function takes an open connection of the service's database. A dataset without a row was made by the library, and
belongs to the default tenant without an owner; or its creation was interrupted, and the hub finishes it.
"""

from typing import Any, NamedTuple

import sqlalchemy as sa

from framedex.access import Role
from framedex.records import DatasetMember
from framedex.storage.datasets import now
from framedex.storage.service_db.database import DEFAULT_ID
from framedex.storage.service_db.schema import dataset_homes, grants, metadata_tasks, notifications, users

_HOMES = sa.select(dataset_homes, users.c.email, users.c.username).join(
    users, users.c.id == dataset_homes.c.owner_id, isouter=True
)
_HOME = _HOMES.where(dataset_homes.c.dataset_id == sa.bindparam("key"))
_GRANT = sa.select(grants.c.role).where(
    grants.c.dataset_id == sa.bindparam("dataset"), grants.c.user_id == sa.bindparam("user")
)


class Home(NamedTuple):
    """The tenant and the owner of a dataset.

    Attributes:
        tenant_id: the tenant.
        owner_id: the user; None for no owner.
        owner: the e-mail address of the owner, or else the username; None for no owner.
    """

    tenant_id: str
    owner_id: str | None = None
    owner: str | None = None


def put_home(connection: sa.Connection, dataset_id: str, tenant_id: str, owner_id: str | None) -> None:
    """Store to whom a dataset belongs."""
    connection.execute(dataset_homes.delete().where(dataset_homes.c.dataset_id == dataset_id))
    values = {"dataset_id": dataset_id, "tenant_id": tenant_id, "owner_id": owner_id, "created_at": now()}
    connection.execute(dataset_homes.insert().values(**values))


def find_home(connection: sa.Connection, dataset_id: str) -> Home | None:
    """Return to whom a dataset belongs; None if that is not stored."""
    row = connection.execute(_HOME, {"key": dataset_id}).one_or_none()
    return None if row is None else _home(row)


def homes(connection: sa.Connection) -> dict[str, Home]:
    """Return to whom datasets belong, by their ids."""
    return {row.dataset_id: _home(row) for row in connection.execute(_HOMES).all()}


def _home(row: sa.Row[Any]) -> Home:
    return Home(row.tenant_id, row.owner_id, row.email or row.username)


def transfer_datasets(
    connection: sa.Connection, owner_id: str, new_owner_id: str | None, *, tenant_id: str | None = None
) -> None:
    """Give the datasets of an owner to another one.

    Args:
        connection: of the service's database.
        owner_id: the present owner.
        new_owner_id: the next owner; None for no owner.
        tenant_id: the tenant of the datasets; None for all.
    """
    update = dataset_homes.update().where(dataset_homes.c.owner_id == owner_id)
    if tenant_id is not None:
        update = update.where(dataset_homes.c.tenant_id == tenant_id)
    connection.execute(update.values(owner_id=new_owner_id))


def grant_of(connection: sa.Connection, dataset_id: str, user_id: str) -> Role | None:
    """Return the role that a user was granted for a dataset; None without a grant."""
    role = connection.execute(_GRANT, {"dataset": dataset_id, "user": user_id}).scalar_one_or_none()
    return None if role is None else Role(role)


def grants_of(connection: sa.Connection, user_id: str) -> dict[str, Role]:
    """Return the roles that a user was granted, by the ids of the datasets."""
    rows = connection.execute(sa.select(grants).where(grants.c.user_id == user_id)).all()
    return {row.dataset_id: Role(row.role) for row in rows}


def grants_for(connection: sa.Connection, dataset_id: str) -> dict[str, Role]:
    """Return the roles that users were granted for a dataset, by the ids of the users."""
    rows = connection.execute(sa.select(grants).where(grants.c.dataset_id == dataset_id)).all()
    return {row.user_id: Role(row.role) for row in rows}


def put_grant(connection: sa.Connection, dataset_id: str, user_id: str, role: Role, granted_by: str | None) -> None:
    """Give a user a role for a dataset, in the place of an earlier one."""
    remove_grant(connection, dataset_id, user_id)
    values = {"dataset_id": dataset_id, "user_id": user_id, "role": role, "granted_by": granted_by, "created_at": now()}
    connection.execute(grants.insert().values(**values))


def remove_grant(connection: sa.Connection, dataset_id: str, user_id: str) -> bool:
    """Take the role of a user for a dataset back; return whether there was one."""
    own = (grants.c.dataset_id == dataset_id, grants.c.user_id == user_id)
    return bool(connection.execute(grants.delete().where(*own)).rowcount)


def reduce_grants(connection: sa.Connection, user_id: str, tenant_id: str) -> None:
    """Reduce the grants of a user for the datasets of a tenant to viewing."""
    of_others = sa.select(dataset_homes.c.dataset_id).where(dataset_homes.c.tenant_id != tenant_id)
    of_tenant = sa.select(dataset_homes.c.dataset_id).where(dataset_homes.c.tenant_id == tenant_id)
    # Datasets without a row belong to the default tenant.
    inside = grants.c.dataset_id.not_in(of_others) if tenant_id == DEFAULT_ID else grants.c.dataset_id.in_(of_tenant)
    connection.execute(grants.update().where(grants.c.user_id == user_id, inside).values(role=Role.VIEWER))


def dataset_members(connection: sa.Connection, dataset_id: str) -> list[DatasetMember]:
    """Return the owner of a dataset and those with whom it is shared, by address: an e-mail address, else a name."""
    home = find_home(connection, dataset_id)
    owner_id = None if home is None else home.owner_id
    rows = connection.execute(
        sa.select(users.c.id, users.c.username, users.c.email, grants.c.role)
        .join(grants, grants.c.user_id == users.c.id)
        .where(grants.c.dataset_id == dataset_id)
    ).all()
    shared = [DatasetMember(email=row.email or row.username, role=row.role) for row in rows if row.id != owner_id]
    owners = [] if home is None or home.owner is None else [DatasetMember(email=home.owner, role="owner")]
    return [*owners, *sorted(shared, key=lambda member: member.email)]


def stored_datasets(connection: sa.Connection) -> set[str]:
    """Return the ids of the datasets about which something is stored: an owner, a grant, a notification."""
    stored: set[str] = set(connection.execute(sa.select(dataset_homes.c.dataset_id)).scalars())
    for table in (grants, notifications):
        stored |= set(connection.execute(sa.select(table.c.dataset_id).distinct()).scalars()) - {None}
    return stored


def forget_dataset(connection: sa.Connection, dataset_id: str) -> None:
    """Delete what is stored about a dataset that does not exist any more."""
    for table in (dataset_homes, grants, notifications, metadata_tasks):
        connection.execute(table.delete().where(table.c.dataset_id == dataset_id))
