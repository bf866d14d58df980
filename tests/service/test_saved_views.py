"""Saved views over HTTP: each parameter, default, status and message, and who may do what."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from framedex import Dataset, vql
from framedex.access import LOCAL_USER_ID
from framedex.core.ids import batch_id
from framedex.storage import view_rows
from tests.api.test_dataset__saved_views import labelled
from tests.growth import THRESHOLDS
from tests.inside import catalog_of
from tests.service.client import OWN, Client
from tests.service.serving import Serving, serving
from tests.service.users import OPERATOR
from tests.tuning import Tuning

NOWHERE = "00000000-0000-0000-0000-0000000000aa"
RATED = json.dumps(vql.to_json(vql.parse(vql.field("rating", "gt", 1))))
FIELDS = {
    "id", "dataset_id", "name", "created_at", "created_by", "filters", "stats", "monitoring_enabled",
    "monitoring_started_at", "alerting_enabled", "total_results", "last_results", "evaluation_error",
}  # fmt: skip


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """A service with an admin, an editor and a viewer."""
    with serving(tmp_path_factory.mktemp("views")) as running:
        yield running


@pytest.fixture
def dataset(served: Serving) -> Iterator[Dataset]:
    """A dataset of ten media with the labels a and b, which only the test has."""
    made = served.workspace.create_dataset("pets", labelled(0, "ababababaa"), thresholds=THRESHOLDS)
    yield made
    served.workspace.change_settings(delete_dataset_enabled=True)
    served.workspace.delete_dataset(made.id)


def url(dataset: Dataset, rest: str = "") -> str:
    """Return the path of the saved views of a dataset."""
    return f"/api/v1/dataset/{dataset.id}/views{rest}"


def save(client: Client, dataset: Dataset, name: str = "mine", **query: Any) -> Any:
    """Save a view and return its record."""
    answer = client.post(url(dataset), data={"name": name}, params=query, headers=OWN)
    assert answer.status_code == 200, answer.text
    return answer.json()


def said(answer: Any) -> tuple[int, str]:
    """Return the status and the sentence of an error."""
    return answer.status_code, answer.json()["detail"]


@pytest.mark.slow
def test_views__a_new_one(served: Serving, dataset: Dataset) -> None:
    """A new view has all fields of the interface with their values; the list has the newest one first."""
    record = save(served.eve, dataset, " Good ", vql='[{"labels":{"op":"is","value":"a"}}]')
    assert record.keys() == FIELDS
    assert (record["dataset_id"], record["name"]) == (dataset.id, "Good")
    eve = served.eve.get("/api/v1/me").json()
    assert record["created_by"] == {"user_id": eve["user_id"], "email": "eve@example.org", "name": "eve"}
    assert record["filters"] == {
        "entity_type": "IMAGES", "threshold": "0", "caption": None, "vql": [{"labels": {"op": "is", "value": "a"}}],
    }  # fmt: skip
    assert record["stats"] == {"n_images": -1, "n_objects": -1, "n_video_frames": -1}
    assert (record["monitoring_enabled"], record["alerting_enabled"]) == (True, True)
    assert (record["total_results"], record["last_results"], record["evaluation_error"]) == (0, None, None)
    assert record["monitoring_started_at"].endswith("Z")
    local = save(served.local, dataset, "of nobody", entity_type="VIDEOS", threshold=0)
    assert local["created_by"]["user_id"] == LOCAL_USER_ID
    assert local["filters"]["entity_type"] == "VIDEOS"
    assert served.vic.get(url(dataset)).json() == {"views": [local, record]}


@pytest.mark.slow
def test_views__name_in_each_kind_of_form(served: Serving, dataset: Dataset) -> None:
    """The name comes in a multipart or a URL-encoded form."""
    multipart = served.eve.post(url(dataset), files={"name": (None, "one")}, headers=OWN)
    assert (multipart.status_code, multipart.json()["name"]) == (200, "one")
    assert save(served.eve, dataset, "two")["name"] == "two"


def test_views__bad_requests(served: Serving, dataset: Dataset) -> None:
    """A missing or empty name, a threshold out of range, and a filter that is wrong or does not suit are 422."""
    assert said(served.eve.post(url(dataset), headers=OWN)) == (422, "Field 'name' is required")
    assert said(served.eve.post(url(dataset), json={"name": "x"}, headers=OWN)) == (422, "Field 'name' is required")
    for name in ("", " ", "a\nb", "x" * 256, "x" * 2000):
        answer = served.eve.post(url(dataset), data={"name": name}, headers=OWN)
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid"), name
    for query in (
        {"threshold": 1.5}, {"threshold": -0.1}, {"threshold": "nan"}, {"threshold": "x"}, {"entity_type": "THINGS"},
        {"vql": "[1"}, {"vql": '[{"labels":{"op":"near","value":"a"}}]'}, {"vql": '{"labels":1}'},
        {"vql": RATED}, {"caption": " "},
        {"vql": f'[{{"similarity":{{"op":"media","value":"{NOWHERE}"}}}}]'},
    ):  # fmt: skip
        answer = served.eve.post(url(dataset), data={"name": "x"}, params=query, headers=OWN)
        assert answer.status_code == 422, (query, answer.text)
    wrong = served.eve.post(url(dataset), data={"name": "x"}, params={"vql": '[{"labels":{"op":"x"}}]'}, headers=OWN)
    assert (wrong.json()["code"], "$[0].labels" in wrong.json()["detail"]) == ("invalid_filter", True)
    assert served.vic.get(url(dataset)).json() == {"views": []}


@pytest.mark.slow
def test_views__threshold_and_caption(served: Serving, dataset: Dataset) -> None:
    """A threshold is stored as text, 0 for none; without a caption it changes nothing."""
    assert save(served.eve, dataset, "1", threshold=0.25)["filters"]["threshold"] == "0.25"
    with_caption = save(served.eve, dataset, "2", caption="bbb", threshold=0.5)["filters"]
    assert (with_caption["caption"], with_caption["threshold"]) == ("bbb", "0.5")
    empty = save(served.eve, dataset, "3", caption="", vql="")["filters"]
    assert (empty["caption"], empty["vql"]) == (None, [])
    dataset.add_media(labelled(10, "ab"))
    (one,) = served.eve.get(url(dataset, f"/{dataset.saved_view('1').id}/trend")).json()["points"]
    assert one["count"] == 2


@pytest.mark.slow
def test_views__names_are_unique(served: Serving, dataset: Dataset, tuning: Tuning) -> None:
    """A name that is taken, whatever its case, is a 409; so is a view too many, and one of a draft."""
    save(served.eve, dataset, "Straße")
    taken = served.eve.post(url(dataset), data={"name": "STRASSE"}, headers=OWN)
    assert said(taken) == (409, "A view named 'Straße' exists already in this dataset")
    tuning.saved_views = 1
    full = served.eve.post(url(dataset), data={"name": "x"}, headers=OWN)
    assert said(full) == (409, "A dataset has at most 1 saved views; delete one first")
    draft = served.workspace.create_draft("draft of views")
    assert served.eve.post(url(draft), data={"name": "x"}, headers=OWN).status_code == 409
    assert view_rows.MAX_VIEWS == 1


def test_views__limit_is_that_of_the_interface() -> None:
    """A dataset has up to 200 saved views."""
    assert view_rows.MAX_VIEWS == 200


@pytest.mark.slow
def test_trend__a_point_for_each_batch(served: Serving, dataset: Dataset) -> None:
    """Each addition is a point, oldest first, with its batch, count and total; ids have any case."""
    view = save(served.eve, dataset, vql='[{"labels":{"op":"is","value":"a"}}]')
    empty = served.vic.get(url(dataset, f"/{view['id']}/trend")).json()
    assert empty == {"points": [], "total_results": 0, "last_results": None}
    dataset.add_media(labelled(10, "aab"))
    dataset.add_media(labelled(13, "b"))
    trend = served.vic.get(url(dataset, f"/{view['id'].upper()}/trend")).json()
    assert [each.keys() for each in trend["points"]] == [{"timestamp", "batch_id", "batch", "count", "cumulative"}] * 2
    assert [(each["batch_id"], each["count"], each["cumulative"]) for each in trend["points"]] == [
        (batch_id(dataset.id, 1), 2, 2), (batch_id(dataset.id, 2), 0, 2),
    ]  # fmt: skip
    assert (trend["total_results"], trend["last_results"]) == (2, trend["points"][0]["timestamp"])
    (listed,) = served.vic.get(url(dataset)).json()["views"]
    assert (listed["total_results"], listed["last_results"]) == (2, trend["last_results"])
    assert listed["stats"] == {"n_images": 8, "n_objects": 0, "n_video_frames": 0}


@pytest.mark.slow
def test_alerting__on_and_off(served: Serving, dataset: Dataset) -> None:
    """Alerts are turned off and on by a nested field; the trend continues without them."""
    path = url(dataset, f"/{save(served.eve, dataset)['id']}/alerting")
    off = served.eve.post(path, json={"request": {"enabled": False}}, headers=OWN)
    assert (off.status_code, off.json()) == (200, {"alerting_enabled": False})
    dataset.add_media(labelled(10, "a"))
    assert dataset.alerts() == []
    trend = served.eve.get(path.replace("/alerting", "/trend")).json()
    assert [(each["count"], each["cumulative"]) for each in trend["points"]] == [(1, 1)]
    assert served.eve.get(url(dataset)).json()["views"][0]["total_results"] == 1
    assert served.eve.post(path, json={"request": {"enabled": True}}, headers=OWN).json() == {"alerting_enabled": True}
    wrong: list[Any] = [{"enabled": True}, {"request": {}}, {"request": {"enabled": "perhaps"}}, {}, []]
    for body in wrong:
        assert served.eve.post(path, json=body, headers=OWN).status_code == 422, body


def test_deletion__of_a_view(served: Serving, dataset: Dataset) -> None:
    """A deletion answers null and takes the trend; afterwards the view is not found."""
    view = save(served.eve, dataset)
    deleted = served.eve.delete(url(dataset, f"/{view['id'].upper()}"), headers=OWN)
    assert (deleted.status_code, deleted.content) == (200, b"null")
    entry = served.hub.audit(OPERATOR, limit=1)[0]
    assert (entry.action, entry.dataset_id, entry.target) == ("view.delete", dataset.id, view["id"])
    for view_id in (view["id"], NOWHERE, "mine", "x"):
        answers = [
            served.eve.delete(url(dataset, f"/{view_id}"), headers=OWN),
            served.eve.get(url(dataset, f"/{view_id}/trend")),
            served.eve.post(url(dataset, f"/{view_id}/alerting"), json={"request": {"enabled": True}}, headers=OWN),
        ]
        assert [said(each) for each in answers] == [(404, "View not found")] * 3


def test_monitoring__that_is_off(served: Serving, dataset: Dataset) -> None:
    """Trend and alerts of a view that is not monitored are a 400."""
    view = save(served.eve, dataset)
    with catalog_of(served.workspace).write() as connection:
        connection.exec_driver_sql("UPDATE saved_views SET monitoring_enabled = 0")
    trend = served.eve.get(url(dataset, f"/{view['id']}/trend"))
    alerting = served.eve.post(
        url(dataset, f"/{view['id']}/alerting"), json={"request": {"enabled": True}}, headers=OWN
    )
    assert [said(trend), said(alerting)] == [(400, "Monitoring is not enabled for this view")] * 2


@pytest.mark.slow
def test_monitoring__of_a_filter_that_holds_no_more(served: Serving, dataset: Dataset) -> None:
    """A view that cannot be evaluated has a point without results, and keeps the reason; the addition succeeds."""
    dataset.add_field("rating", "float")
    view = save(served.eve, dataset, vql=RATED)
    dataset.delete_field("rating")
    dataset.add_media(labelled(10, "a"))
    (point,) = served.eve.get(url(dataset, f"/{view['id']}/trend")).json()["points"]
    assert (point["count"], point["cumulative"]) == (0, 0)
    (listed,) = served.eve.get(url(dataset)).json()["views"]
    assert "rating" in listed["evaluation_error"]


@pytest.mark.slow
def test_views__who_may_do_what(served: Serving, dataset: Dataset) -> None:
    """Viewers see views and trends, and delete what they saved themselves; editors do everything."""
    view = save(served.eve, dataset)
    no = (403, "You do not have write access to this dataset")
    assert said(served.vic.post(url(dataset), data={"name": "x"}, headers=OWN)) == no
    body: Any = {"request": {"enabled": False}}
    assert said(served.vic.post(url(dataset, f"/{view['id']}/alerting"), json=body, headers=OWN)) == no
    assert said(served.vic.delete(url(dataset, f"/{view['id']}"), headers=OWN)) == no
    assert served.vic.get(url(dataset, f"/{view['id']}/trend")).status_code == 200
    vic = served.vic.get("/api/v1/me").json()["user_id"]
    with catalog_of(served.workspace).write() as connection:
        connection.exec_driver_sql("UPDATE saved_views SET creator_id = ?", (vic,))
    assert served.vic.delete(url(dataset, f"/{view['id']}"), headers=OWN).status_code == 200
    assert served.nobody.get(url(dataset)).status_code == 401


@pytest.mark.slow
def test_views__of_a_hidden_dataset(served: Serving, dataset: Dataset) -> None:
    """Who may not view a dataset learns nothing of its views."""
    view = dataset.save_view("secret", dataset.where(vql.labels("a")))
    served.hide(dataset)
    answers = [
        served.vic.get(url(dataset)),
        served.ann.post(url(dataset), data={"name": "x"}, headers=OWN),
        served.ann.delete(url(dataset, f"/{view.id}"), headers=OWN),
        served.ann.get(url(dataset, f"/{view.id}/trend")),
        served.ann.post(url(dataset, f"/{view.id}/alerting"), json={"request": {"enabled": True}}, headers=OWN),
    ]
    assert [said(each) for each in answers] == [(404, "Dataset not found")] * 5


@pytest.mark.slow
def test_views__of_a_former_user(served: Serving, dataset: Dataset) -> None:
    """A view of a deleted account keeps the address under which it was saved."""
    user = served.hub.users.create(OPERATOR, "gone", "correct horse", email="gone@example.org")
    view = save(served.eve, dataset)
    with catalog_of(served.workspace).write() as connection:
        connection.exec_driver_sql("UPDATE saved_views SET creator_id = ?, created_by = 'gone@x'", (user.id,))
    named = {"user_id": user.id, "email": "gone@example.org", "name": "gone"}
    assert served.eve.get(url(dataset)).json()["views"][0]["created_by"] == named
    served.hub.users.delete(OPERATOR, user.id)
    (listed,) = served.eve.get(url(dataset)).json()["views"]
    assert (listed["id"], listed["created_by"]) == (
        view["id"],
        {"user_id": user.id, "email": "gone@x", "name": "gone@x"},
    )
