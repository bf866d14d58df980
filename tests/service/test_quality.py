"""Labels, issues, histograms, duplicates and clean-up plans over HTTP."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from framedex import Dataset, Workspace, vql
from framedex.hub import Hub
from tests.gallery import embedded
from tests.service.client import LOCAL, OWN, Client, client_of
from tests.service.template import copied, make_template

ARROW = {"Accept": "application/vnd.apache.arrow.stream"}


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with a dataset, which is copied for tests that change it."""
    return make_template(tmp_path_factory.mktemp("template"))


@pytest.fixture(scope="module")
def shared(template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Dataset, Client]]:
    """A dataset that stays as it is, and a client."""
    folder = tmp_path_factory.mktemp("shared") / "ws"
    with (
        copied(template, folder) as workspace,
        Hub(workspace) as hub,
        client_of(workspace, hub, LOCAL) as client,
    ):
        yield workspace.dataset("pets"), client


@pytest.fixture
def workspace(template: Path, tmp_path: Path) -> Iterator[Workspace]:
    """A copy of the workspace."""
    with copied(template, tmp_path / "ws") as opened_copy:
        yield opened_copy


@pytest.fixture
def hub(workspace: Workspace) -> Iterator[Hub]:
    """The users of the copy."""
    with Hub(workspace) as opened_hub:
        yield opened_hub


@pytest.fixture
def dataset(workspace: Workspace) -> Dataset:
    """The dataset, which the test may change."""
    return workspace.dataset("pets")


def url(dataset: Dataset, rest: str) -> str:
    """Return the path of something in a dataset."""
    return f"/api/v1/dataset/{dataset.id}{rest}"


def table_of(answer: Any) -> pa.Table:
    """Return the rows of an Arrow answer."""
    assert answer.status_code == 200, answer.text
    return pa.ipc.open_stream(answer.content).read_all()


def rid_of(client: Client, dataset: Dataset, **body: Any) -> str:
    """Open results and return their id."""
    return str(client.post(url(dataset, "/results"), json=body).json()["rid"])


@pytest.mark.slow
def test_labels__are_counted(shared: tuple[Dataset, Client]) -> None:
    """Labels are those of the library, of all media or of results, page by page."""
    dataset, client = shared
    expected = [each.model_dump() for each in dataset.labels()]
    body = client.get(url(dataset, "/labels")).json()
    assert (body["labels"], body["total"]) == (expected, len(expected))
    assert client.get(url(dataset, "/labels?offset=1&limit=1")).json()["labels"] == expected[1:2]
    assert client.get(url(dataset, "/labels?q=OW")).json()["labels"] == [e for e in expected if "ow" in e["name"]]
    town = [{"labels": {"op": "is", "value": "town"}}]
    rid = rid_of(client, dataset, vql=town)
    assert client.get(url(dataset, f"/labels?rid={rid}")).json()["labels"] == [
        each.model_dump() for each in dataset.where(town).labels()
    ]
    assert client.get(url(dataset, "/labels?entity_type=OBJECTS")).json()["labels"] == []
    for query in ("limit=0", "limit=1001", "offset=-1", "entity_type=VIDEOS", "entity_type=X"):
        assert client.get(url(dataset, f"/labels?{query}")).status_code == 422
    assert client.get(url(dataset, "/labels?rid=x")).status_code == 410


