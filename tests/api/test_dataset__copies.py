"""Copies of images in the life of a dataset: how they are found, what is known of them, and which one is kept."""

import json
import logging
import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt
import pytest
from pydantic import ValidationError

from framedex import Dataset, InvalidInput, Workspace, WorkspaceError
from framedex.cli import main
from framedex.core.ids import media_id
from framedex.jobs.index.keypoint_cache import _RECORD
from framedex.jobs.ingest.image_pass import decode_rows
from framedex.records import DatasetStatus, DuplicateGroup
from framedex.settings import Settings, load_settings
from framedex.storage.copy_pairs import CopyPairs, read_pairs
from framedex.storage.media_rows import COPY_DESCRIPTOR, PANEL_DESCRIPTORS, STANDING
from framedex.storage.table_names import COPIES
from tests.encoders.onnx_models import classifier
from tests.enrichments import ENCODE, Hues, register_models
from tests.environment import Environment
from tests.gallery import VERIFYING
from tests.growth import columns_of, ids_of, part, status_of
from tests.image_files import Pixels, detailed, photo, resized, write
from tests.inside import layout_of, stored_media
from tests.laws import rest_slow
from tests.objects import scenes
from tests.pauses import Pause, watched
from tests.tuning import Tuning
from tests.videos import numbered, write_video

Copies = dict[str, dict[str, str]]
"""By the path of the kept member: how each other member of the group is a copy of it."""
OPENED = 1_000_000_000
HALF = "cropped to 49%"


def cut(pixels: Pixels) -> Pixels:
    """Return the middle of an image: half of its area."""
    height, width = pixels.shape[:2]
    return pixels[round(height * 0.15) : round(height * 0.85), round(width * 0.15) : round(width * 0.85)]


def mirrored(pixels: Pixels) -> Pixels:
    return np.ascontiguousarray(pixels[:, ::-1])


def turned(pixels: Pixels, quarters: int = 1) -> Pixels:
    return np.ascontiguousarray(np.rot90(pixels, quarters))


def framed(pixels: Pixels) -> Pixels:
    """Return an image within a white border."""
    white = (255.0, 255.0, 255.0)
    return np.asarray(cv2.copyMakeBorder(pixels, 40, 40, 40, 40, cv2.BORDER_CONSTANT, value=white), np.uint8)


def in_ornate_frame(pixels: Pixels) -> Pixels:
    """Return an image in the middle of a picture of a frame, always the same one."""
    height, width = pixels.shape[:2]
    frame = detailed(999, width=width + 80, height=height + 80)
    frame[40:-40, 40:-40] = pixels
    return frame


def edited(pixels: Pixels) -> Pixels:
    """Return an image with a caption across its middle."""
    new = pixels.copy()
    new[100:140, 80:240] = 255
    new[112:128, 100:220] = 0
    return new


def put(folder: Path, images: Mapping[str, Pixels], **options: Any) -> Path:
    """Write images by name, with one time of change for all, and return the folder."""
    for name, pixels in images.items():
        of_format = {"quality": 95, **options} if name.endswith(".jpg") else {}
        os.utime(write(folder / name, pixels, **of_format), (OPENED, OPENED))
    return folder


def copies(groups: Sequence[DuplicateGroup]) -> Copies:
    """Return groups by the paths of their members to keep."""
    found: Copies = {}
    for group in groups:
        reasons = dict(zip(group.paths, group.reasons, strict=True))
        kept = group.paths[group.media_ids.index(group.keep)]
        assert reasons.pop(kept) == "kept"
        found[kept] = reasons
    return found


def rebuild(dataset: Dataset) -> None:
    """Rebuild the index, whether something was added or not."""
    dataset.reindex(thresholds=dataset.embedding_config.thresholds)


def pairs_of(dataset: Dataset) -> set[tuple[frozenset[str], str | None]]:
    """Return the stored pairs of copies by path, each with what was done to the copy."""
    media = stored_media(dataset)
    pairs = read_pairs(media.table, media.generation.tables)
    assert isinstance(pairs, CopyPairs)
    paths = columns_of(dataset, ["path"])["path"]
    ends = zip(pairs.a.tolist(), pairs.b.tolist(), pairs.reasons, strict=True)
    return {(frozenset({paths[a], paths[b]}), reason) for a, b, reason in ends}


def pair(one: str, other: str, reason: str) -> tuple[frozenset[str], str | None]:
    return frozenset({one, other}), reason


def in_order(columns: Mapping[str, list[Any]]) -> dict[str, npt.NDArray[np.float64]]:
    """Return columns of numbers in the order of paths."""
    order = np.argsort(columns["path"])
    return {name: np.array(columns[name], float)[order] for name in columns if name != "path"}


def cache_file(dataset: Dataset) -> Path:
    """Return the file of the dataset's cached keypoints."""
    (file,) = (each for each in layout_of(dataset).keypoints(dataset.id).iterdir() if each.is_file())
    return file


ALL_KINDS = {
    "a.png": {"a_cropped.png": HALF},
    "b.png": {"b_mirrored.png": "mirrored"},
    "c.png": {"c_turned.png": "turned by 90°", "c_upside.png": "turned by 180°"},
    "d.png": {"d_framed.png": "mirrored, framed"},
    "e.png": {"e_saved.jpg": "recompressed or edited"},
    "f_same.bmp": {"f.png": "same pixels"},
    "x_ornate.png": {"x_ornate_cropped.png": "cropped to 50%"},
}
ALONE = {"h.png", "y_ornate.png", "z_ornate.png"}


def make_all_kinds(folder: Path) -> Path:
    """Write copies of all kinds, and different images in one frame."""
    images = {f"{name}.png": detailed(seed) for seed, name in enumerate("abcdefg")}
    a, b, c, d, e, f, g = images.values()
    x, y, z = (in_ornate_frame(detailed(seed)) for seed in (20, 21, 22))
    images |= {"a_cropped.png": cut(a), "b_mirrored.png": mirrored(b), "c_turned.png": turned(c)}
    images |= {"c_upside.png": turned(c, 2), "d_framed.png": framed(mirrored(d)), "f_same.bmp": f}
    images |= {"g_edited.png": edited(g), "h.png": detailed(30)}
    images |= {"x_ornate.png": x, "y_ornate.png": y, "z_ornate.png": z, "x_ornate_cropped.png": cut(x)}
    put(folder, {"e_saved.jpg": e}, quality=40)
    return put(folder, images)


@pytest.fixture
def workspace(verifying: Workspace) -> Workspace:
    """A workspace in which copies are verified."""
    return verifying


@dataclass(frozen=True)
class Home:
    """A workspace with datasets of equal images by several encoders.

    Attributes:
        folder: their images.
        workspace: where they are; to be read only.
        datasets: by the name of the encoder.
    """

    folder: Path
    workspace: Workspace
    datasets: dict[str, Dataset]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """Copies of all kinds, indexed by the built-in encoder and by an ONNX model."""
    root = tmp_path_factory.mktemp("copies")
    folder, model = make_all_kinds(root / "images"), classifier(root / "small.onnx")
    with Workspace(root / "workspace", settings=VERIFYING) as workspace:
        datasets = {
            "gist": workspace.create_dataset("gist", folder, "gist"),
            "onnx": workspace.create_dataset("onnx", folder, f"onnx:{model}"),
        }
        yield Home(folder, workspace, datasets)


