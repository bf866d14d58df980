"""In any sequence of uploads, failures, retries, restarts and repairs, exactly the files of whole calls count."""

import shutil
from collections import Counter
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import ClassVar

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from framedex import Conflict, Dataset, InvalidInput, NotFound, TaskFailed, Workspace
from framedex.encoders import Scheme, registry
from framedex.records import DatasetStatus, UploadState
from tests.gallery import SETTINGS, Faulty
from tests.growth import columns_of, status_of
from tests.image_files import encode, photo
from tests.laws import examples, law_folder
from tests.uploading import blobs_of, distinct, home_of, with_upload

pytestmark = pytest.mark.slow

EAGER = SETTINGS.model_copy(update={"keep_versions_s": 0.0, "clean_every_s": 0.0, "dataset_snapshots_enabled": False})
CONTENTS = [encode(photo(seed, width=48, height=36), "PNG") for seed in range(6)]
HASHES = [blake2b(content, digest_size=16).digest() for content in CONTENTS]
Files = dict[str, int]
"""Numbers of contents by name."""
CALLS = st.lists(st.tuples(st.sampled_from(["a", "b", "c", "d"]), st.integers(0, 5)), min_size=1, max_size=3)
CHOICE = st.integers(0, 9)
CHECK_EVERY = 3
"""The number of steps between checks of the whole workspace, which take more than the steps."""
LEAST = {"processed": 15, "failed": 4, "renamed": 3, "retried": 1}
"""The numbers of transactions to which all examples together must come."""


@dataclass
class Sent:
    """A transaction as it should be.

    Attributes:
        files: what was received: names and numbers of contents.
        count: number of received files, equal ones of a call once.
        n_bytes: their size.
        state: of the transaction.
    """

    files: list[tuple[str, int]] = field(default_factory=list)
    count: int = 0
    n_bytes: int = 0
    state: UploadState = UploadState.OPEN

    def take(self, call: list[tuple[str, int]]) -> None:
        """Note the files of a call."""
        files = distinct([(f"{name}.png", number) for name, number in call])
        self.files += files
        self.count += len(files)
        self.n_bytes += sum(len(CONTENTS[number]) for _, number in files)


@dataclass
class Expected:
    """A dataset as it should be.

    Attributes:
        files: its media; None before the first commit.
        sent: its transactions, by id.
    """

    files: Files | None = None
    sent: dict[int, Sent] = field(default_factory=dict)

    @property
    def is_broken(self) -> bool:
        """True after a failed creation."""
        return self.files is None and any(each.state is UploadState.FAILED for each in self.sent.values())


