"""Names that people give: to datasets, and to what they define in a dataset."""

from collections.abc import Collection
from typing import Any

from framedex.errors import Conflict, InvalidInput

MAX_NAME = 255
"""Characters that a name may have."""


def check_dataset_name(name: Any) -> None:
    """Check that a dataset can have a name.

    Raises:
        InvalidInput: it is not 1 to 255 printable characters without slashes, or nothing but spaces.
    """
    check_name("dataset", name)
    if "/" in name or "\\" in name:
        raise InvalidInput(f"the name of a dataset has no slashes; this is {name!r}")


def check_name(
    kind: str,
    name: Any,
    *,
    taken: Collection[str] = (),
    reserved: Collection[str] = (),
    max_length: int = MAX_NAME,
) -> None:
    """Check that something can have a name.

    Args:
        kind: the noun for it, in messages.
        name: the name.
        taken: the names of the others of its kind.
        reserved: names with a meaning of their own.
        max_length: characters that it may have.

    Raises:
        InvalidInput: it is not printable text of 1 to *max_length* characters, nothing but spaces, or reserved.
        Conflict: it is taken.
    """
    if not isinstance(name, str) or not name.strip():
        raise InvalidInput(f"the name of a {kind} is text that is not empty, not {name!r}")
    if len(name) > max_length:
        raise InvalidInput(
            f"the name of a {kind} has at most {max_length} characters; this has {len(name):,}: {name[:40]!r}…"
        )
    if not name.isprintable():
        raise InvalidInput(f"the name of a {kind} has no control characters, only printable ones; this is {name!r}")
    if name in reserved:
        raise InvalidInput(f"a {kind} cannot be named {name!r}: that name is reserved")
    if name in taken:
        raise Conflict(f"a {kind} named {name!r} exists already; choose another name or delete it first")


def copy_name(name: str, word: str, taken: Collection[str]) -> str:
    """Return a name for a copy of a dataset: ``<name> (<word>)``, with a number where that is taken.

    Args:
        name: of the other dataset.
        word: the operation that made the copy.
        taken: names that other datasets have.
    """
    for number in range(1, len(taken) + 2):
        end = f" ({word})" if number == 1 else f" ({word} {number})"
        candidate = name[: MAX_NAME - len(end)] + end
        if candidate not in taken:
            return candidate
    raise AssertionError("there are more names than datasets")
