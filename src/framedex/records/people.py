"""Records of users, their sessions, tenants and members. Field names in JSON are those of the interface."""

from datetime import datetime

from pydantic import ConfigDict, Field

from framedex.records.base import Record


class _Named(Record):
    """Base class of records with names that are written otherwise in JSON."""

    model_config = ConfigDict(validate_by_name=True, validate_by_alias=True, serialize_by_alias=True)


class User(_Named):
    """A user account. Times are in milliseconds since 1970, in UTC; ``roles`` are those that hold in all tenants."""

    id: str
    username: str
    first_name: str | None = Field(alias="firstName")
    last_name: str | None = Field(alias="lastName")
    enabled: bool
    created_timestamp: int | None = Field(alias="createdTimestamp")
    roles: list[str]
    last_access: int | None = Field(alias="lastAccess")


class Profile(_Named):
    """The own account of an actor.

    ``workspace_role`` is the role in the primary tenant, ``workspace_id``; both are None for no member. ``auth`` is how
    the actor was authenticated: ``session``, ``token`` or ``disabled``. ``read_only`` says that nobody can change
    anything, because the workspace was opened so.
    """

    user_id: str
    username: str
    email: str | None
    first_name: str | None = Field(alias="firstName")
    last_name: str | None = Field(alias="lastName")
    roles: list[str]
    workspace_role: str | None
    workspace_id: str | None
    auth: str
    must_change_password: bool
    read_only: bool = False


class UserSession(_Named):
    """A log-in of a user that has not ended. Times are in milliseconds since 1970, in UTC."""

    id: str
    username: str
    ip_address: str = Field(alias="ipAddress")
    start: int
    last_access: int = Field(alias="lastAccess")
    clients: dict[str, str] = Field(default_factory=dict)


class OwnSession(Record):
    """A log-in of a user that has not ended, as the user sees it. Times are in UTC.

    ``ip`` is the address of the client, ``user_agent`` the name of its program, both as of the log-in.
    """

    id: str
    ip: str
    user_agent: str
    start: datetime
    last_access: datetime
    is_current: bool = False


class TenantPermissions(Record):
    """The permissions of a user in a tenant."""

    can_view: bool
    can_manage_members: bool
    can_edit_roles: bool
    can_create_dataset: bool


class Tenant(Record):
    """A tenant, which the interface calls a workspace: members with roles, and the datasets that belong to it."""

    id: str
    organization_id: str
    name: str
    created_at: datetime
    updated_at: datetime | None
    permissions: TenantPermissions | None


class TenantAccess(Record):
    """The access of a user to a tenant: ``role`` is None for users who are no members."""

    can_access: bool
    can_manage: bool
    role: str | None


class TenantMember(_Named):
    """A member of a tenant. ``role`` is ``admin``, ``editor`` or ``viewer``."""

    user_id: str
    username: str
    email: str | None
    first_name: str | None = Field(alias="firstName")
    last_name: str | None = Field(alias="lastName")
    role: str
    created_at: datetime


class Organization(Record):
    """An organization, which has tenants."""

    id: str
    name: str
    created_at: datetime
    updated_at: datetime | None


class DatasetMember(Record):
    """A user with whom a dataset is shared. ``role`` is ``owner``, ``editor`` or ``viewer``."""

    email: str
    role: str


class ApiCredentials(Record):
    """The API key of a user. ``api_secret`` is empty unless the key is new."""

    api_key: str
    api_secret: str
    message: str


class AuditEntry(Record):
    """An action of a user, with its outcome: ``done`` or ``refused``. ``at`` is in UTC.

    ``user_id`` is None for nobody, ``username`` also for a user who was deleted. ``target`` is the id of a user, or a
    text that says what was changed.
    """

    at: datetime
    user_id: str | None
    username: str | None
    action: str
    dataset_id: str | None
    target: str | None
    ip: str | None
    outcome: str


class AuditPage(Record):
    """A page of the audit, the newest entry first, and the number of all entries that were found."""

    entries: list[AuditEntry]
    total: int
