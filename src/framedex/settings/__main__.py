"""Command that updates the tables of the documents: ``python -m framedex.settings docs``."""

import sys
from pathlib import Path

from framedex.settings.page import with_settings

page = Path(sys.argv[1]) / "settings.md"
page.write_text(with_settings(page.read_text(encoding="utf-8")), encoding="utf-8")
