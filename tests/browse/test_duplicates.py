"""Duplicate groups: near-duplicates and equal files, and the member to keep."""

import os
import pickle
import re
import uuid
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from framedex import Dataset, InvalidInput, Workspace
from framedex.core.ids import Kind
from framedex.records import DUPLICATE_LEVELS, DuplicateGroup
from tests.gallery import ANIMALS, COPIES, NEAR, Averages, Gallery, embedded
from tests.image_files import detailed, encode, photo, resized, write


def of_files(workspace: Workspace, folder: Path, **times: float) -> Dataset:
    """Return a dataset of a folder with the given modification times by file stem."""
    for path in folder.iterdir():
        if path.stem in times:
            os.utime(path, (0, times[path.stem]))
    return workspace.create_dataset("files", folder, Averages())


def best(group: DuplicateGroup) -> tuple[str, str]:
    """Return the name of the best member of a group, and the reason."""
    return group.file_names[group.media_ids.index(group.keep)], group.keep_reason


def test_duplicates__groups(gallery: Gallery) -> None:
    """Copies and edits of one image form a group; groups are ordered by size and list their members."""
    groups = gallery.dataset.duplicates()
    assert [sorted(gallery.names(group.media_ids)) for group in groups] == [sorted(COPIES), *map(sorted, NEAR)]
    assert [len(group.file_names) for group in groups] == [3, 2, 2]
    assert groups[0].similarity == 1
    assert all(0.96 <= group.similarity <= 1 and group.threshold == 0.96 for group in groups)
    assert len({group.group_id for group in groups}) == 3
    assert gallery.dataset.duplicates(limit=1) == groups[:1]
    assert groups[0].confidence == 1
    assert all(0.96 <= group.confidence <= group.similarity for group in groups)


@pytest.mark.slow
@pytest.mark.parametrize("level", DUPLICATE_LEVELS)
def test_duplicates__nested_levels(gallery: Gallery, level: float) -> None:
    """A group at a stricter level lies within one of each looser level."""
    looser = [set(group.media_ids) for group in gallery.dataset.duplicates(0.96)]
    for group in gallery.dataset.duplicates(level):
        assert group.threshold == level
        assert sum(set(group.media_ids) <= members for members in looser) == 1


@pytest.mark.slow
@pytest.mark.parametrize(("asked", "used"), [(0.96, 0.96), (0.961, 0.97), (0.98, 0.98), (0.9999, 1), (1, 1)])
def test_duplicates__between_levels(gallery: Gallery, asked: float, used: float) -> None:
    """A threshold between two levels is rounded to the stricter one, which the groups show."""
    groups = gallery.dataset.duplicates(asked)
    assert groups == gallery.dataset.duplicates(used)
    assert {group.threshold for group in groups} == {used}


@pytest.mark.parametrize("threshold", [-0.1, 0, 0.5, 0.9599, 1.1, 95, float("nan"), "0.96", None, True])
def test_duplicates__unusable_threshold(gallery: Gallery, threshold: Any) -> None:
    """A threshold outside 0.96 to 1 is refused instead of being treated as 0.96."""
    with pytest.raises(InvalidInput, match=r"number from 0\.96 to 1.* 0\.985, .*0\.999 and 1\.0"):
        gallery.dataset.duplicates(threshold)


def test_duplicates__of_a_view(gallery: Gallery) -> None:
    """A group with only one member in the filter is left out."""
    view = gallery.dataset.where([{"labels": {"op": "is", "value": "animal"}}])
    assert view.duplicates() == []


def test_duplicates__of_given_embeddings(workspace: Workspace) -> None:
    """Groups are connected by pairs of sufficient similarity, for any encoder."""
    dataset = workspace.create_dataset("d", embedded([[1, 0], [0.98, 0.199], [0, 1], [0.0, 2.0]]))
    assert [group.file_names for group in dataset.duplicates(0.97)] == [["0.jpg", "1.jpg"], ["2.jpg", "3.jpg"]]
    assert [group.file_names for group in dataset.duplicates(0.99)] == [["2.jpg", "3.jpg"]]


