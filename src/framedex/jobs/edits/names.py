"""Names that people give to what they define in a dataset."""

from collections.abc import Collection
from typing import Any

from framedex.errors import Conflict, InvalidInput

_MAX_NAME = 255


def check_name(kind: str, name: Any, taken: Collection[str], reserved: Collection[str] = ()) -> None:
    """Check that something can have a name.

    Args:
        kind: what it is, in messages.
        name: what it is to be called.
        taken: the names of the others of its kind.
        reserved: names that mean something else.

    Raises:
        InvalidInput: it is not 1 to 255 printable characters, nothing but spaces, or reserved.
        Conflict: it is taken.
    """
    if not isinstance(name, str) or not name.strip():
        raise InvalidInput(f"a {kind} needs a name that is not empty; this is {name!r}")
    if len(name) > _MAX_NAME:
        raise InvalidInput(
            f"the name of a {kind} has at most {_MAX_NAME} characters; this has {len(name):,}: {name[:40]!r}…"
        )
    if not name.isprintable():
        raise InvalidInput(f"the name of a {kind} has printable characters only; this is {name!r}")
    if name in reserved:
        raise InvalidInput(f"a {kind} cannot be named {name!r}: that name means something else already")
    if name in taken:
        raise Conflict(f"a {kind} named {name!r} exists already; choose another name or delete it first")
