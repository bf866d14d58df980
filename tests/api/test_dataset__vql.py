"""Filters on a real dataset: each key finds what its images, edits and additions say."""

import json
import operator
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import framedex
from framedex import InvalidFilter, InvalidInput, Workspace, vql
from tests.gallery import ANIMALS, BAD, BROKEN, COPIES, FURRY, NAMES, NEAR, SETTINGS, TOWNS, Gallery, make_gallery
from tests.image_files import photo, write
from tests.inside import stored_media
from tests.prepared import prepared


@pytest.fixture(scope="module")
def edited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gallery]:
    """The gallery with tags and custom fields, and a later image in a folder of its own."""
    home = tmp_path_factory.mktemp("edited")
    make_gallery(home / "images")
    with Workspace(home / "workspace", settings=SETTINGS) as workspace:
        dataset = workspace.create_dataset("edited", home / "images", "gist")
        write(home / "images/animals/young/Späte Größe.PNG", photo(300))
        dataset.add_media(home / "images", auto_reindex=True)
        rows = dataset.to_arrow(["media_id", "image_filename"]).to_pylist()
        ids = {row["image_filename"]: row["media_id"] for row in rows}
        first, second, third = (ids[name] for name in ANIMALS[:3])
        dataset.tag([first, second], "keep; --")
        dataset.add_field("note", "string", values={first: "It's a CAT \0 🐈", second: "قطة"})
        dataset.add_field("price", "float", is_multi=True, values={first: [1, 10], second: [5.5]})
        dataset.add_field(
            "seen", "datetime", values={first: "2024-05-17T23:30:00Z", second: "2024-05-18T01:00:00+02:00"}
        )
        dataset.add_field("grade", "enum", enum_options=["low", "high"], values={third: "high"})
        dataset.add_field("page", "link", values={third: "https://example.org/Cats?id=3"})
        dataset.add_field("unused", "string")
        yield Gallery(home / "images", workspace, dataset, ids)


LATE = "animals/young/Späte Größe.PNG"
ALL = {*NAMES, LATE}
CASES: list[tuple[dict[str, Any], set[str]]] = [
    ({"labels": {"op": "is", "value": "fur"}}, set(FURRY)),
    ({"labels": {"op": "one_of", "value": ["fur", "town"]}}, {*FURRY, *TOWNS}),
    ({"labels": {"op": "not_one_of", "value": ["animal", "town"]}}, ALL - {*ANIMALS, *TOWNS}),
    ({"tags": {"op": "is", "value": "keep; --"}}, set(ANIMALS[:2])),
    ({"tags": {"op": "is", "value": "untagged"}}, ALL - set(ANIMALS[:2])),
    ({"issues": {"op": "issue", "value": "dark"}}, {"bad/dark.png"}),
    ({"issues": {"op": "issue", "value": "corrupted", "mode": "out"}}, ALL - set(BROKEN)),
    ({"issues": {"op": "issue", "value": "corrupted", "confidence_min": 0.5, "confidence_max": 1}}, set(BROKEN)),
    ({"duplicates": {"op": "duplicates", "value": 1.0}}, set(COPIES)),
    ({"uniqueness": {"op": "uniqueness", "value": 0}}, ALL - set(BROKEN)),
    ({"field": {"name": "note", "op": "contains", "value": "a cat \0 🐈"}}, {ANIMALS[0]}),
    ({"field": {"name": "note", "op": "is", "value": "قطة"}}, {ANIMALS[1]}),
    ({"field": {"name": "note", "op": "missing"}}, ALL - set(ANIMALS[:2])),
    ({"field": {"name": "price", "op": "gt", "value": 5.5}}, {ANIMALS[0]}),
    ({"field": {"name": "price", "op": "between", "value": [1, 5.5]}}, set(ANIMALS[:2])),
    ({"field": {"name": "price", "op": "one_of", "value": [5.5, 7]}}, {ANIMALS[1]}),
    ({"field": {"name": "seen", "op": "between", "value": ["2024-05-17", "2024-05-17"]}}, set(ANIMALS[:2])),
    ({"field": {"name": "seen", "op": "ge", "value": "2024-05-17T23:15"}}, {ANIMALS[0]}),
    ({"field": {"name": "grade", "op": "is", "value": "high"}}, {ANIMALS[2]}),
    ({"field": {"name": "grade", "op": "is", "value": "low"}}, set()),
    ({"field": {"name": "page", "op": "contains", "value": "cats"}}, {ANIMALS[2]}),
    ({"field": {"name": "unused", "op": "is", "value": "x"}}, set()),
    ({"field": {"name": "unused", "op": "missing"}}, ALL),
    ({"file_name": {"op": "is", "value": "00.jpg"}}, {ANIMALS[0], "copies/00.jpg"}),
    ({"file_name": {"op": "starts", "value": "späte"}}, {LATE}),
    ({"file_name": {"op": "contains", "value": "GRÖ"}}, {LATE}),
    ({"file_name": {"op": "ends", "value": ".png"}}, {name for name in ALL if name.lower().endswith(".png")}),
    ({"folder": {"op": "is", "value": "animals"}}, set(ANIMALS)),
    ({"folder": {"op": "is", "value": ""}}, set()),
    ({"folder": {"op": "starts", "value": "Animals/"}}, {*ANIMALS, LATE}),
    ({"folder": {"op": "starts", "value": "animal"}}, set()),
    ({"folder": {"op": "ends", "value": "young"}}, {LATE}),
    ({"folder": {"op": "contains", "value": "animal"}}, {*ANIMALS, LATE}),
    ({"media": {"op": "is", "value": "image"}}, ALL),
    ({"media": {"op": "is", "value": "video"}}, set()),
    ({"size": {"op": "is", "value": 0}}, {"broken/empty.jpg"}),
    ({"size": {"op": "is", "value": 400, "of": "width"}}, {"bad/wide.png"}),
    ({"size": {"op": "le", "value": 60, "of": "height"}}, {"bad/bright.png", "bad/wide.png", "near/small.jpg"}),
    ({"batch": {"op": "is", "value": 1}}, {LATE}),
    ({"batch": {"op": "one_of", "value": [0, 7]}}, set(NAMES)),
    ({"any": [{"batch": {"op": "is", "value": 1}}, {"issues": {"op": "issue", "value": "dark"}}]}, {LATE, BAD[1]}),
    ({"not": [{"folder": {"op": "is", "value": "animals"}}, {"labels": {"op": "is", "value": "fur"}}]}, ALL - {*FURRY}),
]


