"""After any sequence of all that changes datasets, they are as a plain model says, for each of two open workspaces.

One of the workspaces may be in another process, which is killed now and then, also in the middle of an edit.
``pytest --hypothesis-profile=full -m slow --log-cli-level=INFO`` on this file takes some 700 steps, and logs their
number; with the profile ``soak`` there are more than ten times as many.
"""

import logging
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any, ClassVar

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule, run_state_machine_as_test

from framedex import Conflict, InvalidInput, NotFound
from framedex.settings import Settings
from tests import compared_datasets as compared
from tests.compared_datasets import Name, Where
from tests.edit_rules import (
    HOW,
    LABEL,
    LABELS,
    NUMBERS,
    PLACE,
    PLACES,
    SELECTION,
    How,
    Selection,
    Session,
    ThisProcess,
)
from tests.folder_rules import FolderRules
from tests.gallery import SETTINGS
from tests.growth import THRESHOLDS
from tests.laws import examples, law_folder, rest_slow
from tests.plain_dataset import FAMILIES, Media, PlainDataset, SavedView, State, Upload, fresh
from tests.second_process import SecondProcess

ROWS = 24
"""The number of media of a new dataset."""
NAMESPACES = ("team", "")
MOST_DATASETS, MOST_SNAPSHOTS, MOST_UPLOADS = 3, 4, 3
EVERY, THOROUGH_EVERY, VACUUM_EVERY, REOPEN_EVERY, KILL_EVERY = 3, 15, 15, 10, 25
"""The numbers of steps between comparisons of what has changed, between those of all else, and between other events."""
EAGER = SETTINGS.model_copy(update={"keep_versions_s": 0.0, "clean_every_s": 0.0})
NAME = st.sampled_from(["d", "e"])
SOURCE = st.sampled_from(["folder", "table", "uploads", "folder"])
VIEW = st.sampled_from(["u", "v"])


