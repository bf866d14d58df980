"""Folders of the server: no answer to users who own no dataset there names one."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from framedex import Dataset
from framedex.service.actions import needs_of
from tests.gallery import fill
from tests.laws import rest_slow
from tests.pauses import all_threads_busy, wait_until
from tests.service.client import OWN, Client
from tests.service.every_id import every_id
from tests.service.serving import Serving, serving
from tests.service.test_routes import routes_of_service
from tests.service.users import OPERATOR

ENDLESS = ("/events", "/stream")
OWN_SECRETS = ("/api_credentials", "/oidc/login", "/oidc/callback")
PLANTED = "planted-folder-of-the-server"
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Serving, dict[str, str]]]:
    """A service with a dataset of the admin, in which much has failed, and an id of each kind."""
    folder = tmp_path_factory.mktemp("paths") / PLANTED
    images = fill(folder / "images", 5)
    (images / "broken.png").write_bytes(b"no image")
    (images / "gone.png").symlink_to(folder / "nowhere.png")
    box = {"image_id": 9, "category_id": 1, "bbox": [0, 0, 1, 1]}
    labels = {"images": [{"id": 1, "file_name": "none.png"}], "categories": [], "annotations": [box]}
    (images / "annotations.json").write_text(json.dumps(labels))
    with serving(folder) as served:
        hub = served.hub
        owner = next(user for user in hub.users.page(OPERATOR)[0] if user.username == "ann")
        tenant = hub.tenants.visible(OPERATOR)[0]
        dataset = served.workspace.create_dataset("pets", images, "gist")
        hub.datasets.adopt(dataset.id, tenant.id, owner.id)
        ids = every_id(served.ann, hub, dataset, "a name")
        _fail(served, folder, dataset)
        yield served, ids


def _fail(served: Serving, folder: Path, dataset: Dataset) -> None:
    """Let a creation, an addition and an export meet sources and media that are gone."""
    source, more = fill(folder / "gone", 2, first_seed=50), fill(folder / "more", 1, first_seed=60)
    with all_threads_busy(served.workspace):
        failed = served.workspace.create_dataset("failed", source, "gist", wait=False)
        source.rename(folder / "elsewhere")
    wait_until(lambda: failed.info.status_new == "ERROR")
    with all_threads_busy(served.workspace):
        added = dataset.add_media(more, wait=False)
        more.rename(folder / "elsewhere too")
    wait_until(lambda: dataset.running_task is None)
    assert added.record.status == "FAILED"
    dataset.reindex()
    (folder / "images" / "000.png").unlink()
    (folder / "images" / "001.png").write_bytes(b"another")
    query = {"file_name": "x", "export_format": "json", "include_images": "true"}
    answer = served.ann.get(f"/api/v1/dataset/{dataset.id}/export_context_async", params=query, headers=OWN)
    assert answer.status_code == 200
    status, params = f"/api/v1/dataset/{dataset.id}/export_status", {"export_task_id": answer.json()["id"]}
    wait_until(lambda: served.ann.get(status, params=params).json()["status"] in ("COMPLETED", "FAILED"))


def _asked(client: Client, ids: dict[str, str]) -> Iterator[tuple[str, int, bytes]]:
    """Yield the path, the status and all bytes of the answer to each GET."""
    for route in routes_of_service():
        path = route.path
        if "GET" not in (route.methods or set()) or needs_of(route.endpoint).changes:
            continue
        if path.endswith((*ENDLESS, *OWN_SECRETS)):
            continue
        for name in re.findall(r"{(\w+)(?::\w+)?}", path):
            path = re.sub(rf"{{{name}(:\w+)?}}", ids.get(name, "x"), path)
        params = {"dataset_id": ids["dataset_id"], "export_task_id": ids["export_id"], "original_media_uri": "000.png"}
        for accept in ("application/json", "application/vnd.apache.arrow.stream"):
            answer = client.get(path, params=params, headers={"Accept": accept}, follow_redirects=False)
            heads = "\n".join(f"{name}: {value}" for name, value in answer.headers.items())
            yield path, answer.status_code, answer.content + heads.encode()


@pytest.mark.parametrize("name", rest_slow(["eve", "vic"], 1, long=1))
def test_answers__name_no_folder(site: tuple[Serving, dict[str, str]], name: str) -> None:
    """No GET of a viewer or an editor has the folder of the source, of the workspace, or of what failed."""
    served, ids = site
    answers = list(_asked(getattr(served, name), ids))
    assert [path for path, _, content in answers if PLANTED.encode() in content] == []
    assert [path for path, status, _ in answers if status >= 500] == []
    assert len({path for path, status, _ in answers if status == 200}) > 40


def test_answers__of_the_owner(site: tuple[Serving, dict[str, str]]) -> None:
    """The owner of the dataset sees its folder, so the search of the other answers would find it."""
    served, ids = site
    assert PLANTED in served.ann.get(f"/api/v1/dataset/{ids['dataset_id']}").text


def test_refusals__name_no_folder(site: tuple[Serving, dict[str, str]]) -> None:
    """Refusals of changes do not name one either, whoever is refused."""
    served, ids = site
    for route in routes_of_service():
        path = route.path
        for name in re.findall(r"{(\w+)(?::\w+)?}", path):
            path = re.sub(rf"{{{name}(:\w+)?}}", ids["dataset_id"] if name == "dataset_id" else "x", path)
        for method in sorted((route.methods or set()) - {"GET", "HEAD"}):
            for client in (served.vic, served.nobody):
                answer = client.request(method, path, json={}, headers={"Origin": "https://evil.example"})
                assert PLANTED not in answer.text, (method, path)
