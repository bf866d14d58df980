"""Snapshots over HTTP: each status, and to whom a clone belongs."""

from pathlib import Path

import pytest

from framedex import Dataset, Workspace
from framedex.access import Role
from framedex.hub import Hub
from tests.gallery import fill
from tests.prepared import prepared
from tests.service.client import OWN, Client
from tests.service.users import OPERATOR

NOWHERE = "00000000-0000-0000-0000-0000000000aa"


@pytest.fixture
def dataset(workspace: Workspace, tmp_path: Path) -> Dataset:
    """A dataset of three images."""
    return prepared(workspace, "pets", fill(tmp_path / "few", 3))


def url(dataset: Dataset, rest: str = "") -> str:
    """Return the path of the snapshots of a dataset."""
    return f"/api/v1/dataset/{dataset.id}/snapshot{rest}"


def test_snapshots__from_creation_to_deletion(local: Client, workspace: Workspace, dataset: Dataset) -> None:
    """A snapshot is created, listed, changed, restored and deleted."""
    (first,) = local.get(url(dataset)).json()
    plain = local.post(url(dataset))
    assert (plain.status_code, plain.json()["is_current"], plain.json()["description"]) == (200, True, "")
    assert plain.json()["snapshot_name"] == f"pets_snapshot_{plain.json()['snapshot_id']}"
    named = local.post(url(dataset), json={"name": "before", "description": "the cleanup"}).json()
    assert (named["snapshot_name"], named["description"]) == ("before", "the cleanup")
    listed = [each["snapshot_id"] for each in local.get(url(dataset)).json()]
    assert listed == [named["snapshot_id"], plain.json()["snapshot_id"], first["snapshot_id"]]
    changed = local.patch(url(dataset, f"/{named['snapshot_id']}"), json={"name": "after"}).json()
    assert (changed["snapshot_name"], changed["description"]) == ("after", "the cleanup")
    current = local.delete(url(dataset, f"/{named['snapshot_id']}"))
    assert current.status_code == 409
    dataset.tag(list(dataset.view.ids[:1]), "x")
    restored = local.post(url(dataset, f"/{first['snapshot_id']}/restore"))
    assert (restored.status_code, restored.content) == (202, b"")
    assert dataset.last_task is not None
    workspace.task(dataset.last_task.task_id).wait()
    deleted = local.delete(url(dataset, f"/{named['snapshot_id']}"))
    assert (deleted.status_code, deleted.content) == (200, b"")
    assert named["snapshot_id"] not in [each["snapshot_id"] for each in local.get(url(dataset)).json()]


@pytest.mark.slow
def test_snapshots__with_bad_bodies(local: Client, dataset: Dataset) -> None:
    """Names have 1 to 400 printable characters; a change needs a name or a description."""
    assert local.post(url(dataset), json={"name": "x" * 400}).status_code == 200
    for name in ("", "x" * 401, "a\nb", 7, ["a"]):
        assert local.post(url(dataset), json={"name": name}).status_code == 422, name
    assert local.post(url(dataset), json={"description": 7}).status_code == 422
    assert local.post(url(dataset), json=[]).status_code == 422
    (snapshot, *_) = local.get(url(dataset)).json()
    assert local.patch(url(dataset, f"/{snapshot['snapshot_id']}"), json={}).status_code == 422
    assert local.patch(url(dataset, f"/{snapshot['snapshot_id']}")).status_code == 422


def test_snapshots__that_do_not_exist(local: Client, workspace: Workspace, dataset: Dataset) -> None:
    """The snapshot of another dataset is not found, in the same words as one that never was."""
    other = workspace.create_dataset("other", fill(workspace.path.parent / "other", 3))
    foreign = other.snapshots()[0].snapshot_id
    for each in (foreign, NOWHERE, "nothing"):
        answers = [
            local.patch(url(dataset, f"/{each}"), json={"name": "a"}),
            local.post(url(dataset, f"/{each}/restore")),
            local.post(url(dataset, f"/{each}/clone")),
            local.delete(url(dataset, f"/{each}")),
        ]
        assert [(answer.status_code, answer.json()["detail"]) for answer in answers] == [
            (404, "Snapshot not found")
        ] * 4


