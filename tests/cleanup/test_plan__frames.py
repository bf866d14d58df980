"""Clean-up plans that thin out the frames of videos."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from framedex import Dataset, InvalidInput, Workspace, vql
from framedex.storage.copy_pairs import read_descriptors
from tests.image_files import detailed, photo, write
from tests.inside import stored_media
from tests.prepared import prepared
from tests.videos import write_video

STILL, PANNED = 6, 40


@pytest.fixture
def dataset(workspace: Workspace, tmp_path: Path) -> Dataset:
    """A slow pan over a wide photo, a still video, and an image of what the still one shows."""
    folder = tmp_path / "media"
    wide = photo(7, width=1200, height=240)
    write_video(folder / "pan.mp4", [wide[:, x : x + 320] for x in range(0, PANNED * 20, 20)], fps=1)
    write_video(folder / "still.mp4", [detailed(1)] * STILL, fps=1)
    write(folder / "still.png", detailed(1))
    return prepared(workspace, "films", folder, "gist")


def rows_of(dataset: Dataset, **options: Any) -> list[dict[str, Any]]:
    """Return the rows of the plan of near-duplicates."""
    rows: list[dict[str, Any]] = dataset.plan_cleanup(duplicates=0.96, **options).to_arrow().to_pylist()
    return rows


@pytest.mark.slow
def test_plan__keeps_a_frame_like_each_that_goes(dataset: Dataset) -> None:
    """What goes is as alike as the level says to what stays, also in a pan whose ends show different places."""
    media = stored_media(dataset)
    ids = [row["media_id"] for row in media.table.scan(["media_id"]).read_all().to_pylist()]
    places, vectors = read_descriptors(media.table, np.arange(media.table.count()))
    vector = {ids[place]: vectors[number] for number, place in enumerate(places.tolist())}
    rows = rows_of(dataset, within_videos=True)
    goes = [row for row in rows if row["action"] == "remove"]
    of_pan = [row for row in goes if row["path"] == "pan.mp4"]
    similar = [float(vector[row["media_id"]] @ vector[row["kept_media_id"]]) for row in of_pan]
    assert PANNED / 3 < len(of_pan) < PANNED - 3
    assert min(similar) >= 0.96 - 1e-5
    stays = {row["kept_media_id"] for row in of_pan}
    assert len(stays) > 3
    assert {row["path"] for row in rows if row["media_id"] in stays} == {"pan.mp4"}
    assert all("; its group keeps pan.mp4 at " in row["reason"] for row in of_pan)
    summary = dataset.plan_cleanup(duplicates=0.96, within_videos=True).summary
    assert (summary.removed, summary.size_bytes) == (len(of_pan), 0)  # the file of a video stays


@pytest.mark.slow
def test_plan__has_the_groups_that_are_listed(dataset: Dataset) -> None:
    """The plan keeps one of each group of :meth:`Dataset.duplicates`, by its id; without the flag frames stay."""
    groups = {group.group_id: group for group in dataset.duplicates(within_videos=True)}
    rows = rows_of(dataset, within_videos=True, unsure=True)
    for name, group in groups.items():
        members = {row["media_id"]: row["action"] for row in rows if row["group_id"] == name}
        assert sorted(members) == sorted(group.media_ids)
        assert [each for each, action in members.items() if action == "keep"] == [group.keep]
    assert {row["group_id"] for row in rows} == set(groups)
    of_still = [row for row in rows if row["path"].startswith("still")]
    assert len([row for row in of_still if row["action"] == "remove"]) == STILL  # of as many frames and the image
    assert [row["path"] for row in rows_of(dataset, unsure=True)] == [row["path"] for row in of_still]


@pytest.mark.slow
def test_plan__is_applied_and_undone(dataset: Dataset) -> None:
    """After a plan a second one removes nothing; an undo brings the frames back."""
    count = dataset.count()
    plan = dataset.plan_cleanup(duplicates=0.96, within_videos=True)
    plan.apply()
    assert dataset.count() == count - len(plan)
    assert len(dataset.plan_cleanup(duplicates=0.96, within_videos=True)) == 0
    dataset.undo()
    assert dataset.count() == count
    assert dataset.plan_cleanup(duplicates=0.96, within_videos=True).removed_ids() == plan.removed_ids()


@pytest.mark.slow
def test_plan__of_part_of_a_video(dataset: Dataset) -> None:
    """Only frames that pass the filter go, and stay in place of others."""
    frames = dataset.where([{"file_name": {"op": "is", "value": "pan.mp4"}}]).media_ids()[:10]
    plan = dataset.plan_cleanup(duplicates=0.96, within_videos=True, where=vql.ids(frames))
    assert 0 < len(plan) < len(frames)
    assert set(plan.to_arrow()["media_id"].to_pylist()) <= set(frames)


@pytest.mark.parametrize("duplicates", [None, "exact", "near"])
def test_plan__within_videos_needs_a_similarity(workspace: Workspace, tmp_path: Path, duplicates: Any) -> None:
    """Other rules for duplicates are refused with the flag, which must be one."""
    write(tmp_path / "media" / "a.png", photo(1))
    dataset = prepared(workspace, "one", tmp_path / "media", "gist")
    with pytest.raises(InvalidInput, match="within_videos goes with a similarity"):
        dataset.plan_cleanup(duplicates=duplicates, issues=["dark"], within_videos=True)
    with pytest.raises(InvalidInput, match="within_videos"):
        dataset.plan_cleanup(duplicates=0.96, within_videos=1)  # type: ignore[arg-type]
    assert len(dataset.plan_cleanup(duplicates=0.96, within_videos=True)) == 0  # without videos it changes nothing
