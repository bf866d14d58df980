"""Counts of inputs that are left out, by reason, with examples."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice

from framedex.core.printable import escaped

EXAMPLES = 20
"""The number of examples that are kept for each reason: the first ones."""
_LONGEST = 1000  # characters of an example


class Skipped(Counter[str]):
    """The number of inputs that were left out, by reason.

    Attributes:
        examples: the first examples by reason, each a sentence or a path. Some reasons have none.
    """

    def __init__(self, counts: Mapping[str, int] | None = None, examples: Mapping[str, Sequence[str]] | None = None):
        super().__init__(counts)
        self.examples = {reason: list(each) for reason, each in (examples or {}).items()}

    def note(self, reason: str, example: str) -> None:
        """Count an input, and keep it if it is among the first of its reason."""
        self[reason] += 1
        self.show(reason, example)

    def count(self, reason: str, count: int, examples: Iterable[str] = ()) -> None:
        """Count some inputs, if any; of the examples the first are kept."""
        if count:
            self[reason] += count
            for each in islice(examples, EXAMPLES):
                self.show(reason, each)

    def show(self, reason: str, example: str) -> None:
        """Keep an example of a reason, if it is among the first, with its odd bytes and characters escaped."""
        shown = self.examples.setdefault(reason, [])
        if len(shown) < EXAMPLES:
            text = escaped(example)
            shown.append(text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…")

    def __pos__(self) -> "Skipped":
        """Return the reasons that were counted."""
        return Skipped({reason: count for reason, count in self.items() if count > 0}, self.examples)