SMALL: Copies = {"a.png": {"a_cropped.png": HALF}, "b.png": {"b_mirrored.png": "mirrored"}}


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A closed workspace with a few images in the datasets ``gist`` and ``onnx``, to be copied."""
    root = tmp_path_factory.mktemp("small")
    a, b, c, d = map(detailed, range(4))
    put(root / "images", {"a.png": a, "a_cropped.png": cut(a), "b.png": b, "b_mirrored.png": mirrored(b)})
    put(root / "images", {"c.png": c, "d.png": d})
    put(root / "more", {"c_turned.png": turned(c), "e.png": detailed(4)})
    put(root / "last", {"d_cropped.png": cut(d)})
    model = classifier(root / "small.onnx")
    with Workspace(root / "workspace", settings=VERIFYING) as workspace:
        workspace.create_dataset("gist", root / "images", "gist")
        workspace.create_dataset("onnx", root / "images", f"onnx:{model}")
    return root


Opener = Callable[[str], Dataset]


@pytest.fixture
def opened(small: Path, tmp_path: Path) -> Iterator[Opener]:
    """A function that returns a dataset in a copy of the small workspace."""
    shutil.copytree(small / "workspace", tmp_path / "copy")
    with Workspace(tmp_path / "copy", settings=VERIFYING) as workspace:
        yield workspace.dataset


@pytest.fixture
def dataset(opened: Opener) -> Dataset:
    """The dataset of the ONNX model in a copy of the small workspace."""
    return opened("onnx")


def workspace_of(dataset: Dataset) -> Path:
    return layout_of(dataset).root


def with_other_bytes(content: bytes, places: slice) -> bytes:
    """Return bytes of which some are inverted."""
    new = np.frombuffer(content, np.uint8).copy()
    new[places] ^= 0xFF
    return new.tobytes()


def with_other_sizes(content: bytes) -> bytes:
    """Return keypoints of which each has lost the size of its image."""
    records = np.frombuffer(content, _RECORD).copy()
    records["width"], records["height"], records["inner"] = 0, 1, np.nan
    return records.tobytes()


def make_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


def make_file(file: Path) -> None:
    shutil.rmtree(file.parent)
    file.parent.write_text("a file where a folder should be")


DAMAGES: dict[str, Callable[[Path], Any]] = {
    "bytes": lambda file: file.write_bytes(with_other_bytes(file.read_bytes(), slice(40, None, 9973))),
    "sizes": lambda file: file.write_bytes(with_other_sizes(file.read_bytes())),
    "cut": lambda file: file.write_bytes(file.read_bytes()[: file.stat().st_size // 2 + 5]),
    "empty": lambda file: file.write_bytes(b""),
    "text": lambda file: file.write_text("no keypoints at all"),
    "deleted": lambda file: file.unlink(),
    "a folder": make_folder,
    "no folder": make_file,
}
"""What may happen to the file of cached keypoints."""
ENCODERS = pytest.mark.parametrize("encoder", ["gist", "onnx"])


class TestCreation:
    """Copies among the images of a new dataset."""

    @pytest.mark.slow
    @pytest.mark.only_soak
    @ENCODERS
    def test_create__groups_copies_of_all_kinds(self, home: Home, encoder: str) -> None:
        """Each copy is in one group with its original, and the group says what was done to it."""
        found = copies(home.datasets[encoder].duplicates())
        (of_edited,) = (found.pop(kept) for kept in ("g.png", "g_edited.png") if kept in found)
        assert set(of_edited.values()) == {"covered on 11%"}
        assert found == ALL_KINDS

    @ENCODERS
    def test_create__different_images_in_one_frame(self, home: Home, encoder: str) -> None:
        """A frame that images share makes no copies of them, and an image without a copy is in no group."""
        members = {path for group in home.datasets[encoder].duplicates() for path in group.paths}
        assert not members & ALONE
        assert members | ALONE == set(columns_of(home.datasets[encoder], ["path"])["path"])

    def test_create__levels_mean_the_same_for_each_encoder(self, home: Home) -> None:
        """Groups, similarities, the kept members and the reasons do not depend on the encoder."""
        one, other = (
            [each.model_dump(exclude={"group_id", "media_ids", "keep"}) for each in home.datasets[name].duplicates()]
            for name in ("gist", "onnx")
        )
        for group, same in zip(one, other, strict=True):
            for name in ("similarity", "confidence"):
                assert group.pop(name) == pytest.approx(same.pop(name), abs=1e-6)
        assert one == other

    @ENCODERS
    def test_create__levels_say_how_much_was_changed(self, home: Home, encoder: str) -> None:
        """Copies that lie elsewhere in the image are at 0.97, those that are covered or a part at 0.96."""
        dataset = home.datasets[encoder]
        columns = columns_of(dataset, ["path", "duplicate_similarity", "duplicate_0", "duplicate_1"])
        similarity = dict(zip(columns["path"], columns["duplicate_similarity"], strict=True))
        verified = [name for name in similarity if name[0] in "abcdg"]
        assert len(verified) == 11
        assert {similarity[name] for name in verified} == {float(np.float32(each)) for each in (0.96, 0.97)}
        assert not {name for group in dataset.duplicates(0.98) for name in group.paths} & set(verified)

    @ENCODERS
    def test_create__the_highest_level_is_equal_pixels(self, home: Home, encoder: str) -> None:
        """Level 1 has the images of equal pixels in another format, and no other copies."""
        assert copies(home.datasets[encoder].duplicates(1.0)) == {"f_same.bmp": {"f.png": "same pixels"}}

    @pytest.mark.slow
    def test_create__a_copy_of_one_of_many(self, workspace: Workspace, tmp_path: Path) -> None:
        """Each copy has its reason, also if it was compared with near-duplicates of the kept member only."""
        a = detailed(2)
        for quality in range(50, 100, 10):
            put(tmp_path / "images", {f"a_{quality}.jpg": a}, quality=quality)
        put(tmp_path / "images", {"a_cropped.png": cut(a), "a_mirrored.png": mirrored(a), "z.png": a})
        (group,) = copies(workspace.create_dataset("d", tmp_path / "images", "gist").duplicates()).items()
        again = {f"a_{quality}.jpg": "recompressed or edited" for quality in range(50, 100, 10)}
        assert group == ("z.png", {"a_cropped.png": HALF, "a_mirrored.png": "mirrored", **again})

    def test_create__stores_descriptors_where_they_are_no_embeddings(self, home: Home) -> None:
        """Each dataset has the descriptors of panels, and those of whole images unless these are the embeddings."""
        for name, dataset in home.datasets.items():
            names = stored_media(dataset).table.schema.names
            assert PANEL_DESCRIPTORS in names
            assert (COPY_DESCRIPTOR in names) == (name != "gist")
            assert dataset.embedding_config.copy_descriptor == "gist"

    @pytest.mark.slow
    def test_create__of_vectors_only(self, workspace: Workspace) -> None:
        """A table of vectors is compared by its vectors alone, and nothing is stored or cached about copies."""
        vectors = np.eye(6)[[0, 0, 1, 2]] + 0.02 * np.eye(6)[[5, 4, 5, 5]]
        dataset = workspace.create_dataset("d", part(vectors))
        media = stored_media(dataset)
        assert COPIES not in media.generation.tables
        assert not {COPY_DESCRIPTOR, PANEL_DESCRIPTORS} & set(media.table.schema.names)
        assert [group.paths for group in dataset.duplicates()] == [["0.jpg", "1.jpg"]]
        assert dataset.embedding_config.copy_descriptor is None
        dataset.add_media(part(vectors[2:3], 4))
        rebuild(dataset)
        assert [group.paths for group in dataset.duplicates()] == [["0.jpg", "1.jpg"], ["2.jpg", "4.jpg"]]
        assert COPIES not in stored_media(dataset).generation.tables
        assert not (workspace.path / "cache" / "keypoints").exists()

    @pytest.mark.slow
    @pytest.mark.only_soak
    def test_create__with_objects(self, workspace: Workspace, tmp_path: Path) -> None:
        """Images with bounding boxes have copies as others; their objects are compared by their embeddings alone."""
        things = scenes(tmp_path / "images")
        pixels = cv2.imread(str(tmp_path / "images" / "000.png"), cv2.IMREAD_COLOR_RGB)
        assert pixels is not None
        put(tmp_path / "images", {"copy.png": mirrored(np.asarray(pixels, np.uint8))})
        dataset = workspace.create_dataset("d", tmp_path / "images", "gist")
        assert {frozenset(group.paths) for group in dataset.duplicates()} == {frozenset({"000.png", "copy.png"})}
        groups = dataset.objects.duplicates()
        assert [len(group.media_ids) for group in groups] == [4]  # the first thing of each image looks alike
        assert len(things) == 12
        assert all(len(group.reasons) == len(group.media_ids) for group in groups)
        assert groups == dataset.duplicates(entity_type="OBJECTS", within_videos=True)


class TestAdditions:
    """Copies among added images, and between these and earlier ones."""

    @pytest.mark.slow
    @pytest.mark.only_soak
    @ENCODERS
    def test_add_media__joins_the_group(self, opened: Opener, small: Path, encoder: str) -> None:
        """A copy that is added is in a group with its original at once, with its reason; other groups stay."""
        dataset = opened(encoder)
        assert copies(dataset.duplicates()) == SMALL
        before = {group.paths[0]: group.group_id for group in dataset.duplicates()}
        dataset.add_media(small / "more")
        assert status_of(dataset) is DatasetStatus.PARTIAL_INDEX
        expected = SMALL | {"c.png": {"c_turned.png": "turned by 90°"}}
        assert copies(dataset.duplicates()) == expected
        after = {group.paths[0]: group.group_id for group in dataset.duplicates()}
        assert before.items() <= after.items()
        dataset.add_media(small / "last")
        assert copies(dataset.duplicates()) == expected | {"d.png": {"d_cropped.png": HALF}}

    @pytest.mark.slow
    @pytest.mark.only_soak
    @ENCODERS
    def test_reindex__gives_what_a_creation_gives(self, opened: Opener, small: Path, encoder: str) -> None:
        """After additions one by one, a rebuild finds the copies, reasons and kept members of a new dataset."""
        dataset = opened(encoder)
        for folder in (small / "more", small / "last"):
            dataset.add_media(folder)
        added = copies(dataset.duplicates())
        dataset.reindex()
        assert status_of(dataset) is DatasetStatus.READY
        everything = workspace_of(dataset).parent / "everything"
        for part_of_all in ("images", "more", "last"):
            shutil.copytree(small / part_of_all, everything, dirs_exist_ok=True)
        with Workspace(workspace_of(dataset)) as workspace:
            whole = workspace.create_dataset("whole", everything, dataset.embedding_config.encoder)
            assert copies(dataset.duplicates()) == copies(whole.duplicates()) == added
            assert pairs_of(dataset) == pairs_of(whole)
            columns = [*STANDING, "duplicate_similarity"]
            kept, new = (in_order(columns_of(each, ["path", *columns])) for each in (dataset, whole))
        for name in columns:
            np.testing.assert_allclose(kept[name], new[name], atol=1e-6, err_msg=name)

    @pytest.mark.slow
    @pytest.mark.only_soak
    def test_add_media__reindexed_at_once(self, dataset: Dataset, small: Path) -> None:
        """With ``auto_reindex`` the copies are the same."""
        dataset.add_media(small / "more", auto_reindex=True)
        assert status_of(dataset) is DatasetStatus.READY
        assert copies(dataset.duplicates()) == SMALL | {"c.png": {"c_turned.png": "turned by 90°"}}

    @pytest.mark.slow
    @pytest.mark.only_soak
    def test_add_media__of_a_near_duplicate(self, dataset: Dataset, small: Path, tmp_path: Path) -> None:
        """A recompressed image joins by its descriptor, and a copy of a copy joins the whole group."""
        put(tmp_path / "new", {"a_saved.jpg": detailed(0)}, quality=60)
        put(tmp_path / "new", {"b_again.png": turned(mirrored(detailed(1)))})
        dataset.add_media(tmp_path / "new")
        groups = {frozenset(group.paths) for group in dataset.duplicates()}
        assert groups == {
            frozenset({"a.png", "a_cropped.png", "a_saved.jpg"}), frozenset({"b.png", "b_mirrored.png", "b_again.png"}),
        }  # fmt: skip
        rebuild(dataset)
        assert {frozenset(group.paths) for group in dataset.duplicates()} == groups

    @pytest.mark.slow
    @pytest.mark.only_soak
    @pytest.mark.parametrize("rebuilds", [False, True])
    def test_add_media__of_a_changed_file(self, workspace: Workspace, tmp_path: Path, *, rebuilds: bool) -> None:
        """A file that became a copy of another image leaves its old group and joins the new one."""
        a, b = detailed(0), detailed(1)
        folder = put(tmp_path / "images", {"a.png": a, "b.png": b, "copy.png": cut(a)})
        dataset = workspace.create_dataset("d", folder, "gist")
        assert copies(dataset.duplicates()) == {"a.png": {"copy.png": HALF}}
        put(folder, {"copy.png": mirrored(b)})
        os.utime(folder / "copy.png", (OPENED + 60, OPENED + 60))
        dataset.add_media(folder, auto_reindex=rebuilds)
        assert copies(dataset.duplicates()) == {"b.png": {"copy.png": "mirrored"}}
        assert pairs_of(dataset) == {pair("copy.png", "b.png", "mirrored")}

    @pytest.mark.slow
    def test_reindex__of_a_file_that_changed_unnoticed(self, workspace: Workspace, tmp_path: Path) -> None:
        """A rebuild alone reads no changed file anew, so what was known of the copies stays."""
        a, b = detailed(0), detailed(1)
        folder = put(tmp_path / "images", {"a.png": a, "b.png": b, "copy.png": cut(a)})
        dataset = workspace.create_dataset("d", folder, "gist")
        put(folder, {"copy.png": detailed(7)})
        rebuild(dataset)
        assert copies(dataset.duplicates()) == {"a.png": {"copy.png": HALF}}


class TestEdits:
    """Deletions, decisions, snapshots, clones and enrichments."""

    @pytest.mark.slow
    @pytest.mark.only_soak
    def test_delete_media__of_a_copy_and_of_an_original(self, dataset: Dataset) -> None:
        """Without one of its two members a group is gone, with its pair; others stay, also after a rebuild."""
        ids = ids_of(dataset)
        dataset.delete_media([ids["a_cropped.png"]])
        left = {"b.png": {"b_mirrored.png": "mirrored"}}
        assert copies(dataset.duplicates()) == left
        assert pairs_of(dataset) == {pair("b.png", "b_mirrored.png", "mirrored")}
        rebuild(dataset)
        assert copies(dataset.duplicates()) == left
        dataset.delete_media([ids["b.png"]])
        assert (copies(dataset.duplicates()), pairs_of(dataset)) == ({}, set())
        rebuild(dataset)
        assert copies(dataset.duplicates()) == {}

    @pytest.mark.slow
    def test_delete_media__and_add_it_again(self, dataset: Dataset, small: Path) -> None:
        """A deleted copy that is added again is in its group again."""
        dataset.delete_media([ids_of(dataset)["a_cropped.png"]])
        dataset.add_media(small / "images")
        assert copies(dataset.duplicates()) == SMALL

    @pytest.mark.slow
    @pytest.mark.only_soak
    def test_delete_media__of_one_of_three(self, dataset: Dataset, tmp_path: Path) -> None:
        """Copies of a deleted image are copies of each other if keypoints show it; a rebuild finds no others."""
        put(tmp_path / "new", {"a_turned.png": turned(detailed(0))})
        dataset.add_media(tmp_path / "new")
        dataset.delete_media([ids_of(dataset)["a.png"]])
        left = copies(dataset.duplicates())
        assert left["a_turned.png"] == {"a_cropped.png": f"turned by 90°, {HALF}"}
        rebuild(dataset)
        assert copies(dataset.duplicates()) == left

    @pytest.mark.slow
    def test_create__equal_files_have_equal_standings(self, workspace: Workspace, tmp_path: Path) -> None:
        """Files of equal content in a group have the standing that each of them alone has in it."""
        image = photo(3, width=320, height=240)
        folder = put(tmp_path / "images", {"b.png": image, "d.png": resized(image, 0.5)})
        alone = in_order(columns_of(workspace.create_dataset("alone", folder, "gist"), ["path", *STANDING]))
        for name in ("a.png", "c.png", "e.png"):
            shutil.copyfile(folder / "b.png", folder / name)
        several = workspace.create_dataset("several", folder, "gist")
        assert [sorted(group.paths) for group in several.duplicates()] == [[f"{each}.png" for each in "abcde"]]
        found = in_order(columns_of(several, ["path", *STANDING]))
        for column in ("keep_detail", "keep_step", "keep_colour", "keep_metadata"):
            assert found[column].tolist() == alone[column][[0, 0, 0, 1, 0]].tolist()
            assert not np.isnan(found[column]).any()

    @pytest.mark.slow
    @pytest.mark.only_soak
    def test_create__reads_no_file_of_equal_ones_again(
        self, workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Nothing tells equal files apart, so they are not compared, unless one of them is gone."""
        read: list[str] = []

        def noted(media: Any, rows: Any, *args: Any, **options: Any) -> Any:
            wanted = list(rows)
            read.extend(row["path"] for row in wanted)
            return decode_rows(media, wanted, *args, **options)

        monkeypatch.setattr("framedex.jobs.index.standings.decode_rows", noted)
        folder = put(
            tmp_path / "images", {"a.png": detailed(4), "b.png": detailed(5), "c.png": resized(detailed(5), 0.5)}
        )
        shutil.copyfile(folder / "a.png", folder / "d.png")
        shutil.copyfile(folder / "b.png", folder / "e.png")
        dataset = workspace.create_dataset("d", folder, "gist")
        groups = {group.paths[0]: group for group in dataset.duplicates()}
        assert {path: sorted(group.paths) for path, group in groups.items()} == {
            "a.png": ["a.png", "d.png"],
            "b.png": ["b.png", "c.png", "e.png"],
        }
        assert sorted(read) == ["b.png", "c.png"]
        detail = in_order(columns_of(dataset, ["path", "keep_detail"]))["keep_detail"]
        assert not np.isnan(detail).any()
        read.clear()
        rebuild(dataset)
        assert read == []

    def test_add_media__equal_file_of_one_that_is_gone(self, workspace: Workspace, tmp_path: Path) -> None:
        """A file is compared with its edits though the first file of equal content is gone, and is the one to keep."""
        folder = put(tmp_path / "images", {"a.png": detailed(4)})
        dataset = workspace.create_dataset("d", folder, "gist")
        (folder / "a.png").rename(folder / "c.png")
        put(folder, {"d.png": resized(detailed(4), 0.4)})
        dataset.add_media(folder)
        (group,) = dataset.duplicates()
        assert sorted(group.paths) == ["a.png", "c.png", "d.png"]
        detail = in_order(columns_of(dataset, ["path", "keep_detail"]))["keep_detail"]
        assert np.isnan(detail).tolist() == [True, False, False]
        assert group.keep == ids_of(dataset)["c.png"]

    @pytest.mark.slow
    def test_create__keeps_the_intact_image(self, workspace: Workspace, tmp_path: Path) -> None:
        """Of a JPEG and its copy with zeroed bytes in the middle, the intact one is kept, though gaps look sharp."""
        folder = put(tmp_path / "images", {"z.jpg": photo(5, width=320, height=240)}, quality=90)
        content = bytearray((folder / "z.jpg").read_bytes())
        middle = len(content) * 3 // 4
        content[middle : middle + 200] = bytes(200)
        (folder / "a.jpg").write_bytes(content)
        dataset = workspace.create_dataset("d", folder, "gist")
        assert [row["file_name"] for row in dataset.issues("corrupted").to_pylist()] == ["a.jpg"]
        (group,) = dataset.duplicates()
        assert group.keep == ids_of(dataset)["z.jpg"]
        assert group.keep_reason == "It is intact: the data of the others is damaged."
        plan = dataset.plan_cleanup(duplicates=0.96).to_arrow().to_pylist()
        assert {row["file_name"]: row["action"] for row in plan} == {"a.jpg": "remove", "z.jpg": "keep"}

    @pytest.mark.slow
    @pytest.mark.only_soak
    def test_cleanup__removes_the_copies(self, dataset: Dataset) -> None:
        """A plan keeps what the groups keep; after it and a vacuum a rebuild finds no copies."""
        dataset.plan_cleanup(duplicates=0.96, unsure=True).apply()
        assert set(ids_of(dataset)) == {"a.png", "b.png", "c.png", "d.png"}
        assert copies(dataset.duplicates()) == {}
        with Workspace(workspace_of(dataset), settings=VERIFYING) as workspace:
            workspace.vacuum(older_than_s=0)
            assert workspace.check().findings == []
        rebuild(dataset)
        assert (copies(dataset.duplicates()), pairs_of(dataset)) == ({}, set())

    @pytest.mark.slow
    @pytest.mark.only_soak
    @ENCODERS
    def test_not_duplicates__holds_for_copies(self, opened: Opener, small: Path, encoder: str) -> None:
        """Copies that are decided to be none stay apart by additions and rebuilds, until the decision is withdrawn."""
        dataset = opened(encoder)
        ids = ids_of(dataset)
        decision = dataset.not_duplicates([ids["a.png"], ids["a_cropped.png"]])
        apart = {"b.png": {"b_mirrored.png": "mirrored"}}
        assert copies(dataset.duplicates()) == apart
        dataset.add_media(small / "more")
        apart["c.png"] = {"c_turned.png": "turned by 90°"}
        assert copies(dataset.duplicates()) == apart
        dataset.reindex()
        assert copies(dataset.duplicates()) == apart
        dataset.withdraw_decision(decision.decision_id)
        assert copies(dataset.duplicates()) == apart | {"a.png": {"a_cropped.png": HALF}}
        columns = columns_of(dataset, ["path", "duplicate_similarity", "issue_duplicates"])
        row = columns["path"].index("a_cropped.png")
        assert columns["duplicate_similarity"][row] == columns["issue_duplicates"][row] == float(np.float32(0.97))

    @pytest.mark.slow
    def test_not_duplicates__of_a_group_of_three(self, dataset: Dataset, tmp_path: Path) -> None:
        """A third copy stays with one of two that are decided to be none."""
        put(tmp_path / "new", {"a_turned.png": turned(detailed(0))})
        dataset.add_media(tmp_path / "new")
        ids = ids_of(dataset)
        dataset.not_duplicates([ids["a.png"], ids["a_cropped.png"]])
        (group,) = [set(each.paths) for each in dataset.duplicates() if "a_turned.png" in each.paths]
        assert group in ({"a_turned.png", "a.png"}, {"a_turned.png", "a_cropped.png"})

    @pytest.mark.slow
    @pytest.mark.only_soak
    def test_restore__has_the_pairs_of_its_time(self, dataset: Dataset, small: Path) -> None:
        """A restored state has its own copies, and goes on from there."""
        first = dataset.snapshot("first")
        dataset.add_media(small / "more", auto_reindex=True)
        later, pairs = copies(dataset.duplicates()), pairs_of(dataset)
        second = dataset.snapshot("second")
        dataset.delete_media([ids_of(dataset)["a.png"]])
        dataset.restore(first)
        assert copies(dataset.duplicates()) == SMALL
        dataset.restore(second)
        assert (copies(dataset.duplicates()), pairs_of(dataset)) == (later, pairs)
        dataset.add_media(small / "last")
        assert copies(dataset.duplicates()) == later | {"d.png": {"d_cropped.png": HALF}}

    @pytest.mark.slow
    @pytest.mark.only_soak
    def test_clone__has_the_copies(self, dataset: Dataset, small: Path) -> None:
        """A clone has the copies of its source, and neither sees those that the other one gets."""
        clone = dataset.clone()
        assert (copies(clone.duplicates()), pairs_of(clone)) == (SMALL, pairs_of(dataset))
        clone.add_media(small / "more")
        dataset.add_media(small / "last")
        assert copies(clone.duplicates()) == SMALL | {"c.png": {"c_turned.png": "turned by 90°"}}
        assert copies(dataset.duplicates()) == SMALL | {"d.png": {"d_cropped.png": HALF}}

    @pytest.mark.slow
    @pytest.mark.only_soak
    def test_enrich__by_another_encoder_keeps_the_copies(self, opened: Opener, small: Path) -> None:
        """With other embeddings the copies are the same, and further ones are found."""
        dataset = opened("gist")
        with Workspace(workspace_of(dataset), settings=VERIFYING) as workspace:
            register_models(workspace, Hues())
            enriched = workspace.dataset("gist").enrich(ENCODE)
            assert (enriched.embedding_config.encoder, enriched.embedding_config.copy_descriptor) == ("hues", "gist")
            assert (copies(enriched.duplicates()), pairs_of(enriched)) == (SMALL, pairs_of(dataset))
            enriched.add_media(small / "more")
            expected = SMALL | {"c.png": {"c_turned.png": "turned by 90°"}}
            assert copies(enriched.duplicates()) == expected
            enriched.reindex()
            assert copies(enriched.duplicates()) == expected
        assert copies(dataset.duplicates()) == SMALL


