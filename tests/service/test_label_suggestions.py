"""Pairs of present and suggested labels over HTTP."""

from collections.abc import Iterator

import pytest

from framedex import Dataset, Workspace
from framedex.hub import Hub
from tests.crowds import WRONG, create_crowds
from tests.gallery import SETTINGS, fill
from tests.service.client import LOCAL, Client, client_of


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Workspace, Client]]:
    """A workspace with wrong labels, and a client."""
    folder = tmp_path_factory.mktemp("proposals")
    with (
        Workspace(folder / "ws", settings=SETTINGS) as workspace,
        Hub(workspace) as hub,
        client_of(workspace, hub, LOCAL) as client,
    ):
        workspace.create_dataset("plain", fill(folder / "plain", 2))
        create_crowds(workspace, folder / "crowds")
        yield workspace, client


def url(dataset: Dataset, rest: str) -> str:
    """Return a path below a dataset."""
    return f"/api/v1/dataset/{dataset.id}/{rest}"


def test_labels__of_a_pair(served: tuple[Workspace, Client]) -> None:
    """Pairs of labels have the numbers of the issues; the results of one are its media, the worst first."""
    workspace, client = served
    dataset = workspace.dataset("crowds")
    ids = dataset.view.media_ids()
    assert {ids[row] for row in WRONG} == set(dataset.issues("mislabels")["media_id"].to_pylist())
    pairs = client.get(url(dataset, "labels/suggestions")).json()["pairs"]
    assert [(pair["labels"], pair["suggested_label"], pair["count"]) for pair in pairs] == [
        (["cat"], "dog", 3),
        (["wolf"], "cat", 1),
    ]
    wanted = {"label": "cat", "suggested_label": "dog"}
    results = client.get(url(dataset, "labels/suggestion"), params=wanted).json()
    rows = client.get(url(dataset, f"results/{results['rid']}/rows"), params={"columns": "media_id"}).json()["rows"]
    worst = [each for each in dataset.issues("mislabels")["media_id"].to_pylist() if each != ids[26]]
    assert [row["media_id"] for row in rows] == worst
    listed = client.get(url(dataset, "issues"), params={"issue": "mislabels", "rid": results["rid"]}).json()["rows"]
    assert [row["media_id"] for row in listed] == worst
    above = pairs[0]["confidence"] + 1e-6
    assert client.get(url(dataset, "labels/suggestion"), params={**wanted, "confidence": above}).json()["count"] == 0
    assert client.get(url(dataset, "labels/suggestions?without_tag=ambiguous")).json()["pairs"] == pairs
    dataset.tag(worst[:1], "ambiguous")
    others = client.get(url(dataset, "labels/suggestions?without_tag=ambiguous")).json()["pairs"]
    assert [pair["count"] for pair in others] == [2, 1]
    params = {**wanted, "without_tag": "ambiguous"}
    assert client.get(url(dataset, "labels/suggestion"), params=params).json()["count"] == 2
    body = {"action": "set_labels", "on": {"rid": results["rid"]}, "args": {"labels": ["dog"]}}
    assert client.post(url(dataset, "actions"), json=body).json()["count"] == 3
    assert [pair["count"] for pair in client.get(url(dataset, "labels/suggestions")).json()["pairs"]] == [1]
    assert client.get(url(dataset, "labels/suggestion"), params=wanted).json()["count"] == 0
    assert client.get(url(workspace.dataset("plain"), "labels/suggestions")).json()["pairs"] == []
