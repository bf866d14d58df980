"""Class names of YOLO folders: ``names`` in a YAML file, or the lines of ``classes.txt`` or darknet's ``obj.names``.

The module has the reader and the writer of ``data.yaml``.
"""

import os
import re
import reprlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from framedex.annotations.folders import subfolders
from framedex.core.regular_files import TooLarge, has_file, read_text, scan
from framedex.errors import InvalidInput

DATA_YAML = "data.yaml"
_YAML_NAMES = (DATA_YAML, "config.yaml")
"""Files of a YOLO folder that may describe its labels, in order of preference. Other YAML files follow them."""
_LIST = "classes.txt"
_DARKNET = ".names"
WANTED = f"{DATA_YAML} or another YAML file with 'names', {_LIST} or obj{_DARKNET}"
"""Files of a YOLO folder that may contain class names."""
_YAML_SUFFIXES = (".yaml", ".yml")
NO_NAMES: Mapping[int, Sequence[str]] = MappingProxyType({})
_LARGEST = 2**24  # bytes of a file: some 500,000 names
_DEEPEST = 32  # nested collections; deeper ones overflow the stack of libyaml's composer


def yaml_files(folder: Path) -> list[Path]:
    """Return the YAML files at the top of a folder that may describe it, the preferred ones first."""
    names = _files_with(folder, _YAML_SUFFIXES)
    preferred = [name for name in _YAML_NAMES if name in names]
    return [folder / name for name in (*preferred, *(name for name in names if name not in preferred))]


def _files_with(folder: Path, suffixes: str | tuple[str, ...]) -> list[str]:
    """Return the names of the files with some suffixes at the top of a folder, sorted."""
    try:
        with scan(folder) as entries:
            return sorted(each.name for each in entries if each.name.lower().endswith(suffixes) and not each.is_dir())
    except OSError:
        return []


def class_names_of(folder: Path) -> dict[int, str] | None:
    """Return the class names of a YOLO folder by number, or None if no file contains any.

    They are those of ``data.yaml``, of ``config.yaml``, of another YAML file at the top, of a ``classes.txt`` at the
    top, in ``labels`` or beside the images, or of darknet's ``obj.names``; the first of these counts.

    Raises:
        InvalidInput: a file cannot be read, its ``names`` are neither a list nor a mapping, or files of equal rank have
            different names.
    """
    found = names_file_of(folder)
    return None if found is None else found[1]


def names_file_of(folder: Path) -> tuple[str, dict[int, str]] | None:
    """Return the path within a folder of the file with its class names, and these; see :func:`class_names_of`."""
    top = _files_with(folder, (*_YAML_SUFFIXES, _DARKNET))
    others = [name for name in top if not name.lower().endswith(_DARKNET) and name not in _YAML_NAMES]
    beside_images = [f"{each.name}/{_LIST}" for each in subfolders(folder)]
    of_darknet = [name for name in top if name.lower().endswith(_DARKNET)]
    of_darknet = of_darknet or [f"data/{name}" for name in _files_with(folder / "data", _DARKNET)]
    first = None
    for names in ([DATA_YAML], [_YAML_NAMES[1]], others, [_LIST], [f"labels/{_LIST}"], beside_images, of_darknet):
        found = [(name, read_class_names(folder / name)) for name in names if has_file(folder / name)]
        some = [(name, each) for name, each in found if each]
        for name, each in some[1:]:
            if each != some[0][1]:
                raise InvalidInput(
                    f"{folder / some[0][0]} and {folder / name} have different names of classes; those in "
                    f"{DATA_YAML} would count"
                )
        if some:
            return some[0]
        first = first or next(((name, each) for name, each in found if each is not None), None)
    return first


def holds_class_names(path: str) -> bool:
    """Return whether a file below the label folder contains class names instead of labels."""
    return os.path.basename(path) == _LIST  # noqa: PTH119 - names may be any bytes


def read_class_names(path: Path) -> dict[int, str] | None:
    """Return class names by number, or None for a YAML file without ``names``.

    Args:
        path: a YAML file with ``names``, or a text file with one name a line, the first one of class 0; at most 16 MiB.

    Raises:
        InvalidInput: the file cannot be read, or its ``names`` are neither a list nor a mapping from numbers.
    """
    if path.suffix.lower() not in _YAML_SUFFIXES:
        return {number: line.strip() for number, line in enumerate(_text(path).splitlines()) if line.strip()}
    names = yaml_value(path, "names")
    return None if names is None else _numbered(path, names)


