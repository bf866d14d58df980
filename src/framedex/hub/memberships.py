"""Changes of roles in tenants, each with all that follows from it, in one transaction of the service's database."""

from typing import Any

from framedex.access import RealmRole, Role
from framedex.errors import InvalidInput
from framedex.storage.service_db import accounts, homes, tenants


def join(connection: Any, tenant_id: str, user_id: str, role: Role, *, is_single: bool) -> list[str]:
    """Make a user a member of a tenant; return the ids of the users whose sessions end by it.

    Raises:
        InvalidInput: the user is a member already.
    """
    tenants.insert_member(connection, tenant_id, user_id, Role.VIEWER)
    if role is Role.VIEWER:
        return []
    return change_role(connection, tenant_id, user_id, role, is_single=is_single, new_owner_id=None)


def change_role(
    connection: Any, tenant_id: str, user_id: str, role: Role, *, is_single: bool, new_owner_id: str | None
) -> list[str]:
    """Set the role of a member; return the ids of the users whose sessions end by it.

    An admin can log in: a disabled user becomes none. A new admin gets the roles that hold in all tenants, and a former
    one loses them. In single-workspace mode the other admins become editors. A member who becomes a viewer keeps no
    grant above viewing and owns nothing any more.

    Args:
        connection: of the service's database.
        tenant_id: the tenant.
        user_id: the member.
        role: the next role.
        is_single: whether a tenant has one admin.
        new_owner_id: the next owner of the datasets of a member who becomes a viewer.

    Raises:
        InvalidInput: the tenant would be left without an admin who can log in.
    """
    former = tenants.roles_of(connection, user_id)[tenant_id]
    affected: list[str] = []
    if role is Role.ADMIN:
        if not accounts.find_user(connection, user_id).enabled:
            raise InvalidInput("A disabled user cannot become an admin; enable the user first")
        others = tenants.admins_of(connection, tenant_id) if is_single else ()
        for other in others:
            if other != user_id:
                _demote(connection, tenant_id, other, Role.EDITOR)
                affected.append(other)
    if role is Role.ADMIN and former is not Role.ADMIN:
        tenants.set_role(connection, tenant_id, user_id, Role.ADMIN)
        accounts.set_realm_roles(connection, user_id, RealmRole)
        affected.append(user_id)
    elif role is not former and former is Role.ADMIN:
        check_other_admin(connection, tenant_id, user_id, "The last admin of a workspace cannot be demoted")
        _demote(connection, tenant_id, user_id, role)
        affected.append(user_id)
    elif role is not former:
        tenants.set_role(connection, tenant_id, user_id, role)
    if role is Role.VIEWER:
        homes.reduce_grants(connection, user_id, tenant_id)
        homes.transfer_datasets(connection, user_id, new_owner_id, tenant_id=tenant_id)
    accounts.end_sessions(connection, affected)
    return affected


def check_other_admin(connection: Any, tenant_id: str, user_id: str, message: str) -> None:
    """Check that a tenant has an admin beside a user, who can log in.

    Raises:
        InvalidInput: it has none; the message says what to do.
    """
    if not set(tenants.admins_of(connection, tenant_id, enabled=True)) - {user_id}:
        raise InvalidInput(f"{message}; promote another user first")


def next_owner(connection: Any, actor_id: str | None, tenant_id: str, former_id: str) -> str | None:
    """Return the next owner of a user's datasets in a tenant: the actor if that is an admin of it, else its admin.

    Args:
        connection: of the service's database.
        actor_id: who takes the datasets away from their owner; None for nobody with an account.
        tenant_id: the tenant of the datasets.
        former_id: the present owner.

    Returns:
        The id of the user; None if the tenant has no other admin.
    """
    admins = [each for each in tenants.admins_of(connection, tenant_id) if each != former_id]
    return actor_id if actor_id in admins else next(iter(admins), None)


def _demote(connection: Any, tenant_id: str, user_id: str, role: Role) -> None:
    tenants.set_role(connection, tenant_id, user_id, role)
    if Role.ADMIN not in tenants.roles_of(connection, user_id).values():
        accounts.set_realm_roles(connection, user_id, ())
