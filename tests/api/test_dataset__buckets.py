"""Images in buckets stay there: they are read, shown and exported from where they are, or the outage is said."""

import json
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from framedex import Dataset, InvalidInput, NotFound, Unavailable, Workspace
from framedex.encoders import register
from framedex.media import s3
from framedex.media.remote import INVALID_URI
from framedex.records import DatasetStatus, TaskStatus
from tests.buckets import Service, Wire
from tests.environment import Environment
from tests.gallery import Averages, Gate, embedded
from tests.growth import columns_of, ids_of, summary_of
from tests.image_files import encode, photo
from tests.inside import context_of, layout_of
from tests.tuning import Tuning

ROLE = "arn:aws:iam::123456789012:role/reader"
Opened = Callable[..., Dataset]


def png(seed: int) -> bytes:
    """Return the content of an image file."""
    return encode(photo(seed))


def added(dataset: Dataset) -> dict[str, Any]:
    """Return the paths, labels and errors of the media behind the first six."""
    rows = columns_of(dataset, ["path", "labels", "error"])
    return {name: values[6:] for name, values in rows.items()}


def check_unchanged(dataset: Dataset) -> None:
    """Check that a dataset is as it was made."""
    assert (dataset.count(), dataset.info.status_new) == (6, DatasetStatus.READY)


@pytest.fixture
def wire(service: Service) -> Iterator[Wire]:
    """A way to the service that can be cut."""
    opened = Wire(service)
    yield opened
    opened.stop()


@pytest.fixture
def far(service: Service, wire: Wire, tmp_path: Path, folder: Path) -> Iterator[Opened]:
    """Make a dataset of six images in a workspace that reaches the service by the wire."""
    register("averages", lambda _name: Averages())
    opened: list[Workspace] = []

    def make(**changes: Any) -> Dataset:
        settings = service.settings(s3_endpoint=wire.address, **changes)
        opened.append(Workspace(tmp_path / f"far-{len(opened)}", settings=settings))
        return opened[-1].create_dataset("far", folder, "averages")

    yield make
    for workspace in opened:
        workspace.close()


@pytest.mark.slow
@pytest.mark.parametrize("form", ["csv", "parquet", "list", "frame"])
def test_list__of_uris_on_this_machine(service: Service, tmp_path: Path, form: str) -> None:
    """A list of URIs, in a file or in memory, is a source of a new dataset, with its labels, tags and fields."""
    put(service, "listed", 2)
    uris = [f"s3://listed/f/{number:03}.png" for number in range(2)]
    frame = pd.DataFrame({"uri": uris, "label": ["cat", "dog"], "split": ["train", "val"], "score": [1.5, 2.5]})
    path = tmp_path / f"list.{form}"
    if form == "csv":
        frame.to_csv(path, sep=";", decimal=",", index=False)
    elif form == "parquet":
        frame.to_parquet(path)
    source: Any = {"list": uris, "frame": frame}.get(form, path)
    with Workspace(tmp_path / "ws", settings=service.settings()) as workspace:
        dataset = workspace.create_dataset("d", source, Averages())
        assert [
            f"{root.source}/{row['path']}" for root in dataset.sources() for row in dataset.view.rows(["path"])
        ] == uris
        assert dataset.skipped == {}
        if form != "list":
            assert columns_of(dataset, ["labels"])["labels"] == [["cat"], ["dog"]]
            assert [each.name for each in dataset.tags()] == ["train", "val"]
            assert [each.field_name for each in dataset.fields()] == ["score"]


def test_list__of_uris_and_paths(service: Service, tmp_path: Path) -> None:
    """A path in a list of URIs is left out, and named."""
    service.put("listed/x.jpg", encode(photo(1)))
    with Workspace(tmp_path / "ws", settings=service.settings()) as workspace:
        dataset = workspace.create_dataset("d", ["s3://listed/x.jpg", "a.jpg"], Averages())
        assert dataset.count() == 1
        (problem,) = dataset.problems
        assert problem.count == 1
        assert "'a.jpg'" in problem.examples[0]