@pytest.mark.slow
def test_issues__are_those_of_the_library(shared: tuple[Dataset, Client]) -> None:
    """Counts of all types, rows of one, and the whole table as Arrow."""
    dataset, client = shared
    summaries = [each.model_dump() for each in dataset.view.issue_summaries()]
    assert client.get(url(dataset, "/issues")).json()["summaries"] == summaries
    name = max(summaries, key=lambda each: each["count"])["issue_type"]
    rows = client.get(url(dataset, f"/issues?issue={name}&limit=2")).json()
    assert rows["rows"] == dataset.issues(name).to_arrow().slice(0, 2).to_pylist()
    assert rows["has_more"]
    rest = client.get(url(dataset, f"/issues?issue={name}&offset=2")).json()
    assert rest["rows"] == dataset.issues(name).to_arrow().slice(2).to_pylist()
    assert not rest["has_more"]
    assert table_of(client.get(url(dataset, "/issues"), headers=ARROW)).equals(dataset.issues().to_arrow())
    town = [{"labels": {"op": "is", "value": "town"}}]
    rid = rid_of(client, dataset, vql=town)
    assert table_of(client.get(url(dataset, f"/issues?rid={rid}&issue={name}&limit=1"), headers=ARROW)).equals(
        dataset.where(town).issues(name, limit=1).to_arrow()
    )
    for query in ("issue=never", "limit=0", "limit=501", "offset=-1"):
        assert client.get(url(dataset, f"/issues?{query}")).status_code == 422, query


def test_quality__has_histograms(shared: tuple[Dataset, Client]) -> None:
    """Histograms are those of the library, of one type or of all that have a limit."""
    dataset, client = shared
    (one,) = client.get(url(dataset, "/quality?column=blur&bins=7")).json()["histograms"]
    assert one == dict(dataset.histogram("blur", bins=7))
    names = [each["issue_type"] for each in client.get(url(dataset, "/quality")).json()["histograms"]]
    assert names == list(dataset.limits)
    for query in ("column=never", "bins=0", "bins=1001"):
        assert client.get(url(dataset, f"/quality?{query}")).status_code == 422, query


@pytest.mark.slow
def test_duplicates__page_by_page(shared: tuple[Dataset, Client]) -> None:
    """Groups are those of the library, with the image to keep and the reason."""
    dataset, client = shared
    expected = [each.model_dump(mode="json") for each in dataset.duplicates()]
    pages = [client.get(url(dataset, f"/duplicates?offset={offset}&limit=1")).json() for offset in range(len(expected))]
    assert [group for page in pages for group in page["groups"]] == expected
    assert [page["has_more"] for page in pages] == [True] * (len(expected) - 1) + [False]
    exact = client.get(url(dataset, "/duplicates?exact=true")).json()["groups"]
    assert exact == [each.model_dump() for each in dataset.duplicates(exact=True)]
    assert client.get(url(dataset, "/duplicates?entity_type=VIDEOS")).json()["groups"] == []
    rid = rid_of(client, dataset, vql=[{"folder": {"op": "is", "value": "towns"}}])
    assert client.get(url(dataset, f"/duplicates?rid={rid}")).json()["groups"] == []
    member = expected[0]["media_ids"][-1]
    assert client.get(url(dataset, f"/duplicates?of={member}")).json()["groups"] == expected[:1]
    assert [each.group_id for each in dataset.duplicates(of=member)] == [expected[0]["group_id"]]
    alone = dataset.media_id("towns/05.png")
    assert client.get(url(dataset, f"/duplicates?of={alone}")).json()["groups"] == []
    assert client.get(url(dataset, "/duplicates?of=nothing")).status_code == 404
    wrong = f"of={member}&exact=true", f"of={member}&entity_type=VIDEOS", f"of={member}&within_videos=true"
    for query in (
        *wrong,
        "near=true&exact=true",
        "similarity=0.9",
        "similarity=1.1",
        "limit=0",
        "limit=501",
        f"rid={rid}&entity_type=VIDEOS",
    ):
        assert client.get(url(dataset, f"/duplicates?{query}")).status_code == 422, query


def test_copies__of_files_of_unknown_size(local: Client, workspace: Workspace) -> None:
    """Rows that brought embeddings alone have no size, which counts as nothing."""
    dataset = workspace.create_dataset("vectors", embedded([[1, 0], [1, 0], [0, 1]]))
    answer = local.post(url(dataset, "/duplicates/copies"), json={"similarity": 0.96, "confidence": 0})
    assert answer.status_code == 200, answer.text
    assert (answer.json()["count"], answer.json()["size_bytes"]) == (1, 0)


