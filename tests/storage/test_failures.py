"""Failures of the disk and of the table engine, including panics, as errors of our own with the table's path."""

import errno
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from framedex import Dataset, Workspace, WorkspaceError
from framedex.storage import table_files, tables
from framedex.storage.failures import is_panic, own_errors
from framedex.storage.table_versions import Table
from tests.gallery import SETTINGS
from tests.growth import families, part

ROWS = pa.table({"n": pa.array(range(100), pa.int64())})


def cut_until_panic(table: Path) -> None:
    """Truncate the newest manifest of a table to a length at which the engine panics instead of returning an error."""
    manifest = min((table / "_versions").glob("*.manifest"))  # names count downwards
    whole = manifest.read_bytes()
    for length in range(len(whole)):
        manifest.write_bytes(whole[:length])
        try:
            lance.dataset(str(table))
        except Exception:
            continue
        except BaseException as error:
            if is_panic(error):
                return
            raise
    raise AssertionError("no cut makes the engine panic")


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    """A table of two versions, the newer one with a manifest that makes the engine panic."""
    path = tmp_path / "n.lance"
    tables.append(path, ROWS.to_batches(), ROWS.schema)
    tables.append(path, ROWS.to_batches(), ROWS.schema)
    cut_until_panic(path)
    return path


@pytest.mark.parametrize(
    "ask",
    [
        lambda path: Table(path, 2),
        lambda path: tables.append(path, ROWS.to_batches(), ROWS.schema),
        lambda path: tables.replace(path, ROWS.to_batches(), ROWS.schema),
        lambda path: tables.roll_back(path, 1),
        lambda path: table_files.link(path, 2, path.with_name("other.lance")),
        lambda path: table_files.old_versions(path, [1]),
        lambda path: table_files.ends_with(path, 1),
        lambda path: table_files.remove_versions(path, [1]),
        table_files.remove_leftovers,
        lambda path: table_files.rows_key(path, 2),
        lambda path: table_files.data_files(path, 2),
        lambda path: table_files.files_of(path, [2]),
        lambda path: table_files.files_of_head(path, 1),
    ],
)
def test_panic__is_an_error_that_names_the_table(damaged: Path, ask: Callable[[Path], Any]) -> None:
    """A panic of the engine becomes a WorkspaceError with the table's path in every operation."""
    with pytest.raises(WorkspaceError, match=r"n\.lance") as raised:
        ask(damaged)
    assert "damaged" in str(raised.value)


@pytest.mark.slow
def test_panic__of_one_dataset_leaves_the_others_to_vacuum(tmp_path: Path) -> None:
    """Vacuum skips a dataset whose table makes the engine panic, with the reason, and cleans the others."""
    rows = part(families(40, dimension=16))
    settings = SETTINGS.model_copy(update={"clean_every_s": float("inf")})
    with Workspace(tmp_path / "workspace", settings=settings) as workspace:
        for name in ("a", "broken", "c"):
            dataset = workspace.create_dataset(name, rows)
            dataset.create_tag("seen")
        broken = workspace.dataset("broken").id
    cut_until_panic(tmp_path / "workspace" / "datasets" / broken / "media.lance")
    with Workspace(tmp_path / "workspace", settings=settings) as workspace:
        result = workspace.vacuum(older_than_s=0)
        assert list(result.skipped) == ["broken"]
        assert "media.lance" in result.skipped["broken"]
        assert result.versions >= 2
        check_refused(workspace.dataset("broken"))
        assert workspace.dataset("a").count() == workspace.dataset("c").count() == 40


def check_refused(dataset: Dataset) -> None:
    for ask in (dataset.to_arrow, dataset.tags, lambda: dataset.create_tag("more"), dataset.count):
        with pytest.raises(WorkspaceError, match=r"media\.lance"):
            ask()


def test_own_errors__leaves_others_alone() -> None:
    """Errors from neither the disk nor the engine are raised unchanged."""
    for error in (KeyError("x"), KeyboardInterrupt(), OSError(errno.ENOENT, "missing")):
        with pytest.raises(type(error)) as raised, own_errors("look"):
            raise error
        assert raised.value is error
