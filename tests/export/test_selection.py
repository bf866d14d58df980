"""Selective exports: media by id, and clusters without some of their media."""

import uuid
import zipfile
from pathlib import Path
from typing import Any

import pytest

from framedex import InvalidFilter, InvalidInput, NotFound, Workspace
from framedex.core.ids import Kind, group_id
from tests.export.test_archive import read_json
from tests.gallery import ANIMALS, BROKEN, COPIES, TOWNS, Gallery, grouped


def exported(gallery: Gallery, path: Path, selection: list[Any]) -> list[str]:
    result = gallery.dataset.export(path, media_selection=selection)
    names = [item["file_name"] for item in read_json(path)["media_items"]]
    assert result.total_media_items == len(names)
    return names


def of_media(gallery: Gallery, *names: str) -> dict[str, Any]:
    return {"type": "media", "payload": {"media_ids": [gallery.ids[name] for name in names]}}


def of_cluster(cluster_id: str, **more: Any) -> dict[str, Any]:
    return {
        "type": "cluster",
        "payload": {"cluster_id": cluster_id, "cluster_filters": {"entity_type": "IMAGES"}, **more},
    }


def cluster_id(gallery: Gallery, name: str, level: int = 0) -> str:
    row = gallery.dataset.to_arrow(["image_filename", f"cluster_{level}"]).to_pylist()
    return next(str(each[f"cluster_{level}"]) for each in row if each["image_filename"] == name)


def test_selection__media(gallery: Gallery, tmp_path: Path) -> None:
    """Media are exported by id, each once, in dataset order."""
    selection = [of_media(gallery, TOWNS[1], ANIMALS[5], TOWNS[1]), of_media(gallery, ANIMALS[5])]
    assert exported(gallery, tmp_path / "out.zip", selection) == [ANIMALS[5], TOWNS[1]]


@pytest.mark.slow
@pytest.mark.parametrize("level", range(5))
def test_selection__cluster(gallery: Gallery, tmp_path: Path, level: int) -> None:
    """A cluster of any level is exported whole."""
    for cluster in gallery.dataset.explore(level=level).clusters[:3]:
        names = exported(gallery, tmp_path / "out.zip", [of_cluster(cluster.cluster_id)])
        assert names == sorted(gallery.names([preview.media_id for preview in cluster.previews]))


@pytest.mark.slow
def test_selection__cluster_without_some(gallery: Gallery, tmp_path: Path) -> None:
    """Media excluded from a cluster are exported only if another element selects them."""
    copies = cluster_id(gallery, COPIES[0])
    without = of_cluster(copies, exclude_media_ids=[gallery.ids[COPIES[1]], gallery.ids[TOWNS[0]]])
    assert exported(gallery, tmp_path / "out.zip", [without]) == [COPIES[0], COPIES[2]]
    both = [without, of_media(gallery, COPIES[1])]
    assert exported(gallery, tmp_path / "out.zip", both) == COPIES
    assert exported(gallery, tmp_path / "out.zip", [of_cluster(copies, exclude_media_ids=[])]) == COPIES


def test_selection__of_broken_files(gallery: Gallery, tmp_path: Path) -> None:
    """The cluster of broken files is exported like any other."""
    assert exported(gallery, tmp_path / "out.zip", [of_cluster(cluster_id(gallery, BROKEN[0]))]) == BROKEN


def test_selection__both_forms(gallery: Gallery, tmp_path: Path) -> None:
    """Fields of the payload may also be beside the type."""
    flat = [
        {"type": "media", "media_ids": [gallery.ids[TOWNS[0]]]},
        {
            "type": "cluster",
            "cluster_id": cluster_id(gallery, COPIES[0]),
            "exclude_media_ids": [gallery.ids[COPIES[0]]],
        },
    ]
    assert exported(gallery, tmp_path / "out.zip", flat) == [*COPIES[1:], TOWNS[0]]


def test_selection__nothing(gallery: Gallery, tmp_path: Path) -> None:
    """An empty selection exports nothing."""
    assert exported(gallery, tmp_path / "out.zip", []) == []


def test_selection__with_images(gallery: Gallery, tmp_path: Path) -> None:
    """Only images of the selection are exported."""
    gallery.dataset.export(
        tmp_path / "out.zip", include_images=True, media_selection=[of_media(gallery, TOWNS[2], ANIMALS[1])]
    )
    with zipfile.ZipFile(tmp_path / "out.zip") as archive:
        assert archive.namelist() == ["metadata.json", f"images/{ANIMALS[1]}", f"images/{TOWNS[2]}"]
        assert archive.read(f"images/{TOWNS[2]}") == (gallery.folder / TOWNS[2]).read_bytes()


@pytest.mark.slow
@pytest.mark.only_soak
def test_selection__many_media(workspace: Workspace, tmp_path: Path) -> None:
    """A selection may have thousands of ids."""
    dataset = workspace.create_dataset("large", grouped([3000, 3000]))
    wanted = dataset.where([]).media_ids()[::2]
    selection = [{"type": "media", "payload": {"media_ids": wanted}}]
    assert dataset.export(tmp_path / "out.zip", media_selection=selection).total_media_items == 3000
    assert [item["media_id"] for item in read_json(tmp_path / "out.zip")["media_items"]] == wanted


