"""The CSV export, which ingestion reads: a table of labels and captions, and one of boxes."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from framedex.export import json_text as json
from framedex.export.box_lists import BOXES, left_out
from framedex.export.chosen import Chosen, part
from framedex.export.label_columns import IMAGES, columns
from framedex.export.objects import OBJECTS
from framedex.export.picture_names import Names, readable_names
from framedex.export.places import column
from framedex.export.zip_writer import ZipWriter
from framedex.media.boxes_tables import COLUMNS, CONFIDENCE
from framedex.progress import ShareProgress

NAME = "image_annotations.csv"
BOX_NAME = "object_annotations.csv"
_LINE_END = "\r\n"  # RFC 4180


def write_csv(archive: ZipWriter, chosen: Chosen, progress: ShareProgress) -> list[str]:
    """Write the tables; return what they do not hold. Where there are no objects, there is no table of boxes."""
    if not chosen.with_objects:
        write_labels(archive, chosen, readable_names, progress)
        return []
    write_labels(archive, chosen, readable_names, part(progress, 0.0, 0.5))
    _write_boxes(archive, chosen, part(progress, 0.5, 1.0))
    return left_out(chosen.objects, ("original_id", "iscrowd", "truncated", "difficult"), "CSV")


def write_labels(archive: ZipWriter, chosen: Chosen, names: Names, progress: ShareProgress) -> None:
    """Write the table of labels and captions: a row for each picture, its labels as a JSON array.

    Pictures without labels and captions are in it too, as otherwise those of another picture of the same base name
    would be taken for theirs. Texts are written as they are, also where a spreadsheet would take them for a formula.
    Of boxes alone, there is no such table.

    Args:
        archive: where to.
        chosen: what is exported.
        names: of the pictures.
        progress: called with the share that is done.
    """
    if chosen.boxes_only:
        return
    with archive.member(NAME, compressed=True) as member:
        member.write(f"filename,label,caption{_LINE_END}".encode())
        for block in chosen.blocks(columns(chosen, "labels", "caption"), progress):
            labels = _label_cells(column(block, "labels"), with_empty=chosen.with_objects)
            member.write(
                _lines(_quoted(_paths(chosen, names, block)), _quoted(labels), _quoted(column(block, "caption")))
            )


def _write_boxes(archive: ZipWriter, chosen: Chosen, progress: ShareProgress) -> None:
    with archive.member(BOX_NAME, compressed=True) as member:
        member.write(f"{','.join((*COLUMNS, CONFIDENCE))}{_LINE_END}".encode())
        for block in chosen.blocks(columns(chosen).append(BOXES), progress):
            objects = column(block, OBJECTS)
            found = objects.flatten()
            edges = pc.cast(found.field("bbox").flatten(), pa.string())
            sides = (edges.take(pa.array(np.arange(side, len(edges), 4))) for side in range(4))
            names = _paths(chosen, readable_names, block).take(pc.list_parent_indices(objects))
            confidence = pc.fill_null(pc.cast(found.field("confidence"), pa.string()), "")
            member.write(_lines(_quoted(names), *sides, _quoted(found.field("label")), confidence))


def _paths(chosen: Chosen, names: Names, block: pa.Table) -> Any:
    return pc.binary_join_element_wise(IMAGES if chosen.include_images else "", names(chosen.media, block), "")


def _lines(*cells: Any) -> memoryview:
    lines = pc.binary_join_element_wise(pc.binary_join_element_wise(*cells, ","), _LINE_END, "")
    return json.text_of(lines, end="")


def _label_cells(labels: pa.Array, *, with_empty: bool) -> pa.Array:
    """Return JSON arrays; null for empty ones, unless boxes would be taken for labels of what has none."""
    cells = json.arrays(labels)
    return cells if with_empty else pc.if_else(pc.equal(cells, "[]"), None, cells)


def _quoted(texts: pa.Array) -> Any:
    return pc.fill_null(pc.binary_join_element_wise('"', pc.replace_substring(texts, '"', '""'), '"', ""), "")
