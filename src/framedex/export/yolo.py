"""The YOLO export: a class file for each labelled picture, and the names of the classes."""

import pyarrow as pa
import pyarrow.compute as pc

from framedex.export import json_text as json
from framedex.export.chosen import Chosen, Progress, part
from framedex.export.label_columns import all_labels, columns, numbers_of
from framedex.export.picture_names import Names, stems
from framedex.export.places import column
from framedex.export.zip_writer import ZipWriter
from framedex.media.class_names import data_yaml

NAME = "data.yaml"
_LABELS = "labels/"
_WHOLE_IMAGE = " 0.5 0.5 1 1\n"


def write_yolo(archive: ZipWriter, chosen: Chosen, names: Names, progress: Progress) -> list[str]:
    """Write ``data.yaml`` and a file below ``labels`` for each picture that has labels; return what they do not hold.

    A label of the picture becomes a box around all of it: ``class 0.5 0.5 1 1``. Captions have no place there.

    Args:
        archive: where to.
        chosen: what is exported.
        names: of the pictures.
        progress: called with the share that is done.
    """
    known = all_labels(chosen, part(progress, 0.0, 0.1))
    archive.add(NAME, data_yaml(known.to_pylist()).encode())
    captions = 0
    for block in chosen.blocks(columns(chosen, "labels", "caption"), part(progress, 0.1, 1.0)):
        captions += len(block) - column(block, "caption").null_count
        paths = pc.binary_join_element_wise(_LABELS, stems(names(chosen.media, block)), ".txt", "")
        texts = _boxes(column(block, "labels"), known)
        labelled = pc.is_valid(texts)
        for path, text in zip(paths.filter(labelled).to_pylist(), texts.filter(labelled).to_pylist(), strict=True):
            archive.add(path, text.encode())
    return [f"{captions:,} captions are left out: YOLO files hold none"] if captions else []


def _boxes(labels: pa.Array, known: pa.Array) -> pa.Array:
    """Return a line for each label of each picture; null where there are none."""
    lines = pc.binary_join_element_wise(json.integers(numbers_of(labels, known)), _WHOLE_IMAGE, "")
    return json.grouped(lines, labels, separator="")
