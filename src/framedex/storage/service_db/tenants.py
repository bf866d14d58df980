"""Rows of organizations, tenants and members. Each function takes an open connection of the service's database."""

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from framedex.access import Role
from framedex.core.ids import new_id
from framedex.errors import Conflict, InvalidInput, NotFound
from framedex.records import Organization, TenantMember
from framedex.storage.datasets import now
from framedex.storage.service_db.schema import memberships, organizations, tenants, users

_MEMBERSHIPS = sa.select(memberships).where(memberships.c.user_id == sa.bindparam("user"))


def insert_organization(connection: sa.Connection, name: str) -> str:
    """Add an organization and return its id.

    Raises:
        Conflict: the name is taken.
    """
    if connection.execute(sa.select(organizations.c.id).where(organizations.c.name == name)).scalar() is not None:
        raise Conflict(f"an organization named {name!r} exists already")
    organization_id = new_id()
    connection.execute(organizations.insert().values(id=organization_id, name=name, created_at=now()))
    return organization_id


def list_organizations(connection: sa.Connection, *, of_user: str | None = None) -> list[Organization]:
    """Return organizations by name: those with tenants of a user, or all with None."""
    query = sa.select(organizations).order_by(organizations.c.name)
    if of_user is not None:
        own = (
            sa.select(tenants.c.organization_id)
            .join(memberships, memberships.c.tenant_id == tenants.c.id)
            .where(memberships.c.user_id == of_user)
        )
        query = query.where(organizations.c.id.in_(own))
    return [Organization.model_validate(dict(row._mapping)) for row in connection.execute(query).all()]


def insert_tenant(connection: sa.Connection, organization_id: str, name: str) -> str:
    """Add a tenant to an organization and return its id.

    Raises:
        NotFound: the organization does not exist.
        Conflict: the organization has a tenant of that name.
    """
    if connection.execute(sa.select(organizations.c.id).where(organizations.c.id == organization_id)).first() is None:
        raise NotFound("Organization not found")
    same = sa.select(tenants.c.id).where(tenants.c.organization_id == organization_id, tenants.c.name == name)
    if connection.execute(same).first() is not None:
        raise Conflict(f"a workspace named {name!r} exists already in this organization")
    tenant_id = new_id()
    connection.execute(
        tenants.insert().values(id=tenant_id, organization_id=organization_id, name=name, created_at=now())
    )
    return tenant_id


def find_tenant(connection: sa.Connection, tenant_id: str) -> sa.Row[Any]:
    """Return the row of a tenant.

    Raises:
        NotFound: there is no such tenant.
    """
    row = connection.execute(sa.select(tenants).where(tenants.c.id == tenant_id)).one_or_none()
    if row is None:
        raise NotFound("Workspace not found")
    return row


def list_tenants(connection: sa.Connection, *, of_user: str | None = None) -> Sequence[sa.Row[Any]]:
    """Return the rows of tenants, the oldest first: those of a user, or all with None."""
    query = sa.select(tenants).order_by(tenants.c.created_at, tenants.c.id)
    if of_user is not None:
        query = query.join(memberships, memberships.c.tenant_id == tenants.c.id).where(memberships.c.user_id == of_user)
    return connection.execute(query).all()


def roles_of(connection: sa.Connection, user_id: str) -> dict[str, Role]:
    """Return the roles of a user by the ids of the tenants."""
    rows = connection.execute(_MEMBERSHIPS, {"user": user_id}).all()
    return {row.tenant_id: Role(row.role) for row in rows}


def primary_tenant(connection: sa.Connection, user_id: str) -> str | None:
    """Return the id of the tenant that a user joined first; None for no member."""
    query = sa.select(memberships.c.tenant_id).where(memberships.c.user_id == user_id, memberships.c.is_primary)
    return connection.execute(query).scalar_one_or_none()


def insert_member(connection: sa.Connection, tenant_id: str, user_id: str, role: Role) -> None:
    """Make a user a member of a tenant; the first tenant of a user is the primary one.

    Raises:
        InvalidInput: the user is a member already.
    """
    roles = roles_of(connection, user_id)
    if tenant_id in roles:
        raise InvalidInput("The user is a member of this workspace already")
    values = {"tenant_id": tenant_id, "user_id": user_id, "role": role, "is_primary": not roles, "created_at": now()}
    connection.execute(memberships.insert().values(**values))


def set_role(connection: sa.Connection, tenant_id: str, user_id: str, role: Role) -> None:
    """Set the role of a member."""
    own = (memberships.c.tenant_id == tenant_id, memberships.c.user_id == user_id)
    connection.execute(memberships.update().where(*own).values(role=role))


def admins_of(connection: sa.Connection, tenant_id: str, *, enabled: bool = False) -> list[str]:
    """Return the ids of the admins of a tenant, the oldest member first; with *enabled* those who may log in."""
    query = (
        sa.select(memberships.c.user_id)
        .join(users, users.c.id == memberships.c.user_id)
        .where(sa.or_(users.c.enabled, sa.literal(not enabled)))
        .where(memberships.c.tenant_id == tenant_id, memberships.c.role == Role.ADMIN)
        .order_by(memberships.c.created_at, memberships.c.user_id)
    )
    return list(connection.execute(query).scalars())


def list_members(connection: sa.Connection, tenant_id: str) -> list[TenantMember]:
    """Return the members of a tenant, by username."""
    query = (
        sa.select(memberships, users.c.username, users.c.email, users.c.first_name, users.c.last_name)
        .join(users, users.c.id == memberships.c.user_id)
        .where(memberships.c.tenant_id == tenant_id)
        .order_by(users.c.username_key)
    )
    return [
        TenantMember(
            user_id=row.user_id,
            username=row.username,
            email=row.email,
            first_name=row.first_name,
            last_name=row.last_name,
            role=row.role,
            created_at=row.created_at,
        )
        for row in connection.execute(query).all()
    ]
