"""States of datasets and tasks over HTTP: what may begin in which, what a task changes, and how it ends."""

from collections.abc import Iterator
from typing import Any

import pytest

from framedex import Dataset
from framedex.records import DatasetStatus, TaskStatus, TaskType
from framedex.storage import datasets, task_rows
from tests.enrichments import ENCODE, Hues, register_models
from tests.gallery import fill
from tests.image_files import encode, photo
from tests.inside import catalog_of, runner_of, stored_media
from tests.pauses import all_threads_busy, wait_until
from tests.service.client import Client
from tests.service.serving import Serving, serving

API = "/api/v1"
IMAGES = [encode(photo(seed)) for seed in range(400, 410)]
READY, PARTIAL, READ_ONLY = DatasetStatus.READY, DatasetStatus.PARTIAL_INDEX, DatasetStatus.READ_ONLY
INDEXING, ERROR = DatasetStatus.INDEXING, DatasetStatus.ERROR
OPERATIONS: dict[str, tuple[str, str, dict[str, Any], int, set[DatasetStatus]]] = {
    "add_media": ("POST", "add_media", {"files": [("files", ("new.png", IMAGES[0]))]}, 202, {READY, PARTIAL}),
    "reindex": ("POST", "reindex", {}, 202, {PARTIAL}),
    "enrich": ("POST", "enrich_dataset", {"json": {"enrichment_models": ENCODE}}, 200, {READY}),
    "snapshot": ("POST", "snapshot", {}, 200, {READY}),
    "restore": ("POST", "snapshot/current/restore", {}, 202, {READY, PARTIAL, ERROR}),
    "clone": ("POST", "snapshot/current/clone", {}, 202, {READY, PARTIAL, ERROR}),
    "export": (
        "GET",
        "export_context_async",
        {"params": {"file_name": "a", "export_format": "json"}},
        200,
        {READY, READ_ONLY},
    ),
}
"""Operations on a dataset: method, path below it, request, status of success, and the states that allow it."""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """A service with a dataset of three images, and a model."""
    folder = tmp_path_factory.mktemp("states")
    with serving(folder) as running:
        register_models(running.workspace, Hues())
        models = running.workspace.path / "models.toml"
        models.write_text(models.read_text() + 'dependencies = ["MULTIMODEL_IMAGE_ENCODING"]\n')
        running.workspace.create_dataset("pets", fill(folder / "pets", 3))
        yield running


@pytest.fixture
def dataset(served: Serving) -> Iterator[Dataset]:
    """The dataset, which is READY, without a running task before and after each test."""
    found = served.workspace.dataset("pets")
    set_status(served, found, stored_media(found).generation.status)
    if found.info.status_new is PARTIAL:
        found.reindex()
    yield found
    settle(served)


def settle(served: Serving) -> None:
    """Wait until no dataset has a running task."""
    ids = [each.id for each in served.workspace.datasets()]
    wait_until(lambda: all(served.workspace.dataset(each).running_task is None for each in ids))


def set_status(served: Serving, dataset: Dataset, status: DatasetStatus) -> None:
    """Store a state of a dataset, as a task or its failure leaves it."""
    with catalog_of(served.workspace).write() as connection:
        datasets.update_dataset(connection, dataset.id, status=status)


def status_of(client: Client, dataset_id: str) -> str:
    """Return the state of a dataset that clients see."""
    return str(client.get(f"{API}/dataset/{dataset_id}").json()["status_new"])


def begin(client: Client, dataset: Dataset, operation: str) -> Any:
    """Return the answer to a request that begins an operation."""
    method, path, request, _, _ = OPERATIONS[operation]
    return client.request(method, f"{API}/dataset/{dataset.id}/{path}", **request)


@pytest.mark.parametrize("operation", OPERATIONS)
def test_operations__begin_in_their_states(served: Serving, dataset: Dataset, operation: str) -> None:
    """Each operation begins in the states of the interface, and is a 409 with the state in all others."""
    *_, success, allowed = OPERATIONS[operation]
    for status in (READY, PARTIAL, READ_ONLY, INDEXING, ERROR):
        set_status(served, dataset, status)
        answer = begin(served.local, dataset, operation)
        if status in allowed:
            assert answer.status_code == success, (status, answer.text)
            settle(served)
        else:
            assert (answer.status_code, answer.json()["code"]) == (409, "conflict"), status
            assert answer.json()["detail"].startswith(f"Operation '{operation}' needs the dataset status"), status
            assert str(status) in answer.json()["detail"]


