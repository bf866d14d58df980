"""The HTML of datasets, views and pages in notebooks, and the report."""

import base64
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from framedex import Conflict, InvalidInput, Workspace
from framedex.api.view.report import _lines
from tests.gallery import BROKEN, NAMES, Gallery, Gate, embedded, grouped
from tests.image_files import write
from tests.objects import scenes
from tests.render.test_html import Outline

SHOWN: dict[str, Callable[[Gallery, Path], str]] = {
    "dataset": lambda gallery, _folder: gallery.dataset._repr_html_(),
    "view": lambda gallery, _folder: gallery.dataset.where([])._repr_html_(),
    "page": lambda gallery, _folder: gallery.dataset.explore(level=1)._repr_html_(),
    "duplicates": lambda gallery, _folder: gallery.dataset.duplicates()._repr_html_(),
    "report": lambda gallery, folder: gallery.dataset.report(folder / "report.html").read_text("utf-8"),
}


@pytest.fixture(params=SHOWN)
def shown(request: pytest.FixtureRequest, gallery: Gallery, tmp_path: Path) -> str:
    """The HTML of the gallery, in each of the five forms."""
    return SHOWN[request.param](gallery, tmp_path)


def images_in(html: str) -> list[bytes]:
    return [base64.b64decode(data) for data in re.findall(r"data:image/jpeg;base64,([^'\"]+)", html)]


@pytest.mark.slow
@pytest.mark.only_soak
def test_shown__is_self_contained(shown: str, gallery: Gallery) -> None:
    """Nothing is fetched from elsewhere: no addresses, no paths, no scripts; each image is in the page."""
    outline = Outline(shown)
    sources = [attributes["src"] for tag, attributes in outline.tags if tag == "img"]
    assert sources
    assert all((source or "").startswith("data:image/jpeg;base64,") for source in sources)
    assert not [tag for tag, _ in outline.tags if tag in ("script", "link", "iframe")]
    links = [attributes["href"] or "" for tag, attributes in outline.tags if tag == "a"]
    assert all(link.startswith("#") for link in links)
    assert not re.search(r"https?:|file:|@import|url\(", shown)
    assert str(gallery.folder) not in shown


@pytest.mark.slow
@pytest.mark.only_soak
def test_shown__images_are_small(shown: str) -> None:
    """Each image is a JPEG of less than 30 KB."""
    assert all(data[:2] == b"\xff\xd8" and len(data) < 30_000 for data in images_in(shown))


@pytest.mark.slow
@pytest.mark.only_soak
def test_shown__images_of_noise_are_small(workspace: Workspace, tmp_path: Path) -> None:
    """Even images that cannot be compressed are less than 30 KB each."""
    noise = np.random.default_rng(1).integers(0, 256, (1000, 1000, 3), dtype=np.uint8)
    write(tmp_path / "p/noise.png", noise)
    dataset = workspace.create_dataset("noise", tmp_path / "p")
    for html in (dataset._repr_html_(), dataset.explore()._repr_html_(), dataset.report(tmp_path / "r").read_text()):
        assert 0 < max(map(len, images_in(html))) < 30_000


@pytest.mark.slow
@pytest.mark.parametrize("name", ["<script>alert(1)", "a'b\"c", "x & y", "<img src=x onerror=y>"])
def test_shown__names_are_text(workspace: Workspace, tmp_path: Path, name: str) -> None:
    """Names of datasets, files and labels are shown as text, whatever they hold."""
    (tmp_path / "p").mkdir()
    write(tmp_path / "p" / f"{name}.png", np.zeros((9, 9, 3), dtype=np.uint8))
    (tmp_path / "p" / "image_annotations.csv").write_text(
        'filename,label\n"{0}.png","{0}"\n'.format(name.replace('"', '""'))
    )
    dataset = workspace.create_dataset(name, tmp_path / "p")
    for html in (dataset._repr_html_(), dataset.explore()._repr_html_(), dataset.report(tmp_path / "r").read_text()):
        outline = Outline(html)
        assert {tag for tag, _ in outline.tags} & {"script"} == set()
        assert not [attributes for _, attributes in outline.tags if "onerror" in attributes]
        assert any(name in text for text in outline.texts)