def put(service: Service, bucket: str, count: int) -> None:
    """Write that many images to a folder of a bucket."""
    for number in range(count):
        service.put(f"{bucket}/f/{number:03}.png", png(200 + number))


@pytest.mark.slow
@pytest.mark.only_soak
def test_s3__a_folder(service: Service, far: Opened, tmp_path: Path) -> None:
    """Images in a bucket are added, shown and exported, and stay there."""
    put(service, "a-folder", 3)
    service.put("a-folder/f/image_annotations.csv", b"filename,label,caption\n001.png,dog,\n")
    service.put(
        "a-folder/f/object_annotations.csv", b"filename,col_x,row_y,width,height,label\n002.png,1,2,30,40,ear\n"
    )
    dataset = far()
    dataset.add_media(s3_uri="s3://a-folder/f")
    assert added(dataset)["path"] == ["000.png", "001.png", "002.png"]
    assert added(dataset)["labels"] == [None, ["dog"], None]
    assert dataset.objects.to_arrow(["label", "image_filename"]).to_pylist() == [
        {"label": "ear", "image_filename": "source-1/002.png"}
    ]
    ids = ids_of(dataset)
    np.testing.assert_array_equal(dataset.read(columns_of(dataset, ["media_id"])["media_id"][7]), photo(201))
    assert dataset.thumbnail(ids["001.png"])
    assert dataset.to_arrow(["file_path"])["file_path"].to_pylist()[6] == "s3://a-folder/f/000.png"
    when = columns_of(dataset, ["modified_at"])["modified_at"]
    assert all(value is not None for value in when)
    result = dataset.export(tmp_path / "out.zip", include_images=True)
    assert (result.images, result.missing_images) == (9, [])
    with zipfile.ZipFile(tmp_path / "out.zip") as archive:
        item = json.loads(archive.read("metadata.json"))["media_items"][8]
        assert archive.read(f"images/{item['file_name']}") == png(202)
    assert item["url"] == item["file_path"] == "s3://a-folder/f/002.png"
    assert not (layout_of(dataset).dataset(dataset.id) / "blobs").exists()


@pytest.mark.slow
def test_s3__again_and_deeper(service: Service, far: Opened) -> None:
    """Images are known again, by their folder, by a folder above and below, and by a manifest."""
    put(service, "again", 2)
    service.put("again/f/g/x.png", png(9))
    service.put("again/list.txt", b"f/000.png\nf/g/x.png\n")
    dataset = far()
    dataset.add_media("s3://again/f")
    for uri in ("s3://again/f/", "s3://again/f/g", "s3://again/list.txt", "s3://again/f/001.png"):
        dataset.add_media(s3_uri=uri)
        assert dataset.count() == 9, uri
    assert columns_of(dataset, ["root"])["root"] == [0] * 6 + [1] * 3


@pytest.mark.slow
@pytest.mark.only_soak
def test_s3__changed_objects(service: Service, far: Opened) -> None:
    """An object that was written again takes the place of the one before; others are not read again."""
    put(service, "changed", 3)
    dataset = far()
    dataset.add_media(s3_uri="s3://changed/f")
    before = ids_of(dataset)
    service.put("changed/f/001.png", encode(photo(400, width=80)))
    dataset.add_media(s3_uri="s3://changed/f")
    assert (dataset.count(), ids_of(dataset)) == (9, before)
    assert dataset.skipped == {"changed files, replaced": 1, "media that are there already": 2}
    assert dataset.read(columns_of(dataset, ["media_id"])["media_id"][8]).shape == (120, 80, 3)


@pytest.mark.slow
@pytest.mark.only_soak
def test_s3__uris_of_a_table(service: Service, far: Opened) -> None:
    """The URIs of a table that brings embeddings lead to their images, too."""
    put(service, "table", 1)
    table = embedded([[1, 0]]).set_column(0, "uri", [["s3://table/f/000.png"]])
    context = context_of(far())
    with Workspace(context.layout.root, settings=context.settings) as workspace:
        dataset = workspace.create_dataset("vectors", table)
        np.testing.assert_array_equal(dataset.read(ids_of(dataset)["s3://table/f/000.png"]), photo(200))


