"""Settings by environment (``FRAMEDEX_…``); each can also be given in code."""

import os
from functools import cache
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, AliasChoices, Field, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from framedex.errors import InvalidInput

NO_STEMS = "none"
"""The language in which words are taken as they are written."""


@cache
def languages() -> tuple[str, ...]:
    """Return the languages of full-text search: those of Snowball, and ``none``."""
    import Stemmer

    return (*Stemmer.algorithms(), NO_STEMS)


def check_language(language: str) -> str:
    """Return a language.

    Raises:
        InvalidInput: there is no such language.
    """
    if language not in languages():
        raise InvalidInput(f"no language {language!r} for full-text search; there are {', '.join(languages())}")
    return language


def available_cpus() -> int:
    """Return how many processors this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)  # not on macOS and Windows
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def user_path(path: str | os.PathLike[str]) -> Path:
    """Return a path that a user gave, with ``~`` and ``~name`` replaced by home folders.

    Raises:
        InvalidInput: there is no such user.
    """
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise InvalidInput(f"{os.fspath(path)!r} begins with the home folder of a user who does not exist") from None


def load_settings() -> "Settings":
    """Return the settings of the environment.

    Raises:
        InvalidInput: a variable has a value that cannot be used.
    """
    try:
        return Settings()
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        name = "_".join(map(str, first["loc"])).upper()
        name = name if name in _UNPREFIXED else f"FRAMEDEX_{name}"
        raise InvalidInput(f"{name} is {first['input']!r}: {first['msg'].removeprefix('Value error, ')}") from None


def _toggle(name: str) -> Any:
    """Return a setting that is on by default, named as the interface has it, with our prefix or without."""
    aliases = AliasChoices(f"FRAMEDEX_{name}", name, name.lower())
    return Field(default=True, validation_alias=aliases)


_UNPREFIXED = ("ADD_MEDIA_ENABLED",)
"""Variables that have the interface's names."""


def _by_interface_name(name: str) -> AliasChoices:
    return AliasChoices(name, f"FRAMEDEX_{name}")


class Settings(BaseSettings):
    """What a user may set once for all commands and scripts.

    Attributes:
        workspace: the folder that the command line opens by default.
        max_pixels: pictures with more pixels are not decoded (they may be decompression bombs). The default is
            the limit at which Pillow refuses too: 178,956,970.
        max_file_bytes: larger files are not read; videos on this machine are, as they are never held whole.
        threads: threads that read and decode.
        pixels_in_flight: how many decoded pixels may wait at a time, over all threads; bounds memory.
        user: the e-mail address that records carry as ``created_by``.
        dataset_snapshots_enabled, delete_dataset_enabled: whether datasets can have snapshots, and can be deleted. As
            the interface has them, they may also be given without the prefix: ``DATASET_SNAPSHOTS_ENABLED``.
        column_cache_bytes: how much of the tables' columns filters may keep in memory; 0 for nothing, so that each
            filter reads them from the disk. A column that would take more than a fourth of it is never kept.
        keep_versions_s: how long states that nothing names any more are kept for those who still read them, in seconds.
        language: of captions and labels, for full-text search: one of Snowball's, as ``english``, or ``none``.
        text_encoder: the name of the encoder by which captions are searched for what they mean; see
            :func:`framedex.encoders.choose_text_encoder`. None for none.
        encoder: the name of the encoder that ``auto`` stands for; None for a learned one where its weights are here,
            else the built-in one.
        allow_downloads: whether weights of models that are not on this machine may be fetched.
        clean_every_s: after how many seconds, at the earliest, a change of a dataset lets such states of it go again;
            ``inf`` leaves that to :meth:`framedex.Workspace.vacuum`.
        heartbeat_s: seconds between two signs of life of a task, up to 10; within that time it also learns that another
            process asks it to stop.
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
    dataset_snapshots_enabled: bool = _toggle("DATASET_SNAPSHOTS_ENABLED")
    delete_dataset_enabled: bool = _toggle("DELETE_DATASET_ENABLED")
    column_cache_bytes: int = Field(default=512 * 2**20, ge=0)
    keep_versions_s: float = Field(default=600.0, ge=0)
    clean_every_s: float = Field(default=60.0, ge=0)
    language: Annotated[str, AfterValidator(check_language)] = "english"
    text_encoder: str | None = Field(default=None, min_length=1)
    encoder: str | None = Field(default=None, min_length=1)
    allow_downloads: bool = False
    heartbeat_s: float = Field(default=2.0, gt=0, le=10)