def yaml_value(path: Path, key: str) -> Any:
    """Return a value of a YAML file, in which all scalars are text; None for a file without the key.

    The size limit of the file bounds memory and time: an alias refers to the same value and is never expanded.

    Args:
        path: the file, of at most 16 MiB.
        key: of the mapping that the file holds.

    Raises:
        InvalidInput: the file cannot be read.
    """
    text = _text(path)
    content = _loaded(path, text) if key in text else None
    return content.get(key) if isinstance(content, dict) else None


def _text(path: Path) -> str:
    try:
        return read_text(path, encoding="utf-8-sig", max_bytes=_LARGEST)
    except TooLarge:
        raise InvalidInput(
            f"{path} has more than {_LARGEST:,} bytes; a file of class names has a line for each"
        ) from None
    except (OSError, ValueError) as error:
        raise InvalidInput(f"cannot read the class names {path}: {error}") from error


def _loaded(path: Path, text: str) -> Any:
    """Return the first document of a YAML text; all scalars are text."""
    import yaml

    # The base loader has no types: a class called "no" or "1.10" stays text, and no code runs.
    loader: Any = yaml.CBaseLoader if yaml.__with_libyaml__ else yaml.BaseLoader
    try:
        depth = 0
        for event in yaml.parse(text, Loader=loader):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > _DEEPEST:
                raise InvalidInput(f"{path} has collections nested more than {_DEEPEST} deep; class names need two")
            if isinstance(event, yaml.DocumentEndEvent):
                break
        return next(yaml.load_all(text, Loader=loader), None)
    except yaml.YAMLError as error:
        raise InvalidInput(f"cannot read {path} as YAML: {' '.join(str(error).split())}") from error


def _numbered(path: Path, names: Any) -> dict[int, str]:
    if names == "":  # a key without a value
        return {}
    pairs = list(enumerate(names)) if isinstance(names, list) else _pairs(names)
    if pairs is None or not all(isinstance(name, str) for _, name in pairs):
        raise InvalidInput(
            f"{path}: 'names' must be a list of class names, or a mapping from class numbers to names, "
            f"not {reprlib.repr(names)}"
        )
    return dict(pairs)


def _pairs(names: Any) -> list[tuple[int, Any]] | None:
    """Return the items of a mapping with numbers as keys, or None for any other value."""
    if not isinstance(names, dict) or not all(key.isascii() and key.isdigit() and len(key) < 10 for key in names):
        return None
    return [(int(key), name) for key, name in names.items()]


def data_yaml(
    names: Sequence[str],
    parts: Mapping[str, Sequence[str]],
    *,
    keypoints: int = 0,
    keypoint_names: Mapping[int, Sequence[str]] = NO_NAMES,
) -> str:
    """Return the content of a ``data.yaml``, readable by :func:`read_class_names`.

    It has no ``path``: readers then take paths relative to the file, wherever they are started.

    Args:
        names: of the classes, by number.
        parts: by name, such as ``train``, the folders or lists of its images, relative to the file.
        keypoints: the number of key points of each line; 0 for none.
        keypoint_names: their names, by the number of the class.
    """
    lines = [f"{part}: {_plain(places)}" for part, places in parts.items()]
    lines += [f"kpt_shape: [{keypoints}, 3]"] * bool(keypoints)
    if keypoint_names:
        lines += ["kpt_names:", *(f"  {n}: [{', '.join(map(_quoted, each))}]" for n, each in keypoint_names.items())]
    lines.append(f"nc: {len(names)}")
    lines += (
        ["names:", *(f"  {number}: {_quoted(name)}" for number, name in enumerate(names))] if names else ["names: []"]
    )
    return "\n".join(lines) + "\n"


def _plain(places: Sequence[str]) -> str:
    """Return one place as a plain scalar, or several as a list."""
    texts = [text if re.fullmatch("[A-Za-z0-9_][A-Za-z0-9_/.-]*", text) else _quoted(text) for text in places]
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"


def _quoted(text: str) -> str:
    """Return a text as a double-quoted YAML scalar (YAML 1.2.2, section 7.3.1)."""
    return '"' + "".join(map(_escaped, text)) + '"'


def _escaped(sign: str) -> str:
    if sign in '"\\':
        return "\\" + sign
    if sign.isprintable():
        return sign
    number = ord(sign)
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"