@pytest.mark.slow
@pytest.mark.parametrize(("element", "names"), CASES)
def test_where__each_key(edited: Gallery, element: dict[str, Any], names: set[str]) -> None:
    """A test finds the media that it describes, its `not` all others; as a list and as JSON text."""
    dataset = edited.dataset
    assert set(edited.names(dataset.where([element]).media_ids())) == names
    assert set(edited.names(dataset.where(json.dumps([{"not": element}])).media_ids())) == ALL - names


@pytest.mark.slow
@pytest.mark.only_soak
def test_where__size_of_the_file(edited: Gallery) -> None:
    """Files are compared by the bytes that they have on the disk."""
    for op, holds in (("lt", operator.lt), ("ge", operator.ge)):
        names = {name for name in ALL if holds((edited.folder / name).stat().st_size, 5000)}
        found = edited.dataset.where([{"size": {"op": op, "value": 5000}}]).media_ids()
        assert set(edited.names(found)) == names != set()


def test_where__near_duplicates(edited: Gallery) -> None:
    """Members of groups at a similarity, as many as the groups show."""
    groups = edited.dataset.duplicates(0.96)
    members = {member for group in groups for member in group.media_ids}
    found = edited.dataset.where(vql.duplicates(0.96)).media_ids()
    assert set(found) == members
    assert set(edited.names(found)) >= {name for pair in NEAR for name in pair}


def test_where__date_added(edited: Gallery) -> None:
    """Each addition has its time; a time between the two parts them."""
    times = stored_media(edited.dataset).generation.summary.added_at
    first, second = (datetime.fromisoformat(times[batch]) for batch in ("0", "1"))
    assert datetime.now(UTC) - timedelta(hours=1) < first < second < datetime.now(UTC)
    between = first + (second - first) / 2
    where = edited.dataset.where
    assert edited.names(where(vql.date_added("ge", between)).media_ids()) == [LATE]
    assert where(vql.date_added("lt", between)).count() == len(NAMES)
    assert where(vql.date_added("is", first)).count() == len(NAMES)
    assert where(vql.date_added("between", [first, second])).count() == len(ALL)
    assert where(vql.date_added("lt", "2020-01-01")).count() == 0
    assert where(vql.date_added("le", "9999-12-31")).count() == len(ALL)


