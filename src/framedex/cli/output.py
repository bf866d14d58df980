"""Output of the command line: lines, tables and JSON."""

import json
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from framedex.core.printable import escaped

_IDS = frozenset(("id", "ids", "task"))


def printable(text: str) -> str:
    """Return text without control characters, which could steer the terminal."""
    return escaped(text)


def short_number(value: float | None) -> str:
    """Return a number with three digits; nothing for None."""
    return "" if value is None else f"{value:.3g}"


def say(line: str) -> None:
    """Print a line at once, also where the output is a pipe or a file: who waits for an address must get it."""
    print(printable(line), flush=True)  # noqa: T201 - a command line prints


def print_json(value: Any) -> None:
    """Print a value as JSON."""
    from framedex.records import Record

    def plain(part: Any) -> Any:
        return part.model_dump(mode="json") if isinstance(part, Record) else str(part)

    print(json.dumps(value, indent=2, default=plain, allow_nan=False))  # noqa: T201 - a command line prints


def print_table(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Print a table."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console() if sys.stdout.isatty() else Console(width=200)
    table = Table(box=None, pad_edge=False)
    for name in header:  # ids stay whole, so that they can be copied; other columns are folded where there is no room
        table.add_column(name, overflow="fold", no_wrap=name.split(" ")[-1] in _IDS)
    for row in rows:
        table.add_row(*(Text(printable(f"{cell:,}" if isinstance(cell, int) else str(cell))) for cell in row))
    console.print(table)
