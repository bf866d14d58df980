"""Labels and captions of images by image name."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, NamedTuple

from framedex.annotations.image_names import NO_SUFFIX, ImageNames, name_text
from framedex.annotations.labels import parse_labels, storable
from framedex.annotations.problems import Problems
from framedex.annotations.source_lists import SourceLists
from framedex.annotations.source_values import SourceValues
from framedex.core.name_forms import local_name

PathRule = Callable[[str], tuple[tuple[str, ...], tuple[str, ...]]]
"""Return the labels and the tags that the path of an image within the source states."""


class ImageLabels(NamedTuple):
    """Labels and a caption of one image, from one part of an annotation file.

    Attributes:
        name: the image's path within the source, or its base name.
        labels: label names, in order. Labels of several rows of an image are joined.
        caption: the caption, or None.
        complete: whether the labels are the complete list of the image's labels, which may be empty.
        is_stem: whether the name is a path without its suffix.
        tags: the parts that the layout puts the image into, such as ``train``.
        values: further values of the image by name, such as the other columns of a table; None for none.
    """

    name: str
    labels: tuple[str, ...]
    caption: str | None = None
    complete: bool = False
    is_stem: bool = False
    tags: tuple[str, ...] = ()
    values: Mapping[str, Any] | None = None


@dataclass
class Annotations:
    """Labels and captions by image name, see :mod:`framedex.annotations.image_names`.

    Attributes:
        labels: label names by image name, in order of appearance, without duplicates.
        captions: captions by image name; several are joined by newlines.
        matched: the names that lookups matched.
        lists: the class lists of the files, and the ids of their images.
        values: tags and further values by image name.
        rules: what paths state; they hold beside the files.
        problems: unusable parts of the files.
        sources: what was read, a phrase each, such as the name of a file.
        ignored: files that look like annotations but were not read.
    """

    labels: dict[str, tuple[str, ...]] = field(default_factory=dict)
    captions: dict[str, str] = field(default_factory=dict)
    matched: set[str] = field(default_factory=set)
    lists: SourceLists = field(default_factory=SourceLists)
    values: SourceValues = field(default_factory=SourceValues)
    rules: list[PathRule] = field(default_factory=list)
    problems: Problems = field(default_factory=Problems)
    sources: list[str] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)
    _names: dict[str, int] = field(default_factory=dict)  # all names, also those without labels: their files, as bits
    _file: int = 1
    _images: ImageNames = field(default_factory=ImageNames)
    _complete: set[str] = field(default_factory=set)  # names whose labels are a complete list

    def begin_file(self) -> None:
        """Begin the rows of a further file or folder."""
        self._file <<= 1
        self.lists.begin_file(loose=False)

    def find_images(self, paths: Callable[[], Iterable[str]]) -> None:
        """Find the images that names mean; before it, names mean the image of their path alone.

        Args:
            paths: returns the paths of all files of the source.
        """
        if self._names:
            self._images.find(self._names, paths, self.problems)

    def find(self, path: str) -> tuple[tuple[str, ...], str | None]:
        """Return (labels, caption) of the file at a path within the source.

        If one name has the complete list of its labels, the others add none.
        """
        names = self._images.of(path, self._names) if self._names else []
        self.matched.update(name for name in names if name in self.labels or name in self.captions)
        captions = [self.captions[name] for name in names if name in self.captions]
        complete = [name for name in names if name in self._complete]
        labels = tuple(chain.from_iterable(self.labels.get(name, ()) for name in complete or names))
        if not complete:
            labels += tuple(chain.from_iterable(rule(path)[0] for rule in self.rules))
        return tuple(dict.fromkeys(labels)), "\n".join(captions) or None

    def facts_of(self, path: str) -> tuple[tuple[str, ...], Mapping[str, Any]]:
        """Return the tags and the further values of the file at a path within the source."""
        tags: tuple[str, ...] = ()
        values: Mapping[str, Any] = {}
        for name in self._images.of(path, self._names):
            if name in self.values:
                of_file, values_of_file = self.values.of(name)
                tags, values = tags + of_file, {**values_of_file, **values}
        for rule in self.rules:
            tags += rule(path)[1]
        return tuple(dict.fromkeys(tags)), values

    @property
    def has_facts(self) -> bool:
        """True if some file may have tags or further values."""
        return bool(self.values) or bool(self.rules)

    @property
    def unmatched(self) -> int:
        """The number of annotated files that no lookup matched."""
        return sum(1 for _ in self._unmatched())

    def unmatched_names(self) -> Iterator[str]:
        """Yield the names of annotated files that no lookup matched, as far as annotations give them."""
        return map(name_text, self._unmatched())

    def _unmatched(self) -> Iterator[str]:
        names = chain(self.labels, (name for name in self.captions if name not in self.labels))
        return (name for name in names if name not in self.matched and name not in self._images.ambiguous)

    def add(self, row: ImageLabels) -> None:
        """Add the labels and the caption of one row; both may be missing."""
        name, caption = local_name(row.name), row.caption
        if row.is_stem:
            name += NO_SUFFIX
        self._names[name] = self._names.get(name, 0) | self._file
        if row.tags or row.values:
            self.values.add(name, parse_labels(row.tags), row.values or {})
        if row.complete:
            self._complete.add(name)
        if labels := parse_labels(row.labels):
            self.labels[name] = tuple(dict.fromkeys(self.labels.get(name, ()) + labels))
        if caption and caption.strip():
            caption = storable(caption)
            earlier = self.captions.get(name)
            self.captions[name] = caption if earlier is None else f"{earlier}\n{caption}"

    def add_values(self, path: str, tags: Sequence[str], values: Mapping[str, Any]) -> None:
        """Add tags and further values of the file at a path within the source."""
        self._names.setdefault(path, 0)
        self.values.add(path, tags, values)
