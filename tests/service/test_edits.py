"""Actions with undo, the journal, tags, fields, limits and decisions over HTTP."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from framedex import Dataset, Workspace
from framedex.hub import Hub
from framedex.service.arrow import ARROW
from tests.gallery import fill
from tests.service.client import OWN, Client
from tests.service.template import copied, make_template


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with a dataset, which is copied for each test."""
    return make_template(tmp_path_factory.mktemp("template"))


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


def act(client: Client, dataset: Dataset, action: str, on: Any, expected: int = 200, **args: Any) -> dict[str, Any]:
    """Do an action on ids or on results, and return the answer."""
    expect = args.pop("expect_generation", None)
    body = {"action": action, "on": on, "args": args, "expect_generation": expect}
    answer = client.post(url(dataset, "/actions"), json=body)
    assert answer.status_code == expected, answer.text
    result: dict[str, Any] = answer.json()
    return result


def opened(client: Client, dataset: Dataset, **body: Any) -> dict[str, Any]:
    """Open results."""
    result: dict[str, Any] = client.post(url(dataset, "/results"), json=body).json()
    return result


@pytest.mark.slow
@pytest.mark.only_soak
def test_actions__each_is_undone(local: Client, dataset: Dataset) -> None:
    """Each action changes what it says; its token undoes it, and does it again."""
    ids = dataset.view.media_ids()
    before = dataset.to_arrow()
    rid = opened(local, dataset, vql=[{"labels": {"op": "is", "value": "town"}}])
    towns = dataset.where([{"labels": {"op": "is", "value": "town"}}]).count()
    for action, on, args, count in (
        ("tag", {"rid": rid["rid"]}, {"tag": "seen"}, towns),
        ("tag", {"ids": ids[:2]}, {"tag": "other"}, 2),
        ("set_labels", {"ids": ids[:3]}, {"labels": ["x", "y"]}, 3),
        ("set_labels", None, {"values": {ids[0]: ["a"], ids[1]: []}}, 2),
        ("set_captions", {"rid": rid["rid"]}, {"caption": "a town"}, towns),
        ("set_captions", None, {"values": {ids[0]: "one", ids[1]: None}}, 1),
        ("basket_add", {"ids": ids[:4]}, {}, 4),
        ("not_duplicates", {"ids": ids[:2]}, {}, 2),
        ("delete", {"ids": ids[5:7]}, {}, 2),
    ):
        done = act(local, dataset, action, on, **args)
        assert (done["count"], done["generation"]) == (count, dataset.generation), action
        changed = dataset.to_arrow()
        for rest, table in (("/undo", before), ("/redo", changed), ("/undo", before)):
            answer = local.post(url(dataset, rest), json={"token": done["undo"]})
            assert (answer.status_code, answer.json()["count"]) == (200, count), (action, answer.text)
            assert answer.json()["generation"] == dataset.generation
            assert dataset.to_arrow().equals(table), action


@pytest.mark.slow
@pytest.mark.only_soak
def test_actions__that_remove(local: Client, dataset: Dataset) -> None:
    """Tags and the basket are taken back by actions, too, and a decision about labels takes effect."""
    ids = dataset.view.media_ids()
    labelled = dataset.where([{"labels": {"op": "is", "value": "town"}}]).media_ids()[:2]
    act(local, dataset, "tag", {"ids": ids}, tag="seen")
    rid = opened(local, dataset, sort={"column": "width"})["rid"]
    assert act(local, dataset, "untag", {"rid": rid}, tag="seen")["count"] == len(ids)
    act(local, dataset, "basket_add", {"rid": rid})
    assert dataset.basket.count() == len(ids)
    act(local, dataset, "basket_remove", {"ids": ids[1:]})
    assert dataset.basket.media_ids() == ids[:1]
    done = act(local, dataset, "label_is_right", {"ids": labelled})
    assert (done["count"], done["undo"]) == (2, str(dataset.journal()[0].step))
    listed = local.get(url(dataset, "/decisions")).json()
    assert [each["media_ids"] for each in listed["labels"]] == [labelled]
    decision = listed["labels"][0]["decision_id"]
    assert local.delete(url(dataset, f"/decisions/{decision}")).status_code == 200
    assert local.delete(url(dataset, f"/decisions/{decision}")).status_code == 404
    assert dataset.label_decisions() == []


