"""After any sequence of operations, a workspace can be opened and is consistent."""

import shutil

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from framedex import Conflict, InvalidInput, NotFound, NotIndexed, Workspace
from framedex.records import DatasetStatus, TaskStatus
from tests.gallery import SETTINGS, Averages, Faulty, embedded, fill
from tests.growth import THRESHOLDS, ids_of, part
from tests.laws import examples, law_folder
from tests.pauses import wait_until

NAMES = st.sampled_from(["a", "b", "c"])
VECTORS = st.lists(st.tuples(st.integers(-3, 3), st.integers(1, 3)), min_size=1, max_size=8)


class AnySequence(RuleBasedStateMachine):
    """Makes, adds to, indexes, decides, deletes, fails, aborts and reopens, beside a model of the datasets by name.

    Attributes:
        sizes: how many media the ones that can be read have.
        broken: those whose making failed.
        partial: those with additions that are not settled.
        apart: pairs of media that were decided to be no duplicates.
    """

    def __init__(self) -> None:
        super().__init__()
        self.home = law_folder("any-sequence")
        self.images = fill(self.home / "images", 2)
        self.workspace = Workspace(self.home / "ws", settings=SETTINGS)
        self.sizes: dict[str, int] = {}
        self.broken: set[str] = set()
        self.partial: set[str] = set()
        self.apart: dict[str, list[list[str]]] = {}
        self.ids: dict[str, list[str]] = {}

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
    def make_of_images(self, name: str) -> None:
        if name not in self.taken:
            self.workspace.create_dataset(name, self.images, Averages())
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
        task = self.workspace.create_dataset(name, self.images, encoder, wait=False).task
        assert task is not None
        wait_until(lambda: task.status.final)
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
        task = self.workspace.create_dataset(name, self.images, Averages(), wait=False).task
        assert task is not None
        try:
            task.abort()
            self.broken.add(name)
        except Conflict:  # it was faster
            assert task.wait(60).status is TaskStatus.COMPLETED
            self.sizes[name] = 2

    @rule(name=NAMES, vectors=VECTORS, first=st.integers(0, 12), settle=st.booleans())
    def add(self, name: str, vectors: list[tuple[int, int]], first: int, settle: bool) -> None:
        more = part(vectors, first)
        if name not in self.taken:
            with pytest.raises(NotFound):
                self.workspace.dataset(name)
        elif name in self.broken:
            with pytest.raises(NotIndexed, match="no embedding config"):
                self.workspace.dataset(name).add_media(more)
        elif self.workspace.dataset(name).embedding_config.encoder != "precomputed":
            with pytest.raises(InvalidInput):
                self.workspace.dataset(name).add_media(more)
        else:
            dataset = self.workspace.dataset(name)
            new = set(more["uri"].to_pylist()) - ids_of(dataset).keys()
            dataset.add_media(more, auto_reindex=settle)
            self.sizes[name] += len(new)
            if new:
                self.partial.add(name)
            if settle:
                self.partial.discard(name)

    @rule(name=NAMES, first=st.integers(0, 12))
    def fail_to_add(self, name: str, first: int) -> None:
        if name in self.sizes:
            with pytest.raises(InvalidInput):
                self.workspace.dataset(name).add_media(part([(1, 1), (1, 2), (float("nan"), 1)], first))

    @rule(name=NAMES, anew=st.booleans())
    def reindex(self, name: str, anew: bool) -> None:
        if name not in self.sizes:
            return
        dataset = self.workspace.dataset(name)
        if anew or name in self.partial:
            dataset.reindex(thresholds=THRESHOLDS if anew else None)
            self.partial.discard(name)
        else:
            with pytest.raises(Conflict, match="it is READY"):
                dataset.reindex()

    @rule(name=NAMES, places=st.tuples(st.integers(0, 30), st.integers(0, 30)))
    def decide(self, name: str, places: tuple[int, int]) -> None:
        if name not in self.sizes:
            return
        dataset = self.workspace.dataset(name)
        ids = dataset.where([]).media_ids()
        pair = [ids[place % len(ids)] for place in places]
        if pair[0] == pair[1]:
            with pytest.raises(InvalidInput):
                dataset.not_duplicates(pair)
        else:
            dataset.not_duplicates(pair)
            self.apart.setdefault(name, []).append(pair)

    @rule(name=NAMES)
    def withdraw(self, name: str) -> None:
        if self.apart.get(name):
            dataset = self.workspace.dataset(name)
            dataset.withdraw_decision(dataset.duplicate_decisions()[0].decision_id)
            self.apart[name].pop(0)

    @rule(name=NAMES)
    def delete(self, name: str) -> None:
        if name in self.taken:
            self.workspace.delete_dataset(name)
            self.sizes.pop(name, None)
            self.broken.discard(name)
            self.partial.discard(name)
            self.apart.pop(name, None)
            self.ids.pop(name, None)
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
        ready = set(self.sizes) - self.partial
        assert {name for name, info in infos.items() if info.status_new is DatasetStatus.READY} == ready
        assert {name for name, info in infos.items() if info.status_new is DatasetStatus.PARTIAL_INDEX} == self.partial
        assert {name for name, info in infos.items() if info.status_new is DatasetStatus.ERROR} == self.broken
        assert len(infos) == len(self.taken)
        for name, size in self.sizes.items():
            dataset = self.workspace.dataset(name)
            assert dataset.count() == infos[name].n_images == len(dataset.where([]).media_ids()) == size
            assert sum(cluster.n_images for cluster in dataset.explore(level=2).clusters) == size
            before = self.ids.get(name, [])
            self.ids[name] = dataset.where([]).media_ids()
            assert self.ids[name][: len(before)] == before
            assert [decision.media_ids for decision in dataset.duplicate_decisions()] == self.apart.get(name, [])
            together = [set(group.media_ids) for group in dataset.duplicates()]
            assert not any(set(pair) <= group for pair in self.apart.get(name, []) for group in together)
        known = {infos[name].id for name in self.taken}
        assert {entry.name for entry in (self.home / "ws" / "datasets").iterdir()} <= known

    def teardown(self) -> None:
        self.workspace.close()
        shutil.rmtree(self.home)


AnySequence.TestCase.settings = examples(10, stateful_step_count=15)
test_workspace__any_sequence = AnySequence.TestCase
