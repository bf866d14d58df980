"""Additions of media over HTTP: exactly one source, the order of the checks, archives that attack, and reindexing."""

import io
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

from framedex import Dataset, Workspace
from framedex.access import Role
from framedex.hub import Hub
from framedex.media import s3
from framedex.media.remote import INVALID_URI
from framedex.service.settings import ServiceSettings
from tests.buckets import Service, Wire
from tests.environment import Environment
from tests.gallery import SETTINGS, embedded, fill
from tests.image_files import encode, photo
from tests.inside import layout_of
from tests.pauses import all_threads_busy, wait_until
from tests.prepared import prepared
from tests.service.client import LOCAL, Client, client_of
from tests.service.users import OPERATOR, PASSWORD

ONE_SOURCE = "Exactly one media source must be provided (files, s3_uri or archive)"
ROLE = "arn:aws:iam::123456789012:role/reader"
IMAGE = encode(photo(77))


@pytest.fixture
def dataset(workspace: Workspace, tmp_path: Path) -> Dataset:
    """A dataset of three images."""
    return prepared(workspace, "pets", fill(tmp_path / "few", 3))


def url(dataset: Dataset) -> str:
    """Return the path at which media are added to a dataset."""
    return f"/api/v1/dataset/{dataset.id}/add_media"


