"""Users, workspaces of users and settings of a service, with the names of :class:`framedex.hub.Hub`."""

from collections.abc import Sequence
from typing import Any

from framedex.access import Role
from framedex.api.record_list import RecordList
from framedex.client import calls
from framedex.client.connection import Connection
from framedex.errors import NotFound
from framedex.records import Organization, Tenant, TenantAccess, TenantMember, User, UserSession


class ClientUsers:
    """The user accounts of a service; who may not see or manage them gets Forbidden.

    A user is named by the ``id`` of the record, or by the service's own id.

    Args:
        connection: to the service.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def create(
        self,
        username: str,
        password: str,
        *,
        first_name: str,
        last_name: str,
        enabled: bool = True,
        role: Role | str = Role.VIEWER,
    ) -> User:
        """Create a user, who is a member of the workspace that the caller joined first, and return the user.

        Args:
            username: 3 to 255 characters without blanks; unique, whatever the case.
            password: 8 to 1,024 characters.
            first_name: up to 255 characters.
            last_name: up to 255 characters.
            enabled: whether the user may log in.
            role: in the workspace; a new admin takes the place of the former.

        Raises:
            Forbidden: the caller may not manage users, or the service has no management of users.
            InvalidInput: a value is invalid, or the name is taken.
        """
        body: dict[str, Any] = {"username": username, "password": password, "enabled": enabled}
        body |= {"firstName": first_name, "lastName": last_name, "workspace_role": str(role)}
        return User.model_validate(self._connection.json(calls.CREATE_USER, body=body))

    def page(self, *, search: str = "", limit: int = 100, offset: int = 0) -> tuple[list[User], int]:
        """Return a page of the users, by username, and the number of all matches.

        Args:
            search: text within the username, the first or the last name, whatever the case.
            limit: of the page, 1 to 1,000.
            offset: of the page.
        """
        query = {"search": search, "max_results": limit, "first": offset}
        answer = self._connection.json(calls.USERS, query=query)
        return [User.model_validate(each) for each in answer["users"]], answer["total"]

    def get(self, user_id: str) -> User:
        """Return a user.

        Raises:
            NotFound: there is no such user.
        """
        return User.model_validate(self._connection.json(calls.USER, user_id=user_id))

    def find(self, name: str) -> User:
        """Return the user with a username, whatever the case, or an id.

        Raises:
            NotFound: there is no such user.
        """
        offset, total = 0, 1
        while offset < total:
            found, total = self.page(search=name, limit=1000, offset=offset)
            for user in found:
                if user.username.casefold() == name.casefold():
                    return user
            offset += max(len(found), 1)
        return self.get(name)

    def change(self, user_id: str, *, username: str | None = None, enabled: bool | None = None) -> User:
        """Rename a user, or let the user log in or not any more; return the user.

        Raises:
            NotFound: there is no such user.
            InvalidInput: nothing is to change, the name is invalid or taken, or it is the caller or the last admin who
                would be disabled.
        """
        changes = {"username": username, "enabled": enabled}
        body = {name: value for name, value in changes.items() if value is not None}
        return User.model_validate(self._connection.json(calls.CHANGE_USER, body=body, user_id=user_id))

    def delete(self, user_id: str) -> None:
        """Delete a user, whose datasets go to the caller if that is an admin, else to the admin of their workspace.

        Raises:
            NotFound: there is no such user.
            InvalidInput: it is the caller, or the last admin.
        """
        self._connection.json(calls.DELETE_USER, user_id=user_id)

    def reset_password(self, user_id: str, password: str) -> None:
        """Set a temporary password, which the user must change at the next log-in; all sessions of the user end.

        Raises:
            NotFound: there is no such user.
            InvalidInput: the password is too short or too long, or the account is one of an identity provider.
        """
        self._connection.json(calls.RESET_PASSWORD, body={"password": password}, user_id=user_id)

    def log_out(self, user_id: str) -> None:
        """End all sessions of a user; API keys stay.

        Raises:
            NotFound: there is no such user.
        """
        self._connection.json(calls.LOG_USER_OUT, user_id=user_id)

    def sessions(self, user_id: str) -> Sequence[UserSession]:
        """Return the sessions of a user that have not ended, the newest first.

        Raises:
            NotFound: there is no such user.
        """
        answer = self._connection.json(calls.USER_SESSIONS, user_id=user_id)
        return [UserSession.model_validate(each) for each in answer["sessions"]]

    def set_roles(self, user_id: str, roles: Sequence[str]) -> User:
        """Replace the roles of a user that hold in all workspaces; unknown ones are ignored. Return the user.

        Raises:
            NotFound: there is no such user.
            InvalidInput: the caller would lose the right to manage users.
        """
        body = {"roles": list(roles)}
        return User.model_validate(self._connection.json(calls.SET_USER_ROLES, body=body, user_id=user_id))


class ClientTenants:
    """The workspaces of users, which Python calls tenants, and the organizations that the caller belongs to.

    Args:
        connection: to the service.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def visible(self, *, organization_id: str | None = None) -> list[Tenant]:
        """Return the tenants of the caller, the oldest first; of one organization if its id is given."""
        answer = self._connection.json(calls.TENANTS, query={"organization_id": organization_id})
        return RecordList(Tenant.model_validate(each) for each in answer["workspaces"])

    def get(self, tenant_id: str) -> Tenant:
        """Return a tenant.

        Raises:
            NotFound: it does not exist, or the caller is no member.
        """
        return Tenant.model_validate(self._connection.json(calls.TENANT, workspace_id=tenant_id))

    def find(self, name: str) -> Tenant:
        """Return the first tenant of the caller with a name or an id.

        Raises:
            NotFound: there is no such tenant, or the caller is no member.
        """
        found = next((each for each in self.visible() if name in (each.id, each.name)), None)
        if found is None:
            raise NotFound(f"no workspace {name!r}")
        return found

    def members(self, tenant_id: str | None = None) -> list[TenantMember]:
        """Return the members of a tenant, by username; without an id of the one that the caller joined first.

        Raises:
            NotFound: it does not exist, or the caller is no member.
        """
        answer = self._connection.json(calls.TENANT_MEMBERS, query={"workspace_id": tenant_id})
        return RecordList(TenantMember.model_validate(each) for each in answer["members"])

    def access(self, tenant_id: str | None = None) -> TenantAccess:
        """Return what the caller may do in a tenant; without an id in the one that the caller joined first."""
        return TenantAccess.model_validate(
            self._connection.json(calls.TENANT_ACCESS, query={"workspace_id": tenant_id})
        )

    def set_role(self, user_id: str, role: Role | str, *, tenant_id: str | None = None) -> TenantMember:
        """Set the role of a member, with all that follows from it, and return the member.

        Args:
            user_id: the id of the user, as members have it.
            role: viewer, editor or admin.
            tenant_id: the tenant; None for the one that the caller joined first.

        Raises:
            NotFound: the tenant is not the caller's, or the user is no member.
            Forbidden: the caller is no admin.
            InvalidInput: it is the caller's own role, or the role does not exist.
        """
        body = {"role": str(role), "workspace_id": tenant_id}
        answer = self._connection.json(calls.SET_MEMBER_ROLE, body=body, member_user_id=user_id)
        return TenantMember.model_validate(answer)

    def organizations(self) -> list[Organization]:
        """Return the organizations with tenants of the caller, by name."""
        answer = self._connection.json(calls.ORGANIZATIONS)
        return RecordList(Organization.model_validate(each) for each in answer["organizations"])

    def organization(self, organization_id: str) -> Organization:
        """Return an organization with a tenant of the caller.

        Raises:
            NotFound: it does not exist, or the caller is no member of a tenant of it.
        """
        return Organization.model_validate(self._connection.json(calls.ORGANIZATION, organization_id=organization_id))


class ClientAdminSettings:
    """The settings of a service that administrators see, some of which they change; others get Forbidden.

    Args:
        connection: to the service.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def values(self) -> dict[str, str]:
        """Return the present values as text, by key."""
        return dict(self._connection.json(calls.ADMIN_SETTINGS)["settings"])

    def get(self, key: str) -> str:
        """Return the present value of a setting as text.

        Raises:
            InvalidInput: there is no such setting.
        """
        return str(self._connection.json(calls.ADMIN_SETTINGS, query={"key": key})["value"])

    def change(self, key: str, value: Any) -> str:
        """Change a setting at once, store its value, and return it as text.

        Raises:
            InvalidInput: there is no such setting, only the environment changes it, or the value does not fit.
        """
        answer = self._connection.json(calls.CHANGE_ADMIN_SETTING, body={"key": key, "value": value})
        return str(answer["value"])
