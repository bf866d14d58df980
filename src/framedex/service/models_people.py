"""Requests and answers about users, workspaces of users, and settings."""

from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import AfterValidator, BaseModel, Field, StringConstraints, model_validator

from framedex.access import Role
from framedex.hub.passwords import LONGEST, SHORTEST
from framedex.records import Organization, Tenant, TenantMember, User, UserSession


def _without_blanks(name: str) -> str:
    if any(character.isspace() for character in name):
        raise ValueError("a username has no blanks")
    return name


_Username = Annotated[str, StringConstraints(min_length=3, max_length=255), AfterValidator(_without_blanks)]
_Name = Annotated[str, StringConstraints(min_length=1, max_length=255)]
_Password = Annotated[str, StringConstraints(min_length=SHORTEST, max_length=LONGEST)]
_Address = Annotated[str, StringConstraints(min_length=1, max_length=320)]


class Invitation(BaseModel):
    """The e-mail address or the username of a registered account, and its role for a dataset."""

    grant_to_user_email: _Address
    role: Literal["viewer", "editor"] = "viewer"


class SharedWith(BaseModel):
    """The e-mail address or the username of a registered account."""

    user_email: _Address


class UserList(BaseModel):
    """A page of users, and the number of all that were found."""

    users: list[User]
    total: int


class NewUser(BaseModel):
    """A new user, and the role in the workspace."""

    username: _Username
    password: _Password
    first_name: _Name = Field(alias="firstName")
    last_name: _Name = Field(alias="lastName")
    enabled: bool = True
    workspace_role: Role = Role.VIEWER


class UserChange(BaseModel):
    """A new username, whether the user may log in, or both."""

    username: _Username | None = None
    enabled: bool | None = None

    @model_validator(mode="after")
    def _is_change(self) -> "UserChange":
        if self.username is None and self.enabled is None:
            raise ValueError("give username, enabled, or both")
        return self


class NewPassword(BaseModel):
    """A temporary password."""

    password: _Password


class RoleNames(BaseModel):
    """The names of all roles of a user that hold in all workspaces."""

    roles: list[str]


class SessionList(BaseModel):
    """The sessions of a user, and their number."""

    sessions: list[UserSession]
    total: int


class WorkspaceList(BaseModel):
    """The workspaces of the user."""

    workspaces: list[Tenant]


class MemberList(BaseModel):
    """The members of a workspace, and their number."""

    members: list[TenantMember]
    total: int


class RoleChange(BaseModel):
    """The next role of a member; without an id in the workspace that the user joined first."""

    role: Role
    workspace_id: UUID | None = None


class OrganizationList(BaseModel):
    """The organizations of the workspaces of the user."""

    organizations: list[Organization]


class SettingChange(BaseModel):
    """The name of a setting, and its next value or the text of it."""

    key: str = Field(max_length=200)
    value: Any


class SettingValue(BaseModel):
    """The value of a setting as text."""

    value: str


class SettingValues(BaseModel):
    """The values of all settings as text, by name."""

    settings: dict[str, str]
