"""The command that shows the settings."""

from framedex.cli.options import JsonOption, WorkspaceOption, workspace_folder
from framedex.cli.output import print_json, print_table


def settings(workspace: WorkspaceOption = None, as_json: JsonOption = False) -> None:
    """Show each setting, its value, and the variable or file that it comes from; secrets are not shown."""
    from framedex.settings.registry import present_settings

    present = present_settings(workspace_folder(workspace))
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