@pytest.mark.slow
def test_copies__of_all_open_groups(local: Client, dataset: Dataset) -> None:
    """The proposals of open groups are results; one action accepts them, and one undo takes all of it back."""
    groups = dataset.duplicates()
    removed = [each for group in groups for each in group.media_ids if each != group.keep]

    def proposed(**body: float) -> dict[str, Any]:
        answer = local.post(url(dataset, "/duplicates/copies"), json=body)
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    def listed(is_open: bool, offset: int = 0, limit: int = 100) -> dict[str, Any]:
        path = f"/duplicates?is_open={is_open}&offset={offset}&limit={limit}"
        return dict(local.get(url(dataset, path)).json())

    found = proposed()
    sizes = dict(zip(*dataset.view.to_arrow(["media_id", "file_size_bytes"]).to_pydict().values(), strict=True))
    assert (found["count"], found["groups"]) == (len(removed), len(groups))
    assert found["size_bytes"] == sum(sizes[each] for each in removed)
    rows = local.get(url(dataset, f"/results/{found['rid']}/rows?columns=media_id")).json()["rows"]
    assert [row["media_id"] for row in rows] == removed
    assert proposed(confidence=1.0)["groups"] == sum(group.confidence >= 1 for group in groups) < len(groups)
    first, *rest = groups
    dataset.basket.add([first.keep])  # somebody has decided otherwise: of the others the best stays
    assert (proposed()["groups"], proposed()["count"]) == (len(groups), len(removed) - 1)
    kept = next(each for each in first.media_ids if each != first.keep)
    dataset.basket.add([each for each in first.media_ids if each != kept], keep=kept)
    assert [each["group_id"] for each in listed(is_open=True)["groups"]] == [each.group_id for each in rest]
    page = listed(is_open=True, offset=1, limit=1)
    assert ([each["group_id"] for each in page["groups"]], page["has_more"]) == ([rest[1].group_id], len(rest) > 2)
    assert [each["group_id"] for each in listed(is_open=False)["groups"]] == [first.group_id]
    before = dataset.basket.media_ids()
    body = {"action": "basket_add", "on": {"rid": proposed()["rid"]}}
    outcome = local.post(url(dataset, "/actions"), json=body).json()
    assert (listed(is_open=True)["groups"], proposed()["count"]) == ([], 0)
    local.post(url(dataset, "/undo"), json={"token": outcome["undo"]})
    assert dataset.basket.media_ids() == before
    for wrong in ({"similarity": 0.5}, {"similarity": 2}, {"confidence": -1}, {"confidence": "x"}):
        assert local.post(url(dataset, "/duplicates/copies"), json=wrong).status_code == 422, wrong


def test_decisions__keep_groups_apart(local: Client, dataset: Dataset) -> None:
    """A decision about duplicates is listed and can be withdrawn."""
    group = dataset.duplicates()[0]
    body = {"action": "not_duplicates", "on": {"ids": group.media_ids}}
    assert local.post(url(dataset, "/actions"), json=body).status_code == 200
    (decision,) = local.get(url(dataset, "/decisions")).json()["duplicates"]
    assert decision["media_ids"] == group.media_ids
    assert group.group_id not in [each.group_id for each in dataset.duplicates()]
    assert local.delete(url(dataset, f"/decisions/{decision['decision_id']}")).content == b""
    assert dataset.duplicate_decisions() == []


def test_vql_schema(shared: tuple[Dataset, Client], open_client: Client) -> None:
    """The schema of filters is that of the library, for users."""
    assert shared[1].get("/api/v1/vql/schema").json() == vql.json_schema()
    assert open_client.get("/api/v1/vql/schema").status_code == 401


