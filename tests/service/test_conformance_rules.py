"""Rules of the interface that stand between its parts: statuses of access, failures, accepted files."""

from collections.abc import Iterator
from typing import Any

import pytest

from framedex import Dataset
from framedex.core.suffixes import IMAGE_SUFFIXES, VIDEO_SUFFIXES
from framedex.errors import InvalidInput
from framedex.service.settings import RunMode, load_service_settings
from tests.environment import Environment
from tests.failures import failing
from tests.gallery import fill
from tests.service.client import OWN, token_of
from tests.service.serving import Serving, serving

API = "/api/v1"
NOWHERE = "00000000-0000-0000-0000-0000000000aa"
IMAGES = "png jpg jpeg gif tif tiff bmp webp jp2 jfif avif heic heif"
VIDEOS = "mp4 mov m4v avi mkv wmv flv webm"
MORE_IMAGES = "jpe apng j2k hif pbm pgm ppm pnm dcm dicom"
MORE_VIDEOS = "3g2 3gp asf m2ts m2v mpe mpeg mpg mts ogv vob"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """A service with a dataset of two images, and a hidden one."""
    folder = tmp_path_factory.mktemp("rules")
    with serving(folder) as running:
        running.workspace.create_dataset("pets", fill(folder / "pets", 2))
        running.hide(running.workspace.create_draft("hidden"))
        yield running


@pytest.fixture(scope="module")
def dataset(served: Serving) -> Dataset:
    """The dataset."""
    return served.workspace.dataset("pets")


@pytest.mark.slow
def test_access__in_the_statuses_of_the_interface(served: Serving, dataset: Dataset) -> None:
    """A status of a dataset tells whether a token is valid; without permission to write there is a 403."""
    credentials = served.vic.post(f"{API}/api_credentials/rotate", headers=OWN).json()

    def ask(dataset_id: str, method: str = "GET", path: str = "", **claims: Any) -> tuple[int, str]:
        token = token_of(credentials["api_key"], credentials["api_secret"], **claims)
        headers = {"Authorization": f"Bearer {token}"}
        answer = served.nobody.request(method, f"{API}/dataset/{dataset_id}{path}", headers=headers)
        return answer.status_code, str(answer.json().get("detail"))

    hidden = next(each.id for each in served.workspace.datasets() if each.display_name == "hidden")
    assert ask(dataset.id)[0] == 200
    assert ask(dataset.id, exp=1_000_000, iat=999_000) == (401, "Invalid or expired token")
    for dataset_id in (hidden, NOWHERE, "x"):
        assert ask(dataset_id) == (404, "Dataset not found")
        assert ask(dataset_id, "POST", "/reindex") == (404, "Dataset not found")
    for method, path in (("POST", "/reindex"), ("POST", "/add_media"), ("POST", "/snapshot")):
        assert ask(dataset.id, method, path) == (403, "You do not have write access to this dataset")


def test_failure__is_one_sentence(served: Serving, dataset: Dataset) -> None:
    """A failure that nobody foresaw is a 500 in the form of all errors, which tells nothing of the server."""
    with failing("framedex.Dataset.snapshots", error=OSError(f"{served.workspace.path}: out of order")):
        answer = served.ann.get(f"{API}/dataset/{dataset.id}/snapshot")
    body = answer.json()
    assert (answer.status_code, body["detail"], body["code"]) == (500, "Internal server error", "internal")
    assert body["message"] == body["detail"]
    assert body["request_id"] == answer.headers["X-Request-ID"]
    assert "out of order" not in answer.text


def test_validation__has_one_sentence_and_all_problems(served: Serving, dataset: Dataset) -> None:
    """A request that is not valid is a 422 whose sentence is the first problem; ``errors`` has each with its place."""
    query = {"threshold": 9, "page_number": -1}
    body = served.ann.get(f"{API}/explore/{dataset.id}", params=query).json()
    assert body["code"] == "invalid"
    assert body["detail"] == body["message"] == "Invalid value for 'threshold': Input should be less than or equal to 4"
    assert [each["loc"] for each in body["errors"]] == [["query", "threshold"], ["query", "page_number"]]
    assert all(each.keys() == {"loc", "msg", "type"} for each in body["errors"])


def test_formats__of_the_interface(served: Serving) -> None:
    """The suffixes of images and videos are those of the interface and ours beside them, and an upload takes each."""
    assert {each.removeprefix(".") for each in IMAGE_SUFFIXES} == set(f"{IMAGES} {MORE_IMAGES}".split())
    assert {each.removeprefix(".") for each in VIDEO_SUFFIXES} == set(f"{VIDEOS} {MORE_VIDEOS}".split())
    client = served.local
    draft = client.get(f"{API}/ingestion/new_dataset", params={"dataset_name": "formats"}).json()["dataset_id"]
    transaction = client.get(f"{API}/ingestion/{draft}/data_files").json()["trans_id"]
    url = f"{API}/ingestion/{draft}/data_files/{transaction}"
    names = [f"a.{suffix}" for suffix in f"{IMAGES} {VIDEOS} {MORE_IMAGES} {MORE_VIDEOS}".split()]
    annotations = ["annotations.json", "image_annotations.csv", "object_annotations.parquet"]
    assert client.post(url, files=[("files", (name, b"x")) for name in names + annotations]).status_code == 202
    for name in ("a.zip", "a.tar", "a.tar.gz", "a.svg", "a.pdf"):
        answer = client.post(url, files=[("files", (name, b"x"))])
        assert (answer.status_code, answer.json()["detail"]) == (400, f"Unsupported file format: '{name}'")


def test_datasets__newest_first(served: Serving) -> None:
    """The list of datasets begins with the one that was created last."""
    newest = served.local.get(f"{API}/ingestion/new_dataset", params={"dataset_name": "newest"}).json()["dataset_id"]
    listed = served.local.get(f"{API}/datasets").json()
    assert listed[0]["id"] == newest
    times = [each["created_at"] for each in listed]
    assert times == sorted(times, reverse=True)


@pytest.mark.parametrize("prefix", ["", "FRAMEDEX_"])
def test_settings__of_the_environment(prefix: str, environment: Environment) -> None:
    """The kind of deployment and the log-ins are set by the names of the interface; another value is an error."""
    environment[f"{prefix}RUN_MODE"] = "CLOUD"
    environment[f"{prefix}DISABLE_AUTH"] = "false"
    settings = load_service_settings()
    assert (settings.run_mode, settings.disable_auth) == (RunMode.CLOUD, False)
    environment[f"{prefix}RUN_MODE"] = "ELSEWHERE"
    with pytest.raises(InvalidInput, match=f"{prefix}RUN_MODE is 'ELSEWHERE'"):
        load_service_settings()
