"""Copies of media of one view among those of another one: leaks between datasets, and between parts of one."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from framedex import Dataset, InvalidInput, Workspace, vql
from framedex.analysis.copies import find_candidates
from framedex.cli import main
from framedex.errors import Aborted
from tests.encoders.onnx_models import classifier
from tests.gallery import VERIFYING
from tests.image_files import Pixels, detailed, encode, resized, write

SAME = "same.jpg", "copy-of-same.jpg"
EDITS = {"small.png": "resized to 50%", "flipped.png": "mirrored", "cut.png": "cropped to 49%"}


def cut(pixels: Pixels) -> Pixels:
    height, width = pixels.shape[:2]
    return pixels[round(height * 0.15) : round(height * 0.85), round(width * 0.15) : round(width * 0.85)]


@dataclass(frozen=True)
class Parts:
    """Training and test images with planted leaks: as two datasets of different encoders, and as parts of one."""

    workspace: Workspace
    train: Dataset
    test: Dataset
    folder: Path


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Parts]:
    """Five training images, of which the test images have four copies, beside four others."""
    folder = tmp_path_factory.mktemp("overlap")
    for seed in range(5):
        write(folder / "train" / f"{seed}.png", detailed(seed))
    (folder / "train" / SAME[0]).write_bytes(encode(detailed(20), "JPEG"))
    (folder / "test").mkdir()
    (folder / "test" / SAME[1]).write_bytes(encode(detailed(20), "JPEG"))
    edited = zip(EDITS, (resized(detailed(0), 0.5), detailed(1)[:, ::-1], cut(detailed(2))), strict=True)
    for name, pixels in edited:
        write(folder / "test" / name, np.ascontiguousarray(pixels))
    for seed in range(30, 34):
        write(folder / "test" / f"{seed}.png", detailed(seed))
    model = classifier(folder / "model.onnx")
    with Workspace(folder / "ws", settings=VERIFYING) as workspace:
        train = workspace.create_dataset("train", folder / "train")
        test = workspace.create_dataset("test", folder / "test", f"onnx:{model}")
        test.tag(test.view, "test")
        yield Parts(workspace, train, test, folder)


def pairs(found: Any) -> dict[str, tuple[str, str | None, str]]:
    """Return pairs by the name here: the name there, which is the copy, and what was done to it."""
    rows = found.to_arrow().to_pylist()
    return {row["here_name"]: (row["there_name"], row["copy"], row["reason"]) for row in rows}


LEAKS = {
    SAME[1]: (SAME[0], None, "same file"),
    "small.png": ("0.png", "here", EDITS["small.png"]),
    "flipped.png": ("1.png", None, EDITS["flipped.png"]),
    "cut.png": ("2.png", "here", EDITS["cut.png"]),
}


@pytest.mark.slow
@pytest.mark.only_soak
def test_overlap__of_two_datasets(parts: Parts) -> None:
    """Planted copies are found, whatever the encoders, and nothing else; each is described from both sides."""
    found = parts.test.overlap(parts.train)
    assert pairs(found) == LEAKS
    assert (len(found), found.count(), found.other_count()) == (4, 4, 4)
    ids = dict(zip(parts.test.to_arrow(["path"])["path"].to_pylist(), parts.test.view.media_ids(), strict=True))
    assert sorted(found.view.ids) == sorted(ids[name] for name in LEAKS)
    assert {row["path"] for row in found.other_view.rows(["path"])} == {"0.png", "1.png", "2.png", SAME[0]}
    back = pairs(parts.train.overlap(parts.test))
    turned = {"here": "there", "there": "here", None: None}
    assert {there: (here, turned[copy], reason) for here, (there, copy, reason) in back.items()} == LEAKS
    similarity = found.to_arrow()["similarity"].to_pylist()
    assert similarity == sorted(similarity, reverse=True)
    assert similarity[0] == 1
    assert similarity[-1] == np.float32(0.96)


def test_overlap__levels_and_exact(parts: Parts) -> None:
    """A higher similarity leaves out what keypoints show; exact copies are files with equal content."""
    assert set(pairs(parts.test.overlap(parts.train, 0.98))) == {SAME[1], "small.png"}
    assert set(pairs(parts.test.overlap(parts.train, exact=True))) == {SAME[1]}
    some = parts.test.where(vql.file_name("ends", "t.png"))
    assert set(pairs(some.overlap(parts.train.view))) == {"cut.png"}
    assert len(some.limit(0).overlap(parts.train)) == 0


@pytest.mark.slow
def test_overlap__of_parts_of_one_dataset(parts: Parts) -> None:
    """Within a dataset the pairs are those of its duplicate groups, so a decision holds; an item in both is one."""
    both = parts.workspace.create_dataset("both", parts.folder / "train")
    both.tag(both.view, "train")
    both.add_media(parts.folder / "test")
    both.tag(both.where(~vql.tags("train")), "test")
    train, test = (both.where(vql.tags(name)) for name in ("train", "test"))
    assert pairs(test.overlap(train)) == LEAKS
    assert set(pairs(test.overlap(train, 0.98))) == {SAME[1], "small.png"}
    batch = both.where(vql.batch(1))
    assert pairs(batch.overlap(both.where(vql.batch(0)))) == LEAKS
    flipped = next(group for group in both.duplicates() if "flipped.png" in group.paths)
    decision = both.not_duplicates(flipped.media_ids)
    assert set(pairs(test.overlap(train))) == set(LEAKS) - {"flipped.png"}
    both.withdraw_decision(decision.decision_id)
    one = both.select(train.media_ids()[:2])
    assert pairs(train.limit(1).overlap(one)) == {"0.png": ("0.png", None, "same media item")}


@pytest.mark.slow
def test_overlap__is_shown(parts: Parts, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It is shown in one line, as pairs of images, as a page, as a DataFrame, and by the command line."""
    found = parts.test.overlap(parts.train)
    assert repr(found) == "<framedex.Overlap of 'test' and 'train': 4 media have copies there: 4 pairs with 4 media>"
    page = found._repr_html_()
    assert page.count("<img") == 8
    assert all(reason in page for reason in EDITS.values())
    content = found.report(tmp_path / "leaks.html").read_text()
    assert "Overlap of test and train" in content
    assert content.count("<img") == 8
    assert found.to_pandas()["reason"].tolist() == found.to_arrow()["reason"].to_pylist()
    folder = str(parts.folder / "ws")
    with pytest.raises(SystemExit):
        main(["overlap", "test", "train", "-w", folder, "--json"])
    shown = json.loads(capsys.readouterr().out)
    assert (shown["count"], shown["other_count"], shown["pairs"]) == (4, 4, 4)
    assert pa.Table.from_pylist(shown["rows"])["here_name"].to_pylist() == list(pairs(found))
    filters = ["--vql", json.dumps([{"tags": {"op": "is", "value": ["test"]}}]), "--other-vql", "[]", "--exact"]
    with pytest.raises(SystemExit):
        main(["overlap", "test", "train", "-w", folder, *filters])
    assert "1 image has copies in the other dataset: 1 pair" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.only_soak
