"""Workspaces of users and organizations: who belongs to one, with which role."""

from uuid import UUID

from framedex.access import Action
from framedex.records import Organization, Tenant, TenantAccess, TenantMember
from framedex.service.actions import needs, routes
from framedex.service.deployment import without_management
from framedex.service.models_people import MemberList, OrganizationList, RoleChange, WorkspaceList
from framedex.service.parameters import CurrentActor, Service

router = routes("workspaces")


@router.get("/workspaces")
@needs(Action.OWN_ACCOUNT, unless=without_management)
def workspaces_of_user(service: Service, actor: CurrentActor, organization_id: UUID | None = None) -> WorkspaceList:
    """Return the workspaces that the user belongs to, the oldest first."""
    organization = None if organization_id is None else str(organization_id)
    return WorkspaceList(workspaces=service.hub.tenants.visible(actor, organization_id=organization))


@router.get("/workspaces/{workspace_id}")
@needs(Action.TENANT_VIEW, unless=without_management)
def get_workspace(service: Service, actor: CurrentActor, workspace_id: str) -> Tenant:
    """Return a workspace of the user."""
    return service.hub.tenants.get(actor, workspace_id.lower())


@router.get("/workspace/members")
@needs(Action.TENANT_VIEW, unless=without_management)
def members_of_workspace(service: Service, actor: CurrentActor, workspace_id: UUID | None = None) -> MemberList:
    """Return the members of a workspace, by default of the one that the user joined first."""
    tenants = service.hub.tenants
    members = tenants.members(actor, str(workspace_id or tenants.primary(actor)))
    return MemberList(members=members, total=len(members))


@router.put("/workspace/members/{member_user_id}/role")
@needs(Action.TENANT_EDIT_ROLES, unless=without_management, invalid_status=400)
def put_member_role(service: Service, actor: CurrentActor, member_user_id: str, body: RoleChange) -> TenantMember:
    """Change the role of a member, with all that follows from it."""
    tenants = service.hub.tenants
    tenant_id = str(body.workspace_id or tenants.primary(actor))
    return tenants.set_role(actor, member_user_id.lower(), body.role, tenant_id=tenant_id)


@router.get("/workspace/settings/access")
@needs(Action.OWN_ACCOUNT, unless=without_management)
def get_workspace_access(service: Service, actor: CurrentActor, workspace_id: UUID | None = None) -> TenantAccess:
    """Return whether the user sees and manages a workspace, and the role there."""
    return service.hub.tenants.access(actor, None if workspace_id is None else str(workspace_id))


@router.get("/organizations")
@needs(Action.OWN_ACCOUNT, unless=without_management)
def organizations_of_user(service: Service, actor: CurrentActor) -> OrganizationList:
    """Return the organizations of the workspaces that the user belongs to, by name."""
    return OrganizationList(organizations=service.hub.tenants.organizations(actor))


@router.get("/organizations/{organization_id}")
@needs(Action.OWN_ACCOUNT, unless=without_management)
def get_organization(service: Service, actor: CurrentActor, organization_id: str) -> Organization:
    """Return an organization of a workspace that the user belongs to."""
    return service.hub.tenants.organization(actor, organization_id.lower())
