"""The tags that pictures can get, as files list them."""

import os
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from framedex.annotations.labels import storable
from framedex.checks import is_fraction
from framedex.errors import InvalidInput, NotFound
from framedex.regular_files import read_text

PROMPTS = ("a photo of a {}", "a picture of a {}", "{}")
"""Prompts of a tag that has none of its own; ``{}`` stands for the tag.

The mean of several sentences tells more than one: A. Radford et al., "Learning transferable visual models from natural
language supervision", ICML 2021, section 3.1.4.
"""


@dataclass(frozen=True)
class Tag:
    """A tag that pictures can get.

    Attributes:
        name: the label that pictures get.
        prompts: sentences that are true of such pictures.
        threshold: its own least probability, 0 to 1; None for that of the model.
    """

    name: str
    prompts: tuple[str, ...]
    threshold: float | None = None


def read_lines(path: Path) -> list[str]:
    """Return the lines of a text file that are not empty, without spaces around them.

    Raises:
        NotFound: there is no such file.
        InvalidInput: it is no text in UTF-8, or holds nothing.
    """
    lines = [line.strip() for line in _read(path).splitlines()]
    if not (found := [storable(line) for line in lines if line]):
        raise InvalidInput(f"{os.fspath(path)!r} lists nothing; it has one name a line")
    return found


def read_vocabulary(path: Path) -> list[Tag]:
    """Return the tags of a vocabulary: a text file with one a line, or a ``.toml`` file with a table for each.

    Raises:
        NotFound: there is no such file.
        InvalidInput: it is no such file, or a tag occurs twice.
    """
    if path.suffix.lower() == ".toml":
        return _of_tables(path)
    names = read_lines(path)
    if (twice := next((name for place, name in enumerate(names) if name in names[:place]), None)) is not None:
        raise InvalidInput(f"the vocabulary {os.fspath(path)!r} has {twice!r} twice")
    return [Tag(name, _usual(name)) for name in names]


def _of_tables(path: Path) -> list[Tag]:
    try:
        found = tomllib.loads(_read(path))
    except tomllib.TOMLDecodeError as error:
        raise InvalidInput(f"the vocabulary {os.fspath(path)!r} is no TOML: {error}") from None
    if not found:
        raise InvalidInput(f"the vocabulary {os.fspath(path)!r} has no tags; each is a table, [cat]")
    return [_tag(path, name, value) for name, value in found.items()]


def _tag(path: Path, name: str, value: Any) -> Tag:
    where = f"the vocabulary {os.fspath(path)!r}, tag {name!r}"
    if not name.strip() or not isinstance(value, dict):
        raise InvalidInput(f"{where}: a tag has a name and is a table, as [cat], not {value!r}")
    if unknown := sorted(value.keys() - {"prompts", "threshold"}):
        raise InvalidInput(f"{where}: no key {unknown[0]!r}; there are: prompts, threshold")
    prompts, threshold = value.get("prompts", list(_usual(name))), value.get("threshold")
    if not isinstance(prompts, list) or not prompts or not all(isinstance(each, str) and each for each in prompts):
        raise InvalidInput(f"{where}: prompts is {prompts!r}; it is a list of sentences")
    if threshold is not None and not is_fraction(threshold):
        raise InvalidInput(f"{where}: threshold is {threshold!r}; it is a probability, 0 to 1")
    return Tag(name.strip(), tuple(prompts), threshold)


def _usual(name: str) -> tuple[str, ...]:
    return tuple(prompt.replace("{}", name) for prompt in PROMPTS)


def _read(path: Path) -> str:
    try:
        return read_text(path)
    except OSError as error:
        raise NotFound(f"the file {os.fspath(path)!r} cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise InvalidInput(f"the file {os.fspath(path)!r} is no text in UTF-8") from None
