"""Commands for one user: the account, its sessions and its roles."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from framedex.cli.options import JsonOption, WorkspaceOption, YesOption, confirm
from framedex.cli.output import print_json, print_table, say
from framedex.cli.people import UserArgument, open_hub, users
from framedex.core.counts import counted
from framedex.errors import InvalidInput

if TYPE_CHECKING:
    from framedex.records import User

__all__ = ["users"]

RolesArgument = Annotated[
    list[str] | None, typer.Argument(help="All roles of the user: manage-users, view-users, query-users, query-groups.")
]


def _time(milliseconds: int | None) -> str:
    return "" if milliseconds is None else f"{datetime.fromtimestamp(milliseconds / 1000, UTC):%Y-%m-%d %H:%M}"


@users.command("show")
def show_user(name: UserArgument, workspace: WorkspaceOption = None, as_json: JsonOption = False) -> None:
    """Show a user."""
    with open_hub(workspace) as (hub, operator):
        user = hub.users.find(operator, name)
        if as_json:
            print_json(user)
            return
        places = [
            f"{tenant.name}: {member.role}"
            for tenant in hub.tenants.visible(operator)
            for member in hub.tenants.members(operator, tenant.id)
            if member.user_id == user.id
        ]
    rows = (
        ("user", user.username),
        ("name", " ".join(part for part in (user.first_name, user.last_name) if part)),
        ("log-in", "yes" if user.enabled else "no"),
        ("workspaces", ", ".join(places)),
        ("roles", ", ".join(user.roles)),
        ("created (UTC)", _time(user.created_timestamp)),
        ("last access (UTC)", _time(user.last_access)),
        ("id", user.id),
    )
    print_table(("property", "value"), rows)


@users.command("enable")
def enable_user(name: UserArgument, workspace: WorkspaceOption = None) -> None:
    """Let a user log in again."""
    with open_hub(workspace) as (hub, operator):
        user = hub.users.change(operator, hub.users.find(operator, name).id, enabled=True)
        say(f"{user.username} can log in")


@users.command("disable")
def disable_user(name: UserArgument, workspace: WorkspaceOption = None) -> None:
    """End all sessions of a user, who cannot log in any more; API keys stop, too."""
    with open_hub(workspace) as (hub, operator):
        user = hub.users.change(operator, hub.users.find(operator, name).id, enabled=False)
        say(f"{user.username} is logged out and cannot log in")


@users.command("rename")
def rename_user(
    name: UserArgument,
    new_name: Annotated[str, typer.Argument(help="Next username: 3 to 255 characters without blanks.")],
    workspace: WorkspaceOption = None,
) -> None:
    """Rename a user."""
    with open_hub(workspace) as (hub, operator):
        user = hub.users.find(operator, name)
        renamed = hub.users.change(operator, user.id, username=new_name)
        say(f"{user.username} is now {renamed.username}")


@users.command("delete")
def delete_user(name: UserArgument, yes: YesOption = False, workspace: WorkspaceOption = None) -> None:
    """Delete a user; the datasets go to the admin of their workspace of users."""
    with open_hub(workspace) as (hub, operator):
        user = hub.users.find(operator, name)
        confirm(f"Delete the user {user.username!r}?", yes=yes)
        hub.users.delete(operator, user.id)
        say(f"deleted {user.username}")


@users.command("log-out")
def log_user_out(name: UserArgument, workspace: WorkspaceOption = None) -> None:
    """End all sessions of a user; API keys stay."""
    with open_hub(workspace) as (hub, operator):
        user = hub.users.find(operator, name)
        count = len(hub.users.sessions(operator, user.id))
        hub.users.log_out(operator, user.id)
        say(f"ended {counted(count, 'sessions')} of {user.username}")


@users.command("sessions")
def list_sessions(name: UserArgument, workspace: WorkspaceOption = None, as_json: JsonOption = False) -> None:
    """List the sessions of a user that have not ended, the newest first."""
    with open_hub(workspace) as (hub, operator):
        found = list(hub.users.sessions(operator, hub.users.find(operator, name).id))
    if as_json:
        print_json(found)
        return
    rows = [(_time(each.start), _time(each.last_access), each.ip_address, each.id) for each in found]
    print_table(("start (UTC)", "last access (UTC)", "address", "id"), rows)


@users.command("roles")
def user_roles(
    name: UserArgument,
    roles: RolesArgument = None,
    none: Annotated[bool, typer.Option("--none", help="Take all roles away.")] = False,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the roles of a user that hold in all workspaces of users, or replace them; the user is then logged out."""
    from framedex.access import RealmRole

    unknown = sorted(set(roles or ()) - set(RealmRole))
    if unknown:
        raise InvalidInput(f"no role {unknown[0]!r}; there are {', '.join(RealmRole)}")
    if none and roles:
        raise InvalidInput("give either roles or --none")
    with open_hub(workspace) as (hub, operator):
        user: User = hub.users.find(operator, name)
        if roles or none:
            user = hub.users.set_roles(operator, user.id, roles or [])
    if as_json:
        print_json(user.roles)
    else:
        say(f"{user.username}: {', '.join(user.roles) or 'no roles'}")
