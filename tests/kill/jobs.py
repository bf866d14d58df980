"""Jobs that are killed, the workspace with which they begin, and what is done before some of them.

A job is a function of an open workspace. It looks up what it needs, and returns the change that will be killed.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from framedex import Dataset, UploadTransaction, Workspace
from framedex.operations.short_edits import editing
from framedex.storage.catalog import Catalog
from tests.gallery import SETTINGS
from tests.image_files import photo, write
from tests.inside import context_of
from tests.kill.moments import Moment, watch_writes
from tests.pauses import wait_for_edits
from tests.tuning import Tuning

IMAGES, ADDED = 96, 36
Change = Callable[[], object]
Job = Callable[[Workspace], Change]


def prepare(folder: Path) -> None:
    """Make images and the workspace that all jobs begin with."""
    for name, first, count in (("images", 0, IMAGES), ("more", IMAGES, ADDED)):
        for number in range(count):
            image = photo(first + number, width=96, height=72)
            write(folder / name / f"{number:04}.png", image)
            if number % 8 == 0:
                write(folder / name / f"{number:04}b.jpg", image)
    with Workspace(folder / "workspace", settings=SETTINGS) as workspace:
        dataset = workspace.create_dataset("pets", folder / "images", "gist")
        ids = dataset.to_arrow(["media_id"])["media_id"].to_pylist()
        dataset.set_labels(ids[:30], ["cat"])
        dataset.set_labels(ids[30:60], ["dog"])
        dataset.tag(ids[:10], "first")
        dataset.add_field("score", "float", values=dict.fromkeys(ids[:20], 1.0))
        dataset.save_view("unlabelled", dataset.where(_UNLABELLED))
        dataset.save_view("png", dataset.where([{"file_name": {"op": "ends", "value": ".png"}}]))
        files = _files(workspace)
        for transaction in (workspace.create_draft("sent").open_upload(), dataset.open_upload()):
            transaction.add(files[:24])
            transaction.add(files[18:])


_UNLABELLED = [{"not": {"labels": {"op": "one_of", "value": ["cat", "dog"]}}}]


def _pets(workspace: Workspace) -> Dataset:
    return workspace.dataset("pets")


def _ids(workspace: Workspace, places: slice = slice(None)) -> list[str]:
    ids: list[str] = _pets(workspace).to_arrow(["media_id"])["media_id"].to_pylist()
    return ids[places]


def _folder(workspace: Workspace, name: str) -> Path:
    return Path(workspace.path).parent / name


def _files(workspace: Workspace) -> list[tuple[str, Path]]:
    return [(path.name, path) for path in sorted(_folder(workspace, "more").iterdir())]


def _last_step(workspace: Workspace, operation: str) -> int:
    steps = _pets(workspace).journal()
    return next(each.step for each in steps if each.operation == operation)


# Changes of values


def _tag(workspace: Workspace) -> Change:
    return partial(_pets(workspace).tag, _ids(workspace, slice(None, None, 2)), "even")


def _rename_tag(workspace: Workspace) -> Change:
    return partial(_pets(workspace).rename_tag, "first", "earliest")


def _delete_tag(workspace: Workspace) -> Change:
    return partial(_pets(workspace).delete_tag, "first")


def _label(workspace: Workspace) -> Change:
    return partial(_pets(workspace).set_labels, _ids(workspace, slice(None, None, 3)), ["third"])


def _label_all(workspace: Workspace) -> Change:
    dataset = _pets(workspace)
    return partial(dataset.set_labels, dataset.where([]), ["pet"])


def _caption(workspace: Workspace) -> Change:
    return partial(_pets(workspace).set_captions, dict.fromkeys(_ids(workspace, slice(20)), "a caption"))


def _put_aside(workspace: Workspace) -> Change:
    return partial(_pets(workspace).basket.add, _ids(workspace, slice(None, None, 2)))


def _put_others_aside(workspace: Workspace) -> Change:
    """Return an edit of a second process: of media that no edit of the basket changes, so that either may be first."""
    return partial(_pets(workspace).basket.add, _ids(workspace, slice(1, None, 2)))


def _keep(workspace: Workspace) -> Change:
    return partial(_pets(workspace).keep, _ids(workspace, slice(1, None, 5)))


def _add_field(workspace: Workspace) -> Change:
    values = {media_id: float(place) for place, media_id in enumerate(_ids(workspace))}
    return partial(_pets(workspace).add_field, "grade", "float", values=values)


def _set_field(workspace: Workspace) -> Change:
    values = {media_id: float(place) for place, media_id in enumerate(_ids(workspace))}
    return partial(_pets(workspace).set_field, "score", values)


def _delete_field(workspace: Workspace) -> Change:
    return partial(_pets(workspace).delete_field, "score")


def _limit(workspace: Workspace) -> Change:
    return partial(_pets(workspace).set_limits, outliers=0.5, blur=0.2)


def _edit_by_threads(workspace: Workspace) -> Change:
    """Return edits of threads that wait for each other, so that they are one group."""
    dataset, ids = _pets(workspace), _ids(workspace)
    edits: list[Change] = [
        partial(dataset.tag, ids[::2], "even"),
        partial(dataset.set_labels, ids[:40:3], ["third"]),
        partial(dataset.set_captions, dict.fromkeys(ids[:20], "a caption")),
        partial(dataset.untag, ids[:5], "first"),
        partial(dataset.basket.add, ids[::4]),
        partial(dataset.rename_tag, "first", "earliest"),
    ]

    def change() -> None:
        with ThreadPoolExecutor(len(edits)) as threads:
            with editing(context_of(dataset), dataset.id, "tag"):
                ends = []
                for edit in edits:
                    ends.append(threads.submit(edit))
                    wait_for_edits(dataset, len(ends) + 1)
            for end in ends:
                end.result()

    return change


# Decisions


def _decide(workspace: Workspace) -> Change:
    dataset = _pets(workspace)
    group = min(dataset.duplicates(), key=lambda group: group.paths)
    return partial(dataset.not_duplicates, list(group.media_ids))


def _is_right(workspace: Workspace) -> Change:
    dataset = _pets(workspace)
    return partial(dataset.label_is_right, dataset.where([{"labels": {"op": "is", "value": "cat"}}]))


def _withdraw(workspace: Workspace) -> Change:
    dataset = _pets(workspace)
    made = [each.decision_id for each in dataset.duplicate_decisions()]
    (decision,) = made + [each.decision_id for each in dataset.label_decisions()]
    return partial(dataset.withdraw_decision, decision)


# The journal


def _undo(workspace: Workspace) -> Change:
    return partial(_pets(workspace).undo, _last_step(workspace, "set_labels"))


def _undo_last(workspace: Workspace) -> Change:
    return partial(_pets(workspace).undo)


def _redo(workspace: Workspace) -> Change:
    return partial(_pets(workspace).redo)


# Media and states


def _create(workspace: Workspace) -> Change:
    def change() -> None:
        task = workspace.create_dataset("new", _folder(workspace, "images"), "gist", wait=False).task
        assert task is not None
        task.wait()

    return change


def _add(workspace: Workspace) -> Change:
    return partial(_pets(workspace).add_media, _folder(workspace, "more"))


def _add_and_index(workspace: Workspace) -> Change:
    return partial(_pets(workspace).add_media, _folder(workspace, "more"), auto_reindex=True)


def _reindex(workspace: Workspace) -> Change:
    return partial(_pets(workspace).reindex, thresholds=(0.02, 0.05, 0.1, 0.2, 0.4))


def _fold(workspace: Workspace) -> Change:
    return partial(workspace.vacuum)


def _delete(workspace: Workspace) -> Change:
    return partial(_pets(workspace).delete_media, _ids(workspace, slice(10, 40)))


def _delete_few(workspace: Workspace) -> Change:
    return partial(_pets(workspace).delete_media, _ids(workspace, slice(50, 53)))


def _clean_up(workspace: Workspace) -> Change:
    """Return a clean-up of copies and of the basket; what stays in place of copies is marked."""
    return _pets(workspace).plan_cleanup(duplicates=0.96, basket=True).apply


def _restore(workspace: Workspace) -> Change:
    dataset = _pets(workspace)
    return partial(dataset.restore, dataset.snapshots()[-1])


def _clone(workspace: Workspace) -> Change:
    return partial(_pets(workspace).clone)


def _create_others(workspace: Workspace) -> Change:
    return partial(workspace.create_dataset, "others", _folder(workspace, "more"), "gist")


def _merge(workspace: Workspace) -> Change:
    return partial(_pets(workspace).merge, workspace.dataset("others"), "both")


def _snapshot(workspace: Workspace) -> Change:
    return partial(_pets(workspace).snapshot, "kept")


def _delete_snapshot(workspace: Workspace) -> Change:
    dataset = _pets(workspace)
    return partial(dataset.delete_snapshot, dataset.snapshots()[-1])


# Uploads and saved views


def _transaction(workspace: Workspace, name: str = "pets") -> UploadTransaction:
    dataset = workspace.dataset(name)
    return dataset.find_upload(dataset.uploads()[0].id)


def _open_upload(workspace: Workspace) -> Change:
    return partial(_pets(workspace).open_upload)


def _add_files(workspace: Workspace) -> Change:
    more = [(f"again-{name}", path) for name, path in _files(workspace)]
    return partial(_transaction(workspace).add, more)


def _discard(workspace: Workspace) -> Change:
    return partial(_transaction(workspace).discard)


def _process(workspace: Workspace) -> Change:
    def change() -> None:
        _transaction(workspace, "sent").process(encoder="gist", wait=False).wait()

    return change


def _process_more(workspace: Workspace) -> Change:
    return partial(_transaction(workspace).process)


def _save_view(workspace: Workspace) -> Change:
    dataset = _pets(workspace)
    return partial(dataset.save_view, "first", dataset.where([{"tags": {"op": "is", "value": ["first"]}}]))


def _delete_view(workspace: Workspace) -> Change:
    return partial(_pets(workspace).saved_view("png").delete)


def _after(*jobs: Job) -> Job:
    """Return a job that does some jobs one after another."""

    def job(workspace: Workspace) -> Change:
        return lambda: [each(workspace)() for each in jobs]

    return job


WAYS: dict[str, dict[str, float]] = {
    "": {},
    "large": {"written_rows": 0, "layer_values": 0, "layer_share": 10**9},
    "slow": {"committed_rows": 8},
    "patient": {"edit_patience_s": 60.0},
}
"""Tuning with which jobs take other ways: as in large datasets, in creations that show rows, and with slow threads."""


def nothing() -> None:
    """Do nothing, before the workspace of a process is opened."""


@dataclass(frozen=True)
class Kind:
    """A kind of job.

    Attributes:
        job: the job.
        before: a job that is done before, by a process that nobody kills.
        makes: the name of the dataset that the job makes; empty if it changes the dataset "pets".
        waiting: what a second process does as soon as it gets the lease of the dataset.
        seems: the circumstances in which it is done, of ``WAYS``.
        folds: whether edits are in layers before the job, and in no layers after it.
    """

    job: Job
    before: Job | None = None
    makes: str = ""
    waiting: Job | None = None
    seems: str = ""
    folds: bool = False


_BEGUN = dict[str, Change]()
_ALONE = "the change of this process"


def begin(workspace: Workspace, name: str, moment: Moment | None, *, waits: bool = False) -> None:
    """Look up what a job, or the one that waits for it, needs in this process, which ends itself at a moment."""
    kind = KINDS[name]
    tuning = Tuning()
    for name, value in WAYS[kind.seems].items():
        setattr(tuning, name, value)
    if moment is not None:
        watch_writes(Catalog, moment)
    job = kind.waiting if waits and kind.waiting is not None else kind.job
    _BEGUN[_ALONE] = job(workspace)


def change(_workspace: Workspace) -> None:
    """Do what was begun in this process."""
    _BEGUN[_ALONE]()


def _relocate(workspace: Workspace) -> Change:
    source = _pets(workspace).sources()[0].source
    return partial(workspace.relocate, source, _folder(workspace, "images"))


def _relocate_to_others(workspace: Workspace) -> Change:
    """Return the relocation to a folder in which a third of the files have other names, and a third are gone."""
    place = Path(workspace.path).parent / "own"
    place.mkdir()
    for number, path in enumerate(sorted(_folder(workspace, "images").iterdir())):
        if number % 3 != 1:
            (place / f"{'moved ' if number % 3 else ''}{path.name}").symlink_to(path.resolve())
    return partial(workspace.relocate, _pets(workspace).sources()[0].source, place, force=True)


def _sync(workspace: Workspace) -> Change:
    return partial(_pets(workspace).sync, apply=True)


FAMILIES: dict[str, dict[str, Kind]] = {
    "creations": {
        "create, with early rows": Kind(_create, makes="new", seems="slow"),
        "create": Kind(_create, makes="new"),
    },
    "additions": {
        "add_media and reindex": Kind(_add_and_index),
        "add_media": Kind(_add),
    },
    "upkeep": {
        "vacuum, which folds edits": Kind(_fold, folds=True),
        "vacuum, which folds deletions": Kind(_fold, _delete_few, seems="large", folds=True),
        "reindex, which folds edits": Kind(_reindex, folds=True),
    },
    "sources": {
        "sync": Kind(_sync, _relocate_to_others),
    },
    "relocations": {
        "relocate": Kind(_relocate),
    },
    "clean-ups": {
        "clean-up with keepers and the basket": Kind(_clean_up, _after(_keep, _put_aside)),
    },
    "deletions": {
        "delete_media of few": Kind(_delete_few, seems="large"),
        "delete_media": Kind(_delete),
    },
    "clones": {
        "clone of a changed dataset": Kind(
            _clone, _after(_delete_few, _keep, _put_aside), makes="pets (cloned)", seems="large"
        ),
        "clone": Kind(_clone, makes="pets (cloned)"),
    },
    "states": {
        "merge": Kind(_merge, _create_others, makes="both"),
        "restore": Kind(_restore),
        "snapshot": Kind(_snapshot),
        "delete_snapshot": Kind(_delete_snapshot, _snapshot),
    },
    "tags": {
        "tag, while another process waits": Kind(_tag, waiting=_put_others_aside),
        "tag": Kind(_tag),
        "rename_tag": Kind(_rename_tag),
        "delete_tag": Kind(_delete_tag),
        "basket": Kind(_put_aside),
    },
    "values": {
        "set_labels of many": Kind(_label_all, seems="large"),
        "set_labels": Kind(_label),
        "set_captions": Kind(_caption),
        "edits of threads": Kind(_edit_by_threads, seems="patient"),
        "edits of threads, while another process waits": Kind(
            _edit_by_threads, waiting=_put_others_aside, seems="patient"
        ),
    },
    "fields and limits": {
        "add_field": Kind(_add_field),
        "set_field": Kind(_set_field),
        "delete_field": Kind(_delete_field),
        "set_limits": Kind(_limit),
    },
    "decisions": {
        "not_duplicates": Kind(_decide),
        "withdraw_decision of duplicates": Kind(_withdraw, _decide),
        "label_is_right": Kind(_is_right),
        "withdraw_decision of labels": Kind(_withdraw, _is_right),
    },
    "the journal": {
        "undo of a deletion": Kind(_undo_last, _delete),
        "redo of a deletion": Kind(_redo, _after(_delete, _undo_last)),
        "undo": Kind(_undo),
        "redo": Kind(_redo, _undo),
    },
    "uploads": {
        "process an addition": Kind(_process_more),
        "process a draft": Kind(_process, makes="sent"),
        "open_upload": Kind(_open_upload),
        "add to an upload": Kind(_add_files),
        "discard an upload": Kind(_discard),
    },
    "saved views": {
        "save_view": Kind(_save_view),
        "delete a saved view": Kind(_delete_view),
    },
}
"""Kinds of jobs that commit alike; of each family the first is killed also where there is little time."""
KINDS = {name: kind for family in FAMILIES.values() for name, kind in family.items()}
