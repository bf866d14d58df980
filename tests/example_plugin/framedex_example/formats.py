"""A format of lines, ``<name>TAB<label>``: exports write it, and it is read from a folder of images."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from framedex.annotations.formats import AnnotationFormat
from framedex.annotations.label_index import ImageLabels
from framedex.export.contents import ExportContents
from framedex.export.formats import ExportFormat
from framedex.export.locations import image_names
from framedex.export.zip_writer import ZipWriter

FILE = "lines.txt"
_COLUMNS = pa.schema([pa.field("image_filename", pa.string()), pa.field("labels", pa.list_(pa.string()))])


def _write(archive: ZipWriter, chosen: ExportContents, progress: Callable[[float], None]) -> tuple[Any, list[str]]:
    with archive.member(FILE) as member:
        for block in chosen.blocks(_COLUMNS, progress):
            for row in block.to_pylist():
                for label in row["labels"]:
                    member.write(f"{row['image_filename']}\t{label}\n".encode())
    return image_names, ["captions"]


def _read(path: Path) -> Iterator[ImageLabels]:
    for line in path.read_text("utf-8").splitlines():
        name, _, label = line.partition("\t")
        yield ImageLabels(name, (label,))


LINES_EXPORT = ExportFormat("lines", (FILE,), "labels", _write)
LINES = AnnotationFormat("lines", "a file of lines", read_labels=_read, labels_file=FILE)
