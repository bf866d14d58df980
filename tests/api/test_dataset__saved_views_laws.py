"""Any sequence of additions, deletions, restores and evaluations: trends and alerts are those of a plain model."""

import shutil
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from framedex import Conflict, Workspace, vql
from framedex.core.naming import name_key
from framedex.records import DatasetStatus
from tests.gallery import SETTINGS
from tests.growth import families, part
from tests.inside import runner_of
from tests.laws import examples, law_folder

LABELS = st.lists(st.sampled_from("abc"), min_size=1, max_size=4)
NAMES = st.sampled_from(["a", "A", "b", "c", "not a"])
ROWS = families(200)


@dataclass
class Saved:
    """What the model says of a saved view."""

    name: str
    first: int
    is_alerting: bool = True
    points: dict[int, int] = field(default_factory=dict)
    alerts: dict[int, int] = field(default_factory=dict)
    n_images: int = -1

    def passes(self, label: str) -> bool:
        """Return whether the view has media of a label."""
        return label != "a" if self.name == "not a" else label == self.name.lower()


@dataclass(frozen=True)
class State:
    """The media of a dataset, each with its batch and its label, and the batches that it has had."""

    media: tuple[tuple[int, str], ...]
    batches: frozenset[int]


class SavedViews(RuleBasedStateMachine):
    """A dataset with saved views beside a model of it."""

    @initialize(labels=LABELS)
    def begin(self, labels: list[str]) -> None:
        self.home = law_folder("saved-views")
        self.workspace = Workspace(self.home / "ws", settings=SETTINGS)
        self.workspace._catch_up.close()  # the rules decide what is evaluated
        self.used = 0
        self.dataset = self.workspace.create_dataset("pets", self.table(labels))
        self.state = State(tuple((0, label) for label in labels), frozenset({0}))
        self.next_batch, self.views, self.kept = 1, dict[str, Saved](), list[tuple[Any, State]]()
        self.save("a")
        self.add(["a", "b"], is_evaluated=True)

    def table(self, labels: list[str]) -> Any:
        """Return a table of media that the dataset never had."""
        start, self.used = self.used, self.used + len(labels)
        return part(ROWS[start % 150 : start % 150 + len(labels)], start, labels=[[label] for label in labels])

    def evaluate(self) -> int:
        """Evaluate the views in the model; return the number of alerts."""
        alerts = 0
        for view in self.views.values():
            for batch in self.state.batches:
                if batch >= view.first and batch not in view.points:
                    count = sum(own == batch and view.passes(label) for own, label in self.state.media)
                    view.points[batch] = count
                    view.n_images = sum(view.passes(each) for _, each in self.state.media)
                    if count and view.is_alerting:
                        view.alerts[batch] = count
                        alerts += 1
        return alerts

    @rule(labels=LABELS, is_evaluated=st.booleans())
    def add(self, labels: list[str], is_evaluated: bool) -> None:
        hook = runner_of(self.workspace).after_commit
        if not is_evaluated:  # as a process that is killed right after its commit
            runner_of(self.workspace).after_commit = None
        self.dataset.add_media(self.table(labels))
        runner_of(self.workspace).after_commit = hook
        media = (*self.state.media, *((self.next_batch, label) for label in labels))
        self.state = State(media, self.state.batches | {self.next_batch})
        self.next_batch += 1
        if is_evaluated:
            self.evaluate()

    @precondition(lambda self: len(self.state.media) > 2)
    @rule(place=st.integers(0, 100))
    def delete(self, place: int) -> None:
        place %= len(self.state.media)
        hook, runner_of(self.workspace).after_commit = runner_of(self.workspace).after_commit, None
        self.dataset.delete_media([self.dataset.view.ids[place]])
        runner_of(self.workspace).after_commit = hook
        self.state = replace(self.state, media=self.state.media[:place] + self.state.media[place + 1 :])

    @rule()
    def evaluate_all(self) -> None:
        assert len(self.workspace.evaluate_views()) == self.evaluate()
        assert self.workspace.evaluate_views() == []

    @rule()
    def keep(self) -> None:
        if self.dataset.info.status_new is DatasetStatus.PARTIAL_INDEX:
            self.dataset.reindex()
        self.kept.append((self.dataset.snapshot(), self.state))
        self.workspace.evaluate_views()
        self.evaluate()

    @precondition(lambda self: self.kept)
    @rule(place=st.integers(0, 100))
    def restore(self, place: int) -> None:
        self.workspace.evaluate_views()
        self.evaluate()
        snapshot, self.state = self.kept[place % len(self.kept)]
        self.dataset.restore(snapshot)
        self.workspace.evaluate_views()
        self.evaluate()

    @rule(name=NAMES)
    def save(self, name: str) -> None:
        view = self.dataset.where(~vql.labels("a") if name == "not a" else vql.labels(name.lower()))
        if name_key(name) in self.views:
            with pytest.raises(Conflict):
                self.dataset.save_view(name, view)
            return
        self.dataset.save_view(name, view)
        self.views[name_key(name)] = Saved(name, self.next_batch)

    @rule(name=NAMES, enabled=st.booleans())
    def alert(self, name: str, enabled: bool) -> None:
        if name_key(name) in self.views:
            self.dataset.saved_view(name).set_alerting(enabled)
            self.views[name_key(name)].is_alerting = enabled

    @rule(name=NAMES)
    def forget(self, name: str) -> None:
        if name_key(name) in self.views:
            self.dataset.saved_view(name).delete()
            del self.views[name_key(name)]

    # What single steps seldom do one after the other

    @rule(labels=LABELS, more=LABELS)
    def restore_and_add(self, labels: list[str], more: list[str]) -> None:
        """Add media after a restore to a state that had fewer batches."""
        self.keep()
        self.add(labels, True)
        self.restore(len(self.kept) - 1)
        self.add(more, True)

    @rule(labels=LABELS, name=NAMES)
    def restore_and_save(self, labels: list[str], name: str) -> None:
        """Save a view after a restore, and after more batches than the dataset has now."""
        self.forget(name)
        self.keep()
        self.add(labels, True)
        self.restore(len(self.kept) - 1)
        self.save(name)
        self.evaluate_all()

    @rule(labels=LABELS, name=NAMES)
    def save_while_others_are_due(self, labels: list[str], name: str) -> None:
        """Save a view while a batch is due for earlier ones, and evaluate all."""
        self.forget(name)
        self.add(labels, False)
        self.save(name)
        self.evaluate_all()

    @rule(labels=LABELS, names=st.permutations(["a", "b", "not a"]))
    def switch_one(self, labels: list[str], names: list[str]) -> None:
        """Switch the alerts of one of several views off."""
        for name in names:
            self.save(name)
        self.alert(names[0].swapcase() if names[0] != "not a" else names[0], False)
        self.add(labels, True)

    @rule()
    def reopen(self) -> None:
        self.workspace.close()
        self.workspace = Workspace(self.home / "ws", settings=SETTINGS)
        self.workspace._catch_up.close()  # the rules decide what is evaluated
        self.dataset = self.workspace.dataset("pets")

    @invariant()
    def agrees_with_the_model(self) -> None:
        if not hasattr(self, "views"):
            return
        assert {view.name for view in self.dataset.views()} == {view.name for view in self.views.values()}
        for model in self.views.values():
            saved = self.dataset.saved_view(model.name)
            points = saved.trend().points
            assert {point.batch: point.count for point in points} == model.points
            totals = [sum(count for batch, count in model.points.items() if batch <= point.batch) for point in points]
            assert [point.cumulative for point in points] == totals
            assert saved.record.total_results == sum(model.points.values())
            assert {each.batch: each.result_count for each in saved.alerts()} == model.alerts
            assert model.n_images in (-1, saved.record.stats.n_images)
            assert saved.record.alerting_enabled == model.is_alerting
            assert len(saved.view()) == sum(model.passes(label) for _, label in self.state.media)

    def teardown(self) -> None:
        if hasattr(self, "workspace"):
            assert self.workspace.check().findings == []
            self.workspace.close()
            shutil.rmtree(self.home)


SavedViews.TestCase.settings = examples(30, stateful_step_count=12)
test_saved_views__any_sequence = pytest.mark.slow(SavedViews.TestCase)
