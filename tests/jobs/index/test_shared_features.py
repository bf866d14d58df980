"""The cheap test of candidates by their local features."""

from pathlib import Path

import numpy as np
import pytest

from framedex import Workspace
from framedex.executors import ThreadExecutor
from framedex.jobs.index.shared_features import may_show_the_same
from framedex.storage import tables
from framedex.storage.media_rows import LOCAL_FEATURES
from framedex.storage.table_versions import Table
from tests.image_files import detailed, write
from tests.inside import stored_media
from tests.prepared import prepared


@pytest.fixture
def table(workspace: Workspace, tmp_path: Path) -> Table:
    """A media table: two images, a crop of the first one, and one that shows nothing."""
    images = {"0.png": detailed(0), "1.png": detailed(1), "2.png": detailed(0)[20:220, 30:300]}
    for name, pixels in {**images, "3.png": np.full((60, 80, 3), 90, np.uint8)}.items():
        write(tmp_path / "images" / name, pixels)
    found = stored_media(prepared(workspace, "d", tmp_path / "images", "gist")).table
    assert found.scan(["path"]).read_all().column(0).to_pylist() == ["0.png", "1.png", "2.png", "3.png"]
    return found


def compared(found: list[Table], pairs: list[tuple[int, int]]) -> list[bool]:
    """Return which pairs may show the same, by an executor of threads."""
    a, b = np.array(pairs, np.int64).T
    with ThreadExecutor(2) as executor:
        return [bool(each) for each in may_show_the_same(found, a, b, executor, lambda: None)]


def test_may_show__crop_and_plain_image(table: Table) -> None:
    """A crop may show the same, another image does not; one that shows nothing is left to what follows."""
    assert compared([table], [(0, 2), (0, 1), (1, 2), (2, 0), (0, 3)]) == [True, False, False, True, True]


def test_may_show__between_tables(table: Table) -> None:
    """Rows of a second table are numbered after those of the first one."""
    assert compared([table, table], [(0, 6), (0, 5), (2, 4), (1, 5)]) == [True, False, True, True]


def test_may_show__of_an_older_version(table: Table) -> None:
    """Without the column nothing is ruled out; without a value neither."""
    older = Table(table.path, tables.drop_columns(table, [LOCAL_FEATURES]))
    assert compared([older], [(0, 1), (0, 2)]) == [True, True]


def test_may_show__stopped(table: Table) -> None:
    """The check ends the comparison."""

    def stop() -> None:
        raise InterruptedError

    ends = np.zeros(3000, np.int64)
    with ThreadExecutor(2) as executor, pytest.raises(InterruptedError):
        may_show_the_same([table], ends, ends + 1, executor, stop)
