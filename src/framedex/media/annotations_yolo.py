"""Labels of a YOLO folder: for each picture below ``images`` a text file below ``labels``, a line an object."""

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from framedex.errors import InvalidInput
from framedex.media.box_files import files_below
from framedex.media.class_names import class_names_of, holds_class_names
from framedex.regular_files import read_text

_IMAGES, _LABELS, _SUFFIX = "images", "labels", ".txt"


def read_yolo(folder: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield (a picture's path within the folder, without its suffix; the names of its objects, each once).

    A YOLO folder has class names (see :mod:`framedex.media.class_names`), and ``labels`` beside ``images``, in itself
    or in folders in it such as ``train``.

    Raises:
        InvalidInput: it is one, and a file of it cannot be understood; the message names it and what would be right.
    """
    parts = [part for part in _parts(folder) if _has(folder, part, _IMAGES) and _has(folder, part, _LABELS)]
    names = class_names_of(Path(folder)) if parts else None
    if names is None:
        return
    for part in parts:
        root = os.path.join(folder, part, _LABELS)  # noqa: PTH118 - names may be any bytes
        for name in files_below(root, _SUFFIX):
            if holds_class_names(name):
                continue
            labels = _read(os.path.join(root, name), names)  # noqa: PTH118
            yield os.path.join(part, _IMAGES, name.removesuffix(_SUFFIX)), labels  # noqa: PTH118


def _parts(folder: str) -> list[str]:
    """Return the folder itself and the folders in it, relative to it."""
    try:
        with os.scandir(folder) as entries:
            return ["", *sorted(entry.name for entry in entries if entry.is_dir() and not entry.name.startswith("."))]
    except OSError:  # the walk over the pictures says so
        return []


def _has(folder: str, part: str, name: str) -> bool:
    return os.path.isdir(os.path.join(folder, part, name))  # noqa: PTH112, PTH118


def _read(path: str, names: Mapping[int, str]) -> tuple[str, ...]:
    try:
        lines = read_text(path, encoding="utf-8-sig").splitlines()
    except (OSError, ValueError) as error:
        raise InvalidInput(f"cannot read the labels {path!r}: {error}") from error
    return tuple(dict.fromkeys(_name(path, place, line, names) for place, line in enumerate(lines, 1) if line.strip()))


def _name(path: str, place: int, line: str, names: Mapping[int, str]) -> str:
    number = line.split(maxsplit=1)[0]
    name = names.get(int(number)) if re.fullmatch("[0-9]{1,9}", number) else None
    if name is None:
        raise InvalidInput(
            f"{path!r}, line {place}: a line begins with the number of a class, 0 to {max(names, default=-1)}, "
            f"not {number[:20]!r}"
        )
    return name