class TestText:
    """What is written may be too small to be seen at the size at which images are compared first."""

    @staticmethod
    def sheet(*changed: int) -> Pixels:
        """Return a page of 60 lines of words; in each changed line one word is another one."""
        pixels = np.full((1300, 1000, 3), 255, np.uint8)
        for line in range(60):
            random, left = np.random.default_rng(line), 50
            while left < 900:
                for _ in range(int(random.integers(2, 9))):
                    top = 40 + 20 * line + int(random.integers(0, 4))
                    pixels[top : top + int(random.integers(5, 12)), left : left + int(random.integers(2, 5))] = 30
                    left += 7
                left += 8
            if line in changed:
                word = np.random.default_rng(1000 + line).integers(0, 2, (12, 20), np.uint8) * 225 + 30
                pixels[40 + 20 * line : 52 + 20 * line, 300:320] = word[..., None]
        return pixels

    @pytest.mark.slow
    def test_create__pages_that_differ_by_a_word(self, workspace: Workspace, tmp_path: Path) -> None:
        """A page with another word is no copy; the page that was saved again is one."""
        folder = put(tmp_path / "images", {"page.png": self.sheet(), "other.png": self.sheet(17)})
        put(folder, {"saved.jpg": self.sheet()}, quality=60)
        (group,) = workspace.create_dataset("d", folder, "gist").duplicates()
        assert sorted(group.paths) == ["page.png", "saved.jpg"]