@pytest.mark.slow
def test_actions__while_others_edit(local: Client, dataset: Dataset) -> None:
    """An action on rows that changed since they were seen is a conflict; other changes do not matter."""
    ids = dataset.view.media_ids()
    seen = dataset.generation
    rid = opened(local, dataset, ids=ids[:3])["rid"]
    dataset.tag(ids[10:12], "elsewhere")
    for on in ({"rid": rid}, {"ids": ids[:3]}):
        act(local, dataset, "tag", on, tag="seen", expect_generation=seen)
        local.post(url(dataset, "/undo"), json={})
        if on == {"rid": rid}:
            continue
        dataset.set_captions({ids[1]: "changed by another"})
        for each in ({"rid": rid}, {"ids": ids[:3]}):
            refused = act(local, dataset, "tag", each, 409, tag="seen", expect_generation=seen)
            assert "have changed" in refused["detail"]
            act(local, dataset, "delete", each, 409, expect_generation=seen)
        act(local, dataset, "tag", {"ids": ids[4:6]}, tag="seen", expect_generation=seen)
    act(local, dataset, "tag", {"ids": ids[:1]}, 409, tag="seen", expect_generation="0" * 36)
    act(local, dataset, "tag", {"rid": rid}, 409, tag="seen", expect_generation="0" * 36)
    act(local, dataset, "tag", {"rid": rid}, tag="seen")  # without the check


@pytest.mark.slow
@pytest.mark.only_soak
def test_actions__on_results_of_an_earlier_state(local: Client, dataset: Dataset) -> None:
    """Results keep their rows: what was added to a filter later is not changed, and what is gone is left out."""
    ids = dataset.view.media_ids()
    dataset.tag(ids[:3], "chosen")
    rid = opened(local, dataset, vql=[{"tags": {"op": "is", "value": ["chosen"]}}])["rid"]
    dataset.tag(ids[5:6], "chosen")
    dataset.delete_media(ids[0])
    assert act(local, dataset, "tag", {"rid": rid}, tag="done")["count"] == 2
    assert dataset.where([{"tags": {"op": "is", "value": ["done"]}}]).media_ids() == ids[1:3]


def test_actions__that_are_refused(local: Client, dataset: Dataset) -> None:
    """Wrong actions change nothing and are answered with a sentence."""
    ids = dataset.view.media_ids()
    before = dataset.generation
    for action, on, args, status in (
        ("tag", {"ids": ids[:1]}, {}, 422),
        ("tag", {"ids": ids[:1]}, {"tag": 7}, 422),
        ("tag", {"ids": ids[:1]}, {"tag": "basket"}, 422),
        ("tag", None, {"tag": "x"}, 422),
        ("tag", {}, {"tag": "x"}, 422),
        ("tag", {"ids": []}, {"tag": "x"}, 422),
        ("tag", {"ids": ids[:1], "rid": "x"}, {"tag": "x"}, 422),
        ("tag", {"ids": ["nobody"]}, {"tag": "x"}, 404),
        ("tag", {"rid": "nothing"}, {"tag": "x"}, 410),
        ("untag", {"ids": ids[:1]}, {"tag": "never"}, 404),
        ("set_labels", {"ids": ids[:1]}, {}, 422),
        ("set_labels", {"ids": ids[:1]}, {"labels": [["a"]]}, 422),
        ("set_labels", {"ids": ids[:1]}, {"values": {ids[0]: ["a"]}}, 422),
        ("set_labels", None, {"values": {}}, 422),
        ("set_labels", None, {"values": {str(number): [] for number in range(501)}}, 422),
        ("set_captions", None, {"values": {"nobody": "x"}}, 404),
        ("set_field", {"ids": ids[:1]}, {"name": "never", "value": 1}, 404),
        ("not_duplicates", {"ids": ids[:1]}, {}, 422),
        ("delete", {"ids": ["nobody"]}, {}, 404),
        ("nothing", {"ids": ids[:1]}, {}, 422),
    ):
        assert act(local, dataset, action, on, status, **args)["detail"], action
    assert act(local, dataset, "tag", {"ids": ["x" * 36] * 501}, 422, tag="x")
    assert dataset.generation == before
    for rest in ("/undo", "/redo"):
        assert local.post(url(dataset, rest), json={}).status_code == 409
        for token in ("1000", "x", "²", "-1", "9" * 40):
            assert local.post(url(dataset, rest), json={"token": token}).status_code == 404, token