@pytest.mark.slow
@pytest.mark.only_soak
def test_operations__do_not_wait_for_a_map(served: Serving, dataset: Dataset) -> None:
    """A task that makes a map keeps nothing else from starting; the dataset stays READY."""
    with all_threads_busy(served.workspace):
        assert served.local.post(f"{API}/dataset/{dataset.id}/map").status_code == 202
        assert status_of(served.local, dataset.id) == READY
        answer = begin(served.local, dataset, "snapshot")
        assert answer.status_code == 200, answer.text
        answer = begin(served.local, dataset, "enrich")
        assert answer.status_code == 200, answer.text
    settle(served)
    assert status_of(served.local, dataset.id) == READY


@pytest.mark.slow
@pytest.mark.parametrize("kind", sorted({*TaskType} - {TaskType.MEDIA_DELETION, TaskType.MAP}))
def test_operations__wait_for_each_task(served: Serving, dataset: Dataset, kind: TaskType) -> None:
    """While a task of any type runs, changes are a 409 with its type; reading goes on."""
    with catalog_of(served.workspace).write() as connection:
        record = datasets.find_dataset(connection, dataset.id)
        runner = runner_of(served.workspace)
        task_id = runner.insert(connection, record, kind, {}, created_by="tester")
    try:
        for operation in ("add_media", "reindex", "enrich", "snapshot", "restore"):
            answer = begin(served.local, dataset, operation)
            sentence = f"Operation '{operation}' is blocked while {kind} task is running"
            assert (answer.status_code, answer.json()["detail"]) == (409, sentence)
        assert served.local.get(f"{API}/explore/{dataset.id}").json()["clusters"]
    finally:
        with catalog_of(served.workspace).write() as connection:
            task_rows.finish_task(connection, task_id, TaskStatus.COMPLETED)


@pytest.mark.slow
def test_add_media__reindexes_at_once(served: Serving, dataset: Dataset) -> None:
    """With ``auto_reindex`` the state goes from READ ONLY to READY, and is never PARTIAL INDEX."""
    client, seen = served.local, []
    with all_threads_busy(served.workspace):
        files = [("files", ("more.png", IMAGES[1]))]
        answer = client.post(f"{API}/dataset/{dataset.id}/add_media", files=files, data={"auto_reindex": "true"})
        assert answer.status_code == 202
        assert status_of(client, dataset.id) == READ_ONLY

    def ended() -> bool:
        seen.append(status_of(client, dataset.id))
        return dataset.running_task is None

    wait_until(ended)
    assert status_of(client, dataset.id) == READY
    assert "PARTIAL INDEX" not in seen
    task = client.get(f"{API}/tasks", params={"dataset_id": dataset.id}).json()["tasks"][0]
    assert (task["task_type"], task["dataset_status"]) == ("MEDIA_ADDITION", "READY")


@pytest.mark.slow
def test_add_media__and_reindex(served: Serving, dataset: Dataset) -> None:
    """An addition leads over READ ONLY to PARTIAL INDEX, and a reindex over READ ONLY to READY; each is a task."""
    client, newest, before = served.local, {}, dataset.count()
    for operation, end in (("add_media", PARTIAL), ("reindex", READY)):
        with all_threads_busy(served.workspace):
            sent = [("files", (f"{number}.png", IMAGES[number])) for number in (5, 6)]
            files = sent if operation == "add_media" else None
            assert client.post(f"{API}/dataset/{dataset.id}/{operation}", files=files).status_code == 202
            assert status_of(client, dataset.id) == READ_ONLY
            newest[operation] = client.get(f"{API}/tasks", params={"dataset_id": dataset.id}).json()["tasks"][0]
        settle(served)
        assert status_of(client, dataset.id) == end
    assert dataset.count() == before + 2
    types = [(task["task_type"], task["dataset_status"], task["end_time"]) for task in newest.values()]
    assert types == [("MEDIA_ADDITION", "READ_ONLY", None), ("REINDEX", "READ_ONLY", None)]


def test_restore__reads_the_state_before(served: Serving, dataset: Dataset) -> None:
    """While a restore runs, the snapshot says so, what is read is the state before it, and exports may begin."""
    client, url = served.local, f"{API}/dataset/{dataset.id}/snapshot"
    kept = client.post(url, json={"name": "kept"}).json()
    dataset.tag(dataset.view.media_ids()[:1], "later")

    def tagged() -> int:
        page = client.get(f"{API}/explore/{dataset.id}", params={"tags": "later"}).json()
        return sum(cluster["n_images"] for cluster in page["clusters"])

    with all_threads_busy(served.workspace):
        assert client.post(f"{url}/{kept['snapshot_id']}/restore").status_code == 202
        assert status_of(client, dataset.id) == READ_ONLY
        assert [each["snapshot_name"] for each in client.get(url).json() if each["is_restoring"]] == ["kept"]
        task = client.get(f"{API}/tasks", params={"dataset_id": dataset.id}).json()["tasks"][0]
        assert (task["task_type"], task["dataset_id"]) == ("SNAPSHOT_RESTORE", dataset.id)
        assert tagged() == 1
        assert begin(client, dataset, "export").status_code == 200
        for operation in ("add_media", "reindex", "enrich", "restore", "snapshot"):
            assert begin(client, dataset, operation).status_code == 409
    settle(served)
    assert (status_of(client, dataset.id), tagged()) == (READY, 0)
    assert not any(each["is_restoring"] for each in client.get(url).json())
    assert client.get(url).json()[0]["is_current"]


