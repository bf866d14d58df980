"""Jobs of the kill test, the workspace with which they begin, and what is done before some of them.

A job is a function of an open workspace. It looks up what it needs, and returns the change that will be killed.
"""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

IMAGES, ADDED = 96, 36
_SIDE = 96
Change = Callable[[], Any]
Job = Callable[[Any], Change]


def prepare(folder: Path) -> None:
    """Make images and the workspace that all jobs begin with."""
    import cv2
    import numpy as np

    import framedex

    random_numbers = np.random.default_rng(0)
    for name, count in (("images", IMAGES), ("more", ADDED)):
        (folder / name).mkdir()
        for number in range(count):
            coarse = random_numbers.integers(0, 255, (6, 6, 3)).astype(np.uint8)
            image = cv2.resize(coarse, (_SIDE, _SIDE), interpolation=cv2.INTER_CUBIC)
            cv2.imwrite(str(folder / name / f"{number:04}.png"), image)
            if number % 8 == 0:
                cv2.imwrite(str(folder / name / f"{number:04}b.jpg"), image)
    with framedex.Workspace(folder / "workspace") as workspace:
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


def _pets(workspace: Any) -> Any:
    return workspace.dataset("pets")


def _ids(workspace: Any, places: slice = slice(None)) -> list[str]:
    ids: list[str] = _pets(workspace).to_arrow(["media_id"])["media_id"].to_pylist()
    return ids[places]


def _folder(workspace: Any, name: str) -> Path:
    return Path(workspace.path).parent / name


def _files(workspace: Any) -> list[tuple[str, Path]]:
    return [(path.name, path) for path in sorted(_folder(workspace, "more").iterdir())]


def _last_step(workspace: Any, operation: str) -> int:
    steps = _pets(workspace).journal()
    return next(each.step for each in steps if each.operation == operation)


# Changes of values


def _tag(workspace: Any) -> Change:
    return partial(_pets(workspace).tag, _ids(workspace, slice(None, None, 2)), "even")


def _rename_tag(workspace: Any) -> Change:
    return partial(_pets(workspace).rename_tag, "first", "earliest")


def _delete_tag(workspace: Any) -> Change:
    return partial(_pets(workspace).delete_tag, "first")


def _label(workspace: Any) -> Change:
    return partial(_pets(workspace).set_labels, _ids(workspace, slice(None, None, 3)), ["third"])


def _label_all(workspace: Any) -> Change:
    dataset = _pets(workspace)
    return partial(dataset.set_labels, dataset.where([]), ["pet"])


def _caption(workspace: Any) -> Change:
    return partial(_pets(workspace).set_captions, dict.fromkeys(_ids(workspace, slice(20)), "a caption"))


def _put_aside(workspace: Any) -> Change:
    return partial(_pets(workspace).basket.add, _ids(workspace, slice(None, None, 2)))


def _put_others_aside(workspace: Any) -> Change:
    """Return an edit of a second process: of media that no edit of the basket changes, so that either may be first."""
    return partial(_pets(workspace).basket.add, _ids(workspace, slice(1, None, 2)))


def _add_field(workspace: Any) -> Change:
    values = {media_id: float(place) for place, media_id in enumerate(_ids(workspace))}
    return partial(_pets(workspace).add_field, "grade", "float", values=values)


def _set_field(workspace: Any) -> Change:
    values = {media_id: float(place) for place, media_id in enumerate(_ids(workspace))}
    return partial(_pets(workspace).set_field, "score", values)


def _delete_field(workspace: Any) -> Change:
    return partial(_pets(workspace).delete_field, "score")


def _limit(workspace: Any) -> Change:
    return partial(_pets(workspace).set_limits, outliers=0.5, blur=0.2)


