"""Settings of an open workspace, some of which can change while it is open."""

import logging
import os
from collections.abc import Mapping
from typing import Annotated, Any, TypedDict
from weakref import WeakValueDictionary

from pydantic import TypeAdapter, ValidationError

from framedex.core import forks
from framedex.core.logs import show_log
from framedex.errors import InvalidInput
from framedex.settings.model import Settings, error_reason

CHANGEABLE = (
    "add_media_enabled", "dataset_snapshots_enabled", "dataset_share_enabled", "delete_dataset_enabled", "log_level",
)  # fmt: skip
"""The settings that can change while a workspace is open. Their variables may have no prefix, as in the interface."""


class ChangeableSettings(TypedDict, total=False):
    """New values of :data:`CHANGEABLE`: a value, or its text; None for the value at opening."""

    add_media_enabled: bool | str | None
    dataset_snapshots_enabled: bool | str | None
    dataset_share_enabled: bool | str | None
    delete_dataset_enabled: bool | str | None
    log_level: str | None


class _Changes:
    """Changed settings by name, shared by all open workspaces of one folder; the dict is replaced, never changed."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}


_CHANGES = WeakValueDictionary[str, _Changes]()
_LOCK = forks.Lock()


class LiveSettings:
    """The settings of an open workspace, some of which can change while it is open.

    All workspaces that this process opened in one folder share the changes. They end with the last of these workspaces.

    Args:
        initial: the settings at opening.
        folder: the real path of the workspace.
    """

    def __init__(self, initial: Settings, folder: str | os.PathLike[str]) -> None:
        with _LOCK:
            changes = _CHANGES.setdefault(os.fspath(folder), _Changes())
        self._set_up(initial, changes)
        if initial.log_level is not None:
            _set_log_level(initial.log_level)
        show_log(initial.log or "")

    def _set_up(self, initial: Settings, changes: _Changes) -> None:
        self._initial, self._changes = initial, changes
        self._merged: tuple[Mapping[str, Any], Settings] = ({}, initial)

    @property
    def current(self) -> Settings:
        """The settings at this moment."""
        changes = self._changes.values
        if self._merged[0] != changes:
            self._merged = changes, self._initial.model_copy(update=changes)
        return self._merged[1]

    def acting_as(self, user: str) -> "LiveSettings":
        """Return settings that follow the same changes, with another user."""
        settings = object.__new__(LiveSettings)
        settings._set_up(self._initial.model_copy(update={"user": user}), self._changes)
        return settings

    def change(self, values: Mapping[str, Any]) -> None:
        """Change settings, at once and all or none.

        Args:
            values: new values by name, as in Python or as the text of a variable; None for the value at opening.

        Raises:
            InvalidInput: a setting cannot be changed, or a value does not fit.
        """
        checked = {name: checked_change(name, value) for name, value in values.items()}
        with _LOCK:
            merged = {**self._changes.values, **checked}
            self._changes.values = {name: value for name, value in merged.items() if value is not None}
        if "log_level" in values:
            _set_log_level(self.current.log_level)
            if values["log_level"] is None:
                show_log(self._initial.log or "")


def checked_change(name: str, value: Any) -> Any:
    """Return the value of a changeable setting; None for None.

    Args:
        name: the name of the setting, one of :data:`CHANGEABLE`.
        value: the value, or its text.

    Raises:
        InvalidInput: the setting cannot be changed, or the value does not fit.
    """
    if name not in CHANGEABLE:
        raise InvalidInput(f"the setting {name!r} cannot change while a workspace is open; {', '.join(CHANGEABLE)} can")
    if value is None:
        return None
    field = Settings.model_fields[name]
    try:
        kind: Any = Annotated[field.annotation, *field.metadata] if field.metadata else field.annotation
        return TypeAdapter(kind).validate_python(value)
    except ValidationError as error:
        why = error_reason(error.errors(include_url=False)[0])
        raise InvalidInput(f"the setting {name} cannot be {value!r:.200}: {why}") from None


def _set_log_level(level: str | None) -> None:
    logging.getLogger("framedex").setLevel(logging.NOTSET if level is None else level)
