"""All labels, ranked, over HTTP and in a client."""

from collections.abc import Iterator

import pyarrow as pa
import pytest

from framedex import Client, Dataset, InvalidInput, Workspace
from framedex.hub import Hub
from framedex.service.arrow import ARROW
from framedex.service.settings import ServiceSettings
from tests.crowds import ROWS, create_crowds
from tests.gallery import SETTINGS, fill
from tests.service.client import BASE, client_of
from tests.service.client import Client as HttpClient


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Dataset, HttpClient]]:
    """A dataset with wrong labels beside one without labels, and a client of the service."""
    folder = tmp_path_factory.mktemp("label-issues")
    with (
        Workspace(folder / "ws", settings=SETTINGS) as workspace,
        Hub(workspace) as hub,
        client_of(workspace, hub, ServiceSettings()) as client,
    ):
        workspace.create_dataset("plain", fill(folder / "plain", 2))
        yield create_crowds(workspace, folder / "crowds"), client


def test_label_issues__over_http(served: tuple[Dataset, HttpClient]) -> None:
    """Pages have the rows of the ranking, and the estimate; media with a tag are left out of the rows alone."""
    dataset, client = served
    issues, url = dataset.label_issues(), f"/api/v1/dataset/{dataset.id}/labels/issues"
    page = client.get(url, params={"offset": 2, "limit": 3}).json()
    assert page["rows"] == issues.to_arrow().slice(2, 3).to_pylist()
    assert page["classes"] == issues.classes().to_pylist()
    assert (page["total"], page["offset"]) == (ROWS, 2)
    estimate = {"n_wrong": issues.n_wrong, "rate": issues.rate, "notes": issues.notes}
    assert page["estimate"] == {**estimate, "low": issues.interval[0], "high": issues.interval[1]}
    all_rows = client.get(url, params={"limit": 500}).json()["rows"]
    dataset.tag([all_rows[0]["media_id"]], "ambiguous")
    without = client.get(url, params={"limit": 500, "without_tag": "ambiguous"}).json()
    assert (without["rows"], without["total"]) == (all_rows[1:], ROWS - 1)
    assert without["estimate"] == page["estimate"]
    as_arrow = client.get(url, params={"limit": 1000, "method": "head"}, headers={"Accept": ARROW}).content
    assert pa.ipc.open_stream(as_arrow).read_all() == dataset.label_issues("head").to_arrow()


def test_label_issues__over_http_refuses(served: tuple[Dataset, HttpClient]) -> None:
    """A method that needs a table, too many rows and too few labels are refused."""
    dataset, client = served
    url = f"/api/v1/dataset/{dataset.id}/labels/issues"
    assert client.get(url, params={"method": "probabilities"}).status_code == 422
    assert "limit is 1 to 500" in client.get(url, params={"limit": 501}).json()["detail"]
    plain = next(each["id"] for each in client.get("/api/v1/datasets").json() if each["display_name"] == "plain")
    refused = client.get(f"/api/v1/dataset/{plain}/labels/issues")
    assert refused.status_code == 422
    assert "once 20 media have labels" in refused.json()["detail"]


def test_label_issues__of_a_client(served: tuple[Dataset, HttpClient]) -> None:
    """A client has the same table, estimate and view."""
    dataset, http = served
    own = dataset.label_issues("neighbours")
    with Client(BASE, transport=http._transport) as client:
        remote = client.dataset("crowds").label_issues("neighbours")
        assert remote.to_arrow() == own.to_arrow()
        assert (repr(remote), remote.classes()) == (repr(own), own.classes())
        assert list(remote.view(3).ids) == list(own.view(3).ids)
        with pytest.raises(InvalidInput, match="once 20 media"):
            client.dataset("plain").label_issues()
