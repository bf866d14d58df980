"""Committed data survives, and uncommitted data leaves nothing."""

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

from framedex import Error, InvalidEmbedding, InvalidInput, Workspace, WorkspaceError
from framedex.operations.starting import delete_if_stopped
from framedex.records import TaskStatus
from tests.image_files import photo, write
from tests.inside import context_of


class Careless:
    """An encoder that does not keep its promise."""

    name, dimension, min_side_px = "careless", 4, 8
    thresholds = (0.1, 0.2, 0.3, 0.4, 0.5)

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def prepare(self, pixels: npt.NDArray[np.uint8]) -> npt.NDArray[np.float32]:
        """Return something of one shape."""
        return np.zeros(1, np.float32)

    def encode_images(self, batch: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
        """Return what is not a unit vector of length 4 for each image."""
        return np.asarray(self.answer(len(batch)), dtype=np.float32)


@pytest.mark.parametrize(
    "answer",
    [
        lambda count: np.full((count, 4), np.nan),
        lambda count: np.full((count, 4), 7.0),
        lambda count: np.ones((count, 1)),
        lambda count: np.ones((count - 1, 4)) / 2,
    ],
    ids=["NaN", "too long", "one value", "a row short"],
)
def test_create__encoder_that_breaks_its_promise(workspace: Workspace, tmp_path: Path, answer: Any) -> None:
    """Vectors that cannot be used end the creation with the encoder's or the row's name, and nothing stays."""
    for number in range(3):
        write(tmp_path / "images" / f"{number}.png", photo(number))
    with pytest.raises(InvalidEmbedding, match=r"careless|row"):
        workspace.create_dataset("bad", tmp_path / "images", encoder=Careless(answer))
    assert workspace.datasets() == []


class Broken(AbstractContextManager[None]):
    """A progress bar whose terminal went away."""

    def __exit__(self, *_: object) -> None:
        """Fail as a closed pipe does."""
        raise BrokenPipeError


@pytest.mark.slow
def test_create__what_was_committed_stays(workspace: Workspace, tmp_path: Path) -> None:
    """An error after the commit, as from a broken progress bar, does not take the dataset away."""
    write(tmp_path / "images" / "a.png", photo(0))
    dataset = workspace.create_dataset("kept", tmp_path / "images", wait=False)
    assert dataset.task is not None
    dataset.task.wait(60)

    stopped = delete_if_stopped(context_of(workspace), dataset.id, dataset.task.id)
    with pytest.raises(BrokenPipeError), stopped, Broken():
        dataset.task.wait()
    assert dataset.task.status is TaskStatus.COMPLETED
    assert workspace.dataset("kept").count() == 1


def test_open__datasets_without_their_catalog(workspace: Workspace) -> None:
    """A workspace whose catalog is gone is not opened as an empty one."""
    workspace.create_dataset("vectors", pa.table({"uri": ["a"], "embedding": [[1.0]]}))
    workspace.close()
    for path in workspace.path.glob("catalog.db*"):
        path.unlink()
    with pytest.raises(WorkspaceError, match="missing"):
        Workspace(workspace.path)


def test_create__table_with_an_encoder(workspace: Workspace) -> None:
    """A table brings embeddings; an encoder beside it would be ignored, and is refused."""
    with pytest.raises(InvalidInput, match="brings its own embeddings"):
        workspace.create_dataset("v", pa.table({"uri": ["a"], "embedding": [[1.0]]}), encoder="gist")


def test_create__uri_with_a_null_character(workspace: Workspace) -> None:
    """A uri that no file can have is refused with its row."""
    with pytest.raises(Error, match="row 1"):
        workspace.create_dataset("v", pa.table({"uri": ["a", "b\0"], "embedding": [[1.0], [1.0]]}))
