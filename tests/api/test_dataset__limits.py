"""Limits of issues that users set: they hold at once, everywhere and for good, until they are reset."""

import re
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from framedex import Conflict, Dataset, InvalidInput, NotIndexed, ReadOnly, Workspace, vql
from framedex.issue_types import issue_types, valued_types
from framedex.records import DUPLICATE_LEVELS, DatasetStatus
from tests.enrichments import ENCODE, TAG, Hues, register_models
from tests.gallery import SETTINGS, Gate, make_gallery
from tests.growth import columns_of, families, ids_of, part
from tests.image_files import encode, photo
from tests.inside import without_reserved_names
from tests.objects import paint_scenes, scenes, write_table
from tests.prepared import prepared
from tests.processes import finish, start

ISSUE_COLUMNS = [each.confidence_column for each in issue_types().values()]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The images of the gallery."""
    make_gallery(tmp_path / "images")
    return tmp_path / "images"


@pytest.fixture
def dataset(workspace: Workspace, folder: Path) -> Dataset:
    """A dataset of the gallery, to be changed."""
    return workspace.create_dataset("d", folder)


def values_of(dataset: Dataset, name: str) -> dict[str, float | None]:
    """Return the values of an issue type by media id."""
    rows = dataset.to_arrow(["media_id", name])
    return dict(zip(rows["media_id"].to_pylist(), rows[name].to_pylist(), strict=True))


def with_issue(dataset: Dataset, name: str) -> set[str]:
    """Return the media with an issue, after checking that all that reads issues agrees."""
    ids = set(dataset.issues(name)["media_id"].to_pylist())
    assert set(dataset.where(vql.issues(name)).media_ids()) == ids
    assert {each.issue_type: each.count for each in dataset.where([]).issue_summaries()}[name] == len(ids)
    rows = dataset.to_arrow(["media_id", "issues"]).to_pylist()
    assert {row["media_id"] for row in rows if name in {each["issue_type"] for each in row["issues"]}} == ids
    if ids and name != "duplicates":  # a plan has another way to remove these
        rows = dataset.plan_cleanup(issues=[name]).to_arrow().to_pylist()
        removed = {row["media_id"] for row in rows if row["action"] == "remove"}
        last_copies = {row["media_id"] for row in rows if row["action"] != "remove"} & ids
        assert (removed | last_copies, removed & last_copies) == (ids, set())
    return ids


def middle(values: Sequence[float | None]) -> float:
    """Return a limit between two values that divides them into halves."""
    known = sorted({each for each in values if each is not None})
    return (known[len(known) // 2 - 1] + known[len(known) // 2]) / 2


@pytest.mark.slow
@pytest.mark.parametrize("name", ["blur", "bright", "odd_aspect_ratio", "odd_size", "outliers", "low_information"])
def test_set_limits__decides_the_issues(dataset: Dataset, name: str) -> None:
    """Exactly the media with a value beyond the limit have the issue; a reset restores all confidences."""
    before = columns_of(dataset, ISSUE_COLUMNS)
    values, above = values_of(dataset, name), issue_types()[name].above
    limit = middle(list(values.values()))
    dataset.set_limits(**{name: limit})
    expected = {
        media_id
        for media_id, value in values.items()
        if value is not None and (value > np.float32(limit) if above else value < np.float32(limit))
    }
    assert 0 < len(expected) < len(values)
    assert with_issue(dataset, name) == expected
    assert dataset.where(vql.quality(name, "gt" if above else "lt", limit)).media_ids() == [
        media_id for media_id in values if media_id in expected
    ]
    assert dataset.where(vql.quality(name, "missing")).media_ids() == [
        media_id for media_id, value in values.items() if value is None
    ]
    rows = dataset.issues(name)
    assert set(rows["threshold"].to_pylist()) == {float(np.float32(limit))}
    assert all(0.5 <= each <= 1 for each in rows["confidence"].to_pylist())
    assert values_of(dataset, name) == values
    others = [each for each in ISSUE_COLUMNS if each != f"issue_{name}"]
    assert columns_of(dataset, others) == {each: before[each] for each in others}
    dataset.reset_limits(name)
    assert columns_of(dataset, ISSUE_COLUMNS) == before


@pytest.mark.slow
@pytest.mark.parametrize("limits", [{"blur": 0.7, "odd_size": 0.2}, {"duplicates": 0.99, "outliers": 0.01, "dark": 0}])
def test_set_limits__equals_a_reindex(dataset: Dataset, limits: dict[str, float]) -> None:
    """A reindex under the limits writes the issues that setting them wrote, and they are still set."""
    dataset.set_limits(**limits)
    before = columns_of(dataset, ISSUE_COLUMNS)
    dataset.add_media(files=[("extra.png", b"no image")])
    dataset.delete_media(ids_of_name(dataset, "extra.png"))
    dataset.reindex()
    assert columns_of(dataset, ISSUE_COLUMNS) == before
    assert {name: each.limit for name, each in dataset.limits.items() if each.is_set} == limits


def ids_of_name(dataset: Dataset, name: str) -> list[str]:
    """Return the ids of the media with a file name."""
    return dataset.where(vql.file_name("is", name)).media_ids()


@pytest.mark.slow
def test_set_limits__of_duplicates(dataset: Dataset) -> None:
    """The limit of near-duplicates is one of the levels; the members of its groups have the issue."""
    for level in DUPLICATE_LEVELS:
        dataset.set_limits(duplicates=level)
        members = {media_id for group in dataset.duplicates(level) for media_id in group.media_ids}
        assert with_issue(dataset, "duplicates") == members
    assert 0 < len(members) < len(dataset.duplicates(0.96)) * 3


@pytest.mark.slow
def test_set_limits__of_duplicates_and_decisions(workspace: Workspace) -> None:
    """Decisions about duplicates use the limit, too."""
    copy, near = np.eye(8)[0], np.eye(8)[0] + 0.15 * np.eye(8)[1]
    dataset = workspace.create_dataset("d", part([copy.tolist(), copy.tolist(), copy.tolist(), near.tolist()]))
    ids = ids_of(dataset)
    dataset.set_limits(duplicates=0.999)
    assert with_issue(dataset, "duplicates") == {ids["0.jpg"], ids["1.jpg"], ids["2.jpg"]}
    decision = dataset.not_duplicates([ids["0.jpg"], ids["1.jpg"]])
    remaining = with_issue(dataset, "duplicates")
    assert len(remaining) == 2
    assert ids["3.jpg"] not in remaining
    dataset.withdraw_decision(decision.decision_id)
    assert with_issue(dataset, "duplicates") == {ids["0.jpg"], ids["1.jpg"], ids["2.jpg"]}


def labelled(workspace: Workspace) -> Dataset:
    """Return a dataset of two crowds, in which some labels are of the other crowd."""
    rng = np.random.default_rng(5)
    crowds = np.repeat(np.eye(16)[:2], 30, axis=0) + 0.05 * rng.standard_normal((60, 16))
    dataset = workspace.create_dataset("labels", part(crowds.tolist()))
    ids = ids_of(dataset)
    labels = ["left"] * 30 + ["right"] * 30
    labels[3], labels[40] = "right", "left"
    dataset.set_labels({ids[f"{number}.jpg"]: [label] for number, label in enumerate(labels)})
    return dataset


@pytest.mark.slow
def test_set_limits__of_labels(workspace: Workspace) -> None:
    """The limits of both issues about labels hold at once and after edits of labels."""
    dataset = labelled(workspace)
    wrong = with_issue(dataset, "mislabels")
    assert len(wrong) == 2
    before = columns_of(dataset, [*ISSUE_COLUMNS, "suggested_label", "label_support", "label_distance"])
    dataset.set_limits(mislabels=0, label_outlier=0.5)
    assert with_issue(dataset, "mislabels") == set()
    values = values_of(dataset, "label_outlier")
    expected = {media_id for media_id, value in values.items() if value is not None and value > 0.5}
    assert len(expected) > 2
    assert with_issue(dataset, "label_outlier") == expected
    assert columns_of(dataset, ["suggested_label"])["suggested_label"] == [None] * 60
    dataset.set_labels(dataset.issues("label_outlier")["media_id"].to_pylist()[:1], ["left"])
    assert with_issue(dataset, "mislabels") == set()
    dataset.reset_limits("mislabels")
    assert len(with_issue(dataset, "mislabels")) in (1, 2)
    dataset.reset_limits()
    dataset.set_labels(dataset.where([]).media_ids()[3], ["right"])
    dataset.set_labels(dataset.where([]).media_ids()[40], ["left"])
    after = columns_of(dataset, list(before))
    assert after["issue_mislabels"] == before["issue_mislabels"]


@pytest.mark.slow
def test_limits__list(dataset: Dataset) -> None:
    """All issue types with a value are listed, with default and current limit."""
    listed = dataset.limits
    assert list(listed) == sorted(valued_types())
    assert "corrupted" not in listed
    assert not any(each.is_set for each in listed.values())
    assert all(each.limit == each.default for each in listed.values())
    assert listed["blur"].default == issue_types()["blur"].threshold
    fence = listed["outliers"].default
    assert fence is not None
    dataset.set_limits(blur=0.5, outliers=np.float32(0.25))
    dataset.set_limits(dark=0.1)
    changed = dataset.limits
    assert {name: (each.limit, each.is_set) for name, each in changed.items() if each.is_set} == {
        "blur": (0.5, True),
        "dark": (0.1, True),
        "outliers": (0.25, True),
    }
    assert {name: each.default for name, each in changed.items()} == {n: each.default for n, each in listed.items()}
    dataset.set_limits(blur=None)
    assert [name for name, each in dataset.limits.items() if each.is_set] == ["dark", "outliers"]
    dataset.reset_limits()
    assert dataset.limits == listed


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"ugly": 0.4}, "no issue 'ugly'; those with a value: blur, bright, dark, "),
        ({"corrupted": 0.4}, "the issue 'corrupted' has no value and no limit; those with a value: blur, "),
        ({"corrupted": None}, "the issue 'corrupted' has no value and no limit"),
        ({"blur": float("nan")}, "the limit of 'blur' must be a finite number from 0 to 1, not nan"),
        ({"blur": float("inf")}, "the limit of 'blur' must be a finite number from 0 to 1, not inf"),
        ({"blur": 1.5}, "the limit of 'blur' must be a finite number from 0 to 1, not 1.5"),
        ({"blur": -0.1}, "must be a finite number from 0 to 1, not -0.1"),
        ({"blur": "0.4"}, "must be a finite number from 0 to 1, not '0.4'"),
        ({"blur": True}, "must be a finite number from 0 to 1, not True"),
        ({"blur": 10**400}, "must be a finite number from 0 to 1, not 1000"),
        ({"outliers": -1}, "the limit of 'outliers' must be a finite number from 0, not -1"),
        ({"outliers": 1e300}, "the limit of 'outliers' must be a finite number from 0, not 1e"),
        ({"duplicates": 0.5}, "the limit of 'duplicates' must be a finite number from 0.96 to 1, not 0.5"),
        ({"duplicates": 0.975}, "must be one of 0.96, 0.97, 0.98, 0.985, 0.99, 0.995, 0.999, 1.0, not 0.975"),
        ({"blur": 0.4, "dark": 2}, "the limit of 'dark' must be a finite number from 0 to 1, not 2"),
        ({}, "set_limits needs the limit of an issue type, as in set_limits(blur=0.4)"),
    ],
)
def test_set_limits__errors(workspace: Workspace, limits: dict[str, Any], message: str) -> None:
    """A limit that cannot be is refused with its value and what would be right; nothing changes."""
    dataset = prepared(workspace, "d", part(families(4)))
    before = dataset.limits
    with pytest.raises(InvalidInput, match=re.escape(message)):
        dataset.set_limits(**limits)
    assert dataset.limits == before
    with pytest.raises(InvalidInput, match="no issue 'ugly'"):
        dataset.reset_limits("blur", "ugly")


@pytest.mark.slow
def test_set_limits__that_change_nothing(dataset: Dataset) -> None:
    """The limits that are set already make no generation."""
    dataset.set_limits(blur=0.5)
    generation = dataset.where([])._media().generation.id
    dataset.set_limits(blur=0.5, dark=None)
    dataset.reset_limits("dark")
    assert dataset.where([])._media().generation.id == generation


@pytest.mark.slow
def test_limits__of_snapshots_clones_and_additions(workspace: Workspace, dataset: Dataset, folder: Path) -> None:
    """Snapshots and clones keep limits with their issues; additions and deletions use the current ones."""
    default = with_issue(dataset, "blur")
    first = dataset.snapshots()[0]
    limit = middle(list(values_of(dataset, "blur").values()))
    dataset.set_limits(blur=limit)
    issues = with_issue(dataset, "blur")
    second = dataset.snapshot("limited")
    copy = dataset.clone()
    assert copy.limits == dataset.limits
    assert len(with_issue(copy, "blur")) == len(issues)
    dataset.restore(first)
    assert not dataset.limits["blur"].is_set
    assert with_issue(dataset, "blur") == default
    dataset.restore(second)
    assert dataset.limits["blur"].limit == limit
    assert with_issue(dataset, "blur") == issues
    dataset.add_media(files=[("again.jpg", (folder / "animals/00.jpg").read_bytes()), ("new.png", encode(photo(99)))])
    assert dataset.info.status_new is DatasetStatus.PARTIAL_INDEX
    values = values_of(dataset, "blur")
    expected = {media_id for media_id, value in values.items() if value is not None and value < np.float32(limit)}
    assert with_issue_of_partial(dataset, "blur") == expected
    dataset.set_limits(blur=0)
    assert with_issue_of_partial(dataset, "blur") == set()
    assert dataset.info.status_new is DatasetStatus.PARTIAL_INDEX
    dataset.set_limits(blur=limit)
    dataset.delete_media(sorted(expected)[:1])
    assert with_issue_of_partial(dataset, "blur") == expected - set(sorted(expected)[:1])
    dataset.reindex()
    assert with_issue(dataset, "blur") == expected - set(sorted(expected)[:1])
    copy.reset_limits()
    assert len(with_issue(copy, "blur")) == len(default)


def with_issue_of_partial(dataset: Dataset, name: str) -> set[str]:
    """Return the media with an issue in a dataset that cannot be cleaned up yet."""
    return set(dataset.issues(name)["media_id"].to_pylist())


@pytest.mark.slow
def test_limits__survive_a_lost_catalog(workspace: Workspace, dataset: Dataset) -> None:
    """A recovered workspace has the limits of its manifests."""
    dataset.set_limits(blur=0.6)
    issues = with_issue(dataset, "blur")
    workspace.close()
    for name in ("catalog.db", "catalog.db-wal", "catalog.db-shm"):
        (workspace.path / name).unlink(missing_ok=True)
    Workspace.recover(workspace.path)
    with Workspace(workspace.path, settings=SETTINGS) as again:
        assert again.dataset("d").limits["blur"].limit == 0.6
        assert with_issue(again.dataset("d"), "blur") == issues
        assert again.check().is_sound


@pytest.mark.slow
def test_set_limits__in_a_read_only_workspace(workspace: Workspace, dataset: Dataset) -> None:
    """Limits can be read, not set, in a workspace opened for reading; another reader sees a change at once."""
    with Workspace(workspace.path, read_only=True, settings=SETTINGS) as reading:
        seen = reading.dataset("d")
        with pytest.raises(ReadOnly):
            seen.set_limits(blur=0.5)
        with pytest.raises(ReadOnly):
            seen.reset_limits()
        assert not seen.limits["blur"].is_set
        dataset.set_limits(blur=0.5)
        assert seen.limits["blur"].limit == 0.5
        assert with_issue_of_partial(seen, "blur") == with_issue(dataset, "blur")


@pytest.mark.slow
def test_set_limits__beside_a_task(workspace: Workspace, folder: Path) -> None:
    """A dataset that is created or changed by a task keeps its limits until the task ends."""
    gate = Gate()
    dataset = workspace.create_dataset("d", folder, gate, wait=False)
    assert gate.reached.wait(60)
    with pytest.raises((Conflict, NotIndexed)):
        dataset.set_limits(blur=0.5)
    gate.opened.set()
    assert dataset.task is not None
    dataset.task.wait()
    dataset.set_limits(blur=0.5)


SETTER = """
    import sys, framedex
    with framedex.Workspace(sys.argv[1]) as workspace:
        dataset = workspace.dataset("d")
        print("ready", flush=True)
        sys.stdin.readline()
        for number in range(6):
            dataset.set_limits(**{sys.argv[2]: 0.1 * (number + 1)})
