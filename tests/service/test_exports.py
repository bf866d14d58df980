"""Exports over HTTP: starting, state, download, who may do it, and what is refused at the start."""

import io
import json
import os
import zipfile
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from PIL import Image

from framedex import Dataset
from framedex.access import Role
from framedex.errors import InvalidInput
from framedex.hub.exports import safe_name
from tests.gallery import fill
from tests.image_files import encode, photo
from tests.inside import hub_context
from tests.pauses import first_answer
from tests.service.client import OWN, Client
from tests.service.serving import Serving, serving
from tests.service.users import OPERATOR
from tests.tuning import Tuning

NOWHERE = "00000000-0000-0000-0000-0000000000aa"
LABELS = "filename,label\n000.png,cat\n001.png,dog\n002.jpg,cat\n"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """A service with a dataset of three labelled images, one of them with Exif."""
    folder = tmp_path_factory.mktemp("exports")
    source = fill(folder / "source", 2)
    exif = Image.Exif()
    exif[0x010F] = "SECRET"
    (source / "002.jpg").write_bytes(encode(photo(5), "JPEG", exif=exif.tobytes()))
    (source / "image_annotations.csv").write_text(LABELS)
    with serving(folder) as running:
        running.workspace.create_dataset("pets", source)
        running.workspace.create_dataset("other", fill(folder / "other", 2))
        yield running


@pytest.fixture(scope="module")
def dataset(served: Serving) -> Dataset:
    """The dataset."""
    return served.workspace.dataset("pets")


def url(dataset: Dataset, rest: str) -> str:
    """Return a path below a dataset."""
    return f"/api/v1/dataset/{dataset.id}/{rest}"


def completed(client: Client, dataset: Dataset, started: Any) -> dict[str, Any]:
    """Return the state of an export at its end."""
    assert started.status_code == 200, started.text
    path, query = url(dataset, "export_status"), {"export_task_id": started.json()["id"]}

    def ask() -> dict[str, Any]:
        return dict(client.get(path, params=query).json())

    return first_answer(ask, lambda record: record["status"] not in ("PENDING", "RUNNING"))


def archive_of(client: Client, record: dict[str, Any]) -> zipfile.ZipFile:
    """Return the file of a completed export."""
    assert record["status"] == "COMPLETED", record
    answer = client.get(record["download_uri"])
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/zip"), answer.text
    return zipfile.ZipFile(io.BytesIO(answer.content))


def test_export__by_filter(served: Serving, dataset: Dataset) -> None:
    """The record is PENDING at first, then COMPLETED with a signed URI; nothing names a path of the server."""
    started = served.eve.get(
        url(dataset, "export_context_async"), params={"export_format": "json", "file_name": "my pets"}, headers=OWN
    )
    first = started.json()
    assert list(first) == [
        "id", "dataset_id", "created_at", "status", "progress", "entities_count", "result_message", "download_uri",
    ]  # fmt: skip
    assert (first["status"], first["progress"], first["entities_count"], first["download_uri"]) == (
        "PENDING",
        0,
        3,
        None,
    )
    record = completed(served.eve, dataset, started)
    assert (record["progress"], record["result_message"]) == (100, "3 media")
    assert "/cdn/" in record["download_uri"]
    archive = archive_of(served.nobody, record)
    text = archive.read("metadata.json").decode()
    assert str(served.workspace.path.parent) not in text
    metadata = json.loads(text)
    assert metadata["info"]["exported_by"] == "eve@example.org"
    item = metadata["media_items"][0]
    assert item["file_path"] == "000.png"
    assert served.eve.get(item["url"]).status_code == 200
    download = served.eve.get(record["download_uri"])
    assert download.headers["content-disposition"] == "attachment; filename*=UTF-8''my%20pets.zip"
    part = served.eve.get(record["download_uri"], headers={"Range": "bytes=0-3"})
    assert (part.status_code, part.content) == (206, b"PK\x03\x04")
    again = served.eve.get(record["download_uri"], headers={"If-None-Match": download.headers["etag"]})
    assert again.status_code == 304