class TestCache:
    """Cached keypoints save work and change nothing."""

    @pytest.mark.slow
    def test_reindex__reads_no_image_twice(self, workspace: Workspace, tmp_path: Path, caplog: Any) -> None:
        """Without the images a rebuild finds the same copies by cached keypoints, and says nothing."""
        a = detailed(0)
        folder = put(tmp_path / "images", {"a.png": a, "a_cropped.png": cut(a), "b.png": detailed(1)})
        dataset = workspace.create_dataset("d", folder, "gist")
        before, size = pairs_of(dataset), cache_file(dataset).stat().st_size
        shutil.rmtree(folder)
        with caplog.at_level(logging.WARNING, logger="framedex"):
            rebuild(dataset)
        assert caplog.records == []
        assert (copies(dataset.duplicates()), pairs_of(dataset)) == ({"a.png": {"a_cropped.png": HALF}}, before)
        assert cache_file(dataset).stat().st_size == size

    @pytest.mark.slow
    def test_reindex__with_neither_images_nor_cache(self, workspace: Workspace, tmp_path: Path, caplog: Any) -> None:
        """Pairs that are known stay, and one warning counts the images that cannot be read."""
        a, shared = detailed(0), detailed(5)
        folder = put(tmp_path / "images", {"a.png": a, "a_cropped.png": cut(a)})
        put(folder, {f"beside_{number}.png": np.hstack([shared, detailed(number)]) for number in (6, 7)})
        dataset = workspace.create_dataset("d", folder, "gist")
        before, cache = pairs_of(dataset), cache_file(dataset).parent
        shutil.rmtree(folder)
        shutil.rmtree(cache)
        with caplog.at_level(logging.WARNING, logger="framedex"):
            rebuild(dataset)
        (warning,) = caplog.messages
        assert "images are not verified, because the images cannot be read" in warning
        assert (copies(dataset.duplicates()), pairs_of(dataset)) == ({"a.png": {"a_cropped.png": HALF}}, before)

    @pytest.mark.only_soak
    @pytest.mark.parametrize("damage", rest_slow(DAMAGES, 0, long=4))
    def test_add_media__with_a_damaged_cache(self, dataset: Dataset, small: Path, damage: str) -> None:
        """Whatever happened to the cache, images that are added again are the copies that they were."""
        ids = ids_of(dataset)
        dataset.delete_media([ids["a_cropped.png"], ids["b_mirrored.png"]])
        assert pairs_of(dataset) == set()
        DAMAGES[damage](cache_file(dataset))
        dataset.add_media(small / "images")
        assert copies(dataset.duplicates()) == SMALL

    @pytest.mark.slow
    @pytest.mark.only_soak
    def test_add_media__while_the_cache_is_deleted(self, dataset: Dataset, small: Path) -> None:
        """The cache may be deleted at any time, also while a task uses it."""
        pause = Pause("finding copies", 0.02)
        with Workspace(workspace_of(dataset), settings=VERIFYING) as workspace:
            same = workspace.dataset("onnx")
            same.add_media(small / "last")
            task = watched(workspace, lambda: same.add_media(small / "more", wait=False), pause)
            assert pause.reached.wait(60)
            shutil.rmtree(workspace.path / "cache")
            pause.opened.set()
            task.wait()
        last = {"d.png": {"d_cropped.png": HALF}}
        assert copies(dataset.duplicates()) == SMALL | last | {"c.png": {"c_turned.png": "turned by 90°"}}

    @pytest.mark.slow
    @pytest.mark.only_soak
    def test_disk_usage__counts_keypoints(self, dataset: Dataset) -> None:
        """Cached keypoints are part of what a dataset takes, and are deleted with it."""
        file = cache_file(dataset)
        with Workspace(workspace_of(dataset), settings=VERIFYING) as workspace:
            before, size = workspace.disk_usage().by_part["vector index"], file.stat().st_size
            file.unlink()
            assert before - workspace.disk_usage().by_part.get("vector index", 0) == size
            file.write_bytes(b"again")
            workspace.delete_dataset("onnx")
            assert not file.exists()


