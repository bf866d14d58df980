"""Actors and the subjects of their actions."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

LOCAL_USER_ID = "00000000-0000-0000-0000-000000000000"
"""The id of the user who acts while authentication is off."""


class Role(StrEnum):
    """A role in a tenant; a grant of a dataset is one of the first two."""

    VIEWER = "viewer"
    EDITOR = "editor"
    ADMIN = "admin"


class RealmRole(StrEnum):
    """A role that holds in all tenants. The last two grant nothing by themselves."""

    MANAGE_USERS = "manage-users"
    VIEW_USERS = "view-users"
    QUERY_USERS = "query-users"
    QUERY_GROUPS = "query-groups"


class Via(StrEnum):
    """The way in which an actor was authenticated."""

    SESSION = "session"
    TOKEN = "token"  # noqa: S105 - the name of a way
    DISABLED = "disabled"
    FILES = "files"


_NO_ROLES: Mapping[str, Role] = MappingProxyType({})


@dataclass(frozen=True)
class Actor:
    """The user on whose behalf something is done.

    Attributes:
        user_id: the id of the user; None if nobody is logged in.
        name: the e-mail address, or else the username, which records of what the user does contain.
        roles: roles in tenants, by the id of the tenant.
        realm_roles: roles that hold in all tenants.
        via: the way in which the actor was authenticated.
        password_is_temporary: whether the user must choose a password before anything else.
        session_id: the public id of the session; None for every other way.
    """

    user_id: str | None
    name: str = ""
    roles: Mapping[str, Role] = field(default_factory=lambda: _NO_ROLES)
    realm_roles: frozenset[str] = frozenset()
    via: Via = Via.SESSION
    password_is_temporary: bool = False
    session_id: str | None = None

    @property
    def is_local(self) -> bool:
        """True for the local user, who acts while authentication is off."""
        return self.user_id == LOCAL_USER_ID and self.via is Via.DISABLED


ANONYMOUS = Actor(None)
"""Nobody: an actor who is not logged in."""


def local_actor(name: str) -> Actor:
    """Return the local user, under the given name in records."""
    return Actor(LOCAL_USER_ID, name, via=Via.DISABLED)


def operator_actor(name: str) -> Actor:
    """Return the operator: who has the files of the workspace may do everything, and does it under a name."""
    return Actor(LOCAL_USER_ID, name, via=Via.FILES)


@dataclass(frozen=True)
class DatasetSubject:
    """A dataset, or something in it: a saved view, a task, an export.

    Attributes:
        tenant_id: the tenant that the dataset belongs to.
        owner_id: the user who owns the dataset; None for the admin of the tenant.
        grant: the role that the actor was granted for this dataset; None for none.
        is_own: whether the actor made the thing in the dataset that the action is about.
    """

    tenant_id: str
    owner_id: str | None = None
    grant: Role | None = None
    is_own: bool = False


@dataclass(frozen=True)
class TenantSubject:
    """A tenant.

    Attributes:
        tenant_id: the tenant.
        ingest_path_role: the least role with which members create datasets from folders of the server.
    """

    tenant_id: str
    ingest_path_role: Role = Role.ADMIN


@dataclass(frozen=True)
class UserSubject:
    """A user account, or one that is to be created.

    Attributes:
        roles: roles in tenants, by the id of the tenant.
    """

    roles: Mapping[str, Role] = field(default_factory=lambda: _NO_ROLES)


Subject = DatasetSubject | TenantSubject | UserSubject | None
"""What an action is about: None for the actor's own account, for all users, and for the settings of the service."""
