"""Comparisons of datasets with their models, and the calls that lead to both; they run in any process."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from operator import attrgetter
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from framedex import Dataset, NotFound, Workspace, vql
from framedex.encoders import register
from framedex.records import DatasetStatus, UploadState
from framedex.records.base import Record
from framedex.storage.media_rows import CLUSTERS
from framedex.storage.table_names import KEEPER
from tests.growth import THRESHOLDS, part
from tests.image_files import Pixels, encode, photo
from tests.inside import stored_media
from tests.plain_dataset import FAMILIES, PlainDataset, passing
from tests.tuning import Tuning

ENCODER = "families"
Filters = list[list[Mapping[str, Any]]]
_FILTERS: Filters = [
    [{"labels": {"op": "is", "value": "a"}}],
    [{"labels": {"op": "one_of", "value": ["b", "e"]}}, {"tags": {"op": "is", "value": ["x"]}}],
    [{"tags": {"op": "is", "value": ["untagged", "basket"]}}],
    [{"not": {"tags": {"op": "is", "value": ["y", "z"]}}}],
]


@cache
def contents() -> list[bytes]:
    """Return the content of an image of each family."""
    return [encode(photo(seed, width=48, height=36), "PNG") for seed in range(FAMILIES)]


def pixels_of(number: int) -> Pixels:
    """Return an image of a folder: that of its family, but for a pixel that no other image has."""
    pixels = photo(number % FAMILIES, width=48, height=36)
    pixels[0, 0] = (number // 256, number % 256, 0)
    return pixels


@cache
def _colours() -> npt.NDArray[np.float32]:
    """Return the mean colour of each family: float32, shape (families, 3)."""
    return np.array([photo(seed, width=48, height=36).mean(axis=(0, 1)) for seed in range(FAMILIES)], np.float32)


class Families:
    """An encoder that knows the images of the families."""

    name = ENCODER
    dimension = 8
    min_side_px = 4
    thresholds = THRESHOLDS

    def prepare(self, pixels: Pixels) -> npt.NDArray[Any]:
        small = cv2.resize(pixels, (4, 4), interpolation=cv2.INTER_AREA)
        return np.asarray(small.mean(axis=(0, 1)), dtype=np.float32)

    def encode_images(self, batch: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
        distances = np.linalg.norm(batch[:, None] - _colours()[None], axis=2)
        return np.asarray(np.eye(self.dimension)[distances.argmin(axis=1)], dtype=np.float32)


def prepare(*, is_large: bool = True) -> Tuning:
    """Register the encoder, and have few rows of a small dataset take the ways of few rows of a large one.

    Args:
        is_large: False to have them take those of a small one; edits are in layers as of a large one.

    Returns:
        What was set, to be restored.
    """
    register(ENCODER, lambda _name: Families())
    tuning = Tuning()
    if is_large:
        tuning.written_rows = tuning.judged_rows = tuning.rebuilt_rows = 0
    tuning.layer_values, tuning.layer_share = 12, 10**9
    return tuning


# Calls


@dataclass(frozen=True)
class Name:
    """A dataset as a user of a namespace names it."""

    namespace: str
    user: str
    name: str

    def of(self, workspace: Workspace) -> Dataset:
        """Return the dataset."""
        return workspace.in_namespace(self.namespace).acting_as(self.user).dataset(self.name)


@dataclass(frozen=True)
class Where:
    """A view, as an argument of a call."""

    vql: list[Mapping[str, Any]]


def call(workspace: Workspace, name: Name, method: str, *arguments: Any, **options: Any) -> Any:
    """Call a method of a dataset, as ``tag`` or ``basket.add``; return its result if that is a record or a list."""
    dataset = name.of(workspace)
    given = [dataset.where(each.vql) if isinstance(each, Where) else each for each in arguments]
    result = attrgetter(method)(dataset)(*given, **options)
    return result if isinstance(result, (Record, list)) else None


def call_upload(workspace: Workspace, name: Name, upload_id: int, method: str, *arguments: Any, **options: Any) -> None:
    """Call a method of an upload transaction."""
    getattr(name.of(workspace).find_upload(upload_id), method)(*arguments, **options)


def call_view(workspace: Workspace, name: Name, view: str, method: str, *arguments: Any) -> None:
    """Call a method of a saved view."""
    getattr(name.of(workspace).saved_view(view), method)(*arguments)


def open_upload(workspace: Workspace, name: Name) -> int:
    """Open an upload transaction and return its id."""
    return name.of(workspace).open_upload().id


def clone(workspace: Workspace, name: Name, snapshot: str) -> tuple[str, str]:
    """Clone a snapshot, or the present state; return the id and the name of the clone."""
    copy = name.of(workspace).clone(snapshot)
    return copy.id, copy.name


def create(workspace: Workspace, name: Name, rows: pa.Table) -> str:
    """Create a dataset from a table and return its id."""
    handle = workspace.in_namespace(name.namespace).acting_as(name.user)
    return handle.create_dataset(name.name, rows, thresholds=THRESHOLDS).id


def create_of_files(workspace: Workspace, name: Name, numbers: Sequence[int]) -> tuple[str, int]:
    """Create a dataset from uploaded images; return its id, and that of the upload."""
    dataset = workspace.in_namespace(name.namespace).acting_as(name.user).create_draft(name.name)
    transaction = dataset.open_upload()
    transaction.add(files(numbers))
    transaction.process(encoder=ENCODER)
    return dataset.id, transaction.id


def create_of_folder(workspace: Workspace, name: Name, folder: Path) -> str:
    """Create a dataset from a folder and return its id."""
    handle = workspace.in_namespace(name.namespace).acting_as(name.user)
    return handle.create_dataset(name.name, folder, ENCODER).id


def clean_up(workspace: Workspace, name: Name, options: Mapping[str, Any]) -> list[str]:
    """Apply the plan of a clean-up and return the ids of the media that it removes."""
    plan = name.of(workspace).plan_cleanup(**options)
    assert plan.apply().removed == len(plan)
    return plan.removed_ids()


def keepers(workspace: Workspace, name: Name) -> dict[str, int]:
    """Return the marks of the media that clean-ups leave in the dataset, by id; 0 for none."""
    table = stored_media(name.of(workspace)).table
    names = ["media_id", *({KEEPER} & set(table.schema.names))]
    return {row["media_id"]: row.get(KEEPER) or 0 for row in table.scan(names).read_all().to_pylist()}


def delete(workspace: Workspace, name: Name) -> None:
    """Delete a dataset."""
    workspace.in_namespace(name.namespace).acting_as(name.user).delete_dataset(name.name)


def relocate(workspace: Workspace, place: Path) -> bool:
    """Relocate the folder of all tables, which have no files there, and back again; return whether there are tables."""
    try:
        moved = workspace.relocate(Path.cwd(), place, force=True)
    except NotFound:
        return False
    sources = {each.source for each in workspace.sources()}
    assert (str(place) in sources) == any(each.files for each in moved.roots)
    assert str(Path.cwd()) not in sources
    back = workspace.relocate(place, Path.cwd(), force=True)
    return moved.is_done and back.is_done


def relocate_folder(workspace: Workspace, old: Path, new: Path, force: bool) -> None:
    """Relocate a source folder."""
    assert workspace.relocate(old, new, force=force).is_done


def vacuum(workspace: Workspace) -> None:
    """Fold edits, and free what nothing needs."""
    assert workspace.vacuum().skipped == {}


def check(workspace: Workspace) -> None:
    """Check that nothing is damaged, missing or left over."""
    assert workspace.check().findings == []


def table(numbers: Sequence[int], labels: Sequence[str]) -> pa.Table:
    """Return a table of media with some numbers; those of a family have the same embedding."""
    rows = part(np.eye(8)[np.array(numbers) % FAMILIES], label=list(labels))
    return rows.set_column(0, "uri", [[f"{number}.png" for number in numbers]])


def files(numbers: Sequence[int]) -> list[tuple[str, bytes]]:
    """Return the images with some numbers; those of a family have the same content."""
    return [(f"{number}.png", contents()[number % FAMILIES]) for number in numbers]


# Comparisons


def compare_names(workspace: Workspace, models: Sequence[PlainDataset]) -> None:
    """Compare namespaces, and the names of the datasets in each."""
    _check_same("namespaces", workspace.namespaces(), sorted({each.namespace for each in models}))
    for namespace in {each.namespace for each in models}:
        shown = {each.id: each.display_name for each in workspace.in_namespace(namespace).datasets()}
        _check_same("names", shown, {each.id: each.name for each in models if each.namespace == namespace})


def compare(workspace: Workspace, model: PlainDataset, thorough: bool) -> None:
    """Compare the media of a dataset, what people said of them and the journal; if *thorough*, all else, too."""
    dataset = Name(model.namespace, "ann@x.org", model.name).of(workspace)
    _compare_rows(dataset, model)
    shown = keepers(workspace, Name(model.namespace, "ann@x.org", model.name))
    _check_same("keepers", shown, {each: row["keeper"] for each, row in model.state.rows.items()})
    _compare_journal(dataset, model)
    _compare_definitions(dataset, model)
    if thorough:
        _compare_counts(dataset, model)
        _compare_uploads_and_views(dataset, model)
        _compare_index(dataset, model)


def _check_same(what: str, shown: Any, expected: Any) -> None:
    """Check that a dataset shows what the model expects; the message has the parts that differ, in any process."""
    if isinstance(shown, list) and isinstance(expected, list):
        extra, missing = (
            [each for each in shown if each not in expected],
            [each for each in expected if each not in shown],
        )
        assert (extra, missing) == ([], []), f"{what}: {extra} and not {missing}"
    assert shown == expected, f"{what}: {shown} instead of {expected}"


def _compare_rows(dataset: Dataset, model: PlainDataset) -> None:
    state = model.state
    names = {each.id: each.name for each in state.tags}
    columns = ["media_id", "image_filename", "labels", "caption", "tags", *(each.name for each in state.fields)]
    shown = [
        {**row, "labels": row["labels"] or [], "tags": sorted(row["tags"] or ())}
        for row in dataset.where([]).to_arrow(columns).to_pylist()
    ]
    expected = [
        {
            "media_id": media_id,
            "image_filename": row["media"].uri,
            "labels": list(row["labels"]),
            "caption": row["caption"],
            "tags": sorted(names[tag] for tag, _ in row["tags"]),
            **{each.name: row.get(each.id) for each in state.fields},
        }
        for media_id, row in state.rows.items()
    ]
    _check_same("rows", shown, expected)
    status = DatasetStatus.PARTIAL_INDEX if state.partial else DatasetStatus.READY
    _check_same("status", dataset.info.status_new, status)
    in_basket = [each for each, row in state.rows.items() if row["basket"]]
    _check_same("basket", dataset.basket.media_ids(), in_basket)


def _compare_journal(dataset: Dataset, model: PlainDataset) -> None:
    journal = [
        (each.step, each.operation, each.created_by, each.n_media, each.undone_by, each.reason is not None)
        for each in reversed(dataset.journal(None))
    ]
    expected = [
        (number, each.operation, each.user, each.n_media, each.undone_by, each.is_final)
        for number, each in enumerate(model.journal, 1)
    ]
    _check_same("journal", journal, expected)


def _compare_definitions(dataset: Dataset, model: PlainDataset) -> None:
    """Compare tags, fields, decisions, limits and snapshots."""
    state = model.state
    tags = [(each.tag_id, each.name, each.created_by, each.count) for each in dataset.tags()]
    _check_same(
        "tags", tags, [(each.id, each.name, each.created_by, len(state.with_tag(each.id))) for each in state.tags]
    )
    fields = [(each.field_id, each.field_name, each.created_by) for each in dataset.fields()]
    _check_same("fields", fields, [(each.id, each.name, each.created_by) for each in state.fields])
    apart = [(each.decision_id, each.decided_by, tuple(each.media_ids)) for each in dataset.duplicate_decisions()]
    _check_same("decisions", apart, [(each.id, each.decided_by, each.media_ids) for each in state.apart])
    right = [
        (each.decision_id, each.decided_by, tuple(each.media_ids), tuple(map(tuple, each.labels)))
        for each in dataset.label_decisions()
    ]
    _check_same("labels", right, [(each.id, each.decided_by, each.media_ids, each.labels) for each in state.right])
    limits = {name: each.limit for name, each in dataset.limits.items() if each.is_set}
    _check_same("limits", limits, state.limits)
    snapshots = [(each.snapshot_id, each.n_images, each.is_current) for each in reversed(dataset.snapshots())]
    kept = [(key, len(each.rows), key == model.current) for key, each in model.snapshots.items()]
    _check_same("snapshots", snapshots, kept)


def _compare_counts(dataset: Dataset, model: PlainDataset) -> None:
    """Compare the number of media, and those that pass filters."""
    state = model.state
    missing = [each for each, row in state.rows.items() if row["media"].is_missing]
    _check_same("missing media", dataset.where(vql.missing()).media_ids(), missing)
    _check_same("counts", (dataset.info.n_images, dataset.count()), (len(state.rows), len(state.rows)))
    of_fields: Filters = [[{"field": {"name": each.name, "op": "ge", "value": 4}}] for each in state.fields]
    for each in [*_FILTERS, *of_fields]:
        _check_same(f"media that pass {each}", dataset.where(each).media_ids(), list(passing(state, each)))


def _compare_uploads_and_views(dataset: Dataset, model: PlainDataset) -> None:
    uploads = {each.id: (each.n_files, each.state) for each in dataset.uploads()}
    states = {True: UploadState.DONE, False: UploadState.OPEN}
    sent = {number: (len(each.numbers), states[each.is_done]) for number, each in model.uploads.items()}
    _check_same("uploads", uploads, sent)
    views = {each.name: each for each in dataset.views()}
    _check_same("saved views", sorted(views), sorted(model.views))
    for name, view in model.views.items():
        shown = views[name]
        points = {each.batch: each.count for each in shown.trend().points}
        alerts = [each.batch for each in shown.alerts()]
        what = (points, alerts, shown.record.alerting_enabled, shown.view().media_ids())
        media = list(passing(model.state, [{"labels": {"op": "is", "value": view.label}}]))
        _check_same(f"saved view {name}", what, (view.points, view.alerts, view.is_alerting, media))


def _compare_index(dataset: Dataset, model: PlainDataset) -> None:
    """Compare clusters, duplicate groups and the issues of labels that are right.

    Embeddings are equal or orthogonal: those of a family are one cluster at each level, and one duplicate group but for
    decisions. A decision may divide the rest of its family in any way.
    """
    state = model.state
    families: dict[int, set[str]] = {}
    for media_id, row in state.rows.items():
        families.setdefault(row["media"].family, set()).add(media_id)
    labels = ["is_mislabels_issue", "is_label_outlier_issue"]
    shown = dataset.to_arrow(["media_id", *CLUSTERS, *labels]).to_pylist()
    for level in CLUSTERS:
        clusters: dict[str, set[str]] = {}
        for row in shown:
            clusters.setdefault(row[level], set()).add(row["media_id"])
        _check_same(level, sorted(map(sorted, clusters.values())), sorted(map(sorted, families.values())))
    _, vectors = dataset.embeddings()
    alike = vectors @ vectors.T > 0.5
    numbers = np.array([row["media"].family for row in state.rows.values()])
    _check_same("embeddings", alike.tolist(), (numbers[:, None] == numbers).tolist())
    _check_limits(dataset)
    groups = [set(group.media_ids) for group in dataset.duplicates()]
    for family in families.values():
        apart = [set(each.media_ids) & family for each in state.apart]
        inside = [group for group in groups if group & family]
        if any(len(each) > 1 for each in apart):
            assert all(group <= family and len(group) > 1 for group in inside)
            assert all(len(group & each) <= 1 for group in inside for each in apart)
        else:
            _check_same("duplicate group", inside, [family] if len(family) > 1 else [])
    for row in shown:
        if state.is_held_right(row["media_id"]):
            assert not any(row[name] for name in labels)


def _check_limits(dataset: Dataset) -> None:
    """Check that media have an issue where their value is above its limit."""
    for name in ("outliers", "label_outlier"):
        limit = dataset.limits[name].limit
        for row in dataset.to_arrow(["media_id", name, f"is_{name}_issue"]).to_pylist():
            value = row[name]
            is_above = limit is not None and value is not None and value > np.float32(limit)
            _check_same(f"{name} of {row['media_id']}, {value}", bool(row[f"is_{name}_issue"]), is_above)


def compare_pixels(workspace: Workspace, model: PlainDataset) -> None:
    """Compare the pixels of all media that were uploaded, or whose files are in the folder as they were."""
    dataset = Name(model.namespace, "ann@x.org", model.name).of(workspace)
    for media_id, row in model.state.rows.items():
        media = row["media"]
        if model.is_of_files:
            assert (dataset.read(media_id) == photo(media.family, width=48, height=36)).all()
        elif model.folder is not None and media.is_placed and model.folder.files.get(media.uri) == media.number:
            assert (dataset.read(media_id) == pixels_of(media.number)).all()


def read_media(workspace: Workspace, name: Name) -> list[tuple[str, str]]:
    """Return the ids of the media of a dataset, and their URIs, in order."""
    shown = name.of(workspace).to_arrow(["media_id", "image_filename"]).to_pylist()
    return [(row["media_id"], row["image_filename"]) for row in shown]


def newest_snapshot(workspace: Workspace, name: Name) -> str:
    """Return the id of the newest snapshot."""
    return name.of(workspace).snapshots()[0].snapshot_id


def newest_field(workspace: Workspace, name: Name) -> str:
    """Return the id of the newest custom field."""
    return name.of(workspace).fields()[-1].field_id
