"""The keys of the app: the table in the docs is that of the app."""

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
TABLE = ROOT / "src/framedex/web/app/src/keys/table.ts"
_ROW = re.compile(r'row\(\s*"(\w+)",\s*"([\w.]+)",\s*"([^"]+)",\s*"([^"]+)",?\s*\)')
_NAMES = {
    "ArrowLeft": "←", "ArrowRight": "→", "ArrowUp": "↑", "ArrowDown": "↓", "Escape": "Esc", "PageUp": "Page Up",
    "PageDown": "Page Down",
}  # fmt: skip
SCOPE_NAMES = {
    "global": "everywhere", "grid": "images", "viewer": "one image", "duplicates": "duplicates", "labels": "labels",
    "issues": "issues", "clusters": "clusters", "map": "map", "cleanup": "clean-up",
    "views": "saved views",
    "notifications": "notifications", "dialog": "dialogs",
}  # fmt: skip
"""What the docs call the scopes."""


def rows_of_table() -> list[tuple[str, str, str, str]]:
    """Return the rows of the table: scope, id, keys with commas between them, and words."""
    return _ROW.findall(TABLE.read_text(encoding="utf-8"))


def spelled(keys: str) -> str:
    """Return keys as the docs write them."""
    parts = keys.split(" ")
    chords = [[key] if key == "+" else key.split("+") for key in parts]
    return " ".join(" ".join(_NAMES.get(key, key.upper() if len(key) == 1 else key) for key in each) for each in chords)


def test_keys__of_the_docs() -> None:
    """The docs list each key of the app, in its order, and no other."""
    rows = rows_of_table()
    assert len(rows) > 100
    expected = [
        f"| {words} | {', '.join(f'`{spelled(key)}`' for key in keys.split(', '))} | {text} |"
        for scope, words in SCOPE_NAMES.items()
        for row_scope, _, keys, text in rows
        if row_scope == scope
    ]
    page = (ROOT / "docs" / "app.md").read_text(encoding="utf-8")
    table = page.partition("<!-- keys")[2].partition("<!-- end of keys -->")[0].splitlines()[3:]
    assert table == expected