"""


@pytest.mark.slow
def test_set_limits__by_two_processes(workspace: Workspace, dataset: Dataset) -> None:
    """Processes that set limits of two types at the same time both succeed, and no edit is lost."""
    setters = [start(SETTER, workspace.path, name) for name in ("blur", "dark")]
    for setter in setters:
        assert setter.stdout is not None
        assert setter.stdout.readline() == "ready\n"
    for setter in setters:
        assert setter.stdin is not None
        setter.stdin.write("\n")
        setter.stdin.flush()
    for setter in setters:
        finish(setter)
    assert (dataset.limits["blur"].limit, dataset.limits["dark"].limit) == pytest.approx((0.6, 0.6))
    values = values_of(dataset, "dark")
    expected = {media_id for media_id, value in values.items() if value is not None and value < np.float32(0.6)}
    assert with_issue(dataset, "dark") == expected
    assert workspace.check().is_sound


KILLED = """
    import os, sys, framedex
    from framedex.storage import datasets

    workspace = framedex.Workspace(sys.argv[1])
    datasets.put_head = lambda *_args: os._exit(9)
    workspace.dataset("d").set_limits(blur=0.9)
"""


@pytest.mark.slow
def test_set_limits__killed_before_the_commit(workspace: Workspace, dataset: Dataset) -> None:
    """Of an edit whose process ends after the tables were written nothing is visible, and the next one succeeds."""
    before = columns_of(dataset, ISSUE_COLUMNS)
    process = start(KILLED, workspace.path)
    process.communicate(timeout=120)
    assert process.returncode == 9
    assert not dataset.limits["blur"].is_set
    assert columns_of(dataset, ISSUE_COLUMNS) == before
    dataset.set_limits(dark=0.5)
    after = columns_of(dataset, ISSUE_COLUMNS)
    assert {name: after[name] for name in after if name != "issue_dark"} == {
        name: before[name] for name in before if name != "issue_dark"
    }
    assert workspace.check().is_sound


@pytest.mark.slow
def test_values__in_tables_and_exports(dataset: Dataset, tmp_path: Path) -> None:
    """The value of each issue type of each image is a column of tables and of Parquet files."""
    names = list(valued_types())
    table = dataset.to_arrow()
    assert [name for name in table.column_names if name in names] == names
    stored = columns_of(dataset, [str(issue.column) for issue in valued_types().values()])
    for name, issue in valued_types().items():
        assert table[name].to_pylist() == stored[str(issue.column)]
    assert table["blur"].null_count == len(dataset.issues("corrupted"))
    assert dataset.to_arrow(["dark", "media_id"]).column_names == ["dark", "media_id"]
    dataset.export(tmp_path / "p.zip", format="parquet")
    with zipfile.ZipFile(tmp_path / "p.zip") as archive:
        archive.extract("metadata.parquet", tmp_path)
    exported = pq.read_table(tmp_path / "metadata.parquet")
    assert exported.select(names).to_pylist() == table.select(names).to_pylist()


@pytest.mark.slow
def test_values__and_custom_fields(dataset: Dataset) -> None:
    """A new custom field cannot have the name of an issue type with a value."""
    with pytest.raises(InvalidInput, match="'blur'"):
        dataset.add_field("blur", "float")


@pytest.mark.slow
def test_set_limits__of_objects(workspace: Workspace, tmp_path: Path) -> None:
    """Limits hold for objects, too: their issues change with those of the media, also of objects that come later."""
    things = scenes(tmp_path / "scenes")
    dataset = workspace.create_dataset("scenes", tmp_path / "scenes", "gist")
    objects = dataset.objects
    values = objects.to_arrow(["media_id", "blur", "outliers"]).to_pylist()
    limit = middle([row["blur"] for row in values])
    before = objects.issues().to_pylist()
    dataset.set_limits(blur=limit, outliers=0)
    blurred = {row["media_id"] for row in values if row["blur"] < np.float32(limit)}
    assert set(objects.issues("blur")["media_id"].to_pylist()) == blurred
    assert set(objects.where(vql.issues("blur")).media_ids()) == blurred
    assert set(objects.where(vql.quality("blur", "lt", limit)).media_ids()) == blurred
    assert objects.issues("blur")["threshold"].to_pylist() == [pytest.approx(limit)] * len(blurred)
    outliers = {row["media_id"] for row in values if row["outliers"] > 0}
    assert set(objects.issues("outliers")["media_id"].to_pylist()) == outliers
    assert objects.histogram("blur").limit == limit
    assert sum(objects.histogram("blur").counts) == len(things) == len(values)
    more = paint_scenes(tmp_path / "more", ["later.png"], seed=40)
    write_table(tmp_path / "more" / "object_annotations.csv", more)
    dataset.add_media(tmp_path / "more")
    rows = objects.to_arrow(["media_id", "blur"]).to_pylist()
    assert len(rows) == len(values) + 3
    blurred = {row["media_id"] for row in rows if row["blur"] < np.float32(limit)}
    assert set(objects.issues("blur")["media_id"].to_pylist()) == blurred
    dataset.delete_media(dataset.where(vql.file_name("is", "later.png")).media_ids())
    dataset.reindex()
    dataset.reset_limits()
    assert objects.issues().to_pylist() == before


@pytest.mark.slow
@pytest.mark.parametrize("models", [ENCODE, TAG, {**ENCODE, **TAG}])
def test_limits__of_an_enriched_dataset(workspace: Workspace, dataset: Dataset, models: dict[str, str]) -> None:
    """A dataset with the output of other models keeps the limits, and its issues follow from them."""
    register_models(workspace, Hues())
    dataset.set_limits(blur=0.6, outliers=0.001, label_outlier=0.2, mislabels=0)
    enriched = dataset.enrich(models)
    assert {name for name, each in enriched.limits.items() if each.is_set} == {
        "blur", "outliers", "label_outlier", "mislabels",
    }  # fmt: skip
    for name in ("blur", "outliers", "label_outlier"):
        values, limit, above = values_of(enriched, name), enriched.limits[name].limit, issue_types()[name].above
        assert limit is not None
        expected = {
            media_id
            for media_id, value in values.items()
            if value is not None and (value > np.float32(limit) if above else value < np.float32(limit))
        }
        assert with_issue(enriched, name) == expected
    assert with_issue(enriched, "mislabels") == set()


@pytest.mark.slow
def test_values__beside_an_older_custom_field(workspace: Workspace, tmp_path: Path) -> None:
    """A custom field that had the name of an issue type before comes first; the other values stay columns."""
    dataset = workspace.create_dataset("d", part(families(4)))
    first = dataset.where([]).media_ids()[0]
    with without_reserved_names():
        dataset.add_field("outliers", "string", values={first: "far"})
    assert dataset.to_arrow(["outliers"])["outliers"].to_pylist() == ["far", *[None] * (dataset.count() - 1)]
    assert dataset.to_arrow()["outliers"].to_pylist()[0] == "far"
    assert dataset.to_arrow(["duplicates"])["duplicates"].null_count == 0
    dataset.export(tmp_path / "p.zip", format="parquet")
    with zipfile.ZipFile(tmp_path / "p.zip") as archive:
        schema = pq.read_schema(archive.open("metadata.parquet"))
    assert schema.names.count("outliers") == schema.names.count("duplicates") == 1
    assert schema.field("outliers").type == pa.string()
    assert dataset.where(vql.quality("outliers", "ge", 0)).count() == dataset.count()
