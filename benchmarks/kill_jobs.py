"""Jobs of the kill test, the workspace with which they begin, and what is done before some of them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

IMAGES, ADDED = 160, 60
_SIDE = 96


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
        dataset.set_labels(ids[:40], ["cat"])
        dataset.set_labels(ids[40:80], ["dog"])
        dataset.tag(ids[:10], "first")
        dataset.add_field("score", "float", values=dict.fromkeys(ids[:20], 1.0))
        files = [(path.name, path) for path in sorted((folder / "more").iterdir())]
        for transaction in (workspace.create_draft("sent").open_upload(), dataset.open_upload()):
            transaction.add(files[:40])
            transaction.add(files[30:])


def _folder(workspace: Any, name: str) -> Path:
    return workspace.path.parent / name


def _create(workspace: Any) -> None:
    workspace.create_dataset("new", _folder(workspace, "images"), "gist", wait=False).task.wait()


def _add(workspace: Any) -> None:
    workspace.dataset("pets").add_media(_folder(workspace, "more"))


def _add_and_index(workspace: Any) -> None:
    workspace.dataset("pets").add_media(_folder(workspace, "more"), auto_reindex=True)


def _reindex(workspace: Any) -> None:
    workspace.dataset("pets").reindex(thresholds=(0.02, 0.05, 0.1, 0.2, 0.4))


def _delete(workspace: Any) -> None:
    dataset = workspace.dataset("pets")
    dataset.delete_media(dataset.to_arrow(["media_id"])["media_id"].to_pylist()[10:50])


def _restore(workspace: Any) -> None:
    dataset = workspace.dataset("pets")
    dataset.restore(dataset.snapshots()[-1])


def _clone(workspace: Any) -> None:
    workspace.dataset("pets").clone()


def _field(workspace: Any) -> None:
    dataset = workspace.dataset("pets")
    ids = dataset.to_arrow(["media_id"])["media_id"].to_pylist()
    dataset.set_field("score", {media_id: float(place) for place, media_id in enumerate(ids)})


def _tag(workspace: Any) -> None:
    dataset = workspace.dataset("pets")
    dataset.tag(dataset.to_arrow(["media_id"])["media_id"].to_pylist()[::2], "even")


def _label(workspace: Any) -> None:
    dataset = workspace.dataset("pets")
    dataset.set_labels(dataset.to_arrow(["media_id"])["media_id"].to_pylist()[::3], ["third"])


def _decide(workspace: Any) -> None:
    dataset = workspace.dataset("pets")
    groups = sorted(dataset.duplicates(), key=lambda group: group.paths)
    dataset.not_duplicates(groups[0].media_ids)


def _undo(workspace: Any) -> None:
    dataset = workspace.dataset("pets")
    dataset.undo(next(each.step for each in dataset.journal() if each.operation == "set_labels"))


def _delete_few(workspace: Any) -> None:
    dataset = workspace.dataset("pets")
    dataset.delete_media(dataset.to_arrow(["media_id"])["media_id"].to_pylist()[50:53])


def _fold(workspace: Any) -> None:
    workspace.vacuum()


def _reindex_edits(workspace: Any) -> None:
    from framedex.operations.context import open_media

    dataset = workspace.dataset("pets")
    assert open_media(dataset._context, dataset.id).table.overlay.layers, "there are edits to fold"
    dataset.reindex(thresholds=(0.02, 0.05, 0.1, 0.2, 0.4))
    assert not open_media(dataset._context, dataset.id).table.overlay.layers, "the reindex folded them"


def _label_many(workspace: Any) -> None:
    dataset = workspace.dataset("pets")
    dataset.set_labels(dataset.where([]), ["pet"])


def _redo(workspace: Any) -> None:
    workspace.dataset("pets").redo()


def _undo_last(workspace: Any) -> None:
    workspace.dataset("pets").undo()


def _is_right(workspace: Any) -> None:
    dataset = workspace.dataset("pets")
    dataset.label_is_right(dataset.where([{"labels": {"op": "is", "value": "cat"}}]))


def _withdraw(workspace: Any) -> None:
    dataset = workspace.dataset("pets")
    for decision in dataset.label_decisions():
        dataset.withdraw_decision(decision.decision_id)


def _put_aside(workspace: Any) -> None:
    dataset = workspace.dataset("pets")
    dataset.basket.add(dataset.to_arrow(["media_id"])["media_id"].to_pylist()[::2])


def _evaluate(workspace: Any) -> None:
    workspace.evaluate_views("pets")


def _add_unevaluated(workspace: Any) -> None:
    """Save views, and add media as a process that is killed before it evaluates them."""
    dataset = workspace.dataset("pets")
    dataset.save_view("all")
    dataset.save_view("unlabelled", dataset.where([{"not": {"labels": {"op": "one_of", "value": ["cat", "dog"]}}}]))
    dataset.save_view("png", dataset.where([{"file_name": {"op": "ends", "value": ".png"}}]))
    workspace._context.runner.after_commit = None
    for kind in ("*.png", "*.jpg"):
        dataset.add_media(files=sorted(_folder(workspace, "more").glob(kind)))


def _snapshot(workspace: Any) -> None:
    workspace.dataset("pets").snapshot("kept")


def _process(workspace: Any) -> None:
    dataset = workspace.dataset("sent")
    transaction = dataset.find_upload(dataset.uploads()[0].id)
    transaction.process(encoder="gist", wait=False).wait()


def _process_more(workspace: Any) -> None:
    dataset = workspace.dataset("pets")
    dataset.find_upload(dataset.uploads()[0].id).process()


JOBS: dict[str, Callable[[Any], None]] = {
    "create": _create,
    "add_media": _add,
    "add_media and reindex": _add_and_index,
    "reindex": _reindex,
    "delete_media": _delete,
    "restore": _restore,
    "clone": _clone,
    "set_field": _field,
    "tag": _tag,
    "set_labels": _label,
    "not_duplicates": _decide,
    "snapshot": _snapshot,
    "undo": _undo,
    "delete_media of few": _delete_few,
    "reindex, which folds edits": _reindex_edits,
    "set_labels of many": _label_many,
    "redo": _redo,
    "undo of a deletion": _undo_last,
    "redo of a deletion": _redo,
    "label_is_right": _is_right,
    "withdraw_decision of labels": _withdraw,
    "basket": _put_aside,
    "evaluate_views": _evaluate,
    "tag, while another process waits": _tag,
    "vacuum, which folds edits": _fold,
    "process a draft": _process,
    "process an addition": _process_more,
}
MAKES = {"create": "new", "clone": "pets (cloned)", "process a draft": "sent"}
"""The datasets that jobs make, by job."""
BEFORE: dict[str, Callable[[Any], None]] = {
    "redo": _undo,
    "undo of a deletion": _delete,
    "redo of a deletion": lambda workspace: (_delete(workspace), _undo_last(workspace))[0],
    "withdraw_decision of labels": _is_right,
    "evaluate_views": _add_unevaluated,
}
"""What is done before a job, by a process that nobody kills."""
OF_FEW, OF_MANY, AGAIN = "delete_media of few", "set_labels of many", "evaluate_views"
"""Jobs that take the way of large datasets, and the one that is done again whatever happened."""
WAITING: dict[str, Callable[[Any], None]] = {"tag, while another process waits": _put_aside}
"""What a second process does as soon as it gets the lease of the dataset, which the killed one held."""