@pytest.mark.slow
@pytest.mark.only_soak
def test_date_added__stays_with_snapshots_edits_and_deletions(workspace: Workspace, folder: Path) -> None:
    """Times are part of a state: they outlive edits, deletions and restores, and a clone has them too."""
    dataset = prepared(workspace, "d", folder, "gist")
    today = vql.date_added("ge", datetime.now(UTC) - timedelta(hours=1))
    write(folder / "later.png", photo(301))
    dataset.add_media(folder, auto_reindex=True)
    snapshot = dataset.snapshot("both")
    dataset.set_labels({dataset.where([]).media_ids()[0]: ["cat"]})
    dataset.delete_media(dataset.where(vql.batch(0)).media_ids()[:1])
    assert dataset.where(today).count() == 6
    assert dataset.where(today & vql.batch(1)).count() == 1
    dataset.restore(snapshot)
    assert dataset.where(today).count() == 7
    assert dataset.clone(snapshot).where(today).count() == 7


@pytest.mark.slow
def test_date_added__of_changed_files(workspace: Workspace, folder: Path) -> None:
    """A file that has changed counts as added when it was replaced."""
    dataset = prepared(workspace, "d", folder, "gist")
    write(folder / "000.png", photo(302, width=300))
    dataset.add_media(folder, auto_reindex=True)
    ids = dataset.where(vql.batch(1) & vql.file_name("is", "000.png")).media_ids()
    assert len(ids) == 1
    times = stored_media(dataset).generation.summary.added_at
    assert dataset.where(vql.date_added("ge", datetime.fromisoformat(times["1"]))).media_ids() == ids


@pytest.mark.slow
def test_where__expressions(edited: Gallery) -> None:
    """An expression goes wherever a filter goes."""
    dataset = edited.dataset
    expression = framedex.vql.folder("is", "animals") & ~framedex.vql.labels("fur")
    wanted = set(ANIMALS) - set(FURRY)
    assert set(edited.names(dataset.where(expression).media_ids())) == wanted
    assert set(edited.names(dataset.where([~~expression]).where(vql.batch(0)).media_ids())) == wanted
    page = dataset.explore(vql=expression)
    assert sum(cluster.n_images for cluster in page.clusters) == len(wanted)
    assert dataset.plan_cleanup(issues=["dark"], where=vql.issues("dark") | vql.tags("none")).to_arrow().num_rows == 1


def test_where__field_that_is_not_there(edited: Gallery) -> None:
    """The error names the path, the field, and those that there are."""
    view = edited.dataset.where([{"not": {"field": {"name": "prize", "op": "lt", "value": 3}}}])
    with pytest.raises(
        InvalidFilter, match=r"\$\[0\]\.not\.field\.name: no custom field 'prize'; there are 'note', 'price'"
    ):
        view.count()


@pytest.mark.slow
def test_where__too_many_views_of_views(edited: Gallery) -> None:
    """The combined filter of nested views has the same limits as a single filter."""
    half = edited.dataset.where([{"batch": {"op": "is", "value": 0}}] * 6000)
    with pytest.raises(InvalidInput, match="10,000 elements"):
        half.where([{"batch": {"op": "is", "value": 0}}] * 6000)


def test_explain__shows_statement_values_and_columns(edited: Gallery) -> None:
    """The explanation has numbered parameters, with their values below."""
    shown = edited.dataset.where(
        vql.issues("blur", confidence_min=0.25) & vql.field("note", "contains", "a'b")
    ).explain()
    assert shown.splitlines() == [
        "SELECT _rowid FROM media",
        "WHERE ((issue_blur BETWEEN $1::FLOAT AND $2::FLOAT) IS TRUE)"
        " AND ((contains(lower(field_0), lower($3::VARCHAR))) IS TRUE)",
        "$1 = 0.25",
        "$2 = 1.0",
        '$3 = "a\'b"',
        "columns read: field_0, issue_blur",
    ]
    assert edited.dataset.where([]).explain().endswith("WHERE TRUE\ncolumns read: none")
    long = edited.dataset.where(vql.labels([str(number) for number in range(10_000)])).explain()
    assert len(long) < 600


def test_explain__of_columns_that_are_not_there(edited: Gallery) -> None:
    """Tests on columns that the table lacks are FALSE, and read nothing."""
    view = edited.dataset.where(vql.field("unused", "is", "x") | vql.field("unused", "is", "y"))
    assert view.explain() == "SELECT _rowid FROM media\nWHERE (FALSE OR FALSE)\ncolumns read: none"