def test_dataset__shows_numbers_and_images(gallery: Gallery) -> None:
    """A dataset shows its name, size, status, the issues found and its first images."""
    html = gallery.dataset._repr_html_()
    texts = Outline(html).texts
    assert "gallery" in texts
    assert f"{len(NAMES)} images · READY" in texts
    assert {"dark", "corrupted", "duplicates"} <= set(texts)
    absent = {each.issue_type for each in gallery.dataset.where([]).issue_summaries() if not each.count}
    assert absent
    assert not absent & set(texts)
    assert html.count("<figure") == 24


@pytest.mark.slow
def test_dataset__without_content(workspace: Workspace, folder: Path) -> None:
    """A dataset that is being made shows that."""
    gate = Gate()
    dataset = workspace.create_dataset("new", folder, gate, wait=False)
    assert dataset.task is not None
    assert "0 images · INDEXING" in dataset._repr_html_()
    with pytest.raises(Conflict, match="nothing to show yet; its status is INDEXING"):
        dataset.report(folder / "report.html")
    assert not (folder / "report.html").exists()
    gate.opened.set()
    dataset.task.wait(60)


@pytest.mark.slow
def test_page__shows_the_largest_clusters(workspace: Workspace) -> None:
    """A page shows its first twelve clusters, and says how many more there are; nothing breaks without files."""
    html = workspace.create_dataset("d", grouped([3] * 20)).explore()._repr_html_()
    assert html.count("<h3>3 images") == 12
    assert "and 8 more on this page" in html
    assert html.count("cannot be shown") == 36


@pytest.mark.slow
def test_report__has_all_parts(gallery: Gallery, tmp_path: Path) -> None:
    """The report has each issue with its worst images, the groups of duplicates and the clusters."""
    path = gallery.dataset.report(tmp_path / "report.html", level=2, extra="<p>by hand</p>")
    assert path == tmp_path / "report.html"
    html = path.read_text("utf-8")
    texts = Outline(html).texts
    for text in ("gallery", "Issues", "Near-duplicates", "Clusters at level 2", "by hand", "the file is empty"):
        assert text in texts
    summaries = gallery.dataset.where([]).issue_summaries()
    for summary in summaries:
        assert (f"{summary.issue_type}: {summary.count:,}" in texts) == (summary.count > 0)
        assert (f"{summary.issue_type}: {summary.meaning}" in texts) == (summary.count == 0)
    for group in gallery.dataset.duplicates():
        assert f"{len(group.media_ids)} images, similarity up to {group.similarity:.4f}" in texts
    assert texts.count("★ best to keep") == len(gallery.dataset.duplicates())
    assert len(images_in(html)) > 30
    assert html.count("cannot be shown") >= len(BROKEN)


@pytest.mark.slow
def test_report__contents(gallery: Gallery, tmp_path: Path) -> None:
    """The contents lead to each section; damaged files and copies come before dark images and those without colours."""
    outline = Outline(gallery.dataset.report(tmp_path / "report.html").read_text("utf-8"))
    anchors = {attributes["id"] for _, attributes in outline.tags if "id" in attributes}
    links = [(attributes["href"] or "").lstrip("#") for tag, attributes in outline.tags if tag == "a"]
    assert set(links) <= anchors
    gravest = [f"issue-{name}" for name in ("corrupted", "duplicates", "dark", "grayscale")]
    assert [link for link in links if link in gravest] == gravest
    assert links[-2:] == ["near-duplicates", "clusters"]


