"""Names of files of the journal, for code that reads no table."""

import re

_NAME = re.compile("[0-9a-f]{32}[.]arrow")


def names_journal_file(name: str) -> bool:
    """Return whether a text is the name of a file of a journal, which has no folders in it."""
    return _NAME.fullmatch(name) is not None
