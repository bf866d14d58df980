"""Enrichment over HTTP: models, the context, progress, and to whom the enriched copy belongs."""

from pathlib import Path

import pytest

from framedex import Dataset, Workspace
from framedex.access import Role
from framedex.hub import Hub
from tests.enrichments import ENCODE, Hues, paint, register_models
from tests.pauses import all_threads_busy, wait_until
from tests.prepared import prepared
from tests.service.client import Client
from tests.service.users import OPERATOR, PASSWORD

API = "/api/v1"
NOWHERE = "00000000-0000-0000-0000-0000000000aa"


@pytest.fixture
def dataset(workspace: Workspace, tmp_path: Path) -> Dataset:
    """A dataset of coloured images, and a model that encodes colours."""
    register_models(workspace, Hues())
    with (workspace.path / "models.toml").open("a") as models:
        models.write(f'\n[lost]\ntype = "OBJECT_DETECTION"\ndetector = "onnx:{tmp_path}/models/lost.onnx"\n')
    return prepared(workspace, "colours", paint(tmp_path / "colours"))


def test_enrichment__makes_a_copy_of_the_user(open_client: Client, workspace: Workspace, dataset: Dataset) -> None:
    """An editor makes an enriched copy, which belongs to the editor; the source is held meanwhile."""
    eve, url = open_client.bearer("eve"), f"{API}/dataset/{dataset.id}"
    context = open_client.get(f"{API}/enrichment/{dataset.id}/context", headers=eve).json()
    assert context["status"] == "NEW"
    assert context["context_id"] == context["enrichment_context_id"]
    assert context["dataset_enrichment_models"] == {"enrichment_models": {}}
    progress = f"{API}/enrichment/{dataset.id}/{context['context_id']}/status"
    assert open_client.get(progress, headers=eve).json() == {"status": "NEW", "progress": 0}
    with all_threads_busy(workspace):
        answer = open_client.post(f"{url}/enrich_dataset", json={"enrichment_models": ENCODE}, headers=eve)
        assert answer.status_code == 200
        copy = answer.json()["dataset_id"]
        assert answer.json() == {"dataset_id": copy, "id": copy}
        source = open_client.get(url, headers=eve).json()
        assert (source["status"], source["status_new"]) == ("ENRICHING", "READ ONLY")
        assert open_client.get(progress, headers=eve).json()["status"] in ("INITIALIZING", "RUNNING")
        again = open_client.post(f"{url}/enrich_dataset", json={"enrichment_models": ENCODE}, headers=eve)
        assert (again.status_code, again.json()["code"]) == (409, "conflict")
    wait_until(lambda: workspace.dataset(copy).info.status_new == "READY")
    made = open_client.get(f"{API}/dataset/{copy}", headers=eve).json()
    assert (made["owned_by"], made["created_by"]) == ("eve@example.org", "eve@example.org")
    assert (made["source_dataset_id"], made["source_type"]) == (dataset.id, "LOCAL")
    for dataset_id in (copy, dataset.id):
        answer = open_client.get(f"{API}/enrichment/{dataset_id}/any/status", headers=eve)
        assert answer.json() == {"status": "COMPLETED", "progress": 100}
    context = open_client.get(f"{API}/enrichment/{copy}/context", headers=eve).json()
    assert context["dataset_enrichment_models"]["enrichment_models"] == ENCODE


def test_enrichment__models_hide_folders(local: Client, dataset: Dataset, tmp_path: Path) -> None:
    """The description of a model that cannot be applied says why, without the folders of the server."""
    answer = local.get(f"{API}/enrichment/{dataset.id}/list_models")
    models = {each["id"]: each for each in answer.json()}
    assert models["hues"]["status"] == "Active"
    assert models["lost"]["status"] == "Coming Soon"
    assert "lost.onnx" in models["lost"]["description"]
    assert str(tmp_path) not in answer.text


@pytest.mark.slow
def test_enrichment__refuses_models(local: Client, workspace: Workspace, dataset: Dataset, tmp_path: Path) -> None:
    """Unknown types and models, models of another type or that cannot be applied, and no models are 422."""
    url = f"{API}/dataset/{dataset.id}/enrich_dataset"
    for models in (
        {}, {"PAINTING": "hues"}, {"OBJECT_DETECTION": "nothing"}, {"OBJECT_DETECTION": "hues"},
        {"OBJECT_DETECTION": "lost"}, {"OBJECT_DETECTION": 7}, {"OBJECT_DETECTION": None}, ["hues"], "hues", None,
    ):  # fmt: skip
        answer = local.post(url, json={"enrichment_models": models})
        assert answer.status_code == 422, models
        assert str(tmp_path) not in answer.text
    assert local.post(url, json={}).status_code == 422
    assert (
        local.post(url, json={"enrichment_models": {"OBJECT_DETECTION": "x"}}).json()["detail"].startswith("no model")
    )
    draft = workspace.create_draft("draft")
    refused = local.post(f"{API}/dataset/{draft.id}/enrich_dataset", json={"enrichment_models": ENCODE})
    assert (refused.status_code, len(workspace.datasets())) == (409, 2)


@pytest.mark.slow
def test_enrichment__by_others(open_client: Client, hub: Hub, dataset: Dataset) -> None:
    """Viewers, and editors by a grant, copy nothing out of a tenant; for strangers nothing is there."""
    tenant = hub.tenants.create(OPERATOR, "others")
    for name in ("oto", "ida"):
        hub.users.create(OPERATOR, name, PASSWORD, role=Role.EDITOR, tenant_id=tenant.id)
    hub.datasets.share(OPERATOR, dataset.id, "ida", Role.EDITOR)
    body = {"enrichment_models": ENCODE}
    for name, status in (("vic", 403), ("ida", 403), ("oto", 404)):
        headers = open_client.bearer(name)
        assert (
            open_client.post(f"{API}/dataset/{dataset.id}/enrich_dataset", json=body, headers=headers).status_code
            == status
        )
    oto = open_client.bearer("oto")
    for rest in ("list_models", "context", "x/status"):
        hidden, unknown = (
            open_client.get(f"{API}/enrichment/{each}/{rest}", headers=oto) for each in (dataset.id, NOWHERE)
        )
        assert hidden.status_code == unknown.status_code == 404
        assert hidden.json()["detail"] == unknown.json()["detail"] == "Dataset not found"
    assert open_client.get(f"{API}/enrichment/{dataset.id}/context").status_code == 401
