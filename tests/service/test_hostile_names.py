"""Names of files, folders, labels and captions that attack: they stay text in answers, headers, archives and pages."""

import io
import sys
import zipfile
from collections.abc import Iterator
from email.message import Message
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

import pytest

from framedex import Dataset, vql
from framedex.web import AppPages
from tests.image_files import encode, photo
from tests.render.test_html import Outline
from tests.service.client import OWN
from tests.service.serving import Serving, serving

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the file system does not take such names")

SCRIPT = "<script>alert(1)<\u2215script>"
IMAGE = "<img src=x onerror=alert(1)>"
NAMES = [
    f"{IMAGE}.png",
    f"{SCRIPT}/a.png",
    'a"b; filename=evil.html.png',
    "x.png\r\nSet-Cookie: SESSION=evil\r\n\r\n<html>.png",
    "x\\..\\..\\evil.png",
    "C:\\evil.png",
    "x..%2f..%2fevil.png",
    "=cmd|' /C calc'!A0.png",
    "-rf.png",
    "~root.png",
    "$(reboot)`id`.png",
    "\u202egnp.exe.png",
    "' OR 1=1 --.png",
    "caf\u00e9\u0301.png",
]
RAW = b"raw\xff\xfe.png"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """A service whose dataset was crawled from a folder with such names."""
    folder = tmp_path_factory.mktemp("hostile")
    for seed, name in enumerate(NAMES):
        path = folder / "crawl" / f"{IMAGE} \n{seed}" / name
        path.parent.mkdir(parents=True)
        path.write_bytes(encode(photo(seed, width=40, height=30)))
    (folder / "crawl" / RAW.decode(errors="surrogateescape")).write_bytes(encode(photo(99, width=40, height=30)))
    with serving(folder) as running:
        dataset = running.workspace.create_dataset(IMAGE, folder / "crawl", "gist")
        dataset.set_labels({media_id: [IMAGE, SCRIPT] for media_id in dataset.view.media_ids()})
        dataset.set_captions(dict.fromkeys(dataset.view.media_ids(), SCRIPT))
        yield running


@pytest.fixture
def dataset(served: Serving) -> Dataset:
    """The dataset."""
    return served.workspace.dataset(IMAGE)


def files_of(served: Serving, dataset: Dataset) -> list[Any]:
    """Return the answers with the file of each media item."""
    answers = []
    for media_id in dataset.view.media_ids():
        details = served.ann.get(f"/api/v1/dataset/{dataset.id}/media/{media_id}").json()
        answers.append((details, served.ann.get(details["media_uri"])))
    return answers


@pytest.mark.slow
def test_crawl__has_all_files(dataset: Dataset) -> None:
    """Each file is a media item, and none was looked for elsewhere."""
    assert dataset.count() == len(NAMES) + 1
    assert not any(dataset.to_arrow(["is_corrupted_issue"])["is_corrupted_issue"].to_pylist())


@pytest.mark.slow
def test_answers__are_json_and_images(served: Serving, dataset: Dataset) -> None:
    """Answers with such names are JSON, no line of them becomes a header, and files are images under plain names."""
    for details, file in files_of(served, dataset):
        assert (file.status_code, file.headers["content-type"]) == (200, "image/png"), details
        assert file.headers["x-content-type-options"] == "nosniff"
        assert "set-cookie" not in file.headers
        header = Message()
        header["Content-Disposition"] = file.headers.get("content-disposition", "inline")
        name = header.get_filename() or ""
        assert name.isprintable(), name
        assert not set(name) & set("/\\:"), name
    for path in (f"/dataset/{dataset.id}", "/datasets", f"/explore/{dataset.id}", f"/dataset/{dataset.id}/stats"):
        answer = served.ann.get(f"/api/v1{path}")
        assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json"), path
        assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.slow
@pytest.mark.parametrize("file_format", ["json", "csv", "yolo"])
def test_exports__lie_below_their_folder(dataset: Dataset, tmp_path: Path, file_format: str) -> None:
    """Members of an archive lie below the folder where it is unpacked, on each system; no name steers a terminal."""
    dataset.export(tmp_path / "out.zip", file_format, include_images=True)
    with zipfile.ZipFile(io.BytesIO((tmp_path / "out.zip").read_bytes())) as archive:
        names = archive.namelist()
        archive.extractall(tmp_path / "out")
    assert len([name for name in names if name.startswith("images/")]) == len(NAMES) + 1
    for name in names:
        for kind in (PurePosixPath, PureWindowsPath):
            path = kind(name)
            assert not path.is_absolute(), name
            assert not path.drive, name
            assert ".." not in path.parts, name
        assert name.isprintable() or "\u202e" in name, name
    assert {path.name for path in tmp_path.iterdir()} == {"out", "out.zip"}


@pytest.mark.slow
def test_pages__have_no_element_of_data(served: Serving, dataset: Dataset, tmp_path: Path) -> None:
    """Reports and notebooks show such names as text: no element, attribute or address comes from data."""
    shown = [
        dataset._repr_html_(),
        dataset.where(vql.labels(IMAGE))._repr_html_(),
        dataset.explore()._repr_html_(),
        dataset.report(tmp_path / "report.html").read_text("utf-8"),
    ]
    for html in shown:
        outline = Outline(html)
        assert "script" not in {tag for tag, _ in outline.tags}
        attributes = [(name, value) for _, each in outline.tags for name, value in dict(each).items()]
        assert not [name for name, _ in attributes if name.startswith("on")]
        addresses = [value or "" for name, value in attributes if name in ("src", "href")]
        assert not [each for each in addresses if not each.startswith(("data:image/", "#"))]
    assert any(IMAGE in text for html in shown for text in Outline(html).texts)


@pytest.mark.skipif(not AppPages().exist, reason="the app was not built")
def test_app__has_nothing_of_the_address(served: Serving) -> None:
    """The page of the app, that of the log-in included, is the same whatever the address says; it holds no data."""
    page = served.nobody.get("/login").text
    for path in ("/d/%3Cscript%3Ealert(1)%3C%2Fscript%3E", f"/login?next={IMAGE}", f"/d/x?q={SCRIPT}&%22%3E%3Cb%3E"):
        answer = served.nobody.get(path, headers={"X-Forwarded-Prefix": IMAGE, **OWN})
        assert (answer.status_code, answer.text) == (200, page)
        assert "unsafe" not in answer.headers["content-security-policy"]
