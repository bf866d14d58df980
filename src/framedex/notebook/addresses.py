"""Addresses of the app's pages, and the views that they show."""

import json
from typing import Any
from urllib.parse import parse_qs, quote, urlencode, urlsplit

from framedex.api.dataset import Dataset
from framedex.api.view import View
from framedex.errors import InvalidInput
from framedex.operations.steps import Filtered, Searched, Sorted, Step
from framedex.search.queries import HybridQuery, KeywordQuery, SemanticQuery
from framedex.vql import to_json

MOST_IDS = 5_000
"""The largest number of rows that an address lists."""
_BY: dict[type, str] = {KeywordQuery: "words", SemanticQuery: "meaning", HybridQuery: "both"}
_MOST_SIMILAR = 1000  # as in the app


def address_of(view: View) -> str:
    """Return the address of the page of images that shows a view.

    Filters, searches by text and orders are parts of the address. A view with other steps, such as a sample, is shown
    by its ids, in the order of the dataset.

    Raises:
        InvalidInput: the view would have to be shown by its ids, and has too many rows.
    """
    base = f"/d/{view._dataset_id}/pictures"
    parts = _parts(view._steps) if all(_has_address(step) for step in view._steps) else _parts_by_ids(view)
    if view._objects:
        parts["entity"] = "OBJECTS"
    return f"{base}?{urlencode(parts, quote_via=quote)}" if parts else base


def shown_view(dataset: Dataset, address: str) -> View:
    """Return the view that a page of images shows; all media for other pages."""
    parts = urlsplit(address)
    found = {name: values[-1] for name, values in parse_qs(parts.query).items()}
    view = dataset.objects if found.get("entity") == "OBJECTS" else dataset.view
    if filters := found.get("f"):
        view = view.where(json.loads(filters))
    if similar := found.get("like"):
        region = [float(each) for each in found.get("region", "").split(",") if each]
        box: Any = tuple(region) if len(region) == 4 else None
        view = view.similar(similar, _MOST_SIMILAR, bounding_box=box)
    elif text := found.get("q"):
        view = view.search(text, None, by=found.get("by", "auto"))
    if sort := found.get("sort"):
        column, _, order = sort.partition(":")
        view = view.sort_by(column, descending=order == "desc")
    return view


def filter_text(elements: list[dict[str, Any]]) -> str:
    """Return the text of a filter in an address."""
    return json.dumps(elements, ensure_ascii=False, separators=(",", ":"))


def _has_address(step: Step) -> bool:
    match step:
        case Filtered() | Sorted():
            return True
        case Searched(query=query, diversity=diversity, relevance=relevance):
            is_plain = type(query) in _BY and not (getattr(query, "max_distance", None) or diversity or relevance)
            return is_plain and not getattr(query, "min_relevance", 0)
        case _:
            return False


def _parts(steps: tuple[Step, ...]) -> dict[str, str]:
    parts: dict[str, str] = {}
    elements: list[dict[str, Any]] = []
    for step in steps:
        match step:
            case Filtered(vql=vql):
                elements += to_json(vql)
            case Searched(query=KeywordQuery() | SemanticQuery() | HybridQuery() as query):
                parts |= {"q": query.text, "by": _BY[type(query)]}
                parts.pop("sort", None)  # the ranking is another order
            case Sorted(column=column, descending=descending):
                parts["sort"] = f"{column}:{'desc' if descending else 'asc'}"
    return {"f": filter_text(elements), **parts} if elements else parts


def _parts_by_ids(view: View) -> dict[str, str]:
    if (count := view.count()) > MOST_IDS:
        raise InvalidInput(
            f"the app shows at most {MOST_IDS:,} rows of a view that is not a filter, a search by text or an order of "
            f"these, not {count:,}; tag the view, and show where(vql.tags(tag))"
        )
    return {"f": filter_text([{"ids": {"op": "one_of", "value": view.media_ids()}}])}
