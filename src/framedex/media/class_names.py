"""Names of classes as YOLO tools keep them: ``names`` of a ``data.yaml``, or the lines of a ``classes.txt``.

Which files of a folder may have them is said here, for all that read YOLO folders.

Of YAML 1.2.2 this reads what such files are made of: a list or a mapping from numbers, in block or in flow style, of
plain and quoted scalars of one line each.
"""

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from framedex.errors import InvalidInput
from framedex.regular_files import read_text

NAMES = ("data.yaml", "config.yaml", "classes.txt", "labels/classes.txt")
"""The files of a YOLO folder that may have the names of its classes; the first one that has some counts."""
_QUOTED = r""" "(?:[^"\\]|\\.)*" | '(?:[^']|'')*' """
_NUMBER = """[0-9]{1,9}|"[0-9]{1,9}"|'[0-9]{1,9}'"""
_KEY = re.compile(r"""^(?:names|"names"|'names')[ \t]*:(?=\s|$)""", re.MULTILINE)
_BLOCK = re.compile(
    rf"""[ \t]* (?: -[ \t] | (?P<number>{_NUMBER})[ \t]*:[ \t] ) [ \t]*
    (?: (?P<quoted>{_QUOTED}) | (?P<plain>[^\s"'\[\]{{}}&*!|>%@`\#].*?) ) [ \t]* (?:[ \t]\#.*)? $""",
    re.VERBOSE,
)
_GAP = r"(?: \s | \#[^\n]*(?:\n|$) )*"
_FLOW = re.compile(
    rf"""{_GAP} (?: (?P<number>{_NUMBER})\s*:\s )? {_GAP}
    (?: (?P<quoted>{_QUOTED}) | (?P<plain>[^\s"',\[\]{{}}\#](?:(?!\s\#)[^,\[\]{{}}\n])*?) )? {_GAP} (?P<end>[,\]}}])""",
    re.VERBOSE,
)
_EMPTY_LINE = re.compile(r"\s*(#.*)?$")
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)", re.DOTALL)
_SIGNS = {
    "0": "\0", "a": "\a", "b": "\b", "t": "\t", "n": "\n", "v": "\v", "f": "\f", "r": "\r", "e": "\x1b", " ": " ",
    '"': '"', "/": "/", "\\": "\\", "N": "\x85", "_": "\xa0", "L": "\u2028", "P": "\u2029", "\t": "\t",
}  # fmt: skip


def class_names_of(folder: Path) -> dict[int, str] | None:
    """Return the names of a YOLO folder's classes by number; None where no file of :data:`NAMES` is there to say them.

    Raises:
        InvalidInput: a file cannot be read, or the names are written in another way.
    """
    said = None
    for path in (folder / name for name in NAMES):
        names = read_class_names(path) if path.is_file() else None
        if names:
            return names
        said = names if said is None else said
    return said


def holds_class_names(path: str) -> bool:
    """Return whether a file among those of labels is one of names."""
    return os.path.basename(path) in NAMES  # noqa: PTH119 - names may be any bytes


def read_class_names(path: Path) -> dict[int, str] | None:
    """Return the names of classes by number; None where the file has none, as it is of another kind.

    Args:
        path: a ``.yaml`` file with ``names``, or a text file with a name a line.

    Raises:
        InvalidInput: the file cannot be read, or the names are written in another way.
    """
    try:
        text = read_text(path, encoding="utf-8-sig")
    except (OSError, ValueError) as error:
        raise InvalidInput(f"cannot read the class names {path}: {error}") from error
    if path.suffix != ".yaml":
        return dict(enumerate(line.strip() for line in text.splitlines() if line.strip()))
    key = _KEY.search(text)
    return None if key is None else dict(_numbered(path, text[key.end() :]))


def _numbered(path: Path, text: str) -> Iterator[tuple[int, str]]:
    found = _flow(path, text) if text.lstrip(" \t").startswith(("[", "{")) else _block(path, text)
    for place, (number, name) in enumerate(found):
        yield (place if number is None else int(number.strip("\"'")), name)


def _flow(path: Path, text: str) -> Iterator[tuple[str | None, str]]:
    """Yield (number, name) of a collection in brackets."""
    at = text.index(text.lstrip(" \t")[0]) + 1
    while True:
        item = _FLOW.match(text, at)
        if item is None:
            raise _unreadable(path, text[at:])
        if item["quoted"] or item["plain"]:
            yield item["number"], _scalar(path, item)
        if item["end"] != ",":
            return
        at = item.end()


def _block(path: Path, text: str) -> Iterator[tuple[str | None, str]]:
    """Yield (number, name) of the lines below the key."""
    for line in text.split("\n"):
        if _EMPTY_LINE.match(line):
            continue
        item = _BLOCK.match(line.rstrip("\r"))
        if item is not None:
            yield item["number"], _scalar(path, item)
        elif line[0] in " \t-":
            raise _unreadable(path, line)
        else:
            return


def _scalar(path: Path, item: re.Match[str]) -> str:
    if (quoted := item["quoted"]) is None:
        return item["plain"]
    if quoted[0] == "'":
        return quoted[1:-1].replace("''", "'")
    try:
        return _ESCAPE.sub(_unescaped, quoted[1:-1])
    except (KeyError, ValueError):
        raise _unreadable(path, quoted) from None


def _unescaped(escape: re.Match[str]) -> str:
    sign = escape[1]
    return chr(int(sign[1:], 16)) if len(sign) > 1 else _SIGNS[sign]


def _unreadable(path: Path, part: str) -> InvalidInput:
    return InvalidInput(
        f"{path}: 'names' must be a list of class names, or a mapping from class numbers to names, each on one line; "
        f"cannot understand {part.strip()[:60]!r}"
    )


def data_yaml(names: Sequence[str]) -> str:
    """Return the content of a ``data.yaml`` with names of classes, which :func:`read_class_names` gives back."""
    lines = ["path: .", "train: images", "val: images", f"nc: {len(names)}"]
    lines += (
        ["names:", *(f"  {number}: {_quoted(name)}" for number, name in enumerate(names))] if names else ["names: []"]
    )
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    """Return a text as a double-quoted scalar (YAML 1.2.2, section 7.3.1)."""
    return '"' + "".join(_escaped(sign) for sign in text) + '"'


def _escaped(sign: str) -> str:
    if sign in '"\\':
        return "\\" + sign
    if sign.isprintable():
        return sign
    number = ord(sign)
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"
