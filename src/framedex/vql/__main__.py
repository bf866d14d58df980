"""Command that updates the generated parts of the documents: ``python -m framedex.vql docs``."""

import sys
from pathlib import Path

from framedex.vql.schema import schema_text, with_table

folder = Path(sys.argv[1])
(folder / "vql.schema.json").write_text(schema_text(), encoding="utf-8")
page = folder / "vql.md"
page.write_text(with_table(page.read_text(encoding="utf-8")), encoding="utf-8")
