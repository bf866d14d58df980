"""Messages to users: what concerns them, and no folder of the server."""

import io
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from framedex import Workspace
from tests.image_files import encode, photo
from tests.problems import unusable
from tests.service.client import OWN, Client


def uploaded(local: Client, name: str, **files: bytes) -> dict[str, Any]:
    """Return the record of the task of an upload."""
    dataset_id = local.get("/api/v1/ingestion/new_dataset", params={"dataset_name": name}).json()["dataset_id"]
    url = f"/api/v1/ingestion/{dataset_id}"
    transaction = local.get(f"{url}/data_files").json()["trans_id"]
    sent = [("files", (file.replace("__", "."), content)) for file, content in files.items()]
    assert local.post(f"{url}/data_files/{transaction}", files=sent, headers=OWN).status_code == 202
    assert local.post(f"{url}/process_files/{transaction}", headers=OWN).status_code == 202
    return dataset_id_and_task(local, dataset_id)


def dataset_id_and_task(local: Client, dataset_id: str) -> dict[str, Any]:
    """Return the record of the last task of a dataset, once it has ended."""
    while True:
        record: dict[str, Any] = local.get("/api/v1/tasks", params={"dataset_id": dataset_id}).json()["tasks"][0]
        if record["end_time"] is not None:
            return record


@pytest.mark.slow
def test_upload__names_no_internal_files(local: Client) -> None:
    """The task of an upload says nothing of files that the user has not sent."""
    record = uploaded(local, "new", a__png=encode(photo(1)))
    assert record["status"] == "COMPLETED"
    assert "parquet" not in record["status_message"]
    assert "not recognised" not in record["status_message"]


@pytest.mark.slow
def test_table__that_is_unusable(local: Client, workspace: Workspace) -> None:
    """A table of labels that cannot be read is a problem of that table: the images are there, and others' labels."""
    record = uploaded(
        local, "new", a__png=encode(photo(1)), image_annotations__csv=b"no,columns\n1,2\n",
        annotations__json=b"{no JSON",
    )  # fmt: skip
    assert (record["status"], record["error_message"]) == ("COMPLETED", None)
    dataset = workspace.dataset("new")
    assert dataset.count() == 1
    assert dataset.skipped == {"parts of annotations that cannot be used as they are": 2}
    problems = " ".join(unusable(dataset))
    assert "image_annotations.csv" in problems
    assert "annotations.json" in problems
    assert str(workspace.path) not in problems


def test_paths__are_shortened_for_all(local: Client, tmp_path: Path) -> None:
    """No message has a full path of the server, without log-ins either."""
    folder = tmp_path / "private" / "photos"
    folder.mkdir(parents=True)
    content = io.BytesIO()
    Image.new("RGB", (8, 8)).save(content, "PNG")
    (folder / "a.png").write_bytes(content.getvalue())
    started = local.get("/api/v1/process", params={"path": str(folder), "name": "new"}).json()
    record = dataset_id_and_task(local, started["dataset_id"])
    assert str(tmp_path) not in f"{record['status_message']} {record['error_message']}"
