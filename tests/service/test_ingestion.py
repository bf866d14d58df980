"""Ingestion of local files over HTTP: drafts, transactions, what is accepted, and that nothing half stays."""

import io
import os
import tracemalloc
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from starlette.requests import Request

from framedex import Dataset, Workspace
from framedex.access import Role
from framedex.hub import Hub
from framedex.service.staging import staged_form
from tests.gallery import SETTINGS
from tests.image_files import encode, photo
from tests.pauses import all_threads_busy, wait_until
from tests.service.client import LOCAL, Client, client_of
from tests.service.users import OPERATOR, PASSWORD

API = "/api/v1/ingestion"
NOWHERE = "00000000-0000-0000-0000-0000000000aa"
IMAGES = [encode(photo(number)) for number in range(3)]


@pytest.fixture
def draft(workspace: Workspace) -> Dataset:
    """A dataset without files."""
    return workspace.create_draft("draft")


def files(*names: str, field: str = "files") -> list[tuple[str, Any]]:
    """Return images under some names as the files of a request."""
    return [(field, (name, IMAGES[number % 3], "image/png")) for number, name in enumerate(names)]


def opened(client: Client, dataset: Dataset, **options: Any) -> str:
    """Open a transaction, and return the path at which it takes files."""
    answer = client.get(f"{API}/{dataset.id}/data_files", **options)
    assert answer.status_code == 200, answer.text
    return f"{API}/{dataset.id}/data_files/{answer.json()['trans_id']}"


def staged(workspace: Workspace) -> list[Path]:
    """Return what requests left on the disk on their way."""
    folder = workspace.path / "service-uploads"
    return list(folder.iterdir()) if folder.exists() else []


@pytest.mark.slow
def test_ingestion__from_a_draft_to_a_dataset(open_client: Client, workspace: Workspace) -> None:
    """An editor creates a dataset of files that are sent in several requests, and owns it."""
    eve = open_client.bearer("eve")
    answer = open_client.get(f"{API}/new_dataset", params={"dataset_name": "mine"}, headers=eve)
    dataset = workspace.dataset(answer.json()["dataset_id"])
    url = opened(open_client, dataset, headers=eve)
    for names in (("a.png", "b.png"), ("c.png",)):
        sent = open_client.post(url, files=files(*names), headers=eve)
        assert (sent.status_code, sent.content) == (202, b"")
    status = open_client.get(f"/api/v1/dataset/{dataset.id}", headers=eve).json()
    assert (status["status"], status["status_new"], status["progress"]) == ("UPLOADING", "DRAFT", 0)
    process = url.replace("data_files", "process_files")
    with busy(workspace):
        started = open_client.post(process, headers=eve)
        assert (started.status_code, started.content) == (202, b"")
        status = open_client.get(f"/api/v1/dataset/{dataset.id}", headers=eve).json()
        assert status["status_new"] == "INDEXING"
        transaction = url.rpartition("/")[2]
        for again in (open_client.post(process, headers=eve), open_client.post(url, files=files("d.png"), headers=eve)):
            assert again.status_code == 409
            assert again.json()["detail"] == f"Transaction {transaction} is already being processed"
    wait_until(lambda: dataset.info.status_new == "READY")
    status = open_client.get(f"/api/v1/dataset/{dataset.id}", headers=eve).json()
    assert (status["n_images"], status["source_type"], status["owned_by"]) == (3, "UPLOAD", "eve@example.org")
    task = dataset.last_task
    assert task is not None
    assert (task.task_type, task.created_by) == ("DATASET_CREATION", "eve@example.org")
    assert open_client.post(process, headers=eve).status_code == 409
    assert staged(workspace) == []


@contextmanager
def busy(workspace: Workspace) -> Iterator[None]:
    """Keep all threads for tasks busy in a workspace that has run no task yet."""
    upload = workspace.create_draft("other").open_upload()
    upload.add([("a.png", IMAGES[0])])
    upload.process()
    with all_threads_busy(workspace):
        yield