@pytest.mark.parametrize("limit", [-1, 1.5, "3", True])
@pytest.mark.parametrize("exact", [False, True])
def test_duplicates__unusable_limit(gallery: Gallery, limit: Any, exact: bool) -> None:
    """A limit is a count."""
    with pytest.raises(InvalidInput, match="limit must be a whole number"):
        gallery.dataset.duplicates(exact=exact, limit=limit)


@pytest.mark.slow
def test_duplicates__confidence_is_the_lowest_similarity(workspace: Workspace) -> None:
    """The confidence of a group is the lowest similarity of a member."""
    (group,) = workspace.create_dataset("d", embedded([[1, 0], [1, 0], [0.98, 0.199]])).duplicates()
    assert group.similarity == 1
    assert group.confidence == pytest.approx(0.98, abs=1e-3)


def test_keep__the_largest(gallery: Gallery) -> None:
    """An image is better than its small version, which was made from it."""
    group = gallery.dataset.duplicates()[1]
    name, reason = best(group)
    assert name == "02.jpg"
    assert reason.startswith("It has the most detail: 0.02 megapixels")


@pytest.mark.slow
def test_keep__the_least_compressed(workspace: Workspace, tmp_path: Path) -> None:
    """Of images with equal size and sharpness the one with more bytes per pixel is better, although it is newer."""
    write(tmp_path / "p" / "a.webp", photo(1), quality=92)
    write(tmp_path / "p" / "b.webp", photo(1), quality=97)
    (group,) = of_files(workspace, tmp_path / "p", a=1e9, b=1.5e9).duplicates(0.99)
    name, reason = best(group)
    assert name == "b.webp"
    words = r"Not sure which is the original, but it is the least compressed: [\d.]+ bytes a pixel against .*[\d.]+\d\."
    assert re.fullmatch(words, reason)


@pytest.mark.slow
def test_keep__the_sharpest(workspace: Workspace, tmp_path: Path) -> None:
    """Of images with equal size the sharper one is better, although it is more compressed."""
    sharp = photo(7, width=320, height=240)
    write(tmp_path / "p" / "a.png", np.asarray(cv2.GaussianBlur(sharp, (0, 0), 4), dtype=np.uint8))
    write(tmp_path / "p" / "b.jpg", sharp, quality=90)
    (group,) = of_files(workspace, tmp_path / "p").duplicates()
    name, reason = best(group)
    assert name == "b.jpg"
    assert re.fullmatch(r"It is not blurred: 0\.\d\d+ of sharpness against at most 0\.\d\d+\.", reason)


@pytest.mark.slow
@pytest.mark.only_soak
@pytest.mark.parametrize(
    ("times", "expected"),
    [
        ({"a": 1.5e9, "b": 1e9}, ("b.png", "It is the oldest: 2001-09-09 against 2017-07-14 at the earliest.")),
        (
            {"a": 1.5e9, "b": 1.5e9 - 9},
            ("b.png", "It is the oldest: 2017-07-14 02:39:51 against 2017-07-14 02:40:00 at the earliest."),
        ),
        ({"a": 1.5e9, "b": 1.5e9 - 1}, ("a.png", "It is the first in order.")),
    ],
)
def test_keep__the_oldest(
    workspace: Workspace, tmp_path: Path, times: dict[str, float], expected: tuple[str, str]
) -> None:
    """Of equal files the one with the oldest modification is better, if by more than 2 s; else the first in order."""
    for name in ("a", "b"):
        write(tmp_path / "p" / f"{name}.png", photo(1))
    dataset = of_files(workspace, tmp_path / "p", **times)
    (equal,) = dataset.duplicates(exact=True)
    assert best(equal) == expected
    (near,) = dataset.duplicates()
    assert best(near) == expected


@pytest.mark.slow
def test_keep__among_several(workspace: Workspace, tmp_path: Path) -> None:
    """If several have the most detail, the next criterion decides among them alone, and the reason says so."""
    write(tmp_path / "p" / "a.png", resized(detailed(1), 0.5))
    for name in ("b", "c"):
        write(tmp_path / "p" / f"{name}.png", detailed(1))
    (group,) = of_files(workspace, tmp_path / "p", a=1e8, b=1.5e9, c=1.4e9).duplicates()
    assert best(group) == (
        "c.png",
        "Of the 2 best, it is the oldest: 2014-05-13 against 2017-07-14 at the earliest.",
    )


