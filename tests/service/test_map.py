"""The map over HTTP: the task that makes it, points, colours, names, regions."""

import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

from framedex import Dataset, Workspace
from framedex.access import Role
from framedex.hub import Hub
from framedex.service.arrow import ARROW
from tests.gallery import ANIMALS, SETTINGS, make_gallery
from tests.objects import scenes
from tests.pauses import wait_until
from tests.prepared import prepared
from tests.service.client import CLOSED, LOCAL, OWN, Client, client_of
from tests.service.serving import serving
from tests.service.users import OPERATOR, PASSWORD

HEADER = struct.Struct("<8sII4d16x")


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Dataset, Client, Client]]:
    """A dataset with a map, a client without log-ins, and one that has logged in as a viewer."""
    home = tmp_path_factory.mktemp("map")
    make_gallery(home / "gallery")
    with Workspace(home / "ws", settings=SETTINGS) as workspace, Hub(workspace) as hub:
        for name, role in (("ann", Role.ADMIN), ("vic", Role.VIEWER)):
            hub.users.create(OPERATOR, name, PASSWORD, role=role)
        dataset = prepared(workspace, "pets", home / "gallery")
        with (
            client_of(workspace, hub, LOCAL) as local,
            client_of(workspace, hub, CLOSED) as viewer,
        ):
            viewer.log_in("vic")
            made(viewer, dataset)
            yield dataset, local, viewer


def url(dataset: Dataset, rest: str = "") -> str:
    """Return the path of the map of a dataset, or of a part of it."""
    return f"/api/v1/dataset/{dataset.id}/map{rest}"


def made(client: Client, dataset: Dataset) -> dict[str, Any]:
    """Let the service make the map; return the task."""
    assert client.get(url(dataset)).status_code == 404
    absent = client.get(url(dataset), params={"required": "false"})
    assert (absent.status_code, absent.content) == (204, b"")
    answer = client.post(url(dataset), headers=OWN)
    assert answer.status_code == 202, answer.text
    task: dict[str, Any] = answer.json()
    wait_until(lambda: client.get(url(dataset)).status_code == 200)
    return task


def points(content: bytes) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.uint32]]:
    """Return the places of points on the map, and their positions among the rows."""
    magic, count, _total, left, lower, right, upper = HEADER.unpack(content[:64])
    assert magic == b"FDXMAP01"
    assert len(content) == 64 + 8 * count
    scaled = np.frombuffer(content, "<u2", 2 * count, 64).reshape(-1, 2) / 65535
    places = scaled * [right - left, upper - lower] + [left, lower]
    return places, np.frombuffer(content, "<u4", count, 64 + 4 * count)


def coloured(content: bytes) -> tuple[dict[str, Any], npt.NDArray[np.uint8]]:
    """Return what colours mean, and the codes of the points."""
    length = struct.unpack("<I", content[:4])[0]
    return json.loads(content[4 : 4 + length]), np.frombuffer(content, np.uint8, offset=4 + length)


def test_map__equals_that_of_python(shared: tuple[Dataset, Client, Client]) -> None:
    """Points are those of ds.map(), to a part in 65,535 of the width, each with its row; the order is no order."""
    dataset, local, viewer = shared
    answer = viewer.get(url(dataset))
    places, positions = points(answer.content)
    expected = dataset.map()
    rows = dataset.view.media_ids()
    assert sorted(rows[each] for each in positions) == sorted(expected["media_id"].to_pylist())
    at = {each: place for place, each in enumerate(expected["media_id"].to_pylist())}
    exact = np.stack([np.asarray(expected[name]) for name in "xy"], axis=1)[[at[rows[each]] for each in positions]]
    np.testing.assert_allclose(places, exact, atol=np.ptp(exact) / 60_000)
    assert (np.diff(positions.astype(int)) < 0).sum() > len(positions) / 4
    assert HEADER.unpack(answer.content[:64])[2] == len(rows)
    assert local.get(url(dataset)).content == answer.content


def test_map__as_arrow(shared: tuple[Dataset, Client, Client]) -> None:
    """As an Arrow stream the map is the table of ds.map(); of videos it is only so."""
    dataset, _, viewer = shared
    for kind in ("IMAGES", "OBJECTS", "VIDEOS"):
        answer = viewer.get(url(dataset), params={"entity_type": kind}, headers={"Accept": ARROW})
        assert pa.ipc.open_stream(answer.content).read_all().equals(dataset.map(kind).combine_chunks())
    for kind, words in (("VIDEOS", "the points of a map are IMAGES or OBJECTS"), ("CATS", "")):
        answer = viewer.get(url(dataset), params={"entity_type": kind})
        assert answer.status_code == 422
        assert words in answer.json()["message"]


