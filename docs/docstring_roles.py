"""References and trees in docstrings, for the site: an extension of Griffe, which reads docstrings for mkdocstrings.

Docstrings name other objects by roles, such as ``:func:`parse```, which Markdown does not have. Here each becomes code,
and a link where the site documents the object. A paragraph that is a drawn tree keeps its lines.
"""

import re
from typing import Any

import griffe

_TREE = re.compile(r"^(?:[^\n]+\n)+├─(?:[^\n]+\n?)+", re.MULTILINE)
_ROLE = re.compile(r":(?:class|func|meth|mod|attr|data|exc):`~?([\w.]+)`")


class DocstringRoles(griffe.Extension):
    """Markdown in the place of roles."""

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Replace the roles in the docstrings of all objects of a package."""
        waiting: list[griffe.Object] = [pkg]
        while waiting:
            here = waiting.pop()
            if here.docstring:
                here.docstring.value = _markdown(here, here.docstring.value)
            waiting += [member for member in here.members.values() if isinstance(member, griffe.Object)]


def _markdown(here: griffe.Object, text: str) -> str:
    """Return the docstring of an object as Markdown."""
    text = _TREE.sub(lambda tree: f"```text\n{tree[0].rstrip()}\n```\n", text)
    return _ROLE.sub(lambda role: _link(here, role[1]), text)


def _link(here: griffe.Object, name: str) -> str:
    """Return the Markdown of a name that the docstring of an object contains."""
    first = name.partition(".")[0]
    if first == "framedex":
        path = name
    elif first in map(str, here.package.exports or ()):
        path = f"framedex.{name}"
    else:
        try:
            path = here.resolve(name)
        except griffe.NameResolutionError:
            path = name
    return f'<autoref identifier="{path}" optional><code>{name.removeprefix("framedex.")}</code></autoref>'