@pytest.mark.slow
@pytest.mark.only_soak
def test_cleanup__is_planned_and_applied(local: Client, workspace: Workspace, dataset: Dataset) -> None:
    """A plan has its rows and results of what it removes; applying it is a task that can be undone."""
    answer = local.post(url(dataset, "/cleanup/plan"), json={"duplicates": 0.96, "issues": ["dark"]})
    assert answer.status_code == 200, answer.text
    plan = answer.json()
    expected = dataset.plan_cleanup(duplicates=0.96, issues=["dark"])
    assert (plan["summary"], plan["words"]) == (expected.summary.model_dump(), expected.words)
    rows = local.get(url(dataset, f"/results/{plan['rid']}/rows?columns=media_id")).json()["rows"]
    assert [row["media_id"] for row in rows] == expected.removed_ids()
    base = url(dataset, f"/cleanup/plan/{plan['plan_id']}/rows")
    assert table_of(local.get(base, headers=ARROW)).equals(expected.to_arrow())
    page = local.get(base + "?offset=1&limit=2").json()
    assert (page["count"], page["rows"]) == (len(expected.to_arrow()), expected.to_arrow().slice(1, 2).to_pylist())
    for query in ("limit=0", "limit=501", "offset=-1"):
        assert local.get(f"{base}?{query}").status_code == 422
    before = dataset.count()
    started = local.post(url(dataset, "/cleanup/apply"), json={"plan_id": plan["plan_id"]})
    assert started.status_code == 202, started.text
    workspace.task(started.json()["task_id"]).wait()
    assert dataset.count() == before - len(expected)
    assert local.post(url(dataset, "/cleanup/apply"), json={"plan_id": plan["plan_id"]}).status_code == 409
    assert local.post(url(dataset, "/undo"), json={}).status_code == 200
    assert dataset.count() == before


@pytest.mark.slow
def test_cleanup__of_basket_and_rules(local: Client, workspace: Workspace, dataset: Dataset) -> None:
    """Rules, basket and what a person keeps are one plan; rows are read by parts and taken out; it is one undo."""
    group = dataset.duplicates(exact=True)[0]
    kept = next(each for each in group.media_ids if each != group.keep)
    rest = [each for each in group.media_ids if each != kept]
    body = {"action": "basket_add", "on": {"ids": rest}, "args": {"keep": kept}}
    assert local.post(url(dataset, "/actions"), json=body).json()["count"] == len(group.media_ids)
    assert local.get(url(dataset, "/decisions")).json()["kept"] == dataset.kept_ids() == [kept]
    dark = dataset.where(vql.issues("dark")).media_ids()
    local.post(url(dataset, "/actions"), json={"action": "keep", "on": {"ids": dark}})
    rules = {"duplicates": 0.96, "issues": ["dark"], "basket": True}
    first = local.post(url(dataset, "/cleanup/plan"), json=rules).json()
    expected = dataset.plan_cleanup(duplicates=0.96, issues=["dark"], basket=True)
    assert first["words"] == expected.words
    assert set(rest) <= set(expected.removed_ids())
    assert not {kept, *dark} & set(expected.removed_ids())

    def rows(plan: dict[str, Any], part: str) -> list[dict[str, Any]]:
        path = f"/cleanup/plan/{plan['plan_id']}/rows?part={part}&limit=500"
        return list(local.get(url(dataset, path)).json()["rows"])

    removed = rows(first, "removed")
    assert sorted(row["media_id"] for row in removed) == sorted(expected.removed_ids())
    assert [row["issue_type"] for row in removed] == sorted(row["issue_type"] for row in removed)
    assert {row["media_id"]: row["protected"] for row in rows(first, "protected")} == dict.fromkeys(
        [kept, *dark], "chosen"
    )
    assert len(removed) + len(rows(first, "kept")) == len(expected.to_arrow())
    assert local.get(url(dataset, f"/cleanup/plan/{first['plan_id']}/rows?part=x")).status_code == 422
    without = url(dataset, f"/cleanup/plan/{first['plan_id']}/without")
    plan = local.post(without, json={"media_ids": rest[:1]}).json()
    assert plan["summary"]["removed"] == first["summary"]["removed"] - 1
    assert local.post(without, json={"media_ids": dark}).status_code == 422
    assert local.post(url(dataset, "/cleanup/plan/x/without"), json={"media_ids": []}).status_code == 410
    before, step = dataset.view.media_ids(), dataset.journal()[0].step
    started = local.post(url(dataset, "/cleanup/apply"), json={"plan_id": plan["plan_id"]})
    workspace.task(started.json()["task_id"]).wait()
    left = dataset.view.media_ids()
    assert set(before) - set(left) == set(expected.removed_ids()) - {rest[0]}
    assert [each.operation for each in dataset.journal() if each.step > step] == ["cleanup"]
    undone = local.post(url(dataset, "/undo"), json={}).json()
    assert (undone["count"], undone["lost_files"]) == (plan["summary"]["removed"], 0)
    assert dataset.view.media_ids() == before


