"""Settings from environment variables (``FRAMEDEX_…``) or from code."""

import logging
import os
import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Any, TypedDict
from weakref import WeakValueDictionary

from pydantic import AfterValidator, AliasChoices, BeforeValidator, Field, TypeAdapter, ValidationError
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from framedex.core import forks
from framedex.core.naming import check_user
from framedex.errors import InvalidInput

NO_STEMS = "none"
"""The language without stemming."""


@cache
def languages() -> tuple[str, ...]:
    """Return the languages of full-text search: the languages of Snowball, and ``none``."""
    import Stemmer

    return (*Stemmer.algorithms(), NO_STEMS)


def check_language(language: str) -> str:
    """Return a language after checking that full-text search supports it.

    Raises:
        InvalidInput: the language is not supported.
    """
    if language not in languages():
        raise InvalidInput(f"no language {language!r} for full-text search; there are {', '.join(languages())}")
    return language


def available_cpus() -> int:
    """Return the number of processors available to this process."""
    affinity = getattr(os, "sched_getaffinity", None)  # not on macOS and Windows
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def user_path(path: str | os.PathLike[str]) -> Path:
    """Return a user's path with ``~`` and ``~name`` replaced by home folders.

    Raises:
        InvalidInput: the user *name* does not exist.
    """
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise InvalidInput(f"{os.fspath(path)!r} begins with the home folder of a user who does not exist") from None


def load_settings() -> "Settings":
    """Return the settings of the environment.

    Raises:
        InvalidInput: a variable has an invalid value.
    """
    try:
        return Settings()
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        name = "_".join(map(str, first["loc"])).upper()
        raise InvalidInput(f"{_variable(name)} is {first['input']!r}: {_reason(first)}") from None


def _variable(name: str) -> str:
    """Return the variable of the environment that has the value of a field, from a name of the field."""
    field = Settings.model_fields.get(name.removeprefix(_PREFIX).lower())
    aliases = field.validation_alias if field is not None else None
    names = [str(each).upper() for each in aliases.choices] if isinstance(aliases, AliasChoices) else []
    present = {each.upper() for each in os.environ}
    return next((each for each in names if each in present), f"{_PREFIX}{name.removeprefix(_PREFIX)}")


def _reason(error: Mapping[str, Any]) -> str:
    return str(error["msg"]).removeprefix("Value error, ")


def check_log_level(level: str) -> str:
    """Return the name of a log level in capitals after checking it.

    Raises:
        InvalidInput: Python's logging has no such level.
    """
    name = level.strip().upper()
    name = _OTHER_LEVELS.get(name, name)
    if name not in _LEVELS:
        raise InvalidInput(f"no log level {level!r}; there are {', '.join(_LEVELS)}")
    return name


def _media_roots(value: Any) -> Any:
    """Return the paths of folders, which must be absolute."""
    paths = [each for each in value.split(os.pathsep) if each] if isinstance(value, str) else value
    if not isinstance(paths, Sequence) or not all(isinstance(each, str | os.PathLike) for each in paths):
        raise InvalidInput(f"folders are a list of paths, not {value!r}")
    folders = tuple(user_path(each) for each in paths)
    for folder in folders:
        if not folder.is_absolute():
            raise InvalidInput(f"each folder must be an absolute path, not {str(folder)!r}")
    return folders


def _s3_folders(value: Any) -> Any:
    """Return buckets and folders in buckets, without scheme and without slash at the end."""
    texts = [each.strip() for each in value.split(",") if each.strip()] if isinstance(value, str) else value
    if not isinstance(texts, Sequence) or not all(isinstance(each, str) for each in texts):
        raise InvalidInput(f"buckets are a list of names, not {value!r}")
    folders = tuple(each.removeprefix("s3://").rstrip("/") for each in texts)
    for folder in folders:
        if not _S3_FOLDER.fullmatch(folder) or any(part in ("", ".", "..") for part in folder.split("/")):
            raise InvalidInput(f"each entry must be bucket or bucket/folder, not {folder!r}")
    return folders


_S3_FOLDER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,254}(/.*)?", re.DOTALL)