@pytest.mark.slow
@pytest.mark.only_soak
def test_s3__makes_a_dataset(service: Service, far: Opened) -> None:
    """A dataset can be made of a folder or a manifest in a bucket."""
    put(service, "makes", 2)
    service.put("makes/list.csv", b"path,label\ns3://makes/f/001.png,dog\n")
    context = context_of(far())
    with Workspace(context.layout.root, settings=context.settings) as workspace:
        dataset = workspace.create_dataset("made", "s3://makes/f", "averages")
        assert columns_of(dataset, ["path", "root"]) == {"path": ["000.png", "001.png"], "root": [0, 0]}
        np.testing.assert_array_equal(dataset.read(ids_of(dataset)["001.png"]), photo(201))
        listed = workspace.create_dataset("listed", "s3://makes/list.csv", "averages")
        assert columns_of(listed, ["path", "labels"]) == {"path": ["001.png"], "labels": [["dog"]]}
        with pytest.raises(InvalidInput, match=INVALID_URI):
            workspace.create_dataset("none", "s3://makes/none", "averages")
        assert "none" not in [record.display_name for record in workspace.datasets()]


@pytest.mark.slow
def test_s3__nothing_at_the_uri(service: Service, far: Opened) -> None:
    """Invalid URIs, and URIs without objects, raise the interface's message; nothing changes."""
    service.put("nothing-here/notes.txt", b"x")
    dataset = far()
    for uri in ("s3://nothing-here/none", "s3://nothing-here", "s3://no-bucket-here/f", "http://x/y", "", 5):
        with pytest.raises(InvalidInput) as raised:
            dataset.add_media(s3_uri=uri)  # type: ignore[arg-type]
        assert str(raised.value) == INVALID_URI == ("Invalid object-storage URI or no media files found at the URI")
    with service.closed(), pytest.raises(Unavailable, match="cannot list 's3://nothing-here'"):
        dataset.add_media(s3_uri="s3://nothing-here")
    check_unchanged(dataset)


@pytest.mark.slow
@pytest.mark.only_soak
def test_s3__broken_objects(service: Service, wire: Wire, far: Opened) -> None:
    """An object that cannot be read is a row with the reason, among others that can."""
    put(service, "broken-one", 3)
    service.put("broken-one/f/empty.jpg", b"")
    service.put("broken-one/list.txt", b"f/000.png\nf/001.png\nf/gone.png\nf/empty.jpg\nf/002.png\n")
    wire.cut = lambda method, path: method == "GET" and path.endswith("001.png")
    dataset = far()
    dataset.add_media(s3_uri="s3://broken-one/list.txt")
    first, cut, gone, empty, last = added(dataset)["error"]
    assert (first, empty, last) == (None, "the file is empty", None)
    assert cut == "cannot be read: the connection broke within the answer"
    assert gone == "cannot be read: there is no such object"
    assert dataset.issues("corrupted")["path"].to_pylist() == ["empty.jpg"]
    assert set(dataset.issues("unreadable")["path"].to_pylist()) == {"001.png", "gone.png"}
    with pytest.raises(NotFound, match=r"s3://broken-one/f/gone\.png.*no such object"):
        dataset.read(ids_of(dataset)["gone.png"])


@pytest.mark.slow
@pytest.mark.only_soak
def test_s3__when_nothing_can_be_read(service: Service, far: Opened) -> None:
    """Objects that can be listed and none of them read are no broken images: the task fails."""
    dataset = far(s3_anonymous=True)
    service.put("listed-only/a.png", png(1))
    service.put("listed-only/list.txt", b"a.png\n", public=True)
    with pytest.raises(
        Unavailable, match=r"no object could be read: 1 object failed, the last: 's3://listed-only/a\.png'"
    ):
        dataset.add_media(s3_uri="s3://listed-only/list.txt")
    check_unchanged(dataset)


