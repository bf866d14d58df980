"""Labels and captions of images, by the names of the images."""

import os
from dataclasses import dataclass, field
from typing import NamedTuple

from framedex.annotations.labels import parse_labels, storable


class ImageLabels(NamedTuple):
    """Labels and a caption of one image, as one part of an annotation file gives them.

    Attributes:
        name: the image's path within the source, or its bare name.
        labels: label names, in order; several rows of an image add up.
        caption: a caption, if there is one.
        complete: whether these are all labels of the image, maybe none.
        is_stem: whether the name is a path without its suffix.
    """

    name: str
    labels: tuple[str, ...]
    caption: str | None = None
    complete: bool = False
    is_stem: bool = False


@dataclass
class Annotations:
    """Labels and captions by file name: the path within the source, or the bare name.

    Attributes:
        labels: label names by file, in order of appearance, each once.
        captions: captions by file; several are joined by newlines.
        of_stems: label names by path without its suffix, as YOLO folders give them.
        matched: the keys that were asked for and found.
    """

    labels: dict[str, tuple[str, ...]] = field(default_factory=dict)
    captions: dict[str, str] = field(default_factory=dict)
    of_stems: dict[str, tuple[str, ...]] = field(default_factory=dict)
    matched: set[str] = field(default_factory=set)
    _silent: set[str] = field(default_factory=set)  # files that are named without labels and captions
    _complete: set[str | None] = field(default_factory=set)  # files whose labels are a complete list
    _with_slashes: dict[str, str] = field(default_factory=dict)  # names with backslashes, which may be separators

    def find(self, path: str) -> tuple[tuple[str, ...], str | None]:
        """Return (labels, caption) of the file at a path within the source.

        Objects of YOLO folders are labels, too, unless another file lists all that it has.
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
        """Return the name by which a path was annotated: itself, or else its bare name."""
        for name in (path, path.rpartition("/")[2]):
            for key in (name, self._with_slashes.get(name)):
                if key is not None and (key in self.labels or key in self.captions or key in self._silent):
                    return key
        return None

    @property
    def unmatched(self) -> int:
        """How many annotated files no picture had the name of."""
        return len(self.labels.keys() | self.captions.keys()) + len(self.of_stems) - len(self.matched)

    def add(self, row: ImageLabels) -> None:
        """Add the labels and the caption of one row; there may be neither."""
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
            known = self.captions.get(name)
            self.captions[name] = caption if known is None else f"{known}\n{caption}"
        if name not in self.labels and name not in self.captions:
            self._silent.add(name)


def _stem_key(stem: str) -> str:
    return f"{stem}\0"  # as no file is named
