"""Commands for users, and for the workspaces and organizations that they belong to."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from framedex.cli.options import JsonOption, WorkspaceOption, existing_folder, open_workspace
from framedex.cli.output import print_json, print_table, say
from framedex.errors import InvalidInput, WorkspaceError

if TYPE_CHECKING:
    from framedex.access import Actor
    from framedex.hub import Hub
    from framedex.records import Tenant, User

users = typer.Typer(help="Users of a workspace that a service shares: accounts and their passwords.")
workspaces = typer.Typer(
    help="Workspaces of users: who belongs to one, with which role. They are all in one folder, that of --workspace."
)
organizations = typer.Typer(help="Organizations, which group the workspaces of users.")

_NAMED = "Name or id of a workspace of users (see: framedex workspaces list)."
RoleOption = Annotated[str, typer.Option(help="Role in the workspace: viewer, editor or admin.")]
PasswordOption = Annotated[
    bool, typer.Option("--password-stdin", help="Read the password from the first line of the standard input.")
]
UserArgument = Annotated[str, typer.Argument(metavar="USER", help="Username, e-mail address or id.")]
_PAGE = 1000


@contextmanager
def open_hub(workspace: Path | None, *, create: bool = False) -> Iterator[tuple["Hub", "Actor"]]:
    """Yield the hub of a workspace and the operator: who has the files may do everything.

    Args:
        workspace: the folder of the option.
        create: whether users may be added to a workspace that has none yet.

    Raises:
        WorkspaceError: there is no workspace, or it has no users.
    """
    from framedex.access import operator_actor
    from framedex.hub import Hub
    from framedex.settings import load_settings
    from framedex.storage.layout import SERVICE_DB_NAME

    folder = existing_folder(workspace)
    if not create and not (folder / SERVICE_DB_NAME).exists():
        raise WorkspaceError(f"{folder} has no users; `framedex users create --admin NAME` creates the first")
    with open_workspace(workspace) as opened, Hub(opened) as hub:
        yield hub, operator_actor(load_settings().user)


def read_password(question: str, *, from_stdin: bool) -> str:
    """Return a password that is typed twice without being shown, or the first line of the standard input.

    Raises:
        InvalidInput: the standard input is empty, or there is no terminal to ask on.
    """
    if from_stdin:
        if not (password := sys.stdin.readline().rstrip("\r\n")):
            raise InvalidInput("--password-stdin needs a password in the first line of the standard input")
        return password
    if not sys.stdin.isatty():
        raise InvalidInput("there is no terminal to ask for the password on: give --password-stdin")
    answer: str = typer.prompt(question, hide_input=True, confirmation_prompt="The same again", err=True)
    return answer


@users.command("create")
def create_user(
    name: Annotated[str, typer.Argument(help="Username: 3 to 255 characters without blanks.")],
    admin: Annotated[
        bool, typer.Option("--admin", help="The same as --role admin. The former admin becomes an editor.")
    ] = False,
    role: RoleOption = "viewer",
    email: Annotated[str | None, typer.Option(help="E-mail address, for sharing and in records.")] = None,
    first_name: Annotated[str | None, typer.Option(help="First name.")] = None,
    last_name: Annotated[str | None, typer.Option(help="Last name.")] = None,
    tenant: Annotated[str | None, typer.Option("--in-workspace", metavar="NAME", help=_NAMED)] = None,
    from_stdin: PasswordOption = False,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Create a user. The password is asked for twice, and never an argument."""
    from framedex.hub.tenants import checked_role
    from framedex.hub.users import check_username

    if admin and role not in ("viewer", "admin"):
        raise InvalidInput(f"--admin and --role {role} contradict each other; give one of them")
    check_username(name)
    chosen = checked_role("admin" if admin else role)
    with _hub_for_users(workspace) as (hub, operator):
        tenant_id = hub.tenants.find(operator, tenant).id if tenant is not None else hub.tenants.get(operator).id
        before = _roles(hub, operator, tenant_id)
        user = hub.users.create(
            operator,
            name,
            read_password(f"Password of {name}", from_stdin=from_stdin),
            first_name=first_name,
            last_name=last_name,
            email=email,
            role=chosen,
            tenant_id=tenant_id,
        )
        if as_json:
            print_json(user)
            return
        after = _roles(hub, operator, tenant_id)
        say(f"created {user.username}, {after[user.username]} of {hub.tenants.get(operator, tenant_id).name!r}")
        for other, former in before.items():
            if after.get(other) != former:
                say(f"{other} is now {after.get(other)} instead of {former}, and logged out")


