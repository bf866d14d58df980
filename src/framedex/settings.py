"""Settings from environment variables (``FRAMEDEX_…``) or from code."""

import os
from functools import cache
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, AliasChoices, Field, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

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
        name = name if name in _UNPREFIXED else f"FRAMEDEX_{name}"
        raise InvalidInput(f"{name} is {first['input']!r}: {first['msg'].removeprefix('Value error, ')}") from None


def _toggle(name: str) -> Any:
    """Return a boolean setting, True by default, with the interface's name, with or without our prefix."""
    aliases = AliasChoices(f"FRAMEDEX_{name}", name, name.lower())
    return Field(default=True, validation_alias=aliases)


_UNPREFIXED = ("ADD_MEDIA_ENABLED",)
"""Variables with the interface's names, without prefix."""


def _by_interface_name(name: str) -> AliasChoices:
    return AliasChoices(name, f"FRAMEDEX_{name}")


class Settings(BaseSettings):
    """Settings for all commands and scripts.

    Attributes:
        workspace: the default folder of the command line.
        max_pixels: the maximum number of pixels of an image; larger images may be decompression bombs and are not
            decoded. The default is Pillow's limit: 178,956,970.
        max_file_bytes: the maximum size of a file. It does not apply to local videos, which are read in parts.
        threads: the number of threads that read and decode.
        pixels_in_flight: the maximum number of decoded pixels of all threads at the same time; bounds memory.
        user: the e-mail address for ``created_by`` of records.
        dataset_snapshots_enabled, delete_dataset_enabled: whether datasets can have snapshots, and can be deleted. As
            in the interface, the prefix may be omitted: ``DATASET_SNAPSHOTS_ENABLED``.
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
    user: str = "local"
    add_media_enabled: bool = Field(default=True, validation_alias=_by_interface_name("ADD_MEDIA_ENABLED"))
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
    delete_dataset_enabled: bool = _toggle("DELETE_DATASET_ENABLED")
    column_cache_bytes: int = Field(default=512 * 2**20, ge=0)
    keep_versions_s: float = Field(default=600.0, ge=0)
    clean_every_s: float = Field(default=60.0, ge=0)
    language: Annotated[str, AfterValidator(check_language)] = "english"
    text_encoder: str | None = Field(default=None, min_length=1)
    encoder: str | None = Field(default=None, min_length=1)
    allow_downloads: bool = False
    copy_budget_ms: float = Field(default=5.0, ge=0, le=1000)
    heartbeat_s: float = Field(default=2.0, gt=0, le=10)