def test_fields_and_their_values(local: Client, dataset: Dataset) -> None:
    """Fields are created, listed, filled by actions, renamed and deleted."""
    ids = dataset.view.media_ids()
    made = local.post(url(dataset, "/fields"), json={"field_name": "score", "field_type": "float"})
    assert made.status_code == 200, made.text
    assert made.json()["field_name"] == "score"
    assert local.post(url(dataset, "/fields"), json={"field_name": "score", "field_type": "float"}).status_code == 409
    assert local.post(url(dataset, "/fields"), json={"field_name": "a", "field_type": "colour"}).status_code == 422
    assert local.post(url(dataset, "/fields"), json={"field_name": "", "field_type": "float"}).status_code == 422
    done = act(local, dataset, "set_field", {"ids": ids[:2]}, name="score", value=1.5)
    assert (done["count"], done["errors"], done["task_id"]) == (2, [], None)
    for rest, value in (("/undo", None), ("/redo", 1.5)):
        assert local.post(url(dataset, rest), json={"token": done["undo"]}).status_code == 200
        assert dataset.to_arrow(["score"])["score"].to_pylist()[1] == value
    wrong = act(local, dataset, "set_field", None, name="score", values={ids[0]: 2, ids[1]: "x"})
    assert wrong["count"] == 1
    assert len(wrong["errors"]) == 1
    assert dataset.to_arrow(["score"])["score"].to_pylist()[:2] == [2, 1.5]
    field = made.json()["field_id"]
    assert local.patch(url(dataset, f"/fields/{field}"), json={"field_name": "mark"}).json()["field_name"] == "mark"
    assert [each["field_name"] for each in local.get(url(dataset, "/fields")).json()] == ["mark"]
    assert local.delete(url(dataset, "/fields/mark")).status_code == 200
    for answer in (
        local.delete(url(dataset, "/fields/mark")),
        local.patch(url(dataset, f"/fields/{field}"), json={"field_name": "x"}),
    ):
        assert answer.status_code == 404
    assert local.get(url(dataset, "/fields")).json() == []


@pytest.mark.slow
def test_tags__from_creation_to_deletion(local: Client, dataset: Dataset) -> None:
    """Tags are created, listed, renamed and deleted, by id or name; the journal tells it."""
    made = local.post(url(dataset, "/tags"), json={"name": "good"}).json()
    assert local.post(url(dataset, "/tags"), json={"name": "good"}).status_code == 409
    for name in ("", "x" * 256, "untagged", "basket"):
        assert local.post(url(dataset, "/tags"), json={"name": name}).status_code == 422
    assert local.post(url(dataset, "/tags"), json={}).status_code == 422
    renamed = local.patch(url(dataset, f"/tags/{made['tag_id']}"), json={"name": "x" * 255})
    assert renamed.json()["name"] == "x" * 255
    assert local.patch(url(dataset, "/tags/never"), json={"name": "a"}).status_code == 404
    assert [each["tag_id"] for each in local.get(url(dataset, "/tags")).json()] == [made["tag_id"]]
    assert local.delete(url(dataset, f"/tags/{'x' * 255}")).status_code == 200
    assert local.delete(url(dataset, f"/tags/{made['tag_id']}")).status_code == 404
    journal = local.get(url(dataset, "/journal?limit=2")).json()
    assert ([each["operation"] for each in journal["steps"]], journal["has_more"]) == (
        ["delete_tag", "rename_tag"],
        True,
    )
    rest = local.get(url(dataset, "/journal?offset=2")).json()
    assert ([each["operation"] for each in rest["steps"]], rest["has_more"]) == (["create_tag"], False)
    for query in ("limit=0", "limit=501", "offset=-1"):
        assert local.get(url(dataset, f"/journal?{query}")).status_code == 422


def test_journal__values_of_a_step(local: Client, dataset: Dataset) -> None:
    """A step tells what media had before and after it, in pages of JSON or as one Arrow stream."""
    ids = dataset.view.media_ids()[:2]
    dataset.set_labels(ids, [])
    dataset.set_labels(ids, "seen")
    step = dataset.journal(1)[0].step
    page = local.get(url(dataset, f"/journal/{step}?limit=1")).json()
    assert page == {"rows": [{"media_id": ids[0], "before labels": None, "after labels": ["seen"]}], "total": 2}
    stream = local.get(url(dataset, f"/journal/{step}"), headers={"Accept": ARROW})
    assert pa.ipc.open_stream(stream.content).read_all().equals(dataset.journal_values(step))
    assert local.get(url(dataset, "/journal/99")).status_code == 404
    dataset.create_tag("new")
    assert local.get(url(dataset, f"/journal/{step + 1}")).status_code == 409


