"""Management of users: accounts, passwords, sessions and roles."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import Query

from framedex.access import Action, Actor
from framedex.hub.admin_settings import SERVICE
from framedex.records import User
from framedex.service.actions import needs, routes
from framedex.service.deployment import without_management
from framedex.service.models_people import NewPassword, NewUser, RoleNames, SessionList, UserChange, UserList
from framedex.service.parameters import CurrentActor, Service, UserId
from framedex.service.routes.account import Message
from framedex.service.state import ServiceState

router = routes("users", prefix="/api/v1/keycloak/admin/users")


@router.get("")
@needs(Action.USERS_READ, unless=without_management)
def page_of_users(
    service: Service,
    actor: CurrentActor,
    search: Annotated[str, Query(max_length=1000)] = "",
    max_results: Annotated[int, Query(ge=1, le=1000)] = 100,
    first: Annotated[int, Query(ge=0, le=2**31)] = 0,
) -> UserList:
    """Return a page of the users, by username, and the number of all that the search finds."""
    users, total = service.hub.users.page(actor, search=search, limit=max_results, offset=first)
    return UserList(users=_shown(service, actor, users), total=total)


@router.get("/{user_id}")
@needs(Action.USERS_READ, unless=without_management)
def get_user(service: Service, actor: CurrentActor, user_id: UserId) -> User:
    """Return a user."""
    return _shown(service, actor, [service.hub.users.get(actor, user_id)])[0]


@router.post("", status_code=201)
@needs(Action.USERS_WRITE, unless=without_management, invalid_status=400)
def post_user(service: Service, actor: CurrentActor, body: NewUser) -> User:
    """Create a user, who is a member of the workspace that the caller joined first."""
    created = service.hub.users.create(
        actor,
        body.username,
        body.password,
        first_name=body.first_name,
        last_name=body.last_name,
        enabled=body.enabled,
        role=body.workspace_role,
        tenant_id=service.hub.tenants.primary(actor) or SERVICE.tenant_id,
    )
    return _shown(service, actor, [created])[0]


@router.patch("/{user_id}")
@needs(Action.USERS_WRITE, unless=without_management, invalid_status=400)
def patch_user(service: Service, actor: CurrentActor, user_id: UserId, body: UserChange) -> User:
    """Rename a user, or let the user log in or not any more."""
    changed = service.hub.users.change(actor, user_id, username=body.username, enabled=body.enabled)
    return _shown(service, actor, [changed])[0]


@router.delete("/{user_id}")
@needs(Action.USERS_WRITE, unless=without_management, invalid_status=400)
def remove_user(service: Service, actor: CurrentActor, user_id: UserId) -> Message:
    """Delete a user, whose datasets go to an admin."""
    service.hub.users.delete(actor, user_id)
    return Message(message="User deleted successfully")


@router.post("/{user_id}/reset-password")
@needs(Action.USERS_WRITE, unless=without_management, invalid_status=400)
def post_user_password(service: Service, actor: CurrentActor, user_id: UserId, body: NewPassword) -> Message:
    """Set a temporary password, which the user must change at the next log-in; all sessions of the user end."""
    service.hub.users.reset_password(actor, user_id, body.password)
    return Message(message="Password reset successfully")


@router.post("/{user_id}/logout")
@needs(Action.USERS_WRITE, unless=without_management, invalid_status=400)
def log_user_out(service: Service, actor: CurrentActor, user_id: UserId) -> Message:
    """End all sessions of a user."""
    service.hub.users.log_out(actor, user_id)
    return Message(message="User logged out successfully")


@router.get("/{user_id}/sessions")
@needs(Action.USERS_READ, unless=without_management)
def sessions_of_user(service: Service, actor: CurrentActor, user_id: UserId) -> SessionList:
    """Return the sessions of a user that have not ended, the newest first."""
    sessions = list(service.hub.users.sessions(actor, user_id))
    return SessionList(sessions=sessions, total=len(sessions))


@router.put("/{user_id}/roles")
@needs(Action.USERS_WRITE, unless=without_management, invalid_status=400)
def put_user_roles(service: Service, actor: CurrentActor, user_id: UserId, body: RoleNames) -> User:
    """Replace the roles of a user that hold in all workspaces; unknown names are ignored."""
    return _shown(service, actor, [service.hub.users.set_roles(actor, user_id, body.roles)])[0]


def _shown(service: ServiceState, actor: Actor, users: Sequence[User]) -> list[User]:
    """Return users with the ids of their accounts at the identity provider, where they have one there."""
    subjects = service.hub.identities.of_users(actor, [user.id for user in users])
    return [user.model_copy(update={"id": subjects.get(user.id, user.id)}) for user in users]