def test_keep__unknown_loses(workspace: Workspace) -> None:
    """An image of known size is better than one of unknown size; if all are unknown, the first is."""
    table = embedded([[1, 0], [1, 0], [0, 1], [0, 1]], width=[None, 6, None, None], height=[None, 4, None, None])
    first, second = workspace.create_dataset("d", table).duplicates()
    assert best(first) == ("1.jpg", "It is the largest: 6×4, the others unknown.")
    assert best(second) == ("2.jpg", "It is the first in order.")


def test_keep__of_what_a_filter_leaves(gallery: Gallery) -> None:
    """The best member of a filtered group is the best within the filter."""
    original = {"labels": {"op": "is", "value": "fur"}}
    (group,) = gallery.dataset.where([{"not": original}]).duplicates()
    assert sorted(gallery.names(group.media_ids)) == COPIES[1:]
    assert group.keep in group.media_ids


def test_exact__groups_of_equal_files(gallery: Gallery) -> None:
    """Files of equal content form a group of similarity 1, and other files do not."""
    (group,) = gallery.dataset.duplicates(exact=True)
    assert sorted(gallery.names(group.media_ids)) == sorted(COPIES)
    assert (group.threshold, group.similarity, group.confidence) == (1, 1, 1)
    assert group.keep in group.media_ids
    assert gallery.dataset.duplicates(exact=True, limit=0) == []


def test_exact__broken_files_too(workspace: Workspace, tmp_path: Path) -> None:
    """Equal broken files form a group; groups are ordered by size, then by their first members."""
    contents = {"a": b"broken", "b": encode(photo(1)), "c": encode(photo(2)), "d": b"broken", "e": encode(photo(2))}
    (tmp_path / "p").mkdir()
    for name, content in contents.items():
        (tmp_path / "p" / f"{name}.png").write_bytes(content)
    (tmp_path / "p" / "f.png").write_bytes(contents["e"])
    dataset = of_files(workspace, tmp_path / "p", a=1e9, d=1.5e9)
    groups = dataset.duplicates(exact=True)
    assert [group.file_names for group in groups] == [["c.png", "e.png", "f.png"], ["a.png", "d.png"]]
    assert best(groups[1]) == ("a.png", "It is the oldest: 2001-09-09 against 2017-07-14 at the earliest.")
    left = dataset.where([{"issues": {"op": "issue", "value": "corrupted"}}]).duplicates(exact=True)
    assert left == groups[1:]


@pytest.mark.slow
def test_exact__ids_are_those_of_the_content(gallery: Gallery, workspace: Workspace, tmp_path: Path) -> None:
    """A group keeps its id if other files are added, and has another id in another dataset."""
    (found,) = gallery.dataset.duplicates(exact=True)
    raw = uuid.UUID(found.group_id)
    assert (raw.version, raw.bytes[7]) == (8, Kind.CONTENT_GROUP)
    view = gallery.dataset.where([{"labels": {"op": "is_not", "value": "fur"}}])
    assert [group.group_id for group in view.duplicates(exact=True)] == [found.group_id]
    for name in ("a", "b"):
        write(tmp_path / "p" / f"{name}.jpg", photo(0), quality=95)
    assert (tmp_path / "p" / "a.jpg").read_bytes() == (gallery.folder / ANIMALS[0]).read_bytes()
    (other,) = of_files(workspace, tmp_path / "p").duplicates(exact=True)
    assert other.group_id != found.group_id


@pytest.mark.slow
def test_exact__without_files(workspace: Workspace) -> None:
    """Media without read files are in no group."""
    assert workspace.create_dataset("d", embedded([[1, 0], [1, 0]])).duplicates(exact=True) == []


def test_duplicates__copies_are_plain_lists(gallery: Gallery) -> None:
    """Groups can be copied and pickled without their workspace."""
    groups = gallery.dataset.duplicates()
    copied = pickle.loads(pickle.dumps(groups))
    assert (type(copied), copied) == (list, groups)
