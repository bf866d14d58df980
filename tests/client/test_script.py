"""One script against a folder and against a service: the same results, after one change."""

import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pydantic import BaseModel

from framedex import Client, Workspace
from tests.service.template import copied

READING = """
from framedex import vql

ds = ws.dataset("pets")
show("name", ds.name, ds.id, ds.generation, ds.info)
show("count", ds.count(), ds.view.count(), len(ds.view), ds.objects.count())
show("table", ds.to_arrow())
towns = ds.where([{"labels": {"op": "is", "value": "town"}}])
show("filter", towns.to_arrow(), towns.media_ids(), towns.where(~vql.labels("animal")).ids)
show("columns", ds.to_arrow(["media_id", "path", "blur"]), list(towns.rows(["media_id", "labels"])))
widest = ds.view.sort_by("width", descending=True)
show("sort", widest.ids, widest.limit(5).ids, widest[3:9].ids, widest[4], widest[-1], widest.first(2))
show("window", widest[2:20][3:7].ids, widest[5:].limit(2).ids, widest[-3:].ids, widest.limit(0).ids)
show("again", widest.limit(9).where(vql.labels("town")).ids, widest.limit(9).sort_by("media_id").ids)
some = ds.view.sample(12, seed=3)
show("sample", some.ids, some[2:9].ids, some[1], some.sort_by("width").limit(4).ids)
show("samples", some.sample(5).ids, towns.sample(2).ids)
halves = towns.split({"train": 0.5, "val": 0.5}, seed=4)
show("split", {name: each.ids for name, each in halves.items()}, ds.view.split({"a": 0.9, "b": 0.1})["b"].ids)
show("strata", [each[1:].ids for each in ds.view.split({"a": 0.6, "b": 0.4}, stratify="labels").values()])
few = widest.limit(8)
show("objects", few.objects.ids, few.objects.objects.count(), few.objects[1:].where(vql.labels("town")).count())
show("within", few.search("street").ids, some.similar(ds.view.media_ids()[3], 4).search("street").ids)
show("selected", few.select(few.ids[2:0:-1]).ids)
show("search", ds.search("street").to_arrow(), ds.search("street", 3, by="words").ids, towns.search("street").ids)
show("similar", ds.similar(ds.view.media_ids()[3], 7).to_arrow(), towns.similar(ds.view.media_ids()[3], 4).ids)
show("box", ds.similar(ds.view.media_ids()[3], 4, bounding_box=(1, 2, 40, 30)).ids)
show("select", ds.select(ds.view.media_ids()[8:4:-1]).ids, towns.select(towns.media_ids()[2:0:-1]).ids)
show("embeddings", *ds.embeddings(), *widest.limit(4).embeddings())
twins = ds.duplicates(exact=True)[0].media_ids
show("copies", ds.copies_of(twins[0]), ds.copies_of(twins[0], 1.0), ds.copies_of(twins[0], bounding_box=(9, 9, 99, 80)))
show("labels", ds.labels(), towns.labels())
show("issues", ds.issues().to_arrow(), ds.issues("duplicates", limit=1).to_arrow(), ds.issues().notes)
show("summaries", ds.view.issue_summaries(), towns.issue_summaries())
show("histogram", ds.histogram("blur", bins=5), ds.view.histogram("dark"))
show("duplicates", list(ds.duplicates()), list(ds.duplicates(exact=True, limit=1)), ds.duplicates().to_arrow())
chosen = towns.diverse(3, seed=1)
show("diverse", chosen.ids, chosen.coverage(), chosen.n_covered, chosen.n_without_embedding, chosen.mean_similarity)
show("card", ds.card())
parts = ds.view.sort_by("path")[:20], ds.view.sort_by("path")[20:]
leaks = parts[0].overlap(parts[1])
show("overlap", leaks.to_arrow(), leaks.view.ids, leaks.other_view.ids, leaks.count(), leaks.other_count(), repr(leaks))
show("exact", ds.overlap(parts[0], exact=True).to_arrow(), ds.overlap(parts[0], 0.99).view.count())
show("limits", ds.limits, ds.tags(), ds.fields(), ds.journal(), ds.basket.count())
plan = ds.plan_cleanup(duplicates=0.96, issues=["dark"])
show("plan", plan.to_arrow(), plan.summary, plan.words, len(plan))
show("map", ds.map(), ds.map("OBJECTS"), ds.map("VIDEOS"), ds.start_map().wait().status)
"""
EDITING = """
ds = ws.dataset("pets")
ids = ds.view.media_ids()
towns = ds.where([{"labels": {"op": "is", "value": "town"}}])
show("tag", ds.tag(towns, "seen"), ds.tag(ids[0], "seen"), ds.tag(ids[1:3], "other"), towns.tag("third"))
show("untag", ds.untag(ids[0], "seen"), towns.untag("third"), ds.tags())
show("rename", ds.rename_tag("other", "another"), ds.create_tag("empty"))
ds.delete_tag("empty")
ds.set_labels(ids[:2], ["a", "b"])
ds.set_labels({ids[2]: ["c"], ids[3]: []})
ds.set_captions({ids[0]: "one", ids[1]: None})
show("edited", ds.to_arrow(["media_id", "labels", "caption", "tags"]))
result = ds.add_field("score", "float", values={ids[0]: 1.5, ids[1]: "x"})
show("field", result.inserted_rows, result.error_count, result.sample_errors, ds.fields())
show("set", ds.set_field("score", {ids[2]: 2}).inserted_rows, ds.rename_field("score", "mark"))
show("values", ds.to_arrow(["mark"]))
ds.delete_field("mark")
ds.basket.add(ids[:5])
ds.basket.remove(ids[1])
show("basket", ds.basket.ids, ds.basket.count())
ds.basket.clear()
group = ds.duplicates()[0]
show("decision", ds.not_duplicates(group).media_ids, len(ds.duplicate_decisions()), list(ds.duplicates()))
ds.withdraw_decision(ds.duplicate_decisions()[0].decision_id)
show("withdrawn", ds.duplicate_decisions(), list(ds.duplicates()))
show("right", ds.label_is_right(towns[:2]).media_ids, len(ds.label_decisions()))
ds.set_limits(dark=0.9)
show("limits", ds.limits["dark"], ds.view.issue_summaries())
ds.reset_limits()
show("reset", ds.limits)
ds.delete_media(ids[5:7])
show("deleted", ds.count(), ds.journal(1)[0].operation)
show("undo", ds.undo().operation, ds.count(), ds.redo().operation, ds.count())
show("journal", [(each.step, each.operation, each.n_media) for each in ds.journal()])
ds.plan_cleanup(duplicates="exact").start().wait()
show("cleaned", ds.count())
"""
TASKS = """
ds = ws.dataset("pets")
show("datasets", [each.display_name for each in ws.datasets()], ws.dataset(ds.id).name)
show("tasks", ws.tasks(page_size=5), ws.task_filters(), ws.task(ws.tasks().tasks[0].task_id).record)
show("by status", ws.tasks(status="FAILED").total, ws.tasks(status="COMPLETED").total)
show("last", ds.last_task)
show("snapshots", [each.reason for each in ds.snapshots()])
made = ds.snapshot("before", description="all")
show("snapshot", made.snapshot_name, made.description, made.is_current)
ids = ds.view.media_ids()
ds.tag(ids[:3], "seen")
ds.set_labels(ids[2:4], ["new"])
ds.delete_media(ids[6:8])
found = ds.compare(made)
ds.tag(ids[10], "later")
show("compared", found.counts, found.to_arrow(), found.to_arrow("retagged", offset=1, limit=1))
show("named", repr(found).partition(":")[2])
show("changed", found.view("retagged").ids, found.view("added").count(), ds.compare("before").counts["retagged"])
show("same", ds.compare(made, made.snapshot_id).to_arrow(), ds.compare("current", "head").counts)
show("trends", [(each.name, each.n_images, each.issues, each.labels) for each in ds.trends()])
ds.restore(made)
show("restored", ds.tags(), ds.update_snapshot(made, name="after").snapshot_name)
ds.delete_snapshot(ds.snapshots()[-1])
show("deleted", [each.snapshot_name for each in ds.snapshots()])
copy = ds.clone()
show("clone", copy.name, copy.count())
copy.tag(copy.view.limit(2), "copied")
merged = copy.merge(ds, "both")
show("merged", merged.name, merged.count(), merged.to_arrow(["path", "tags"]), [each.name for each in merged.labels()])
copy.rename("copy")
show("renamed", ws.dataset("copy").name)
ws.delete_dataset("copy")
show("gone", [each.display_name for each in ws.datasets()])
"""
FILES = """
ds = ws.dataset("pets")
first = ds.media_id("animals/00.jpg")
show("media", first == ds.view.media_ids()[ds.view.media_ids().index(first)])
show("explore", [each.cluster_id for each in ds.explore(level=2).clusters], ds.explore("IMAGES", 3, caption="street")
     .clusters[0].n_images)
show("members", ds.explore(level=4).members(0).ids)
show("upload", ds.similar(image, 3).ids)
ds.export(folder / "all.zip")
ds.where([{"labels": {"op": "is", "value": "town"}}]).export(folder / "towns.zip", "csv")
ds.view.sort_by("width").limit(3).export(folder / "few.zip", "json")
task = ds.add_media(files=[("new.jpg", image)])
show("added", ds.count(), task.status, ds.info.status_new)
ds.reindex()
show("indexed", ds.info.status_new)
made = ws.create_dataset("more", folder / "images")
show("made", made.count(), made.info.status_new, sorted(made.to_arrow(["file_name"])["file_name"].to_pylist()))
"""


