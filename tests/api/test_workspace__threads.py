"""Threads that share one Workspace all get their turn, and none of them an error."""

import pickle
import threading

import pytest

from framedex import InvalidInput, Workspace
from tests.gallery import embedded

THREADS = 40


@pytest.mark.slow
def test_threads__write_and_read(workspace: Workspace) -> None:
    """Forty threads that edit and read at a time all succeed, and no edit is lost."""
    dataset = workspace.create_dataset("d", embedded([[1, 0], [0, 1]] * THREADS))
    ids = dataset.to_arrow(["media_id"]).column(0).to_pylist()
    together, errors = threading.Barrier(THREADS), list[Exception]()

    def work(number: int) -> None:
        together.wait(60)
        try:
            dataset.tag([ids[number]], "seen")
            assert dataset.count() == 2 * THREADS
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert [(tag.name, tag.count) for tag in dataset.tags()] == [("seen", THREADS)]


def test_pickle(workspace: Workspace) -> None:
    """Pickling any part of an open workspace raises, with the alternative."""
    dataset = workspace.create_dataset("d", embedded([[1, 0], [0, 1]]))
    ids = dataset.to_arrow(["media_id"]).column(0).to_pylist()
    for each in (workspace, dataset, dataset.where([]), dataset.similar(ids[0]), dataset.task):
        with pytest.raises(InvalidInput, match=r"workspace' is open and cannot be pickled; open the workspace in the"):
            pickle.dumps(each)