class AnyEdits(FolderRules):
    """Changes datasets of two namespaces for two users in two open workspaces, beside a model.

    Attributes:
        options: the settings of the workspaces.
        has_second: whether one of the workspaces is in another process.
        is_large: whether few rows take the ways of few rows of a large dataset.
    """

    options: ClassVar[Settings] = SETTINGS
    has_second: ClassVar[bool] = False
    is_large: ClassVar[bool] = True

    def __init__(self) -> None:
        super().__init__()
        self.tuning = compared.prepare(is_large=self.is_large)
        self.home = law_folder("any-edits")
        first = ThisProcess(self.home / "ws", self.options)
        self.second = SecondProcess(self.home / "ws", self.options, compared.prepare) if self.has_second else None
        self.processes = [first, self.second or ThisProcess(self.home / "ws", self.options)]
        self.steps, self.next_vacuum, self.next_reopen, self.next_kill = 0, 0, 0, 0

    @initialize(source=SOURCE)
    def begin(self, source: str) -> None:
        self.make((0, "ann@x.org", 0), "team", "d", source)

    # Media, snapshots and clones

    @rule(how=HOW, selection=PLACES)
    def delete_media(self, how: How, selection: list[int]) -> None:
        session = self.session(how)
        ids, _ = session.chosen(selection)
        session.call("delete_media", ids)
        if ids:
            after = deepcopy(session.state)
            after.rows = {each: row for each, row in after.rows.items() if each not in ids}
            session.model.replace_state("delete_media", session.user, len(ids), after)
        else:
            session.model.commit()
        self.did("delete_media", session.model)

    @rule(how=HOW, numbers=NUMBERS, label=LABEL, settle=st.booleans())
    def add_media(self, how: How, numbers: list[int], label: str, settle: bool) -> None:
        session = self.session(how)
        rows = compared.table(numbers, [label] * len(numbers))
        if session.model.is_of_files or session.model.folder is not None:
            self.refused(InvalidInput, session, "add_media", rows)
            return
        session.call("add_media", rows, auto_reindex=settle)
        self.added(session, numbers, label, settle=settle)
        self.did("add_media", session.model)

    def added(self, session: Session, numbers: Sequence[int], label: str | None, *, settle: bool) -> None:
        """Note an addition in the model; content that was uploaded is known under any name."""
        rows = [row["media"] for row in session.state.rows.values()]
        present, contents = {each.uri for each in rows}, {each.family for each in rows}
        new = self.read_new(session)
        unknown = [each for each in numbers if not (session.model.is_of_files and each % FAMILIES in contents)]
        uris = {f"{number}.png" for number in unknown} - present
        assert sorted(each.uri for each in new.values()) == sorted(uris)
        partial = (session.state.partial or bool(new)) and not settle
        session.model.add_rows({each: fresh(label, media) for each, media in new.items()}, partial=partial)

    @staticmethod
    def read_new(session: Session) -> dict[str, Media]:
        """Note the media of a dataset that the model does not have; return them by id."""
        shown = session.process.run(compared.read_media, session.name)
        ids = {uri: media_id for media_id, uri in session.model.uris.items()}
        assert session.model.is_of_files or all(ids.get(uri, media_id) == media_id for media_id, uri in shown)
        assert all(session.model.uris.setdefault(media_id, uri) == uri for media_id, uri in shown)
        new = {media_id: uri for media_id, uri in shown if media_id not in session.state.rows}
        return {media_id: Media(uri, int(uri.partition(".")[0])) for media_id, uri in new.items()}

    @rule(how=HOW, anew=st.booleans())
    def reindex(self, how: How, anew: bool) -> None:
        session = self.session(how)
        if not session.state.partial and not anew:
            self.refused(Conflict, session, "reindex")
            return
        session.call("reindex", thresholds=THRESHOLDS if anew else None)
        session.state.partial = False
        session.model.commit()
        self.did("reindex", session.model)

    @rule(how=HOW)
    def snapshot(self, how: How) -> None:
        session = self.session(how)
        if session.state.partial:
            self.refused(Conflict, session, "snapshot")
            return
        if len(session.model.snapshots) < MOST_SNAPSHOTS:
            session.model.keep_state(session.call("snapshot").snapshot_id)
            self.did("snapshot", session.model)

    @rule(how=HOW, place=PLACE)
    def restore(self, how: How, place: int) -> None:
        session = self.session(how)
        self.restore_to(session, list(session.model.snapshots)[place % len(session.model.snapshots)])
        self.did("restore", session.model)

    @staticmethod
    def restore_to(session: Session, snapshot: str) -> None:
        session.call("restore", snapshot)
        state = deepcopy(session.model.snapshots[snapshot])
        session.model.replace_state("restore", session.user, len(state.rows), state)
        session.model.current = snapshot

    @rule(how=HOW, place=PLACE)
    def delete_snapshot(self, how: How, place: int) -> None:
        session = self.session(how)
        others = [each for each in session.model.snapshots if each != session.model.current]
        snapshot = others[place % len(others)] if place and others else session.model.current
        if snapshot == session.model.current:
            self.refused(Conflict, session, "delete_snapshot", snapshot)
            return
        session.call("delete_snapshot", snapshot)
        del session.model.snapshots[snapshot]
        self.did("delete_snapshot", session.model)

    @precondition(lambda self: len(self.models) < MOST_DATASETS)
    @rule(how=HOW, place=PLACE)
    def clone(self, how: How, place: int) -> None:
        session = self.session(how)
        model = session.model
        snapshot = ["head", *model.snapshots][place % (len(model.snapshots) + 1)]
        dataset_id, name = session.process.run(compared.clone, session.name, snapshot)
        made = PlainDataset(dataset_id, model.namespace, name, model.is_of_files, dict(model.uris), State({}))
        made.folder = model.folder
        self.models[dataset_id] = made
        made.state = deepcopy(model.state if snapshot == "head" else model.snapshots[snapshot])
        made.keep_state(session.process.run(compared.newest_snapshot, Name(made.namespace, session.user, name)))
        self.did("clone", model, made)

    # Uploads and saved views

    @precondition(lambda self: any(each.is_of_files for each in self.models.values()))
    @rule(how=HOW, numbers=NUMBERS)
    def upload(self, how: How, numbers: list[int]) -> None:
        """Send images in a transaction that is open, or in a new one."""
        session = self.session(how)
        opened = [each for each, upload in session.model.uploads.items() if not upload.is_done]
        if not session.model.is_of_files:
            if session.model.folder is None:
                self.refused(InvalidInput, session, "open_upload")
            return
        if len(opened) < MOST_UPLOADS:
            opened.append(session.process.run(compared.open_upload, session.name))
            session.model.uploads[opened[-1]] = Upload()
        upload_id = opened[numbers[0] % len(opened)]
        session.call_upload(upload_id, "add", compared.files(numbers))
        session.model.uploads[upload_id].numbers += numbers
        self.did("upload", session.model)

    @precondition(lambda self: any(each.uploads for each in self.models.values()))
    @rule(how=HOW, place=PLACE, settle=st.booleans(), discard=st.integers(0, 3))
    def end_upload(self, how: How, place: int, settle: bool, discard: int) -> None:
        """Process a transaction, or discard it; one that is done is neither processed nor discarded."""
        session = self.session(how)
        if not session.model.uploads:
            return
        upload_id = list(session.model.uploads)[-1 - place % len(session.model.uploads)]
        upload = session.model.uploads[upload_id]
        method, options = ("process", {"auto_reindex": settle}) if discard else ("discard", {})
        if upload.is_done or (discard and not upload.numbers):
            with pytest.raises(Conflict if upload.is_done else InvalidInput):
                session.call_upload(upload_id, method, **options)
            self.did(f"{method}, refused", session.model)
            return
        session.call_upload(upload_id, method, **options)
        if discard:
            self.added(session, upload.numbers, None, settle=settle)
            upload.is_done = True
        else:
            del session.model.uploads[upload_id]
        self.did(f"{method} an upload", session.model)

    @rule(how=HOW, name=VIEW, label=LABEL)
    def save_view(self, how: How, name: str, label: str) -> None:
        session = self.session(how)
        vql: list[Mapping[str, Any]] = [{"labels": {"op": "is", "value": label}}]
        if name in session.model.views:
            self.refused(Conflict, session, "save_view", name, Where(vql))
            return
        session.call("save_view", name, Where(vql))
        session.model.views[name] = SavedView(name, label, session.state.batches)
        self.did("save_view", session.model)

    @precondition(lambda self: any(each.views for each in self.models.values()))
    @rule(how=HOW, name=VIEW, enabled=st.one_of(st.none(), st.booleans()))
    def change_view(self, how: How, name: str, enabled: bool | None) -> None:
        """Switch the alerts of a saved view, or delete it."""
        session = self.session(how)
        if name not in session.model.views:
            self.refused(NotFound, session, "saved_view", name)
        elif enabled is None:
            session.call_view(name, "delete")
            del session.model.views[name]
            self.did("delete a view", session.model)
        else:
            session.call_view(name, "set_alerting", enabled)
            session.model.views[name].is_alerting = enabled
            self.did("set_alerting", session.model)

    # Datasets, workspaces and processes

    @precondition(lambda self: len(self.models) < MOST_DATASETS)
    @rule(how=HOW, namespace=st.sampled_from(NAMESPACES), name=NAME, source=SOURCE)
    def make(self, how: How, namespace: str, name: str, source: str) -> None:
        _, user, via = how
        process, named = self.processes[via], Name(namespace, user, name)
        if self.is_taken(namespace, name):
            with pytest.raises(Conflict):
                process.run(compared.create, named, compared.table([0], ["a"]))
            self.did("create_dataset, refused")
            return
        numbers = list(range(ROWS))
        upload_id, folder = 0, None
        match source:
            case "uploads":
                dataset_id, upload_id = process.run(compared.create_of_files, named, numbers)
            case "folder":
                folder = self.new_folder()
                dataset_id = process.run(compared.create_of_folder, named, folder.path)
            case _:
                labels = ["abcde"[number % 5] for number in numbers]
                dataset_id = process.run(compared.create, named, compared.table(numbers, labels))
        model = PlainDataset(dataset_id, namespace, name, source == "uploads", {}, State({}), folder=folder)
        self.models[dataset_id] = model
        if folder is not None:
            shown = process.run(compared.read_media, named)
            assert [uri for _, uri in shown] == sorted(folder.files)
            model.state.rows = {each: fresh(None, Media(uri, folder.files[uri])) for each, uri in shown}
        else:
            new = self.read_new(Session(process, model, user))
            label_of = {each: None if model.is_of_files else "abcde"[each % 5] for each in numbers}
            model.state.rows = {each: fresh(label_of[media.number], media) for each, media in new.items()}
        if model.is_of_files:
            model.uploads[upload_id] = Upload(numbers, is_done=True)
        model.keep_state(process.run(compared.newest_snapshot, named))
        self.did("create_dataset", model)

    def is_taken(self, namespace: str, name: str) -> bool:
        return any((each.namespace, each.name) == (namespace, name) for each in self.models.values())

    @rule(how=HOW, name=NAME)
    def rename(self, how: How, name: str) -> None:
        session = self.session(how)
        if name != session.model.name and self.is_taken(session.model.namespace, name):
            self.refused(Conflict, session, "rename", name)
            return
        session.call("rename", name)
        session.model.name = name
        self.did("rename", session.model)

    @precondition(lambda self: len(self.models) > 1)
    @rule(how=HOW)
    def delete(self, how: How) -> None:
        session = self.session(how)
        session.process.run(compared.delete, session.name)
        del self.models[session.model.id]
        self.did("delete_dataset")

    @precondition(lambda self: self.steps >= self.next_vacuum)
    @rule(how=HOW)
    def vacuum(self, how: How) -> None:
        """Fold edits, and free what nothing needs."""
        self.processes[how[2]].run(compared.vacuum)
        self.next_vacuum = self.steps + VACUUM_EVERY
        self.did("vacuum", *self.models.values())

    @precondition(lambda self: self.steps >= self.next_vacuum)
    @rule(how=HOW, places=PLACES)
    def undo_after_vacuum(self, how: How, places: list[int]) -> None:
        """Edit and delete media, fold the edit and free what nothing needs, and undo the deletion, which needs it."""
        self.set_captions(how, places, "one")
        self.delete_media(how, places)
        self.vacuum(how)
        self.undo(how, None)

    @rule(how=HOW, numbers=NUMBERS, places=PLACES)
    def delete_before_a_reindex(self, how: How, numbers: list[int], places: list[int]) -> None:
        """Delete media while others are not settled."""
        self.add_media(how, numbers, "a", False)
        self.delete_media(how, places)

    @rule(how=HOW, numbers=NUMBERS)
    def add_nothing_new(self, how: How, numbers: list[int]) -> None:
        """Add media without settling, and the same once more, which settles them."""
        self.add_media(how, numbers, "a", False)
        self.add_media(how, numbers, "b", True)

    @precondition(lambda self: self.steps >= self.next_reopen)
    @rule(how=HOW)
    def reopen(self, how: How) -> None:
        self.processes[how[2]].reopen()
        self.next_reopen = self.steps + REOPEN_EVERY
        self.did("reopen", *self.models.values())

    @precondition(lambda self: self.second is not None and self.steps >= self.next_kill)
    @rule(how=HOW, selection=SELECTION, labels=LABELS, after_ms=st.integers(0, 40))
    def kill(self, how: How, selection: Selection, labels: list[str], after_ms: int) -> None:
        """Kill the second process while it sets labels: they are set or not; where they are not, set them again."""
        assert self.second is not None, "a precondition of the rule"
        session = self.session((how[0], how[1], 0))
        ids, selected = session.chosen(selection)
        arguments = "set_labels", selected, labels
        self.second.kill_within(after_ms / 1000, compared.call, session.name, *arguments)
        if len(session.call("journal", None)) == len(session.model.journal):
            session.call(*arguments)
        session.model.edit("set_labels", session.user, {each: {"labels": tuple(labels)} for each in ids})
        self.next_kill = self.steps + KILL_EVERY
        self.did("kill", *self.models.values())

    # Comparisons

    @invariant()
    def agrees_with_the_model(self) -> None:
        """Compare what has changed now and then, and more rarely all that there is, in one workspace and the other."""
        self.steps += 1
        if self.steps % EVERY == 0:
            self.compare(self.steps // EVERY % 2, thorough=self.steps % THOROUGH_EVERY == 0)
        self.is_agreeing = True

    def compare(self, via: int, *, thorough: bool) -> None:
        if not self.models:  # the first one is not made yet
            return
        process, models = self.processes[via], list(self.models.values())
        if thorough:
            process.run(compared.compare_names, models)
        for model in models:
            if thorough or model.id in self.touched:
                process.run(compared.compare, model, thorough)
        self.touched = {}

    def compare_all_snapshots(self) -> None:
        """Compare what there is, and the datasets as all snapshots have them."""
        self.compare(0, thorough=True)
        for model in self.models.values():
            session = Session(self.processes[1], model, "ann@x.org")
            for snapshot in model.snapshots:
                self.restore_to(session, snapshot)
                self.processes[0].run(compared.compare, model, True)
                self.processes[0].run(compared.compare_pixels, model)
        self.processes[0].run(compared.check)

    def teardown(self) -> None:
        try:
            if self.is_agreeing:  # else a step failed
                self.compare_all_snapshots()
        finally:
            for process in self.processes:
                process.close()
            shutil.rmtree(self.home)
            self.tuning.restore()


CASES = {
    "two processes, superseded versions deleted at once": (EAGER, True, True),
    "small datasets, superseded versions deleted at once": (EAGER, False, False),
    "two processes": (SETTINGS, True, True),
    "two workspaces": (SETTINGS, False, True),
}
EXAMPLES, STEPS = 5, 100
"""The number of sequences in each test, with the profile ``full``, and of steps in each sequence."""
FEW_STEPS = 8
"""The number of steps of each sequence in ``make test``."""


def run(case: str, most: int, steps: int) -> tuple[int, int]:
    """Run a case; return the number of steps, and of those that were refused."""
    AnyEdits.options, AnyEdits.has_second, AnyEdits.is_large = CASES[case]
    AnyEdits.done = Counter()
    run_state_machine_as_test(AnyEdits, settings=examples(most, stateful_step_count=steps))
    all_steps = sum(AnyEdits.done.values())
    refused = sum(number for step, number in AnyEdits.done.items() if step.endswith(", refused"))
    logging.getLogger(__name__).info("%s: %d steps, of which %d were refused", case, all_steps, refused)
    return all_steps, refused


def test_workspace__any_edits() -> None:
    """Whatever few things are done, whoever does them and wherever: datasets are as the model says."""
    run("two processes", 2, FEW_STEPS)


@pytest.mark.parametrize("case", rest_slow(CASES, 0, long=2))
def test_workspace__any_edits_of_many(case: str) -> None:
    """Whatever is done, whoever does it and wherever: datasets are as the model says, and at the end all snapshots."""
    all_steps, refused = run(case, EXAMPLES, STEPS)
    if examples(EXAMPLES).max_examples >= EXAMPLES:  # few examples are short, and five may be
        assert all_steps > EXAMPLES * STEPS / 10
        assert refused < 0.6 * all_steps
