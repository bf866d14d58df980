"""The state of a workspace after a job was killed: what it shows, whether it is whole, and how the job is finished."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from framedex import Conflict, Dataset, NotFound, Workspace
from framedex.api.workspace import workspace_of
from framedex.records import TaskRecord
from tests.inside import stored_media
from tests.kill.jobs import Kind

State = dict[str, Any]
_TASK_S = 120.0


@dataclass(frozen=True)
class Expected:
    """The states that a job begins with and leads to.

    Attributes:
        before: of the dataset "pets".
        made_before: of the dataset that the job makes; None if it does not exist.
        after: of the dataset that the job changes or makes.
        status: of that dataset at the end.
        views: its saved views at the end.
        tasks: ids of the tasks from before the job.
    """

    before: State | None
    made_before: State | None
    after: State | None
    status: str
    views: list[Any]
    tasks: frozenset[str]


@dataclass
class Outcome:
    """An outcome of a killed job.

    Attributes:
        happened: ``done``, ``not done``, or ``retried``.
        faults: what was wrong.
    """

    happened: str
    faults: list[str] = field(default_factory=list)


def task_ids(workspace: Workspace) -> frozenset[str]:
    """Return the ids of the tasks of a workspace."""
    return frozenset(task.task_id for task in workspace.tasks(page_size=50).tasks)


def check_outcome(workspace: Workspace, kind: Kind, expected: Expected) -> Outcome:
    """Check a workspace in which a job was killed, finish the job, and compare with an undisturbed run."""
    target, faults = kind.makes or "pets", []
    tasks = [task for task in workspace.tasks(page_size=50).tasks if task.task_id not in expected.tasks]
    state = state_of(workspace, target, kind)
    outcome = Outcome("done" if state == expected.after else "not done")
    faults += _faults_before_retry(workspace, kind, expected, state, tasks)
    if faults:  # the job may fail in a wrong state, which would hide what is wrong
        return Outcome(outcome.happened, faults)
    if tasks and tasks[0].status == "FAILED":
        outcome.happened = "retried"
        workspace.task(tasks[0].task_id).retry()
        workspace.task(tasks[0].task_id).wait(_TASK_S)
    elif outcome.happened == "not done":
        kind.job(workspace)()
    state = state_of(workspace, target, kind)
    if state != expected.after:
        faults.append(f"the end differs from that of an undisturbed run: {difference(state, expected.after)}")
    if kind.makes and state_of(workspace, "pets", kind) != expected.before:
        faults.append("the other dataset is not as it was")
    if (status := str(workspace.dataset(target).info.status_new)) != expected.status:
        faults.append(f"at the end the status is {status}, not {expected.status}")
    workspace.evaluate_views()
    if (views := views_of(workspace.dataset(target))) != expected.views:
        faults.append(f"the saved views show {views}, not {expected.views}")
    outcome.faults = [*faults, *_faults_in_use(workspace.dataset(target))]
    return outcome


def _faults_before_retry(
    workspace: Workspace, kind: Kind, expected: Expected, state: State | None, tasks: list[TaskRecord]
) -> list[str]:
    before = expected.made_before if kind.makes else expected.before
    faults = [f"check: {finding}" for finding in workspace.check().findings]
    if state not in (before, expected.after):
        faults.append(
            f"a state between before ({difference(state, before)}) and after ({difference(state, expected.after)})"
        )
    if len(tasks) > 1:
        faults.append(f"{len(tasks)} tasks")
    for task in tasks:
        done = state == expected.after and task.status == "COMPLETED"
        failed = task.status == "FAILED" and task.error_message == "interrupted" and state == before
        if not (done or failed):
            faults.append(f"the task is {task.status} ({task.error_message!r}), the state is not that")
    for record in workspace.datasets():
        others = ("READY", "PARTIAL INDEX") if record.display_name in ("pets", "both") else ("READY", "DRAFT")
        allowed = (*others, "ERROR") if record.display_name != "pets" else others
        if record.status_new not in allowed:
            faults.append(f"{record.display_name} is {record.status_new}")
    return faults


def state_of(workspace: Workspace, name: str, kind: Kind) -> State | None:
    """Return all that a dataset shows, by the paths of its media; None where there is nothing to see.

    Where two processes edit at once, either may be first: then steps of the journal have no number.
    """
    try:
        dataset = workspace.dataset(name)
    except NotFound:
        return None
    uploads = [[each.id, each.n_files, str(each.state) == "done"] for each in dataset.uploads()]
    state = _contents(dataset, kind)
    if state is None and not uploads:
        return None
    shown: State = json.loads(json.dumps({"uploads": uploads, **(state or {})}))
    return shown


def _contents(dataset: Dataset, kind: Kind) -> State | None:
    """Return what a dataset shows beside its uploads; None before its first commit."""
    try:
        media = stored_media(dataset)
    except (NotFound, Conflict):
        return None
    hidden = {"media_id", "batch", "modified_at"}
    columns = [column for column in media.table.schema.names if column not in hidden]
    rows = media.table.scan(columns).read_all()
    ids = media.table.scan(["media_id", "path"]).read_all()
    paths = dict(zip(ids["media_id"].to_pylist(), ids["path"].to_pylist(), strict=True))
    journal = [[step.step, step.operation, step.undone_at is not None] for step in dataset.journal()]
    state = {
        "rows": {name: _digest(rows.column(name)) for name in columns},
        "count": dataset.info.n_images,
        "tags": sorted((tag.name, tag.count) for tag in dataset.tags()),
        "fields": sorted(each.field_name for each in dataset.fields()),
        "limits": {name: each.limit for name, each in dataset.limits.items() if each.is_set},
        "decisions": [sorted(paths[each] for each in made.media_ids) for made in dataset.duplicate_decisions()],
        "labels that are right": [
            [paths.get(each, each), labels]
            for made in dataset.label_decisions()
            for each, labels in zip(made.media_ids, made.labels, strict=True)
        ],
        "basket": sorted(paths[each] for each in dataset.basket.media_ids()),
        "journal": journal if kind.waiting is None else sorted(step[1:] for step in journal),
        "snapshots": sorted(f"{each.reason} {each.n_images}" for each in dataset.snapshots()),
        "sources beside": [Path(each.source).parent == workspace_of(dataset).path.parent for each in dataset.sources()],
        "views": sorted(each.name for each in dataset.views()),
    }
    return {**state, "has layers": bool(media.table.overlay.layers)} if kind.folds else state


def views_of(dataset: Dataset) -> list[Any]:
    """Return what the saved views of a dataset show, and their alerts."""
    shown = [
        [each.name, each.record.total_results, [[point.batch, point.count] for point in each.trend().points]]
        for each in dataset.views()
    ]
    return [*sorted(shown), *sorted([alert.view_name, alert.result_count] for alert in dataset.alerts())]


def _digest(values: Any) -> str:
    """Return a digest of the values of a column: floats to four places, of times only where they are."""
    values, shape = values.combine_chunks(), hashlib.blake2b(digest_size=8)
    while pa.types.is_list(values.type) or pa.types.is_fixed_size_list(values.type):
        shape.update(repr(pc.list_value_length(values).to_pylist()).encode())
        values = values.flatten()
    if pa.types.is_floating(values.type):
        shape.update(pc.round(values, 4).to_numpy(zero_copy_only=False).tobytes())
        return shape.hexdigest()
    if pa.types.is_timestamp(values.type):
        values = values.is_valid()
    shape.update(repr(values.to_pylist()).encode())
    return shape.hexdigest()


def difference(state: Mapping[str, Any] | None, other: Mapping[str, Any] | None) -> str:
    """Return the parts in which two states differ."""
    if state is None or other is None:
        return "the same" if state is other else f"{'nothing' if state is None else 'something'} is there"
    parts = [key for key in sorted({*state, *other}) if state.get(key) != other.get(key)]
    if "rows" in parts:
        of_state, of_other = state.get("rows", {}), other.get("rows", {})
        parts += [name for name in sorted({*of_state, *of_other}) if of_state.get(name) != of_other.get(name)]
    more = f" and {len(parts) - 8} more" if len(parts) > 8 else ""
    return f"{', '.join(parts[:8])}{more}" or "the same"


def _faults_in_use(dataset: Dataset) -> list[str]:
    """Try what people do with a dataset; return what does not work or does not add up."""
    faults = []
    sizes = [sum(cluster.n_images for cluster in dataset.explore(level=level).clusters) for level in range(5)]
    if set(sizes) != {dataset.count()} and dataset.count() <= 100:
        faults.append(f"clusters of {sizes} media, of {dataset.count()}")
    if dataset.to_arrow().num_rows != dataset.info.n_images:
        faults.append(f"{dataset.to_arrow().num_rows} rows, of {dataset.info.n_images}")
    dataset.issues()
    dataset.duplicates()
    dataset.read(dataset.to_arrow(["media_id"])["media_id"][0].as_py())
    return faults