def test_export__compact_for_shell_scripts(served: Serving, dataset: Dataset) -> None:
    """A client of the documentation greps keys without blanks."""
    answer = served.local.get(url(dataset, "export_context_async"), params={"export_format": "json", "file_name": "a"})
    assert '"id":"' in answer.text
    assert '"status":"PENDING"' in answer.text


def test_export__by_vql_needs_no_name(served: Serving, dataset: Dataset) -> None:
    """A filter stands for the name; it selects, and is answered at once if it is wrong."""
    vql = '[{"labels":{"op":"is","value":["cat"]}}]'
    params = {"export_format": "json", "vql": vql, "include_images": "False", "entity_type": "IMAGES"}
    record = completed(
        served.eve, dataset, served.eve.get(url(dataset, "export_context_async"), params=params, headers=OWN)
    )
    assert (record["entities_count"], record["download_uri"].split("?")[0][-11:]) == (2, "/export.zip")
    missing = served.eve.get(url(dataset, "export_context_async"), params={"export_format": "json"}, headers=OWN)
    assert (missing.status_code, missing.json()["detail"]) == (422, "Field 'file_name' is required unless vql is given")
    for vql in ("x", "{}", '[{"labels":{"op":"like","value":"a"}}]', '[{"similarity":{"op":"upload","value":"x"}}]'):
        wrong = served.eve.get(
            url(dataset, "export_context_async"), params={"export_format": "json", "vql": vql}, headers=OWN
        )
        assert wrong.status_code == 422, wrong.text


@pytest.mark.slow
@pytest.mark.parametrize("export_format", ["parquet", "coco", "csv", "yolo", "voc"])
def test_export__formats(served: Serving, dataset: Dataset, export_format: str) -> None:
    """All formats can be exported, without the paths of the server."""
    params = {"file_name": "a", "export_format": export_format}
    started = served.eve.get(url(dataset, "export_context_async"), params=params, headers=OWN)
    archive = archive_of(served.eve, completed(served.eve, dataset, started))
    folder = str(served.workspace.path.parent).encode()
    assert all(folder not in archive.read(name) for name in archive.namelist())
    if export_format == "parquet":
        table = pq.read_table(io.BytesIO(archive.read("metadata.parquet")))
        assert table["file_path"].to_pylist() == ["000.png", "001.png", "002.jpg"]


@pytest.mark.slow
@pytest.mark.parametrize("strip", [True, False])
def test_export__with_images(served: Serving, dataset: Dataset, strip: bool) -> None:
    """Image files can be copied without what they say about the image."""
    params = {"export_format": "json", "file_name": "a", "include_images": "true", "strip_metadata": str(strip)}
    started = served.eve.get(url(dataset, "export_context_async"), params=params, headers=OWN)
    archive = archive_of(served.eve, completed(served.eve, dataset, started))
    content = archive.read("images/002.jpg")
    assert (b"SECRET" in content) != strip
    assert Image.open(io.BytesIO(content)).size == (160, 120)


@pytest.mark.parametrize(
    "params",
    [
        {"file_name": ""},
        {"file_name": "x" * 256},
        {"file_name": "///"},
        {"file_name": "a", "export_format": "xml"},
        {"file_name": "a", "entity_type": "FRAMES"},
        {"file_name": "a", "include_images": "maybe"},
        {"file_name": "a", "strip_metadata": "true"},
    ],
)
def test_export__bad_parameters(served: Serving, dataset: Dataset, params: dict[str, str]) -> None:
    """What can be refused is refused at the start."""
    answer = served.eve.get(url(dataset, "export_context_async"), params=params, headers=OWN)
    assert answer.status_code == 422, answer.text


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("pets", "pets.zip"),
        ("pets.zip", "pets.zip"),
        ("../../etc/passwd", "_.._etc_passwd.zip"),
        ('a"b?c#d%.zip', "a_b_c_d_.zip"),
        ("x" * 251 + ".zip", "x" * 251 + ".zip"),
        ("Größe", "Größe.zip"),
    ],
)
def test_safe_name__of_any_text(name: str, shown: str) -> None:
    """A name is one part of a path, without what URLs and file systems forbid."""
    assert safe_name(name) == shown