def test_limits__change_issues(local: Client, dataset: Dataset) -> None:
    """Limits are listed, set and reset."""
    default = {each["issue_type"]: each["limit"] for each in local.get(url(dataset, "/limits")).json()}
    changed = local.post(url(dataset, "/limits"), json={"limits": {"dark": 0.5}}).json()
    assert {each["issue_type"]: each["limit"] for each in changed} == {**default, "dark": 0.5}
    reset = local.post(url(dataset, "/limits"), json={"limits": {"dark": None}}).json()
    assert {each["issue_type"]: each["limit"] for each in reset} == default
    assert local.post(url(dataset, "/limits"), json={"reset": ["dark"]}).status_code == 200
    assert local.post(url(dataset, "/limits"), json={"reset": []}).status_code == 200
    bodies: list[Any] = [{"reset": ["never"]}, {}, {"reset": [], "limits": {}}]
    for body in bodies:
        assert local.post(url(dataset, "/limits"), json=body).status_code == 422
    wrong: list[Any] = [{"never": 1}, {"self": 1}, {"dark": "x"}, {"dark": 7}, [], None]
    for limits in wrong:
        assert local.post(url(dataset, "/limits"), json={"limits": limits}).status_code == 422, limits


@pytest.mark.parametrize("name", ["vic", "eve"])
def test_edits__need_the_right_to_edit(open_client: Client, dataset: Dataset, name: str) -> None:
    """Viewers may look at everything and change nothing; editors may do both."""
    open_client.log_in(name)
    ids = dataset.view.media_ids()
    for rest in ("/journal", "/tags", "/fields", "/limits", "/decisions"):
        assert open_client.get(url(dataset, rest)).status_code == 200, rest
    changes = [
        open_client.post(
            url(dataset, "/actions"), headers=OWN, json={"action": "tag", "on": {"ids": ids[:1]}, "args": {"tag": "x"}}
        ),
        open_client.post(url(dataset, "/undo"), headers=OWN, json={}),
        open_client.post(url(dataset, "/redo"), headers=OWN, json={}),
        open_client.post(url(dataset, "/tags"), headers=OWN, json={"name": "y"}),
        open_client.patch(url(dataset, "/tags/y"), headers=OWN, json={"name": "z"}),
        open_client.delete(url(dataset, "/tags/z"), headers=OWN),
        open_client.post(url(dataset, "/fields"), headers=OWN, json={"field_name": "f", "field_type": "string"}),
        open_client.patch(url(dataset, "/fields/f"), headers=OWN, json={"field_name": "g"}),
        open_client.delete(url(dataset, "/fields/g"), headers=OWN),
        open_client.post(url(dataset, "/limits"), headers=OWN, json={"limits": {"dark": 0.1}}),
    ]
    states = [answer.status_code for answer in changes]
    withdrawn = open_client.delete(url(dataset, "/decisions/x"), headers=OWN)
    if name == "vic":
        assert states == [403] * len(changes)
        assert withdrawn.status_code == 403
        assert "write access" in changes[0].json()["detail"]
        assert open_client.post(url(dataset, "/actions"), headers=OWN, content=b"{").status_code == 403
    else:
        assert states == [200] * len(changes)
        assert withdrawn.status_code == 404
        assert dataset.journal()[0].created_by == "eve@example.org"


@pytest.mark.slow
@pytest.mark.only_soak
def test_edits__of_another_dataset(local: Client, workspace: Workspace, dataset: Dataset, tmp_path: Path) -> None:
    """What belongs to another dataset is not found, as if it did not exist, and stays as it is."""
    other = workspace.create_dataset("other", fill(tmp_path / "other", 3))
    ids = other.view.media_ids()
    tag = other.tag(ids, "theirs")
    other.add_field("theirs", "string")
    decision = other.not_duplicates(ids[:2])
    rid = opened(local, other)["rid"]
    state = other.generation
    for answer in (
        local.patch(url(dataset, f"/tags/{tag.tag_id}"), json={"name": "mine"}),
        local.delete(url(dataset, f"/tags/{tag.tag_id}")),
        local.delete(url(dataset, f"/fields/{other.fields()[0].field_id}")),
        local.delete(url(dataset, f"/decisions/{decision.decision_id}")),
    ):
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
    act(local, dataset, "tag", {"ids": ids[:1]}, 404, tag="mine")
    act(local, dataset, "tag", {"rid": rid}, 410, tag="mine")
    act(local, dataset, "delete", {"ids": ids[:1]}, 404)
    act(local, dataset, "tag", {"ids": dataset.view.media_ids()[:1]}, 422, tag=tag.tag_id)
    assert (other.generation, dataset.tags()) == (state, [])