@pytest.mark.slow
def test_clone__leaves_the_source(served: Serving, dataset: Dataset) -> None:
    """A clone is another dataset with a task of its own; meanwhile the source is READY and may be changed."""
    client = served.local
    before = {each["id"] for each in client.get(f"{API}/datasets").json()}
    with all_threads_busy(served.workspace):
        assert begin(client, dataset, "clone").status_code == 202
        (copy,) = [each for each in client.get(f"{API}/datasets").json() if each["id"] not in before]
        assert copy["display_name"].startswith("pets (cloned")
        assert copy["status_new"] == INDEXING
        assert status_of(client, dataset.id) == READY
        assert begin(client, dataset, "snapshot").status_code == 200
        task = client.get(f"{API}/tasks", params={"dataset_id": copy["id"]}).json()["tasks"][0]
        assert (task["task_type"], task["dataset_name"]) == ("SNAPSHOT_CLONE", copy["display_name"])
    settle(served)
    (made,) = client.get(f"{API}/dataset/{copy['id']}/snapshot").json()
    assert (status_of(client, copy["id"]), made["reason"]) == (READY, "clone")


def test_enrichment__needs_other_types_first(served: Serving, dataset: Dataset) -> None:
    """A model that depends on a type which was not applied is a 409 that names it, and no copy stays."""
    before = len(served.local.get(f"{API}/datasets").json())
    body = {"enrichment_models": {"IMAGE_TAGGING": "names"}}
    answer = served.local.post(f"{API}/dataset/{dataset.id}/enrich_dataset", json=body)
    assert answer.status_code == 409
    assert "needs MULTIMODEL_IMAGE_ENCODING to be applied first" in answer.json()["detail"]
    assert len(served.local.get(f"{API}/datasets").json()) == before
    models = {each["id"]: each["dependencies"] for each in
              served.local.get(f"{API}/enrichment/{dataset.id}/list_models").json()}  # fmt: skip
    assert (models["hues"], models["names"]) == (None, ["MULTIMODEL_IMAGE_ENCODING"])


@pytest.mark.slow
def test_creation__is_aborted_and_retried(served: Serving) -> None:
    """An aborted creation is ABORTED, and its retry INITIALIZING, with the files that were uploaded.

    What has ended cannot be aborted, which is a 409, and what did not fail cannot be retried, a 400.
    """
    client = served.local
    draft = client.get(f"{API}/ingestion/new_dataset", params={"dataset_name": "uploaded"}).json()["dataset_id"]
    transaction = client.get(f"{API}/ingestion/{draft}/data_files").json()["trans_id"]
    files = [("files", (f"{number}.png", IMAGES[number])) for number in range(3)]
    assert client.post(f"{API}/ingestion/{draft}/data_files/{transaction}", files=files).status_code == 202
    with all_threads_busy(served.workspace):
        assert client.post(f"{API}/ingestion/{draft}/process_files/{transaction}").status_code == 202
        (task,) = client.get(f"{API}/tasks", params={"dataset_id": draft}).json()["tasks"]
        url = f"{API}/tasks/{task['task_id']}"
        assert (task["status"], status_of(client, draft)) == ("INITIALIZING", INDEXING)
        assert client.post(f"{url}/retry").status_code == 400
        aborted = client.post(f"{url}/abort")
        assert (aborted.status_code, aborted.json()["status"]) == (200, "ABORTED")
        assert aborted.json()["end_time"]
        assert status_of(client, draft) == ERROR
        assert client.post(f"{url}/abort").status_code == 409
        again = client.post(f"{url}/retry")
        assert (again.status_code, again.json()["status"], again.json()["end_time"]) == (200, "INITIALIZING", None)
        assert again.json()["task_id"] == task["task_id"]
        assert status_of(client, draft) == INDEXING
    wait_until(lambda: status_of(client, draft) == READY)
    dataset = client.get(f"{API}/dataset/{draft}").json()
    assert (dataset["n_images"], dataset["progress"]) == (3, 100)
    for action, status in (("abort", 409), ("retry", 400)):
        assert client.post(f"{url}/{action}").status_code == status
