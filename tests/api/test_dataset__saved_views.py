"""Saved views: what can be saved, what each batch of media brings, and what alerts are raised."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from framedex import (
    Conflict,
    Dataset,
    InvalidFilter,
    InvalidInput,
    NotFound,
    ReadOnly,
    SavedView,
    Workspace,
    WorkspaceError,
    vql,
)
from framedex.core.ids import batch_id
from framedex.operations import monitoring
from framedex.operations.context import Context, open_media
from framedex.operations.searches import condition_for
from framedex.storage.media import Media
from framedex.vql import parse
from tests.enrichments import ENCODE, Hues, paint, register_models
from tests.failures import failing
from tests.gallery import SETTINGS, fill
from tests.growth import THRESHOLDS, families, part
from tests.inside import catalog_of, context_of, runner_of, stored_media
from tests.objects import scenes, write_table
from tests.prepared import prepared
from tests.tuning import Tuning
from tests.videos import numbered, write_video

ROWS = families(60)


def labelled(first: int, labels: str) -> Any:
    """Return a table of media, each with a letter as its label and a caption with the same letter."""
    captions = [f"a {letter * 3} on a street" for letter in labels]
    return part(ROWS[first : first + len(labels)], first, labels=[[letter] for letter in labels], caption=captions)


def counts_of(view: SavedView) -> dict[int, int]:
    """Return the counts of a trend by batch."""
    return {point.batch: point.count for point in view.trend().points}


@pytest.fixture
def dataset(workspace: Workspace) -> Dataset:
    """A dataset of ten media with the labels a and b."""
    return prepared(workspace, "pets", labelled(0, "ababababaa"), thresholds=THRESHOLDS)


@pytest.mark.slow
def test_save_view__a_new_view_has_the_values_of_the_interface(dataset: Dataset) -> None:
    """Monitoring and alerts are on, nothing was evaluated, and the filters are those of the view."""
    saved = dataset.save_view(" Good a ", dataset.where(vql.labels("a")).sort_by("file_name", descending=True))
    record = saved.record
    assert (record.id, record.dataset_id, record.name) == (saved.id, dataset.id, "Good a")
    assert (record.monitoring_enabled, record.alerting_enabled, record.created_by) == (True, True, SETTINGS.user)
    assert set(record.stats.model_dump().values()) == {-1}
    assert (record.total_results, record.last_results, record.evaluation_error) == (0, None, None)
    assert record.filters.model_dump() == {
        "entity_type": "IMAGES", "threshold": None, "caption": None, "sort_by": "file_name", "descending": True,
        "vql": [{"labels": {"op": "is", "value": "a"}}],
    }  # fmt: skip
    assert record.monitoring_started_at.utcoffset() is not None
    assert saved.trend().points == []


def test_saved_view__opens_as_the_same_view(dataset: Dataset) -> None:
    """The rows and their order are those of the view that was saved, in the present state of the dataset."""
    view = dataset.where(~vql.labels("b")).sort_by("file_name", descending=True)
    saved = dataset.save_view("not b", view)
    assert saved.view().ids == view.ids
    dataset.add_media(labelled(10, "ab"))
    assert saved.view().ids == view.ids
    assert len(view) == 7
    assert dataset.saved_view("NOT B").view().ids == view.ids
    assert dataset.save_view("all").view().ids == dataset.view.ids


def test_saved_views__by_name_and_id(dataset: Dataset) -> None:
    """Views are listed newest first, and found by id or by name in any case; names are unique in any case."""
    first, second = dataset.save_view("Straße"), dataset.save_view("ﬁne")
    assert [view.id for view in dataset.views()] == [second.id, first.id]
    assert dataset.saved_view("STRASSE").id == dataset.saved_view(first.id).id == first.id
    assert dataset.saved_view("FINE").id == second.id
    for name in ("straße", "STRASSE"):
        with pytest.raises(Conflict, match="'Straße' exists already in this dataset"):
            dataset.save_view(name)
        with pytest.raises(Conflict, match="'Straße' exists already"):
            second.rename(name)
    first.rename("strasse")
    assert dataset.saved_view("Straße").name == "strasse"
    with pytest.raises(NotFound, match="no saved view 'x' in this dataset; there are: 'ﬁne', 'strasse'"):
        dataset.saved_view("x")
    assert repr(first) == "<framedex.SavedView 'strasse': 0 new results, alerts on>"


@pytest.mark.slow
@pytest.mark.parametrize("wrong", ["", "  ", "a\nb", 3, None, "x" * 256, "\udc80"])
def test_save_view__bad_names(dataset: Dataset, wrong: Any) -> None:
    """A name that cannot be used is an error that says what a name is, and nothing is saved."""
    with pytest.raises(InvalidInput, match="the name of a saved view"):
        dataset.save_view(wrong)
    saved = dataset.save_view("x" * 255)
    with pytest.raises(InvalidInput, match="the name of a saved view"):
        saved.rename(wrong)
    assert [view.name for view in dataset.views()] == ["x" * 255]
    with pytest.raises(NotFound):
        dataset.saved_view(wrong)


REFUSED: dict[str, tuple[Callable[[Dataset], Any], str]] = {
    "limit": (lambda dataset: dataset.view.limit(3), "limited, sampled, split or selected"),
    "slice": (lambda dataset: dataset.view[2:5], "limited, sampled, split or selected"),
    "sample": (lambda dataset: dataset.view.sample(3), "limited, sampled, split or selected"),
    "split": (lambda dataset: dataset.view.split({"a": 0.5, "b": 0.5})["a"], "limited, sampled, split or selected"),
    "select": (lambda dataset: dataset.select(dataset.view.ids[:2]), "limited, sampled, split or selected"),
    "similar": (lambda dataset: dataset.similar(dataset.view.ids[0]), "results of a search cannot be saved"),
    "search": (lambda dataset: dataset.search("street", None), "Give the text as caption="),
    "objects": (lambda dataset: dataset.where(vql.labels("a")).objects, r"Begin with ds\.objects"),
    "no view": (lambda dataset: [{"labels": {"op": "is", "value": "a"}}], "a view of this dataset can be saved"),
    "large": (lambda dataset: dataset.where(vql.ids(["x" * 36] * 2000)), "at most 65,536 bytes as JSON"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_save_view__refused(dataset: Dataset, kind: str) -> None:
    """A view whose members are not decided by a filter is refused, with what to do instead; nothing is saved."""
    make, message = REFUSED[kind]
    with pytest.raises(InvalidInput, match=message):
        dataset.save_view("x", make(dataset))
    assert dataset.views() == []


def test_save_view__bad_arguments(workspace: Workspace, dataset: Dataset) -> None:
    """Thresholds, captions, entity types and filters that do not fit are refused before anything is saved."""
    other = workspace.create_dataset("other", labelled(20, "ab"))
    for options, message in (
        ({"caption": " "}, "at least one word"),
        ({"threshold": 0.5}, "give a caption with it"),
        ({"caption": "a", "threshold": 1.5}, "threshold"),
        ({"entity_type": "OBJECTS"}, "IMAGES or VIDEOS, not 'OBJECTS'"),
        ({"entity_type": "NOPE"}, "IMAGES or VIDEOS, not 'NOPE'"),
        ({"view": other.view}, "a view of this dataset"),
    ):
        with pytest.raises(InvalidInput, match=message):
            dataset.save_view("x", **options)
    with pytest.raises(InvalidFilter, match="nope"):
        dataset.save_view("x", dataset.where(vql.field("nope", "is", "a")))
    draft = workspace.create_draft("draft")
    with pytest.raises(Conflict, match="nothing to show yet"):
        draft.save_view("x")
    assert dataset.views() == draft.views() == []


def test_save_view__limit(dataset: Dataset, tuning: Tuning) -> None:
    """A dataset has a limited number of saved views; a deleted one makes room."""
    tuning.saved_views = 2
    first = dataset.save_view("1")
    dataset.save_view("2")
    with pytest.raises(Conflict, match="at most 2 saved views"):
        dataset.save_view("3")
    first.delete()
    dataset.save_view("3")


@pytest.mark.slow
def test_monitoring__counts_what_each_batch_brings(dataset: Dataset) -> None:
    """Each addition is a point; what was there before, edits and repeated additions are none."""
    saved = dataset.save_view("a", dataset.where(vql.labels("a")))
    dataset.add_media(labelled(10, "aab"))
    late = dataset.save_view("late", dataset.where(vql.labels("b")))
    dataset.add_media(labelled(10, "aab"))  # known files
    dataset.tag(dataset.view.ids[:3], "keep")
    dataset.add_media(labelled(13, "bb"), auto_reindex=True)
    dataset.add_media(labelled(15, "a"))
    trend = saved.trend()
    assert [(point.batch, point.count, point.cumulative) for point in trend.points] == [(1, 2, 2), (2, 0, 2), (3, 1, 3)]
    assert [point.batch_id for point in trend.points] == [batch_id(dataset.id, number) for number in (1, 2, 3)]
    assert (trend.total_results, trend.last_results) == (3, trend.points[2].timestamp)
    assert counts_of(late) == {2: 2, 3: 0}
    assert saved.record.stats.model_dump() == {"n_images": 9, "n_objects": 0, "n_video_frames": 0}
    assert late.record.last_results == late.trend().points[0].timestamp


@pytest.mark.slow
def test_alerts__where_something_new_matches(dataset: Dataset) -> None:
    """A batch with results raises an alert while alerts are on; the trend goes on without them."""
    saved, other = (dataset.save_view(name, dataset.where(vql.labels(name))) for name in "ab")
    dataset.add_media(labelled(10, "aa"))
    (alert,) = dataset.alerts()
    assert alert.model_dump(exclude={"timestamp"}) == {
        "view_id": saved.id, "view_name": "a", "dataset_id": dataset.id, "dataset_name": "pets",
        "batch": 1, "batch_id": batch_id(dataset.id, 1), "result_count": 2,
    }  # fmt: skip
    saved.set_alerting(enabled=False)
    dataset.add_media(labelled(12, "ab"))
    saved.set_alerting(enabled=True)
    dataset.add_media(labelled(14, "a"))
    assert [(each.view_name, each.batch) for each in dataset.alerts()] == [("a", 1), ("b", 2), ("a", 3)]
    assert [each.batch for each in saved.alerts()] == [1, 3]
    assert counts_of(saved) == {1: 2, 2: 1, 3: 1}
    other.delete()
    assert [each.view_name for each in dataset.alerts()] == ["a", "a"]
    for call in (other.trend, other.delete, lambda: other.record, lambda: other.set_alerting(enabled=False)):
        with pytest.raises(NotFound):
            call()
    with pytest.raises(InvalidInput, match="enabled"):
        saved.set_alerting("yes")  # type: ignore[arg-type]


@pytest.mark.slow
def test_monitoring__can_be_off(workspace: Workspace, dataset: Dataset) -> None:
    """A view that is not monitored has no trend and no alerts, and is not evaluated."""
    saved = dataset.save_view("a")
    with catalog_of(workspace).write() as connection:
        connection.exec_driver_sql("UPDATE saved_views SET monitoring_enabled = 0")
    dataset.add_media(labelled(10, "aa"))
    assert workspace.evaluate_views() == []
    for call in (saved.trend, lambda: saved.set_alerting(enabled=False)):
        with pytest.raises(InvalidInput, match="Monitoring is not enabled for this view"):
            call()
    assert saved.record.stats.n_images == -1


@pytest.mark.slow
def test_caption__words_and_order(dataset: Dataset) -> None:
    """A caption without an encoder of texts is searched by its words, in the view and in each batch."""
    saved = dataset.save_view("caption", dataset.where(vql.labels(["a", "b"])), caption="bbb")
    assert len(saved.view()) == 4
    dataset.add_media(labelled(10, "abb"))
    assert counts_of(saved) == {1: 2}
    assert len(saved.view()) == saved.record.stats.n_images == 6


class Letters:
    """An encoder of texts by the number of the letters a and b in them."""

    name, dimension = "letters", 3

    def encode_texts(self, texts: Any) -> Any:
        """Return a vector for each text."""
        import numpy as np

        numbers = np.array([[text.count("aaa"), text.count("bbb"), 0.1] for text in texts], np.float32)
        return numbers / np.linalg.norm(numbers, axis=1, keepdims=True)


def test_caption__by_meaning_with_a_threshold(tmp_path: Path) -> None:
    """With an encoder of texts a caption is searched by meaning, and the threshold is the smallest similarity."""
    with Workspace(tmp_path / "ws", settings=SETTINGS, text_encoder=Letters()) as workspace:
        dataset = workspace.create_dataset("pets", labelled(0, "abababab"))
        near = dataset.save_view("near", caption="aaa", threshold=0.9)
        wide = dataset.save_view("wide", caption="aaa", threshold=0.001)
        assert (near.record.filters.threshold, near.record.filters.caption) == ("0.9", "aaa")
        dataset.add_media(labelled(10, "aab"))
        assert (counts_of(near), counts_of(wide)) == ({1: 2}, {1: 3})
        assert (len(near.view()), len(wide.view())) == (6, 11)


@pytest.mark.slow
def test_objects_and_videos__are_counted_as_such(workspace: Workspace, tmp_path: Path) -> None:
    """A view of objects counts objects, one of videos the videos with a frame that passes, one of images both."""
    scenes(tmp_path / "first", 2)
    dataset = workspace.create_dataset("scenes", tmp_path / "first", "gist")
    cats = dataset.save_view("cats", dataset.objects.where(vql.labels("cat")))
    videos = dataset.save_view("videos", entity_type="VIDEOS")
    media = dataset.save_view("media")
    with_dogs = dataset.save_view("with dogs", dataset.where(vql.objects("dog")))
    of_media = dataset.save_view("of media", dataset.objects.where(vql.labels("cat") & vql.tags("untagged")))
    scenes(tmp_path / "second", 3, seed=5)
    write_video(tmp_path / "second/film.mp4", numbered(30))
    dataset.add_media(tmp_path / "second")
    frames = dataset.where(vql.media("video_frame")).count()
    assert frames > 1
    assert (counts_of(cats), counts_of(videos), counts_of(media)) == ({1: 6}, {1: 1}, {1: 3 + frames})
    assert (counts_of(with_dogs), counts_of(of_media)) == ({1: 3}, {1: 6})
    assert (with_dogs.record.stats.n_images, of_media.record.stats.n_objects) == (5, 10)
    assert cats.record.stats.model_dump() == {"n_images": 0, "n_objects": 10, "n_video_frames": 0}
    assert videos.record.stats.model_dump() == {"n_images": 0, "n_objects": 0, "n_video_frames": frames}
    assert media.record.stats.model_dump() == {"n_images": 5, "n_objects": 0, "n_video_frames": frames}
    assert len(videos.view()) == frames
    assert cats.view().ids == dataset.objects.where(vql.labels("cat")).ids


def test_objects__of_a_dataset_without_any(dataset: Dataset) -> None:
    """A view of objects can be saved before there are objects; batches without objects count nothing."""
    saved = dataset.save_view("objects", dataset.objects.where(vql.text("fts", "cat")), caption="dog")
    dataset.add_media(labelled(10, "a"))
    assert counts_of(saved) == {1: 0}
    assert saved.record.stats.n_objects == len(saved.view()) == 0


@pytest.mark.slow
def test_evaluation__a_failure_stops_no_other(
    workspace: Workspace, dataset: Dataset, caplog: pytest.LogCaptureFixture
) -> None:
    """A view that cannot be evaluated has no results in the batch, and keeps the reason; the others have theirs."""
    dataset.add_field("rating", "float")
    broken = dataset.save_view("rated", dataset.where(vql.field("rating", "gt", 3)))
    gone = dataset.save_view("like", dataset.where(vql.similarity("media", dataset.view.ids[0])))
    sound = dataset.save_view("a", dataset.where(vql.labels("a")))
    dataset.delete_field("rating")
    dataset.delete_media(dataset.view.ids[:1])
    dataset.add_media(labelled(10, "aa"))
    assert "rating" in (broken.record.evaluation_error or "")
    assert "no media" in (gone.record.evaluation_error or "")
    assert (counts_of(broken), counts_of(gone), counts_of(sound)) == ({1: 0}, {1: 0}, {1: 2})
    assert sound.record.evaluation_error is None
    assert "the saved view 'rated' cannot be evaluated" in caplog.text
    with pytest.raises(InvalidFilter, match="rating"):
        broken.view().count()
    dataset.add_field("rating", "float")
    dataset.set_field("rating", {dataset.view.ids[-1]: 5.0})
    assert workspace.evaluate_views("pets") == []
    dataset.add_media(labelled(12, "a"))
    assert broken.record.evaluation_error is None
    assert counts_of(broken) == {1: 0, 2: 0}


def test_evaluation__while_the_disk_fails(workspace: Workspace, dataset: Dataset) -> None:
    """A failure that is not the view's leaves the batch due: the next evaluation counts it."""
    saved = dataset.save_view("a", dataset.where(vql.labels("a")))

    with failing("framedex.operations.monitoring.filter_of", error=WorkspaceError("the disk is gone")):
        dataset.add_media(labelled(10, "aa"))
    assert (counts_of(saved), saved.record.evaluation_error) == ({}, "the disk is gone")
    (alert,) = workspace.evaluate_views("pets")
    assert (alert.view_name, alert.batch, alert.result_count) == ("a", 1, 2)
    assert saved.record.evaluation_error is None
    assert workspace.evaluate_views() == []