def test_new_dataset__refuses(local: Client, workspace: Workspace, draft: Dataset) -> None:
    """The name is needed, has 1 to 255 characters without slashes, and is unique."""
    for query in ({}, {"dataset_name": ""}):
        answer = local.get(f"{API}/new_dataset", params=query)
        assert (answer.status_code, answer.json()["detail"]) == (400, "Field 'dataset_name' is required")
    for name in ("a/b", "x" * 256, "a\nb", " "):
        assert local.get(f"{API}/new_dataset", params={"dataset_name": name}).status_code == 400, name
    assert local.get(f"{API}/new_dataset", params={"dataset_name": "x" * 255}).status_code == 200
    assert local.get(f"{API}/new_dataset", params={"dataset_name": "draft"}).status_code == 409
    crossed = local.get(f"{API}/new_dataset", params={"dataset_name": "b"}, headers={"Sec-Fetch-Site": "cross-site"})
    assert crossed.status_code == 403


@pytest.mark.slow
def test_new_dataset__names_of_other_tenants(open_client: Client, hub: Hub, workspace: Workspace) -> None:
    """A name that another tenant uses is free, and tells nothing."""
    tenant = hub.tenants.create(OPERATOR, "others")
    hub.users.create(OPERATOR, "oto", PASSWORD, role=Role.ADMIN, tenant_id=tenant.id)
    oto, eve, vic = (open_client.bearer(name) for name in ("oto", "eve", "vic"))
    query = {"dataset_name": "same"}
    first = open_client.get(f"{API}/new_dataset", params=query, headers=eve).json()["dataset_id"]
    second = open_client.get(f"{API}/new_dataset", params=query, headers=oto).json()["dataset_id"]
    own = open_client.get("/api/v1/datasets", headers=oto).json()
    assert [(each["id"], each["owned_by"]) for each in own] == [(second, "oto")]
    assert open_client.get(f"{API}/new_dataset", params=query, headers=vic).status_code == 403
    for url in (f"{API}/{first}/data_files", f"{API}/{NOWHERE}/data_files"):
        answer = open_client.get(url, headers=oto)
        assert (answer.status_code, answer.json()["detail"]) == (404, "Dataset not found")


@pytest.mark.slow
def test_transactions__belong_to_their_dataset(local: Client, workspace: Workspace, draft: Dataset) -> None:
    """A transaction of another dataset is as unknown as one that does not exist."""
    other = workspace.create_draft("other")
    foreign = opened(local, other).rpartition("/")[2]
    for action in ("data_files", "process_files"):
        details = []
        for number in (foreign, "999999", str(2**70), "0", "-1"):
            answer = local.post(f"{API}/{draft.id}/{action}/{number}", files=files("a.png"))
            assert answer.status_code == 404, number
            details.append(answer.json()["detail"].replace(number, "N"))
        assert len(set(details)) == 1
        assert local.post(f"{API}/{draft.id}/{action}/abc", files=files("a.png")).status_code == 422
    assert local.post(f"{API}/{NOWHERE}/data_files/1", files=files("a.png")).json()["detail"] == "Dataset not found"


@pytest.mark.slow
def test_transactions__are_twenty_at_most(local: Client, draft: Dataset) -> None:
    """A dataset has up to 20 open transactions."""
    for _ in range(20):
        opened(local, draft)
    answer = local.get(f"{API}/{draft.id}/data_files")
    assert answer.status_code == 409
    assert "20 open transactions" in answer.json()["detail"]


def test_files__that_are_refused_leave_nothing(local: Client, workspace: Workspace, draft: Dataset) -> None:
    """One file that cannot be used refuses the whole request, and nothing of it is kept."""
    url = opened(local, draft)
    for names, sentence in (
        (("a.png", "x.exe"), "Unsupported file format: 'x.exe'"),
        (("a.png", "../../x.exe"), "Unsupported file format: 'x.exe'"),
        (("a.png", "metadata.csv"), "Unsupported file format: 'metadata.csv'"),
    ):
        answer = local.post(url, files=files(*names))
        assert (answer.status_code, answer.json()["detail"]) == (400, sentence)
    for name in ("b" * 10_000 + ".png", "b" * 252 + ".png"):
        assert local.post(url, files=files("a.png", name)).status_code == 400, name[-9:]
    for sent in (files("a.png", field="files[]"), files("a.png") + files("b.png", field="files[]"), None):
        answer = local.post(url, files=sent)
        assert (answer.status_code, answer.json()["detail"]) == (422, "Field 'files' is required")
    assert local.post(url, data={"files": "text"}).status_code == 422
    assert local.post(url, json={"files": []}).status_code == 422
    assert [each.n_files for each in draft.uploads()] == [0]
    answer = local.post(url.replace("data_files", "process_files"))
    assert (answer.status_code, answer.json()["detail"]) == (400, "The transaction holds no files")
    assert staged(workspace) == []


