"""Image-level annotations that lie beside the pictures, found by the exact names of their files."""

import csv
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from framedex.errors import InvalidInput
from framedex.media.annotations_coco import read_coco
from framedex.media.annotations_yolo import read_yolo
from framedex.media.csv_fields import long_fields
from framedex.media.labels import parse_labels, storable
from framedex.regular_files import open_text, regular

FILES = ("annotations.json", "image_annotations.csv", "image_annotations.parquet")


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
    _silent: set[str] = field(default_factory=set)  # files that are named, of which nothing is said
    _complete: set[str | None] = field(default_factory=set)  # files of which a list is all labels, maybe none
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

    def add(self, name: str, labels: tuple[str, ...], caption: str | None, *, complete: bool = False) -> None:
        """Add what one row says of one file; it may be nothing, or that these are all its labels."""
        name = os.path.normpath(name)
        if complete:
            self._complete.add(name)
        if "\\" in name:
            self._with_slashes[os.path.normpath(name.replace("\\", "/"))] = name
        labels = parse_labels(labels)
        if labels:
            self.labels[name] = tuple(dict.fromkeys(self.labels.get(name, ()) + labels))
        if caption and caption.strip():
            caption = storable(caption)
            known = self.captions.get(name)
            self.captions[name] = caption if known is None else f"{known}\n{caption}"
        if name not in self.labels and name not in self.captions:
            self._silent.add(name)

    def add_stem(self, stem: str, labels: tuple[str, ...]) -> None:
        """Add the labels of the files of a path without its suffix."""
        if labels := parse_labels(labels):
            self.of_stems[stem] = labels


def _stem_key(stem: str) -> str:
    return f"{stem}\0"  # as no file is named


def read_annotations(folder: str) -> Annotations:
    """Return what the annotation files in *folder* say; nothing where there are none.

    Raises:
        InvalidInput: a file is there and cannot be understood; the message names it and what would be right.
    """
    found = Annotations()
    readers = dict(zip(FILES, (read_coco, _read_csv, _read_parquet), strict=True))
    for name, reader in readers.items():
        path = Path(folder) / name
        if not path.is_file():
            continue
        try:
            for name_, labels, caption, complete in reader(path):
                found.add(name_, labels, caption, complete=complete)
        except InvalidInput:
            raise
        except (OSError, ValueError, csv.Error, RecursionError) as error:
            raise InvalidInput(f"cannot read the annotations {path}: {error}") from error
    for stem, labels in read_yolo(folder):
        found.add_stem(stem, labels)
    return found


_Row = tuple[str, tuple[str, ...], str | None, bool]


def _read_csv(path: Path) -> Iterator[_Row]:
    with open_text(path, newline="") as text, long_fields():
        rows = csv.DictReader(text, strict=True)
        _check_columns(path, rows.fieldnames or [])
        for row in rows:
            if row["filename"]:
                yield _table_row(row)


def _read_parquet(path: Path) -> Iterator[_Row]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(regular(path)) as file:
            _check_columns(path, file.schema_arrow.names)
            columns = [name for name in ("filename", "label", "caption") if name in file.schema_arrow.names]
            for batch in file.iter_batches(columns=columns):
                for row in batch.to_pylist():
                    if row["filename"]:
                        yield _table_row(row)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"cannot read {path} as Parquet: {error}") from error


def _check_columns(path: Path, names: Any) -> None:
    if "filename" not in names or not {"label", "caption"} & set(names):
        raise InvalidInput(f"{path} has the columns {list(names)}; it needs 'filename' and 'label' or 'caption'")


def _table_row(row: Mapping[str, Any]) -> _Row:
    caption = row.get("caption")
    label = row.get("label")
    is_list = isinstance(label, list) or (isinstance(label, str) and label.strip().startswith("["))
    return str(row["filename"]), parse_labels(label), None if caption is None else str(caption), is_list
