"""Checks of names: of datasets, their namespaces, tags, custom fields, snapshots and users."""

import unicodedata
from collections.abc import Collection
from typing import Any

from framedex.core.checks import has_lone_surrogate
from framedex.core.printable import is_printable, is_visible
from framedex.errors import Conflict, InvalidInput

MAX_NAME = 255
"""The maximum number of characters of a name."""
_MAX_DESCRIPTION = 10_000


def check_dataset_name(name: Any) -> None:
    """Check the name of a dataset.

    Raises:
        InvalidInput: the name is not text of 1 to 255 printable characters, has slashes, or is blank.
    """
    check_name("dataset", name)
    if "/" in name or "\\" in name:
        raise InvalidInput(f"the name of a dataset must not contain slashes, as {name!r} does")


def check_user(name: Any) -> str:
    """Return the name or e-mail address of a user after a check.

    Raises:
        InvalidInput: the name is not text of 1 to 255 printable characters, or is blank.
    """
    check_name("user", name)
    return str(name)


def check_namespace(name: Any) -> str:
    """Return the name of a namespace of datasets after a check; empty for the default namespace.

    Raises:
        InvalidInput: the name is not text of up to 255 printable characters, or is blank but not empty.
    """
    if name != "":
        check_name("namespace", name)
    return str(name)


def check_name(
    kind: str,
    name: Any,
    *,
    taken: Collection[str] = (),
    reserved: Collection[str] = (),
    max_length: int = MAX_NAME,
) -> None:
    """Check a user-defined name.

    Args:
        kind: the noun for the named object, for messages.
        name: the name.
        taken: the existing names of the same kind.
        reserved: names with a special meaning.
        max_length: the maximum number of characters.

    Raises:
        InvalidInput: the name is not printable text of 1 to *max_length* characters, or is blank or reserved. The
            joiners within an emoji are printable.
        Conflict: the name is taken.
    """
    noun = f"{'a' if kind == 'user' or kind[0] not in 'aeiou' else 'an'} {kind}"
    check_line(f"the name of {noun}", name, max_length=max_length)
    if name in reserved:
        raise InvalidInput(f"{noun} cannot be named {name!r}: that name is reserved")
    if name in taken:
        raise Conflict(f"{noun} named {name!r} exists already; choose another name or delete it first")


def check_line(noun: str, text: Any, *, max_length: int = MAX_NAME) -> None:
    """Check a line of text that people give, such as a name or an address.

    Args:
        noun: the text, for messages.
        text: the text.
        max_length: the maximum number of characters.

    Raises:
        InvalidInput: it is not printable text of 1 to *max_length* characters, or is blank.
    """
    if not isinstance(text, str) or not text.strip():
        raise InvalidInput(f"{noun} is text that is not empty, not {text!r}")
    if len(text) > max_length:
        raise InvalidInput(f"{noun} has at most {max_length} characters; this has {len(text):,}: {text[:40]!r}…")
    if not is_printable(text):
        raise InvalidInput(f"{noun} has no control characters, only printable ones; this is {text!r}")
    if not is_visible(text):
        raise InvalidInput(f"{noun} has a character that can be seen; this is {text!a}")


def check_description(description: Any) -> None:
    """Check the description of a dataset.

    Raises:
        InvalidInput: it is not text of up to 10,000 characters that UTF-8 can encode.
    """
    if not isinstance(description, str) or has_lone_surrogate(description):
        raise InvalidInput(f"the description of a dataset is text, not {description!r}")
    if len(description) > _MAX_DESCRIPTION:
        raise InvalidInput(
            f"the description of a dataset has at most {_MAX_DESCRIPTION:,} characters, not {len(description):,}"
        )


def name_key(name: str) -> str:
    """Return a key that is equal for names that differ only in case or in the form of their characters."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())


def copy_name(name: str, word: str, taken: Collection[str]) -> str:
    """Return a name for a copy of a dataset: ``<name> (<word>)``, with a number if that name is taken.

    Args:
        name: the name of the original dataset.
        word: the operation that creates the copy.
        taken: the names of existing datasets.
    """
    for number in range(1, len(taken) + 2):
        end = f" ({word})" if number == 1 else f" ({word} {number})"
        candidate = name[: MAX_NAME - len(end)] + end
        if candidate not in taken:
            return candidate
    raise AssertionError("there are more names than datasets")
