"""Reasons why a selection has no rows: names in its filters that the dataset does not have."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from framedex.browse.label_counts import label_counts
from framedex.core.checks import suggestion
from framedex.core.empty import warn_empty_result
from framedex.core.path_columns import FILE, FOLDER
from framedex.operations.context import Context, open_entities
from framedex.operations.steps import Contained, Filtered, Steps
from framedex.storage.definitions import tags_of
from framedex.storage.media import EVERYTHING, Media
from framedex.storage.objects import is_empty_object_view
from framedex.vql.elements import AnyOf, Filter
from framedex.vql.key_test import KeyTest
from framedex.vql.keys.batch import BatchTest
from framedex.vql.keys.file_name import FileNameTest
from framedex.vql.keys.folder import FolderTest
from framedex.vql.keys.labels import LabelsTest
from framedex.vql.keys.objects import ObjectsTest
from framedex.vql.keys.source import SourceTest
from framedex.vql.keys.tags import BASKET, UNTAGGED, TagsTest
from framedex.vql.values import listed

_SHOWN = 5  # names in a sentence
_EXACT = ("is", "one_of")
_MOST_NAMES = 100_000  # of which the nearest is looked for


class _Asked(NamedTuple):
    """Names that a test asks for.

    Attributes:
        noun: a word for it.
        names: the names that the test has.
        known: returns the names that the dataset has.
        elsewhere: returns the names that another filter would find.
        hint: says where these are.
    """

    noun: str
    names: Sequence[str]
    known: Callable[[], Sequence[str]]
    elsewhere: Callable[[], Sequence[str]] = list
    hint: str = ""


def why_empty(context: Context, media: Media, steps: Steps) -> list[str]:
    """Return sentences about names in filters that a dataset does not have, with the nearest that it has.

    Args:
        context: the workspace.
        media: the media, or the objects.
        steps: of a selection without rows.
    """
    reasons = list[str]()
    for step in steps:
        if isinstance(step, Contained) and media.parents is not None:
            reasons += why_empty(context, media.parents, step.media_steps)
        elif isinstance(step, Filtered):
            for test in _tests(step.vql):
                if (asked := _asked(context, media, test)) is not None:
                    reasons += _unknown(asked)
    return list(dict.fromkeys(reasons))


def warn_if_empty(count: int, context: Context, media: Media, steps: Steps) -> list[str]:
    """Return why a number of rows is 0 because a name does not exist, and warn of it; else return an empty list."""
    reasons = [] if count else why_empty(context, media, steps)
    warn_empty_result(reasons)
    return reasons


def _tests(vql: Filter) -> Iterator[KeyTest]:
    """Yield the tests that can leave nothing because a name is unknown: those that are not negated."""
    for element in vql:
        if isinstance(element, KeyTest):
            yield element
        elif isinstance(element, AnyOf):
            yield from _tests(element.elements)


def _asked(context: Context, media: Media, test: KeyTest) -> _Asked | None:
    """Return what a test asks for by exact names; None if it asks for nothing of that kind."""
    parents = media if media.parents is None else media.parents
    match test:
        case LabelsTest() if not test.is_negated:
            known = partial(_labels, media)
            if media.parents is not None:
                return _Asked("label", test.names, known)
            objects = open_entities(context, media.dataset_id, objects=True, early=True)
            return _Asked("label", test.names, known, partial(_labels, objects), "objects have it: filter by objects")
        case TagsTest():
            tags = tags_of(parents)
            names = [each for each in test.names if each not in (BASKET, UNTAGGED, *(tag.tag_id for tag in tags))]
            return _Asked("tag", names, lambda: [each.name for each in tags])
        case ObjectsTest():
            objects = open_entities(context, parents.dataset_id, objects=True, early=True)
            known, hint = partial(_labels, objects), "images have it: filter by labels"
            return _Asked("label of objects", test.names or (), known, partial(_labels, parents), hint)
        case FolderTest() if test.op in _EXACT:
            return _Asked("folder", listed(test.value), lambda: _distinct(media, FOLDER.name))
        case FileNameTest() if test.op in _EXACT:
            return _Asked("file", listed(test.value), lambda: _distinct(media, FILE.name))
        case SourceTest():
            return _Asked("source of objects", listed(test.value), lambda: _distinct(media, "source"))
        case BatchTest():
            batches = parents.generation.summary.batches
            return _Asked("batch", [str(each) for each in listed(test.value)], lambda: [*map(str, range(batches))])
        case _:
            return None


def _labels(media: Media) -> list[str]:
    return [each.name for each in label_counts(media, EVERYTHING)]


def _distinct(media: Media, column: str) -> list[str]:
    if is_empty_object_view(media) or (column not in media.table.schema.names and "__" not in column):
        return []
    text = f'SELECT DISTINCT "{column}" AS name FROM chosen WHERE "{column}" IS NOT NULL LIMIT {_MOST_NAMES}'
    return list(media.query(text, EVERYTHING, [column])["name"].to_pylist())


def _unknown(asked: _Asked) -> Iterator[str]:
    """Yield a sentence for each name that is not known."""
    if not asked.names:
        return
    there = asked.known()
    for name in asked.names:
        if name in there:
            continue
        guess = f"; {asked.hint}" if name in asked.elsewhere() else suggestion(name, there)
        shown = ", ".join(repr(each) for each in there[:_SHOWN]) + (" and more" if len(there) > _SHOWN else "")
        yield f"there is no {asked.noun} {name!r:.80}" + (guess or f"; there are: {shown or 'none'}")
