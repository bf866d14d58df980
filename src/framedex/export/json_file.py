"""The JSON export: all that is known of the media and of the objects in them, as ``metadata.json``."""

import json
from datetime import UTC, datetime
from typing import Any

from framedex.annotations.json_text import LINE_END, text_of
from framedex.export.chosen import Chosen
from framedex.export.items import item_columns, media_items
from framedex.export.picture_names import Names
from framedex.export.places import image_names
from framedex.export.zip_writer import ZipWriter
from framedex.progress import ShareProgress

FILE = "metadata.json"
SCHEMA_VERSION = "1.1"


def write_json(archive: ZipWriter, chosen: Chosen, progress: ShareProgress) -> tuple[Names, list[str]]:
    """Write the file; return the names of the images, and that nothing is left out."""
    with archive.member(FILE, compressed=True) as member:
        member.write(b'{"info": ' + json.dumps(_info(chosen), ensure_ascii=False).encode() + b', "media_items": [')
        separator = "\n"
        schema = item_columns(chosen.media, None if chosen.objects is None else chosen.objects.objects)
        for text in chosen.made_of(schema, lambda block: text_of(media_items(block)), progress):
            member.write(separator.encode())
            member.write(text)
            separator = LINE_END
        member.write(b"\n]}\n")
    return image_names, []


def _info(chosen: Chosen) -> dict[str, Any]:
    return {
        "schema_version": SCHEMA_VERSION,
        "dataset": chosen.dataset.display_name,
        "description": "",
        "dataset_url": "",
        "export_time": datetime.now(UTC).isoformat(),
        "dataset_creation_time": chosen.dataset.created_at.isoformat(),
        "exported_by": chosen.exported_by,
        "total_media_items": chosen.total,
    }
