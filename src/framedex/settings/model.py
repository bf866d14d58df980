"""Settings from environment variables (``FRAMEDEX_…``) or from code."""

import os
import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Annotated, Any, TypeVar
from urllib.parse import urlsplit

from pydantic import AfterValidator, AliasChoices, BeforeValidator, Field, ValidationError
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from framedex.core.logs import check_log_level, log_levels
from framedex.core.naming import check_user
from framedex.errors import InvalidInput

PREFIX = "FRAMEDEX_"
"""The beginning of the names of variables."""
THREADS, PROCESSES, RAY = "threads", "processes", "ray"
"""The executors; the last one also with the address of a cluster."""
NO_STEMS = "none"
"""The language without stemming."""

Model = TypeVar("Model", bound=BaseSettings)

# What values are, by the types of pydantic's errors.
_KINDS = {
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "float_parsing": "a number",
    "bool_parsing": "true or false",
}


class Group(StrEnum):
    """A part of docs/settings.md: its heading."""

    GENERAL = "General"
    LIMITS = "Limits"
    MODELS = "Models and texts"
    S3 = "S3"
    ALLOWED = "Allowed folders and buckets"
    PERMISSIONS = "Permissions"
    USERS = "Users"
    SERVICE = "Service"
    OIDC = "OpenID Connect"


@cache
def languages() -> tuple[str, ...]:
    """Return the languages of full-text search: the languages of Snowball, and ``none``."""
    import Stemmer

    return (*Stemmer.algorithms(), NO_STEMS)


def check_executor(name: str) -> str:
    """Return the name of an executor.

    Raises:
        InvalidInput: there is no such executor.
    """
    if name in (THREADS, PROCESSES, RAY):
        return name
    if is_ray(name) and _has_host_and_port(name):
        return name
    raise InvalidInput(
        f"the executor is {THREADS!r}, {PROCESSES!r}, {RAY!r}, or the address of a cluster such as "
        f"'ray://head.example.com:10001', not {name!r:.100}"
    )


def is_ray(executor: str | None) -> bool:
    """Return whether the name of an executor is that of Ray, or the address of one of its clusters."""
    return executor is not None and (executor == RAY or executor.startswith(f"{RAY}://"))


