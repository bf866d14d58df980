"""The YOLO export: a class file for each picture with boxes or labels, and the names of the classes."""

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from framedex.export import json_text as json
from framedex.export.box_lists import BOXES, boxes_in, classes, left_out
from framedex.export.chosen import Chosen, part
from framedex.export.label_columns import all_labels, columns, numbers_of
from framedex.export.label_table import write_labels
from framedex.export.picture_names import Names, stems
from framedex.export.places import column
from framedex.export.zip_writer import ZipWriter
from framedex.media.boxes_yolo import yolo_text
from framedex.media.class_names import data_yaml
from framedex.progress import ShareProgress

NAME = "data.yaml"
_LABELS = "labels/"
_WHOLE = " 0.5 0.5 1 1"
_NEARLY_WHOLE = " 0.499999999999999999995 0.5 0.99999999999999999999 1"
"""The same box in any number of 64 bits; a whole one is read as a label of the picture."""


def write_yolo(archive: ZipWriter, chosen: Chosen, names: Names, progress: ShareProgress) -> list[str]:
    """Write ``data.yaml`` and a file below ``labels`` for each picture that has boxes; return what they do not hold.

    What is known of whole pictures is beside them as a table of labels and captions. Where there are no objects at all,
    a label of a picture becomes a box around all of it instead: ``class 0.5 0.5 1 1``. Captions have no place there.

    Args:
        archive: where to.
        chosen: what is exported.
        names: of the pictures.
        progress: called with the share that is done.
    """
    if not chosen.with_objects:
        return _write_labels(archive, chosen, names, progress)
    known = classes(chosen.objects).to_pylist()
    archive.add(NAME, data_yaml(known).encode())
    numbers, sizeless = {label: number for number, label in enumerate(known)}, 0
    for block in chosen.blocks(columns(chosen, "width", "height").append(BOXES), part(progress, 0.0, 0.9)):
        for path, size, boxes in boxes_in(block, _paths(chosen, names, block)):
            if size is None:
                sizeless += len(boxes)
                continue
            text = yolo_text(boxes, size, numbers)
            archive.add(path, text.replace(_WHOLE, _NEARLY_WHOLE).encode())
    write_labels(archive, chosen, names, part(progress, 0.9, 1.0))
    without = [f"{sizeless:,} boxes are left out: the sizes of their pictures are not known"] if sizeless else []
    return without + left_out(chosen.objects, ("original_id", "iscrowd", "truncated", "difficult"), "YOLO")


def _write_labels(archive: ZipWriter, chosen: Chosen, names: Names, progress: ShareProgress) -> list[str]:
    known = all_labels(chosen, part(progress, 0.0, 0.1))
    archive.add(NAME, data_yaml(known.to_pylist()).encode())
    captions = 0
    for block in chosen.blocks(columns(chosen, "labels", "caption"), part(progress, 0.1, 1.0)):
        captions += len(block) - column(block, "caption").null_count
        for path, text in _files(_paths(chosen, names, block), _lines(column(block, "labels"), known)):
            archive.add(path, text.encode())
    return [f"{captions:,} captions are left out: YOLO files hold none"] if captions else []


def _paths(chosen: Chosen, names: Names, block: pa.Table) -> pa.Array:
    return pc.binary_join_element_wise(_LABELS, stems(names(chosen.media, block)), ".txt", "")


def _files(paths: pa.Array, texts: pa.Array) -> Iterator[tuple[str, str]]:
    """Yield (path, content) of the files that have some."""
    some = pc.is_valid(texts)
    return zip(paths.filter(some).to_pylist(), texts.filter(some).to_pylist(), strict=True)


def _lines(labels: pa.Array, known: pa.Array) -> pa.Array:
    """Return a line for each label of each picture; null where there are none."""
    lines = pc.binary_join_element_wise(json.integers(numbers_of(labels, known)), _WHOLE, "\n", "")
    return json.grouped(lines, labels, separator="")
