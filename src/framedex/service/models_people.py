"""Requests and answers about users, workspaces of users, and settings."""

from typing import Any
from uuid import UUID

from pydantic import BaseModel, Field

from framedex.access import Role
from framedex.records import Organization, Tenant, TenantMember


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