def test_overlap__stays_and_stops(parts: Parts, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that are deleted leave the views; progress that raises stops the search."""
    copy = parts.test.clone()
    found = copy.overlap(parts.train)
    copy.delete_media(found.view.limit(1))
    assert len(found.view) == 3
    assert len(found) == 4

    def stop(_share: float) -> None:
        raise Aborted("stopped")

    monkeypatch.setattr(
        "framedex.jobs.overlap.find_candidates",
        lambda *args, **options: find_candidates(*args, **{**options, "progress": stop}),
    )
    with pytest.raises(Aborted):
        copy.overlap(parts.train)


def test_overlap__bad_input(parts: Parts) -> None:
    """Other objects, equal views, similarities out of range, and datasets without descriptors are refused."""
    with pytest.raises(InvalidInput, match="other must be a dataset or a view"):
        parts.test.overlap("train")
    with pytest.raises(InvalidInput, match="views have the same media; duplicates"):
        parts.test.overlap(parts.test)
    with pytest.raises(InvalidInput, match=r"similarity must be a number from 0\.96 to 1"):
        parts.test.overlap(parts.train, 0.5)
    with pytest.raises(InvalidInput, match="view of objects"):
        parts.test.overlap(parts.train.objects)
    table = pa.table({"uri": ["a.jpg", "b.jpg"], "embedding": [[1.0, 0.0], [0.0, 1.0]]})
    vectors = parts.workspace.create_dataset("vectors", table)
    with pytest.raises(InvalidInput, match="copy descriptors, and a dataset has none"):
        parts.test.overlap(vectors)
    assert len(parts.test.overlap(vectors, exact=True)) == 0
