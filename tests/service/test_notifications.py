"""Notifications over HTTP: each parameter, status and message."""

from collections.abc import Iterator
from typing import Any

import pytest

from framedex import Dataset
from framedex.core.ids import batch_id, new_id
from tests.api.test_dataset__saved_views import labelled
from tests.growth import THRESHOLDS
from tests.service.client import OWN, Client
from tests.service.serving import Serving, serving
from tests.service.users import OPERATOR, PASSWORD

URL = "/api/v1/notifications"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """A service with an admin, an editor and a viewer."""
    with serving(tmp_path_factory.mktemp("notifications")) as running:
        yield running


@pytest.fixture
def dataset(served: Serving) -> Iterator[Dataset]:
    """A dataset with a saved view of all media, which only the test has; its alerts reach ann and the local user."""
    made = served.workspace.create_dataset("pets", labelled(0, "abababab"), thresholds=THRESHOLDS)
    made.save_view("all")
    yield made
    served.workspace.change_settings(delete_dataset_enabled=True)
    served.workspace.delete_dataset(made.id)
    served.hub.datasets.sweep()


def add(served: Serving, dataset: Dataset, *batches: str) -> None:
    """Add batches of media with these labels, and notify."""
    first = dataset.count()
    for labels in batches:
        dataset.add_media(labelled(first, labels))
        first += len(labels)
    served.hub.notifications.deliver()


