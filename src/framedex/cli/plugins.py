"""The command that lists plugins."""

import framedex
from framedex.cli.options import JsonOption
from framedex.cli.output import print_json, print_table, say


def plugins(as_json: JsonOption = False) -> None:
    """List the plugins of other packages, with the reason for those that were left out."""
    found = framedex.list_plugins()
    if as_json:
        print_json([plugin.model_dump(mode="json") for plugin in found])
    elif not found:
        say("no plugins are installed")
    else:
        print_table(
            ("name", "group", "package", "status", "error"),
            [
                (each.name, each.group, f"{each.distribution} {each.version}".strip(), each.status, each.error or "")
                for each in found
            ],
        )
