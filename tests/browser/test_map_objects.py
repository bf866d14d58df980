"""The map of objects: the choice of what is shown, points, colours, crops, regions, and what is refused."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from framedex import Workspace
from framedex.hub import Hub
from framedex.service.settings import ServiceSettings
from tests.browser.maps import drawn, filter_of, lasso
from tests.browser.pages import check_accessible
from tests.browser.site import Site
from tests.gallery import SETTINGS
from tests.objects import scenes
from tests.service.live import live_service

Open = Callable[..., Page]
pytestmark = pytest.mark.slow
IMAGES, THINGS = 12, 36


@pytest.fixture(scope="module")
def street(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A service of a dataset of images with three objects each."""
    home = tmp_path_factory.mktemp("street")
    scenes(home / "images", IMAGES)
    with Workspace(home / "ws", settings=SETTINGS) as workspace, Hub(workspace) as hub:
        dataset = workspace.create_dataset("street", home / "images")
        with live_service(workspace, hub, ServiceSettings()) as (url, state):
            yield Site(url, workspace, dataset, home / "images", state)


def test_objects__have_a_map_of_their_own(street: Site, open_page: Open) -> None:
    """The choice of objects has their map made; the address has it, so that a link and Back lead to the same map."""
    page = open_page(street, "/d/street/map")
    drawn(page, IMAGES)
    expect(page.locator(".count")).to_have_text(f"{IMAGES} images")
    show = page.get_by_role("combobox", name="Show")
    show.select_option("Objects")
    drawn(page, THINGS)
    expect(page).to_have_url(re.compile("entity=OBJECTS"))
    expect(page.get_by_role("img", name=f"Map of {THINGS} objects")).to_be_visible()
    expect(page.locator(".count")).to_have_text(f"{THINGS} objects")
    expect(page.get_by_role("grid", name="All objects")).to_be_visible()
    assert street.dataset.map("OBJECTS").num_rows == THINGS
    page.reload()
    drawn(page, THINGS)
    expect(show).to_have_value("OBJECTS")
    page.go_back()
    drawn(page, IMAGES)
    expect(show).to_have_value("IMAGES")


def test_objects__by_a_region(street: Site, open_page: Open) -> None:
    """A region keeps as many objects as the library's view of objects counts; images do not take it over."""
    street.dataset.map("OBJECTS")
    page = open_page(street, "/d/street/map?entity=OBJECTS")
    drawn(page, THINGS)
    lasso(page, [(0.02, 0.02), (0.55, 0.02), (0.55, 0.98), (0.02, 0.98)])
    expect(page.get_by_role("button", name="Remove the filter “On the map: region”")).to_be_visible()
    inside = street.dataset.objects.where(filter_of(page)).count()
    assert 0 < inside < THINGS
    expect(page.locator(".count")).to_have_text(f"{inside} of {THINGS} objects")
    expect(page.get_by_role("grid", name="Objects of the region")).to_be_visible()
    page.get_by_role("combobox", name="Show").select_option("Images")
    drawn(page, IMAGES)
    expect(page.locator(".count")).to_have_text(f"{IMAGES} images")
    assert "map_region" not in page.url


def test_objects__by_the_legend(street: Site, open_page: Open) -> None:
    """Labels of objects colour the points and filter them; their sources and measured values colour them, too."""
    street.dataset.map("OBJECTS")
    page = open_page(street, "/d/street/map?entity=OBJECTS")
    drawn(page, THINGS)
    dogs = street.dataset.objects.where([{"labels": {"op": "is", "value": "dog"}}]).count()
    page.get_by_role("button", name=f"dog, {dogs} objects: filter by it").click()
    expect(page.locator(".count")).to_have_text(f"{dogs} of {THINGS} objects")
    colour = page.get_by_role("combobox", name="Colour")
    names = colour.locator("option").all_inner_texts()
    assert {"Confidence", "Source", "Measured: Blurred"} <= set(names)
    assert "In the basket" not in names
    colour.select_option("Source")
    expect(page.locator(".map-legend li").filter(has_text="csv")).to_have_text(f"csv{THINGS}")
    colour.select_option("Measured: Blurred")
    expect(page.locator(".map-ramp-bar")).to_be_visible()
    colour.select_option("cluster_0")
    page.get_by_role("combobox", name="Show").select_option("Images")
    drawn(page, IMAGES)
    assert [next(iter(each)) for each in filter_of(page)] == ["labels"]


