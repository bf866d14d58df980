"""The functions make the elements that the documents describe, or the error that parsing them would give."""

from datetime import UTC, date, datetime
from typing import Any

import pytest

from framedex import vql
from framedex.errors import InvalidFilter
from framedex.vql import registry
from framedex.vql.registry import KEYS

NOON = datetime(2024, 5, 17, 12, tzinfo=UTC)
BUILT: list[tuple[vql.Expression, dict[str, Any]]] = [
    (vql.labels("cat"), {"labels": {"op": "is", "value": "cat"}}),
    (vql.labels(("cat", "dog")), {"labels": {"op": "one_of", "value": ["cat", "dog"]}}),
    (vql.labels(["cat"], "not_one_of"), {"labels": {"op": "not_one_of", "value": ["cat"]}}),
    (vql.tags("untagged"), {"tags": {"op": "is", "value": "untagged"}}),
    (vql.issues("blur"), {"issues": {"op": "issue", "value": "blur"}}),
    (
        vql.issues("dark", "out", confidence_min=0, confidence_max=0.5),
        {"issues": {"op": "issue", "value": "dark", "mode": "out", "confidence_min": 0, "confidence_max": 0.5}},
    ),
    (vql.duplicates(), {"duplicates": {"op": "duplicates", "value": 0.96}}),
    (vql.quality("blur", "lt", 0.4), {"quality": {"of": "blur", "op": "lt", "value": 0.4}}),
    (
        vql.quality("outliers", "between", (0.2, 1)),
        {"quality": {"of": "outliers", "op": "between", "value": [0.2, 1]}},
    ),
    (vql.quality("blur", "missing"), {"quality": {"of": "blur", "op": "missing"}}),
    (vql.uniqueness(0.5), {"uniqueness": {"op": "uniqueness", "value": 0.5}}),
    (vql.text("fts", "red car"), {"text": {"op": "fts", "value": "red car"}}),
    (vql.text("semantic", "car", 0.25), {"text": {"op": "semantic", "value": "car", "threshold": 0.25}}),
    (
        vql.map_region([(0, 0), (1.5, 0), (0, 2)]),
        {"map_region": {"op": "inside", "value": [[0, 0], [1.5, 0], [0, 2]]}},
    ),
    (vql.similarity("media", "m", 0.4), {"similarity": {"op": "media", "value": "m", "threshold": 0.4}}),
    (vql.field("price", "lt", 5), {"field": {"name": "price", "op": "lt", "value": 5}}),
    (vql.field("price", "missing"), {"field": {"name": "price", "op": "missing"}}),
    (
        vql.field("when", "between", (date(2024, 5, 17), NOON)),
        {"field": {"name": "when", "op": "between", "value": ["2024-05-17", "2024-05-17T12:00:00+00:00"]}},
    ),
    (vql.file_name("ends", ".png"), {"file_name": {"op": "ends", "value": ".png"}}),
    (vql.file_name("one_of", ("a.png", "b.png")), {"file_name": {"op": "one_of", "value": ["a.png", "b.png"]}}),
    (vql.folder("one_of", ["", "clips"]), {"folder": {"op": "one_of", "value": ["", "clips"]}}),
    (vql.folder("is", ""), {"folder": {"op": "is", "value": ""}}),
    (vql.missing(), {"missing": {"op": "is", "value": True}}),
    (vql.missing(False), {"missing": {"op": "is", "value": False}}),
    (vql.media("video"), {"media": {"op": "is", "value": "video"}}),
    (vql.size("gt", 10**6), {"size": {"op": "gt", "value": 10**6}}),
    (vql.size("between", (1, 2), "width"), {"size": {"op": "between", "value": [1, 2], "of": "width"}}),
    (vql.date_added("ge", NOON), {"date_added": {"op": "ge", "value": "2024-05-17T12:00:00+00:00"}}),
    (vql.batch(0), {"batch": {"op": "is", "value": 0}}),
    (vql.objects(), {"objects": {"op": "has"}}),
    (
        vql.objects(["cat", "dog"], min_count=2, confidence_min=0.5),
        {"objects": {"op": "has", "value": ["cat", "dog"], "min_count": 2, "confidence_min": 0.5}},
    ),
    (vql.confidence("between", (0.25, 0.5)), {"confidence": {"op": "between", "value": [0.25, 0.5]}}),
    (vql.content("page"), {"content": {"op": "is", "value": "page"}}),
    (vql.content(["photo", "mask"]), {"content": {"op": "one_of", "value": ["photo", "mask"]}}),
    (vql.source("coco"), {"source": {"op": "is", "value": "coco"}}),
    (vql.source(["coco", "voc"]), {"source": {"op": "one_of", "value": ["coco", "voc"]}}),
    (vql.ids("m"), {"ids": {"op": "is", "value": "m"}}),
    (vql.ids(("m", "n")), {"ids": {"op": "one_of", "value": ["m", "n"]}}),
    (vql.cluster("c"), {"cluster": {"op": "is", "value": "c"}}),
    (vql.cluster(["c", "d"]), {"cluster": {"op": "one_of", "value": ["c", "d"]}}),
    (vql.batch([0, 2]), {"batch": {"op": "one_of", "value": [0, 2]}}),
]


@pytest.mark.parametrize(("expression", "element"), BUILT)
def test_builder__makes_the_element(expression: vql.Expression, element: dict[str, Any]) -> None:
    """What is made is what one would write, with nothing that was not asked for."""
    assert expression.to_json() == [element]


def test_builders__are_there_for_all_keys() -> None:
    """Each key has a function of its name, which a row above calls."""
    assert set(KEYS) == set(registry.__all__) == {key for _, element in BUILT for key in element}
    assert set(KEYS) <= set(vql.__all__)


@pytest.mark.parametrize(
    ("build", "path"),
    [
        (lambda: vql.issues("ugly"), "$[0].issues.value"),
        (lambda: vql.quality("ugly", "lt", 0.5), "$[0].quality.of"),
        (lambda: vql.quality("corrupted", "lt", 0.5), "$[0].quality.of"),
        (lambda: vql.quality("blur", "lt", float("nan")), "$[0].quality.value"),
        (lambda: vql.quality("blur", "between", [0.5, 0.25]), "$[0].quality.value"),
        (lambda: vql.quality("blur", "below", 0.5), "$[0].quality.op"),  # type: ignore[arg-type] # that is the mistake
        (lambda: vql.quality("blur", "missing", 0.5), "$[0].quality.value"),
        (lambda: vql.quality("blur", "lt"), "$[0].quality.value"),
        (lambda: vql.labels(3), "$[0].labels.value"),  # type: ignore[arg-type] # that is the mistake
        (lambda: vql.uniqueness(float("nan")), "$[0].uniqueness.value"),
        (lambda: vql.size("between", 3), "$[0].size.value"),
        (lambda: vql.text("like", "x"), "$[0].text.op"),
        (lambda: vql.field("a", "lt"), "$[0].field.value"),
        (lambda: vql.objects("cat", min_count=0), "$[0].objects.min_count"),
        (lambda: vql.objects(confidence_min=2), "$[0].objects.confidence_min"),
        (lambda: vql.confidence("between", [0.5, 0.25]), "$[0].confidence.value"),
        (lambda: vql.confidence("ge", 1.5), "$[0].confidence.value"),
    ],
)
def test_builder__refuses_at_once(build: Any, path: str) -> None:
    """A mistake shows where it is made, not where the filter is used."""
    with pytest.raises(InvalidFilter) as caught:
        build()
    assert caught.value.path == path