def _has_host_and_port(address: str) -> bool:
    """Return whether an address has a host, a port, and nothing else."""
    try:
        parts = urlsplit(address)
        return bool(
            parts.hostname and parts.port and f"{parts.scheme}://{parts.netloc}" == address and "@" not in address
        )
    except ValueError:
        return False


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
        InvalidInput: the user *name* does not exist, or the path is none.
    """
    if not isinstance(path, str | os.PathLike):
        raise InvalidInput(f"a path is text or an object of pathlib, not {path!r:.80}")
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise InvalidInput(f"{os.fspath(path)!r} begins with the home folder of a user who does not exist") from None


def load_settings() -> "Settings":
    """Return the settings of the environment.

    Raises:
        InvalidInput: a variable has an invalid value.
    """
    return load(Settings)


def load(model: type[Model]) -> Model:
    """Return the settings of a model, from the environment.

    Raises:
        InvalidInput: a variable has an invalid value; the message names it, and shows no secret.
    """
    try:
        return model()
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        name = "_".join(map(str, first["loc"])).upper().removeprefix(PREFIX)
        names = variables(model, name.lower()) if name.lower() in model.model_fields else (f"{PREFIX}{name}",)
        present = {each.upper() for each in os.environ}
        variable = next((each for each in names if each in present), f"{PREFIX}{name}")
        if _is_secret(model, name.lower()):
            raise InvalidInput(f"{variable} cannot be used; its value is not shown") from None
        raise InvalidInput(f"{variable} is {first['input']!r}: {error_reason(first)}") from None


def _is_secret(model: type[BaseSettings], field: str) -> bool:
    extra: Any = model.model_fields[field].json_schema_extra if field in model.model_fields else None
    return bool(extra and extra["is_secret"])


def variables(model: type[BaseSettings], field: str) -> tuple[str, ...]:
    """Return the environment variables of a field, the one that counts if several are set first."""
    aliases = model.model_fields[field].validation_alias
    if not isinstance(aliases, AliasChoices):
        return (f"{PREFIX}{field.upper()}",)
    return tuple(dict.fromkeys(str(each).upper() for each in aliases.choices))


def error_reason(error: Mapping[str, Any]) -> str:
    """Return what would be right, from an error of pydantic."""
    if error["type"] in _KINDS:
        return f"it must be {_KINDS[error['type']]}"
    return str(error["msg"]).removeprefix("Value error, ").replace("Input should be", "it must be")


def _check_log(text: str) -> str:
    """Return levels of the log after checking them."""
    log_levels(text)
    return text


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


def comma_separated(value: Any) -> Any:
    """Return the parts of a text that are separated by commas; another value as it is."""
    return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value


def _s3_folders(value: Any) -> Any:
    """Return buckets and folders in buckets, without scheme and without slash at the end."""
    texts = comma_separated(value)
    if not isinstance(texts, Sequence) or not all(isinstance(each, str) for each in texts):
        raise InvalidInput(f"buckets are a list of names, not {value!r}")
    folders = tuple(each.removeprefix("s3://").rstrip("/") for each in texts)
    for folder in folders:
        if not _S3_FOLDER.fullmatch(folder) or any(part in ("", ".", "..") for part in folder.split("/")):
            raise InvalidInput(f"each entry must be bucket or bucket/folder, not {folder!r}")
    return folders


_S3_FOLDER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,254}(/.*)?", re.DOTALL)


def define(
    group: Group, meaning: str, *, default_text: str | None = None, is_secret: bool = False, **options: Any
) -> Any:
    """Return the field of a setting.

    Args:
        group: the part of docs/settings.md that lists the setting.
        meaning: a phrase for the documents and for ``framedex settings``.
        default_text: the default in words; None for the value of the default.
        is_secret: whether the value is never shown.
        options: those of :func:`pydantic.Field`; ``default`` or ``default_factory`` is among them.
    """
    extra: dict[str, Any] = {"group": group, "default_text": default_text, "is_secret": is_secret}
    return Field(description=meaning, json_schema_extra=extra, **options)


def _toggle(name: str, meaning: str) -> Any:
    """Return a boolean setting, True by default, with the interface's name, with or without our prefix."""
    return define(Group.PERMISSIONS, meaning, default=True, validation_alias=by_interface_name(name))


def by_interface_name(name: str) -> AliasChoices:
    """Return the names of a setting that the interface names: with our prefix, or without."""
    return AliasChoices(f"{PREFIX}{name}", name, name.lower())


