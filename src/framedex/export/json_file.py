"""The JSON export: all data of the media and of the objects in them, as ``metadata.json``."""

import json
from datetime import UTC, datetime
from typing import Any

from framedex.annotations.json_text import LINE_END, join_rows
from framedex.core.progress import ShareProgress
from framedex.export.contents import ExportContents
from framedex.export.image_names import Names
from framedex.export.items import item_columns, media_items
from framedex.export.locations import image_names
from framedex.export.single_file import Archive

FILE = "metadata.json"
SCHEMA_VERSION = "1.1"


def write_json(archive: Archive, contents: ExportContents, progress: ShareProgress) -> tuple[Names, list[str]]:
    """Write the file; return the names of the images, and an empty list: the format holds all data."""
    with archive.member(FILE, compressed=True) as member:
        member.write(b'{"info": ' + json.dumps(_info(contents), ensure_ascii=False).encode() + b', "media_items": [')
        separator = "\n"
        schema = item_columns(contents.media, None if contents.objects is None else contents.objects.objects)
        for text in contents.map_blocks(schema, lambda block: join_rows(media_items(block)), progress):
            member.write(separator.encode())
            member.write(text)
            separator = LINE_END
        member.write(b"\n]}\n")
    return image_names, []


def _info(contents: ExportContents) -> dict[str, Any]:
    return {
        "schema_version": SCHEMA_VERSION,
        "dataset": contents.dataset.display_name,
        "description": "",
        "dataset_url": "",
        "export_time": datetime.now(UTC).isoformat(),
        "dataset_creation_time": contents.dataset.created_at.isoformat(),
        "exported_by": contents.exported_by,
        "total_media_items": contents.total,
    }
