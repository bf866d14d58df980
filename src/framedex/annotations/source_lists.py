"""Lists of annotation files beside their annotations: classes with their ids, and the ids of images."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import PurePosixPath


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


@dataclass(frozen=True, slots=True)
class SourceImage:
    """An image in the list of an annotation file.

    Attributes:
        name: the image's path within the source, or its base name.
        id: the id of the image in the file, as text.
    """

    name: str
    id: str


@dataclass
class SourceLists:
    """The lists of some annotation files.

    Attributes:
        classes: in the order of the files.
        loose: whether ids also match images by base name if no image has their path, as in
            :class:`framedex.annotations.box_index.BoxIndex`.
    """

    classes: list[SourceClass] = field(default_factory=list)
    loose: bool = False
    _ids: dict[str, str] = field(default_factory=dict)
    _loose_ids: dict[str, str | None] = field(default_factory=dict)

    def add_all(self, entries: Iterable[SourceClass | SourceImage]) -> None:
        """Add the entries of a file. The first id of an image counts."""
        for each in entries:
            if isinstance(each, SourceClass):
                self.classes.append(each)
                continue
            name = str(PurePosixPath(each.name.replace("\\", "/")))
            self._ids.setdefault(name, each.id)
            if self.loose and (base_name := name.rpartition("/")[2]) != name:
                shared = self._loose_ids.setdefault(base_name, each.id) != each.id
                self._loose_ids[base_name] = None if shared else each.id

    @property
    def has_image_ids(self) -> bool:
        """True if some image has an id."""
        return bool(self._ids)

    def image_id(self, path: str) -> str | None:
        """Return the id of the image at a path within the source, or None."""
        base_name = path.rpartition("/")[2]
        for name in (path, base_name):
            if name in self._ids:
                return self._ids[name]
        return self._loose_ids.get(base_name)
