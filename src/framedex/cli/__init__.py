"""The command line."""

from framedex.cli.output import printable
from framedex.cli.program import main

__all__ = ["main", "printable"]
