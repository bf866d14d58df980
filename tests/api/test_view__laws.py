"""Views compose as lists of rows do: any steps, one after another, leave the rows that plain Python leaves."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from framedex import OutOfRange, View, Workspace, vql
from tests.gallery import SETTINGS, embedded
from tests.laws import examples
from tests.objects import scenes
from tests.oracles import views as oracle

COUNT = 40
LABELS = ("cat", "dog", None)
SORTED = ("number", "outliers", "file_name", "price", "note", "label_text", "cluster_1", "uniqueness_score", "width")
OBJECTS_SORTED = ("width", "height", "label", "file_name", "parent_id", "blur", "dark", "confidence")
ends = st.one_of(st.none(), st.integers(-COUNT - 5, COUNT + 5))
counts = st.integers(0, COUNT + 5)
STEPS = st.one_of(
    st.tuples(st.just("where"), st.sampled_from(("cat", "dog"))),
    st.tuples(st.just("sort_by"), st.integers(0, 100), st.booleans()),
    st.tuples(st.just("limit"), counts),
    st.tuples(st.just("slice"), ends, ends, st.one_of(st.none(), st.integers(-3, 3).filter(bool))),
    st.tuples(st.just("sample"), counts, st.integers(0, 3)),
    st.tuples(st.just("select"), st.lists(st.integers(0, 10**6), max_size=6)),
    st.tuples(st.just("part"), st.sampled_from(("train", "val")), st.integers(0, 2)),
)


@pytest.fixture(scope="module")
def pets(tmp_path_factory: pytest.TempPathFactory) -> Iterator[View]:
    """A dataset of vectors: some equal, some without a label, with custom fields that some media lack."""
    random = np.random.default_rng(0)
    vectors = random.standard_normal((COUNT, 8)).round(1)
    vectors[30:34] = vectors[3]
    table = embedded(vectors.tolist(), label=[LABELS[number % 3] for number in range(COUNT)])
    with Workspace(tmp_path_factory.mktemp("pets") / "workspace", settings=SETTINGS) as workspace:
        dataset = workspace.create_dataset("pets", table)
        ids = dataset.view.media_ids()
        dataset.add_field("number", "float", values={each: float(at) for at, each in enumerate(ids)})
        prices = (0.0, -0.0, 1.5, -3.0, 1e300)
        dataset.add_field("price", "float", values={each: prices[at % 5] for at, each in enumerate(ids) if at % 4})
        notes = ("b", "a", "ä", "B", "")
        dataset.add_field("note", "string", values={each: notes[at % 5] for at, each in enumerate(ids) if at % 3})
        texts = {each: str(at % 7) for at, each in enumerate(ids)}
        dataset.add_field("label_text", "enum", enum_options=sorted(set(texts.values())), values=texts)
        yield dataset.view


@pytest.fixture(scope="module")
def things(tmp_path_factory: pytest.TempPathFactory) -> Iterator[View]:
    """The objects of a few images."""
    home = tmp_path_factory.mktemp("things")
    scenes(home / "images", 5)
    with Workspace(home / "workspace", settings=SETTINGS) as workspace:
        yield workspace.create_dataset("things", home / "images", "gist").objects


def rows_of(view: View) -> oracle.Rows:
    """Return the rows of a whole view as the oracle takes them."""
    names = [*view.to_arrow().column_names, "path", "file_name"]
    return [{**row, "number": at} for at, row in enumerate(view.rows(names))]


def applied(view: View, rows: oracle.Rows, step: Any, sorted_by: tuple[str, ...]) -> tuple[View, oracle.Rows]:
    """Return the view and the rows after a step."""
    match step:
        case "where", label:
            return view.where(vql.labels(label)), oracle.where(rows, lambda row: label in row["labels"])
        case "sort_by", number, descending:
            column = sorted_by[number % len(sorted_by)]
            return view.sort_by(column, descending=descending), oracle.sort_by(rows, column, descending=descending)
        case "limit", count:
            return view.limit(count), rows[:count]
        case "slice", start, stop, stride:
            return view[start:stop:stride], rows[start:stop:stride]
        case "sample", count, seed:
            return view.sample(count, seed=seed), oracle.sample(rows, count, seed=seed)
        case "select", positions:
            ids = [rows[each % len(rows)]["media_id"] for each in positions if rows]
            return view.select(ids), oracle.select(rows, ids)
        case "part", name, seed:
            part = view.split({"train": 0.7, "val": 0.3}, seed=seed)[name]
            chosen = set(part.ids)
            return part, [row for row in rows if row["media_id"] in chosen]
    raise AssertionError(step)


def check(view: View, rows: oracle.Rows) -> None:
    """Check that a view has these rows in this order, however they are read."""
    ids = [row["media_id"] for row in rows]
    assert view.ids == ids == view.media_ids() == view.to_arrow(["media_id"])["media_id"].to_pylist()
    assert len(view) == view.count() == len(ids)
    assert [row["media_id"] for row in view] == ids
    assert [row["media_id"] for row in view.first(2)] == ids[:2]
    present = [row["media_id"] for row in rows if row["cluster_id"] is not None]
    names, vectors = view.embeddings()
    assert names == present
    assert len(vectors) == len(names)
    for index in (0, -1, len(ids) // 2):
        if -len(ids) <= index < len(ids):
            assert view[index]["media_id"] == ids[index]
    for index in (len(ids), -len(ids) - 1):
        with pytest.raises(OutOfRange):
            view[index]


@pytest.mark.slow
@examples(150)
@given(steps=st.lists(STEPS, max_size=4))
def test_steps__compose_as_lists_do(pets: View, steps: list[Any]) -> None:
    """Any filters, orders, windows, samples, parts and selections leave the rows that plain Python leaves."""
    view, rows = pets, rows_of(pets)
    for step in steps:
        view, rows = applied(view, rows, step, SORTED)
    check(view, rows)


@pytest.mark.slow
@examples(60)
@given(steps=st.lists(STEPS, max_size=3))
def test_steps__of_objects(things: View, steps: list[Any]) -> None:
    """The same holds for views of objects."""
    view, rows = things, rows_of(things)
    for step in steps:
        view, rows = applied(view, rows, step, OBJECTS_SORTED)
    check(view, rows)


@pytest.mark.slow
@examples(40)
@given(
    steps=st.lists(STEPS, max_size=2),
    shares=st.lists(st.integers(1, 9), min_size=1, max_size=4),
    seed=st.integers(0, 10**12),
)
@pytest.mark.parametrize("source", ["pets", "things"])
def test_split__covers_the_view(
    request: pytest.FixtureRequest, source: str, steps: list[Any], shares: list[int], seed: int
) -> None:
    """The parts of any view are disjoint and cover it, keep its order, and have their shares up to one group."""
    view: View = request.getfixturevalue(source)
    rows = rows_of(view)
    for step in steps:
        view, rows = applied(view, rows, step, ("file_name", "width"))
    parts = view.split({f"part-{at}": each / sum(shares) for at, each in enumerate(shares)}, seed=seed)
    chosen = {name: list(part.ids) for name, part in parts.items()}
    ids = [row["media_id"] for row in rows]
    assert sorted(each for part in chosen.values() for each in part) == sorted(ids)
    assert all(part == [each for each in ids if each in set(part)] for part in chosen.values())
    together = "parent_id" if source == "things" else "duplicate_group_id"
    owner = {each: name for name, part in chosen.items() for each in part}
    groups: dict[str, set[str]] = {}
    for row in rows:
        if row[together] is not None:
            groups.setdefault(row[together], set()).add(owner[row["media_id"]])
    assert all(len(each) == 1 for each in groups.values())
    if source == "pets":
        for name, share in zip(chosen, shares, strict=True):
            assert abs(len(chosen[name]) - len(ids) * share / sum(shares)) <= 5  # the equal vectors are five
    assert {name: list(part.ids) for name, part in view.split(
        {f"part-{at}": each / sum(shares) for at, each in enumerate(shares)}, seed=seed
    ).items()} == chosen  # fmt: skip


@examples(40)
@given(steps=st.lists(STEPS, max_size=2), limit=st.integers(0, 10))
def test_search__is_among_the_rows(pets: View, steps: list[Any], limit: int) -> None:
    """A search in a view ranks its rows alone; a filter on the results, and a window of them, keep their scores."""
    view, rows = pets, rows_of(pets)
    for step in steps:
        view, rows = applied(view, rows, step, SORTED)
    query = pets[7]["media_id"]
    everything = pets.similar(query, limit=None).to_arrow(["media_id", "relevance_score"]).to_pylist()
    ids = {row["media_id"] for row in rows}
    expected = [row for row in everything if row["media_id"] in ids]
    results = view.similar(query, limit=None)
    assert results.to_arrow(["media_id", "relevance_score"]).to_pylist() == expected
    assert list(view.similar(query, limit).rows(["media_id", "relevance_score"])) == expected[:limit]
    cats = {row["media_id"] for row in rows if "cat" in row["labels"]}
    cat = vql.labels("cat")
    assert (
        list(view.similar(query, limit).where(cat).ids)
        == [row["media_id"] for row in expected if row["media_id"] in cats][:limit]
    )
    assert list(results.limit(limit).where(cat).rows(["media_id", "relevance_score"])) == [
        row for row in expected[:limit] if row["media_id"] in cats
    ]
    by_name = results.limit(limit).sort_by("file_name").to_arrow(["media_id", "relevance_score"]).to_pylist()
    assert sorted(by_name, key=expected.index) == expected[:limit]
