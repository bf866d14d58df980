"""Elements beside each other that ask the same, or may be asked at once."""

from collections.abc import Hashable, Iterable

from framedex.vql.leaves import LabelsTest, TagsTest
from framedex.vql.model import AnyOf, Element, Labels, Not, Tags

_HAVING = frozenset({"is", "one_of"})


def merged(elements: Iterable[Element], *, any_of: bool) -> list[tuple[int, Element]]:
    """Return elements that mean the same together, with the places at which they were written.

    Each is asked of every media item, so a thousand tests for a label take a thousand times as long as one test for a
    thousand labels. Tests for labels and tags that are combined with OR become one each, tests against labels that are
    combined with AND likewise, and what is written twice is asked once.

    Args:
        elements: beside each other.
        any_of: whether they are combined with OR; else with AND.
    """
    found: dict[Hashable, tuple[int, list[Element]]] = {}
    for place, element in enumerate(elements):
        found.setdefault(_key(place, element, any_of=any_of), (place, []))[1].append(element)
    return [
        (place, _joined(alike, any_of=any_of) if kind in (Labels, Tags) else alike[0])
        for kind, (place, alike) in found.items()
    ]


def _key(place: int, element: Element, *, any_of: bool) -> Hashable:
    match element:
        case AnyOf() | Not():
            return place
        case Labels() if (element.labels.op in _HAVING) == any_of:
            return Labels
        case Tags() if any_of:
            return Tags
        case _:
            return element.model_dump_json(by_alias=True)


def _joined(alike: list[Element], *, any_of: bool) -> Element:
    """Return one test of labels or of tags in the place of several."""
    first = alike[0]
    if len(alike) == 1:
        return first
    # Each part was checked by itself; all together may be more than one element may list.
    if isinstance(first, Labels):
        labels = [name for each in alike if isinstance(each, Labels) for name in each.labels.names]
        test = LabelsTest.model_construct(op="one_of" if any_of else "not_one_of", value=list(dict.fromkeys(labels)))
        return Labels.model_construct(labels=test)
    tags = [name for each in alike if isinstance(each, Tags) for name in each.tags.names]
    return Tags.model_construct(tags=TagsTest.model_construct(op="is", value=list(dict.fromkeys(tags))))