@pytest.fixture
def beyond_memory(tuning: Tuning) -> None:
    """Images do not fit into memory, and a few pairs are verified at a time."""
    tuning.copies_in_memory = 0
    tuning.copy_bytes = 2**60
    tuning.verified_pairs = 3


@pytest.mark.usefixtures("beyond_memory")
class TestBeyondMemory:
    """Copies of images whose descriptors do not fit into memory."""

    @pytest.mark.parametrize("executor", ["threads", pytest.param("processes", marks=pytest.mark.slow)])
    def test_create__groups_copies_of_all_kinds(self, home: Home, tmp_path: Path, executor: str) -> None:
        """The groups are those that are found in memory, and no file is left."""
        settings = VERIFYING.model_copy(update={"executor": executor, "processes": 2})
        with Workspace(tmp_path / "ws", settings=settings) as workspace:
            dataset = workspace.create_dataset("d", home.folder, "gist")
            expected = home.datasets["gist"]
            assert copies(dataset.duplicates()) == copies(expected.duplicates())
            assert pairs_of(dataset) == pairs_of(expected)
            assert not [each for each in (workspace.path / "cache" / "spill").rglob("*") if each.is_file()]

    @pytest.mark.slow
    @pytest.mark.only_soak
    @ENCODERS
    def test_add_media__joins_the_group(self, opened: Opener, small: Path, encoder: str) -> None:
        """An added copy joins the group of its original, and so does one that a rebuild finds."""
        dataset = opened(encoder)
        dataset.add_media(small / "more")
        assert copies(dataset.duplicates()) == SMALL | {"c.png": {"c_turned.png": "turned by 90°"}}
        dataset.add_media(small / "last", auto_reindex=True)
        assert copies(dataset.duplicates())["d.png"] == {"d_cropped.png": HALF}

    @pytest.mark.slow
    @pytest.mark.only_soak
    def test_add_media__of_equal_pixels(self, opened: Opener, small: Path, tmp_path: Path) -> None:
        """An added image with the pixels of another one is equal to it, not about equal."""
        dataset = opened("onnx")
        for number in range(8):
            put(tmp_path / "again", {f"{number}_again.bmp": detailed(number % 4)})
        dataset.add_media(tmp_path / "again")
        groups = dataset.duplicates(1.0)
        assert sorted(len(group.paths) for group in groups) == [3, 3, 3, 3]
        assert max(columns_of(dataset, ["duplicate_similarity"])["duplicate_similarity"]) <= 1

    @pytest.mark.slow
    def test_create__of_broken_images(self, workspace: Workspace, tmp_path: Path) -> None:
        """Without any descriptor there are no copies."""
        for name in ("a.jpg", "b.jpg"):
            write(tmp_path / "images" / name, photo(0)).write_bytes(b"no image")
        dataset = workspace.create_dataset("d", tmp_path / "images", "gist")
        assert dataset.duplicates() == []

    @pytest.mark.slow
    def test_create__without_space(self, workspace: Workspace, home: Home, tuning: Tuning) -> None:
        """Too little space is reported before the descriptors are written."""
        tuning.copy_file_bytes = 2**50
        with pytest.raises(
            WorkspaceError, match=r"the search for copies of 20 images needs [\d,]+ bytes for temporary files"
        ):
            workspace.create_dataset("d", home.folder, "gist")