@contextmanager
def _hub_for_users(workspace: Path | None) -> Iterator[tuple["Hub", "Actor"]]:
    """Yield the hub of a workspace, which is created with the first user."""
    with open_workspace(workspace, create=True):
        pass
    with open_hub(workspace, create=True) as opened:
        yield opened


def _roles(hub: "Hub", operator: "Actor", tenant_id: str) -> dict[str, str]:
    return {member.username: member.role for member in hub.tenants.members(operator, tenant_id)}


@users.command("list")
def list_users(
    search: Annotated[str, typer.Option(help="Text within the username, the first or the last name.")] = "",
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the users, by username."""
    with open_hub(workspace) as (hub, operator):
        found: list[User] = []
        while True:
            page, total = hub.users.page(operator, search=search, limit=_PAGE, offset=len(found))
            found += page
            if not page or len(found) >= total:
                break
        if as_json:
            print_json(found)
            return
        tenants = hub.tenants.visible(operator)
        roles = {tenant.name: _roles(hub, operator, tenant.id) for tenant in tenants}
        rows = [(*_row(user, roles), user.id) for user in found]
        print_table(("user", "name", "log-in", "workspaces", "last access (UTC)", "id"), rows)


def _row(user: "User", roles: dict[str, dict[str, str]]) -> tuple[Any, ...]:
    places = [f"{tenant}: {members[user.username]}" for tenant, members in roles.items() if user.username in members]
    return (
        user.username,
        " ".join(part for part in (user.first_name, user.last_name) if part),
        "yes" if user.enabled else "no",
        ", ".join(places),
        "" if user.last_access is None else f"{datetime.fromtimestamp(user.last_access / 1000, UTC):%Y-%m-%d %H:%M}",
    )


@users.command("reset-password")
def reset_password(
    name: UserArgument,
    from_stdin: PasswordOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Set a temporary password, which the user must change at the next log-in; all sessions of the user end."""
    with open_hub(workspace) as (hub, operator):
        user = hub.users.find(operator, name)
        question = f"Temporary password of {user.username}"
        hub.users.reset_password(operator, user.id, read_password(question, from_stdin=from_stdin))
        say(f"{user.username} is logged out, and has to choose a password at the next log-in")


@workspaces.command("create")
def create_workspace(
    name: Annotated[str, typer.Argument(help="Name of the workspace of users, unique in its organization.")],
    organization: Annotated[str | None, typer.Option(help="Name or id of an organization. Default: the first.")] = None,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Create a workspace of users, without members."""
    with open_hub(workspace, create=True) as (hub, operator):
        options = {} if organization is None else {"organization_id": _organization(hub, operator, organization)}
        created = hub.tenants.create(operator, name, **options)
        if as_json:
            print_json(created)
        else:
            say(f"created {created.name!r}, id {created.id}; `framedex workspaces add-member` adds users")


def _organization(hub: "Hub", operator: "Actor", name: str) -> str:
    for each in hub.tenants.organizations(operator):
        if name in (each.id, each.name):
            return each.id
    raise InvalidInput(f"no organization {name!r}; `framedex organizations list` lists them")


@workspaces.command("add-member")
def add_member(
    tenant: Annotated[str, typer.Argument(metavar="WORKSPACE", help=_NAMED)],
    user: UserArgument,
    role: RoleOption = "viewer",
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make a user a member of a workspace of users."""
    from framedex.hub.tenants import checked_role

    with open_hub(workspace) as (hub, operator):
        found = hub.tenants.find(operator, tenant)
        username = hub.users.find(operator, user).username
        before = _roles(hub, operator, found.id)
        member = hub.tenants.add_member(operator, found.id, username, checked_role(role))
        if as_json:
            print_json(member)
            return
        say(f"{member.username} is {member.role} of {found.name!r}")
        for other, now in _roles(hub, operator, found.id).items():
            if before.get(other, now) != now:
                say(f"{other} is now {now} instead of {before[other]}, and logged out")


@workspaces.command("members")
def list_members(
    tenant: Annotated[str, typer.Argument(metavar="WORKSPACE", help=_NAMED)],
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the members of a workspace of users, by username."""
    with open_hub(workspace) as (hub, operator):
        members = hub.tenants.members(operator, hub.tenants.find(operator, tenant).id)
    if as_json:
        print_json(members)
    else:
        print_table(("user", "role", "e-mail", "id"), [(m.username, m.role, m.email or "", m.user_id) for m in members])


@workspaces.command("set-role")
def set_role(
    tenant: Annotated[str, typer.Argument(metavar="WORKSPACE", help=_NAMED)],
    user: UserArgument,
    role: Annotated[str, typer.Argument(help="Role in the workspace: viewer, editor or admin.")],
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Change the role of a member; a new admin takes the place of the former."""
    from framedex.hub.tenants import checked_role

    with open_hub(workspace) as (hub, operator):
        found = hub.tenants.find(operator, tenant)
        user_id = hub.users.find(operator, user).id
        before = _roles(hub, operator, found.id)
        member = hub.tenants.set_role(operator, user_id, checked_role(role), tenant_id=found.id)
        if as_json:
            print_json(member)
            return
        say(f"{member.username} is {member.role} of {found.name!r}")
        for other, now in _roles(hub, operator, found.id).items():
            if other != member.username and before[other] != now:
                say(f"{other} is now {now} instead of {before[other]}, and logged out")


@workspaces.command("list")
def list_workspaces(workspace: WorkspaceOption = None, as_json: JsonOption = False) -> None:
    """List the workspaces of users, the oldest first."""
    with open_hub(workspace) as (hub, operator):
        tenants = hub.tenants.visible(operator)
        if as_json:
            print_json(tenants)
            return
        names = {each.id: each.name for each in hub.tenants.organizations(operator)}
        rows = [(*_counts(hub, operator, tenant), names[tenant.organization_id], tenant.id) for tenant in tenants]
        print_table(("workspace", "members", "admins", "organization", "id"), rows)


def _counts(hub: "Hub", operator: "Actor", tenant: "Tenant") -> tuple[str, int, str]:
    roles = _roles(hub, operator, tenant.id)
    return tenant.name, len(roles), ", ".join(name for name, role in roles.items() if role == "admin")


@organizations.command("create")
def create_organization(
    name: Annotated[str, typer.Argument(help="Name of the organization.")],
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Create an organization, without workspaces."""
    with open_hub(workspace, create=True) as (hub, operator):
        created = hub.tenants.create_organization(operator, name)
        if as_json:
            print_json(created)
        else:
            say(f"created {created.name!r}; `framedex workspaces create NAME --organization` adds workspaces to it")


@organizations.command("list")
def list_organizations(workspace: WorkspaceOption = None, as_json: JsonOption = False) -> None:
    """List the organizations, by name."""
    with open_hub(workspace) as (hub, operator):
        found = hub.tenants.organizations(operator)
        if as_json:
            print_json(found)
            return
        print_table(("organization", "id"), [(each.name, each.id) for each in found])
