"""The audit over HTTP: who did what, for administrators."""

from collections.abc import Iterator
from typing import Any

import pytest

from framedex.errors import WorkspaceError
from tests.failures import failing
from tests.gallery import fill
from tests.service.client import OWN
from tests.service.serving import Serving, serving

API = "/api/v1"
URL = f"{API}/admin/audit"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """A service that the tests of this module share; the editor has a dataset with five images."""
    folder = tmp_path_factory.mktemp("audit")
    with serving(folder) as running:
        dataset = running.workspace.create_dataset("pets", fill(folder / "pets", 5), "gist")
        eve = running.eve.get(f"{API}/me").json()["user_id"]
        running.hub.datasets.adopt(dataset.id, running.ann.get(f"{API}/me").json()["workspace_id"], eve)
        yield running


def audit(served: Serving, **query: Any) -> list[dict[str, Any]]:
    """Return entries as the admin sees them, the newest first."""
    found: list[dict[str, Any]] = served.ann.get(URL, params=query).json()["entries"]
    return found


@pytest.mark.slow
@pytest.mark.only_soak
def test_audit__has_deletions_and_exports(served: Serving) -> None:
    """Deletions of media, snapshots and fields, restores and exports are there, with their user, dataset and target."""
    dataset = served.workspace.dataset("pets")
    url, eve = f"{API}/dataset/{dataset.id}", served.eve
    before = len(audit(served, limit=1000))
    assert eve.post(f"{url}/fields", json={"field_name": "weight", "field_type": "float"}, headers=OWN).is_success
    first = dataset.snapshots()[0].snapshot_id
    ids = dataset.where([]).media_ids()
    assert eve.delete(f"{url}/fields/weight", headers=OWN).is_success
    body = {"action": "delete", "on": {"ids": ids[:2]}}
    assert eve.post(f"{url}/actions", json=body, headers=OWN).json()["count"] == 2
    assert eve.post(f"{url}/snapshot", headers=OWN).is_success
    assert eve.delete(f"{url}/snapshot/{first}", headers=OWN).is_success
    assert eve.post(f"{url}/snapshot/current/restore", headers=OWN).status_code in (202, 409)
    served.workspace.dataset(dataset.id)
    query = {"file_name": "all", "export_format": "json"}
    assert eve.get(f"{url}/export_context_async", params=query, headers=OWN).is_success
    entries = [each for each in reversed(audit(served, limit=1000)[:-before]) if each["action"] != "snapshot.restore"]
    assert [(each["action"], each["target"]) for each in entries] == [
        ("field.delete", "weight"),
        ("media.delete", "2 media"),
        ("snapshot.delete", first),
        ("export.start", "all.zip"),
    ]
    assert {(each["username"], each["dataset_id"], each["outcome"]) for each in entries} == {
        ("eve", dataset.id, "done")
    }
    names = {"at", "user_id", "username", "action", "dataset_id", "target", "ip", "outcome"}
    assert all(each.keys() == names and each["at"].endswith("Z") for each in entries)


def test_audit__has_clean_ups(served: Serving) -> None:
    """A clean-up is there with the number of the media that it removes."""
    folder = fill(served.workspace.path.parent / "more", 3)
    image = next(folder.iterdir())
    (folder / f"again{image.suffix}").write_bytes(image.read_bytes())
    dataset = served.workspace.create_dataset("more", folder, "gist")
    url = f"{API}/dataset/{dataset.id}/cleanup"
    plan = served.ann.post(f"{url}/plan", json={"duplicates": "exact"}, headers=OWN).json()
    assert served.ann.post(f"{url}/apply", json={"plan_id": plan["plan_id"]}, headers=OWN).status_code == 202
    entry = audit(served, dataset_id=dataset.id, action="media.delete")[0]
    assert (entry["username"], entry["target"]) == ("ann", "1 media item")


