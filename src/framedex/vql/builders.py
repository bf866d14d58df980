"""A function for each key of the language, which returns an expression: ``issues("blur") & ~labels("cat")``."""

from collections.abc import Sequence
from datetime import date, datetime
from typing import Any

from framedex.vql.expression import Expression
from framedex.vql.parsing import parse
from framedex.vql.values import Order, TextOp

Time = str | date | datetime


def labels(value: str | Sequence[str], op: str | None = None) -> Expression:
    """Return the test of a label or of any of several.

    Args:
        value: a label, or several.
        op: ``is``, ``is_not``, ``one_of`` or ``not_one_of``; by default ``is`` for one and ``one_of`` for several.

    Raises:
        InvalidFilter: as of all these functions, a value cannot be used.
    """
    return _test("labels", op or ("is" if isinstance(value, str) else "one_of"), value)


def tags(value: str | Sequence[str]) -> Expression:
    """Return the test of a tag, by name or id, or of any of several; ``untagged`` stands for having none."""
    return _test("tags", "is", value)


def issues(
    value: str, mode: str | None = None, *, confidence_min: float | None = None, confidence_max: float | None = None
) -> Expression:
    """Return the test of an issue, with a confidence from 0 to 1 between limits; *mode* ``out`` for all others."""
    return _test("issues", "issue", value, mode=mode, confidence_min=confidence_min, confidence_max=confidence_max)


def duplicates(value: float = 0.96) -> Expression:
    """Return the test of being near-duplicate to something, at a cosine similarity from 0 to 1."""
    return _test("duplicates", "duplicates", value)


def uniqueness(value: float) -> Expression:
    """Return the test of a uniqueness of at least the value, 0 to 1."""
    return _test("uniqueness", "uniqueness", value)


def text(op: str, value: str, threshold: float | None = None) -> Expression:
    """Return a search for text: ``fts`` in captions, ``semantic`` by meaning, with a least similarity from 0 to 1."""
    return _test("text", op, value, threshold=threshold)


def similarity(op: str, value: str, threshold: float | None = None) -> Expression:
    """Return a search for what is like a ``media`` item or an ``upload``, with a largest cosine distance, 0 to 2."""
    return _test("similarity", op, value, threshold=threshold)


def field(name: str, op: str, value: Any = None) -> Expression:
    """Return the test of a custom field: ``field("price", "between", [5, 10])``, ``field("price", "missing")``."""
    return _test("field", op, value, name=name)


def file_name(op: TextOp, value: str) -> Expression:
    """Return the test of the file's name: ``is``, ``contains``, ``starts`` or ``ends``."""
    return _test("file_name", op, value)


def folder(op: TextOp, value: str) -> Expression:
    """Return the test of the folder below the source root; ``starts`` means the folder and all below it."""
    return _test("folder", op, value)


def media(value: str) -> Expression:
    """Return the test of a kind of media: ``image``, ``video`` or ``video_frame``."""
    return _test("media", "is", value)


def size(op: Order, value: int | Sequence[int], of: str | None = None) -> Expression:
    """Return the test of a size: of the file in ``bytes``, or of the ``width`` or ``height`` in pixels."""
    return _test("size", op, value, of=of)


def date_added(op: Order, value: Time | Sequence[Time]) -> Expression:
    """Return the test of when media were added; a date is the whole day, and a time without a zone is in UTC."""
    return _test("date_added", op, value)


def batch(value: int | Sequence[int]) -> Expression:
    """Return the test of the addition that brought media, or of any of several; 0 is the creation."""
    return _test("batch", "one_of" if isinstance(value, Sequence) else "is", value)


def objects(
    value: str | Sequence[str] | None = None, *, min_count: int | None = None, confidence_min: float | None = None
) -> Expression:
    """Return the test of media to hold objects of a label, or of any of several; of any label without a value.

    Args:
        value: a label, or several.
        min_count: how many at least; by default 1.
        confidence_min: the least confidence, 0 to 1, of those that count.
    """
    return _test("objects", "has", value, min_count=min_count, confidence_min=confidence_min)


def confidence(op: Order, value: float | Sequence[float]) -> Expression:
    """Return the test of how sure it is that an object is there, 0 to 1: ``confidence("ge", 0.5)``."""
    return _test("confidence", op, value)


def source(value: str | Sequence[str]) -> Expression:
    """Return the test of where an object comes from: a format of annotations or a model's id, or any of several."""
    return _test("source", "is" if isinstance(value, str) else "one_of", value)


def _test(key: str, op: str, value: Any, **options: Any) -> Expression:
    """Return an element as an expression, if it is valid; options that are None are left out."""
    content = {**options, "op": op, "value": _plain(value)}
    element = {key: {name: each for name, each in content.items() if each is not None}}
    parse([element])
    return Expression([element])


def _plain(value: Any) -> Any:
    """Return a value as JSON has it."""
    if isinstance(value, date):  # and so a datetime
        return value.isoformat()
    return [_plain(each) for each in value] if isinstance(value, list | tuple) else value
