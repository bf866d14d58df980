"""Parts of annotations that additions could not use."""

from framedex import Dataset
from framedex.annotations.problems import UNUSABLE


def unusable(dataset: Dataset) -> list[str]:
    """Return the examples of parts of annotations that could not be used."""
    return [example for each in dataset.problems if each.reason == UNUSABLE for example in each.examples]
