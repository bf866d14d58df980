"""The service on a disk that is full: changes are refused with one sentence, reading goes on, and the fault passes."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from framedex import Dataset
from framedex.service.settings import ServiceSettings
from tests.gallery import make_gallery
from tests.image_files import encode, photo
from tests.pauses import wait_until
from tests.service.client import OWN
from tests.service.serving import Serving, serving
from tests.small_disks import Disk, small_disk

API = "/api/v1"
DISK_BYTES = 48 * 2**20
IMAGE = encode(photo(1))
REFUSED = "The workspace cannot be written at present"


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    """A disk of 48 MiB of its own."""
    with small_disk(tmp_path / "disk", DISK_BYTES) as mounted:
        yield mounted


@pytest.fixture
def served(disk: Disk) -> Iterator[Serving]:
    """A service whose workspace is on the small disk."""
    with serving(disk.path, ServiceSettings()) as running:
        yield running


@pytest.fixture
def dataset(served: Serving, tmp_path: Path) -> Dataset:
    """A dataset of a few pictures."""
    make_gallery(tmp_path / "gallery")
    return served.workspace.create_dataset("pets", tmp_path / "gallery")


def export_of(served: Serving, dataset: Dataset) -> tuple[str, str]:
    """Start an export of all images and return its last status, with the reason for a failure."""
    url = f"{API}/dataset/{dataset.id}"
    query = "file_name=all&export_format=json&include_images=true"
    answer = served.eve.get(f"{url}/export_context_async?{query}", headers=OWN)
    if answer.status_code != 200:
        assert (answer.status_code, answer.json()["detail"]) == (503, REFUSED)
        return "REFUSED", REFUSED
    status = f"{url}/export_status?export_task_id={answer.json()['id']}"
    wait_until(lambda: served.eve.get(status).json()["status"] in ("COMPLETED", "FAILED"))
    record = served.eve.get(status).json()
    return record["status"], str(record)


@pytest.mark.only_soak
@pytest.mark.parametrize("left", [0, pytest.param(96 * 1024, marks=pytest.mark.slow)])
def test_full_disk(disk: Disk, served: Serving, dataset: Dataset, left: int) -> None:
    """Uploads, edits and exports are refused, reading goes on with thumbnails that are not kept, and then all works."""
    eve, url = served.eve, f"{API}/dataset/{dataset.id}"
    draft = eve.get(f"{API}/ingestion/new_dataset?dataset_name=mine", headers=OWN).json()["dataset_id"]
    number = eve.get(f"{API}/ingestion/{draft}/data_files", headers=OWN).json()["trans_id"]
    upload = f"{API}/ingestion/{draft}/data_files/{number}"
    files = [("files", (f"{name}.png", IMAGE)) for name in range(20)]
    media_ids = dataset.view.media_ids()
    with disk.full(left):
        for answer in (
            eve.post(upload, files=files, headers=OWN),
            eve.post(f"{url}/add_media", files=files, headers=OWN),
            eve.post(f"{url}/tags", json={"name": "x" * 200}, headers=OWN) if not left else None,
            eve.post(f"{url}/snapshot", headers=OWN) if not left else None,
        ):
            if answer is not None:
                assert (answer.status_code, answer.json()["code"], answer.json()["detail"]) == (
                    503, "workspace", REFUSED,
                ), answer.request.url  # fmt: skip
        status, reason = export_of(served, dataset)
        assert status in ("REFUSED", "FAILED"), reason
        assert str(disk.path) not in reason
        ready = eve.get(f"{API}/ready")
        assert (ready.status_code, "MiB left" in ready.text) == (503, True)
        for path in (url, f"{API}/explore/{dataset.id}", f"{API}/healthcheck", f"{API}/me", f"{API}/datasets"):
            assert eve.get(path).status_code == 200, path
        for media_id in media_ids[:3]:
            assert eve.get(f"{url}/media/{media_id}/thumbnail?size=512").status_code == 200
            assert eve.get(f"{url}/media/{media_id}/file").status_code == 200
    assert eve.post(upload, files=files, headers=OWN).status_code == 202
    assert eve.post(f"{url}/tags", json={"name": "good"}, headers=OWN).status_code in (200, 201)
    status, reason = export_of(served, dataset)
    assert status == "COMPLETED", reason
    assert served.workspace.check().findings == []
