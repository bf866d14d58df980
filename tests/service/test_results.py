"""Results over HTTP: rows by position, quantiles, masks, facets, embeddings."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from framedex import Dataset, Workspace
from framedex.access import Role
from framedex.hub import Hub
from tests.gallery import SETTINGS, make_gallery
from tests.prepared import prepared
from tests.service.client import CLOSED, LOCAL, OWN, Client, client_of
from tests.service.users import OPERATOR, PASSWORD

ARROW = {"Accept": "application/vnd.apache.arrow.stream"}


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Dataset, Client, Client]]:
    """A dataset that stays as it is, a client without log-ins, and one that has logged in as a viewer."""
    home = tmp_path_factory.mktemp("results")
    make_gallery(home / "gallery")
    with Workspace(home / "ws", settings=SETTINGS) as workspace, Hub(workspace) as hub:
        for name, role in (("ann", Role.ADMIN), ("vic", Role.VIEWER)):
            hub.users.create(OPERATOR, name, PASSWORD, role=role)
        dataset = prepared(workspace, "pets", home / "gallery")
        with (
            client_of(workspace, hub, LOCAL) as local,
            client_of(workspace, hub, CLOSED) as viewer,
        ):
            yield dataset, local, viewer.log_in("vic")


def url(dataset: Dataset, rest: str) -> str:
    """Return the path of something in a dataset."""
    return f"/api/v1/dataset/{dataset.id}{rest}"


def opened(client: Client, dataset: Dataset, **body: Any) -> dict[str, Any]:
    """Open results and return what is said about them."""
    answer = client.post(url(dataset, "/results"), json=body, headers=OWN)
    assert answer.status_code == 200, answer.text
    result: dict[str, Any] = answer.json()
    return result


def table_of(answer: Any) -> pa.Table:
    """Return the rows of an Arrow answer."""
    assert answer.status_code == 200, answer.text
    return pa.ipc.open_stream(answer.content).read_all()


@pytest.mark.slow
@pytest.mark.only_soak
def test_results__that_are_empty(shared: tuple[Dataset, Client, Client]) -> None:
    """Notes say which name does not exist, and the nearest that does; results with rows have none."""
    dataset, local, _ = shared
    label = dataset.labels()[0].name
    empty = opened(local, dataset, vql=[{"labels": {"op": "is", "value": f"{label}s"}}])
    assert (empty["count"], empty["notes"]) == (0, [f"there is no label '{label}s'; did you mean '{label}'?"])
    assert opened(local, dataset, vql=[{"labels": {"op": "is", "value": label}}])["notes"] == []
    for name, notes in ((f"{label}s", empty["notes"]), (label, [])):
        page = local.get(f"/api/v1/explore/{dataset.id}", params={"labels": name}).json()
        assert (bool(page["clusters"]), page["notes"]) == (not notes, notes)


@pytest.mark.slow
@pytest.mark.only_soak
def test_results__are_those_of_the_view(shared: tuple[Dataset, Client, Client]) -> None:
    """Queries have the rows of the same views in Python, in their order; paths are those within the source."""
    dataset, local, viewer = shared
    folder = [{"folder": {"op": "is", "value": "animals"}}]
    first = dataset.media_id("animals/02.jpg")
    for body, view in (
        ({}, dataset.view),
        ({"vql": folder, "sort": {"column": "width", "descending": True}},
         dataset.where(folder).sort_by("width", descending=True)),
        ({"search": "street"}, dataset.search("street")),
        ({"search": {"text": "street", "limit": 2, "by": "words"}}, dataset.search("street", 2, by="words")),
        ({"search": {"similar": first, "limit": 5}}, dataset.similar(first, 5)),
        ({"search": {"similar": first}, "region": {"x": 1, "y": 2, "width": 50, "height": 40}},
         dataset.similar(first, bounding_box=(1, 2, 50, 40))),
        ({"ids": [first]}, dataset.select([first])),
        ({"entity_type": "OBJECTS"}, dataset.objects),
    ):  # fmt: skip
        for client in (local, viewer):
            results = opened(client, dataset, **body)
            table = table_of(client.get(url(dataset, f"/results/{results['rid']}/rows?limit=100000"), headers=ARROW))
            expected = view.to_arrow()
            assert (results["count"], results["generation"]) == (len(expected), dataset.generation)
            whole = dataset.objects if body.get("entity_type") == "OBJECTS" else dataset.view
            assert (results["total"], results["n_images"]) == (len(whole), dataset.info.n_images)
            assert table.drop(["file_path"]).equals(expected.drop(["file_path"]))
            assert table["file_path"].to_pylist() == view.to_arrow(["path"])["path"].to_pylist()
            page = client.get(url(dataset, f"/results/{results['rid']}/rows?offset=1&limit=2&columns=media_id"))
            assert [row["media_id"] for row in page.json()["rows"]] == view.media_ids()[1:3]


def test_results__have_one_id(shared: tuple[Dataset, Client, Client]) -> None:
    """The same query has the same id; other queries have others."""
    dataset, local, _ = shared
    query = {"vql": [{"labels": {"op": "is", "value": "town"}}]}
    assert opened(local, dataset, **query) == opened(local, dataset, **query, unknown=1)
    assert opened(local, dataset)["rid"] != opened(local, dataset, **query)["rid"]


def test_rows__of_the_app(shared: tuple[Dataset, Client, Client]) -> None:
    """Rows have URLs and versions on request; an ETag answers 304 the second time."""
    dataset, local, _ = shared
    rid = opened(local, dataset)["rid"]
    rows = url(dataset, f"/results/{rid}/rows?limit=3&columns=media_id&columns=v&columns=url&columns=file_path")
    answer = local.get(rows)
    body = answer.json()
    ids = dataset.view.media_ids()
    assert (body["offset"], body["count"], len(body["rows"])) == (0, len(ids), 3)
    assert body["rows"][0]["url"] == f"/api/v1/dataset/{dataset.id}/media/{ids[0]}/file"
    assert len(body["rows"][0]["v"]) == 8
    assert not body["rows"][0]["file_path"].startswith("/")
    again = local.get(rows, headers={"If-None-Match": f'"x", {answer.headers["ETag"]}'})
    assert (again.status_code, again.content, again.headers["ETag"]) == (304, b"", answer.headers["ETag"])
    assert local.get(rows, headers={"If-None-Match": '"x"'}).status_code == 200
    assert local.get(rows, headers=ARROW).headers["ETag"] != answer.headers["ETag"]
    everything = local.get(url(dataset, f"/results/{rid}/rows?limit=500")).json()["rows"]
    assert len(everything) == len(ids)


def test_rows__at_positions(shared: tuple[Dataset, Client, Client]) -> None:
    """Rows at some positions come in their order; those beyond the end are left out, and limits hold."""
    dataset, local, _ = shared
    rid = opened(local, dataset, sort={"column": "image_filename"})["rid"]
    rows = url(dataset, f"/results/{rid}/rows?columns=media_id")
    ids = [row["media_id"] for row in local.get(rows + "&limit=500").json()["rows"]]
    answer = local.get(rows + "&at=3&at=0&at=1000000&at=3")
    assert [row["media_id"] for row in answer.json()["rows"]] == [ids[3], ids[0], ids[3]]
    assert local.get(rows + "&at=3").headers["ETag"] != answer.headers["ETag"]
    assert local.get(rows + "&at=-1").status_code == 422
    assert local.get(rows + "&at=1" * 501).status_code == 422
    assert local.get(rows + "&at=1", headers=ARROW).status_code == 422


def test_rows__limits(shared: tuple[Dataset, Client, Client]) -> None:
    """Limits hold to the number, and unknown columns are named."""
    dataset, local, _ = shared
    rows = url(dataset, f"/results/{opened(local, dataset)['rid']}/rows")
    assert local.get(rows + "?limit=500").status_code == 200
    for query in ("?limit=501", "?limit=0", "?offset=-1", "?limit=x", "?columns=nothing"):
        assert local.get(rows + query).status_code == 422, query
    assert local.get(rows + "?limit=501", headers=ARROW).status_code == 200
    assert local.get(rows + "?limit=100001", headers=ARROW).status_code == 422
    assert local.get(rows + "?offset=1000000").json()["rows"] == []


def test_results__that_are_refused(shared: tuple[Dataset, Client, Client]) -> None:
    """Queries that cannot be used are refused with a sentence."""
    dataset, local, _ = shared
    wrong: list[dict[str, Any]] = [
        {"vql": [{"labls": {}}]}, {"vql": "x"}, {"sort": {"column": "nothing"}}, {"sort": "width"},
        {"search": {}}, {"search": {"text": "a", "similar": "b"}}, {"search": 7}, {"entity_type": "VIDEOS"},
        {"entity_type": "X"}, {"region": {"x": 0, "y": 0, "width": 1, "height": 1}},
        {"search": {"text": "a", "by": "x"}}, {"search": {"text": "a", "limit": -1}}, {"search": {"text": ""}},
    ]  # fmt: skip
    for body in wrong:
        assert local.post(url(dataset, "/results"), json=body).status_code == 422, body
    assert local.post(url(dataset, "/results"), json={"search": {"similar": "0" * 36}}).status_code == 404
    assert local.post(url(dataset, "/results"), content=b"{").status_code == 422


def test_results__of_others_are_gone(shared: tuple[Dataset, Client, Client]) -> None:
    """Results of another user are gone, as is an id that never was."""
    dataset, local, viewer = shared
    rid = opened(local, dataset, vql=[{"labels": {"op": "is", "value": "town"}}])["rid"]
    for each in (rid, "0" * 32):
        for rest in ("rows", "quantiles", "mask", "facets?field=labels", "position?media=x"):
            answer = viewer.get(url(dataset, f"/results/{each}/{rest}"))
            assert (answer.status_code, answer.json()["code"]) == (410, "gone")
    assert viewer.get(url(dataset, f"/embeddings?rid={rid}")).status_code == 410


@pytest.mark.slow
@pytest.mark.only_soak
def test_results__up_to_sixteen(shared: tuple[Dataset, Client, Client]) -> None:
    """The seventeenth results of a user take the place of those that were not used for longest."""
    dataset, _, viewer = shared
    columns = [*dataset.limits, "width", "height", "file_size_bytes", "media_id"]
    queries = [{"sort": {"column": each, "descending": d}} for each in columns[:9] for d in (False, True)][:17]
    rids = [opened(viewer, dataset, **query)["rid"] for query in queries[:16]]
    assert viewer.get(url(dataset, f"/results/{rids[0]}/rows")).status_code == 200
    opened(viewer, dataset, **queries[16])
    states = [viewer.get(url(dataset, f"/results/{rid}/rows")).status_code for rid in rids[:3]]
    assert states == [200, 410, 200]


def test_quantiles_position_mask_facets(shared: tuple[Dataset, Client, Client]) -> None:
    """The scrubber, anchors, the map and the filters get what the library says."""
    dataset, local, _ = shared
    results = opened(local, dataset, sort={"column": "width"})
    base = url(dataset, f"/results/{results['rid']}")
    view = dataset.view.sort_by("width")
    quantiles = local.get(base + "/quantiles?n=3").json()
    widths = view.to_arrow(["width"])["width"].to_pylist()
    assert quantiles["column"] == "width"
    assert quantiles["values"] == [widths[place] for place in quantiles["positions"]]
    assert local.get(base + "/quantiles?column=file_path").status_code == 200
    for query in ("n=1", "n=1001", "column=nothing"):
        assert local.get(f"{base}/quantiles?{query}").status_code == 422
    ids = view.media_ids()
    assert local.get(f"{base}/position?media={ids[7]}").json() == {"position": 7}
    assert local.get(f"{base}/position?media=nobody").status_code == 404
    assert local.get(f"{base}/position?media=nobody&required=false").json() == {"position": None}
    assert local.get(f"{base}/position?media={ids[7]}&required=false").json() == {"position": 7}
    assert local.get(f"{base}/position").status_code == 422
    mask = local.get(base + "/mask")
    assert np.unpackbits(np.frombuffer(mask.content, np.uint8), bitorder="little")[: len(ids)].all()
    assert mask.headers["X-Row-Count"] == str(len(ids))
    assert local.get(base + "/mask", headers={"If-None-Match": mask.headers["ETag"]}).status_code == 304
    facets = local.get(base + "/facets?field=labels&limit=200").json()
    assert {each["value"]: each["count"] for each in facets["values"]} == {e.name: e.count for e in dataset.labels()}
    assert local.get(base + "/facets?field=labels&q=TOW").json()["total"] == 1
    for query in ("field=width", "field=nothing", "field=labels&limit=201", "field=labels&limit=0", ""):
        assert local.get(f"{base}/facets?{query}").status_code == 422


def test_embeddings__as_arrow(shared: tuple[Dataset, Client, Client]) -> None:
    """Embeddings come as ids with vectors, of all media or of results."""
    dataset, local, viewer = shared
    ids, vectors = dataset.embeddings()
    table = table_of(viewer.get(url(dataset, "/embeddings")))
    assert table["id"].to_pylist() == ids
    assert np.array_equal(np.stack(table["embedding"].to_numpy()), vectors)
    rid = opened(local, dataset, sort={"column": "width"})["rid"]
    assert (
        table_of(local.get(url(dataset, f"/embeddings?rid={rid}")))["id"].to_pylist()
        == (dataset.view.sort_by("width").embeddings()[0])
    )
    empty = opened(local, dataset, entity_type="OBJECTS")["rid"]
    assert table_of(local.get(url(dataset, f"/embeddings?rid={empty}"))).schema == table.schema


def test_results__need_a_dataset_that_one_may_view(shared: tuple[Dataset, Client, Client], tmp_path: Path) -> None:
    """Without a log-in there is a 401, and an unknown dataset is a 404, whatever the request says."""
    dataset, _, viewer = shared
    evil = {"Sec-Fetch-Site": "cross-site"}
    assert viewer.post(url(dataset, "/results"), json={}, headers=evil).status_code == 403
    nowhere = "/api/v1/dataset/00000000-0000-0000-0000-0000000000aa"
    for rest in ("/results/x/rows", "/embeddings", "/labels", "/issues", "/quality", "/duplicates", "/decisions"):
        assert viewer.get(nowhere + rest).status_code == 404
    cookies = dict(viewer.cookies)
    viewer.cookies.clear()
    assert viewer.get(url(dataset, "/results/x/rows")).status_code == 401
    viewer.cookies.update(cookies)


def test_rows__in_the_basket(shared: tuple[Dataset, Client, Client]) -> None:
    """Rows say on request whether they are in the basket, also before anything was put into it."""
    dataset, local, _ = shared
    ids = dataset.view.media_ids()
    for expected in ([], ids[1:3]):
        dataset.basket.add(expected) if expected else None
        rows = url(
            dataset, f"/results/{opened(local, dataset)['rid']}/rows?limit=500&columns=in_basket&columns=media_id"
        )
        answer = local.get(rows).json()["rows"]
        assert [row["media_id"] for row in answer if row["in_basket"]] == expected
    dataset.undo()
