"""Organizations and tenants: their members and the members' roles."""

from typing import Any

from framedex.access import Action, Actor, Role, TenantSubject, Via, allowed
from framedex.core.naming import check_name
from framedex.errors import Forbidden, InvalidInput, NotFound
from framedex.hub import memberships
from framedex.hub.actors import own_id
from framedex.hub.context import HubContext
from framedex.records import Organization, Tenant, TenantAccess, TenantMember, TenantPermissions
from framedex.storage.service_db import accounts, audit, tenants
from framedex.storage.service_db.database import DEFAULT_ID


class Tenants:
    """The organizations and tenants of a hub.

    Args:
        context: the open parts of the hub.
    """

    def __init__(self, context: HubContext) -> None:
        self._context = context

    def visible(self, actor: Actor, *, organization_id: str | None = None) -> list[Tenant]:
        """Return the tenants of the actor, the oldest first; the operator sees all.

        Args:
            actor: who asks.
            organization_id: the organization of the tenants; None for all.

        Raises:
            NotAuthenticated: nobody is logged in.
        """
        self._context.require_log_in(actor)
        with self._context.database.read() as connection:
            rows = tenants.list_tenants(connection, of_user=own_id(actor))
        chosen = [row for row in rows if organization_id in (None, row.organization_id)]
        return [self._record(actor, row) for row in chosen]

    def get(self, actor: Actor, tenant_id: str = DEFAULT_ID) -> Tenant:
        """Return a tenant.

        Raises:
            NotFound: it does not exist, or the actor is no member.
        """
        self._context.require(actor, Action.TENANT_VIEW, TenantSubject(tenant_id))
        with self._context.database.read() as connection:
            return self._record(actor, tenants.find_tenant(connection, tenant_id))

    def find(self, actor: Actor, name: str) -> Tenant:
        """Return a tenant of the actor by its id or its name.

        Raises:
            NotFound: there is no such tenant, or the actor is no member.
            InvalidInput: tenants of several organizations have that name.
        """
        found = [each for each in self.visible(actor) if name in (each.id, each.name)]
        if not found:
            raise NotFound(f"no workspace {name!r}")
        if len(found) > 1:
            raise InvalidInput(f"several workspaces are named {name!r}; give an id: {', '.join(e.id for e in found)}")
        return found[0]

    def members(self, actor: Actor, tenant_id: str = DEFAULT_ID) -> list[TenantMember]:
        """Return the members of a tenant, by username.

        Raises:
            NotFound: it does not exist, or the actor is no member.
        """
        self._context.require(actor, Action.TENANT_VIEW, TenantSubject(tenant_id))
        with self._context.database.read() as connection:
            tenants.find_tenant(connection, tenant_id)
            return tenants.list_members(connection, tenant_id)

    def access(self, actor: Actor, tenant_id: str | None = None) -> TenantAccess:
        """Return what the actor may do in a tenant; that of no member is nothing, whether the tenant exists or not.

        Args:
            actor: who asks.
            tenant_id: the tenant; None for the one that the actor joined first.

        Raises:
            NotAuthenticated: nobody is logged in.
            NotFound: the tenant does not exist, and the actor may see all users.
        """
        self._context.require_log_in(actor)
        subject = TenantSubject(tenant_id or self.primary(actor) or "")
        if not allowed(actor, Action.TENANT_VIEW, subject) and tenant_id and allowed(actor, Action.USERS_WRITE):
            with self._context.database.read() as connection:
                tenants.find_tenant(connection, tenant_id)
        return TenantAccess(
            can_access=bool(allowed(actor, Action.TENANT_VIEW, subject)),
            can_manage=bool(allowed(actor, Action.TENANT_EDIT_ROLES, subject)),
            role=actor.roles.get(subject.tenant_id),
        )

    def primary(self, actor: Actor) -> str | None:
        """Return the id of the tenant that the actor joined first; None for no member."""
        with self._context.database.read() as connection:
            return None if actor.user_id is None else tenants.primary_tenant(connection, actor.user_id)

    def set_role(self, actor: Actor, user_id: str, role: Role, *, tenant_id: str = DEFAULT_ID) -> TenantMember:
        """Set the role of a member, with all that follows from it, and return the member.

        In single-workspace mode a promotion to admin makes the other admins editors. Admins have the roles that hold
        in all tenants. A member who becomes a viewer keeps no grant above viewing, and the datasets of the member go to
        the actor. All whose rights as admin change are logged out.

        Raises:
            NotFound: the tenant does not exist or is not the actor's, or the user is no member.
            Forbidden: the actor is no admin.
            InvalidInput: it is the actor's own role, the role does not exist, or the tenant would have no admin.
        """
        subject = TenantSubject(tenant_id)
        self._context.require(actor, Action.TENANT_EDIT_ROLES, subject, target=user_id)
        if user_id == actor.user_id:
            raise InvalidInput("You cannot change your own role")
        role = checked_role(role)
        with self._context.change(actor, Action.TENANT_EDIT_ROLES, subject) as connection:
            tenants.find_tenant(connection, tenant_id)
            if tenant_id not in tenants.roles_of(connection, user_id):
                raise NotFound("Member not found")
            memberships.change_role(
                connection,
                tenant_id,
                user_id,
                role,
                is_single=self._context.is_single,
                new_owner_id=memberships.next_owner(connection, actor.user_id, tenant_id, user_id),
            )
            audit.insert_entry(connection, actor.user_id, f"tenant.set_role {role}", target=user_id)
            return next(each for each in tenants.list_members(connection, tenant_id) if each.user_id == user_id)

    def create(self, actor: Actor, name: str, *, organization_id: str = DEFAULT_ID) -> Tenant:
        """Create a tenant, which has no members, and return it.

        Raises:
            Forbidden: the actor is not the operator.
            InvalidInput: the name is invalid.
            NotFound: the organization does not exist.
            Conflict: the organization has a tenant of that name.
        """
        self._check_operator(actor)
        check_name("workspace", name)
        with self._context.database.write() as connection:
            tenant_id = tenants.insert_tenant(connection, organization_id, name)
            audit.insert_entry(connection, actor.user_id, "tenant.create", target=tenant_id)
            return self._record(actor, tenants.find_tenant(connection, tenant_id))

    def add_member(self, actor: Actor, tenant_id: str, username: str, role: Role = Role.VIEWER) -> TenantMember:
        """Make a user a member of a tenant and return the member.

        Args:
            actor: the operator.
            tenant_id: the tenant.
            username: the name or the e-mail address of the user.
            role: in the tenant.

        Raises:
            Forbidden: the actor is not the operator.
            NotFound: the tenant or the user does not exist.
            InvalidInput: the user is a member already, or the role does not exist.
        """
        self._check_operator(actor)
        role = checked_role(role)
        with self._context.database.write() as connection:
            tenants.find_tenant(connection, tenant_id)
            user = accounts.user_addressed(connection, username)
            if user is None:
                raise NotFound(f"no user {username!r}")
            memberships.join(connection, tenant_id, user.id, role, is_single=self._context.is_single)
            audit.insert_entry(connection, actor.user_id, f"tenant.add_member {role}", target=user.id)
            return next(each for each in tenants.list_members(connection, tenant_id) if each.user_id == user.id)

    def organizations(self, actor: Actor) -> list[Organization]:
        """Return the organizations with tenants of the actor, by name; the operator sees all.

        Raises:
            NotAuthenticated: nobody is logged in.
        """
        self._context.require_log_in(actor)
        with self._context.database.read() as connection:
            return tenants.list_organizations(connection, of_user=own_id(actor))

    def organization(self, actor: Actor, organization_id: str) -> Organization:
        """Return an organization with a tenant of the actor.

        Raises:
            NotFound: it does not exist, or the actor is no member of a tenant of it.
        """
        found = next((each for each in self.organizations(actor) if each.id == organization_id), None)
        if found is None:
            raise NotFound("Organization not found")
        return found

    def create_organization(self, actor: Actor, name: str) -> Organization:
        """Create an organization and return it.

        Raises:
            Forbidden: the actor is not the operator.
            InvalidInput: the name is invalid.
            Conflict: the name is taken.
        """
        self._check_operator(actor)
        check_name("organization", name)
        with self._context.database.write() as connection:
            organization_id = tenants.insert_organization(connection, name)
            audit.insert_entry(connection, actor.user_id, "organization.create", target=organization_id)
            return next(each for each in tenants.list_organizations(connection) if each.id == organization_id)

    def _check_operator(self, actor: Actor) -> None:
        self._context.require_log_in(actor)
        if actor.via is not Via.FILES:
            raise Forbidden("Only the operator makes organizations, workspaces and their members")

    def _record(self, actor: Actor, row: Any) -> Tenant:
        subject = TenantSubject(row.id)
        edits = bool(allowed(actor, Action.TENANT_EDIT_ROLES, subject))
        permissions = TenantPermissions(
            can_view=bool(allowed(actor, Action.TENANT_VIEW, subject)),
            can_manage_members=edits,
            can_edit_roles=edits,
            can_create_dataset=bool(allowed(actor, Action.TENANT_CREATE_DATASET, subject)),
        )
        return Tenant(
            id=row.id,
            organization_id=row.organization_id,
            name=row.name,
            created_at=row.created_at,
            updated_at=row.updated_at,
            permissions=permissions,
        )


def checked_role(role: str) -> Role:
    """Return a role by its name.

    Raises:
        InvalidInput: the role does not exist.
    """
    try:
        return Role(role)
    except ValueError:
        raise InvalidInput(f"a role is one of {', '.join(Role)}, not {role!r}") from None