class TestBudget:
    """The time for verifying copies is a setting."""

    @pytest.mark.slow
    @pytest.mark.only_soak
    def test_budget__of_nothing(self, tmp_path: Path) -> None:
        """Without a budget only near-duplicates are found; a rebuild with one finds the others."""
        a, b = detailed(0), detailed(1)
        folder = put(tmp_path / "images", {"a.png": a, "a_cropped.png": cut(a), "b.png": b, "c.png": detailed(2)})
        put(folder, {"b_saved.jpg": b}, quality=60)
        saved = {"b.png": {"b_saved.jpg": "recompressed or edited"}}
        with Workspace(tmp_path / "ws", settings=VERIFYING.model_copy(update={"copy_budget_ms": 0.0})) as workspace:
            dataset = workspace.create_dataset("d", folder, "gist")
            assert copies(dataset.duplicates()) == saved
            assert not (workspace.path / "cache" / "keypoints").exists()
            put(tmp_path / "more", {"c_turned.png": turned(detailed(2)), "b_again.jpg": b}, quality=80)
            dataset.add_media(tmp_path / "more")
            assert {frozenset(group.paths) for group in dataset.duplicates()} == {
                frozenset({"b.png", "b_saved.jpg", "b_again.jpg"})
            }
        with Workspace(tmp_path / "ws", settings=VERIFYING) as workspace:
            dataset = workspace.dataset("d")
            dataset.reindex()
            found = copies(dataset.duplicates())
            assert found["a.png"] == {"a_cropped.png": HALF}
            assert found["c.png"] == {"c_turned.png": "turned by 90°"}
        with Workspace(tmp_path / "ws", settings=VERIFYING.model_copy(update={"copy_budget_ms": 0.0})) as workspace:
            rebuild(workspace.dataset("d"))
            assert copies(workspace.dataset("d").duplicates()) == found

    @pytest.mark.parametrize("value", ["-1", "nan", "inf", "much", "", "1001"])
    def test_budget__invalid(self, environment: Environment, value: str) -> None:
        """An invalid budget is an error that names the variable and its value, or the setting."""
        environment["FRAMEDEX_COPY_BUDGET_MS"] = value
        with pytest.raises(InvalidInput, match=f"FRAMEDEX_COPY_BUDGET_MS is '{value}': it must be"):
            load_settings()
        del environment["FRAMEDEX_COPY_BUDGET_MS"]
        with pytest.raises(ValidationError, match="copy_budget_ms"):
            Settings.model_validate({"copy_budget_ms": value})

    def test_budget__from_the_environment(self, environment: Environment) -> None:
        """The budget has a default, and the environment sets it."""
        assert load_settings().copy_budget_ms == 8
        environment["FRAMEDEX_COPY_BUDGET_MS"] = "0"
        assert load_settings().copy_budget_ms == 0