def test_files__count_by_the_last_part_of_their_names(local: Client, workspace: Workspace, draft: Dataset) -> None:
    """Only the last part of a name counts; of equal names the last file is used; names have any characters."""
    url = opened(local, draft)
    names = ("../../a.png", "C:\\Users\\b.PNG", "x/" * 4000 + "c.png", "a.png", "größe 1;2.png", "b" * 251 + ".png")
    assert local.post(url, files=files(*names)).status_code == 202
    extended = "Content-Disposition: form-data; name=\"files\"; filename*=utf-8''%e2%82%ac.png"
    body = f"--x\r\n{extended}\r\n\r\n".encode() + IMAGES[0] + b"\r\n--x--\r\n"
    sent = local.post(url, content=body, headers={"Content-Type": "multipart/form-data; boundary=x"})
    assert sent.status_code == 202
    assert local.post(url.replace("data_files", "process_files")).status_code == 202
    wait_until(lambda: draft.info.status_new == "READY")
    stored = {row["path"] for row in draft.view.rows(["path"])}
    assert stored == {"a.png", "b.PNG", "c.png", "größe 1;2.png", "b" * 251 + ".png", "€.png"}
    assert not list(workspace.path.parent.glob("a.png"))


@pytest.mark.parametrize(
    "body",
    [
        b'--x\r\nContent-Disposition: form-data; name="files"; filename="a.png"\r\n\r\nabc',
        b'--x\r\nContent-Disposition: form-data; name="files"; filename="a.png"\r\n\r\nabc\r\n--x',
        b"--x\r\nContent-Disposition: form-data\r\n\r\nabc\r\n--x--\r\n",
        b'--x\r\nContent-Disposition: form-data; name="files"; filename=""\r\n\r\nabc\r\n--x--\r\n',
        b'--x\r\nContent-Disposition: form-data; name="files"; filename="a\x00.png"\r\n\r\nabc\r\n--x--\r\n',
        b"nothing like a form",
        b"--x\r\n" + b"A" * 70_000 + b": b\r\n\r\nabc\r\n--x--\r\n",
        b"",
    ],
    ids=["cut off", "without its end", "no name", "no file name", "NUL", "no form", "long header", "empty"],
)
@pytest.mark.slow
def test_files__in_broken_forms(local: Client, workspace: Workspace, draft: Dataset, body: bytes) -> None:
    """A form that is broken or cut off is refused, and nothing of it is kept."""
    url = opened(local, draft)
    answer = local.post(url, content=body, headers={"Content-Type": "multipart/form-data; boundary=x"})
    assert answer.status_code in (400, 422), answer.text
    for boundary in ("x" * 300, '"', ""):
        headers = {"Content-Type": f"multipart/form-data; boundary={boundary}"}
        assert local.post(url, content=body, headers=headers).status_code in (400, 422)
    assert draft.uploads()[0].n_files == 0
    assert staged(workspace) == []


@pytest.fixture
def narrow(tmp_path: Path) -> Iterator[tuple[Workspace, Client]]:
    """A service with small limits, and a client of it."""
    limits = {"max_upload_files": 3, "max_upload_bytes": 40_000, "max_file_bytes": 10_000, "max_video_bytes": 20_000}
    with (
        Workspace(tmp_path / "ws", settings=SETTINGS.model_copy(update=limits)) as workspace,
        Hub(workspace) as hub,
        client_of(workspace, hub, LOCAL) as client,
    ):
        yield workspace, client