def test_snapshots__while_disabled(open_client: Client, workspace: Workspace, dataset: Dataset) -> None:
    """The setting refuses all; who may not write, or not see the dataset, learns that first."""
    workspace.change_settings(dataset_snapshots_enabled=False)
    assert open_client.get(url(dataset)).status_code == 401
    open_client.log_in("eve")
    for answer in (
        open_client.get(url(dataset)),
        open_client.post(url(dataset), headers=OWN),
        open_client.post(url(dataset, "/current/restore"), headers=OWN),
        open_client.post(url(dataset, "/current/clone"), headers=OWN),
        open_client.delete(url(dataset, "/current"), headers=OWN),
    ):
        assert (answer.status_code, answer.json()["detail"]) == (403, "Snapshot feature is not enabled")
    assert open_client.get(f"/api/v1/dataset/{NOWHERE}/snapshot").status_code == 404
    open_client.log_in("vic")
    written = open_client.post(url(dataset), headers=OWN)
    assert written.json()["detail"] == "You do not have write access to this dataset"


@pytest.mark.slow
def test_clone__of_the_present_state_or_a_snapshot(local: Client, workspace: Workspace, dataset: Dataset) -> None:
    """One route copies either; the interface's route copies a snapshot, of which ``current`` is the last."""
    (first,) = local.get(url(dataset)).json()
    dataset.delete_media(dataset.view.media_ids()[:1])
    bodies: list[dict[str, str] | None] = [None, {}, {"snapshot": first["snapshot_id"]}]
    made = [local.post(f"/api/v1/dataset/{dataset.id}/clone", json=body) for body in bodies]
    assert [answer.status_code for answer in made] == [202] * 3
    copies = [workspace.dataset(answer.json()["id"]) for answer in made]
    for copy in copies:
        assert copy.last_task is not None
        workspace.task(copy.last_task.task_id).wait()
    assert [copy.count() for copy in copies] == [2, 2, 3]
    missing = local.post(f"/api/v1/dataset/{dataset.id}/clone", json={"snapshot": NOWHERE})
    assert (missing.status_code, "there are" in missing.json()["detail"]) == (404, True)


@pytest.mark.slow
def test_snapshots__of_a_viewer(open_client: Client, dataset: Dataset) -> None:
    """A viewer sees snapshots, and changes nothing."""
    open_client.log_in("vic")
    (snapshot,) = open_client.get(url(dataset)).json()
    for answer in (
        open_client.post(url(dataset), headers=OWN),
        open_client.patch(url(dataset, f"/{snapshot['snapshot_id']}"), json={"name": "a"}, headers=OWN),
        open_client.post(url(dataset, "/current/restore"), headers=OWN),
        open_client.post(url(dataset, "/current/clone"), headers=OWN),
        open_client.delete(url(dataset, f"/{snapshot['snapshot_id']}"), headers=OWN),
    ):
        assert answer.status_code == 403


def test_snapshot__names_its_creator(open_client: Client, dataset: Dataset) -> None:
    """A snapshot is created by the acting user."""
    open_client.log_in("eve")
    made = open_client.post(url(dataset), headers=OWN).json()
    assert made["created_by"] == "eve@example.org"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["eve", "ann"])
def test_clone__belongs_to_the_actor(open_client: Client, hub: Hub, workspace: Workspace, name: str) -> None:
    """A clone is in the tenant of its source, owned by who made it."""
    source = prepared(workspace, "source", fill(workspace.path.parent / "source", 3))
    open_client.log_in(name)
    answer = open_client.post(url(source, "/current/clone"), headers=OWN)
    assert (answer.status_code, answer.content) == (202, b"")
    copy = next(each for each in workspace.datasets() if each.id != source.id)
    assert copy.display_name == "source (cloned)"
    workspace.task(workspace.tasks(dataset_id=copy.id).tasks[0].task_id).wait()
    (owner,) = hub.datasets.members(OPERATOR, copy.id)
    assert (owner.email, owner.role) == (f"{name}@example.org", "owner")


def test_clone__by_a_granted_editor(open_client: Client, hub: Hub, dataset: Dataset) -> None:
    """A viewer of the tenant who was granted editing may edit the dataset, but not copy it."""
    hub.datasets.share(OPERATOR, dataset.id, "vic", Role.EDITOR)
    open_client.log_in("vic")
    assert open_client.post(url(dataset), headers=OWN).status_code == 200
    answer = open_client.post(url(dataset, "/current/clone"), headers=OWN)
    assert (answer.status_code, answer.json()["detail"]) == (403, "You do not have permission to copy this dataset")


def test_snapshots__of_a_draft(local: Client, workspace: Workspace) -> None:
    """A draft has no state of which there could be a snapshot."""
    draft = workspace.create_draft("draft")
    assert local.get(url(draft)).json() == []
    for answer in (
        local.post(url(draft)),
        local.post(url(draft, "/current/restore")),
        local.post(url(draft, "/current/clone")),
    ):
        assert answer.status_code == 409