def test_map__is_sent_once(shared: tuple[Dataset, Client, Client]) -> None:
    """After an edit, the same points and colours are not sent again."""
    dataset, local, _ = shared
    first = local.get(url(dataset))
    colour = local.get(url(dataset, "/colours"), params={"column": "labels"})
    dataset.tag(dataset.view.media_ids()[:1], "edited")
    for path, before in ((url(dataset), first), (url(dataset, "/colours?column=labels"), colour)):
        answer = local.get(path, headers={"If-None-Match": before.headers["etag"]})
        assert answer.status_code == 304
        assert answer.content == b""
    assert local.get(url(dataset), headers={"If-None-Match": '"x"'}).status_code == 200


def test_map_colours__of_texts_and_numbers(shared: tuple[Dataset, Client, Client]) -> None:
    """Codes say the value of each point: the number of a name, or where a number is between the ends."""
    dataset, local, _ = shared
    _, positions = points(local.get(url(dataset)).content)
    rows = dataset.view.to_arrow(["labels", "blur", "is_blur_issue"]).to_pylist()
    meaning, codes = coloured(local.get(url(dataset, "/colours?column=labels")).content)
    names = [None, *(name for name, _ in meaning["names"])]
    assert [names[code] for code in codes] == [(rows[each]["labels"] or [None])[0] for each in positions]
    assert dict(meaning["names"])["animal"] == sum(names[code] == "animal" for code in codes) == len(ANIMALS)
    meaning, codes = coloured(local.get(url(dataset, "/colours?column=blur")).content)
    values = np.array([np.nan if rows[each]["blur"] is None else rows[each]["blur"] for each in positions], float)
    assert meaning["low"] == pytest.approx(np.nanmin(values))
    assert meaning["high"] == pytest.approx(np.nanmax(values))
    np.testing.assert_array_equal(codes == 0, np.isnan(values))
    share = (values - meaning["low"]) / (meaning["high"] - meaning["low"])
    np.testing.assert_allclose((codes[codes > 0] - 1) / 253, share[codes > 0], atol=1 / 500)
    meaning, codes = coloured(local.get(url(dataset, "/colours?column=is_blur_issue")).content)
    assert {name for name, _ in meaning["names"]} <= {"true", "false"}
    for column, words in (("nothing", "nothing"), ("embedding", "cannot be coloured"), ("", "")):
        answer = local.get(url(dataset, "/colours"), params={"column": column})
        assert answer.status_code == 422
        assert words in answer.json()["message"]
    assert local.get(url(dataset, "/colours")).status_code == 422


def test_map_colours__of_changes(shared: tuple[Dataset, Client, Client]) -> None:
    """Points have the colour of the first change of their image between two states."""
    dataset, local, _ = shared
    dataset.snapshot("before the changes")
    ids = dataset.view.media_ids()
    dataset.set_labels(ids[:2], ["new"])
    dataset.tag(ids[1:4], "changed")
    _, positions = points(local.get(url(dataset)).content)
    answer = local.get(url(dataset, "/colours"), params={"before": "before the changes"})
    meaning, codes = coloured(answer.content)
    changes = [None, *(name for name, _ in meaning["names"])]
    found = {ids[position]: changes[code] for position, code in zip(positions, codes, strict=True)}
    assert [found[each] for each in ids[:5]] == ["relabelled", "relabelled", "retagged", "retagged", None]
    assert meaning["names"] == [["relabelled", 2], ["retagged", 2]]
    both = {"before": "before the changes", "column": "labels"}
    for wrong, status in (({"before": "never"}, 404), (both, 422), ({**both, "entity_type": "OBJECTS"}, 422)):
        assert local.get(url(dataset, "/colours"), params=wrong).status_code == status


@pytest.mark.slow
def test_map_colours__of_the_basket(shared: tuple[Dataset, Client, Client]) -> None:
    """The basket is a column of truth values, before and after something is in it."""
    dataset, local, _ = shared
    rows = dataset.view.media_ids()
    positions = points(local.get(url(dataset)).content)[1]
    for chosen in ([], rows[3:5]):
        if chosen:
            dataset.basket.add(chosen)
        meaning, codes = coloured(local.get(url(dataset, "/colours"), params={"column": "in_basket"}).content)
        names = dict(meaning["names"])
        assert names.get("true", 0) == len(chosen)
        code = [name for name, _ in meaning["names"]].index("true") + 1 if chosen else -1
        assert sorted(rows[each] for each in positions[codes == code]) == sorted(chosen)
    dataset.basket.remove(rows[3:5])


def test_map_labels__are_clusters(shared: tuple[Dataset, Client, Client]) -> None:
    """Each of the largest clusters has its name, its size, and the median place of its members."""
    dataset, local, _ = shared
    places, positions = points(local.get(url(dataset)).content)
    for level in range(5):
        answer = local.get(url(dataset, f"/labels?level={level}")).json()
        of_row = dataset.view.to_arrow([f"cluster_{level}"])[0].to_pylist()
        of_point = np.array([of_row[each] for each in positions])
        pages = {each.cluster_id: each.name for each in dataset.explore("IMAGES", level).clusters}
        assert answer["level"] == level
        assert answer["labels"]
        for label in answer["labels"]:
            members = places[of_point == label["cluster_id"]]
            assert label["size"] == len(members)
            assert label["name"] == pages[label["cluster_id"]]
            assert (label["x"], label["y"]) == pytest.approx(tuple(np.median(members, axis=0)), abs=0.01)
    for wrong in ("-1", "5", "x"):
        assert local.get(url(dataset, f"/labels?level={wrong}")).status_code == 422