@pytest.mark.slow
def test_audit__in_pages_and_by_conditions(served: Serving) -> None:
    """Entries come in pages, the newest first, with the number of all; conditions choose them."""
    served.ann.post(f"{API}/admin/settings", json={"key": "ADD_MEDIA_ENABLED", "value": True}, headers=OWN)
    body = served.ann.get(URL, params={"limit": 1000}).json()
    entries = body["entries"]
    assert body["total"] == len(entries) > 6
    pages = [served.ann.get(URL, params={"limit": 4, "offset": offset}).json() for offset in range(0, len(entries), 4)]
    assert [each for page in pages for each in page["entries"]] == entries
    assert {page["total"] for page in pages} == {len(entries)}
    times = [each["at"] for each in entries]
    assert times == sorted(times, reverse=True)
    ann = served.ann.get(f"{API}/me").json()["user_id"]
    for query, holds in (
        ({"user_id": ann}, lambda each: each["user_id"] == ann),
        ({"action": "log_in"}, lambda each: each["action"] == "log_in"),
        ({"action": "settings"}, lambda each: each["action"] == "settings.change"),
        ({"action": "%"}, lambda each: False),
        ({"since": times[3]}, lambda each: each["at"] >= times[3]),
        ({"until": times[3]}, lambda each: each["at"] < times[3]),
    ):
        expected = [each for each in entries if holds(each)]
        assert audit(served, limit=1000, **query) == expected, query
        assert expected or query["action"] == "%"


def test_audit__has_log_ins_and_who_failed(served: Serving) -> None:
    """Log-ins are there with the address, also those that fail, which have no user but a target."""
    body = {"username": "vic", "password": "wrong"}
    assert served.nobody.post(f"{API}/login", json=body, headers=OWN).status_code == 401
    served.nobody.log_in("vic")
    vic = served.nobody.get(f"{API}/me").json()["user_id"]
    served.nobody.cookies.clear()
    done, refused = audit(served, action="log_in", limit=2)
    assert (done["username"], done["outcome"], done["ip"]) == ("vic", "done", "127.0.0.1")
    assert (refused["user_id"], refused["target"], refused["outcome"]) == (None, vic, "refused")


@pytest.mark.parametrize(
    "query",
    [{"limit": 0}, {"limit": 1001}, {"offset": -1}, {"offset": 2**63}, {"since": "soon"}, {"dataset_id": "x"}],
    ids=str,
)
def test_audit__bad_parameters(served: Serving, query: dict[str, Any]) -> None:
    """A parameter out of its range is a 422."""
    assert served.ann.get(URL, params=query).status_code == 422


def test_audit__is_for_admins(served: Serving) -> None:
    """Others than admins get 403, and their attempt is noted; nobody gets 401, and the local user sees it."""
    for client, status in ((served.eve, 403), (served.vic, 403), (served.nobody, 401), (served.local, 200)):
        assert client.get(URL).status_code == status
    newest = audit(served, limit=2)
    assert [(each["action"], each["username"], each["outcome"]) for each in newest] == [
        ("admin.settings", "vic", "refused"),
        ("admin.settings", "eve", "refused"),
    ]


def test_audit__that_cannot_be_written(served: Serving, caplog: pytest.LogCaptureFixture) -> None:
    """A change of a dataset that is done stays one whose entry cannot be written; the log has a warning."""
    dataset = served.workspace.dataset("pets")
    dataset.add_field("length", "float")
    with failing("framedex.storage.database.Database.write", error=WorkspaceError("the disk is full")):
        served.hub.trail.note(served.hub.sessions.actor(served.eve.cookies["SESSION"]), "field.delete")
    assert "no entry of the audit for field.delete: the disk is full" in caplog.text


def test_audit__of_a_change_that_is_rolled_back(served: Serving) -> None:
    """An entry in the transaction of a change is not there if the change is not."""
    actor = served.hub.sessions.actor(served.eve.cookies["SESSION"])
    before = audit(served, limit=1)

    def change_and_fail() -> None:
        with served.hub._database.write() as connection:
            served.hub.trail.note(actor, "view.delete", target="x", connection=connection)
            raise ValueError("out of order")

    with pytest.raises(ValueError, match="out of order"):
        change_and_fail()
    assert audit(served, limit=1) == before
    with served.hub._database.write() as connection:
        served.hub.trail.note(actor, "view.delete", target="x" * 1000 + "\ud800", connection=connection)
    assert audit(served, limit=1)[0]["target"] == "x" * 320
