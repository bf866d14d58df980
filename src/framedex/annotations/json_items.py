"""JSON files that are one object with long arrays, read item by item, so that memory does not grow with the file."""

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

from framedex.errors import InvalidInput
from framedex.regular_files import open_text

_CHUNK = 2**20  # characters
_LONGEST = 2**26  # characters of one item; an image or an annotation has some hundreds, an outline in detail thousands
_SPACES = " \t\r\n"
_SPACE = re.compile(f"[{_SPACES}]*")
_DECODER = json.JSONDecoder()
_TAIL = 2  # characters that may belong to a number of which the rest is not read yet: "e+"


def read_items(path: Path) -> Iterator[tuple[str, int | None, Any]]:
    """Yield (key, place, value) of a JSON object.

    An array comes as an empty list with the place None, then item by item with its place from 0; other values come
    whole with the place None.

    Raises:
        InvalidInput: the file cannot be read, is no JSON object, or has an item of more than 64 Mi characters.
    """
    try:
        with open_text(path) as file:
            yield from _Items(file, path).members()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"cannot read {os.fspath(path)!r} as JSON: {error}") from error


class _Items:
    def __init__(self, file: TextIO, path: Path) -> None:
        self._file, self._path = file, path
        self._text, self._at, self._before = "", 0, 0

    def members(self) -> Iterator[tuple[str, int | None, Any]]:
        self._expect("{")
        if self._next() == "}":
            self._expect("}")
        else:
            while True:
                key = self._value() if self._next() == '"' else self._fail("a key in quotes")
                self._expect(":")
                if self._next() == "[":
                    yield key, None, []
                    yield from ((key, place, item) for place, item in enumerate(self._array()))
                else:
                    yield key, None, self._value()
                if self._next() != ",":
                    break
                self._expect(",")
            self._expect("}")
        if self._next():
            self._fail("nothing behind the object")

    def _array(self) -> Iterator[Any]:
        self._expect("[")
        if self._next() != "]":
            while True:
                yield self._value()
                if self._next() != ",":
                    break
                self._expect(",")
        self._expect("]")

    def _value(self) -> Any:
        """Return the value that begins here, and go behind it."""
        self._next()
        while True:
            try:
                value, end = _DECODER.raw_decode(self._text, self._at)
            except RecursionError:
                self._fail("values that are nested less deeply")
            except ValueError:  # also of integers with more digits than Python takes
                if not self._more():
                    self._fail("a JSON value of at most 64 Mi characters")
                continue
            if end + _TAIL < len(self._text) or not self._more():
                self._at = end
                return value

    def _next(self) -> str:
        """Return the next sign that is no space, without going behind it; nothing at the end of the file."""
        if (sign := self._text[self._at : self._at + 1]) and sign not in _SPACES:
            return sign
        while True:
            space = _SPACE.match(self._text, self._at)
            self._at = space.end() if space else self._at
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._more():
                return ""

    def _expect(self, sign: str) -> None:
        if self._next() != sign:
            self._fail(repr(sign))
        self._at += 1

    def _more(self) -> bool:
        """Read on, in longer and longer steps, so that a long value is not looked at again and again."""
        rest = len(self._text) - self._at
        chunk = self._file.read(max(_CHUNK, rest)) if rest <= _LONGEST else ""
        if chunk:
            self._before += self._at
            self._text, self._at = self._text[self._at :] + chunk, 0
        return bool(chunk)

    def _fail(self, wanted: str) -> Any:
        there = self._text[self._at : self._at + 40]
        raise InvalidInput(
            f"{os.fspath(self._path)!r} is no JSON object that can be read: {wanted} must be at character "
            f"{self._before + self._at + 1}, not {there!r}"
        )
