"""Settings by environment (``FRAMEDEX_…``); each can also be given in code."""

import os
from pathlib import Path

from pydantic import Field, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from framedex.errors import InvalidInput


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
        name = f"FRAMEDEX_{'_'.join(map(str, first['loc']))}".upper()
        raise InvalidInput(f"{name} is {first['input']!r}: {first['msg']}") from None


class Settings(BaseSettings):
    """What a user may set once for all commands and scripts.

    Attributes:
        workspace: the folder that the command line opens by default.
        max_pixels: pictures with more pixels are not decoded (they may be decompression bombs). The default is
            the limit at which Pillow refuses too: 178,956,970.
        max_file_bytes: larger files are not read.
        threads: threads that read and decode.
        pixels_in_flight: how many decoded pixels may wait at a time, over all threads; bounds memory.
        user: the e-mail address that records carry as ``created_by``.
    """

    model_config = SettingsConfigDict(env_prefix="FRAMEDEX_", frozen=True, extra="ignore")

    workspace: Path = Path("~/framedex")
    max_pixels: int = Field(default=178_956_970, gt=0)
    max_file_bytes: int = Field(default=512 * 2**20, gt=0)
    threads: int = Field(default_factory=lambda: max(2, available_cpus()), gt=0, le=256)
    pixels_in_flight: int = Field(default=32_000_000, gt=0)
    user: str = "local"