STILL = 20


@pytest.fixture(scope="module")
def films(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """Datasets of a moving and of a still video, an image of the still one, and a part of a frame of the other."""
    root = tmp_path_factory.mktemp("films")
    folder, scene = root / "images", numbered(30, seed=5, width=320, height=240)
    write_video(folder / "moving.mp4", scene)
    write_video(folder / "still.mp4", [detailed(1)] * STILL, fps=1)
    put(folder, {"image.png": detailed(1), "part.png": cut(mirrored(detailed(2))), "whole.png": detailed(2)})
    put(root / "more", {"cut.png": cut(scene[10])})
    model = classifier(root / "small.onnx")
    with Workspace(root / "workspace", settings=VERIFYING) as workspace:
        datasets = {
            "gist": workspace.create_dataset("gist", folder, "gist"),
            "onnx": workspace.create_dataset("onnx", folder, f"onnx:{model}"),
        }
        yield Home(folder, workspace, datasets)


def sizes(groups: Sequence[DuplicateGroup]) -> dict[tuple[str, ...], int]:
    """Return the number of members of groups by the files in them."""
    return {tuple(sorted(set(group.paths))): len(group.paths) for group in groups}


WITH_STILL = ("image.png", "still.mp4")
WITH_PART = ("part.png", "whole.png")


class TestVideos:
    """Frames of one video are copies of each other on request."""

    @pytest.mark.slow
    @pytest.mark.only_soak
    @ENCODERS
    def test_within_videos__only_on_request(self, films: Home, encoder: str) -> None:
        """Frames of one video are in a group only with an image, or on request."""
        dataset = films.datasets[encoder]
        apart = {WITH_STILL: STILL + 1, WITH_PART: 2}
        assert sizes(dataset.duplicates()) == sizes(dataset.duplicates(within_videos=False)) == apart
        groups = dataset.duplicates(within_videos=True)
        assert sizes(groups) == apart | {("moving.mp4",): 3}
        for group in groups:
            assert 0.96 - 1e-6 <= group.confidence <= group.similarity <= 1
            assert len(group.reasons) == len(group.media_ids)
        assert len({group.group_id for group in groups}) == 3

    @pytest.mark.slow
    @ENCODERS
    def test_within_videos__of_a_view(self, films: Home, encoder: str) -> None:
        """A view groups the frames that its filter leaves, whether there are images or not."""
        dataset = films.datasets[encoder]
        view = dataset.where([{"not": {"file_name": {"op": "is", "value": "image.png"}}}])
        assert sizes(view.duplicates(within_videos=True))[("still.mp4",)] == STILL
        assert view.duplicates(within_videos=True)[0].threshold == 0.96

    @pytest.mark.slow
    @pytest.mark.only_soak
    def test_within_videos__no_group(self, films: Home) -> None:
        """At a level without any group, in an empty view, and with limit 0 the list is empty."""
        dataset = films.datasets["onnx"]
        assert dataset.where([{"file_name": {"op": "is", "value": "part.png"}}]).duplicates(within_videos=True) == []
        assert dataset.duplicates(within_videos=True, limit=0) == []
        (largest,) = dataset.duplicates(within_videos=True, limit=1)
        assert len(largest.paths) == STILL + 1

    @pytest.mark.parametrize("value", [None, 1, "yes"])
    def test_within_videos__is_a_flag(self, films: Home, value: Any) -> None:
        """Any other value is refused."""
        with pytest.raises(InvalidInput, match="within_videos"):
            films.datasets["gist"].duplicates(within_videos=value)

    def test_within_videos__by_the_command_line(self, films: Home, capsys: pytest.CaptureFixture[str]) -> None:
        """The option of the command line gives the same groups."""
        for options, within in (([], False), (["--within-videos"], True)):
            with pytest.raises(SystemExit) as exit_:
                main(["duplicates", "gist", *options, "--json", "--workspace", str(films.workspace.path)])
            assert exit_.value.code == 0
            groups = json.loads(capsys.readouterr().out)
            expected = films.datasets["gist"].duplicates(within_videos=within)
            assert groups == [json.loads(group.model_dump_json()) for group in expected]

    @pytest.mark.slow
    def test_command_line__shows_reasons(self, home: Home, capsys: pytest.CaptureFixture[str]) -> None:
        """The table has the reasons in parentheses."""
        with pytest.raises(SystemExit):
            main(["duplicates", "gist", "--workspace", str(home.workspace.path)])
        assert f"a_cropped.png ({HALF})" in " ".join(capsys.readouterr().out.split())

    @pytest.mark.slow
    def test_within_videos__of_images_only(self, home: Home) -> None:
        """Without videos the flag changes nothing."""
        for dataset in home.datasets.values():
            for level in (0.96, 0.985, 1.0):
                assert dataset.duplicates(level, within_videos=True) == dataset.duplicates(level)

    @pytest.mark.slow
    @pytest.mark.only_soak
    def test_create__part_of_a_frame(self, workspace: Workspace, films: Home, tmp_path: Path) -> None:
        """An image that was cut from a frame is a copy of this frame, in a new dataset and when it is added."""
        scene, cut_out = films.folder / "moving.mp4", films.folder.parent / "more"
        both = Path(shutil.copytree(cut_out, tmp_path / "both"))
        shutil.copy(scene, both)
        encoder = films.datasets["onnx"].embedding_config.encoder
        whole = workspace.create_dataset("whole", both, encoder)
        grown = workspace.create_dataset("grown", cut_out, encoder)
        assert grown.duplicates() == []
        grown.add_media(scene)
        for dataset in (whole, grown):
            (group,) = dataset.duplicates()
            reasons = dict(zip(group.paths, group.reasons, strict=True))
            assert set(group.paths) == {"cut.png", "moving.mp4"}
            assert reasons["cut.png"].startswith(HALF)

    @pytest.mark.slow
    @pytest.mark.only_soak
    @ENCODERS
    def test_add_media__of_a_still_video(self, workspace: Workspace, films: Home, tmp_path: Path, encoder: str) -> None:
        """A video of frames that are all alike joins the group of its image as a whole."""
        name = films.datasets[encoder].embedding_config.encoder
        folder = put(tmp_path / "images", {"image.png": detailed(1), "whole.png": detailed(2)})
        dataset = workspace.create_dataset("d", folder, name)
        dataset.add_media(write_video(tmp_path / "more" / "long.mp4", [detailed(1)] * 45, fps=1))
        assert sizes(dataset.duplicates()) == {("image.png", "long.mp4"): 46}


class TestKept:
    """The comparison of copies at full size."""

    @pytest.mark.slow
    @pytest.mark.only_soak
    @pytest.mark.parametrize("name", ["a", "z"])
    def test_keep__the_original(self, workspace: Workspace, tmp_path: Path, name: str) -> None:
        """Of an original and worse copies the original is kept, in any order, and one sentence says why.

        Nothing tells a border that was added from one that was cut off, if neither file lost anything.
        """
        worse: dict[int, dict[str, Pixels]] = {number: {} for number in range(6)}
        originals = [detailed(10 + number) for number in worse]
        half, large, saved, bordered, cropped, several = originals
        worse[0] = {"half.png": resized(half, 0.5)}
        worse[1] = {"large.png": resized(large, 2)}
        worse[2] = {"saved.jpg": saved}
        worse[3] = {"bordered.png": framed(bordered)}
        worse[4] = {"cropped.png": cut(cropped)}
        worse[5] = {"large.png": resized(several, 2), "half.png": resized(several, 0.5), "saved.jpg": several}
        for number, original in enumerate(originals):
            images = {f"{number}/m_{kind}": pixels for kind, pixels in worse[number].items()}
            put(tmp_path / "images", images, quality=40)
            put(tmp_path / "images", {f"{number}/{name}.png": original})
        groups = workspace.create_dataset("d", tmp_path / "images", "gist").duplicates()
        assert {frozenset(group.paths) for group in groups} == {
            frozenset([f"{number}/{name}.png", *(f"{number}/m_{kind}" for kind in kinds)])
            for number, kinds in worse.items()
        }
        for group in groups:
            assert group.paths[group.media_ids.index(group.keep)].endswith(f"/{name}.png")
            reason = group.keep_reason
            assert reason == " ".join(reason.split())
            is_bordered = group.paths[0].startswith("3/")
            begin = "Not sure which is the original, but it" if is_bordered else r"(It|Of the \d best, it)"
            assert re.fullmatch(rf"{begin} [a-z ]+: [^:;]+\.", reason), "one plain sentence"
            assert group.is_sure is not is_bordered
            assert not any(word in reason for word in ("nan", "inf", "None", "keep_", "{", "}", "first in order"))

    @pytest.mark.slow
    @pytest.mark.only_soak
    def test_keep__a_tie(self, workspace: Workspace, tmp_path: Path) -> None:
        """Of copies that are equally good the first one is kept, and the reason says so."""
        put(tmp_path / "images", {"a.png": mirrored(detailed(3)), "b.png": detailed(3), "other.png": detailed(4)})
        (group,) = workspace.create_dataset("d", tmp_path / "images", "gist").duplicates()
        assert group.paths[group.media_ids.index(group.keep)] == "a.png"
        assert group.keep_reason == "Not sure which is the original, but it is the first in order."
        reasons = dict(zip(group.paths, group.reasons, strict=True))
        assert reasons == {"a.png": "kept", "b.png": "mirrored"}

    @pytest.mark.slow
    def test_keep__not_the_sharper_of_two_compressed(self, workspace: Workspace, tmp_path: Path) -> None:
        """A coarse small photo is sharper by the traces of its blocks, and not kept; neither is made from the other."""
        put(tmp_path / "images", {"a.jpg": mirrored(photo(1))}, quality=60)
        put(tmp_path / "images", {"b.jpg": photo(1)}, quality=75)
        (group,) = workspace.create_dataset("d", tmp_path / "images", "gist").duplicates()
        assert group.paths[group.media_ids.index(group.keep)] == "b.jpg"
        assert not group.is_sure
        assert group.keep_reason.startswith("Not sure which is the original, but it is the least compressed: ")

    def test_keep__what_a_collage_shows(self, workspace: Workspace, tmp_path: Path) -> None:
        """A collage is a copy of one of its photos, which is kept; the other photo is no copy of either."""
        one, two = photo(21, width=320, height=240), photo(22, width=320, height=240)
        put(tmp_path / "images", {"one.png": one, "two.png": two, "both.png": np.hstack([one, two])})
        (group,) = workspace.create_dataset("d", tmp_path / "images", "gist").duplicates()
        assert dict(zip(group.paths, group.reasons, strict=True)) == {
            "both.png": "shown on 50% of a larger image",
            "one.png": "kept",
        }
        assert group.keep_reason == "It is the source: the others were made from it or from another copy."

    @pytest.mark.slow
    def test_keep__a_collage_whose_first_photo_goes(self, workspace: Workspace, tmp_path: Path) -> None:
        """A collage whose first photo is removed is a copy of the other one; a photo that is added changes nothing."""
        one, two = photo(21, width=320, height=240), photo(22, width=320, height=240)
        put(tmp_path / "images", {"a.png": one, "both.png": np.hstack([one, two])})
        dataset = workspace.create_dataset("d", tmp_path / "images", "gist")
        put(tmp_path / "more", {"two.png": two})
        dataset.add_media(tmp_path / "more")
        (group,) = dataset.duplicates()
        assert sorted(group.file_names) == ["a.png", "both.png"]
        removed = group.media_ids[group.file_names.index("a.png")]
        dataset.delete_media([removed])
        (group,) = dataset.duplicates()
        assert sorted(group.file_names) == ["both.png", "two.png"]
        rebuild(dataset)
        (again,) = dataset.duplicates()
        assert sorted(again.file_names) == sorted(group.file_names)

    @pytest.mark.slow
    def test_keep__one_of_two_originals_with_the_same_pixels(self, workspace: Workspace, tmp_path: Path) -> None:
        """Every other member has a reason of its own, relative to the one that is kept."""
        a = detailed(3)
        put(tmp_path / "images", {"a.png": a, "b.bmp": a, "c.png": cut(a), "d.png": resized(a, 0.5)})
        (group,) = workspace.create_dataset("d", tmp_path / "images", "gist").duplicates()
        reasons = dict(zip(group.paths, group.reasons, strict=True))
        same = {"a.png", "b.bmp"} - {path for path, reason in reasons.items() if reason == "kept"}
        assert {reasons[path] for path in same} == {"same pixels"}
        assert reasons["d.png"] == "resized to 50%"

    def test_keep__of_stored_comparison(self, home: Home) -> None:
        """Members of groups have values of the comparison, other images have none."""
        columns = columns_of(home.datasets["onnx"], ["path", *STANDING])
        for path, detail in zip(columns["path"], columns["keep_detail"], strict=True):
            assert (detail is None) == (path in ALONE)

    def test_keep__among_equal_files(self, home: Home) -> None:
        """Groups of equal files have no comparison; their reasons are that the files are equal."""
        assert home.datasets["gist"].duplicates(exact=True) == []


class TestErrors:
    """Arguments that cannot be used."""

    @pytest.mark.parametrize("similarity", [0.95, 0, -1, 1.01, float("nan")])
    @pytest.mark.parametrize("within_videos", [False, True])
    def test_duplicates__below_the_lowest_level(self, home: Home, *, similarity: float, within_videos: bool) -> None:
        """A similarity beyond the levels is refused, and the message lists what there is."""
        with pytest.raises(InvalidInput, match=r"from 0\.96 to 1, not .*levels 0\.96, 0\.97, .*0\.999 and 1\.0"):
            home.datasets["gist"].duplicates(similarity, within_videos=within_videos)

    def test_duplicates__ids_are_those_of_paths(self, home: Home) -> None:
        """Members are named by the ids that follow from their paths."""
        dataset = home.datasets["gist"]
        for group in dataset.duplicates():
            assert group.media_ids == [media_id(dataset.id, path) for path in group.paths]