class AnyUploads(RuleBasedStateMachine):
    """Uploads files beside a model of what each transaction and each dataset holds.

    Attributes:
        encoder: of all datasets; fails on demand.
        models: the datasets as they should be, by id.
        recovered: the datasets that were there when the catalog was lost the last time.
        done: the numbers of transactions that were processed, failed, and had files of taken names, in all runs.
    """

    done: ClassVar[Counter[str]] = Counter()

    def __init__(self) -> None:
        super().__init__()
        self.home = law_folder("any-uploads")
        self.encoder = Faulty()
        registry._SCHEMES[Faulty.name] = Scheme(Faulty.name, lambda _name, _settings: self.encoder)
        self.workspace = Workspace(self.home / "ws", settings=EAGER)
        self.models: dict[str, Expected] = {}
        self.recovered: set[str] = set()
        self.number = 0
        self.steps = 0

    @initialize(first=CALLS, second=CALLS, fails=st.booleans())
    def begin(self, first: list[tuple[str, int]], second: list[tuple[str, int]], fails: bool) -> None:
        """Begin with two datasets: one of media, or whose creation failed, and a draft with an open transaction."""
        for call in (first, second):
            self.draft()
            (dataset_id,) = [each for each, model in self.models.items() if not model.sent]
            upload_id = self.send(self.workspace.dataset(dataset_id), self.models[dataset_id], call)
            if call is first:
                self.process_one(dataset_id, upload_id, fails=fails, settle=True)

    def one(self, choice: int) -> tuple[Dataset, Expected]:
        dataset_id = list(self.models)[choice % len(self.models)]
        return self.workspace.dataset(dataset_id), self.models[dataset_id]

    def upload(self, which: int, *states: UploadState) -> tuple[str, int]:
        """Return the ids of a dataset and of a transaction of it, of some states if there is one of these."""
        found = [(each, id_) for each, model in self.models.items() for id_ in model.sent]
        fit = [(each, id_) for each, id_ in found if self.models[each].sent[id_].state in states]
        return (fit or found)[which % len(fit or found)]

    def all_sent(self) -> list[Sent]:
        return [sent for model in self.models.values() for sent in model.sent.values()]

    def has_uploads(self) -> bool:
        return bool(self.all_sent())

    def send(self, dataset: Dataset, model: Expected, call: list[tuple[str, int]]) -> int:
        """Open a transaction and add files to it; return its id."""
        transaction = dataset.open_upload()
        sent = model.sent[transaction.id] = Sent()
        transaction.add([(f"{name}.png", CONTENTS[number]) for name, number in call])
        sent.take(call)
        return transaction.id

    @precondition(lambda self: len(self.models) < 3)
    @rule()
    def draft(self) -> None:
        self.number += 1
        self.models[self.workspace.create_draft(f"draft {self.number}").id] = Expected()

    @rule(choice=CHOICE)
    def open(self, choice: int) -> None:
        dataset, model = self.one(choice)
        if model.is_broken:
            with pytest.raises(Conflict, match="it is ERROR"):
                dataset.open_upload()
        else:
            model.sent[dataset.open_upload().id] = Sent()

    @precondition(has_uploads)
    @rule(which=CHOICE, call=CALLS, bad=st.integers(0, 5))
    def add(self, which: int, call: list[tuple[str, int]], bad: int) -> None:
        dataset_id, upload_id = self.upload(which, *([UploadState.OPEN] if which else []))
        dataset, model = self.workspace.dataset(dataset_id), self.models[dataset_id]
        sent, transaction = model.sent[upload_id], dataset.find_upload(upload_id)
        files = [(f"{name}.png", CONTENTS[number]) for name, number in call]
        if sent.state is not UploadState.OPEN:
            with pytest.raises(Conflict, match="already processed"):
                transaction.add(files)
        elif bad == 0:
            with pytest.raises(InvalidInput, match="Unsupported"):
                transaction.add([*files, ("x.exe", b"")])
        else:
            transaction.add(files)
            sent.take(call)

    @rule(choice=CHOICE, call=CALLS, fails=st.booleans(), settle=st.booleans())
    def send_and_process(self, choice: int, call: list[tuple[str, int]], fails: bool, settle: bool) -> None:
        dataset, model = self.one(choice)
        if not model.is_broken:
            self.process_one(dataset.id, self.send(dataset, model, call), fails=fails, settle=settle)

    @precondition(has_uploads)
    @rule(which=CHOICE, fails=st.booleans(), settle=st.booleans())
    def process(self, which: int, fails: bool, settle: bool) -> None:
        dataset_id, upload_id = self.upload(which, *([UploadState.OPEN] if which else []))
        self.process_one(dataset_id, upload_id, fails=fails, settle=settle)

    def process_one(self, dataset_id: str, upload_id: int, *, fails: bool, settle: bool) -> None:
        dataset, model = self.workspace.dataset(dataset_id), self.models[dataset_id]
        sent, transaction = model.sent[upload_id], dataset.find_upload(upload_id)
        options = {"encoder": Faulty.name} if model.files is None else {}
        self.encoder.broken = fails
        if sent.state is not UploadState.OPEN or model.is_broken:
            with pytest.raises((Conflict, InvalidInput)):
                transaction.process(**options)  # type: ignore[arg-type]
            return
        if not sent.files:
            with pytest.raises(InvalidInput, match="holds no files"):
                transaction.process(**options)  # type: ignore[arg-type]
            return
        known = (model.files or {}).values()
        is_new = any(number not in known for _, number in sent.files)
        try:
            transaction.process(auto_reindex=settle, **options)  # type: ignore[arg-type]
        except TaskFailed:
            assert fails
            sent.state = UploadState.FAILED
            self.done["failed"] += 1
        else:
            assert not (fails and is_new)
            self.processed(model, sent)

    def processed(self, model: Expected, sent: Sent) -> None:
        self.done["processed"] += 1
        model.files = with_upload(model.files or {}, sent.files)
        self.done["renamed"] += any("-" in name for name in model.files)
        sent.state = UploadState.DONE

    @precondition(lambda self: any(each.state is UploadState.FAILED for each in self.all_sent()))
    @rule(which=CHOICE, restart=st.booleans())
    def retry(self, which: int, restart: bool) -> None:
        dataset_id, upload_id = self.upload(which, UploadState.FAILED)
        if restart:
            self.restart()
        dataset, model = self.workspace.dataset(dataset_id), self.models[dataset_id]
        self.encoder.broken = False
        task_id = dataset.find_upload(upload_id).record.task_id
        assert task_id is not None
        task = self.workspace.task(task_id)
        task.retry()
        task.wait(60)
        self.processed(model, model.sent[upload_id])
        self.done["retried"] += 1

    @precondition(has_uploads)
    @rule(which=CHOICE)
    def discard(self, which: int) -> None:
        dataset_id, upload_id = self.upload(which)
        dataset, model = self.workspace.dataset(dataset_id), self.models[dataset_id]
        transaction = dataset.find_upload(upload_id)
        if model.sent[upload_id].state is UploadState.DONE:
            with pytest.raises(Conflict, match="cannot be discarded"):
                transaction.discard()
        else:
            transaction.discard()
            del model.sent[upload_id]
            with pytest.raises(NotFound):
                transaction.discard()

    @rule(catalog_is_lost=st.booleans())
    def reopen(self, catalog_is_lost: bool) -> None:
        (self.lose_the_catalog if catalog_is_lost else self.restart)()

    def restart(self) -> None:
        self.workspace.close()
        self.workspace = Workspace(self.home / "ws", settings=EAGER)

    def lose_the_catalog(self) -> None:
        self.workspace.close()
        for path in (self.home / "ws").glob("catalog.db*"):
            path.unlink()
        assert Workspace.recover(self.home / "ws").left_out == []
        self.workspace = Workspace(self.home / "ws", settings=EAGER)
        self.recovered = set(self.models)
        for model in self.models.values():
            model.sent = {
                upload_id: Sent(sent.files, sent.count, sent.n_bytes)
                for upload_id, sent in model.sent.items()
                if sent.state is not UploadState.DONE and sent.files
            }

    @precondition(lambda self: len(self.models) > 1)
    @rule(choice=CHOICE)
    def delete(self, choice: int) -> None:
        dataset, _ = self.one(choice)
        self.workspace.delete_dataset(dataset.id)
        del self.models[dataset.id]

    @rule()
    def vacuum(self) -> None:
        assert self.workspace.vacuum(older_than_s=60).skipped == {}
        for dataset_id, model in self.models.items():
            kept = [each.files for each in model.sent.values() if each.state != UploadState.DONE]
            numbers = [number for files in ((model.files or {}).items(), *kept) for _, number in files]
            named = {HASHES[number].hex() for number in numbers}
            dataset = self.workspace.dataset(dataset_id)
            stored = {path.parent.name + path.stem for path in blobs_of(self.workspace, dataset)}
            assert named <= stored
            if dataset_id in self.recovered:  # a list of which the lost catalog had the task stays for an hour
                continue
            if all(each.state is UploadState.DONE for each in model.sent.values()):
                assert named == stored
                assert not (home_of(self.workspace, dataset) / "transactions").exists()

    @invariant()
    def all_is_as_expected(self) -> None:
        assert {each.id for each in self.workspace.datasets()} == set(self.models)
        for dataset_id, model in self.models.items():
            dataset = self.workspace.dataset(dataset_id)
            counts = {each.id: (each.n_files, each.n_bytes, each.state) for each in dataset.uploads()}
            assert counts == {
                upload_id: (each.count, each.n_bytes, each.state) for upload_id, each in model.sent.items()
            }
            if model.files is None:
                assert status_of(dataset) is (DatasetStatus.ERROR if model.is_broken else DatasetStatus.DRAFT)
            else:
                columns = columns_of(dataset, ["path", "content_hash"])
                found = dict(zip(columns["path"], columns["content_hash"], strict=True))
                assert found == {name: HASHES[number] for name, number in model.files.items()}
                assert len(columns["path"]) == len(found)
        self.steps += 1
        if self.steps % CHECK_EVERY == 0:
            assert self.workspace.check().findings == []

    def teardown(self) -> None:
        try:
            assert self.workspace.check().findings == []
        finally:
            self.workspace.close()
            del registry._SCHEMES[Faulty.name]
            shutil.rmtree(self.home, ignore_errors=True)


def test_workspace__any_uploads() -> None:
    """Whatever is sent, processed, lost and retried: transactions, media and stored contents are as the model says."""
    AnyUploads.done = Counter()
    chosen = examples(33, stateful_step_count=20)
    run_state_machine_as_test(AnyUploads, settings=chosen)
    if chosen.max_examples >= 20:  # the steps reach what the model is about
        assert all(AnyUploads.done[what] >= least for what, least in LEAST.items()), AnyUploads.done