@pytest.mark.slow
@pytest.mark.only_soak
def test_evaluate_views__what_another_process_left(workspace: Workspace, dataset: Dataset) -> None:
    """Batches that were committed without an evaluation are evaluated by the next call, or the next addition."""
    saved = dataset.save_view("a", dataset.where(vql.labels("a")))
    hook, runner_of(workspace).after_commit = runner_of(workspace).after_commit, None
    dataset.add_media(labelled(10, "aa"))
    dataset.delete_media(dataset.view.ids[-1:])
    assert counts_of(saved) == {}
    assert [alert.batch for alert in workspace.evaluate_views()] == [1]
    assert counts_of(saved) == {1: 1}
    dataset.add_media(labelled(12, "ab"))
    runner_of(workspace).after_commit = hook
    dataset.add_media(labelled(14, "a"))
    assert counts_of(saved) == {1: 1, 2: 1, 3: 1}
    assert len(dataset.alerts()) == 3
    with pytest.raises(NotFound, match="no dataset 'x'"):
        workspace.evaluate_views("x")


@pytest.mark.slow
def test_evaluation__never_fails_an_addition_or_another_dataset(
    workspace: Workspace, dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A dataset that cannot be evaluated fails no addition; the call names the reason, after all other datasets."""
    other = workspace.create_dataset("other", labelled(20, "ab"))
    saved, of_other = dataset.save_view("a"), other.save_view("a")

    def open_or_fail(context: Context, dataset_id: str) -> Media:
        if dataset_id == dataset.id or is_down:
            raise WorkspaceError("the disk is gone")
        return open_media(context, dataset_id)

    is_down = True
    monkeypatch.setattr(monitoring, "open_media", open_or_fail)
    dataset.add_media(labelled(10, "aa"))
    other.add_media(labelled(30, "a"))
    assert (dataset.count(), other.count()) == (12, 3)
    is_down = False
    with pytest.raises(WorkspaceError, match="the disk is gone"):
        workspace.evaluate_views()
    assert (counts_of(saved), counts_of(of_other)) == ({}, {1: 1})
    monkeypatch.undo()
    assert len(workspace.evaluate_views()) == 1
    assert counts_of(saved) == {1: 2}


@pytest.mark.slow
def test_restore__takes_no_points_away_and_no_number_is_used_twice(dataset: Dataset) -> None:
    """Points of batches that a restore takes away stay; the next batch has a new number."""
    saved = dataset.save_view("a", dataset.where(vql.labels("a")))
    before = dataset.snapshots()[0]
    dataset.add_media(labelled(10, "aaa"), auto_reindex=True)
    dataset.restore(before)
    assert counts_of(saved) == {1: 3}
    dataset.add_media(labelled(20, "a"))
    assert counts_of(saved) == {1: 3, 2: 1}
    assert dataset.where(vql.batch(2)).count() == 1


@pytest.mark.slow
def test_batches__are_additions_alone(tmp_path: Path) -> None:
    """An enrichment, added objects and a reindex are no batches; the enriched copy has no views."""
    scenes(tmp_path / "scenes", 2)
    with Workspace(tmp_path / "ws", settings=SETTINGS) as workspace:
        register_models(workspace, Hues())
        dataset = workspace.create_dataset("pets", tmp_path / "scenes")
        saved, boxes = dataset.save_view("all"), dataset.save_view("boxes", dataset.objects)
        assert dataset.enrich(ENCODE).views() == []
        write_table(tmp_path / "more.csv", [("000.png", (1.0, 1.0, 20.0, 20.0), "owl")])
        dataset.add_objects(tmp_path / "more.csv")
        dataset.add_media(paint(tmp_path / "more", 1))
        dataset.reindex()
        assert (counts_of(saved), counts_of(boxes)) == ({1: 1}, {1: 0})


@pytest.mark.slow
def test_copies__have_no_saved_views(workspace: Workspace, dataset: Dataset) -> None:
    """A clone has no views, and its additions are not those of its source; a deletion takes the views along."""
    saved = dataset.save_view("a")
    clone = dataset.clone()
    assert (clone.views(), clone.alerts()) == ([], [])
    clone.add_media(labelled(10, "aa"))
    assert counts_of(saved) == {}
    workspace.delete_dataset("pets")
    with pytest.raises(NotFound):
        _ = saved.record
    with catalog_of(workspace).read() as connection:
        for table in ("saved_views", "trend_points"):
            assert connection.exec_driver_sql(f"SELECT count(*) FROM {table}").scalar() == 0


@pytest.mark.slow
def test_read_only__views_are_read_and_not_changed(tmp_path: Path, workspace: Workspace, dataset: Dataset) -> None:
    """A workspace that was opened for reading shows views, trends and alerts, and refuses changes."""
    dataset.save_view("a", dataset.where(vql.labels("a")))
    dataset.add_media(labelled(10, "aa"))
    with Workspace(tmp_path / "workspace", read_only=True, settings=SETTINGS) as reader:
        found = reader.dataset("pets")
        saved = found.saved_view("a")
        assert counts_of(saved) == {1: 2}
        assert len(found.alerts()) == 1
        changes: list[Callable[[], Any]] = [
            lambda: found.save_view("b"),
            lambda: saved.rename("b"),
            lambda: saved.set_alerting(enabled=False),
            saved.delete,
            reader.evaluate_views,
        ]
        for change in changes:
            with pytest.raises(ReadOnly):
                change()


def test_trend__display(dataset: Dataset) -> None:
    """A trend is shown as a plot, with and without points, whatever the view is named."""
    saved = dataset.save_view("<a & b>")
    assert "no batch was added yet" in saved.trend()._repr_html_()
    dataset.add_media(labelled(10, "aa"))
    shown = saved.trend()._repr_html_()
    assert "&lt;a &amp; b&gt;: 2 results in 1 batch" in shown
    assert "2 new, 2 in all" in shown
    assert repr(saved.trend()) == "<framedex.Trend of '<a & b>': 2 results in 1 batch>"


COUNTED: list[Any] = [
    [],
    vql.labels("animal"),
    vql.labels(["animal", "town"]) & ~vql.labels("fur"),
    vql.uniqueness(0.3) | vql.file_name("contains", "0"),
    vql.issues("blur", confidence_min=0.1) & vql.uniqueness(0.01),
    vql.field("rating", "gt", 1.5),
    vql.batch([0, 7]),
    vql.folder("starts", "towns"),
]


@pytest.mark.slow
def test_counts__in_one_pass_are_those_of_single_filters(workspace: Workspace, tmp_path: Path) -> None:
    """The counts of several conditions together are those of each alone, whatever parameters they have."""
    dataset = workspace.create_dataset("pets", labelled(0, "ababab"))
    dataset.set_labels(dataset.view.ids[:4], ["animal", "fur"])
    dataset.add_field("rating", "float", values=dict(zip(dataset.view.ids, [1.0, 2.0, 3.0], strict=False)))
    media = stored_media(dataset)
    conditions = [condition_for(context_of(workspace), media, parse(each)) for each in COUNTED]
    alone = [dataset.where(each).count() for each in COUNTED]
    assert media.counts(conditions) == alone
    assert media.counts(conditions[::-1] * 2) == alone[::-1] * 2
    assert len({*alone}) > 3


@pytest.mark.slow
@pytest.mark.only_soak
def test_files__in_a_folder(workspace: Workspace, tmp_path: Path) -> None:
    """Views of issues and folders count images of a folder, too; their index exists when they are evaluated."""
    dataset = workspace.create_dataset("photos", fill(tmp_path / "one", 3), "gist")
    saved = dataset.save_view("some", dataset.where(vql.uniqueness(0.0) & vql.file_name("contains", "00")))
    dataset.add_media(fill(tmp_path / "two", 4, first_seed=300))
    assert counts_of(saved) == {1: len(dataset.where([*saved.record.filters.vql, *vql.batch(1)]))}
