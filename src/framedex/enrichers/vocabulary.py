"""Vocabularies: the tags of images, read from files."""

import os
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from framedex.annotations.labels import storable
from framedex.core.checks import is_fraction
from framedex.core.regular_files import read_text
from framedex.errors import InvalidInput, NotFound

PROMPTS = ("a photo of a {}", "a picture of a {}", "{}")
"""Default prompts of a tag; ``{}`` stands for the tag.

The mean of several sentences describes a tag better than one sentence: A. Radford et al., "Learning transferable visual
models from natural language supervision", ICML 2021, section 3.1.4.
"""


@dataclass(frozen=True)
class VocabularyTag:
    """A tag of a vocabulary.

    Attributes:
        name: the label of images with the tag.
        prompts: sentences that describe such images.
        threshold: its own minimum probability, 0 to 1; None for that of the model.
    """

    name: str
    prompts: tuple[str, ...]
    threshold: float | None = None


def read_lines(path: Path) -> list[str]:
    """Return the non-empty lines of a text file, without surrounding spaces.

    Raises:
        NotFound: the file does not exist.
        InvalidInput: the file is not UTF-8 text, or is empty.
    """
    lines = [line.strip() for line in _read(path).splitlines()]
    if not (names := [storable(line) for line in lines if line]):
        raise InvalidInput(f"{os.fspath(path)!r} lists nothing; it has one name a line")
    return names


def read_vocabulary(path: Path) -> list[VocabularyTag]:
    """Return the tags of a vocabulary: a text file with one tag a line, or a ``.toml`` file with a table for each tag.

    Raises:
        NotFound: the file does not exist.
        InvalidInput: the file is malformed, or a tag occurs twice.
    """
    if path.suffix.lower() == ".toml":
        return _of_tables(path)
    names = read_lines(path)
    if (twice := next((name for position, name in enumerate(names) if name in names[:position]), None)) is not None:
        raise InvalidInput(f"the vocabulary {os.fspath(path)!r} has {twice!r} twice")
    return [VocabularyTag(name, _usual(name)) for name in names]


def _of_tables(path: Path) -> list[VocabularyTag]:
    try:
        tables = tomllib.loads(_read(path))
    except tomllib.TOMLDecodeError as error:
        raise InvalidInput(f"the vocabulary {os.fspath(path)!r} is no TOML: {error}") from None
    if not tables:
        raise InvalidInput(f"the vocabulary {os.fspath(path)!r} has no tags; each is a table, [cat]")
    return [_tag(path, name, value) for name, value in tables.items()]


def _tag(path: Path, name: str, value: Any) -> VocabularyTag:
    location = f"the vocabulary {os.fspath(path)!r}, tag {name!r}"
    if not name.strip() or not isinstance(value, dict):
        raise InvalidInput(f"{location}: a tag has a name and is a table, as [cat], not {value!r}")
    if unknown := sorted(value.keys() - {"prompts", "threshold"}):
        raise InvalidInput(f"{location}: no key {unknown[0]!r}; there are: prompts, threshold")
    prompts, threshold = value.get("prompts", list(_usual(name))), value.get("threshold")
    if not isinstance(prompts, list) or not prompts or not all(isinstance(each, str) and each for each in prompts):
        raise InvalidInput(f"{location}: prompts is {prompts!r}; it is a list of sentences")
    if threshold is not None and not is_fraction(threshold):
        raise InvalidInput(f"{location}: threshold is {threshold!r}; it is a probability, 0 to 1")
    return VocabularyTag(name.strip(), tuple(prompts), threshold)


def _usual(name: str) -> tuple[str, ...]:
    return tuple(prompt.replace("{}", name) for prompt in PROMPTS)


def _read(path: Path) -> str:
    try:
        return read_text(path)
    except OSError as error:
        raise NotFound(f"the file {os.fspath(path)!r} cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise InvalidInput(f"the file {os.fspath(path)!r} is no text in UTF-8") from None
