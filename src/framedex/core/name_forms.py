r"""Forms of a file name in lists and annotations: separators of Windows, decomposed letters of macOS, foreign folders.

A name that a file has is that file. Other forms are tried only if no file has the name as it is written.
"""

import os
import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

from framedex.core.regular_files import may_read, scan

_PLAIN = re.compile(
    r"[!#-&(-\[\]-~](?:[ -\[\]-~]*[!#-&(-\[\]-~])?"
)  # ASCII without backslashes; no blanks or quotes around
_DRIVE = re.compile(r"[A-Za-z]:/|//[^/]+/")
_QUOTED = re.compile(r"""(["'])(.+)\1""")
_FOLDERS = 64  # of which the names are in memory
_SURE = 1000  # files that are looked for before plain names of a list are taken as they are


def local_name(name: str) -> str:
    """Return a name in a file as a path of this machine, without ``.`` and empty parts; backslashes are letters."""
    return os.path.normpath(name)


def normal_name(name: str) -> str:
    """Return a name in a file with the separators of this machine, and without ``.`` and empty parts."""
    return os.path.normpath(name.replace("\\", "/"))


def inner_parts(path: str) -> list[str]:
    """Return the folders and the file name in a path with slashes, without those that lead upwards."""
    return [part for part in path.split("/") if part not in ("", ".", "..")]


def composed(text: str) -> str:
    """Return a text with composed letters (NFC), as ``é`` for the two characters that macOS stores."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)


class FilePlaces:
    """The files that the names in a list mean, relative to its folder.

    Names as a program writes them are looked for among the first thousand alone, so that a list of millions of names is
    read without a call for each.

    Args:
        folder: the absolute path that relative names are relative to.
    """

    def __init__(self, folder: str) -> None:
        self._folder, self._looks, self._is_odd = folder, 0, False
        self._names = lru_cache(_FOLDERS)(_names_by_form)

    def place(self, name: str) -> str:
        """Return the absolute path of the file that a name means; of none, the name's own with slashes."""
        path = os.path.normpath(os.path.join(self._folder, name))  # noqa: PTH118 - names may be any bytes
        if self._looks >= _SURE and not self._is_odd and _PLAIN.fullmatch(name):
            return path
        if not may_read(path):
            return path
        self._looks += 1
        if os.path.lexists(path):
            return path
        for form in self._forms(name):
            if may_read(form) and (found := self._existing(form)) is not None:
                self._is_odd = True
                return found
        return os.path.normpath(os.path.join(self._folder, _plain(name)))  # noqa: PTH118

    def _forms(self, name: str) -> Iterator[str]:
        """Yield absolute paths that a name may mean: first itself, then its ends below the folder, longest first."""
        text = _plain(name)
        yield os.path.normpath(os.path.join(self._folder, text))  # noqa: PTH118
        if text.startswith("/") or _DRIVE.match(text):
            parts = inner_parts(os.path.normpath(text))
            for start in range(len(parts)):
                yield os.path.join(self._folder, *parts[start:])  # noqa: PTH118

    def _existing(self, path: str) -> str | None:
        """Return the path of the file with a name in any form of its letters; None if none or several have it."""
        if os.path.lexists(path):
            return path
        if path.isascii():
            return None
        folder, name = os.path.split(path)
        if folder == path or (home := self._existing(folder)) is None:
            return None
        names = self._names(home).get(composed(name), ())
        return os.path.join(home, names[0]) if len(names) == 1 else None  # noqa: PTH118


def _plain(name: str) -> str:
    """Return a name without blanks and quotes around it, with slashes."""
    text = name.strip()
    return (quoted[2] if (quoted := _QUOTED.fullmatch(text)) else text).replace("\\", "/")


def _names_by_form(folder: str) -> dict[str, tuple[str, ...]]:
    """Return the names in a folder that have letters beyond ASCII, by their composed form."""
    names: dict[str, tuple[str, ...]] = {}
    try:
        with scan(folder) as entries:
            for entry in entries:
                if not entry.name.isascii():
                    form = composed(entry.name)
                    names[form] = (*names.get(form, ()), entry.name)
    except OSError:
        return {}
    return names
