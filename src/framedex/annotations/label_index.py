"""Labels and captions of images by image name."""

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, NamedTuple

from framedex.annotations.labels import parse_labels, storable
from framedex.annotations.problems import Problems
from framedex.annotations.source_lists import SourceLists
from framedex.annotations.source_values import SourceValues

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
    """Labels and captions by file name: the path within the source, or the base name.

    Attributes:
        labels: label names by file, in order of appearance, without duplicates.
        captions: captions by file; several are joined by newlines.
        of_stems: label names by path without its suffix, as YOLO folders give them.
        matched: the keys that lookups matched.
        lists: the class lists of the files, and the ids of their images.
        values: tags and further values by file, as :meth:`key_of` names it.
        rules: what paths state; they hold beside the files.
        problems: unusable parts of the files.
        sources: what was read, a phrase each, such as the name of a file.
        ignored: files that look like annotations but were not read.
    """

    labels: dict[str, tuple[str, ...]] = field(default_factory=dict)
    captions: dict[str, str] = field(default_factory=dict)
    of_stems: dict[str, tuple[str, ...]] = field(default_factory=dict)
    matched: set[str] = field(default_factory=set)
    lists: SourceLists = field(default_factory=SourceLists)
    values: SourceValues = field(default_factory=SourceValues)
    rules: list[PathRule] = field(default_factory=list)
    problems: Problems = field(default_factory=Problems)
    sources: list[str] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)
    _unannotated: set[str] = field(default_factory=set)  # files listed without labels and captions
    _complete: set[str | None] = field(default_factory=set)  # files whose labels are a complete list
    _with_slashes: dict[str, str] = field(default_factory=dict)  # names with backslashes, which may be separators

    def find(self, path: str) -> tuple[tuple[str, ...], str | None]:
        """Return (labels, caption) of the file at a path within the source.

        Classes of YOLO folders are labels, too, unless another file has the complete list of the image's labels.
        """
        labels: tuple[str, ...] = ()
        caption = None
        if (key := self._key(path)) is not None:
            labels, caption = self.labels.get(key, ()), self.captions.get(key)
            if labels or caption is not None:
                self.matched.add(key)
        stem = os.path.splitext(path)[0]  # noqa: PTH122 - names may be any bytes
        if stem in self.of_stems:
            self.matched.add(_stem_key(stem))
            if key not in self._complete:
                labels = tuple(dict.fromkeys(labels + self.of_stems[stem]))
        if key not in self._complete:
            for rule in self.rules:
                labels = tuple(dict.fromkeys(labels + rule(path)[0]))
        return labels, caption

    def facts_of(self, path: str) -> tuple[tuple[str, ...], Mapping[str, Any]]:
        """Return the tags and the further values of the file at a path within the source."""
        tags: tuple[str, ...] = ()
        values: Mapping[str, Any] = {}
        stem = os.path.splitext(path)[0]  # noqa: PTH122
        for names in ((path, path.rpartition("/")[2]), (_stem_key(stem), _stem_key(stem.rpartition("/")[2]))):
            for name in names:
                if name in self.values:
                    of_file, values_of_file = self.values.of(name)
                    tags, values = tags + of_file, {**values_of_file, **values}
                    break
        for rule in self.rules:
            tags += rule(path)[1]
        return tuple(dict.fromkeys(tags)), values

    @property
    def has_facts(self) -> bool:
        """True if some file may have tags or further values."""
        return bool(self.values) or bool(self.rules)

    def _key(self, path: str) -> str | None:
        """Return the key that matches a path: the path itself, or else its base name."""
        for name in (path, path.rpartition("/")[2]):
            for key in (name, self._with_slashes.get(name)):
                if key is not None and (key in self.labels or key in self.captions or key in self._unannotated):
                    return key
        return None

    @property
    def unmatched(self) -> int:
        """The number of annotated files that no lookup matched."""
        return len(self.labels.keys() | self.captions.keys()) + len(self.of_stems) - len(self.matched)

    def unmatched_names(self) -> Iterator[str]:
        """Yield the names of annotated files that no lookup matched, as far as annotations give them."""
        names = chain(self.labels, (name for name in self.captions if name not in self.labels))
        yield from (name for name in names if name not in self.matched)
        yield from (stem for stem in self.of_stems if _stem_key(stem) not in self.matched)

    def add(self, row: ImageLabels) -> None:
        """Add the labels and the caption of one row; both may be missing."""
        if row.tags or row.values:
            name = os.path.normpath(row.name.replace("\\", "/"))
            self.values.add(_stem_key(name) if row.is_stem else name, row.tags, row.values or {})
        if row.is_stem:
            if labels := parse_labels(row.labels):
                self.of_stems[row.name] = labels
            return
        name, caption = os.path.normpath(row.name), row.caption
        if row.complete:
            self._complete.add(name)
        if "\\" in name:
            self._with_slashes[os.path.normpath(name.replace("\\", "/"))] = name
        if labels := parse_labels(row.labels):
            self.labels[name] = tuple(dict.fromkeys(self.labels.get(name, ()) + labels))
        if caption and caption.strip():
            caption = storable(caption)
            earlier = self.captions.get(name)
            self.captions[name] = caption if earlier is None else f"{earlier}\n{caption}"
        if name not in self.labels and name not in self.captions:
            self._unannotated.add(name)


def _stem_key(stem: str) -> str:
    return f"{stem}\0"  # no file has this name
