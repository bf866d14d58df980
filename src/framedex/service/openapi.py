"""The description of the API as a file: ``python -m framedex.service.openapi docs`` writes ``openapi.json``."""

import json
import sys
from pathlib import Path

from framedex.service.app import api


def openapi_text() -> str:
    """Return the description of the API as JSON, with sorted paths."""
    schema = api().openapi()
    schema["paths"] = dict(sorted(schema["paths"].items()))
    return json.dumps(schema, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    (Path(sys.argv[1]) / "openapi.json").write_text(openapi_text(), encoding="utf-8")
