"""After any sequence of operations, a lost catalog is recovered with everything that was committed."""

import shutil
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from framedex import Dataset, NotFound, Workspace
from framedex.settings import Settings
from tests.gallery import embedded, fill
from tests.image_files import photo, write
from tests.laws import examples, law_folder
from tests.manifests import contents_of_all

pytestmark = pytest.mark.slow

SETTINGS = Settings(threads=1, user="tester@example.org", clean_every_s=0, keep_versions_s=0)
_VECTORS = np.random.default_rng(0).normal(size=(64, 4)).astype(np.float32)
_SOME = st.integers(0, 9)


class AnyRecovery(RuleBasedStateMachine):
    """A workspace on which operations run in any order, and which loses its catalog in between."""

    def __init__(self) -> None:
        super().__init__()
        self.home = law_folder("any-recovery")
        self.workspace = Workspace(self.home / "ws", settings=SETTINGS)
        self.rows = embedded(_VECTORS.tolist())
        self.folder = fill(self.home / "images", 4)
        self.made = self.added = 0
        self.create()

    def one(self, choice: int) -> Dataset:
        """Return one of the datasets."""
        records = sorted(self.workspace.datasets(), key=lambda record: record.created_at)
        return self.workspace.dataset(records[choice % len(records)].id)

    def some(self, dataset: Dataset, choice: int) -> list[str]:
        """Return some media ids of a dataset."""
        return dataset.where([]).media_ids()[: 1 + choice % 4]

    @precondition(lambda self: len(self.workspace.datasets()) < 3)
    @rule()
    def create(self) -> None:
        self.workspace.create_dataset(f"dataset {self.made}", self.rows.slice(0, 6))
        self.made += 1

    @precondition(lambda self: len(self.workspace.datasets()) < 3)
    @rule()
    def create_of_folder(self) -> None:
        self.workspace.create_dataset(f"dataset {self.made}", self.folder, "gist")
        self.made += 1

    @rule(choice=_SOME)
    def add(self, choice: int) -> None:
        dataset = self.one(choice)
        self.added = (self.added + 3) % 60
        if dataset.embedding_config.encoder == "precomputed":
            dataset.add_media(self.rows.slice(self.added, 4), auto_reindex=choice % 2 == 0)

    @rule(choice=_SOME, which=_SOME)
    def sync(self, choice: int, which: int) -> None:
        """Change a file, or rename or delete one, and compare a dataset with the folder."""
        paths = sorted(self.folder.iterdir())
        self.made += 1
        new = self.folder / f"new {self.made}.png"
        if which < 4 or not paths:
            write(paths[0] if which < 2 and paths else new, photo(self.made, width=64, height=48))
        elif which < 8:
            paths[which % len(paths)].rename(new)
        else:
            paths[-1].unlink()
        self.one(choice).sync(apply=True, remove=which % 2 == 0)

    @rule()
    def relocate(self) -> None:
        self.made += 1
        old, self.folder = self.folder, self.home / f"images {self.made}"
        old.rename(self.folder)
        with suppress(NotFound):  # no dataset is of the folder
            self.workspace.relocate(old, self.folder, force=True)

    @rule(choice=_SOME, name=st.sampled_from("abc"))
    def tag(self, choice: int, name: str) -> None:
        dataset = self.one(choice)
        dataset.tag(self.some(dataset, choice), name)

    @rule(choice=_SOME, text=st.text(min_size=1, max_size=5))
    def edit(self, choice: int, text: str) -> None:
        dataset = self.one(choice)
        ids = self.some(dataset, choice)
        dataset.set_labels({ids[0]: [f"label {choice}"]})
        dataset.set_captions({ids[-1]: f"caption {text.encode('utf-8', 'ignore').decode()}"})

    @rule(choice=_SOME)
    def fill(self, choice: int) -> None:
        dataset = self.one(choice)
        ids = self.some(dataset, choice)
        if any(field.field_name == "rating" for field in dataset.fields()):
            dataset.set_field("rating", {ids[0]: float(choice)})
        else:
            dataset.add_field("rating", "float", values={ids[-1]: float(choice)})

    @rule(choice=_SOME)
    def decide(self, choice: int) -> None:
        dataset = self.one(choice)
        ids = dataset.where([]).media_ids()[:2]
        if dataset.duplicate_decisions():
            dataset.withdraw_decision(dataset.duplicate_decisions()[0].decision_id)
        elif len(ids) == 2:
            dataset.not_duplicates(ids)

    @rule(choice=_SOME, which=_SOME)
    def change_views(self, choice: int, which: int) -> None:
        dataset = self.one(choice)
        views = dataset.views()
        if which < 5 or not views:
            self.made += 1
            dataset.save_view(f"view {self.made}", dataset.where([{"batch": {"op": "is", "value": which}}]))
        elif which < 7:
            views[0].set_alerting(which == 5)
        elif which < 9:
            self.made += 1
            views[-1].rename(f"renamed view {self.made}")
        else:
            views[0].delete()

    @rule(choice=_SOME)
    def remove(self, choice: int) -> None:
        dataset = self.one(choice)
        if dataset.count() > 3:
            dataset.delete_media(self.some(dataset, choice)[:2])

    @rule(choice=_SOME)
    def keep(self, choice: int) -> None:
        dataset = self.one(choice)
        dataset.keep(self.some(dataset, choice))
        dataset.unkeep(self.some(dataset, choice)[1:])

    @rule(choice=_SOME)
    def clean_up(self, choice: int) -> None:
        dataset = self.one(choice)
        if dataset.info.status == "READY":
            dataset.basket.add(self.some(dataset, choice))
            dataset.plan_cleanup(duplicates=0.96, basket=choice % 2 == 0).apply()

    @rule(choice=_SOME)
    def snapshot(self, choice: int) -> None:
        dataset = self.one(choice)
        if dataset.info.status == "READY":
            dataset.snapshot(f"number {choice}", description="as it is")

    @rule(choice=_SOME, which=_SOME)
    def restore(self, choice: int, which: int) -> None:
        snapshots = self.one(choice).snapshots()
        self.one(choice).restore(snapshots[which % len(snapshots)])

    @rule(choice=_SOME, which=_SOME)
    def forget(self, choice: int, which: int) -> None:
        dataset = self.one(choice)
        old = [each for each in dataset.snapshots() if not each.is_current]
        if old:
            dataset.delete_snapshot(old[which % len(old)])

    @precondition(lambda self: len(self.workspace.datasets()) < 3)
    @rule(choice=_SOME, state=st.sampled_from(["current", "head"]))
    def clone(self, choice: int, state: str) -> None:
        self.one(choice).clone(state)

    @precondition(lambda self: len(self.workspace.datasets()) > 1)
    @rule(choice=_SOME)
    def delete(self, choice: int) -> None:
        self.workspace.delete_dataset(self.one(choice).id)

    @rule(choice=_SOME)
    def rename(self, choice: int) -> None:
        self.made += 1
        self.one(choice).rename(f"renamed {self.made}")

    @rule()
    def vacuum(self) -> None:
        assert self.workspace.vacuum(older_than_s=0).skipped == {}

    @rule()
    def lose(self) -> None:
        before: Any = contents_of_all(self.workspace)
        self.workspace.close()
        for path in (self.home / "ws").glob("catalog.db*"):
            path.unlink()
        assert Workspace.recover(self.home / "ws").left_out == []
        self.workspace = Workspace(self.home / "ws", settings=SETTINGS)
        assert contents_of_all(self.workspace) == before

    def teardown(self) -> None:
        self.lose()
        assert self.workspace.check().findings == []
        self.workspace.close()
        shutil.rmtree(self.home)


AnyRecovery.TestCase.settings = examples(10, stateful_step_count=15)
test_workspace__any_recovery = AnyRecovery.TestCase
