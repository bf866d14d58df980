"""Commands for sharing datasets with users, and for the audit."""

from typing import Annotated, Any

import typer

from framedex.cli.options import JsonOption, NameArgument, WorkspaceOption, open_workspace
from framedex.cli.output import print_json, print_table, say
from framedex.cli.people import open_hub
from framedex.core.counts import counted
from framedex.errors import InvalidInput


def share(
    name: NameArgument,
    user: Annotated[
        str | None, typer.Argument(help="E-mail address or username. Without one, members are listed.")
    ] = None,
    role: Annotated[str, typer.Option(help="What the user may do: viewer or editor.")] = "viewer",
    remove: Annotated[bool, typer.Option("--remove", help="Stop sharing with the user.")] = False,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Share a dataset with a user, stop it, or list with whom it is shared."""
    from framedex.access import Role

    if remove and user is None:
        raise InvalidInput("--remove needs a user")
    if role not in (Role.VIEWER, Role.EDITOR):
        raise InvalidInput(f"a dataset is shared with a viewer or an editor, not {role!r}")
    chosen = Role(role)
    with open_workspace(workspace) as opened:
        dataset_id = opened.dataset(name).id
    with open_hub(workspace) as (hub, operator):
        if user is not None and remove:
            hub.datasets.unshare(operator, dataset_id, user)
        elif user is not None:
            hub.datasets.share(operator, dataset_id, user, chosen)
        members = hub.datasets.members(operator, dataset_id)
    if as_json:
        print_json(members)
    elif user is None:
        print_table(("user", "role"), [(each.email, each.role) for each in members])
    else:
        say(f"{name} is {'no longer ' if remove else ''}shared with {user}{'' if remove else f' as {chosen}'}")


def audit(
    user: Annotated[str | None, typer.Option(help="Who did it: username, e-mail address or id.")] = None,
    action: Annotated[str | None, typer.Option(help="Beginning of the action's name, such as users.")] = None,
    dataset: Annotated[str | None, typer.Option(help="Id of a dataset, which may be deleted.")] = None,
    since: Annotated[
        str | None, typer.Option(help="Earliest time, such as 2026-01-31T12:00; UTC without a zone.")
    ] = None,
    until: Annotated[str | None, typer.Option(help="Time before which it was done.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Maximum number of entries.")] = 100,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """List who did what in the last 90 days, the newest first: log-ins, users, sharing, settings, deletions."""
    with open_hub(workspace) as (hub, operator):
        search: dict[str, Any] = {"action": action, "dataset_id": dataset, "since": since, "until": until}
        search["user_id"] = None if user is None else hub.users.find(operator, user).id
        page = hub.trail.page(operator, limit=limit, **search)
    if as_json:
        print_json(page.entries)
        return
    rows = [
        (f"{each.at:%Y-%m-%d %H:%M:%S}", each.username or each.user_id or "", each.action, each.outcome,
         each.target or "", each.dataset_id or "", each.ip or "")
        for each in page.entries
    ]  # fmt: skip
    print_table(("time (UTC)", "user", "action", "outcome", "target", "dataset", "address"), rows)
    if page.total > len(rows):
        say(f"{counted(page.total - len(rows), 'older entries', 'are')} left out; --until shows them")