_MADE = {"tag_id", "field_id", "task_id", "snapshot_id", "decision_id", "created_at", "decided_at"}
"""Fields with values that are made at random, or by the clock."""


def plain(value: Any) -> Any:
    """Return a result as JSON would have it; tables by their columns, without paths of this machine and times."""
    if isinstance(value, pa.Table):
        return {name: plain(value[name].to_pylist()) for name in value.column_names if name != "file_path"}
    if isinstance(value, BaseModel):
        return {name: plain(each) for name, each in value if name not in _MADE}
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items() if key != "file_path"}
    if isinstance(value, datetime):
        return "a time"
    if isinstance(value, float):
        return None if value != value else value
    if isinstance(value, str | int | bool) or value is None:
        return value
    return [plain(each) for each in value]


def results_of(script: str, ws: Any, **names: Any) -> dict[str, Any]:
    """Run a script with a workspace or a client, and return what it showed."""
    shown: dict[str, Any] = {}

    def show(name: str, *values: Any) -> None:
        shown[name] = [plain(each) for each in values]

    exec(compile(script, "script", "exec"), {"ws": ws, "show": show, **names})
    return shown


@pytest.fixture
def folder(template: Path, tmp_path: Path) -> Iterator[Workspace]:
    """Another copy of the workspace, used as a folder."""
    with copied(template, tmp_path / "folder") as opened:
        yield opened