@pytest.mark.parametrize("name", ["", ".zip", "..", " ", "x" * 256])
def test_safe_name__of_no_name(name: str) -> None:
    """A name without a character that can stay, or one that is too long, is refused."""
    with pytest.raises(InvalidInput, match="file name"):
        safe_name(name)


@pytest.mark.slow
def test_export__of_a_selection(served: Serving, dataset: Dataset) -> None:
    """Media and clusters are exported by id."""
    ids = list(dataset.view.ids)
    cluster_id = dataset.explore(level=4).clusters[0].cluster_id
    selection: list[dict[str, Any]] = [{"type": "media", "payload": {"media_ids": ids[:1]}}]
    body = {"media_selection": selection}
    path = url(dataset, "export_entities_async")
    started = served.eve.post(path, params={"export_format": "json", "file_name": "one"}, json=body, headers=OWN)
    archive = archive_of(served.eve, completed(served.eve, dataset, started))
    assert [item["media_id"] for item in json.loads(archive.read("metadata.json"))["media_items"]] == ids[:1]
    cluster = {"cluster_id": cluster_id, "cluster_filters": {"entity_type": "IMAGES"}, "exclude_media_ids": []}
    body = {"media_selection": [*selection, {"type": "cluster", "payload": cluster}]}
    assert completed(served.eve, dataset, served.eve.post(path, json=body, headers=OWN))["status"] == "COMPLETED"


def test_export__of_a_bad_selection(served: Serving, dataset: Dataset) -> None:
    """An unknown id, another dataset's, or a malformed element is refused at the start."""
    foreign = served.workspace.dataset("other").view.ids[0]

    def media(*ids: Any) -> list[Any]:
        return [{"type": "media", "payload": {"media_ids": list(ids)}}]

    path = url(dataset, "export_entities_async")
    refused: list[Any] = [
        [],
        media(NOWHERE),
        media(foreign),
        media(7),
        media(*[NOWHERE] * 100_001),
        [{"type": "folder", "payload": {}}],
        [{"type": "cluster", "payload": {"cluster_id": NOWHERE}}],
        [{"type": "media"}],
        ["x"],
        {},
    ]
    for selection in refused:
        answer = served.eve.post(path, json={"media_selection": selection}, headers=OWN)
        assert answer.status_code == 422, (selection, answer.text)
    assert served.eve.post(path, json={}, headers=OWN).status_code == 422
    assert served.eve.post(path, headers=OWN).status_code == 422
    large = served.eve.post(path, content=b"x" * (8 * 2**20 + 1), headers={**OWN, "Content-Type": "application/json"})
    assert large.status_code == 413


@pytest.mark.slow
def test_exports__of_results(served: Serving, dataset: Dataset) -> None:
    """Results, media by id, a filter, or all of a dataset are exported with every option of their format."""
    path = url(dataset, "exports")
    ids = list(dataset.view.ids)
    cats = [{"labels": {"op": "is", "value": "cat"}}]
    sort = {"column": "image_filename", "descending": True}
    rid = served.eve.post(url(dataset, "results"), json={"vql": cats, "sort": sort}, headers=OWN).json()["rid"]
    bodies: list[tuple[dict[str, Any], int]] = [
        ({"on": {"rid": rid}}, 2),
        ({"on": {"ids": ids[:1]}}, 1),
        ({"vql": cats}, 2),
        ({}, 3),
    ]
    for body, count in bodies:
        record = completed(served.eve, dataset, served.eve.post(path, json=body, headers=OWN))
        assert record["entities_count"] == count
        metadata = json.loads(archive_of(served.eve, record).read("metadata.json"))
        assert len(metadata["media_items"]) == count
    options = {"export_format": "yolo", "include_images": True, "split": {"train": 0.5, "val": 0.5}}
    record = completed(served.eve, dataset, served.eve.post(path, json={**options, "on": {"rid": rid}}, headers=OWN))
    names = archive_of(served.eve, record).namelist()
    assert sum(name.startswith("images/train/") for name in names) == 1
    assert sum(name.startswith("images/val/") for name in names) == 1


