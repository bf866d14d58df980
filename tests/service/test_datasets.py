"""Datasets over HTTP: list, status, creation from a bucket, change, deletion, and what clients ask about one."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from framedex import Dataset, Workspace
from framedex.access import Role
from framedex.hub import Hub
from framedex.media.remote import INVALID_URI
from framedex.service.settings import RunMode, ServiceSettings
from tests.buckets import Service
from tests.gallery import fill
from tests.image_files import encode, photo
from tests.pauses import all_threads_busy, wait_until
from tests.prepared import prepared
from tests.service.client import LOCAL, OWN, Client, client_of
from tests.service.users import OPERATOR, PASSWORD

API = "/api/v1"
NOWHERE = "00000000-0000-0000-0000-0000000000aa"


@pytest.fixture
def dataset(workspace: Workspace, tmp_path: Path) -> Dataset:
    """A dataset of three images that the library made: it belongs to the default tenant, and to nobody."""
    return prepared(workspace, "pets", fill(tmp_path / "few", 3))


@pytest.fixture
def stranger(hub: Hub) -> str:
    """The name of an admin of another tenant."""
    tenant = hub.tenants.create(OPERATOR, "others")
    hub.users.create(OPERATOR, "oto", PASSWORD, role=Role.ADMIN, tenant_id=tenant.id)
    return "oto"


def test_status__has_all_fields(local: Client, dataset: Dataset, tmp_path: Path) -> None:
    """The status has the fields of the interface, and those that clients read beside them."""
    status = local.get(f"{API}/dataset/{dataset.id}").json()
    assert (status["status"], status["status_new"], status["progress"]) == ("READY", "READY", 100)
    assert (status["n_images"], status["n_videos"], status["n_objects"]) == (3, 0, 0)
    assert (status["source_type"], status["source_uri"]) == ("LOCAL", str(tmp_path / "few"))
    assert status["owned_by"] == status["created_by"] == "tester@example.org"
    assert status["created_at"] < status["updated_at"]
    assert status["updated_at"].endswith("Z")
    nothing = {"description": "", "source_dataset_id": None, "filename": None, "sample": False, "fatal_error_msg": None}
    assert nothing.items() <= status.items()
    assert local.get(f"{API}/datasets").json() == [status]
    assert local.get(f"{API}/datasets/sample_data").text == "[]"


def test_status__of_others(
    open_client: Client, workspace: Workspace, hub: Hub, dataset: Dataset, stranger: str
) -> None:
    """Members see a dataset, but not the folder of the server; for others it does not exist."""
    assert open_client.get(f"{API}/datasets").status_code == 401
    assert open_client.get(f"{API}/dataset/{dataset.id}").status_code == 401
    vic = open_client.bearer("vic")
    status = open_client.get(f"{API}/dataset/{dataset.id}", headers=vic).json()
    assert (status["source_type"], status["source_uri"]) == ("LOCAL", None)
    others = open_client.bearer(stranger)
    assert open_client.get(f"{API}/datasets", headers=others).json() == []
    hidden, unknown = (open_client.get(f"{API}/dataset/{each}", headers=others) for each in (dataset.id, NOWHERE))
    assert hidden.status_code == unknown.status_code == 404
    assert hidden.json()["detail"] == unknown.json()["detail"] == "Dataset not found"
    assert open_client.get(f"{API}/dataset/pets", headers=vic).status_code == 404


@pytest.mark.slow
def test_status__says_what_the_user_may_do(
    open_client: Client, workspace: Workspace, hub: Hub, dataset: Dataset, stranger: str
) -> None:
    """The permissions are those of the matrix: in the list, in the status, and after a change of a grant."""
    ann, vic, other = (open_client.bearer(name) for name in ("ann", "vic", stranger))

    def permissions(headers: dict[str, str]) -> set[str]:
        listed = open_client.get(f"{API}/datasets", headers=headers).json()[0]["permissions"]
        alone = open_client.get(f"{API}/dataset/{dataset.id}", headers=headers).json()["permissions"]
        assert listed == alone
        return set(alone)

    assert {"dataset.view", "dataset.edit", "dataset.share", "dataset.delete"} <= permissions(ann)
    assert permissions(vic) == {"dataset.view", "dataset.search_upload", "task.view"}
    share = f"{API}/manage/{dataset.id}"
    for role, may_edit in (("viewer", False), ("editor", True)):
        body = {"grant_to_user_email": stranger, "role": role}
        assert open_client.put(f"{share}/invite", headers=ann, json=body).status_code == 200
        assert ("dataset.edit" in permissions(other)) is may_edit
        assert "dataset.share" not in permissions(other)
    assert open_client.delete(f"{share}/share", headers=ann, params={"email": stranger}).status_code == 200
    assert open_client.get(f"{API}/datasets", headers=other).json() == []


def test_status__without_log_ins_allows_all_but_sharing(local: Client, dataset: Dataset) -> None:
    """The local user may do everything with a dataset, except for sharing it with nobody."""
    may = local.get(f"{API}/dataset/{dataset.id}").json()["permissions"]
    assert "dataset.delete" in may
    assert "dataset.share" not in may


@pytest.mark.slow
def test_status__in_words_of_older_clients(local: Client, workspace: Workspace, dataset: Dataset) -> None:
    """The former status follows from the status, and from the task that runs."""
    draft = workspace.create_draft("draft")

    def former(each: Dataset) -> str:
        return str(local.get(f"{API}/dataset/{each.id}").json()["status"])

    assert former(draft) == "NEW"
    upload = draft.open_upload()
    upload.add([("a.txt.jpg", b"no image")])
    assert former(draft) == "UPLOADING"
    with all_threads_busy(workspace):
        task = dataset.add_media(files=[("b.png", encode(photo(7), "png"))], wait=False)
        assert former(dataset) == "UPDATING"
    task.wait()
    assert former(dataset) == "PARTIAL INDEX"


def test_status__of_a_failed_creation(local: Client, workspace: Workspace, dataset: Dataset, tmp_path: Path) -> None:
    """A failed creation has the reason, without the folders of the server."""
    fill(tmp_path / "gone", 2)
    with all_threads_busy(workspace):
        dataset = workspace.create_dataset("gone", tmp_path / "gone", wait=False)
        (tmp_path / "gone").rename(tmp_path / "elsewhere")
    wait_until(lambda: dataset.info.status_new == "ERROR")
    status = local.get(f"{API}/dataset/{dataset.id}").json()
    assert (status["status"], status["preview_uri"]) == ("FATAL_ERROR", None)
    assert status["fatal_error_msg"]
    assert str(tmp_path) not in status["fatal_error_msg"]


def test_preview__leads_to_a_thumbnail(open_client: Client, dataset: Dataset) -> None:
    """The address of the preview works without a header, and leads to the thumbnail of an image."""
    vic = open_client.bearer("vic")
    uri = open_client.get(f"{API}/dataset/{dataset.id}", headers=vic).json()["preview_uri"]
    answer = open_client.get(uri, follow_redirects=False)
    assert answer.status_code == 307
    media_id = dataset.view.media_ids()[0]
    assert f"/dataset/{dataset.id}/media/{media_id}/thumbnail?size=256&" in answer.headers["Location"]
    assert open_client.get(uri.replace("sig=", "sig=x"), follow_redirects=False).status_code == 401


def test_change__of_name_and_description(open_client: Client, hub: Hub, dataset: Dataset) -> None:
    """The owner and admins change the name and the description; both or none."""
    url, ann = f"{API}/dataset/{dataset.id}", open_client.bearer("ann")
    changed = open_client.patch(url, json={"display_name": "cats", "description": "of Berlin"}, headers=ann).json()
    assert (changed["display_name"], changed["description"]) == ("cats", "of Berlin")
    assert open_client.patch(url, json={"description": ""}, headers=ann).json()["description"] == ""
    names = ({"display_name": name} for name in (None, "a/b", "x" * 256, 7))
    bodies: list[Any] = [{}, [], *names, {"description": "x" * 10_001}]
    for body in bodies:
        assert open_client.patch(url, json=body, headers=ann).status_code == 422, body
    lone = b'{"display_name": "new", "description": "\\ud800"}'
    assert open_client.patch(url, content=lone, headers={**ann, "Content-Type": "application/json"}).status_code == 422
    assert dataset.name == "cats"
    for name, status in (("eve", 403), ("vic", 403)):
        assert open_client.patch(url, json={"description": "x"}, headers=open_client.bearer(name)).status_code == status


def test_change__to_a_taken_name(local: Client, workspace: Workspace, dataset: Dataset) -> None:
    """A name that another dataset has is a conflict, and nothing is changed."""
    workspace.create_draft("taken")
    answer = local.patch(f"{API}/dataset/{dataset.id}", json={"display_name": "taken", "description": "x"})
    assert (answer.status_code, dataset.info.description) == (409, "")


@pytest.mark.slow
def test_delete__by_owners_and_admins(open_client: Client, workspace: Workspace, dataset: Dataset) -> None:
    """Admins delete a dataset, unless the settings forbid it or a task runs."""
    url = f"{API}/dataset/{dataset.id}"
    assert open_client.delete(url, headers=open_client.bearer("vic")).status_code == 403
    assert open_client.delete(url, headers=open_client.bearer("eve")).status_code == 403
    ann = open_client.bearer("ann")
    workspace.change_settings(delete_dataset_enabled=False)
    answer = open_client.delete(url, headers=ann)
    assert (answer.status_code, answer.json()["detail"]) == (403, "Deleting datasets is not enabled")
    workspace.change_settings(delete_dataset_enabled=None)
    with all_threads_busy(workspace):
        task = dataset.add_media(files=[("b.png", encode(photo(7), "png"))], wait=False)
        answer = open_client.delete(url, headers=ann)
    assert answer.status_code == 409
    assert answer.json()["detail"] == "dataset 'pets' cannot be deleted while a task of it is under way"
    task.wait()
    answer = open_client.delete(url, headers=ann)
    assert (answer.status_code, answer.json()) == (200, {"message": "Dataset deleted"})
    assert open_client.delete(url, headers=ann).status_code == 404


@pytest.mark.slow
def test_stats__count_issues_and_labels(local: Client, workspace: Workspace, dataset: Dataset) -> None:
    """The statistics have counts of media, issues and labels; a draft has none yet."""
    first, second, _ = dataset.view.media_ids()
    dataset.set_labels({first: ["cat"], second: ["cat", "dog"]})
    stats = local.get(f"{API}/dataset/{dataset.id}/stats").json()
    assert stats["n_clusters"] == dataset.view.count_clusters().n_clusters > 0
    assert (stats["n_images"], stats["labels"]) == (3, [{"name": "cat", "count": 2}, {"name": "dog", "count": 1}])
    assert {"blur", "duplicates"} <= {each["issue_type"] for each in stats["issues"]}
    draft = workspace.create_draft("draft")
    assert local.get(f"{API}/dataset/{draft.id}/stats").status_code == 409


def test_user_config__says_what_can_be_searched(local: Client, workspace: Workspace, dataset: Dataset) -> None:
    """The features say whether there are labels and captions, and which changes are enabled."""
    url = f"{API}/user_config"

    def features() -> dict[str, dict[str, bool]]:
        answer = local.get(url, params={"dataset_id": dataset.id}).json()
        return {each["feature_key"]: each["feature_options"] for each in answer["features"]}

    none = {"labels_search": False, "captions_search": False, "semantic_search": False}
    assert features()["TEXTUAL_SEARCH_IMAGE"] == none
    (first, *_) = dataset.view.media_ids()
    dataset.set_labels({first: ["cat"]})
    assert features()["TEXTUAL_SEARCH_IMAGE"] == {**none, "labels_search": True}
    dataset.set_captions({first: "a cat"})
    workspace.change_settings(add_media_enabled=False)
    assert features()["TEXTUAL_SEARCH_IMAGE"] == {**none, "labels_search": True, "captions_search": True}
    toggles = {key: options["enabled"] for key, options in features().items() if key != "TEXTUAL_SEARCH_IMAGE"}
    assert toggles == {"ADD_MEDIA": False, "SNAPSHOTS": True, "SHARE": True, "DELETE_DATASET": True}
    workspace.change_settings(add_media_enabled=None)
    missing = local.get(url)
    assert (missing.status_code, missing.json()["detail"]) == (422, "Field 'dataset_id' is required")
    assert local.get(url, params={"dataset_id": NOWHERE}).json()["detail"] == "Dataset not found"


@pytest.fixture
def cloud_workspace(service: Service, tmp_path: Path) -> Iterator[Workspace]:
    """A workspace that may read from a bucket with two images."""
    for number in range(2):
        service.put(f"photos/set/{number}.png", encode(photo(number)))
    with Workspace(tmp_path / "cloud", settings=service.settings(s3_allowed=["photos"])) as opened:
        yield opened


@pytest.mark.slow
def test_create__from_a_bucket(cloud_workspace: Workspace) -> None:
    """A dataset is created from a folder in a bucket, by a form of any kind or JSON, with or without the scheme."""
    url, extra = f"{API}/dataset", {"vl_dataset_id": "", "config_url": "", "pipeline_type": "x", "more": "y"}
    with Hub(cloud_workspace) as hub, client_of(cloud_workspace, hub, LOCAL) as client:
        first = client.post(url, data={"dataset_name": "a", "bucket_path": "photos/set", **extra}).json()
        assert first["dataset_id"] == first["id"]
        assert (first["source_type"], first["source_uri"]) == ("BUCKET", "s3://photos/set")
        second = client.post(url, json={"dataset_name": "b", "bucket_path": "s3://photos/set"})
        third = client.post(url, files={"dataset_name": (None, "c"), "bucket_path": (None, "s3://photos/set")})
        assert second.status_code == third.status_code == 200
        wait_until(lambda: {each.status_new for each in cloud_workspace.datasets()} == {"READY"})
        for uri in (
            "s3://photos/none",
            "s3://none/set",
            "http://photos/set",
            "s3://",
            "s3://secret/x",
            "file:///etc",
            "/etc",
            "/etc/x://",
        ):
            answer = client.post(url, json={"dataset_name": "d", "bucket_path": uri})
            assert (answer.status_code, answer.json()["detail"]) == (400, INVALID_URI), uri
        answer = client.post(url, json={"dataset_name": "a", "bucket_path": "s3://photos/set"})
        assert (answer.status_code, answer.json()["code"]) == (409, "conflict")
        archive = client.post(url, json={"dataset_name": "d", "uploaded_filename": "a.zip"})
        assert archive.json()["detail"] == "Archives are not supported for the initial creation of a dataset"
        assert archive.status_code == 400
        names = ({"dataset_name": name, "bucket_path": "photos/set"} for name in ("a/b", 7, "x" * 256))
        bodies: list[Any] = [{}, [], "x", {"dataset_name": "d"}, {"bucket_path": "photos/set"}, *names]
        for body in bodies:
            assert client.post(url, json=body).status_code == 422, body
        broken = client.post(url, content=b'{"dataset_name', headers={"Content-Type": "application/json"})
        assert broken.status_code == 422
        assert sorted(each.display_name for each in cloud_workspace.datasets()) == ["a", "b", "c"]
        wide = client.post(url, content=b"x" * (2**20 + 1), headers={"Content-Type": "application/json"})
        assert wide.status_code == 413


def test_create__in_the_cloud_needs_named_buckets(workspace: Workspace, hub: Hub) -> None:
    """In the cloud no bucket may be read unless the settings name it: the server's credentials would read any."""
    with client_of(workspace, hub, ServiceSettings(run_mode=RunMode.CLOUD)) as client:
        answer = client.post(f"{API}/dataset", json={"dataset_name": "a", "bucket_path": "s3://photos/set"})
    assert (answer.status_code, answer.json()["detail"]) == (400, INVALID_URI)


def test_create__by_viewers(open_client: Client, workspace: Workspace) -> None:
    """Viewers create nothing; without a log-in nothing of the body is read."""
    body = {"dataset_name": "a", "bucket_path": "s3://x/y"}
    answer = open_client.post(f"{API}/dataset", json=body, headers=open_client.bearer("vic"))
    assert (answer.status_code, answer.json()["detail"]) == (403, "You may not create datasets in this workspace")
    assert open_client.post(f"{API}/dataset", content=b"{", headers=OWN).status_code == 401
    assert workspace.datasets() == []
