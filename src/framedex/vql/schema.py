"""Writes the JSON Schema of the language: ``python -m framedex.vql.schema docs/vql.schema.json``."""

import json
import sys
from pathlib import Path

from framedex.vql.model import json_schema


def schema_text() -> str:
    """Return the JSON Schema as the file has it."""
    return json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(schema_text(), encoding="utf-8")
