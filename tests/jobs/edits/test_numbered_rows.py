"""Columns by row number: the values of the rows that are there, whatever was deleted and edited since."""

from pathlib import Path

import numpy as np
import pytest

from framedex import Dataset, Workspace
from framedex.jobs.edits.numbered_rows import NumberedRows
from tests.analysis.arrays import unit
from tests.gallery import SETTINGS
from tests.growth import part
from tests.inside import stored_media
from tests.laws import rest_slow
from tests.prepared import prepared
from tests.tuning import Tuning

ROWS = 300
COLUMNS = ["labels", "media_id", "cluster_2", "issue_mislabels"]


def assert_taken(dataset: Dataset) -> None:
    """Check some columns of some rows, in an order of their own, against the table."""
    media = stored_media(dataset)
    numbered = NumberedRows(media)
    places = np.random.default_rng(1).permutation(media.table.count())[:200]
    numbers = numbered.numbers(places)
    expected = media.table.take(numbered.row_ids[numbers].tolist(), COLUMNS)
    taken = numbered.take(numbers, COLUMNS)
    assert [each.to_pylist() for each in taken] == [expected.column(name).to_pylist() for name in COLUMNS]


@pytest.mark.parametrize(
    ("many", "cache_bytes"), rest_slow([(0, 2**24), (64, 0), (0, 0), (64, 2**24)], 2, several=True)
)
def test_take__follows_deletions_and_edits(tmp_path: Path, tuning: Tuning, many: int, cache_bytes: int) -> None:
    """Columns are taken from memory and from files with the same result, also after several deletions and edits."""
    tuning.looked_up_share = many
    tuning.written_rows = 0
    rows = unit(np.random.default_rng(0).normal(size=(ROWS, 8)))
    settings = SETTINGS.model_copy(update={"column_cache_bytes": cache_bytes})
    with Workspace(tmp_path / "workspace", settings=settings) as workspace:
        dataset = prepared(workspace, "rows", part(rows, label=[f"label {each % 7}" for each in range(ROWS)]))
        assert_taken(dataset)
        for turn in range(3):
            ids = dataset.where([]).media_ids()
            dataset.delete_media(ids[turn : 20 * (turn + 1) : 5])
            assert_taken(dataset)
            dataset.set_labels(dataset.where([]).media_ids()[3:9], [f"new {turn}"])
            assert_taken(dataset)