class EnvironmentSettings(BaseSettings):
    """Settings from the environment, by names with our prefix, or from code. They do not change."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, frozen=True, extra="ignore")


class Settings(EnvironmentSettings):
    """Settings for all commands and scripts, from the environment or from code.

    ``docs/settings.md`` has the meaning of each field, as does its description. In code a value has the type of the
    field; None stands for no limit, or for what the environment or the program does otherwise.
    """

    workspace: Path = define(Group.GENERAL, "workspace of the command line", default=Path("~/framedex"))
    user: Annotated[str, AfterValidator(check_user)] = define(
        Group.GENERAL, "name or e-mail address in `created_by` of records, up to 255 characters", default="local"
    )
    log_level: Annotated[str, AfterValidator(check_log_level)] | None = define(
        Group.GENERAL,
        "level of the logger `framedex`, such as `INFO`; also with the prefix `FRAMEDEX_`",
        default_text="that of the program",
        default=None,
        validation_alias=by_interface_name("LOG_LEVEL"),
    )
    log: Annotated[str, AfterValidator(_check_log)] | None = define(
        Group.GENERAL,
        "levels of the log, which is then written to the standard error: `debug`, or by logger: "
        "`info,framedex.storage=debug`; takes precedence over `LOG_LEVEL`",
        default_text="no log, but warnings",
        default=None,
    )
    threads: int = define(
        Group.GENERAL,
        "threads that read and decode, 1 to 256",
        default_text="number of processors, at least 2",
        default_factory=lambda: max(2, available_cpus()),
        gt=0,
        le=256,
    )
    executor: Annotated[str, AfterValidator(check_executor)] | None = define(
        Group.GENERAL,
        "where images are decoded and measured: on `threads`, in `processes`, or by `ray` on a cluster, "
        "also at an address such as `ray://head.example.com:10001`",
        default_text="threads for the first images, processes for the others",
        default=None,
    )
    processes: int = define(
        Group.GENERAL,
        "processes that decode and measure, 1 to 256",
        default_text="number of processors",
        default_factory=available_cpus,
        gt=0,
        le=256,
    )
    memory_bytes: int | None = define(
        Group.GENERAL,
        "memory for an index; one that needs more is computed by groups of rows, with temporary files in the workspace",
        default_text="half of what is free",
        default=None,
        gt=0,
    )
    index_hours: float = define(
        Group.GENERAL,
        "hours that the search of neighbours may take as it begins, unless it is forced; `inf` for no limit",
        default=2.0,
        gt=0,
    )
    copy_budget_ms: float = define(
        Group.GENERAL,
        "milliseconds of processor time an image for the verification of copies, at least 500 for an "
        "addition; 0 turns it off, and images that are alike count as copies",
        default=8.0,
        ge=0,
        le=1000,
    )
    heartbeat_s: float = define(
        Group.GENERAL,
        "seconds between two heartbeats of a task, up to 10; a task also notices a request to stop within this time",
        default=2.0,
        gt=0,
        le=10,
    )
    column_cache_bytes: int = define(
        Group.GENERAL,
        "memory for columns that filters and pages read, and an eighth more for orders of views; a column larger than "
        "a fourth is not kept; 0 turns the cache off",
        default=512 * 2**20,
        ge=0,
    )
    keep_versions_s: float = define(
        Group.GENERAL,
        "seconds to keep superseded versions for readers that opened them earlier",
        default=600.0,
        ge=0,
    )
    clean_every_s: float = define(
        Group.GENERAL,
        "least seconds between two automatic deletions of superseded versions; `inf` leaves them to `vacuum`",
        default=60.0,
        ge=0,
    )
    max_pixels: int = define(
        Group.LIMITS,
        "largest image to decode, in pixels; larger ones may be decompression bombs",
        default=178_956_970,
        gt=0,
    )
    max_file_bytes: int = define(
        Group.LIMITS, "largest image file to read; local videos have no limit", default=512 * 2**20, gt=0
    )
    max_video_bytes: int = define(
        Group.LIMITS, "largest uploaded video; in archives the limit of images holds", default=4 * 2**30, gt=0
    )
    max_upload_files: int = define(Group.LIMITS, "most files of one call to an upload transaction", default=1000, gt=0)
    max_upload_bytes: int = define(Group.LIMITS, "most bytes of such a call", default=4 * 2**30, gt=0)
    max_transaction_files: int = define(Group.LIMITS, "most files of an upload transaction", default=1_000_000, gt=0)
    max_transaction_bytes: int = define(Group.LIMITS, "most bytes of an upload transaction", default=256 * 2**30, gt=0)
    journal_days: float = define(Group.LIMITS, "days for which the journal of edits goes back", default=30.0, ge=0)
    journal_bytes: int = define(Group.LIMITS, "most bytes of a dataset's journal", default=64 * 2**20, ge=0)
    journal_states: int = define(
        Group.LIMITS,
        "last deletions, clean-ups and restores that can be undone; each keeps the tables of the state before it",
        default=3,
        ge=0,
    )
    pixels_in_flight: int = define(
        Group.LIMITS, "decoded pixels in memory at a time, over all threads", default=32_000_000, gt=0
    )
    max_archive_bytes: int = define(Group.LIMITS, "largest unpacked size of an archive", default=256 * 2**30, gt=0)
    max_archive_ratio: int = define(
        Group.LIMITS, "largest ratio of the unpacked size to the size of the archive", default=200, gt=0
    )
    encoder: str | None = define(
        Group.MODELS,
        "encoder that `auto` stands for",
        default_text="a fetched model, CLIP if its weights are local, else `gist`",
        default=None,
        min_length=1,
    )
    text_encoder: str | None = define(
        Group.MODELS, "encoder for the meaning of captions", default_text="none", default=None, min_length=1
    )
    language: Annotated[str, AfterValidator(check_language)] = define(
        Group.MODELS,
        "language of captions and labels for full-text search: a Snowball language, or `none`",
        default="english",
    )
    allow_downloads: bool = define(Group.MODELS, "whether model weights may be downloaded", default=False)
    models: Path = define(
        Group.MODELS, "folder of the models of `framedex models fetch`", default=Path("~/.local/share/framedex/models")
    )
    model_list: Path | None = define(
        Group.MODELS,
        "file with further models for `framedex models fetch`, in the format of `framedex/encoders/models.toml`",
        default_text="none",
        default=None,
    )
    s3_endpoint: str | None = define(
        Group.S3,
        "address of an S3 service other than Amazon's",
        default_text="Amazon",
        default=None,
        pattern=r"^https?://[^/]+/?$",
    )
    s3_region: str | None = define(Group.S3, "region", default_text="that of the environment", default=None)
    s3_anonymous: bool = define(Group.S3, "whether to send requests without credentials", default=False)
    s3_role_arn: str | None = define(Group.S3, "role to assume", default_text="none", default=None, pattern=r"^arn:")
    s3_connections: int = define(Group.S3, "connections at a time, 1 to 256", default=16, gt=0, le=256)
    s3_attempts: int = define(Group.S3, "attempts of a request, 1 to 20", default=5, gt=0, le=20)
    s3_timeout_s: float = define(
        Group.S3,
        "seconds to wait for a connection and for the next bytes of an answer, up to 3,600",
        default=10.0,
        gt=0,
        le=3600,
    )
    media_roots: Annotated[tuple[Path, ...], NoDecode, BeforeValidator(_media_roots)] | None = define(
        Group.ALLOWED,
        "folders below which files may be read, separated as in `PATH`",
        default_text="any folder",
        default=None,
    )
    s3_allowed: Annotated[tuple[str, ...], NoDecode, BeforeValidator(_s3_folders)] | None = define(
        Group.ALLOWED,
        "buckets and folders that may be read: `bucket` or `bucket/folder`, separated by commas",
        default_text="any bucket",
        default=None,
    )
    add_media_enabled: bool = define(
        Group.PERMISSIONS,
        "adding media to datasets",
        default=True,
        validation_alias=AliasChoices("ADD_MEDIA_ENABLED", f"{PREFIX}ADD_MEDIA_ENABLED", "add_media_enabled"),
    )
    delete_dataset_enabled: bool = _toggle("DELETE_DATASET_ENABLED", "deleting datasets")
    dataset_snapshots_enabled: bool = _toggle("DATASET_SNAPSHOTS_ENABLED", "snapshots and restores")
    dataset_share_enabled: bool = _toggle(
        "DATASET_SHARE_ENABLED", "sharing datasets with other users; for workspaces with user accounts"
    )
    multi_workspace: bool = define(
        Group.USERS,
        "whether there are many workspaces of users with one admin or more each; else a new admin takes the place of "
        "the one before",
        default=False,
    )
