"""Whatever is done to a workspace, it stays openable and consistent."""

import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from framedex import Conflict, InvalidInput, NotFound, Workspace
from framedex.records import DatasetStatus, TaskStatus
from tests.gallery import SETTINGS, Averages, Faulty, embedded, fill

NAMES = st.sampled_from(["a", "b", "c"])
VECTORS = st.lists(st.tuples(st.integers(-3, 3), st.integers(1, 3)), min_size=1, max_size=8)


class AnySequence(RuleBasedStateMachine):
    """Makes, deletes, fails, aborts and reopens, beside a model: the sizes of the datasets by name."""

    def __init__(self) -> None:
        super().__init__()
        self.home = Path(tempfile.mkdtemp(prefix="framedex-any-sequence-"))
        self.pictures = fill(self.home / "pictures", 2)
        self.workspace = Workspace(self.home / "ws", settings=SETTINGS)
        self.sizes: dict[str, int] = {}
        self.broken: set[str] = set()

    @property
    def taken(self) -> set[str]:
        return {*self.sizes, *self.broken}

    @rule(name=NAMES, vectors=VECTORS)
    def make(self, name: str, vectors: list[tuple[int, int]]) -> None:
        if name in self.taken:
            with pytest.raises(Conflict):
                self.workspace.create_dataset(name, embedded(vectors))
        else:
            self.workspace.create_dataset(name, embedded(vectors))
            self.sizes[name] = len(vectors)

    @rule(name=NAMES)
    def make_of_pictures(self, name: str) -> None:
        if name not in self.taken:
            self.workspace.create_dataset(name, self.pictures, Averages())
            self.sizes[name] = 2

    @rule(name=NAMES)
    def fail_to_make(self, name: str) -> None:
        with pytest.raises(Conflict if name in self.taken else InvalidInput):
            self.workspace.create_dataset(name, embedded([(1, 1), (float("nan"), 1)]))

    @rule(name=NAMES, retry=st.booleans())
    def fail_in_the_background(self, name: str, retry: bool) -> None:
        if name in self.taken:
            return
        encoder = Faulty()
        task = self.workspace.create_dataset(name, self.pictures, encoder, wait=False).task
        assert task is not None
        while not task.status.final:
            pass
        encoder.broken = False
        if retry:
            task.retry()
            task.wait(60)
            self.sizes[name] = 2
        else:
            self.broken.add(name)

    @rule(name=NAMES)
    def abort_or_not(self, name: str) -> None:
        if name in self.taken:
            return
        task = self.workspace.create_dataset(name, self.pictures, Averages(), wait=False).task
        assert task is not None
        try:
            task.abort()
            self.broken.add(name)
        except Conflict:  # it was faster
            assert task.wait(60).status is TaskStatus.COMPLETED
            self.sizes[name] = 2

    @rule(name=NAMES)
    def delete(self, name: str) -> None:
        if name in self.taken:
            self.workspace.delete_dataset(name)
            self.sizes.pop(name, None)
            self.broken.discard(name)
        else:
            with pytest.raises(NotFound):
                self.workspace.delete_dataset(name)

    @precondition(lambda self: self.sizes)
    @rule()
    def look(self) -> None:
        for name in self.sizes:
            dataset = self.workspace.dataset(name)
            dataset._repr_html_()
            dataset.export(self.home / "out.zip")

    @rule()
    def reopen(self) -> None:
        self.workspace.close()
        self.workspace = Workspace(self.home / "ws", settings=SETTINGS)

    @invariant()
    def agrees_with_the_model(self) -> None:
        infos = {info.display_name: info for info in self.workspace.datasets()}
        assert {name for name, info in infos.items() if info.status_new is DatasetStatus.READY} == set(self.sizes)
        assert {name for name, info in infos.items() if info.status_new is DatasetStatus.ERROR} == self.broken
        assert len(infos) == len(self.taken)
        for name, size in self.sizes.items():
            dataset = self.workspace.dataset(name)
            assert dataset.count() == infos[name].n_images == len(dataset.where([]).media_ids()) == size
            assert sum(cluster.n_images for cluster in dataset.explore(threshold=2).clusters) == size
        known = {infos[name].id for name in self.taken}
        assert {entry.name for entry in (self.home / "ws" / "datasets").iterdir()} <= known

    def teardown(self) -> None:
        self.workspace.close()
        shutil.rmtree(self.home)


AnySequence.TestCase.settings = settings(max_examples=10, stateful_step_count=12, deadline=None)
test_workspace__any_sequence = AnySequence.TestCase
