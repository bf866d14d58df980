"""Cards of datasets: counts that agree with the library's, licences, and names that are no Markdown."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from framedex import Dataset, Workspace
from framedex.api.card import DatasetCard
from tests.gallery import opened_gallery
from tests.growth import THRESHOLDS, families, part
from tests.objects import scenes
from tests.videos import numbered, write_video


@pytest.fixture(scope="module")
def gallery(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dataset]:
    """A dataset of images with planted faults, and labels."""
    with opened_gallery(tmp_path_factory.mktemp("card")) as found:
        yield found


def section(card: str, title: str) -> dict[str, list[str]]:
    """Return the table of a section by its first column."""
    text = re.split(r"^## ", card, flags=re.MULTILINE)
    [found] = [each for each in text if each.startswith(f"{title}\n")]
    rows = [re.split(r"(?<!\\)\|", line)[1:-1] for line in found.splitlines() if line.startswith("|")]
    return {row[0].strip(): [cell.strip() for cell in row[1:]] for row in rows[2:]}


@pytest.mark.slow
@pytest.mark.only_soak
def test_card__has_the_counts_of_the_library(gallery: Dataset) -> None:
    """Each number of the card is that of the call which a user would compare it with."""
    card = gallery.card()
    assert isinstance(card, DatasetCard)
    assert "\n# pets\n" in card
    assert f"| Images | {gallery.count()} |" in card
    labels = section(card, "Labels")
    assert {name: int(row[0]) for name, row in labels.items()} == {
        each.name: each.count for each in gallery.view.labels()
    }
    issues = section(card, "Issues")
    assert {name.replace("\\", ""): int(row[0]) for name, row in issues.items()} == {
        each.issue_type: each.count for each in gallery.view.issue_summaries() if each.count
    }
    copies = section(card, "Copies")
    groups = gallery.duplicates()
    members = sum(len(each.media_ids) for each in groups)
    assert copies["near-duplicates"][:3] == [str(len(groups)), str(members), str(members - len(groups))]
    sizes = section(card, "Sizes")
    widths = [each for each in gallery.to_arrow(["width"])["width"].to_pylist() if each]
    assert (sizes["Width"][0], sizes["Width"][-1]) == (f"{min(widths):,}", f"{max(widths):,}")


def test_card__begins_with_metadata(gallery: Dataset) -> None:
    """The front matter is YAML that a repository reads; a notebook does not show it."""
    card = gallery.card()
    assert yaml.safe_load(card.split("---")[1]) == {"size_categories": ["n<1K"], "tags": ["image"]}
    assert card._repr_markdown_().lstrip().startswith("# pets")


@pytest.mark.slow
def test_card__licences(workspace: Workspace) -> None:
    """Licences are the values of a field of that name; one that all images have is in the metadata, too."""
    dataset = workspace.create_dataset("pets", part(families(6)), thresholds=THRESHOLDS)
    assert "Not known to Framedex" in dataset.card()
    ids = list(dataset.view.ids)
    dataset.add_field("License", "string", values=dict.fromkeys(ids[:4], "cc-by-4.0"))
    card = dataset.card()
    assert section(card, "Licence") == {"cc-by-4.0": ["4", "66.7%"], "unknown": ["2", "33.3%"]}
    assert "license" not in yaml.safe_load(card.split("---")[1])
    dataset.set_field("License", dict.fromkeys(ids[4:], "cc-by-4.0"))
    assert yaml.safe_load(dataset.card().split("---")[1])["license"] == "cc-by-4.0"
    dataset.set_field("License", dict.fromkeys(ids[4:], "Mine | yours: [x](http://x)"))
    card = dataset.card()
    assert "license" not in yaml.safe_load(card.split("---")[1])
    assert r"| Mine \| yours: \[x\](http://x) | 2 | 33.3% |" in card


def test_card__several_licences_of_an_image(workspace: Workspace) -> None:
    """A field with lists of licences counts each."""
    dataset = workspace.create_dataset("pets", part(families(3)), thresholds=THRESHOLDS)
    ids = list(dataset.view.ids)
    values = {ids[0]: ["mit", "cc0-1.0"], ids[1]: ["mit"]}
    dataset.add_field("licence", "string", is_multi=True, values=values)
    assert section(dataset.card(), "Licence") == {
        "mit": ["2", "66.7%"],
        "cc0-1.0": ["1", "33.3%"],
        "unknown": ["1", "33.3%"],
    }


@pytest.mark.slow
def test_card__names_are_text(workspace: Workspace) -> None:
    """Markdown and HTML in names, labels and the description are shown as they are, and end no table."""
    rows = part(families(3))
    labels = ["a|b", "<img src=x onerror=alert(1)>", "`code`\n# title"]
    dataset = workspace.create_dataset("pets", rows, thresholds=THRESHOLDS)
    for media_id, label in zip(dataset.view.ids, labels, strict=True):
        dataset.set_labels(media_id, [label])
    dataset.rename("# *x* _y_")
    card = dataset.card()
    assert "\n# \\# \\*x\\* \\_y\\_\n" in card
    assert set(section(card, "Labels")) == {r"a\|b", r"\<img src=x onerror=alert(1)\>", r"\`code\` # title"}


@pytest.mark.slow
def test_card__of_objects_and_videos(workspace: Workspace, tmp_path: Path) -> None:
    """Objects have their labels, and videos their frames."""
    things = scenes(tmp_path / "scenes", 3)
    dataset = workspace.create_dataset("scenes", tmp_path / "scenes")
    card = dataset.card()
    assert f"| Objects | {len(things)} |" in card
    assert sum(int(row[0]) for row in section(card, "Labels of objects").values()) == len(things)
    write_video(tmp_path / "films" / "a.webm", numbered(20))
    films = workspace.create_dataset("films", tmp_path / "films")
    card = films.card()
    assert "| Videos | 1 |" in card
    assert f"| Frames of videos | {films.count()} |" in card
    assert "| Images | 0 |" in card
    assert yaml.safe_load(card.split("---")[1])["tags"] == ["image", "video"]


@pytest.mark.slow
@pytest.mark.only_soak
def test_card__many_labels(workspace: Workspace) -> None:
    """Of many labels the most frequent are listed, and the others counted."""
    dataset = workspace.create_dataset("pets", part(families(60)), thresholds=THRESHOLDS)
    for number, media_id in enumerate(dataset.view.ids):
        dataset.set_labels(media_id, [f"label {number:02}"])
    card = dataset.card()
    assert len(section(card, "Labels")) == 50
    assert "10 further labels are rarer." in card