def test_files__within_limits(narrow: tuple[Workspace, Client]) -> None:
    """Each limit is exact: the number of files, the size of an image and of a video, the size of the request."""
    workspace, client = narrow
    url = opened(client, workspace.create_draft("draft"))

    def status(**sizes: int) -> int:
        sent = [("files", (name.replace("_", "."), io.BytesIO(bytes(size)))) for name, size in sizes.items()]
        return client.post(url, files=sent).status_code

    assert status(a_png=1, b_png=1, c_png=1) == 202
    assert status(a_png=1, b_png=1, c_png=1, d_png=1) == 400
    assert (status(a_png=10_000), status(a_png=10_001)) == (202, 413)
    assert (status(a_mp4=20_000), status(a_mp4=20_001)) == (202, 413)
    assert status(a_mp4=20_000, b_mp4=19_000) == 202
    assert status(a_mp4=20_000, b_mp4=20_000) == 413
    assert workspace.dataset("draft").uploads()[0].n_files == 7
    assert staged(workspace) == []


def test_files__of_a_killed_server_are_removed(workspace: Workspace, hub: Hub) -> None:
    """What a killed server left on the way is gone once the next one starts."""
    left = workspace.path / "service-uploads" / "tmp1"
    left.mkdir(parents=True)
    (left / "0").write_bytes(b"x")
    with client_of(workspace, hub, LOCAL):
        assert not left.exists()


def test_files__need_the_right_to_edit(open_client: Client, draft: Dataset) -> None:
    """Viewers and strangers send nothing; the body of their requests is not read."""
    vic, url = open_client.bearer("vic"), f"{API}/{draft.id}/data_files"
    assert open_client.get(url, headers=vic).status_code == 403
    assert open_client.get(url).status_code == 401
    trans_id = draft.open_upload().id
    for action in ("data_files", "process_files"):
        answer = open_client.post(f"{API}/{draft.id}/{action}/{trans_id}", files=files("a.png"), headers=vic)
        assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")
        assert open_client.post(f"{API}/{draft.id}/{action}/{trans_id}", files=files("a.png")).status_code == 401


@pytest.mark.slow
@pytest.mark.only_soak
def test_transactions__of_datasets_that_take_none(local: Client, workspace: Workspace, draft: Dataset) -> None:
    """A dataset that is being indexed opens no transaction; one with an index does, for an addition."""
    url = opened(local, draft)
    local.post(url, files=files("a.png", "b.png"))
    with busy(workspace):
        local.post(url.replace("data_files", "process_files"))
        answer = local.get(f"{API}/{draft.id}/data_files")
        assert answer.status_code == 409
        assert "DATASET_CREATION task is running" in answer.json()["detail"]
    wait_until(lambda: draft.info.status_new == "READY")
    more = opened(local, draft)
    assert local.post(more, files=[("files", ("c.png", IMAGES[2]))]).status_code == 202
    workspace.change_settings(add_media_enabled=False)
    assert local.get(f"{API}/{draft.id}/data_files").status_code == 403
    workspace.change_settings(add_media_enabled=None)
    assert local.post(more.replace("data_files", "process_files")).status_code == 202
    wait_until(lambda: draft.info.status_new == "PARTIAL INDEX")
    assert draft.last_task is not None
    assert draft.last_task.task_type == "MEDIA_ADDITION"


def test_files__are_on_the_disk_alone(workspace: Workspace) -> None:
    """Memory does not grow with a request: a file of 64 MiB is written while it arrives."""
    block, count = os.urandom(2**16), 2**10
    head = b'--x\r\nContent-Disposition: form-data; name="files"; filename="a.png"\r\n\r\n'
    parts = iter([head, *[block] * count, b"\r\n--x--\r\n"])

    async def receive() -> dict[str, Any]:
        part = next(parts)
        return {"type": "http.request", "body": part, "more_body": not part.endswith(b"--x--\r\n")}

    async def read() -> tuple[int, int]:
        headers = [(b"content-type", b"multipart/form-data; boundary=x")]
        request = Request({"type": "http", "method": "POST", "headers": headers}, receive)
        checks: dict[str, Callable[[str], None]] = {"files": lambda _name: None}
        async with staged_form(request, workspace.path, workspace.settings, files=checks) as form:
            (file,) = form.files["files"]
            return file.size, file.path.stat().st_size

    tracemalloc.start()
    try:
        with ThreadPoolExecutor(1) as pool:  # in this thread a browser may run its loop
            assert pool.submit(anyio.run, read).result() == (len(block) * count, len(block) * count)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 8 * 2**20
    assert staged(workspace) == []
