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

    A new admin gets the roles that hold in all tenants, and a former one loses them. In single-workspace mode the other
    admins become editors. A member who becomes a viewer keeps no grant above viewing and owns nothing any more.

    Args:
        connection: of the service's database.
        tenant_id: the tenant.
        user_id: the member.
        role: the next role.
        is_single: whether a tenant has one admin.
        new_owner_id: the next owner of the datasets of a member who becomes a viewer.

    Raises:
        InvalidInput: the tenant would be left without an admin.
    """
    former = tenants.roles_of(connection, user_id)[tenant_id]
    affected: list[str] = []
    if role is former:
        return affected
    if role is Role.ADMIN:
        if is_single:
            for other in tenants.admins_of(connection, tenant_id):
                _demote(connection, tenant_id, other, Role.EDITOR)
                affected.append(other)
        tenants.set_role(connection, tenant_id, user_id, Role.ADMIN)
        accounts.set_realm_roles(connection, user_id, RealmRole)
        affected.append(user_id)
    elif former is Role.ADMIN:
        check_other_admin(connection, tenant_id, user_id, "The last admin of a workspace cannot be demoted")
        _demote(connection, tenant_id, user_id, role)
        affected.append(user_id)
    else:
        tenants.set_role(connection, tenant_id, user_id, role)
    if role is Role.VIEWER:
        homes.reduce_grants(connection, user_id, tenant_id)
        homes.transfer_datasets(connection, user_id, new_owner_id, tenant_id=tenant_id)
    accounts.end_sessions(connection, affected)
    return affected


def check_other_admin(connection: Any, tenant_id: str, user_id: str, message: str) -> None:
    """Check that a tenant has an admin beside a user.

    Raises:
        InvalidInput: it has none; the message says what to do.
    """
    if tenants.admins_of(connection, tenant_id) == [user_id]:
        raise InvalidInput(f"{message}; promote another user first")


def _demote(connection: Any, tenant_id: str, user_id: str, role: Role) -> None:
    tenants.set_role(connection, tenant_id, user_id, role)
    if Role.ADMIN not in tenants.roles_of(connection, user_id).values():
        accounts.set_realm_roles(connection, user_id, ())
