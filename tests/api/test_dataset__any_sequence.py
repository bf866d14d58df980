"""After any sequence of operations, datasets agree with a simple model in memory, and with its snapshots."""

import copy
import shutil
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from framedex import Conflict, Dataset, Workspace
from framedex.records import DatasetStatus
from tests.gallery import SETTINGS
from tests.growth import THRESHOLDS, part
from tests.inside import stored_media
from tests.laws import examples, law_folder

PLACES = st.lists(st.integers(0, 40), max_size=6)
TAGS = st.sampled_from(["good", "bad", "odd"])
LIMITS = st.dictionaries(
    st.sampled_from(["outliers", "duplicates", "label_outlier", "mislabels"]),
    st.sampled_from([0.96, 0.99, 1.0, None]),
    min_size=1,
)
VECTORS = st.lists(st.tuples(st.integers(-3, 3), st.integers(1, 3)), min_size=1, max_size=6)


@dataclass
class Item:
    """A media item of the model."""

    vector: tuple[int, int]
    labels: list[str] = field(default_factory=list)
    caption: str | None = None
    tags: set[str] = field(default_factory=set)
    score: float | None = None


@dataclass
class Model:
    """The expected state of a dataset.

    Attributes:
        items: by uri, in the order of ingestion.
        tags: the names of tags.
        partial: whether additions are not settled.
        has_field: whether there is the custom field ``score``.
        limits: of issues, by type.
    """

    items: dict[str, Item]
    tags: set[str] = field(default_factory=set)
    partial: bool = False
    has_field: bool = False
    limits: dict[str, float] = field(default_factory=dict)


