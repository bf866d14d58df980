"""Labels that are suggested for media without any: accepted in one step, refused for good."""

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from framedex import Client, Dataset, InvalidInput, Workspace
from framedex.cli import main
from framedex.hub import Hub
from framedex.service.settings import ServiceSettings
from tests.gallery import SETTINGS
from tests.inside import layout_of
from tests.prepared import prepared
from tests.service.client import BASE, client_of

ROWS, KINDS = 160, 4


def make(workspace: Workspace) -> Dataset:
    """Make a dataset of four kinds of vectors; every fourth row has no label, and one is far from all others."""
    random = np.random.default_rng(5)
    kind = np.arange(ROWS) % KINDS
    vectors = np.eye(KINDS, 8)[kind] + 0.1 * random.normal(size=(ROWS, 8))
    labels = [None if number // KINDS % 4 == 3 else f"kind {kind[number]}" for number in range(ROWS)]
    table = pa.table(
        {
            "uri": [f"{number}.jpg" for number in range(ROWS)],
            "embedding": list(np.asarray(vectors, np.float32)),
            "label": pa.array(labels, pa.string()),
        }
    )
    return prepared(workspace, "kinds", table)


@pytest.fixture
def dataset(tmp_path: Path) -> Iterator[Dataset]:
    """A dataset of which a quarter has no labels."""
    with Workspace(tmp_path / "ws", settings=SETTINGS) as workspace:
        yield make(workspace)


def test_suggest_labels__accept_is_one_step(dataset: Dataset) -> None:
    """Suggestions are right, say how they were calibrated, and are accepted and taken back in one step."""
    found = dataset.suggest_labels()
    rows = found.to_arrow().to_pylist()
    assert len(found) == found.count() == len(rows) == ROWS // 4
    assert all(row["label"] == f"kind {int(row['path'].split('.')[0]) % KINDS}" for row in rows)
    assert rows == sorted(rows, key=lambda row: -row["confidence"])
    best = found.reliability().to_pylist()[4]
    assert (best["minimum"], best["share_right"]) == (0.9, 1.0)
    assert best["n_media"] == ROWS * 3 // 4
    assert "of 120 held-out media with a confidence of 0.9 or more, 100.0% have the label" in repr(found)
    assert "<figure>" in found._repr_html_()
    assert found.to_pandas()["label"].tolist() == [row["label"] for row in rows]
    assert list(found.view(0.9).ids) == [row["media_id"] for row in rows if row["confidence"] >= 0.9]
    dataset.set_labels([rows[0]["media_id"]], ["by hand"])
    assert found.accept(0.5) == ROWS // 4 - 1
    assert dataset.journal(1)[0].n_media == ROWS // 4 - 1
    assert {label.name: label.count for label in dataset.labels()}["by hand"] == 1
    assert found.accept(0.5) == 0
    dataset.undo()
    assert dataset.suggest_labels().count() == ROWS // 4 - 1
    assert found.accept(1.0) == 0


@pytest.mark.slow
@pytest.mark.only_soak
def test_suggest_labels__refused_ones_do_not_come_back(dataset: Dataset) -> None:
    """Refused media get no suggestions, until the decision is withdrawn or undone."""
    found = dataset.suggest_labels()
    first, second, *_ = found.view().ids
    decision = found.refuse([first, second])
    assert decision in dataset.label_decisions()
    assert first not in dataset.suggest_labels().view().ids
    dataset.reindex(thresholds=dataset.embedding_config.thresholds)
    assert dataset.suggest_labels().count() == ROWS // 4 - 2
    dataset.withdraw_decision(decision.decision_id)
    assert dataset.suggest_labels().count() == ROWS // 4
    dataset.suggest_labels().refuse(first)
    assert dataset.suggest_labels().count() == ROWS // 4 - 1
    dataset.undo()
    assert dataset.suggest_labels().count() == ROWS // 4
    dataset.suggest_labels().refuse()
    assert len(dataset.suggest_labels()) == 0


def test_suggest_labels__refuses(dataset: Dataset) -> None:
    """Other values, confidences out of range, media with labels, and too few labels are errors."""
    found = dataset.suggest_labels()
    labelled = dataset.view.ids[0]
    with pytest.raises(InvalidInput, match="like is 'labels', not 'caption'"):
        dataset.suggest_labels(like="caption")
    with pytest.raises(InvalidInput, match="minimum"):
        found.accept(1.5)
    with pytest.raises(InvalidInput, match="has labels, so some fit"):
        found.refuse(labelled)
    dataset.set_labels(dataset.view, [])
    with pytest.raises(InvalidInput, match="once 20 media have labels"):
        dataset.suggest_labels()


@pytest.mark.slow
def test_suggest_labels__by_command_and_client(dataset: Dataset, capsys: pytest.CaptureFixture[str]) -> None:
    """The command line and a client list, refuse and accept the same suggestions."""
    workspace = layout_of(dataset).root
    with pytest.raises(SystemExit):
        main(["suggest-labels", "kinds", "-w", str(workspace), "--json"])
    listed = json.loads(capsys.readouterr().out)
    own = dataset.suggest_labels()
    assert [row["media_id"] for row in listed["rows"]] == own.to_arrow()["media_id"].to_pylist()
    with (
        Workspace(workspace, settings=SETTINGS) as opened,
        Hub(opened) as hub,
        client_of(opened, hub, ServiceSettings()) as served,
        Client(BASE, transport=served._transport) as client,
    ):
        remote = client.dataset("kinds").suggest_labels()
        assert remote.to_arrow() == own.to_arrow()
        assert remote.reliability().to_pylist()[:5] == own.reliability().to_pylist()[:5]
        assert remote.refuse(own.view().ids[0]).labels == [[]]
        assert client.dataset("kinds").suggest_labels().accept(0.5) == ROWS // 4 - 1
        assert client.dataset("kinds").undo().operation == "set_labels"
    with pytest.raises(SystemExit):
        main(["suggest-labels", "kinds", "-w", str(workspace), "--accept", "0.5"])
    assert f"accepted labels of {ROWS // 4 - 1} images" in capsys.readouterr().out
