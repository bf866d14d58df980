"""Registry of editable values, in the order of exports."""

from collections.abc import Mapping

from framedex.editable_values.base import EditableValue
from framedex.editable_values.caption import CAPTION
from framedex.editable_values.labels import LABELS
from framedex.errors import InvalidInput

_BUILT_IN = {
    each.name: each
    for each in (
        CAPTION,
        LABELS,
    )
}


def editable_values() -> Mapping[str, EditableValue]:
    """Return all editable values by name."""
    return _BUILT_IN


def find_editable_value(name: str) -> EditableValue:
    """Return the editable value with a name.

    Raises:
        InvalidInput: the name is unknown.
    """
    value = editable_values().get(name) if isinstance(name, str) else None
    if value is None:
        raise InvalidInput(
            f"no editable value {name!r}; there are: {', '.join(editable_values())}; others are custom fields, "
            f"which `add_field` creates"
        )
    return value