def _edit_by_threads(workspace: Any) -> Change:
    """Return edits of threads that wait for each other, so that they are one group."""
    from framedex.operations import edit_groups
    from framedex.operations.short_edits import editing

    dataset, ids = _pets(workspace), _ids(workspace)
    edits: list[Change] = [
        partial(dataset.tag, ids[::2], "even"),
        partial(dataset.set_labels, ids[:40:3], ["third"]),
        partial(dataset.set_captions, dict.fromkeys(ids[:20], "a caption")),
        partial(dataset.untag, ids[:5], "first"),
        partial(dataset.basket.add, ids[::4]),
        partial(dataset.rename_tag, "first", "earliest"),
    ]
    turns = dataset._context.catalog.turns_of(dataset.id)

    def change() -> None:
        edit_groups._PATIENCE_S = 60.0
        with ThreadPoolExecutor(len(edits)) as threads:
            with editing(dataset._context, dataset.id, "tag"):
                ends = []
                for edit in edits:
                    ends.append(threads.submit(edit))
                    while len(turns._queue) <= len(ends):
                        time.sleep(0.001)
            for end in ends:
                end.result()

    return change


# Decisions


def _decide(workspace: Any) -> Change:
    dataset = _pets(workspace)
    group = min(dataset.duplicates(), key=lambda group: group.paths)
    return partial(dataset.not_duplicates, list(group.media_ids))


def _is_right(workspace: Any) -> Change:
    dataset = _pets(workspace)
    return partial(dataset.label_is_right, dataset.where([{"labels": {"op": "is", "value": "cat"}}]))


def _withdraw(workspace: Any) -> Change:
    dataset = _pets(workspace)
    (decision,) = [*dataset.duplicate_decisions(), *dataset.label_decisions()]
    return partial(dataset.withdraw_decision, decision.decision_id)


# The journal


def _undo(workspace: Any) -> Change:
    return partial(_pets(workspace).undo, _last_step(workspace, "set_labels"))


def _undo_last(workspace: Any) -> Change:
    return partial(_pets(workspace).undo)


def _redo(workspace: Any) -> Change:
    return partial(_pets(workspace).redo)


# Media and states


def _create(workspace: Any) -> Change:
    def change() -> None:
        workspace.create_dataset("new", _folder(workspace, "images"), "gist", wait=False).task.wait()

    return change


def _add(workspace: Any) -> Change:
    return partial(_pets(workspace).add_media, _folder(workspace, "more"))


def _add_and_index(workspace: Any) -> Change:
    return partial(_pets(workspace).add_media, _folder(workspace, "more"), auto_reindex=True)


def _reindex(workspace: Any) -> Change:
    return partial(_pets(workspace).reindex, thresholds=(0.02, 0.05, 0.1, 0.2, 0.4))


def _fold(workspace: Any) -> Change:
    return partial(workspace.vacuum)


def _delete(workspace: Any) -> Change:
    return partial(_pets(workspace).delete_media, _ids(workspace, slice(10, 40)))


def _delete_few(workspace: Any) -> Change:
    return partial(_pets(workspace).delete_media, _ids(workspace, slice(50, 53)))


def _restore(workspace: Any) -> Change:
    dataset = _pets(workspace)
    return partial(dataset.restore, dataset.snapshots()[-1])


def _clone(workspace: Any) -> Change:
    return partial(_pets(workspace).clone)


def _create_others(workspace: Any) -> Change:
    return partial(workspace.create_dataset, "others", _folder(workspace, "more"), "gist")


def _merge(workspace: Any) -> Change:
    return partial(_pets(workspace).merge, workspace.dataset("others"), "both")


def _snapshot(workspace: Any) -> Change:
    return partial(_pets(workspace).snapshot, "kept")


def _delete_snapshot(workspace: Any) -> Change:
    dataset = _pets(workspace)
    return partial(dataset.delete_snapshot, dataset.snapshots()[-1])


# Uploads and saved views


def _transaction(workspace: Any, name: str = "pets") -> Any:
    dataset = workspace.dataset(name)
    return dataset.find_upload(dataset.uploads()[0].id)


def _open_upload(workspace: Any) -> Change:
    return partial(_pets(workspace).open_upload)


def _add_files(workspace: Any) -> Change:
    more = [(f"again-{name}", path) for name, path in _files(workspace)]
    return partial(_transaction(workspace).add, more)


def _discard(workspace: Any) -> Change:
    return partial(_transaction(workspace).discard)


def _process(workspace: Any) -> Change:
    def change() -> None:
        _transaction(workspace, "sent").process(encoder="gist", wait=False).wait()

    return change