def test_map_region__of_results(shared: tuple[Dataset, Client, Client]) -> None:
    """The mask of results of a region is that of the points inside."""
    dataset, local, _ = shared
    places, positions = points(local.get(url(dataset)).content)
    middle = float(np.median(places[:, 0])) + 1e-3
    region = {"op": "inside", "value": [[middle, -1e6], [1e6, -1e6], [1e6, 1e6], [middle, 1e6]]}
    body = {"vql": [{"map_region": region}]}
    results = local.post(f"/api/v1/dataset/{dataset.id}/results", json=body, headers=OWN).json()
    mask = local.get(f"/api/v1/dataset/{dataset.id}/results/{results['rid']}/mask")
    bits = np.unpackbits(np.frombuffer(mask.content, np.uint8), bitorder="little")
    np.testing.assert_array_equal(bits[positions] == 1, places[:, 0] > middle)
    assert results["count"] == int((places[:, 0] > middle).sum())


@pytest.mark.slow
@pytest.mark.only_soak
def test_map__with_objects(tmp_path: Path) -> None:
    """Objects have points, labels, a mask and regions of their own, which are those of the library."""
    scenes(tmp_path / "images", 8)
    with serving(tmp_path) as running:
        dataset, client = running.workspace.create_dataset("street", tmp_path / "images"), running.local
        kind = {"entity_type": "OBJECTS"}
        assert client.get(url(dataset), params={**kind, "required": "false"}).status_code == 204
        assert client.post(url(dataset), params=kind, headers=OWN).status_code == 202
        wait_until(lambda: client.get(url(dataset), params=kind).status_code == 200)
        assert client.get(url(dataset), params={"required": "false"}).status_code == 204
        places, positions = points(client.get(url(dataset), params=kind).content)
        ids = dataset.objects.media_ids()
        expected = {row["media_id"]: (row["x"], row["y"]) for row in dataset.map("OBJECTS").to_pylist()}
        exact = np.array([expected[ids[each]] for each in positions])
        assert len(expected) == len(ids) == 24
        np.testing.assert_allclose(places, exact, atol=np.ptp(exact) / 60_000)
        meaning, codes = coloured(client.get(url(dataset, "/colours"), params={**kind, "column": "labels"}).content)
        assert dict(meaning["names"]) == {"cat": 16, "dog": 8}
        names = [meaning["names"][code - 1][0] for code in codes]
        labels = [row["labels"][0] for row in dataset.objects.rows(["labels"])]
        assert names == [labels[each] for each in positions]
        apart = np.unique(exact[:, 0])  # those of equal objects are equal
        middle = float(apart[len(apart) // 2 : len(apart) // 2 + 2].mean())
        region = [[middle, -1e6], [1e6, -1e6], [1e6, 1e6], [middle, 1e6]]
        body = {"vql": [{"map_region": {"op": "inside", "value": region}}], **kind}
        found = client.post(f"/api/v1/dataset/{dataset.id}/results", json=body, headers=OWN).json()
        assert found["count"] == dataset.objects.where(body["vql"]).count() == int((exact[:, 0] > middle).sum())
        mask = client.get(f"/api/v1/dataset/{dataset.id}/results/{found['rid']}/mask").content
        bits = np.unpackbits(np.frombuffer(mask, np.uint8), bitorder="little")
        np.testing.assert_array_equal(bits[positions] == 1, exact[:, 0] > middle)


def test_map__of_objects(shared: tuple[Dataset, Client, Client]) -> None:
    """A dataset without objects has an empty map of them; other entities are refused."""
    dataset, local, _ = shared
    content = local.get(url(dataset, "?entity_type=OBJECTS")).content
    assert HEADER.unpack(content) == (b"FDXMAP01", 0, 0, 0, 0, 1, 1)
    assert local.get(url(dataset, "/labels?entity_type=OBJECTS")).json()["labels"] == []
    assert coloured(local.get(url(dataset, "/colours?column=labels&entity_type=OBJECTS")).content)[1].size == 0
    assert local.get(url(dataset, "?entity_type=VIDEOS")).status_code == 422


def test_map__is_of_its_users(shared: tuple[Dataset, Client, Client]) -> None:
    """Who may not see the dataset learns nothing of its map; the task is listed with its type."""
    dataset, local, viewer = shared
    other = "00000000-0000-4000-8000-000000000000"
    for path in ("", "/labels", "/colours?column=labels"):
        assert viewer.get(f"/api/v1/dataset/{other}/map{path}").status_code == 404
    assert viewer.post(f"/api/v1/dataset/{other}/map", headers=OWN).status_code == 404
    types = [each["task_type"] for each in local.get("/api/v1/tasks").json()["tasks"]]
    assert "MAP" in types
    assert dataset.info.status_new == "READY"
