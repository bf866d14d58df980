"""The command that shows the settings."""

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from framedex.cli.options import JsonOption, WorkspaceOption, workspace_folder
from framedex.cli.output import print_json, print_table, printable
from framedex.errors import WorkspaceError

if TYPE_CHECKING:
    from framedex.settings.registry import StoredSettings


def settings(workspace: WorkspaceOption = None, as_json: JsonOption = False) -> None:
    """Show each setting, its value, and the variable or file that it comes from; secrets are not shown.

    Values that administrators of the service have changed hold in the service alone; they come from service.db.
    """
    from framedex.settings.registry import present_settings

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
