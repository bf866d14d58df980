"""The CSV export: labels and captions as ``image_annotations.csv``, which ingestion reads."""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from framedex.export import json_text as json
from framedex.export.chosen import Chosen, Progress
from framedex.export.label_columns import IMAGES, columns
from framedex.export.picture_names import readable_names
from framedex.export.places import column
from framedex.export.zip_writer import ZipWriter

NAME = "image_annotations.csv"
_LINE_END = "\r\n"  # RFC 4180


def write_csv(archive: ZipWriter, chosen: Chosen, progress: Progress) -> list[str]:
    """Write the table: a row for each picture, its labels as a JSON array; return what it does not hold.

    Pictures without labels and captions are in it too, as otherwise those of another picture of the same base name
    would be taken for theirs. Texts are written as they are, also where a spreadsheet would take them for a formula.
    """
    folder = IMAGES if chosen.include_images else ""
    with archive.member(NAME, compressed=True) as member:
        member.write(f"filename,label,caption{_LINE_END}".encode())
        for block in chosen.blocks(columns(chosen, "labels", "caption"), progress):
            names = pc.binary_join_element_wise(folder, readable_names(chosen.media, block), "")
            cells = [names, _label_cells(column(block, "labels")), column(block, "caption")]
            lines = pc.binary_join_element_wise(pc.binary_join_element_wise(*map(_quoted, cells), ","), _LINE_END, "")
            member.write(json.text_of(lines, end=""))
    return []


def _label_cells(labels: pa.Array) -> pa.Array:
    names = json.grouped(json.strings(labels.flatten()), labels)
    return pc.binary_join_element_wise("[", names, "]", "")


def _quoted(texts: pa.Array) -> Any:
    return pc.fill_null(pc.binary_join_element_wise('"', pc.replace_substring(texts, '"', '""'), '"', ""), "")