def _toggle(name: str) -> Any:
    """Return a boolean setting, True by default, with the interface's name, with or without our prefix."""
    return Field(default=True, validation_alias=_by_interface_name(name))


def _by_interface_name(name: str) -> AliasChoices:
    return AliasChoices(f"{_PREFIX}{name}", name, name.lower())


_PREFIX = "FRAMEDEX_"
_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
_OTHER_LEVELS = {"TRACE": "DEBUG", "VERBOSE": "DEBUG", "WARN": "WARNING", "FATAL": "CRITICAL"}
"""Levels of other programs, for which the variable ``LOG_LEVEL`` may be meant."""
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


class Settings(BaseSettings):
    """Settings for all commands and scripts.

    Attributes:
        workspace: the default folder of the command line.
        max_pixels: the maximum number of pixels of an image; larger images may be decompression bombs and are not
            decoded. The default is Pillow's limit: 178,956,970.
        max_file_bytes: the maximum size of a file. It does not apply to local videos, which are read in parts.
        max_video_bytes: the maximum size of an uploaded video; in archives *max_file_bytes* holds.
        max_upload_files, max_upload_bytes: the maximum number and total size of the files of one call that adds files
            to an upload transaction.
        max_transaction_files, max_transaction_bytes: the same for all calls of a transaction together.
        media_roots: the folders below which files of media, lists, tables, annotations and archives may be read; None
            for any. In the environment they are separated as in ``PATH``. With none at all no file can be read.
        s3_allowed: the buckets, or folders in buckets, from which objects may be read, as ``bucket`` or
            ``bucket/folder``; None for any. In the environment they are separated by commas.
        journal_days, journal_bytes: the time and the size up to which the journal of a dataset goes back.
        journal_states: the number of last deletions, clean-ups and restores that can be undone; each keeps the tables
            of the state before it.
        threads: the number of threads that read and decode.
        pixels_in_flight: the maximum number of decoded pixels of all threads at the same time; bounds memory.
        user: the e-mail address for ``created_by`` of records.
        multi_workspace: whether a :class:`framedex.hub.Hub` has many tenants with one admin or more each; else a new
            admin takes the place of the one before.
        add_media_enabled, dataset_snapshots_enabled, dataset_share_enabled, delete_dataset_enabled: whether media can
            be added to datasets, and whether datasets can have snapshots, can be shared, and can be deleted. As in the
            interface, the prefix may be omitted: ``DATASET_SNAPSHOTS_ENABLED``.
        log_level: the level of the logger ``framedex``, such as ``INFO``; None leaves the logger as it is. The prefix
            may be omitted.
        column_cache_bytes: the maximum size of table columns that filters cache in memory; with 0 each filter reads the
            columns from the disk. A column larger than a fourth of this size is not cached. The orders of views take up
            to an eighth of this size in addition.
        keep_versions_s: seconds to keep superseded versions for readers that opened them earlier.
        language: the language of captions and labels for full-text search: one of Snowball's, such as ``english``, or
            ``none``.
        text_encoder: the name of the encoder for semantic search of captions; see
            :func:`framedex.encoders.choose_text_encoder`. None for no such search.
        encoder: the name of the encoder that ``auto`` selects; None for a learned encoder if its weights are installed,
            else the built-in encoder.
        allow_downloads: whether missing weights of models may be downloaded.
        clean_every_s: the minimum number of seconds between two deletions of superseded versions of a dataset after
            changes; ``inf`` leaves the deletion to :meth:`framedex.Workspace.vacuum`.
        copy_budget_ms: milliseconds of processor time an image for the verification of doubtful copies, at least 500
            for an addition; with 0 none is verified.
        heartbeat_s: seconds between two heartbeats of a task, up to 10; also the maximum delay until a task notices
            that another process aborts it.
    """

    model_config = SettingsConfigDict(env_prefix="FRAMEDEX_", frozen=True, extra="ignore")

    workspace: Path = Path("~/framedex")
    max_pixels: int = Field(default=178_956_970, gt=0)
    max_file_bytes: int = Field(default=512 * 2**20, gt=0)
    threads: int = Field(default_factory=lambda: max(2, available_cpus()), gt=0, le=256)
    pixels_in_flight: int = Field(default=32_000_000, gt=0)
    user: Annotated[str, AfterValidator(check_user)] = "local"
    multi_workspace: bool = False
    add_media_enabled: bool = Field(
        default=True,
        validation_alias=AliasChoices("ADD_MEDIA_ENABLED", f"{_PREFIX}ADD_MEDIA_ENABLED", "add_media_enabled"),
    )
    media_roots: Annotated[tuple[Path, ...], NoDecode, BeforeValidator(_media_roots)] | None = None
    s3_allowed: Annotated[tuple[str, ...], NoDecode, BeforeValidator(_s3_folders)] | None = None
    max_video_bytes: int = Field(default=4 * 2**30, gt=0)
    max_upload_files: int = Field(default=1000, gt=0)
    max_upload_bytes: int = Field(default=4 * 2**30, gt=0)
    max_transaction_files: int = Field(default=1_000_000, gt=0)
    max_transaction_bytes: int = Field(default=256 * 2**30, gt=0)
    journal_days: float = Field(default=30.0, ge=0)
    journal_bytes: int = Field(default=64 * 2**20, ge=0)
    journal_states: int = Field(default=3, ge=0)
    max_archive_bytes: int = Field(default=256 * 2**30, gt=0)
    max_archive_ratio: int = Field(default=200, gt=0)
    s3_endpoint: str | None = Field(default=None, pattern=r"^https?://[^/]+/?$")
    s3_region: str | None = None
    s3_anonymous: bool = False
    s3_role_arn: str | None = Field(default=None, pattern=r"^arn:")
    s3_connections: int = Field(default=16, gt=0, le=256)
    s3_attempts: int = Field(default=5, gt=0, le=20)
    s3_timeout_s: float = Field(default=10.0, gt=0, le=3600)
    dataset_snapshots_enabled: bool = _toggle("DATASET_SNAPSHOTS_ENABLED")
    dataset_share_enabled: bool = _toggle("DATASET_SHARE_ENABLED")
    delete_dataset_enabled: bool = _toggle("DELETE_DATASET_ENABLED")
    log_level: Annotated[str, AfterValidator(check_log_level)] | None = Field(
        default=None, validation_alias=_by_interface_name("LOG_LEVEL")
    )
    column_cache_bytes: int = Field(default=512 * 2**20, ge=0)
    keep_versions_s: float = Field(default=600.0, ge=0)
    clean_every_s: float = Field(default=60.0, ge=0)
    language: Annotated[str, AfterValidator(check_language)] = "english"
    text_encoder: str | None = Field(default=None, min_length=1)
    encoder: str | None = Field(default=None, min_length=1)
    allow_downloads: bool = False
    copy_budget_ms: float = Field(default=5.0, ge=0, le=1000)
    heartbeat_s: float = Field(default=2.0, gt=0, le=10)


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
        checked = {name: _checked(name, value) for name, value in values.items()}
        with _LOCK:
            merged = {**self._changes.values, **checked}
            self._changes.values = {name: value for name, value in merged.items() if value is not None}
        if "log_level" in values:
            _set_log_level(self.current.log_level)


def _checked(name: str, value: Any) -> Any:
    """Return the value of a changeable setting; None for None."""
    if name not in CHANGEABLE:
        raise InvalidInput(f"the setting {name!r} cannot change while a workspace is open; {', '.join(CHANGEABLE)} can")
    if value is None:
        return None
    field = Settings.model_fields[name]
    try:
        kind: Any = Annotated[field.annotation, *field.metadata] if field.metadata else field.annotation
        return TypeAdapter(kind).validate_python(value)
    except ValidationError as error:
        reason = _reason(error.errors(include_url=False)[0])
        raise InvalidInput(f"the setting {name} cannot be {value!r}: {reason}") from None


def _set_log_level(level: str | None) -> None:
    logging.getLogger("framedex").setLevel(logging.NOTSET if level is None else level)
