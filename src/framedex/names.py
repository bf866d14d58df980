"""Names that datasets can have."""

from collections.abc import Collection

from framedex.errors import InvalidInput

_MAX_NAME = 255


def check_name(name: str) -> None:
    """Check that a dataset can have a name.

    Raises:
        InvalidInput: it cannot; the message says why.
    """
    if not isinstance(name, str) or not name.strip():
        raise InvalidInput(f"a dataset needs a name that is not empty; this is {name!r}")
    if len(name) > _MAX_NAME:
        raise InvalidInput(
            f"the name of a dataset has at most {_MAX_NAME} characters; this has {len(name):,}: {name[:40]!r}…"
        )
    if any(character in "/\\" or not character.isprintable() for character in name):
        raise InvalidInput(f"the name of a dataset has no slashes and no control characters; this is {name!r}")


def copy_name(name: str, word: str, taken: Collection[str]) -> str:
    """Return the name of a dataset that is made of another: ``<name> (<word>)``, with a number where that is taken.

    Args:
        name: of the other dataset.
        word: what was done to it.
        taken: names that other datasets have.
    """
    for number in range(1, len(taken) + 2):
        end = f" ({word})" if number == 1 else f" ({word} {number})"
        wanted = name[: _MAX_NAME - len(end)] + end
        if wanted not in taken:
            return wanted
    raise AssertionError("there are more names than datasets")
