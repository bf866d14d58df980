"""The permission matrix in docs/people.md is that of the rules."""

import re
from pathlib import Path

from framedex.access import Action, Answer, allowed
from tests.access.test_rules import COLUMNS, actor, subject

DOCUMENT = Path(__file__).parents[2] / "docs" / "people.md"
WORDS = {Answer.YES: "yes", Answer.NO: "no", Answer.HIDDEN: "hidden"}


def test_document__has_the_matrix() -> None:
    """The table has a row for each action, and each cell is the answer of the rules; grants are of datasets alone."""
    rows = re.findall(r"^\| .*\(`([a-z_.]+)`\) \| (.*) \|$", DOCUMENT.read_text(encoding="utf-8"), re.MULTILINE)
    assert [action for action, _ in rows] == list(Action)
    for name, cells in rows:
        expected = []
        for column in COLUMNS[1:-1]:
            answer = WORDS[allowed(actor(column), Action(name), subject(Action(name), column)).answer]
            is_of_dataset = name.startswith(("dataset", "view", "task", "export"))
            expected.append(answer if is_of_dataset or not column.startswith(("granted", "owner")) else "")
        assert [cell.strip() for cell in cells.split("|")] == expected, name