def get(client: Client, path: str = "", **query: Any) -> Any:
    """Return the body of a good answer."""
    answer = client.get(URL + path, params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.mark.slow
def test_notifications__from_the_alert_to_the_mark(served: Serving, dataset: Dataset) -> None:
    """An alert is a notification with all fields; it is counted until it is read, once."""
    assert get(served.ann) == {"notifications": [], "total": 0, "has_more": False}
    add(served, dataset, "ab")
    page = get(served.ann)
    (found,) = page["notifications"]
    assert (page["total"], page["has_more"]) == (1, False)
    assert found.keys() == {
        "id", "user_id", "entity_type", "entity_id", "title", "message", "metadata", "dataset_id", "created_at",
        "read_at",
    }  # fmt: skip
    assert found["user_id"] == served.ann.get("/api/v1/me").json()["user_id"]
    assert (found["entity_type"], found["entity_id"]) == ("saved_view", dataset.saved_view("all").id)
    assert (found["title"], found["read_at"], found["dataset_id"]) == ("", None, dataset.id)
    assert found["metadata"] == {
        "batch_id": batch_id(dataset.id, 1), "is_alert": True, "view_name": "all", "dataset_name": "pets",
        "result_count": 2,
    }  # fmt: skip
    assert get(served.ann, "/unread-count") == {"count": 1}
    answers = [served.ann.post(f"{URL}/{found['id'].upper()}/read", headers=OWN) for _ in range(2)]
    assert (answers[0].status_code, answers[0].json()) == (200, {"ok": True})
    assert (answers[1].status_code, answers[1].json()["detail"]) == (404, "Notification not found")
    assert get(served.ann, "/unread-count") == {"count": 0}
    assert get(served.ann)["notifications"][0]["read_at"].endswith("Z")
    assert get(served.ann, unread_only="True") == {"notifications": [], "total": 0, "has_more": False}


@pytest.mark.slow
def test_notifications__of_others(served: Serving, dataset: Dataset) -> None:
    """Who is not concerned has none, and cannot mark those of others; nobody is asked to log in."""
    add(served, dataset, "a")
    (found,) = get(served.ann)["notifications"]
    assert get(served.vic)["total"] == 0
    for client, notification_id in ((served.vic, found["id"]), (served.ann, new_id()), (served.ann, "x")):
        answer = client.post(f"{URL}/{notification_id}/read", headers=OWN)
        assert (answer.status_code, answer.json()["detail"]) == (404, "Notification not found")
    assert served.nobody.get(URL).status_code == 401
    assert served.nobody.post(f"{URL}/read-all", headers=OWN).status_code == 401
    assert get(served.local)["total"] == 1


def test_read_all__of_one_dataset_or_of_all(served: Serving, dataset: Dataset) -> None:
    """With a dataset its notifications alone are marked; without one those of all datasets, of the user alone."""
    other = served.workspace.create_dataset("cats", labelled(0, "abab"), thresholds=THRESHOLDS)
    other.save_view("all")
    add(served, dataset, "a", "b")
    add(served, other, "a")
    assert get(served.ann, "/unread-count") == {"count": 3}
    one = served.ann.post(f"{URL}/read-all", params={"dataset_id": other.id}, headers=OWN)
    assert (one.json(), get(served.ann, "/unread-count")) == ({"ok": True, "count": 1}, {"count": 2})
    add(served, other, "a")
    assert served.ann.post(f"{URL}/read-all", headers=OWN).json() == {"ok": True, "count": 3}
    assert get(served.ann, "/unread-count") == {"count": 0}
    assert get(served.local, "/unread-count") == {"count": 4}
    served.workspace.delete_dataset(other.id)
    served.hub.datasets.sweep()


@pytest.mark.slow
def test_pages__of_the_list(served: Serving, dataset: Dataset) -> None:
    """The list has 20 of a page by default, newest first; the dataset and the state select."""
    for number in range(21):
        dataset.save_view(f"{number}")
    add(served, dataset, "a")
    page = get(served.ann)
    assert (len(page["notifications"]), page["total"], page["has_more"]) == (20, 22, True)
    rest = get(served.ann, offset=20)
    assert (len(rest["notifications"]), rest["total"], rest["has_more"]) == (2, 22, False)
    assert rest["notifications"][-1]["metadata"]["view_name"] == "all"
    assert len(get(served.ann, limit=100)["notifications"]) == 22
    assert get(served.ann, dataset_id=dataset.id.upper(), limit=1)["total"] == 22
    assert (
        get(served.ann, dataset_id=new_id())["total"]
        == get(served.ann, "/unread-count", dataset_id=new_id())["count"]
        == 0
    )
    none = served.ann.post(f"{URL}/read-all", params={"dataset_id": new_id()}, headers=OWN)
    assert none.json() == {"ok": True, "count": 0}
    some = served.ann.post(f"{URL}/read-all", params={"dataset_id": dataset.id}, headers=OWN)
    assert (some.status_code, some.json()) == (200, {"ok": True, "count": 22})
    assert served.ann.post(f"{URL}/read-all", headers=OWN).json() == {"ok": True, "count": 0}
    assert get(served.local, "/unread-count", dataset_id=dataset.id) == {"count": 22}


@pytest.mark.slow
def test_notifications__are_made_by_alerts_alone(served: Serving, dataset: Dataset) -> None:
    """No request makes a notification, changes one or deletes one."""
    add(served, dataset, "a")
    (found,) = get(served.ann)["notifications"]
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        for path, status in ((URL, 405), (f"{URL}/{found['id']}", 404)):
            answer = served.ann.request(method, path, json={**found, "id": new_id()}, headers=OWN)
            assert answer.status_code == status, (method, path)
    assert get(served.ann)["notifications"] == [found]


@pytest.mark.parametrize(
    "query",
    [{"limit": 0}, {"limit": 101}, {"limit": "x"}, {"offset": -1}, {"unread_only": "perhaps"}, {"dataset_id": "x"}],
)
def test_pages__bad_parameters(served: Serving, query: dict[str, Any]) -> None:
    """Values out of range or of another type are a 422."""
    assert served.ann.get(URL, params=query).status_code == 422


def test_dataset_id__that_is_none(served: Serving) -> None:
    """An id that is none is a 422 everywhere."""
    query = {"dataset_id": "x"}
    assert served.ann.get(f"{URL}/unread-count", params=query).status_code == 422
    assert served.ann.post(f"{URL}/read-all", params=query, headers=OWN).status_code == 422


def test_hidden__datasets(served: Serving, dataset: Dataset) -> None:
    """Notifications of a dataset that one may no longer view are in no answer; a filter by it selects nothing."""
    add(served, dataset, "a")
    (found,) = get(served.ann)["notifications"]
    served.hide(dataset)
    for query in ({}, {"dataset_id": dataset.id}):
        assert get(served.ann, **query) == {"notifications": [], "total": 0, "has_more": False}
        assert get(served.ann, "/unread-count", **query) == {"count": 0}
        assert served.ann.post(f"{URL}/read-all", params=query, headers=OWN).json() == {"ok": True, "count": 0}
    assert served.ann.post(f"{URL}/{found['id']}/read", headers=OWN).status_code == 404


def test_notifications__with_a_temporary_password(served: Serving) -> None:
    """Who has to change the password first sees no notifications."""
    user = served.hub.users.create(OPERATOR, "temp", PASSWORD)
    served.hub.users.reset_password(OPERATOR, user.id, PASSWORD)
    client = Client(served.nobody.app, base_url=str(served.nobody.base_url)).log_in("temp")
    answer = client.get(URL)
    assert (answer.status_code, answer.json()["detail"]) == (403, "Password change required")
