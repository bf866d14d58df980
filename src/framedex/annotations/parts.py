"""Names of the parts for training, validation and tests, by which layouts name folders, files and columns."""

import re

_PARTS = {"train": "train", "training": "train", "val": "val", "valid": "val", "validation": "val", "test": "test"}
_PARTS |= {"testing": "test"}
_NAME = re.compile(r"(?i)([a-z]+)[-_]?(?:[0-9]{4})?")  # as train2017

PART_FOLDER = rf"(?i)^({'|'.join(_PARTS)})[-_]?([0-9]{{4}})?/"
"""A regular expression of paths below a folder that is named after a part."""


def part_of(name: str) -> str | None:
    """Return the part that a name stands for: ``train``, ``val`` or ``test``; None for another name."""
    found = _NAME.fullmatch(name)
    return None if found is None else _PARTS.get(found[1].lower())


def part_tags(name: str) -> tuple[str, ...]:
    """Return the tags for the part that a name stands for: one, or none."""
    part = part_of(name)
    return () if part is None else (part,)