def test_exports__with_what_cannot_be_used(served: Serving, dataset: Dataset) -> None:
    """Two selections at once, options that do not suit the format, and results that are gone are refused at once."""
    path = url(dataset, "exports")
    bodies: tuple[dict[str, Any], ...] = (
        {"on": {}},
        {"on": {"rid": "x", "ids": ["y"]}},
        {"on": {"ids": [NOWHERE]}, "vql": []},
        {"split": {"train": 0.5}, "export_format": "csv"},
        {"split": {"train": 2}, "export_format": "coco"},
        {"confidences": True},
        {"file_name": "..."},
        {"vql": [{"labels": {"op": "like", "value": "a"}}]},
    )
    for body in bodies:
        assert served.eve.post(path, json=body, headers=OWN).status_code == 422, body
    gone = served.eve.post(path, json={"on": {"rid": "x"}}, headers=OWN)
    assert gone.status_code == 410
    assert served.vic.post(path, json={}, headers=OWN).status_code == 403


def test_exports__are_listed(served: Serving, dataset: Dataset) -> None:
    """The list has the own exports, the newest first, with size, link and end of each; admins see those of all."""
    path = url(dataset, "exports")
    record = completed(served.eve, dataset, served.eve.post(path, json={"file_name": "listed"}, headers=OWN))
    (newest, *others) = served.eve.get(path).json()
    assert (newest["id"], newest["file_name"], newest["status"]) == (record["id"], "listed.zip", "COMPLETED")
    content = served.nobody.get(newest["download_uri"]).content
    assert newest["size_bytes"] == len(content)
    lasts = datetime.fromisoformat(newest["expires_at"]) - datetime.fromisoformat(newest["created_at"])
    assert lasts > timedelta(days=1)
    assert [each["created_at"] for each in others] == sorted((each["created_at"] for each in others), reverse=True)
    assert served.ann.get(path).json()[0]["id"] == record["id"]
    assert served.vic.get(path).json() == []
    assert served.eve.get(url(served.workspace.dataset("other"), "exports")).json() == []


def test_export__needs_the_right(served: Serving, dataset: Dataset) -> None:
    """A viewer may not export, a granted editor may; other pages may start nothing."""
    path = url(dataset, "export_context_async")
    refused = served.vic.get(path, params={"export_format": "json", "file_name": "a"}, headers=OWN)
    assert (refused.status_code, refused.json()["detail"]) == (403, "You do not have permission to export this dataset")
    assert served.vic.get(url(dataset, "export")).status_code == 403
    assert served.vic.post(url(dataset, "export_entities_async"), json={}, headers=OWN).status_code == 403
    assert served.nobody.get(path, params={"export_format": "json", "file_name": "a"}, headers=OWN).status_code == 401
    evil = {"Sec-Fetch-Site": "cross-site"}
    assert served.eve.get(path, params={"export_format": "json", "file_name": "a"}, headers=evil).status_code == 403
    without = served.eve.get(path, params={"file_name": "a"}, headers=OWN)
    assert (without.status_code, without.json()["detail"]) == (422, "Field 'export_format' is required")
    served.hub.datasets.share(OPERATOR, dataset.id, "vic", Role.EDITOR)
    assert served.vic.get(path, params={"export_format": "json", "file_name": "a"}, headers=OWN).status_code == 200
    served.hub.datasets.unshare(OPERATOR, dataset.id, "vic")


@pytest.mark.slow
def test_export__of_another_user(served: Serving, dataset: Dataset) -> None:
    """Only who started an export, and admins, see it; other ids are not found in the same words."""
    started = served.eve.get(
        url(dataset, "export_context_async"), params={"export_format": "json", "file_name": "a"}, headers=OWN
    )
    record = completed(served.eve, dataset, started)
    query = {"export_task_id": record["id"]}
    assert served.ann.get(url(dataset, "export_status"), params=query).status_code == 200
    other = served.workspace.dataset("other")
    for client, of, export_id in (
        (served.vic, dataset, record["id"]),
        (served.eve, other, record["id"]),
        (served.eve, dataset, NOWHERE),
        (served.eve, dataset, "x"),
    ):
        answer = client.get(url(of, "export_status"), params={"export_task_id": export_id})
        assert (answer.status_code, answer.json()["detail"]) == (404, "Export not found")
        file = client.get(f"/cdn/{of.id}/exports/{export_id}/a.zip")
        assert file.status_code in (403, 404)
    assert served.eve.get(url(dataset, "export_status")).status_code == 422
    plain = record["download_uri"].partition("?")[0]
    assert served.nobody.get(plain).status_code == 401
    assert served.eve.get(plain).status_code == 200


