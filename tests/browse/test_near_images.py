"""Groups of near images: images that are alike, but not all copies of each other."""

import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from framedex import Dataset, InvalidInput, Workspace, vql
from framedex.cli import main
from framedex.records import DuplicateGroup
from tests.gallery import VERIFYING, embedded
from tests.image_files import Pixels, detailed, encode
from tests.inside import layout_of
from tests.prepared import prepared


def shot(scene: int, number: int) -> Pixels:
    """Return a picture of a scene in which one thing moves from picture to picture."""
    pixels = detailed(scene + 1).astype(np.float64)
    left = 20 + 55 * number
    pixels[150:200, left : left + 50] = pixels[20:70, 20:70].copy()
    pixels += np.random.default_rng((scene, number)).normal(0, 2, pixels.shape)
    return np.asarray(np.clip(pixels, 0, 255), np.uint8)


def name_of(scene: int, number: int) -> str:
    """Return the name of the file of a picture."""
    return f"{scene}-{number}.jpg"


def write_shots(folder: Path, shots: list[tuple[int, int]]) -> None:
    """Write pictures of scenes into a folder."""
    folder.mkdir(exist_ok=True)
    for scene, number in shots:
        (folder / name_of(scene, number)).write_bytes(encode(shot(scene, number), "JPEG", quality=90))


@pytest.fixture
def burst(tmp_path: Path) -> Path:
    """Two scenes of three pictures each, one picture with a coarse copy, and a photo with a copy."""
    folder = tmp_path / "images"
    write_shots(folder, [(scene, number) for scene in range(2) for number in range(3)])
    (folder / "alone.jpg").write_bytes(encode(detailed(9), "JPEG", quality=90))
    for name in ("0-1", "alone"):
        copy = np.asarray(Image.open(io.BytesIO((folder / f"{name}.jpg").read_bytes())))
        (folder / f"{name}-copy.jpg").write_bytes(encode(copy, "JPEG", quality=40))
    return folder


@pytest.fixture
def dataset(burst: Path, tmp_path: Path) -> Dataset:
    workspace = Workspace(tmp_path / "workspace", settings=VERIFYING)
    return prepared(workspace, "burst", burst, "gist")


def names(groups: list[DuplicateGroup]) -> list[list[str]]:
    """Return the files of groups, sorted."""
    return sorted(sorted(group.file_names) for group in groups)


FIRST = ["0-0.jpg", "0-1-copy.jpg", "0-1.jpg", "0-2.jpg"]
SECOND = ["1-0.jpg", "1-1.jpg", "1-2.jpg"]


def test_near__groups(dataset: Dataset) -> None:
    """Pictures of a scene are a group with their copies; copies alone are no near images."""
    groups = dataset.duplicates(near=True)
    assert names(groups) == [FIRST, SECOND]
    assert names(dataset.duplicates()) == [["0-1-copy.jpg", "0-1.jpg"], ["alone-copy.jpg", "alone.jpg"]]
    largest = groups[0]
    reasons = dict(zip(largest.file_names, largest.reasons, strict=True))
    kept = largest.file_names[largest.media_ids.index(largest.keep)]
    assert kept != "0-1-copy.jpg"
    assert {reasons[name] for name in FIRST if name[:3] != kept[:3]} == {"alike, no copy"}
    assert (largest.threshold, largest.is_sure) == (0.95, True)
    assert groups[0].group_id not in {each.group_id for each in dataset.duplicates()}
    assert dataset.duplicates(near=True, limit=1) == groups[:1]
    assert dataset.duplicates(near=True, of=dataset.media_id("1-1.jpg")) == groups[1:]
    assert dataset.duplicates(near=True, of=dataset.media_id("alone.jpg")) == []
    some = dataset.where(vql.ids([dataset.media_id(name) for name in ("1-0.jpg", "1-2.jpg")]))
    assert names(some.duplicates(near=True)) == [["1-0.jpg", "1-2.jpg"]]
    assert dataset.where(vql.duplicates("near")).count() == 9
    assert dataset.where(~vql.duplicates(0.96) & vql.duplicates("near")).count() == 5
    for wrong in ({"exact": True}, {"within_videos": True}, {"entity_type": "VIDEOS"}):
        with pytest.raises(InvalidInput, match="near returns groups of images"):
            dataset.duplicates(near=True, **wrong)


def test_near__keeps_what_a_person_chose(dataset: Dataset) -> None:
    """A picture that a person chose stays, and pictures that a person keeps apart are no group any more."""
    last = dataset.media_id("1-2.jpg")
    dataset.keep(last)
    assert last in {group.keep for group in dataset.duplicates(near=True)}
    plan = dataset.plan_cleanup(duplicates="near")
    assert last not in plan.removed_ids()
    dataset.not_duplicates([dataset.media_id(name) for name in SECOND])
    assert names(dataset.duplicates(near=True)) == [FIRST]
    dataset.withdraw_decision(dataset.duplicate_decisions()[0].decision_id)
    assert names(dataset.duplicates(near=True)) == [FIRST, SECOND]


def test_near__in_clean_ups(dataset: Dataset, capsys: pytest.CaptureFixture[str]) -> None:
    """Near images are removed only by plans that name them; of each group one stays, the best of its copies."""
    for duplicates in (0.96, "exact"):
        assert "near" not in dataset.plan_cleanup(duplicates=duplicates, basket=True).summary.counts
    plan = dataset.plan_cleanup(duplicates="near")
    assert plan.summary.counts["near"] + plan.summary.counts["duplicates"] == len(plan) == 6
    assert "near images" in plan.words
    rows = {row["path"]: row for row in plan.to_arrow().to_pylist()}
    assert rows["0-1-copy.jpg"]["action"] == "remove"
    assert rows["alone-copy.jpg"]["reason"].startswith("near-duplicate (")
    goes = [row for name, row in rows.items() if name[0] == "1" and row["action"] == "remove"]
    assert [row["issue_type"] for row in goes] == ["near", "near"]
    assert all(row["reason"].startswith("alike, no copy; its group keeps 1-") for row in goes)
    workspace = str(layout_of(dataset).root)
    for command in (["cleanup", "burst", "--duplicates", "near"], ["duplicates", "burst", "--near"]):
        with pytest.raises(SystemExit, match="0"):
            main([*command, "--workspace", workspace])
    assert "alike, no copy" in capsys.readouterr().out
    kept = dataset.duplicates(near=True)
    result = plan.apply()
    assert (result.removed, dataset.count(), dataset.duplicates(near=True)) == (6, 3, [])
    assert {group.keep for group in kept} <= set(dataset.view.media_ids())
    dataset.undo()
    assert dataset.duplicates(near=True) == kept


def test_near__of_vectors(workspace: Workspace) -> None:
    """Rows of a table of vectors are near-duplicates only; a plan for near images removes these."""
    dataset = workspace.create_dataset("vectors", embedded([[1, 0], [1, 0.01], [0, 1]]))
    assert dataset.duplicates(near=True) == []
    assert len(dataset.plan_cleanup(duplicates="near")) == len(dataset.plan_cleanup(duplicates=0.96)) == 1
