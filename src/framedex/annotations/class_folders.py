"""Folders of images that are classes, as torchvision's ImageFolder has them: ``cat/1.jpg``, or ``train/cat/1.jpg``.

Many folders of photographs have folders in them, too. So folders are taken for classes by themselves only where nothing
else can be meant: see :func:`find_class_folders`.
"""

import os
import re
from dataclasses import dataclass

from framedex.annotations.labels import parse_labels
from framedex.annotations.parts import part_of, part_tags
from framedex.core.counts import counted
from framedex.core.left_out import is_left_out
from framedex.core.regular_files import scan
from framedex.core.suffixes import is_image
from framedex.errors import InvalidInput

_MOST = 20  # names in a message
_NO_CLASS = re.compile(
    r"(?i)[0-9 ._-]*|[0-9]{3}[a-z_]{5}|.*[0-9]{4}[-_. ][0-9]{1,2}.*|"
    r"(images?|imgs?|pic(s|tures?)|photos?|frames?|jpe?gimages|data|files|raw|originals?|full|thumb(nail)?s|small|large|"
    r"new|old|misc|other|various|backup|copy|copies|duplicates?|dcim|camera( roll)?|screenshots?|downloads?|albums?|"
    r"annotations?|labels?|masks?|left|right|input|output|source|train|val|valid|validation|test)([ _-]?[0-9]+)?"
)
"""Names of folders that are no class: numbers and dates, folders of cameras (DCF 2.0), and words for any images."""


@dataclass(frozen=True)
class ClassFolders:
    """Folders whose names are the labels of the images in them; a rule for paths.

    Attributes:
        classes: the names of the folders.
        has_parts: whether the folders of classes are in folders of parts, such as ``train``.
    """

    classes: frozenset[str]
    has_parts: bool

    def __call__(self, path: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the label and the tag that the path of an image states."""
        first, _, rest = path.partition("/")
        name = rest.partition("/")[0] if self.has_parts else first
        labels = parse_labels([name]) if name in self.classes and path != name else ()
        return labels, part_tags(first) if self.has_parts else ()

    def __str__(self) -> str:
        """Return what was recognised, in a phrase."""
        shown = ", ".join(sorted(self.classes)[:_MOST]) + (", …" if len(self.classes) > _MOST else "")
        return f"{counted(len(self.classes), 'folders')} as classes ({shown})"


def find_class_folders(folder: str, *, is_asked: bool | None) -> ClassFolders | None:
    """Return the folders of a folder that are classes; None if they are none.

    By themselves folders are classes only if there are two or more, in the folder or in folders named as parts (train,
    val, test), if no other file is beside or in them, if each has images and no folder, and if their names can be those
    of classes: no numbers, dates, or words such as ``images``.

    Args:
        folder: an absolute path.
        is_asked: True to take the folders for classes whatever their names and what else is in them; False for no
            classes; None to decide.

    Raises:
        InvalidInput: it is asked, and there are no folders.
    """
    if is_asked is False:
        return None
    tops, is_plain = _entries(folder)
    parts = [each for each in tops if part_of(each) is not None]
    has_parts = bool(parts) and len(parts) == len(tops)
    homes = [os.path.join(folder, each) for each in parts] if has_parts else [folder]  # noqa: PTH118
    found = [_entries(home) for home in homes]
    classes = {name for names, _ in found for name in names}
    if is_asked:
        if not classes:
            raise InvalidInput(f"{folder!r} has no folders that could be classes: leave class_folders away")
        return ClassFolders(frozenset(classes), has_parts)
    if len(classes) < 2 or not is_plain or not all(plain for _, plain in found):
        return None
    if not has_parts and any(_NO_CLASS.fullmatch(name) for name in classes):
        return None
    inner = [os.path.join(home, name) for home, (names, _) in zip(homes, found, strict=True) for name in names]  # noqa: PTH118
    return ClassFolders(frozenset(classes), has_parts) if all(map(_has_images_alone, inner)) else None


def _entries(folder: str) -> tuple[list[str], bool]:
    """Return the names of the visible folders in a folder, and whether nothing else is there."""
    names, is_plain = [], True
    try:
        with scan(folder) as entries:
            for entry in entries:
                if is_left_out(entry.name):
                    continue
                if entry.is_dir():
                    names.append(entry.name)
                else:
                    is_plain = False
    except OSError:
        return [], False
    return sorted(names), is_plain


def _has_images_alone(folder: str) -> bool:
    try:
        with scan(folder) as entries:
            visible = [entry for entry in entries if not is_left_out(entry.name)]
            return bool(visible) and all(is_image(entry.name) and not entry.is_dir() for entry in visible)
    except OSError:
        return False