def test_cleanup__that_is_refused(local: Client, dataset: Dataset) -> None:
    """Plans need rules that can be used, and are kept for their user."""
    answer = local.post(url(dataset, "/cleanup/plan"), json={"duplicates": "exact", "within_videos": True})
    assert (answer.status_code, "within_videos goes with a similarity" in answer.text) == (422, True)
    wrong: list[Any] = [
        {}, {"duplicates": 0.5}, {"duplicates": "x"}, {"issues": ["never"]}, {"issues": ["dark"], "keep": "x"},
        {"issues": {"dark": 2}}, {"duplicates": 0.96, "where": [{"x": 1}]}, [],
    ]  # fmt: skip
    for body in wrong:
        assert local.post(url(dataset, "/cleanup/plan"), json=body).status_code == 422, body
    assert local.post(url(dataset, "/cleanup/apply"), json={"plan_id": "x"}).status_code == 410
    assert local.post(url(dataset, "/cleanup/apply"), json={}).status_code == 422
    assert local.get(url(dataset, "/cleanup/plan/x/rows")).status_code == 410
    rules = {"issues": ["dark"], "where": [{"labels": {"op": "is", "value": "never"}}]}
    empty = local.post(url(dataset, "/cleanup/plan"), json=rules).json()
    assert empty["summary"]["removed"] == 0
    answer = local.post(url(dataset, "/cleanup/apply"), json={"plan_id": empty["plan_id"]})
    assert (answer.status_code, answer.json()) == (202, {"task_id": None})


@pytest.mark.slow
def test_cleanup__of_files(open_client: Client, workspace: Workspace, dataset: Dataset, tmp_path: Path) -> None:
    """Viewers may plan; editors may apply; files are deleted for those alone who may delete the dataset."""
    open_client.log_in("vic")
    plan = open_client.post(url(dataset, "/cleanup/plan"), headers=OWN, json={"duplicates": "exact"})
    assert plan.status_code == 200
    body = {"plan_id": plan.json()["plan_id"]}
    assert open_client.post(url(dataset, "/cleanup/apply"), headers=OWN, json=body).status_code == 403
    open_client.log_in("eve")
    assert open_client.post(url(dataset, "/cleanup/apply"), headers=OWN, json=body).status_code == 410
    body = {"plan_id": open_client.post(url(dataset, "/cleanup/plan"), headers=OWN, json={"duplicates": "exact"})
            .json()["plan_id"]}  # fmt: skip
    refused = open_client.post(url(dataset, "/cleanup/apply"), headers=OWN, json={**body, "delete_files": True})
    assert refused.status_code == 403
    started = open_client.post(url(dataset, "/cleanup/apply"), headers=OWN, json=body)
    assert started.status_code == 202
    workspace.task(started.json()["task_id"]).wait()
    assert workspace.task(started.json()["task_id"]).record.created_by == "eve@example.org"
