"""The registry of all settings: the fields of the models of settings, and variables that other parts read.

A further model is added to :data:`MODELS`; its fields are made by :func:`framedex.settings.model.define`.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings

from framedex.errors import InvalidInput
from framedex.settings.live import checked_change
from framedex.settings.model import Group, Settings, load, variables
from framedex.settings.oidc import OidcSettings
from framedex.settings.service import ServiceSettings

MODELS: tuple[type[BaseSettings], ...] = (Settings, ServiceSettings, OidcSettings)


@dataclass(frozen=True)
class SettingDefinition:
    """A setting.

    Attributes:
        names: its environment variables; the one that counts if several are set comes first.
        meaning: a phrase.
        default: the default in words.
        group: the part of the documents that lists it.
        is_secret: whether its value is never shown.
        file: the file in the folder of the workspace that has the value if no variable is set; empty for none.
        field: the field of *model* with the value; empty for a variable that another part of the program reads.
        model: the model of the field; None without one.
    """

    names: tuple[str, ...]
    meaning: str
    default: str
    group: Group
    is_secret: bool = False
    file: str = ""
    field: str = ""
    model: type[BaseSettings] | None = None

    @property
    def name(self) -> str:
        """The name in the documents: without the prefix if the setting has such a name."""
        return min(self.names, key=len)


OTHERS = (
    SettingDefinition(
        ("FRAMEDEX_NAMESPACE",),
        "namespace of datasets for the command line, as the option `--namespace` before the command",
        "the default namespace",
        Group.GENERAL,
    ),
    SettingDefinition(
        ("FRAMEDEX_SECRET_KEY",),
        "secret of at least 32 characters, from which the secrets of API keys are computed",
        "the file `service.key` in the workspace",
        Group.USERS,
        is_secret=True,
        file="service.key",
    ),
)
"""Settings that are no fields of a model."""


def definitions() -> list[SettingDefinition]:
    """Return all settings, by group."""
    fields = [_definition(model, name, field) for model in MODELS for name, field in model.model_fields.items()]
    order = list(Group)
    return sorted([*fields, *OTHERS], key=lambda each: order.index(each.group))


def _definition(model: type[BaseSettings], name: str, field: FieldInfo) -> SettingDefinition:
    extra: Any = field.json_schema_extra or {}
    default = extra["default_text"]
    if default is None:
        default = _in_words(field.default, is_size=name.endswith("_bytes"))
    return SettingDefinition(
        variables(model, name),
        field.description or "",
        default,
        extra["group"],
        is_secret=extra["is_secret"],
        field=name,
        model=model,
    )


_UNITS = ((2**30, "GiB"), (2**20, "MiB"))


def _in_words(value: Any, *, is_size: bool) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if is_size:
        for size, unit in _UNITS:
            if value and value % size == 0:
                return f"{value // size:,} {unit}"
    return f"{value:,g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else f"`{value}`"


@dataclass(frozen=True)
class PresentSetting:
    """A setting with its present value.

    Attributes:
        definition: the setting.
        value: the value as text; for a secret only whether it is set.
        source: the environment variable or the file that has the value, or ``default``.
    """

    definition: SettingDefinition
    value: str
    source: str


@dataclass(frozen=True)
class StoredSettings:
    """Settings that administrators of the service have changed, which take precedence over the environment.

    Attributes:
        file: the file that has them.
        values: their values as text, by the name in capitals, without the prefix.
    """

    file: Path
    values: Mapping[str, str]

    def value(self, field: str) -> Any:
        """Return the value of a field; None if none is stored, or one that this version does not accept."""
        text = self.values.get(field.upper())
        try:
            return None if text is None else checked_change(field, text)
        except InvalidInput:  # the service ignores it, with a warning in its log
            return None


def present_settings(folder: Path, stored: StoredSettings | None = None) -> list[PresentSetting]:
    """Return all settings with their values in this process, by group.

    Args:
        folder: the folder of the workspace.
        stored: settings that administrators have changed; None for none.

    Raises:
        InvalidInput: a variable has an invalid value; the message names it.
    """
    loaded = {model: load(model) for model in MODELS}
    environment = {name.upper(): value for name, value in os.environ.items()}
    present = [_present(each, loaded, environment, folder) for each in definitions()]
    return present if stored is None else [_with_change(each, stored) for each in present]


def _with_change(present: PresentSetting, stored: StoredSettings) -> PresentSetting:
    value = None if present.definition.model is not Settings else stored.value(present.definition.field)
    if value is None:
        return present
    return replace(present, value=_text(value, present.definition.default), source=str(stored.file))


def _present(
    definition: SettingDefinition,
    loaded: Mapping[type[BaseSettings], BaseSettings],
    environment: Mapping[str, str],
    folder: Path,
) -> PresentSetting:
    variable = next((name for name in definition.names if name in environment), None)
    file = folder / definition.file if definition.file else None
    is_in_file = variable is None and file is not None and file.exists()
    source = variable or (str(file) if is_in_file else "default")
    if definition.is_secret:
        value = "not shown" if variable is not None or is_in_file else "not set"
    elif definition.model is not None:
        value = _text(getattr(loaded[definition.model], definition.field), definition.default)
    else:
        value = definition.default if variable is None else environment[variable]
    return PresentSetting(definition, value, source)


def _text(value: Any, default: str) -> str:
    """Return a value as the text of a variable; the default in words for None."""
    if value is None:
        return default.replace("`", "")
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return (os.pathsep if any(isinstance(each, Path) for each in value) else ",").join(map(str, value))
    return f"{value:g}" if isinstance(value, float) else str(value)