@pytest.mark.slow
@pytest.mark.only_soak
def test_report__boxes_on_images(workspace: Workspace, tmp_path: Path) -> None:
    """Images with objects are shown with their boxes, in the pixels of the image; the labels of boxes are text."""
    scenes(tmp_path / "images", 2)
    dataset = workspace.create_dataset("scenes", tmp_path / "images")
    outline = Outline(dataset.report(tmp_path / "report.html").read_text("utf-8"))
    drawn = [attributes for tag, attributes in outline.tags if tag == "rect"]
    first = [row["bbox"] for row in dataset.objects.rows(["bbox"])]
    assert [float(each["x"] or 0) for each in drawn] == [box[0] for box in first]
    assert [float(each["width"] or 0) for each in drawn] == [box[2] for box in first]
    item = dataset.view[0]
    assert [each["viewbox"] for tag, each in outline.tags if tag == "svg"] == [
        f"0 0 {item['width']} {item['height']}"
    ] * 2
    assert f"Objects: {len(first)}" in outline.texts


@pytest.mark.slow
def test_report__worst_first(gallery: Gallery, tmp_path: Path) -> None:
    """Images of an issue come in the order of the table, with their values."""
    texts = Outline(gallery.dataset.report(tmp_path / "report.html").read_text("utf-8")).texts
    rows = gallery.dataset.issues("grayscale").to_pylist()
    at = texts.index(f"grayscale: {len(rows)}")
    places = [texts.index(f"{row['value']:.3g} (confidence {row['confidence']:.2f})", at) for row in rows]
    assert places == sorted(places)
    assert texts[places[0] + 1] == "percentile 100.0"


def test_report__suggests_labels() -> None:
    """A label that is suggested instead of another is said below the image."""
    row = {"reason": None, "value": 0.9, "confidence": 0.8, "percentile": 99.0, "suggested_label": "cat"}
    assert list(_lines(row)) == ["0.9 (confidence 0.80)", "percentile 99.0", "suggested label: cat"]


def test_duplicates__the_best_comes_first_and_says_why(gallery: Gallery) -> None:
    """A group shows the member that is best to keep before the others, marked and with the reason."""
    groups = gallery.dataset.duplicates()
    texts = Outline(groups._repr_html_()).texts
    assert texts.count("★ best to keep") == len(groups)
    for group in groups:
        name = group.file_names[group.media_ids.index(group.keep)]
        at = texts.index(f"Keep {name}. {group.keep_reason} Confidence {group.confidence:.2f}.")
        assert texts[at + 1 : at + 3] == [name, "★ best to keep"]


def test_duplicates__shows_the_largest_groups(workspace: Workspace) -> None:
    """The first twelve groups are shown with at most eight members, and how many more there are."""
    dataset = workspace.create_dataset("d", grouped([10] * 14))
    html = dataset.duplicates()._repr_html_()
    assert html.count("<h3>10 images") == html.count("★ best to keep") == html.count("and 2 more<") == 12
    assert html.count("cannot be shown") == 12 * 8
    assert "and 2 more groups" in html
    assert "no duplicates found" in dataset.duplicates(exact=True)._repr_html_()


@pytest.mark.slow
def test_report__of_nothing_found(workspace: Workspace, tmp_path: Path) -> None:
    """A dataset without faults has a report that says so."""
    dataset = workspace.create_dataset("d", embedded([[1, 0], [0, 1]]))
    assert "none found" in dataset.report(tmp_path / "report.html").read_text()


@pytest.mark.slow
@pytest.mark.only_soak
@pytest.mark.parametrize("level", [-1, 5])
def test_report__unusable_level(gallery: Gallery, tmp_path: Path, level: int) -> None:
    """A level that does not exist is refused, and nothing is written."""
    with pytest.raises(InvalidInput, match="from 0 to 4"):
        gallery.dataset.report(tmp_path / "report.html", level=level)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_report__replaces_an_older_one(gallery: Gallery, tmp_path: Path) -> None:
    """A report takes the place of an older one, given as text or as a path."""
    (tmp_path / "report.html").write_text("old")
    assert gallery.dataset.report(str(tmp_path / "report.html")).read_text("utf-8").startswith("<!doctype html>")
    assert [entry.name for entry in tmp_path.iterdir()] == ["report.html"]
