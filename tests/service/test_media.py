"""Single media over HTTP: look-ups, details, and the bytes of images and videos."""

import io
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pytest
from PIL import Image

from framedex import Dataset
from framedex.service.settings import ServiceSettings
from tests.gallery import fill
from tests.image_files import encode, photo
from tests.objects import scenes
from tests.service.client import BASE, Client, client_of
from tests.service.serving import Serving, serving
from tests.videos import numbered, write_video

NOWHERE = "00000000-0000-0000-0000-0000000000aa"
FORMATS = {"a.jpg": "JPEG", "a.png": "PNG", "a.gif": "GIF", "a.webp": "WEBP", "a.bmp": "BMP", "a.tif": "TIFF"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of images of all formats, with objects, and a video."""
    folder = tmp_path_factory.mktemp("media")
    scenes(folder / "source", 2)
    exif = Image.Exif()
    exif[0x0112], exif[0x010F] = 6, "SECRET"
    for seed, (name, file_format) in enumerate(FORMATS.items()):
        options = {"exif": exif.tobytes()} if file_format in ("JPEG", "PNG", "WEBP", "TIFF") else {}
        (folder / "source" / name).write_bytes(encode(photo(seed, width=1400, height=900), file_format, **options))
    (folder / "source/copy of a.png").write_bytes((folder / "source/a.png").read_bytes())
    (folder / "source/values.png").write_bytes(encode(photo(9)[..., 0].astype("u2") * 16, "PNG"))
    write_video(folder / "source/clips/clip.mp4", numbered(20))
    (folder / "source/clips/broken.mp4").write_bytes((folder / "source/clips/clip.mp4").read_bytes()[:500])
    (folder / "source/broken.html.jpg").write_text("<script>alert(1)</script>")
    return folder


@pytest.fixture(scope="module")
def served(folder: Path) -> Iterator[Serving]:
    """A service with that folder as the dataset ``media``, and another one."""
    with serving(folder) as running:
        running.workspace.create_dataset("media", folder / "source")
        running.workspace.create_dataset("other", fill(folder / "other", 2))
        yield running


@pytest.fixture(scope="module")
def dataset(served: Serving) -> Dataset:
    """The dataset with all kinds of media."""
    return served.workspace.dataset("media")


def url(dataset: Dataset, name: str, rest: str = "") -> str:
    """Return the path of a media item, by its path within the source."""
    return f"/api/v1/dataset/{dataset.id}/media/{dataset.media_id(name)}{rest}"


@pytest.mark.slow
def test_media_id__of_a_path_within_the_source(served: Serving, dataset: Dataset) -> None:
    """Both paths of the interface give the id as plain text, for what explore gives as ``original_uri``."""
    page = served.vic.get(f"/api/v1/explore/{dataset.id}").json()
    previews = [preview for cluster in page["clusters"] for preview in cluster["previews"]]
    assert previews
    for preview in previews:
        for path in ("search_media_metadata/id", "media/id"):
            answer = served.vic.get(
                f"/api/v1/dataset/{dataset.id}/{path}", params={"original_media_uri": preview["original_uri"]}
            )
            assert (answer.status_code, answer.text) == (200, preview["media_id"])
            assert answer.headers["content-type"].startswith("text/plain")


@pytest.mark.parametrize(
    "path", ["gone.jpg", "", "../source/a.jpg", "{folder}/source/a.jpg", "file://{folder}/source/a.jpg"]
)
@pytest.mark.slow
def test_media_id__of_no_media(served: Serving, dataset: Dataset, folder: Path, path: str) -> None:
    """What is not there is not found; absolute paths of the server are never answered."""
    params = {"original_media_uri": path.format(folder=folder)}
    answer = served.vic.get(f"/api/v1/dataset/{dataset.id}/media/id", params=params)
    assert (answer.status_code, answer.json()["detail"]) == (404, "Media not found")


@pytest.mark.slow
def test_duplicates__of_one_media_item(served: Serving, dataset: Dataset) -> None:
    """The copies of an item are listed without itself; the limits of the threshold are those of the library."""
    own = url(dataset, "a.png", "/duplicates")
    assert dataset.media_id("copy of a.png") in served.vic.get(own).json()
    assert dataset.media_id("a.png") not in served.vic.get(own).json()
    assert served.vic.get(own, params={"threshold": "1"}).status_code == 200
    for threshold in ("0.95", "1.01", "many"):
        assert served.vic.get(own, params={"threshold": threshold}).status_code == 422
    missing = served.vic.get(f"/api/v1/dataset/{dataset.id}/media/{NOWHERE}/duplicates")
    assert (missing.status_code, missing.json()["detail"]) == (404, "Media not found")


def test_media_item__has_details_and_signed_uris(served: Serving, dataset: Dataset, folder: Path) -> None:
    """The details name no path of the server; their URIs work without a header, for a client that is nobody."""
    answer = served.vic.get(url(dataset, "a.jpg"))
    assert answer.status_code == 200
    item = answer.json()
    assert (item["type"], item["original_uri"], item["file_name"], item["video_uri"]) == (
        "IMAGE",
        "a.jpg",
        "a.jpg",
        None,
    )
    assert item["file_size"] == (folder / "source/a.jpg").stat().st_size
    assert len(item["cluster_ids"]) == 5
    assert str(folder) not in answer.text
    for name in ("media_uri", "media_thumb_uri", "image_uri"):
        assert item[name].startswith(f"{BASE}/api/v1/dataset/{dataset.id}/media/")
        fetched = served.nobody.get(item[name])
        assert (fetched.status_code, fetched.headers["content-type"]) == (200, "image/jpeg"), fetched.text
    alias = served.vic.get(f"/api/v1/image/{item['media_id']}", params={"dataset_id": dataset.id}).json()
    assert {**alias, "media_uri": ""} == {**item, "media_uri": ""}
    assert served.vic.get(f"/api/v1/image/{item['media_id']}").status_code == 404


def test_media_item__of_a_frame_and_an_object(served: Serving, dataset: Dataset) -> None:
    """A frame has a video; an object is a crop of its image, which it names."""
    frame = served.vic.get(url(dataset, "clips/clip.mp4")).json()
    assert (frame["type"], frame["original_uri"]) == ("VIDEO_FRAME", "clips/clip.mp4#t=0")
    video = served.nobody.get(frame["video_uri"])
    assert (video.status_code, video.headers["content-type"]) == (200, "video/mp4")
    still = Image.open(io.BytesIO(served.nobody.get(frame["media_uri"]).content))
    assert (still.format, still.size) == ("JPEG", (160, 120))
    object_id = dataset.objects.ids[0]
    item = served.vic.get(f"/api/v1/dataset/{dataset.id}/media/{object_id}").json()
    assert (item["type"], item["bounding_box"], item["original_uri"]) == ("OBJECT", [8, 8, 48, 48], "000.png")
    assert Image.open(io.BytesIO(served.nobody.get(item["media_uri"]).content)).size == (48, 48)
    assert Image.open(io.BytesIO(served.nobody.get(item["image_uri"]).content)).size == (320, 200)


def test_media_item__that_does_not_exist(served: Serving, dataset: Dataset) -> None:
    """The media of another dataset are not found, in the words for a random id."""
    foreign = served.workspace.dataset("other").view.ids[0]
    for media_id in (foreign, NOWHERE, "nothing"):
        for rest, sentence in (
            ("", "Media not found"),
            ("/duplicates", "Media not found"),
            ("/file", "Media file not found"),
            ("/thumbnail", "Media file not found"),
            ("/video", "Media file not found"),
        ):
            answer = served.vic.get(f"/api/v1/dataset/{dataset.id}/media/{media_id}{rest}")
            assert (answer.status_code, answer.json()["detail"]) == (404, sentence)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "file_format"), FORMATS.items())
def test_file__of_each_format(served: Serving, dataset: Dataset, folder: Path, name: str, file_format: str) -> None:
    """A format that browsers show is sent as it is; TIFF as a JPEG, unless the original is asked for."""
    content = (folder / "source" / name).read_bytes()
    answer = served.vic.get(url(dataset, name, "/file"))
    is_shown = file_format != "TIFF"
    assert answer.headers["content-type"] == (f"image/{file_format.lower()}" if is_shown else "image/jpeg")
    assert (answer.content == content) == is_shown
    original = served.vic.get(url(dataset, name, "/file?format=original"))
    assert (original.content, original.headers["content-type"]) == (content, f"image/{file_format.lower()}")
    jpeg = served.vic.get(url(dataset, name, "/file?format=jpeg"))
    assert jpeg.headers["content-type"] == "image/jpeg"
    assert Image.open(io.BytesIO(jpeg.content)).format == "JPEG"
    for each in (answer, original, jpeg):
        assert each.headers["x-content-type-options"] == "nosniff"
        assert each.headers["content-security-policy"] == "sandbox; default-src 'none'"
        assert each.headers["cache-control"] == "private, max-age=3600"
        assert each.headers["content-disposition"].startswith("inline; filename*=UTF-8''a.")
    assert served.vic.get(url(dataset, name, "/file?format=svg")).status_code == 422


@pytest.mark.slow
def test_file__of_values(served: Serving, dataset: Dataset) -> None:
    """Values that browsers would show otherwise than Framedex are sent as a JPEG, with their range in the details."""
    answer = served.vic.get(url(dataset, "values.png", "/file"))
    assert answer.headers["content-type"] == "image/jpeg"
    found = np.asarray(Image.open(io.BytesIO(answer.content)).convert("L"))
    assert np.abs(found.astype(float) - dataset.read(dataset.media_id("values.png"))[..., 0]).mean() < 3
    item = served.vic.get(url(dataset, "values.png")).json()
    assert 0 < item["shown_from"] < item["shown_to"] < 4096


@pytest.mark.parametrize(("name", "file_format"), FORMATS.items())
def test_file__without_metadata(served: Serving, dataset: Dataset, name: str, file_format: str) -> None:
    """Exif goes, except for the orientation; a format that cannot be stripped becomes a JPEG."""
    answer = served.vic.get(url(dataset, name, "/file?strip_metadata=true"))
    assert answer.status_code == 200
    assert b"SECRET" not in answer.content
    if file_format == "JPEG":
        assert Image.open(io.BytesIO(answer.content)).getexif()[0x0112] == 6
    original = served.vic.get(url(dataset, name, "/file?strip_metadata=true&format=original"))
    assert original.status_code == (415 if file_format == "TIFF" else 200)
    if file_format == "TIFF":
        assert original.json()["fault"] == "not_supported"


def test_file__validators(served: Serving, dataset: Dataset) -> None:
    """A client that has the bytes gets a 304; HEAD has the headers alone."""
    path = url(dataset, "a.png", "/file")
    whole = served.vic.get(path)
    etag = whole.headers["etag"]
    assert etag.startswith('"')
    for condition in (etag, f"W/{etag}", f'"x", {etag}', "*"):
        answer = served.vic.get(path, headers={"If-None-Match": condition})
        assert (answer.status_code, answer.content, answer.headers["etag"]) == (304, b"", etag)
    assert served.vic.get(path, headers={"If-None-Match": '"x"'}).status_code == 200
    head = served.vic.head(path)
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-length"] == str(len(whole.content))


@pytest.mark.slow
@pytest.mark.only_soak
@pytest.mark.parametrize(
    ("header", "first", "last"),
    [("bytes=0-9", 0, 9), ("bytes=10-", 10, None), ("bytes=-7", -7, None), ("bytes=5-99999999", 5, None)],
)
@pytest.mark.parametrize(("name", "rest"), [("a.png", "/file"), ("a.tif", "/file"), ("clips/clip.mp4", "/video")])
def test_file__ranges(
    served: Serving, dataset: Dataset, name: str, rest: str, header: str, first: int, last: int | None
) -> None:
    """Files and images that are made have ranges, as long as the client's version is the same."""
    path = url(dataset, name, rest)
    whole = served.vic.get(path)
    part = whole.content[first : None if last is None else last + 1]
    answer = served.vic.get(path, headers={"Range": header})
    assert (answer.status_code, answer.content) == (206, part)
    start = first if first >= 0 else len(whole.content) + first
    assert answer.headers["content-range"] == f"bytes {start}-{start + len(part) - 1}/{len(whole.content)}"
    same = served.vic.get(path, headers={"Range": header, "If-Range": whole.headers["etag"]})
    assert (same.status_code, same.content) == (206, part)
    changed = served.vic.get(path, headers={"Range": header, "If-Range": '"x"'})
    assert (changed.status_code, changed.content) == (200, whole.content)


@pytest.mark.parametrize(
    ("header", "status"),
    [
        ("bytes=99999999-", 416),
        ("bytes=-0", 416),
        ("bytes=9-5", 200),
        ("bytes=a-", 200),
        ("bytes=0-1,3-4", 200),
        ("bytes=-", 200),
        ("lines=1-2", 200),
    ],
)
def test_file__other_ranges(served: Serving, dataset: Dataset, header: str, status: int) -> None:
    """A range behind the end is a 416 with the size; what is no single range is answered by all."""
    answer = served.vic.get(url(dataset, "a.png", "/file"), headers={"Range": header})
    assert answer.status_code == status
    if status == 416:
        assert answer.headers["content-range"].startswith("bytes */")
        assert answer.json()["code"] == "range_not_satisfiable"


def test_file__of_broken_media(served: Serving, dataset: Dataset) -> None:
    """A file that is no image, or no video, is never sent; the answer has the kind of the reason."""
    for rest in ("/file", "/file?format=original", "/file?format=jpeg", "/thumbnail"):
        answer = served.vic.get(url(dataset, "broken.html.jpg", rest))
        assert (answer.status_code, answer.json()["detail"]) == (415, "The media file cannot be shown as an image")
        assert answer.json()["fault"] == "not_supported"
    for rest in ("/file", "/video"):
        answer = served.vic.get(url(dataset, "clips/broken.mp4", rest))
        assert (answer.status_code, answer.json()["fault"]) == (415, "damaged")
    assert served.vic.get(url(dataset, "a.png", "/video")).status_code == 404


@pytest.mark.slow
@pytest.mark.parametrize("size", [128, 256, 512, 1024])
def test_thumbnail__of_each_size(served: Serving, dataset: Dataset, size: int) -> None:
    """Thumbnails are JPEGs of the listed sizes, the same at the second time, also of objects."""
    path = url(dataset, "a.jpg", f"/thumbnail?size={size}")
    first, second = served.vic.get(path), served.vic.get(path)
    assert first.content == second.content
    assert first.headers["etag"] == second.headers["etag"]
    assert max(Image.open(io.BytesIO(first.content)).size) == size
    assert first.headers["cache-control"] == "private, max-age=3600"
    kept = served.vic.get(f"{path}&v=0123abcd")
    assert kept.headers["cache-control"] == "private, max-age=31536000, immutable"
    assert served.vic.get(path, headers={"If-None-Match": first.headers["etag"]}).status_code == 304


@pytest.mark.parametrize("query", ["size=127", "size=129", "size=2048", "size=big", "v=XYZ", "v=0123abcde"])
def test_thumbnail__of_other_sizes(served: Serving, dataset: Dataset, query: str) -> None:
    """Other sizes would fill the cache, so they are refused."""
    assert served.vic.get(url(dataset, "a.jpg", f"/thumbnail?{query}")).status_code == 422


def test_signature__of_another_path_or_time(served: Serving, dataset: Dataset) -> None:
    """A signature holds for its path and time; who has none must log in."""
    signed = urlsplit(served.vic.get(url(dataset, "a.jpg")).json()["media_uri"])
    assert served.nobody.get(f"{signed.path}?{signed.query}").status_code == 200
    other = url(dataset, "a.png", "/file")
    assert served.nobody.get(f"{other}?{signed.query}").status_code == 401
    late = signed.query.replace("exp=", "exp=9")
    assert served.nobody.get(f"{signed.path}?{late}").status_code == 401
    assert served.nobody.get(signed.path).status_code == 401
    # A signature is for files: it opens nothing else.
    assert served.nobody.get(f"{url(dataset, 'a.jpg')}?{signed.query}").status_code == 401
    assert int(dict(part.split("=") for part in signed.query.split("&"))["exp"]) <= time.time() + 24 * 3600


@pytest.mark.slow
def test_signature__of_a_user_without_the_right(served: Serving, folder: Path) -> None:
    """The right is checked when the URI is used."""
    secret = served.workspace.create_dataset("secret", fill(folder / "secret", 2))
    uri = served.vic.get(f"/api/v1/dataset/{secret.id}/media/{secret.view.ids[0]}").json()["media_uri"]
    assert served.nobody.get(uri).status_code == 200
    served.hide(secret)
    answer = served.nobody.get(uri)
    assert (answer.status_code, answer.json()["detail"]) == (404, "Dataset not found")


def test_file__that_a_link_leads_elsewhere(served: Serving, folder: Path) -> None:
    """A link that was put into the source later opens no other file of the server."""
    source = fill(folder / "linked", 2)
    dataset = served.workspace.create_dataset("linked", source)
    (folder / "outside.png").write_bytes(encode(photo(77)))
    (source / "000.png").unlink()
    (source / "000.png").symlink_to(folder / "outside.png")
    answer = served.vic.get(url(dataset, "000.png", "/file"))
    assert (answer.status_code, answer.json()["detail"]) == (404, "Media file not found")
    (source / "001.png").unlink()
    assert served.vic.get(url(dataset, "001.png", "/file")).status_code == 404


def test_uris__relative_or_below_a_public_url(served: Serving, dataset: Dataset) -> None:
    """URIs begin with the public URL; for old notebooks they can be relative."""
    path = url(dataset, "a.jpg")
    for settings, start in (
        (ServiceSettings(public_url="https://images.example.org/fx"), "https://images.example.org/fx/api/v1/"),
        (ServiceSettings(relative_uris=True), "/api/v1/"),
    ):
        with client_of(served.workspace, served.hub, settings) as client:
            assert client.get(path).json()["media_uri"].startswith(start)


def test_local__needs_no_signature(served: Serving, dataset: Dataset) -> None:
    """Without log-ins all files are open."""
    client: Client = served.local
    assert client.get(url(dataset, "a.jpg", "/file")).status_code == 200