@pytest.mark.slow
@pytest.mark.parametrize("media_id", ["", "\udcff", "猫", "a\0b", "x" * 100_000])
def test_selection__odd_ids(gallery: Gallery, tmp_path: Path, media_id: str) -> None:
    """A malformed media id counts as missing."""
    with pytest.raises(NotFound, match="1 media id is not in this dataset"):
        gallery.dataset.export(tmp_path / "out.zip", media_selection=[{"type": "media", "media_ids": [media_id]}])


@pytest.mark.parametrize("count", [1, 200])
def test_selection__unknown_media(gallery: Gallery, tmp_path: Path, count: int) -> None:
    """Missing ids are counted and the first is named; nothing is written."""
    unknown = [str(uuid.uuid4()) for _ in range(count)]
    selection = [{"type": "media", "payload": {"media_ids": [gallery.ids[TOWNS[0]], *unknown]}}]
    with pytest.raises(
        NotFound, match=rf"^{count} media ids? (is|are) not in this dataset, the first is '{unknown[0]}'"
    ):
        gallery.dataset.export(tmp_path / "out.zip", media_selection=selection)
    with pytest.raises(NotFound, match=unknown[0]):
        gallery.dataset.export(
            tmp_path / "out.zip",
            media_selection=[of_cluster(cluster_id(gallery, COPIES[0]), exclude_media_ids=unknown)],
        )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("excluded", ["", 0, {}, "abc", [1]])
def test_selection__excluding_no_ids(gallery: Gallery, tmp_path: Path, excluded: Any) -> None:
    """Excluded media are a list of ids, or null for none."""
    copies = cluster_id(gallery, COPIES[0])
    assert exported(gallery, tmp_path / "out.zip", [of_cluster(copies, exclude_media_ids=None)]) == COPIES
    with pytest.raises(InvalidInput, match=r"media_selection\[0\].exclude_media_ids must be a list of ids"):
        exported(gallery, tmp_path / "out.zip", [of_cluster(copies, exclude_media_ids=excluded)])


def test_selection__unknown_cluster(gallery: Gallery, tmp_path: Path) -> None:
    """An unknown cluster id is rejected, even if it is similar to a valid one."""
    dataset_id, known = gallery.dataset.id, cluster_id(gallery, COPIES[0])
    for unknown in (
        "not-a-uuid",
        str(uuid.uuid4()),
        group_id(str(uuid.uuid4()), Kind.CLUSTER, 0, 1),  # of another dataset
        group_id(dataset_id, Kind.DUPLICATE_GROUP, 0, 0),  # of another kind
        group_id(dataset_id, Kind.CLUSTER, 0, 9999),
        group_id(dataset_id, Kind.CLUSTER, 0, 2**32 - 1),
        group_id(dataset_id, Kind.CLUSTER, 7, 1),  # of a level that does not exist
        gallery.ids[COPIES[0]],
    ):
        assert unknown != known
        with pytest.raises(NotFound, match=unknown):
            gallery.dataset.export(tmp_path / "out.zip", media_selection=[of_cluster(unknown)])
    of_objects = of_cluster(known, cluster_filters={"entity_type": "OBJECTS"})
    with pytest.raises(NotFound, match=known):
        gallery.dataset.export(tmp_path / "out.zip", media_selection=[of_objects])
    assert exported(gallery, tmp_path / "out.zip", [of_cluster(known.upper())]) == COPIES


@pytest.mark.parametrize(
    ("selection", "said"),
    [
        ("media", "must be a list"),
        ({"type": "media"}, "must be a list"),
        (5, "must be a list"),
        ([None], r"media_selection\[0\] must be an object"),
        ([{"type": "media", "payload": {"media_ids": []}}, {}], r"media_selection\[1\].type must be"),
        ([{"type": "video", "payload": {}}], r"media_selection\[0\].type must be 'media' or 'cluster', not 'video'"),
        ([{"type": "media", "payload": []}], "payload must be an object"),
        ([{"type": "media", "payload": {}}], "media_ids must be a list of ids, not None"),
        ([{"type": "media", "payload": {"media_ids": "abc"}}], "must be a list of ids, not 'abc'"),
        ([{"type": "media", "payload": {"media_ids": [1]}}], r"must be a list of ids, not \[1\]"),
        ([{"type": "cluster", "payload": {}}], "cluster_id must be the id of a cluster, not None"),
        (
            [{"type": "cluster", "cluster_filters": {"entity_type": "FILMS"}}],
            "must be an object with an 'entity_type' of IMAGES, OBJECTS, VIDEOS, not {'entity_type': 'FILMS'}",
        ),
        ([{"type": "cluster", "cluster_filters": ["IMAGES"]}], "cluster_filters must be an object"),
    ],
)
def test_selection__unusable(gallery: Gallery, tmp_path: Path, selection: Any, said: str) -> None:
    """A malformed selection is rejected with the location of the error; nothing is written."""
    with pytest.raises(InvalidInput, match=said) as raised:
        gallery.dataset.export(tmp_path / "out.zip", media_selection=selection)
    assert not isinstance(raised.value, InvalidFilter)
    assert list(tmp_path.iterdir()) == []
