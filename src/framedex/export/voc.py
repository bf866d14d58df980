"""The Pascal VOC export: an XML file for each picture with boxes."""

import re
from dataclasses import replace

from framedex.export.box_lists import BOXES, boxes_in, left_out
from framedex.export.chosen import Chosen, part
from framedex.export.label_columns import columns
from framedex.export.label_table import write_labels
from framedex.export.picture_names import Names, stem
from framedex.export.zip_writer import ZipWriter
from framedex.media.boxes_voc import voc_path, voc_text
from framedex.progress import ShareProgress

_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Signs that XML 1.0 has no place for (section 2.2)."""
_ANNOTATIONS = "annotations/"
_INSTEAD = "\ufffd"


def write_voc(archive: ZipWriter, chosen: Chosen, names: Names, progress: ShareProgress) -> list[str]:
    """Write a file for each picture that has boxes; return what they do not hold.

    Files are in ``annotations`` beside ``images``; without pictures, beside the pictures' places in the source. What is
    known of whole pictures is beside them as a table of labels and captions. Control characters in labels, for which
    XML has no place, are replaced (U+FFFD).

    Args:
        archive: where to.
        chosen: what is exported.
        names: of the pictures.
        progress: called with the share that is done.
    """
    if chosen.with_objects:
        for block in chosen.blocks(columns(chosen, "width", "height").append(BOXES), part(progress, 0.0, 0.9)):
            for name, size, boxes in boxes_in(block, names(chosen.media, block)):
                told = [replace(box, label=_in_xml(box.label)) for box in boxes]
                path = f"{_ANNOTATIONS}{stem(name)}.xml" if chosen.include_images else voc_path(name)
                archive.add(path, voc_text(_in_xml(name), told, size or (0, 0)).encode())
    write_labels(archive, chosen, names, part(progress, 0.9, 1.0))
    return left_out(chosen.objects, ("original_id", "confidence", "iscrowd"), "VOC")


def _in_xml(text: str) -> str:
    return _NO_XML.sub(_INSTEAD, text)
