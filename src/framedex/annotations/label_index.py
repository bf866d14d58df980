"""Labels and captions of images by image name."""

import os
from dataclasses import dataclass, field
from typing import NamedTuple

from framedex.annotations.labels import parse_labels, storable
from framedex.annotations.source_lists import SourceLists


class ImageLabels(NamedTuple):
    """Labels and a caption of one image, from one part of an annotation file.

    Attributes:
        name: the image's path within the source, or its base name.
        labels: label names, in order. Labels of several rows of an image are joined.
        caption: the caption, or None.
        complete: whether the labels are the complete list of the image's labels, which may be empty.
        is_stem: whether the name is a path without its suffix.
    """

    name: str
    labels: tuple[str, ...]
    caption: str | None = None
    complete: bool = False
    is_stem: bool = False


@dataclass
class Annotations:
    """Labels and captions by file name: the path within the source, or the base name.

    Attributes:
        labels: label names by file, in order of appearance, without duplicates.
        captions: captions by file; several are joined by newlines.
        of_stems: label names by path without its suffix, as YOLO folders give them.
        matched: the keys that lookups matched.
        lists: the class lists of the files, and the ids of their images.
    """

    labels: dict[str, tuple[str, ...]] = field(default_factory=dict)
    captions: dict[str, str] = field(default_factory=dict)
    of_stems: dict[str, tuple[str, ...]] = field(default_factory=dict)
    matched: set[str] = field(default_factory=set)
    lists: SourceLists = field(default_factory=SourceLists)
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
        return labels, caption

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

    def add(self, row: ImageLabels) -> None:
        """Add the labels and the caption of one row; both may be missing."""
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