class Life(RuleBasedStateMachine):
    """A dataset and its clones, beside a model of each, and of what each snapshot keeps."""

    def __init__(self) -> None:
        super().__init__()
        self.home = law_folder("life")
        self.workspace = Workspace(self.home / "ws", settings=SETTINGS)
        self.models: dict[str, Model] = {}
        self.kept: dict[str, dict[str, Model]] = {}
        self.current: dict[str, str] = {}

    @initialize(vectors=VECTORS)
    def make(self, vectors: list[tuple[int, int]]) -> None:
        dataset = self.workspace.create_dataset("pets", part(vectors), thresholds=THRESHOLDS)
        model = Model({f"{place}.jpg": Item(vector) for place, vector in enumerate(vectors)})
        self._know(dataset, model)

    def _know(self, dataset: Dataset, model: Model) -> None:
        self.models[dataset.id] = model
        (snapshot,) = dataset.snapshots()
        self.kept[dataset.id] = {snapshot.snapshot_id: copy.deepcopy(model)}
        self.current[dataset.id] = snapshot.snapshot_id

    def _pick(self, which: int) -> tuple[Dataset, Model]:
        dataset_id = sorted(self.models)[which % len(self.models)]
        return self.workspace.dataset(dataset_id), self.models[dataset_id]

    def _some(self, dataset: Dataset, places: list[int]) -> tuple[list[str], list[str]]:
        """Return media ids and uris of some items."""
        held = stored_media(dataset).table.scan(["media_id", "path"]).read_all().to_pylist()
        chosen = [held[place % len(held)] for place in places] if held else []
        return [row["media_id"] for row in chosen], [row["path"] for row in chosen]

    @rule(which=st.integers(0, 5), vectors=VECTORS, first=st.integers(0, 12), settle=st.booleans())
    def add(self, which: int, vectors: list[tuple[int, int]], first: int, settle: bool) -> None:
        dataset, model = self._pick(which)
        dataset.add_media(part(vectors, first), auto_reindex=settle)
        new = {f"{first + place}.jpg": vector for place, vector in enumerate(vectors)}
        fresh = {uri: Item(vector) for uri, vector in new.items() if uri not in model.items}
        model.items |= fresh
        model.partial = (model.partial or bool(fresh)) and not settle

    @rule(which=st.integers(0, 5), places=PLACES)
    def delete_media(self, which: int, places: list[int]) -> None:
        dataset, model = self._pick(which)
        ids, uris = self._some(dataset, places)
        dataset.delete_media(ids)
        model.items = {uri: item for uri, item in model.items.items() if uri not in uris}

    @rule(which=st.integers(0, 5))
    def reindex(self, which: int) -> None:
        dataset, model = self._pick(which)
        if model.partial:
            dataset.reindex()
            model.partial = False
        else:
            with pytest.raises(Conflict, match="it is READY"):
                dataset.reindex()

    @rule(which=st.integers(0, 5), places=PLACES, name=TAGS, on=st.booleans())
    def tag(self, which: int, places: list[int], name: str, on: bool) -> None:
        dataset, model = self._pick(which)
        ids, uris = self._some(dataset, places)
        if on:
            dataset.tag(ids, name)
            model.tags.add(name)
        elif name in model.tags:
            dataset.untag(ids, name)
        for uri in uris:
            model.items[uri].tags = model.items[uri].tags | {name} if on else model.items[uri].tags - {name}

    @rule(which=st.integers(0, 5), old=TAGS, new=TAGS)
    def rename_tag(self, which: int, old: str, new: str) -> None:
        dataset, model = self._pick(which)
        if old not in model.tags or old == new:
            return
        if new in model.tags:
            with pytest.raises(Conflict):
                dataset.rename_tag(old, new)
            return
        dataset.rename_tag(old, new)
        model.tags = model.tags - {old} | {new}
        for item in model.items.values():
            item.tags = {new if each == old else each for each in item.tags}

    @rule(which=st.integers(0, 5), name=TAGS)
    def delete_tag(self, which: int, name: str) -> None:
        dataset, model = self._pick(which)
        if name in model.tags:
            dataset.delete_tag(name)
            model.tags.discard(name)
            for item in model.items.values():
                item.tags.discard(name)

    @rule(which=st.integers(0, 5), places=PLACES, label=st.sampled_from(["cat", "dog", None]))
    def set_labels(self, which: int, places: list[int], label: str | None) -> None:
        dataset, model = self._pick(which)
        ids, uris = self._some(dataset, places)
        labels = [] if label is None else [label]
        dataset.set_labels(dict.fromkeys(ids, labels))
        dataset.set_captions(dict.fromkeys(ids, label))
        for uri in uris:
            model.items[uri].labels, model.items[uri].caption = list(labels), label

    @rule(which=st.integers(0, 5), places=PLACES, score=st.floats(0, 1) | st.none())
    def set_score(self, which: int, places: list[int], score: float | None) -> None:
        dataset, model = self._pick(which)
        ids, uris = self._some(dataset, places)
        if model.has_field:
            dataset.set_field("score", dict.fromkeys(ids, score))
        else:
            dataset.add_field("score", "float", values=dict.fromkeys(ids, score))
        model.has_field = True
        for uri in uris:
            model.items[uri].score = score

    @rule(which=st.integers(0, 5), limits=LIMITS)
    def set_limits(self, which: int, limits: dict[str, float | None]) -> None:
        dataset, model = self._pick(which)
        dataset.set_limits(**limits)
        model.limits = {name: limit for name, limit in {**model.limits, **limits}.items() if limit is not None}

    @rule(which=st.integers(0, 5))
    def snapshot(self, which: int) -> None:
        dataset, model = self._pick(which)
        if model.partial:
            with pytest.raises(Conflict, match="PARTIAL INDEX"):
                dataset.snapshot()
            return
        snapshot_id = dataset.snapshot().snapshot_id
        self.kept[dataset.id][snapshot_id] = copy.deepcopy(model)
        self.current[dataset.id] = snapshot_id

    @rule(which=st.integers(0, 5), snapshot=st.integers(0, 5))
    def restore(self, which: int, snapshot: int) -> None:
        dataset, _ = self._pick(which)
        snapshot_id = sorted(self.kept[dataset.id])[snapshot % len(self.kept[dataset.id])]
        dataset.restore(snapshot_id)
        self.models[dataset.id] = copy.deepcopy(self.kept[dataset.id][snapshot_id])
        self.current[dataset.id] = snapshot_id

    @rule(which=st.integers(0, 5), snapshot=st.integers(0, 5))
    def delete_snapshot(self, which: int, snapshot: int) -> None:
        dataset, _ = self._pick(which)
        snapshot_id = sorted(self.kept[dataset.id])[snapshot % len(self.kept[dataset.id])]
        if snapshot_id == self.current[dataset.id]:
            with pytest.raises(Conflict):
                dataset.delete_snapshot(snapshot_id)
        else:
            dataset.delete_snapshot(snapshot_id)
            del self.kept[dataset.id][snapshot_id]

    @rule(which=st.integers(0, 5))
    def clone(self, which: int) -> None:
        if len(self.models) < 3:
            dataset, _ = self._pick(which)
            clone = dataset.clone()
            self._know(clone, copy.deepcopy(self.kept[dataset.id][self.current[dataset.id]]))

    @rule(which=st.integers(0, 5))
    def delete(self, which: int) -> None:
        if len(self.models) > 1:
            dataset, _ = self._pick(which)
            self.workspace.delete_dataset(dataset.id)
            for held in (self.models, self.kept, self.current):
                del held[dataset.id]

    @rule()
    def reopen(self) -> None:
        self.workspace.close()
        self.workspace = Workspace(self.home / "ws", settings=SETTINGS)

    @rule()
    def vacuum(self) -> None:
        self.workspace.vacuum(older_than_s=0)

    @invariant()
    def agrees_with_the_models(self) -> None:
        assert {record.id for record in self.workspace.datasets()} == set(self.models)
        for dataset_id, model in self.models.items():
            self._agrees(self.workspace.dataset(dataset_id), model)

    def _agrees(self, dataset: Dataset, model: Model) -> None:
        wanted = DatasetStatus.PARTIAL_INDEX if model.partial else DatasetStatus.READY
        assert dataset.info.status_new is wanted
        assert dataset.info.n_images == dataset.count() == len(model.items)
        assert _seen(dataset, model.has_field) == {
            uri: (item.labels, item.caption, item.tags, item.score) for uri, item in model.items.items()
        }
        assert list(_seen(dataset, model.has_field)) == list(model.items)
        assert {tag.name for tag in dataset.tags()} == model.tags
        _, vectors = dataset.embeddings()
        wanted_vectors = np.array([item.vector for item in model.items.values()], dtype=float).reshape(-1, 2)
        lengths = np.linalg.norm(wanted_vectors, axis=1, keepdims=True)
        if len(model.items):
            np.testing.assert_allclose(vectors, wanted_vectors / lengths, atol=1e-6)
        for level in range(5):
            clusters = dataset.explore(level=level).clusters
            assert sum(cluster.n_images for cluster in clusters) == len(model.items)
        together = [set(group.media_ids) for group in dataset.duplicates()]
        assert all(len(group) > 1 for group in together)
        assert {name: each.limit for name, each in dataset.limits.items() if each.is_set} == model.limits
        assert _issues(dataset, "duplicates") == {
            media_id
            for group in dataset.duplicates(model.limits.get("duplicates", 0.96))
            for media_id in group.media_ids
        }
        for name in ("outliers", "label_outlier"):
            assert _issues(dataset, name) == _above(dataset, name)
        shown = {each.snapshot_id: each for each in dataset.snapshots()}
        assert set(shown) == set(self.kept[dataset.id])
        assert [each for each, record in shown.items() if record.is_current] == [self.current[dataset.id]]
        assert {each: record.n_images for each, record in shown.items()} == {
            each: len(kept.items) for each, kept in self.kept[dataset.id].items()
        }

    def teardown(self) -> None:
        self.workspace.close()
        shutil.rmtree(self.home)


def _issues(dataset: Dataset, name: str) -> set[str]:
    """Return the media with an issue."""
    return set(dataset.issues(name)["media_id"].to_pylist())


def _above(dataset: Dataset, name: str) -> set[str]:
    """Return the media whose value is above the current limit of an issue type."""
    limit = dataset.limits[name].limit
    rows = dataset.to_arrow(["media_id", name]).to_pylist()
    known = [(row["media_id"], row[name]) for row in rows if limit is not None and row[name] is not None]
    return {media_id for media_id, value in known if value > np.float32(limit or 0)}


def _seen(dataset: Dataset, has_field: bool) -> dict[str, tuple[Any, ...]]:
    """Return labels, caption, tags and score of each media item, by uri."""
    columns = ["image_filename", "labels", "caption", "tags", *(["score"] if has_field else [])]
    return {
        row["image_filename"]: (row["labels"], row["caption"], set(row["tags"] or ()), row.get("score"))
        for row in dataset.to_arrow(columns).to_pylist()
    }


Life.TestCase.settings = examples(12, stateful_step_count=20)
test_dataset__any_sequence = pytest.mark.slow(Life.TestCase)
