"""Counts in words: one thing is in the singular, with its verb."""

import re
from pathlib import Path

import pytest

import framedex
from framedex.core.counts import counted


@pytest.mark.parametrize(
    ("nouns", "one"),
    [
        ("images", "1 image"),
        ("bounding boxes", "1 bounding box"),
        ("batches", "1 batch"),
        ("caches", "1 cache"),
        ("entries", "1 entry"),
        ("class folders", "1 class folder"),
        ("classes", "1 class"),
        ("indices", "1 index"),
        ("media", "1 media item"),
        ("media ids", "1 media id"),
        ("more rows of users", "1 more row of users"),
        ("images with several labels", "1 image with several labels"),
        ("outlines or masks", "1 outline or mask"),
    ],
)
def test_counted__nouns(nouns: str, one: str) -> None:
    """One is in the singular, whatever words are around the noun; none and several are in the plural."""
    assert counted(1, nouns) == one
    assert [counted(count, nouns) for count in (0, 2, 1000)] == [f"{count} {nouns}" for count in ("0", "2", "1,000")]


@pytest.mark.parametrize(("verb", "one"), [("are", "is"), ("have", "has"), ("were", "was")])
def test_counted__verbs(verb: str, one: str) -> None:
    """The verb agrees with the count."""
    assert counted(1, "images", verb) == f"1 image {one}"
    assert counted(2, "images", verb) == f"2 images {verb}"


_COUNTED = re.compile(
    r"""\{[^{}'"]*:,\} (?:more |new |other )?(images|rows|files|media|objects|labels|items|groups|pairs)\b"""
)
_OF_MANY = re.compile(r"\{\w*(?:MOST|MAX|LEAST)_?\w*:,\}|\{limit:,\}")
"""Limits, which are never 1."""


def test_counts__are_worded_in_one_place() -> None:
    """No text counts things in the plural alone."""
    folder = Path(framedex.__file__).parent
    lines = [
        f"{path.relative_to(folder)}: {line.strip()}"
        for path in sorted(folder.rglob("*.py"))
        for line in path.read_text().splitlines()
        if _COUNTED.search(_OF_MANY.sub("", line))
    ]
    assert lines == []