def zipped(**members: bytes) -> bytes:
    """Return a ZIP file of some members; two underscores in a name stand for a slash, one for a dot."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name.replace("__", "/").replace("_", "."), content)
    return out.getvalue()


def archived(content: bytes, name: str = "set.zip") -> dict[str, Any]:
    """Return an archive as the file of a request."""
    return {"archive": (name, content)}


def settled(dataset: Dataset) -> str:
    """Return the status of a dataset once no task changes it."""
    wait_until(lambda: dataset.running_task is None)
    return dataset.info.status_new


@pytest.mark.slow
def test_add_media__from_files_and_archives(open_client: Client, dataset: Dataset) -> None:
    """Files and an archive are added, by an editor, who is the creator of the task; the index can be rebuilt then."""
    eve = open_client.bearer("eve")
    answer = open_client.post(url(dataset), files=[("files", ("x/../a.png", IMAGE))], headers=eve)
    assert (answer.status_code, answer.content) == (202, b"")
    assert settled(dataset) == "PARTIAL INDEX"
    assert dataset.last_task is not None
    assert (dataset.last_task.task_type, dataset.last_task.created_by) == ("MEDIA_ADDITION", "eve@example.org")
    content = zipped(in__b_png=encode(photo(78)), notes_md=b"x")
    options = {"auto_reindex": "True", "use_spot": "false", "batch_n_images": "5", "assume_role": "", "more": "y"}
    assert open_client.post(url(dataset), files=archived(content), data=options, headers=eve).status_code == 202
    assert settled(dataset) == "READY"
    assert {"a.png", "in/b.png"} <= {row["path"] for row in dataset.view.rows(["path"])}
    reindex = f"/api/v1/dataset/{dataset.id}/reindex"
    refused = open_client.post(reindex, headers=eve)
    assert refused.status_code == 409
    assert refused.json()["detail"].startswith(
        "Operation 'reindex' needs the dataset status PARTIAL INDEX; it is READY"
    )
    open_client.post(url(dataset), files=[("files", ("c.png", encode(photo(79))))], headers=eve)
    assert settled(dataset) == "PARTIAL INDEX"
    answer = open_client.post(reindex, headers=eve)
    assert (answer.status_code, answer.content) == (202, b"")
    assert settled(dataset) == "READY"
    for path in (url(dataset), reindex):
        assert open_client.post(path, headers=open_client.bearer("vic")).status_code == 403
        assert open_client.post(path).status_code == 401


@pytest.mark.slow
def test_add_media__of_an_equal_name(local: Client, dataset: Dataset) -> None:
    """Another picture of the same name is another image; the first keeps its label, and a retry adds nothing."""
    first, second = encode(photo(81)), encode(photo(82))
    for content in (first, second, first, second):
        assert local.post(url(dataset), files=[("files", ("IMG_0001.png", content))]).status_code == 202
        settled(dataset)
        if content is first:
            dataset.set_labels(dataset.media_id("IMG_0001.png"), "mine")
    rows = {row["path"]: row["labels"] for row in dataset.view.rows(["path", "labels"]) if "IMG" in row["path"]}
    assert rows == {"IMG_0001.png": ["mine"], "IMG_0001-2.png": []}
    assert dataset.last_task is not None
    assert "1 there already" in str(dataset.last_task.status_message)


def test_add_media__takes_one_source(local: Client, dataset: Dataset) -> None:
    """No source and several sources have the sentence of the interface; wrong names and types are 422."""
    image, archive = ("files", ("a.png", IMAGE)), ("archive", ("a.zip", zipped(a_png=IMAGE)))
    empty = ("files", ("", b""))
    for files, data in (
        (None, None), (None, {"s3_uri": ""}), ([image, archive], None), ([image], {"s3_uri": "s3://a/b"}),
        ([archive, archive], None), ([empty], None),
    ):  # fmt: skip
        answer = local.post(url(dataset), files=files, data=data)
        assert (answer.status_code, answer.json()["detail"]) == (400, ONE_SOURCE), (files, data)
    for files, data in (
        ([("files[]", ("a.png", IMAGE))], None), ([("file", ("a.png", IMAGE))], None), (None, {"files": "a.png"}),
        ([image], {"auto_reindex": "maybe"}), ([image], {"batch_n_images": "-1"}), ([image], {"batch_n_objects": "x"}),
        ([image], {"use_spot": "5"}),
    ):  # fmt: skip
        assert local.post(url(dataset), files=files, data=data).status_code == 422, (files, data)
    for name in ("a.exe", "annotations.json"):
        answer = local.post(url(dataset), files=[image, ("files", (name, IMAGE))])
        assert (answer.status_code, answer.json()["detail"]) == (400, f"Unsupported file format: '{name}'")
    assert local.post(url(dataset), json={"s3_uri": "s3://a/b"}).status_code == 422
    assert (dataset.info.status_new, dataset.count()) == ("READY", 3)
    assert not list((layout_of(dataset).root / "service-uploads").iterdir())


@pytest.mark.slow
def test_add_media__checks_in_order(local: Client, workspace: Workspace, dataset: Dataset) -> None:
    """The toggle comes first, then the number of sources, then whether the dataset was indexed, then its state."""
    image = [("files", ("a.png", IMAGE))]
    unknown = local.post(url(dataset).replace(dataset.id, dataset.id[::-1]), files=image)
    assert (unknown.status_code, unknown.json()["detail"]) == (404, "Dataset not found")
    draft = workspace.create_draft("draft")
    assert local.post(url(draft)).json()["detail"] == ONE_SOURCE
    answer = local.post(url(draft), files=image)
    assert answer.status_code == 409
    assert (
        answer.json()["detail"] == "Operation 'add_media' needs the dataset status READY or PARTIAL INDEX; it is DRAFT"
    )
    with all_threads_busy(workspace):
        assert local.post(url(dataset), files=image).status_code == 202
        assert local.post(url(dataset)).json()["detail"] == ONE_SOURCE
        for sent in (image, list(archived(b"broken").items())):
            answer = local.post(url(dataset), files=sent)
            assert answer.status_code == 409
            assert answer.json()["detail"] == "Operation 'add_media' is blocked while MEDIA_ADDITION task is running"
    assert settled(dataset) == "PARTIAL INDEX"
    workspace.change_settings(add_media_enabled=False)
    for each in (image, None, [("files[]", ("a.png", IMAGE))]):
        answer = local.post(url(dataset), files=each)
        assert (answer.status_code, answer.json()["detail"]) == (403, "Add media feature is not enabled")
    workspace.change_settings(add_media_enabled=None)


def test_add_media__to_a_failed_creation(local: Client, workspace: Workspace, dataset: Dataset, tmp_path: Path) -> None:
    """A dataset that was never indexed has no embedding config; one that brought its embeddings takes no images."""
    fill(tmp_path / "gone", 2)
    with all_threads_busy(workspace):
        failed = workspace.create_dataset("gone", tmp_path / "gone", wait=False)
        (tmp_path / "gone").rename(tmp_path / "elsewhere")
    wait_until(lambda: failed.info.status_new == "ERROR")
    answer = local.post(url(failed), files=[("files", ("a.png", IMAGE))])
    assert (answer.status_code, answer.json()["detail"]) == (400, "Dataset has no embedding config")
    vectors = workspace.create_dataset("vectors", embedded([[1.0, 0.0], [0.0, 1.0]]))
    assert local.post(url(vectors), files=[("files", ("a.png", IMAGE))]).status_code == 400


@pytest.mark.slow
def test_add_media__archives_that_attack(local: Client, workspace: Workspace, dataset: Dataset, tmp_path: Path) -> None:
    """Archives that are broken, encrypted, too large, nested or lead elsewhere are refused by their own name."""
    linked = io.BytesIO()
    with tarfile.open(fileobj=linked, mode="w") as archive:
        for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE):
            member = tarfile.TarInfo("a.png")
            member.type, member.linkname = kind, "/etc/passwd"
            archive.addfile(member)
    encrypted = bytearray(zipped(a_png=IMAGE))
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        encrypted[encrypted.index(mark) + offset] |= 1
    up = io.BytesIO()
    with zipfile.ZipFile(up, "w") as archive_up:
        archive_up.writestr("../../evil.png", IMAGE)
    for content, name in (
        (b"no archive", "my.zip"), (b"no archive", "my.tar.gz"), (zipped(a_png=IMAGE)[:-30], "my.zip"),
        (bytes(encrypted), "my.zip"), (up.getvalue(), "my.zip"), (linked.getvalue(), "my.tar"),
        (zipped(a_png=bytes(70 * 2**20)), "my.zip"), (zipped(a_txt=b"x"), "my.zip"), (b"", "my.zip"),
        (zipped(in_zip=zipped(a_png=IMAGE), in_tar=linked.getvalue()), "my.zip"),
    ):  # fmt: skip
        answer = local.post(url(dataset), files=archived(content, name))
        assert answer.status_code == 400, name
        assert f"'{name}'" in answer.json()["detail"]
        assert str(tmp_path) not in answer.text
        assert dataset.info.status_new == "READY"
    assert local.post(url(dataset), files=archived(b"x", "my.rar")).status_code == 400
    assert dataset.count() == 3
    assert not list(tmp_path.rglob("evil.png"))
    assert not list((workspace.path / "service-uploads").iterdir())


@pytest.mark.slow
def test_add_media__files_of_the_server_cannot_be_named(tmp_path: Path) -> None:
    """What is sent is stored although no folder of the server may be read; nothing that is sent names a file of it."""
    few = fill(tmp_path / "few", 3)
    settings = SETTINGS.model_copy(update={"media_roots": (few,)})
    with Workspace(tmp_path / "ws", settings=settings) as workspace, Hub(workspace) as hub:
        dataset = workspace.create_dataset("pets", few)
        with client_of(workspace, hub, LOCAL) as client:
            for sent in (archived(zipped(a_png=IMAGE)), [("files", ("b.png", encode(photo(78))))]):
                assert client.post(url(dataset), files=sent).status_code == 202
                assert settled(dataset) == "PARTIAL INDEX"
            assert dataset.count() == 5
            for uri in ("/etc", "file:///etc", str(few)):
                answer = client.post(url(dataset), data={"s3_uri": uri})
                assert (answer.status_code, answer.json()["detail"]) == (400, INVALID_URI)


@pytest.mark.slow
def test_add_media__from_buckets(service: Service, tmp_path: Path) -> None:
    """Media of a bucket are added; a role must be in the settings, and only allowed buckets are read."""
    service.put("more-photos/set/0.png", IMAGE)
    settings = service.settings(s3_allowed=["more-photos"])
    with Workspace(tmp_path / "ws", settings=settings) as workspace, Hub(workspace) as hub:
        dataset = workspace.create_dataset("pets", fill(tmp_path / "few", 3))
        with client_of(workspace, hub, ServiceSettings(s3_allowed_roles=(ROLE,))) as client:
            for uri in ("s3://more-photos/none", "s3://other/set", "https://x/y", "s3:/x", "more-photos/set"):
                answer = client.post(url(dataset), data={"s3_uri": uri})
                assert (answer.status_code, answer.json()["detail"]) == (400, INVALID_URI), uri
            source = {"s3_uri": "s3://more-photos/set"}
            refused = client.post(url(dataset), data={**source, "assume_role": ROLE + "2"})
            assert (refused.status_code, refused.json()["detail"]) == (403, "assume_role is not allowed")
            unfit = client.post(url(dataset), data={"assume_role": ROLE}, files=[("files", ("a.png", IMAGE))])
            assert unfit.status_code == 400
            assert client.post(url(dataset), data=source).status_code == 202
            assert settled(dataset) == "PARTIAL INDEX"
        assert dataset.count() == 4


@pytest.mark.slow
def test_add_media__by_the_role_of_another_workspace(
    service: Service, tmp_path: Path, environment: Environment
) -> None:
    """A role is assumed with the id of the workspace of users, so those of another one cannot use it.

    Both workspaces know the ARN, and the settings list it. The trust policy of the role requires the id of one.
    """
    s3._CLIENTS.renew()
    service.put("by-workspace/set/0.png", IMAGE)
    allowed = service.settings(s3_allowed=["by-workspace"])
    settings = ServiceSettings(s3_allowed_roles=(ROLE,), disable_auth=False)
    answers, states = [], []
    with (
        Wire(service) as wire,
        Workspace(tmp_path / "ws", settings=allowed) as workspace,
        Hub(workspace, is_multi=True) as hub,
        client_of(workspace, hub, settings) as client,
    ):
        environment["AWS_ENDPOINT_URL_STS"] = wire.address
        for name in ("ours", "theirs"):
            tenant = hub.tenants.create(OPERATOR, name)
            user = hub.users.create(OPERATOR, name, PASSWORD, role=Role.EDITOR, tenant_id=tenant.id)
            made = workspace.in_namespace(tenant.id).create_dataset("pets", fill(tmp_path / name, 3))
            hub.datasets.adopt(made.id, tenant.id, user.id)
            wire.required.setdefault(ROLE, tenant.id)
            data = {"s3_uri": "s3://by-workspace/set", "assume_role": ROLE}
            answers.append(client.post(url(made), data=data, headers=client.bearer(name)))
            states.append(settled(made))
        assert {external_id for _, external_id in wire.assumed} == {wire.required[ROLE]}
    assert (answers[0].status_code, answers[0].content) == (202, b"")
    assert (answers[1].status_code, answers[1].json()["detail"]) == (400, INVALID_URI)
    assert states == ["PARTIAL INDEX", "READY"]