_FREE_MIDDLE = """(images) => images.map((each) => each.getBoundingClientRect())
    .map((box) => [box.x + box.width / 2, box.y + box.height / 2])
    .find((place) => document.elementFromPoint(...place).matches('.map-canvas'))"""
"""The middle of a tile that no name lies over."""


def test_objects__are_shown_as_crops(street: Site, open_page: Open) -> None:
    """Tiles on the map and in the pane are crops of objects; one opens, with its label, and leads back."""
    street.dataset.map("OBJECTS")
    page = open_page(street, "/d/street/map?entity=OBJECTS")
    drawn(page, THINGS)
    ids = set(street.dataset.objects.media_ids())
    expect(page.locator(".map-tiles img").first).to_be_visible()
    for tiles in (page.locator(".map-tiles img"), page.get_by_role("gridcell").locator("img")):
        expect(tiles.first).to_be_visible()
        sources = tiles.evaluate_all("(images) => images.map((each) => each.src.split('/media/')[1].split('/')[0])")
        assert set(sources) <= ids
    crop = page.get_by_role("gridcell").locator(".tile.shown img").first
    expect(crop).to_be_visible()
    assert crop.evaluate("(image) => image.naturalWidth === image.naturalHeight")  # of an image of 320 × 200
    page.mouse.move(*page.locator(".map-tiles img").evaluate_all(_FREE_MIDDLE))
    name = page.locator(".map-tip span").first
    expect(name).to_have_text(re.compile(r"\.png$"))
    page.mouse.down()
    page.mouse.up()
    expect(page.get_by_role("heading", level=1, name=re.compile(r"\d\.png$"))).to_be_visible()
    assert page.url.split("/m/")[1].split("?")[0] in ids
    page.keyboard.press("Escape")
    drawn(page, THINGS)


def test_objects__cannot_be_edited(street: Site, open_page: Open) -> None:
    """Tags, labels and the basket are of images: buttons and keys of a selection of objects say so."""
    street.dataset.map("OBJECTS")
    page = open_page(street, "/d/street/map?entity=OBJECTS")
    drawn(page, THINGS)
    cell = page.get_by_role("gridcell").first
    cell.focus()
    page.keyboard.press(" ")
    bar = page.get_by_role("toolbar", name="1 selected")
    tag = bar.get_by_role("button", name="Tag")
    expect(tag).to_have_attribute("aria-disabled", "true")
    tag.click(force=True)  # it can be reached, to say why
    words = page.get_by_text("objects cannot be edited")
    expect(words).to_be_visible()
    for key in ("x", "t", "l", "1"):
        page.reload()
        drawn(page, THINGS)
        expect(words).to_have_count(0)
        cell.focus()
        page.keyboard.press(key)
        expect(words).to_be_visible()
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert street.dataset.basket.count() == 0


def test_choice__only_where_there_are_objects(street: Site, open_page: Open, tmp_path: Path) -> None:
    """A dataset without objects has no choice; an address that asks for them says that there are none."""
    scenes(tmp_path / "plain", 4)
    (tmp_path / "plain" / "object_annotations.csv").unlink()
    street.workspace.create_dataset("plain", tmp_path / "plain")
    page = open_page(street, "/d/plain/map")
    drawn(page, 4)
    expect(page.get_by_role("combobox", name="Show")).to_have_count(0)
    page.goto("/d/plain/map?entity=OBJECTS")
    expect(page.get_by_text("No object has an embedding")).to_be_visible()
    page.get_by_role("combobox", name="Show").select_option("Images")
    drawn(page, 4)


def test_objects__are_accessible(street: Site, open_page: Open) -> None:
    """Checks by axe find nothing on the map of objects with a filter."""
    street.dataset.map("OBJECTS")
    filters = json.dumps([{"labels": {"op": "is", "value": "cat"}}])
    page = open_page(street, f"/d/street/map?entity=OBJECTS&f={filters}")
    drawn(page, THINGS)
    expect(page.locator(".map-legend")).to_be_visible()
    check_accessible(page)
