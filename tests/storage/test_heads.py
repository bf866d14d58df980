"""The heads of datasets, read repeatedly while other threads commit."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from framedex import Dataset, Workspace
from framedex.operations.context import open_media
from framedex.storage import datasets
from tests.inside import context_of


def _rows(first: int) -> pa.Table:
    vectors = np.random.default_rng(first).normal(size=(4, 8)).astype(np.float32)
    return pa.table({"uri": [f"{first + each}.jpg" for each in range(4)], "embedding": list(vectors)})


@pytest.mark.slow
def test_heads__follow_what_another_workspace_commits(tmp_path: Path) -> None:
    with Workspace(tmp_path / "ws") as one, Workspace(tmp_path / "ws") as other:
        dataset = one.create_dataset("d", _rows(0))
        assert other.dataset("d").where([]).count() == 4
        dataset.tag(dataset.where([]), "keep")
        assert other.dataset("d").where([{"tags": {"op": "is", "value": ["keep"]}}]).count() == 4


def test_heads__are_read_once(workspace: Workspace) -> None:
    dataset: Dataset = workspace.create_dataset("d", _rows(0))
    context = context_of(workspace)
    first = open_media(context, dataset.id)
    assert open_media(context, dataset.id).generation is first.generation
    with context.catalog.read() as connection:
        assert first.generation == datasets.head(connection, dataset.id)
        assert context.heads.read(connection, "no such dataset") is None
    dataset.tag(dataset.where([]), "keep")
    second = open_media(context, dataset.id)
    assert second.generation.id != first.generation.id
    with context.catalog.read() as connection:
        assert second.generation == datasets.head(connection, dataset.id)
