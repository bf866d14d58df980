"""Names that datasets can have."""

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