@pytest.mark.slow
@pytest.mark.only_soak
def test_s3__cut_in_the_middle(service: Service, wire: Wire, far: Opened, tuning: Tuning) -> None:
    """If the connection breaks for good, the task fails, nothing is committed, and a retry works."""
    tuning.chunk_files = 4  # so that most are still to be read
    put(service, "cut-off", 70)
    dataset = far(s3_connections=1)
    gate = Gate()
    register("averages", lambda _name: gate)
    task = dataset.add_media(s3_uri="s3://cut-off/f", wait=False)
    assert gate.reached.wait(60)
    wire.cut_all()
    gate.opened.set()
    with pytest.raises(Unavailable, match=r"cannot read 's3://cut-off/f/\d+\.png': Connection was closed"):
        task.wait(60)
    assert task.status is TaskStatus.FAILED
    assert "Connection was closed" in (task.record.error_message or "")
    check_unchanged(dataset)
    wire.mend()
    task.retry()
    task.wait(60)
    assert dataset.count() == 76
    assert set(added(dataset)["error"]) == {None}


@pytest.mark.slow
@pytest.mark.only_soak
def test_s3__reading_is_concurrent_and_bounded(service: Service, wire: Wire, far: Opened) -> None:
    """Many small objects are read at a time, and no more than the settings say."""
    put(service, "small", 60)
    wire.together = 4
    dataset = far(s3_connections=4)
    dataset.add_media(s3_uri="s3://small/f")
    assert wire.most_at_a_time in (4, 5)  # the listing may go on beside them
    assert set(added(dataset)["error"]) == {None}


@pytest.mark.slow
def test_s3__export_of_a_service_that_is_gone(service: Service, wire: Wire, far: Opened, tmp_path: Path) -> None:
    """An outage fails an export; it does not make it one without images."""
    put(service, "export-gone", 3)
    dataset = far()
    dataset.add_media(s3_uri="s3://export-gone/f")
    wire.cut_all()
    with pytest.raises(Exception, match="Connection was closed"):
        dataset.export(tmp_path / "out.zip", include_images=True)
    assert not (tmp_path / "out.zip").exists()
    with pytest.raises(Unavailable):
        dataset.read(columns_of(dataset, ["media_id"])["media_id"][6])
    wire.mend()
    assert dataset.export(tmp_path / "out.zip", include_images=True).images == 9


@pytest.mark.slow
def test_s3__by_role(service: Service, wire: Wire, far: Opened, environment: Environment) -> None:
    """The role that media came with is assumed again when they are read."""
    environment["AWS_ENDPOINT_URL"] = wire.address  # where roles are assumed
    put(service, "by-role", 1)
    dataset = far()
    task = dataset.add_media(s3_uri="s3://by-role/f", assume_role=ROLE)
    assert summary_of(dataset)["roles"] == {"1": ROLE}
    assert wire.asked.count(("POST", "/")) == 1
    assert dataset.read(columns_of(dataset, ["media_id"])["media_id"][6]).shape == (120, 160, 3)
    dataset.add_media(s3_uri="s3://by-role/f", assume_role=ROLE + "2")
    assert summary_of(dataset)["roles"] == {"1": ROLE + "2"}
    assert wire.asked.count(("POST", "/")) == 2
    wire.required[ROLE] = "ours"
    with pytest.raises(Unavailable, match="AccessDenied"):
        dataset.add_media(s3_uri="s3://by-role/f", assume_role=ROLE, external_id="theirs")
    dataset.add_media(s3_uri="s3://by-role/f", assume_role=ROLE, external_id="ours")
    summary = summary_of(dataset)
    assert (summary["roles"], summary["external_ids"]) == ({"1": ROLE}, {"1": "ours"})
    s3._CLIENTS.renew()
    assert dataset.read(columns_of(dataset, ["media_id"])["media_id"][6]).shape == (120, 160, 3)
    assert wire.assumed[-1] == (ROLE, "ours")
    dataset.add_media(s3_uri="s3://by-role/f", assume_role=ROLE + "2")
    assert summary_of(dataset)["external_ids"] == {}
    assert task.status is TaskStatus.COMPLETED