def compared(one: dict[str, Any], other: dict[str, Any]) -> None:
    """Check that two runs showed the same, step by step."""
    assert one.keys() == other.keys()
    for name, values in one.items():
        assert json.dumps(values, indent=1) == json.dumps(other[name], indent=1), name


def served(client: Client, *calls: str) -> None:
    """Skip a test whose routes are not served."""
    paths = client._connection._http.get(f"{client._connection.url}/api/v1/openapi.json").json()["paths"]
    missing = [each for each in calls if f"/api/v1{each}" not in paths]
    if missing:
        pytest.skip(f"not served yet: {', '.join(missing)}")


@pytest.mark.slow
@pytest.mark.parametrize("script", [READING, EDITING], ids=["reading", "editing"])
def test_script__of_results_and_edits(folder: Workspace, client: Client, script: str) -> None:
    """Reading and editing have the same results against a folder and against a service."""
    served(client, "/datasets")
    compared(results_of(script, folder), results_of(script, client))


@pytest.mark.slow
def test_script__of_tasks_and_snapshots(folder: Workspace, client: Client) -> None:
    """Tasks, snapshots, clones and deletions have the same results."""
    served(client, "/datasets", "/tasks", "/dataset/{dataset_id}/snapshot")
    compared(results_of(TASKS, folder), results_of(TASKS, client))


@pytest.mark.slow
def test_script__of_files(folder: Workspace, client: Client, template: Path, tmp_path: Path) -> None:
    """Explore, exports, uploads and new datasets have the same results."""
    served(client, "/explore/{dataset_id}", "/dataset/{dataset_id}/export_context_async", "/ingestion/new_dataset")
    images = template.parent / "gallery" / "towns"
    image = (template.parent / "gallery" / "animals" / "01.jpg").read_bytes()
    shown = []
    for name, ws in (("one", folder), ("two", client)):
        target = tmp_path / name
        target.mkdir()
        (target / "images").symlink_to(images)
        shown.append(results_of(FILES, ws, folder=target, image=image))
        assert sorted(each.name for each in target.glob("*.zip")) == ["all.zip", "few.zip", "towns.zip"]
    compared(*shown)