def _process_more(workspace: Any) -> Change:
    return partial(_transaction(workspace).process)


def _save_view(workspace: Any) -> Change:
    dataset = _pets(workspace)
    return partial(dataset.save_view, "first", dataset.where([{"tags": {"op": "is", "value": ["first"]}}]))


def _delete_view(workspace: Any) -> Change:
    return partial(_pets(workspace).saved_view("png").delete)


def _evaluate(workspace: Any) -> Change:
    return partial(workspace.evaluate_views, "pets")


def _add_without_evaluation(workspace: Any) -> Change:
    """Return the addition of two batches by a process that does not evaluate saved views."""

    def change() -> None:
        workspace._context.runner.after_commit = None
        for kind in ("*.png", "*.jpg"):
            _pets(workspace).add_media(files=sorted(_folder(workspace, "more").glob(kind)))

    return change


def _after(*jobs: Job) -> Job:
    """Return a job that does some jobs one after another."""

    def job(workspace: Any) -> Change:
        return lambda: [each(workspace)() for each in jobs]

    return job


@dataclass(frozen=True)
class Kind:
    """A kind of job.

    Attributes:
        job: the job.
        before: a job that is done before, by a process that nobody kills.
        makes: the name of the dataset that the job makes; empty if it changes the dataset "pets".
        waiting: what a second process does as soon as it gets the lease of the dataset.
        seems: ``large`` where it takes the way of large datasets, ``slow`` where rows are shown in a creation.
        shows: whether what the dataset shows differs after the job.
        folds: whether edits are in layers before the job, and in no layers after it.
    """

    job: Job
    before: Job | None = None
    makes: str = ""
    waiting: Job | None = None
    seems: str = ""
    shows: bool = True
    folds: bool = False


KINDS: dict[str, Kind] = {
    "create": Kind(_create, makes="new"),
    "create, with early rows": Kind(_create, makes="new", seems="slow"),
    "add_media": Kind(_add),
    "add_media and reindex": Kind(_add_and_index),
    "reindex, which folds edits": Kind(_reindex, folds=True),
    "vacuum, which folds edits": Kind(_fold, folds=True),
    "vacuum, which folds deletions": Kind(_fold, _delete_few, seems="large", folds=True),
    "delete_media": Kind(_delete),
    "delete_media of few": Kind(_delete_few, seems="large"),
    "restore": Kind(_restore),
    "clone": Kind(_clone, makes="pets (cloned)"),
    "merge": Kind(_merge, _create_others, makes="both"),
    "snapshot": Kind(_snapshot),
    "delete_snapshot": Kind(_delete_snapshot, _snapshot),
    "tag": Kind(_tag),
    "tag, while another process waits": Kind(_tag, waiting=_put_others_aside),
    "rename_tag": Kind(_rename_tag),
    "delete_tag": Kind(_delete_tag),
    "set_labels": Kind(_label),
    "set_labels of many": Kind(_label_all, seems="large"),
    "set_captions": Kind(_caption),
    "edits of threads": Kind(_edit_by_threads),
    "edits of threads, while another process waits": Kind(_edit_by_threads, waiting=_put_others_aside),
    "basket": Kind(_put_aside),
    "add_field": Kind(_add_field),
    "set_field": Kind(_set_field),
    "delete_field": Kind(_delete_field),
    "set_limits": Kind(_limit),
    "not_duplicates": Kind(_decide),
    "withdraw_decision of duplicates": Kind(_withdraw, _decide),
    "label_is_right": Kind(_is_right),
    "withdraw_decision of labels": Kind(_withdraw, _is_right),
    "undo": Kind(_undo),
    "redo": Kind(_redo, _undo),
    "undo of a deletion": Kind(_undo_last, _delete),
    "redo of a deletion": Kind(_redo, _after(_delete, _undo_last)),
    "open_upload": Kind(_open_upload),
    "add to an upload": Kind(_add_files),
    "discard an upload": Kind(_discard),
    "process a draft": Kind(_process, makes="sent"),
    "process an addition": Kind(_process_more),
    "save_view": Kind(_save_view),
    "delete a saved view": Kind(_delete_view),
    "evaluate_views": Kind(_evaluate, _add_without_evaluation, shows=False),
}
