"""In any sequence of operations, a vacuum in between changes nothing else."""

import shutil
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from framedex import Dataset, Workspace
from tests.gallery import SETTINGS
from tests.growth import families, part
from tests.inside import stored_media
from tests.laws import examples, law_folder

pytestmark = pytest.mark.slow

EAGER = SETTINGS.model_copy(update={"keep_versions_s": 0.0, "clean_every_s": 0.0})
ROWS = families(300)
State = dict[str, frozenset[str]]
"""The tags of each media item, by path."""


class AnyUpkeep(RuleBasedStateMachine):
    """Changes datasets beside a model of what is in them and in their snapshots, while all that can go goes at once.

    Attributes:
        now: what is in each dataset, by id.
        kept: what is in each snapshot, by ids of dataset and snapshot.
    """

    def __init__(self) -> None:
        super().__init__()
        self.home = law_folder("any-upkeep")
        self.workspace = Workspace(self.home / "ws", settings=EAGER)
        self.next = 20
        first = self.workspace.create_dataset("first", part(ROWS[:20]))
        self.now: dict[str, State] = {first.id: {f"{number}.jpg": frozenset() for number in range(20)}}
        self.kept: dict[tuple[str, str], State] = {}
        self.keep(first)

    def keep(self, dataset: Dataset) -> None:
        self.kept[dataset.id, dataset.snapshots()[0].snapshot_id] = dict(self.now[dataset.id])

    def one(self, choice: int) -> Dataset:
        return self.workspace.dataset(sorted(self.now)[choice % len(self.now)])

    def seen(self, dataset: Dataset) -> State:
        media = stored_media(dataset)
        paths = media.table.scan(["path"]).read_all()["path"].to_pylist()
        tags = dataset.to_arrow(["tags"])["tags"].to_pylist()
        dataset.embeddings()
        return {path: frozenset(each) for path, each in zip(paths, tags, strict=True)}

    @rule(choice=st.integers(0, 9), count=st.integers(1, 5))
    def add(self, choice: int, count: int) -> None:
        dataset = self.one(choice)
        dataset.add_media(part(ROWS[self.next : self.next + count], self.next), auto_reindex=True)
        self.now[dataset.id] |= {f"{number}.jpg": frozenset() for number in range(self.next, self.next + count)}
        self.next += count

    @rule(choice=st.integers(0, 9), places=st.sets(st.integers(0, 30), min_size=1, max_size=5))
    def remove(self, choice: int, places: set[int]) -> None:
        dataset = self.one(choice)
        rows = dataset.to_arrow(["media_id"])["media_id"].to_pylist()
        paths = list(self.seen(dataset))
        chosen = sorted({place % len(rows) for place in places})[: len(rows) - 1]
        if chosen:
            dataset.delete_media([rows[place] for place in chosen])
            for place in chosen:
                del self.now[dataset.id][paths[place]]

    @rule(choice=st.integers(0, 9), tag=st.sampled_from(["x", "y"]))
    def tag(self, choice: int, tag: str) -> None:
        dataset = self.one(choice)
        dataset.tag(dataset.where([]), tag)
        self.now[dataset.id] = {path: tags | {tag} for path, tags in self.now[dataset.id].items()}

    @rule(choice=st.integers(0, 9))
    def snapshot(self, choice: int) -> None:
        dataset = self.one(choice)
        dataset.snapshot()
        self.keep(dataset)

    @rule(choice=st.integers(0, 9), which=st.integers(0, 9))
    def restore(self, choice: int, which: int) -> None:
        dataset = self.one(choice)
        snapshots = dataset.snapshots()
        chosen = snapshots[which % len(snapshots)].snapshot_id
        dataset.restore(chosen)
        self.now[dataset.id] = dict(self.kept[dataset.id, chosen])

    @rule(choice=st.integers(0, 9), which=st.integers(0, 9))
    def forget(self, choice: int, which: int) -> None:
        dataset = self.one(choice)
        old = [each for each in dataset.snapshots() if not each.is_current]
        if old:
            dataset.delete_snapshot(old[which % len(old)])
            del self.kept[dataset.id, old[which % len(old)].snapshot_id]

    @precondition(lambda self: len(self.now) < 3)
    @rule(choice=st.integers(0, 9), which=st.integers(0, 9))
    def clone(self, choice: int, which: int) -> None:
        dataset = self.one(choice)
        snapshots = dataset.snapshots()
        chosen = ["head", *(each.snapshot_id for each in snapshots)][which % (len(snapshots) + 1)]
        copy = dataset.clone(chosen)
        self.now[copy.id] = dict(self.now[dataset.id] if chosen == "head" else self.kept[dataset.id, chosen])
        self.keep(copy)

    @precondition(lambda self: len(self.now) > 1)
    @rule(choice=st.integers(0, 9))
    def delete(self, choice: int) -> None:
        dataset = self.one(choice)
        self.workspace.delete_dataset(dataset.id)
        del self.now[dataset.id]
        self.kept = {key: state for key, state in self.kept.items() if key[0] != dataset.id}

    @rule()
    def vacuum(self) -> None:
        assert self.workspace.vacuum(older_than_s=0).skipped == {}
        assert self.workspace.disk_usage().freeable_bytes == 0

    @invariant()
    def shows_what_the_model_has(self) -> None:
        for dataset_id, state in self.now.items():
            assert self.seen(self.workspace.dataset(dataset_id)) == state

    def teardown(self) -> None:
        self.vacuum()
        for (dataset_id, snapshot_id), state in self.kept.items():
            dataset: Any = self.workspace.dataset(dataset_id)
            dataset.restore(snapshot_id)
            assert self.seen(dataset) == state
        self.workspace.close()
        shutil.rmtree(self.home)


AnyUpkeep.TestCase.settings = examples(8, stateful_step_count=20)
test_workspace__any_upkeep = AnyUpkeep.TestCase
