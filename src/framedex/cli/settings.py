"""The command that shows the settings, and changes those that administrators of the service change."""

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from framedex.cli.options import JsonOption, WorkspaceOption, workspace_folder
from framedex.cli.output import print_json, print_table, printable
from framedex.cli.people import open_hub
from framedex.errors import InvalidInput, WorkspaceError

if TYPE_CHECKING:
    from framedex.settings.registry import StoredSettings


def settings(
    change: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE", help="Change a setting as administrators of the service do; may be repeated."
        ),
    ] = None,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show each setting, its value, and the variable or file that it comes from; secrets are not shown.

    Values that administrators of the service have changed hold in the service alone; they come from service.db.
    """
    from framedex.settings.registry import present_settings

    if change:
        _change(workspace, change)
    folder = workspace_folder(workspace)
    present = present_settings(folder, _stored(folder))
    if as_json:
        print_json(
            [
                {
                    "variable": each.definition.name,
                    "value": each.value,
                    "source": each.source,
                    "meaning": each.definition.meaning,
                    "default": each.definition.default,
                    "group": each.definition.group,
                    "secret": each.definition.is_secret,
                }
                for each in present
            ]
        )
        return
    print_table(("setting", "value", "from"), [(each.definition.name, each.value, each.source) for each in present])


def _change(workspace: Path | None, changes: list[str]) -> None:
    """Change settings of the service, which a running one follows within a minute."""
    pairs = [each.partition("=") for each in changes]
    for pair, text in zip(pairs, changes, strict=True):
        if not pair[1]:
            raise InvalidInput(f"give a setting and its value, as in LOG_LEVEL=DEBUG, not {text!r}")
    with open_hub(workspace) as (hub, operator):
        for key, _, value in pairs:
            hub.admin_settings.change(operator, key, value)


def _stored(folder: Path) -> "StoredSettings | None":
    """Return the settings that administrators have changed; None without a service."""
    from framedex.settings.registry import StoredSettings
    from framedex.storage.layout import SERVICE_DB_NAME
    from framedex.storage.service_db.database import open_service_db
    from framedex.storage.service_db.setting_rows import stored_settings

    file = folder / SERVICE_DB_NAME
    if not file.exists():
        return None
    try:
        with closing(open_service_db(folder, read_only=True)) as database, database.read() as connection:
            return StoredSettings(file, stored_settings(connection))
    except WorkspaceError as error:
        typer.echo(printable(f"what administrators have changed is not shown: {error}"), err=True)
        return None
