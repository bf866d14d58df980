"""Lists of annotation files beside their annotations: classes with their ids, and the ids of images."""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from framedex.annotations.image_names import ImageNames
from framedex.annotations.problems import Problems
from framedex.core.name_forms import local_name


@dataclass(frozen=True, slots=True)
class SourceClass:
    """A class in the list of an annotation file.

    Attributes:
        name: as it is stored as a label.
        id: the number of the class in the file; None if it has no whole number.
        supercategory: the superior class (COCO), or None.
        details: further values of the class as the text of a JSON object: names of key points and their skeleton
            (COCO); None for none.
    """

    name: str
    id: int | None = None
    supercategory: str | None = None
    details: str | None = None


def merged_classes(classes: Iterable[SourceClass]) -> list[SourceClass]:
    """Return classes without those of a name that came before, which get what they lack from the later ones.

    Files of one data set have the same categories with other details: those of key points alone have their names.
    """
    merged: dict[str, SourceClass] = {}
    for each in classes:
        first = merged.get(each.name, each)
        details = {**json.loads(each.details or "{}"), **json.loads(first.details or "{}")}
        merged[each.name] = SourceClass(
            each.name,
            each.id if first.id is None else first.id,
            first.supercategory or each.supercategory,
            json.dumps(details) if details else None,
        )
    return [each for each in merged.values() if each.name]


@dataclass(frozen=True, slots=True)
class SourceImage:
    """An image in the list of an annotation file.

    Attributes:
        name: the image's path within the source, or its base name.
        id: the id of the image in the file, as text.
    """

    name: str
    id: str


class SourceLists:
    """The lists of some annotation files.

    Attributes:
        classes: in the order of the files.
    """

    def __init__(self) -> None:
        self.classes: list[SourceClass] = []
        self._ids: dict[str, str] = {}
        self._files: dict[str, int] = {}  # the files that have a name, as bits
        self._file, self._loose = 1, 0
        self._images = ImageNames()

    def begin_file(self, *, loose: bool) -> None:
        """Begin the lists of a further file, see :meth:`framedex.annotations.box_index.BoxIndex.begin_file`."""
        self._file <<= 1
        self._loose |= self._file * loose

    def add_all(self, entries: Iterable[SourceClass | SourceImage]) -> None:
        """Add the entries of a file. The first id of an image counts."""
        for each in entries:
            if isinstance(each, SourceClass):
                self.classes.append(each)
                continue
            name = local_name(each.name)
            self._ids.setdefault(name, each.id)
            self._files[name] = self._files.get(name, 0) | self._file

    @property
    def has_image_ids(self) -> bool:
        """True if some image has an id."""
        return bool(self._ids)

    def find_images(self, paths: Callable[[], Iterable[str]], *, several_roots: bool = False) -> None:
        """Find the images that names mean; names that mean several have no ids."""
        if self._ids:
            self._images.find(self._files, paths, Problems(), loose=self._loose, several_roots=several_roots)

    def image_id(self, path: str) -> str | None:
        """Return the id of the image at a path within the source, or None."""
        return next((self._ids[name] for name in self._images.of(path, self._ids)), None)
