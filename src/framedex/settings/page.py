"""The tables of docs/settings.md, made from the registry."""

from collections.abc import Sequence

from framedex.settings.model import Group
from framedex.settings.registry import SettingDefinition, definitions

_START, _END = "<!-- settings: {} -->", "<!-- end of settings -->"
_HEADERS = {Group.PERMISSIONS: "allows"}


def with_settings(document: str) -> str:
    """Return a document with the table of each group between its marks.

    Raises:
        ValueError: the document has no marks for a group.
    """
    listed = definitions()
    for group in Group:
        rows = [each for each in listed if each.group is group]
        before, start, rest = document.partition(_START.format(group))
        _, end, after = rest.partition(_END)
        if not start or not end:
            raise ValueError(f"the document has no marks for the settings of {str(group)!r}")
        document = f"{before}{start}\n\n{_table(group, rows)}\n{end}{after}"
    return document


def _table(group: Group, rows: Sequence[SettingDefinition]) -> str:
    lines = [f"| variable | {_HEADERS.get(group, 'meaning')} | default |", "|---|---|---|"]
    lines += [f"| `{each.name}` | {each.meaning} | {each.default} |" for each in rows]
    return "\n".join([*lines, ""])