def test_export__that_the_library_made(served: Serving, dataset: Dataset, tmp_path: Path) -> None:
    """Exports of the command line are files of their user, and not shown."""
    task = dataset.export(tmp_path / "own.zip", wait=False)
    task.wait()
    answer = served.ann.get(url(dataset, "export_status"), params={"export_task_id": task.id})
    assert answer.status_code == 404


def test_export__while_the_dataset_cannot_be_read(served: Serving, dataset: Dataset) -> None:
    """A draft and a dataset that needs an index are refused with the status."""
    draft = served.workspace.create_draft("draft")
    for path in ("export_context_async?file_name=a&export_format=json", "export"):
        answer = served.eve.get(url(draft, path), headers=OWN)
        assert answer.status_code == 409
        assert answer.json()["detail"] == "Operation 'export' needs the dataset status READY; it is DRAFT"


def test_export__too_many(served: Serving, dataset: Dataset, tuning: Tuning) -> None:
    """Of the exports of a user, only so many wait at a time; others are not affected."""
    tuning.user_exports = 0
    path = url(dataset, "export_context_async")
    answer = served.eve.get(path, params={"export_format": "json", "file_name": "a"}, headers=OWN)
    assert (answer.status_code, answer.json()["code"]) == (429, "rate_limited")
    assert int(answer.headers["retry-after"]) > 0


def test_direct_export__is_the_json(served: Serving, dataset: Dataset, tuning: Tuning) -> None:
    """The answer is the metadata itself, and no file stays."""
    answer = served.eve.get(url(dataset, "export"), params={"export_format": "json"})
    assert answer.status_code == 200
    assert len(answer.json()["media_items"]) == 3
    assert str(served.workspace.path.parent) not in answer.text
    assert not list(served.hub.exports.folder.glob("direct-*"))
    assert served.eve.get(url(dataset, "export"), params={"export_format": "coco"}).status_code == 422
    tuning.direct_export_media = 2
    assert served.eve.get(url(dataset, "export")).status_code == 422
    tuning.direct_export_media = 3
    assert served.eve.get(url(dataset, "export")).status_code == 200


def test_sweep__deletes_what_expired(served: Serving, dataset: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    """After its days the file goes, and the export is not found; so do files that a killed process left."""
    started = served.eve.get(
        url(dataset, "export_context_async"), params={"export_format": "json", "file_name": "a"}, headers=OWN
    )
    record = completed(served.eve, dataset, started)
    path, _ = served.hub.exports.path(OPERATOR, dataset.id, record["id"])
    orphan = path.with_name("left.zip")
    orphan.write_bytes(b"PK")
    os.utime(orphan, (1, 1))
    served.hub.exports.sweep()
    assert path.exists()
    assert not orphan.exists()
    clock = hub_context(served.hub).clock
    later = clock() + timedelta(days=8)
    object.__setattr__(hub_context(served.hub), "clock", lambda: later)
    try:
        expired = served.local.get(url(dataset, "export_status"), params={"export_task_id": record["id"]})
        assert expired.status_code == 404
        served.hub.exports.sweep()
    finally:
        object.__setattr__(hub_context(served.hub), "clock", clock)
    assert not path.exists()
    assert served.local.get(record["download_uri"]).status_code == 404


@pytest.mark.slow
def test_sweep__deletes_files_of_deleted_datasets(served: Serving, tmp_path: Path) -> None:
    """The file of an export goes with its dataset."""
    gone = served.workspace.create_dataset("gone", fill(tmp_path / "gone", 2))
    started = served.eve.get(
        url(gone, "export_context_async"), params={"export_format": "json", "file_name": "a"}, headers=OWN
    )
    record = completed(served.eve, gone, started)
    path, _ = served.hub.exports.path(OPERATOR, gone.id, record["id"])
    served.workspace.delete_dataset(gone.id)
    served.hub.sweep()
    assert not path.exists()
