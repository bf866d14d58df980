"""The map: made on demand, looked at, coloured, and filtered by regions."""

import json
import re
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, Route, expect

from framedex import Workspace
from tests.browser.maps import COLOURED, colours, drawn, filter_of, lasso, placed, until
from tests.browser.pages import check_accessible
from tests.browser.site import Site
from tests.gallery import SETTINGS, fill
from tests.second_process import SecondProcess

Open = Callable[..., Page]
pytestmark = pytest.mark.slow
NO_GRAPHICS = """
const get = HTMLCanvasElement.prototype.getContext;
HTMLCanvasElement.prototype.getContext = function (kind, ...rest) {
    return kind === 'webgl2' ? null : get.call(this, kind, ...rest);
};
"""
EMPTY = (b"FDXMAP01", 0, 3, 0.0, 0.0, 1.0, 1.0)
"""The header of a map without points."""


def test_map__is_made_when_it_is_asked_for(own_site: Site, open_page: Open) -> None:
    """The first look at the map has it made; all media with an embedding are drawn, and the others are counted."""
    page = open_page(own_site, "/d/pets/map")
    canvas = page.locator(".map-canvas[data-drawn]")
    expect(canvas).to_be_visible()
    count = placed(own_site)
    drawn(page, count)
    expect(page.get_by_role("img", name=f"Map of {count} images")).to_be_visible()
    expect(page.get_by_text(f"{len(own_site.dataset.view) - count} images are not on the map")).to_be_visible()
    assert [task.task_type for task in own_site.workspace.tasks().tasks if task.task_type == "MAP"] == ["MAP"]
    page.goto("/d/pets/overview")


def test_lasso__is_a_filter(site: Site, open_page: Open) -> None:
    """A region that is drawn has the images of its polygon: in the grid, in the count and in the library."""
    count = placed(site)
    page = open_page(site, "/d/pets/map")
    drawn(page, count)
    lasso(page, [(0.1, 0.05), (0.5, 0.05), (0.5, 0.95), (0.1, 0.9)])
    chip = page.get_by_role("button", name="Remove the filter “On the map: region”")
    expect(chip).to_be_visible()
    [element] = filter_of(page)
    inside = site.dataset.where([element]).count()
    assert 0 < inside < count
    expect(page.locator(".count")).to_have_text(re.compile(f"^{inside} of "))
    columns = int(page.get_by_role("grid").get_attribute("aria-colcount") or 0)
    expect(page.get_by_role("grid", name="Images of the region")).to_have_attribute(
        "aria-rowcount", str(-(-inside // columns))
    )
    expect(page.locator(".map-region")).to_have_count(1)
    page.goto(f"/d/pets/pictures?{urlsplit(page.url).query}")
    expect(chip).to_be_visible()
    expect(page.locator(".count")).to_have_text(re.compile(f"^{inside} of "))


def test_region__with_other_filters(site: Site, open_page: Open) -> None:
    """A region and another filter hold together; Escape clears the region first, and a new one takes its place."""
    count = placed(site)
    page = open_page(site, "/d/pets/map?f=" + json.dumps([{"labels": {"op": "is", "value": "animal"}}]))
    drawn(page, count)
    lasso(page, [(0.1, 0.1), (0.9, 0.1), (0.9, 0.5), (0.1, 0.5)])
    region, labels = (page.get_by_role("button", name=f"Remove the filter “{each}”") for each in (
        "On the map: region", "label is animal",
    ))  # fmt: skip
    expect(region).to_be_visible()
    both = site.dataset.where(filter_of(page)).count()
    expect(page.locator(".count")).to_have_text(re.compile(f"^{both} of "))
    lasso(page, [(0.02, 0.01), (0.98, 0.01), (0.98, 0.99), (0.02, 0.99)])
    expect(page.locator(".count")).to_have_text("12 of 35 images")
    expect(region).to_have_count(1)
    page.locator(".map-canvas").focus()
    page.keyboard.press("Escape")
    expect(region).to_have_count(0)
    expect(labels).to_be_visible()


def test_region__that_encloses_nothing(site: Site, open_page: Open) -> None:
    """A click is no region: the page says so, and the filter stays; Escape ends the drawing."""
    page = open_page(site, "/d/pets/map")
    drawn(page, placed(site))
    lasso(page, [(0.5, 0.5)])
    expect(page.get_by_text("This region is too small")).to_be_visible()
    page.keyboard.press("o")
    expect(page.locator(".map-drawing")).to_have_count(1)
    page.keyboard.press("Escape")
    expect(page.locator(".map-drawing")).to_have_count(0)
    assert "f=" not in page.url


def test_filter__dims_the_other_points(site: Site, open_page: Open) -> None:
    """Points that do not pass the filter have the colour of what is left out; the others keep theirs."""
    page = open_page(site, "/d/pets/map?colour=none&level=0")
    canvas = drawn(page, placed(site))
    before = colours(page, canvas)
    page.goto("/d/pets/map?colour=none&level=0&f=" + json.dumps([{"labels": {"op": "is", "value": "town"}}]))
    canvas = drawn(page, placed(site))
    expect(page.locator(".count")).to_have_text("12 of 35 images")
    plain = max(before, key=lambda each: before[each])
    until(page, lambda: 0 < canvas.evaluate(COLOURED).get(plain, 0) < before[plain] * 0.6)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_colours__have_a_legend(site: Site, open_page: Open, theme: str) -> None:
    """Labels, clusters and measured values colour the points; the legend has the words, and filters by them."""
    page = open_page(site, "/d/pets/map", color_scheme=theme)
    canvas = drawn(page, placed(site))
    legend = page.locator(".map-legend")
    expect(legend.get_by_role("button", name="town, 12 images: filter by it")).to_be_visible()
    expect(legend.get_by_text("No value")).to_be_visible()
    until(page, lambda: len([each for each, pixels in canvas.evaluate(COLOURED).items() if pixels > 100]) >= 2)
    page.get_by_role("combobox", name="Colour").select_option("blur")
    expect(page).to_have_url(re.compile("colour=blur"))
    expect(legend.locator(".map-ramp-bar")).to_be_visible()
    page.get_by_role("combobox", name="Colour").select_option("cluster_4")
    expect(legend.get_by_role("button").first).to_have_accessible_name(re.compile(r"\d+ images?: filter by it$"))
    legend.get_by_role("button").first.click()
    expect(page.get_by_role("button", name="Remove the filter “cluster is")).to_be_visible()
    assert "cluster" in filter_of(page)[0]


def test_legend__filters_by_what_it_names(site: Site, open_page: Open) -> None:
    """A click on a label of the legend keeps its images, as many as it says; points of others are dimmed."""
    page = open_page(site, "/d/pets/map?level=0")
    canvas = drawn(page, placed(site))
    before = colours(page, canvas)
    page.get_by_role("button", name="town, 12 images: filter by it").click()
    expect(page.get_by_role("button", name="Remove the filter “label is town”")).to_be_visible()
    assert filter_of(page) == [{"labels": {"op": "is", "value": "town"}}]
    assert site.dataset.where(filter_of(page)).count() == 12
    expect(page.locator(".count")).to_have_text("12 of 35 images")
    until(page, lambda: bool(canvas.evaluate(COLOURED)) and canvas.evaluate(COLOURED) != before)
    legend = page.locator(".map-legend")
    summary = legend.locator("summary")
    summary.click()
    expect(legend.get_by_role("button").first).to_be_hidden()
    summary.click()
    expect(legend.get_by_role("button").first).to_be_visible()


def test_pinch__zooms(site: Site, open_page: Open) -> None:
    """Two fingers that move apart zoom in about the place between them, and out when they come together again."""
    page = open_page(site, "/d/pets/map", has_touch=True)
    box = drawn(page, placed(site)).bounding_box()
    assert box is not None
    middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    touch = page.context.new_cdp_session(page)
    view = page.locator(".map-view")

    def send(kind: str, *sides: float) -> None:
        points = [{"x": middle[0] + side, "y": middle[1], "id": number} for number, side in enumerate(sides)]
        touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    def pinch(first: int, last: int) -> None:
        send("touchStart", -first, first)
        for step in range(1, 11):
            reach = first + (last - first) * step / 10
            send("touchMove", -reach, reach)
        send("touchEnd")

    pinch(40, 160)
    expect(view).to_have_attribute("data-zoom", "2.00")
    for name in ("x", "y"):
        assert abs(float(view.get_attribute(f"data-{name}") or 0) - 0.5) < 0.05
    expect(page).to_have_url(re.compile("z=2.00"))
    pinch(160, 40)
    expect(view).to_have_attribute("data-zoom", "0.00")
    assert page.get_by_role("heading", level=1, name=re.compile("jpg")).count() == 0


def test_names__do_not_stop_gestures(site: Site, open_page: Open) -> None:
    """What begins on a name pans the map or draws a region, as beside it; a click on the name zooms to its cluster."""
    page = open_page(site, "/d/pets/map?z=1", reduced_motion="no-preference")
    drawn(page, placed(site))
    view, name = page.locator(".map-view"), page.locator(".map-name").first
    box = name.bounding_box()
    assert box is not None
    middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(*middle)
    page.mouse.down()
    page.mouse.move(middle[0] - 90, middle[1], steps=9)
    page.mouse.up()
    expect(view).not_to_have_attribute("data-x", "0.5000")
    expect(view).to_have_attribute("data-zoom", "1.00")
    name = page.locator(".map-name").first
    page.keyboard.press("o")
    box = name.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    expect(page.get_by_text("This region is too small")).to_be_visible()
    name.click()
    until(page, lambda: float(view.get_attribute("data-zoom") or 0) >= 2)


def test_colours__of_a_column_that_has_none(site: Site, open_page: Open) -> None:
    """A column in the address by which points cannot be coloured is said, and the points stay."""
    page = open_page(site, "/d/pets/map?colour=bboxes", allowed=("422",))
    drawn(page, placed(site))
    expect(page.get_by_text(re.compile("no columns .*bboxes"))).to_be_visible()


def test_names__follow_the_zoom(site: Site, open_page: Open) -> None:
    """Names are those of finer clusters the nearer the map is; Tab reaches them, and Enter zooms to one."""
    page = open_page(site, "/d/pets/map")
    drawn(page, placed(site))
    names = page.get_by_role("list", name="Clusters in view")
    expect(names).to_have_attribute("data-level", "4")
    first = names.get_by_role("button").first
    expect(first).to_have_accessible_name(re.compile("zoom in$"))
    page.locator(".map-canvas").focus()
    page.keyboard.press("Tab")
    assert names.evaluate("(list) => list.contains(document.activeElement)")
    page.keyboard.press("Enter")
    view = page.locator(".map-view")
    expect(view).not_to_have_attribute("data-zoom", "0.00")
    expect(names).not_to_have_attribute("data-level", "4")
    page.get_by_role("combobox", name="Names").select_option("2")
    expect(names).to_have_attribute("data-level", "2")


def test_names__do_not_cover_each_other(site: Site, open_page: Open) -> None:
    """No name lies over another one, at any zoom."""
    page = open_page(site, "/d/pets/map")
    drawn(page, placed(site))
    expect(page.locator(".map-name").first).to_be_visible()
    for zoom in (0, 1, 2.5):
        page.goto(f"/d/pets/map?z={zoom}&level=1")
        drawn(page, placed(site))
        page.wait_for_load_state("networkidle")
        overlap = page.evaluate("""() => {
            const boxes = [...document.querySelectorAll('.map-name')].map((each) => each.getBoundingClientRect());
            return boxes.flatMap((one, index) => boxes.slice(index + 1).filter((other) => one.left < other.right
                && other.left < one.right && one.top < other.bottom && other.top < one.bottom)).length;
        }""")
        assert overlap == 0, zoom


def test_pointer__looks_at_images(site: Site, open_page: Open) -> None:
    """The wheel zooms and a drag pans; an image below the pointer has its name, and a click opens it."""
    page = open_page(site, "/d/pets/map")
    canvas = drawn(page, placed(site))
    expect(page.locator(".map-tiles img").first).to_be_visible()
    view = page.locator(".map-view")
    canvas.hover(position={"x": 200, "y": 200})
    page.mouse.wheel(0, -480)
    expect(view).to_have_attribute("data-zoom", "2.00")
    expect(page).to_have_url(re.compile("z=2.00"))
    before = float(view.get_attribute("data-x") or 0)
    page.mouse.down()
    page.mouse.move(400, 300, steps=5)
    page.mouse.up()
    assert float(view.get_attribute("data-x") or 0) != before
    page.get_by_role("button", name="Show all").click()
    expect(view).to_have_attribute("data-zoom", "0.00")
    name = page.locator(".map-tip span").first

    def is_over_a_tile() -> bool:
        area = canvas.bounding_box()
        for tile in page.locator(".map-tiles img").all():  # those of the view before stay for a moment
            box = tile.bounding_box()
            if area and box and area["x"] < box["x"] < area["x"] + area["width"] - 48:
                middle = box["x"] + 24, box["y"] + 24
                if page.evaluate("([x, y]) => document.elementFromPoint(x, y).closest('button') !== null", middle):
                    continue  # the name of a group is over it
                page.mouse.move(*middle)
                return name.is_visible()
        return False

    until(page, is_over_a_tile)
    expect(name).to_have_text(re.compile(r"\.(jpg|png)$"))
    shown = name.inner_text()
    page.mouse.down()
    page.mouse.up()
    expect(page.get_by_role("heading", level=1, name=shown.rpartition("/")[2])).to_be_visible()
    page.keyboard.press("Escape")
    expect(page).to_have_url(re.compile("/d/pets/map"))
    drawn(page, placed(site))


def test_address__is_the_view(site: Site, open_page: Open) -> None:
    """An address shows the same part of the map, colours and names; one with other numbers shows what it can."""
    page = open_page(site, "/d/pets/map?x=0.25&y=0.75&z=1.5&colour=dark&level=3")
    drawn(page, placed(site))
    view = page.locator(".map-view")
    for name, value in (("x", "0.2500"), ("y", "0.7500"), ("zoom", "1.50")):
        expect(view).to_have_attribute(f"data-{name}", value)
    expect(page.get_by_role("combobox", name="Colour")).to_have_value("dark")
    expect(page.get_by_role("combobox", name="Names")).to_have_value("3")
    page.goto("/d/pets/map?x=NaN&y=9&z=1e9&colour=none&level=x")
    drawn(page, placed(site))
    expect(view).to_have_attribute("data-zoom", "8.00")


def test_map__that_is_made_with_progress(own_site: Site, open_page: Open) -> None:
    """While the map is made its progress is shown; when that is aborted the page says so, and offers to make it."""
    page = open_page(own_site, "/")
    task = {"task_id": "held", "task_type": "MAP", "status": "IN PROGRESS", "progress_percentage": 40}
    record = {"dataset_id": own_site.dataset.id, "dataset_name": "pets", "status_message": "stopped by tester"}
    ended = {"status": "ABORTED", "error_message": None}
    is_aborted = False

    def tasks(route: Route) -> None:
        route.fulfill(json={"tasks": [{**task, **record, **(ended if is_aborted else {})}], "total": 1})

    def made(route: Route) -> None:
        if route.request.method != "POST":
            route.continue_()
        else:
            route.fulfill(status=202, json={**task, **record})

    def abort(route: Route) -> None:
        nonlocal is_aborted
        is_aborted = True
        route.fulfill(json={**task, **record, **ended})

    page.route("**/api/v1/tasks?*", tasks)
    page.route("**/api/v1/tasks/held/abort", abort)
    page.route("**/api/v1/dataset/*/map", made)
    page.goto("/d/pets/map")
    stage = page.get_by_role("region", name="Map")
    expect(stage.get_by_text("The map is being made")).to_be_visible()
    expect(stage.get_by_role("progressbar")).to_have_attribute("value", "40")
    expect(page.get_by_role("gridcell").first).to_be_visible()
    stage.get_by_role("button", name="Abort").click()
    expect(stage.get_by_text("The map was not made: stopped by tester")).to_be_visible()
    page.unroute("**/api/v1/tasks?*")
    page.unroute("**/api/v1/dataset/*/map")
    stage.get_by_role("button", name="Make the map").click()
    expect(page.locator(".map-canvas[data-drawn]")).to_be_visible()


def test_map__that_cannot_be_read(site: Site, open_page: Open) -> None:
    """Points that do not come, or break off, are said; trying again shows them."""
    count = placed(site)
    page = open_page(site, "/", allowed=("500",))
    page.route("**/api/v1/dataset/*/map?*", lambda route: route.fulfill(status=500, json={"detail": "no disk"}))
    page.goto("/d/pets/map")
    expect(page.get_by_text("The map cannot be shown: no disk")).to_be_visible()
    page.unroute("**/api/v1/dataset/*/map?*")
    page.route("**/api/v1/dataset/*/map?*", lambda route: route.fulfill(body=b"FDXMAP01"))
    page.get_by_role("button", name="Try again").click()
    expect(page.get_by_text("the points of the map did not all come")).to_be_visible()
    page.unroute("**/api/v1/dataset/*/map?*")
    page.get_by_role("button", name="Try again").click()
    drawn(page, count)


def test_map__of_nothing(own_site: Site, open_page: Open) -> None:
    """Before an index, and where no media has an embedding, the page says why there is no map."""
    page = open_page(own_site, "/", allowed=("409",))
    answers: list[dict[str, Any]] = [
        {"status": 409, "json": {"detail": "no index yet"}},
        {"body": struct.pack("<8sII4d16x", *EMPTY)},
    ]
    page.route("**/api/v1/dataset/*/map?*", lambda route: route.fulfill(**answers.pop(0)))
    page.goto("/d/pets/map")
    expect(page.get_by_text("The map comes once the dataset is indexed.")).to_be_visible()
    expect(page.get_by_role("gridcell").first).to_be_visible()
    page.goto("/d/pets/map")
    expect(page.get_by_text("No image has an embedding")).to_be_visible()
    page.unroute("**/api/v1/dataset/*/map?*")


def test_colours__of_changes_basket_and_fields(own_site: Site, open_page: Open) -> None:
    """What happened since a snapshot, the basket and custom fields colour the points, too; the history leads there."""
    dataset = own_site.dataset
    ids = dataset.map()["media_id"].to_pylist()
    before = dataset.snapshot("start")
    dataset.set_labels(ids[:4], ["new"])
    dataset.tag(ids[4:6], "seen")
    dataset.basket.add(ids[:3])
    dataset.add_field("weather", "enum", enum_options=["rain", "sun"], values=dict.fromkeys(ids[:5], "rain"))
    page = open_page(own_site, f"/d/pets/history?a={before.snapshot_id}")
    page.get_by_role("link", name="Show these on the map").click()
    drawn(page, placed(own_site))
    legend = page.locator(".map-legend li")
    expect(legend.filter(has_text="Labels")).to_have_text("Labels4")
    expect(legend.filter(has_text="No change")).to_be_visible()
    colour = page.get_by_role("combobox", name="Colour")
    expect(colour.locator("option:checked")).to_have_text("Changes since start")
    colour.select_option("weather")
    expect(legend.filter(has_text="rain")).to_have_text("rain5")
    colour.select_option("in_basket")
    page.get_by_role("button", name="In the basket, 3 images: filter by it").click()
    expect(page.locator(".count")).to_have_text("3 of 35 images")


def test_splitter__by_keys(site: Site, open_page: Open) -> None:
    """The line between map and images moves by arrows and by the pointer, and stays where it was."""
    page = open_page(site, "/d/pets/map")
    canvas = drawn(page, placed(site))
    splitter = page.get_by_role("separator", name="Width of the images beside the map")
    splitter.focus()
    before = canvas.bounding_box()
    page.keyboard.press("ArrowLeft")
    expect(splitter).to_have_attribute("aria-valuenow", "37")
    narrower = canvas.bounding_box()
    assert before is not None
    assert narrower is not None
    assert narrower["width"] < before["width"]
    page.reload()
    expect(splitter).to_have_attribute("aria-valuenow", "37")
    drawn(page, placed(site))


def test_map__after_another_index(own_site: Site, open_page: Open, tmp_path: Path) -> None:
    """After an addition and after an index the map stays, and a new one is offered, which has the new images."""
    count = placed(own_site)
    page = open_page(own_site, "/d/pets/map", allowed=("404",))  # of the former map, which is replaced meanwhile
    drawn(page, count)
    own_site.dataset.add_media(fill(tmp_path / "more", 2))
    again = page.get_by_role("button", name="Make it again")
    expect(again).to_be_visible()
    drawn(page, count)
    again.click()
    drawn(page, count + 2)
    expect(page.get_by_text(re.compile("^3 images are not on the map"))).to_be_visible()
    expect(again).to_have_count(0)
    own_site.dataset.reindex()
    again.click()
    drawn(page, count + 2)
    expect(again).to_have_count(0)


def prepare() -> None:
    """Leave another process as it is."""


def make_map(workspace: Workspace) -> None:
    """Make the map of the dataset."""
    workspace.dataset("pets").map()


def test_map__that_somebody_else_makes(own_site: Site, open_page: Open, tmp_path: Path) -> None:
    """A map that another process makes is shown by an open page, which says so and no longer offers to make it."""
    count = placed(own_site)
    page = open_page(own_site, "/d/pets/map", allowed=("404",))  # of the former map, which is replaced meanwhile
    drawn(page, count)
    own_site.dataset.add_media(fill(tmp_path / "more", 2))
    again = page.get_by_role("button", name="Make it again")
    expect(again).to_be_visible()
    expect(page.get_by_text("The dataset has changed since this map was made.")).to_be_visible()
    other = SecondProcess(own_site.workspace.path, SETTINGS, prepare)
    try:
        other.run(make_map)
    finally:
        other.close()
    expect(page.get_by_text("The map was made again by somebody else")).to_be_visible()
    drawn(page, count + 2)
    expect(again).to_have_count(0)


def test_map__that_one_page_makes_for_another(own_site: Site, open_page: Open, tmp_path: Path) -> None:
    """Of two pages, the one that has the map made says nothing, and the other one that somebody else did it."""
    count = placed(own_site)
    own, other = (open_page(own_site, "/d/pets/map", allowed=("404",)) for _ in range(2))
    for page in (own, other):
        drawn(page, count)
    own_site.dataset.add_media(fill(tmp_path / "more", 2))
    expect(other.get_by_role("button", name="Make it again")).to_be_visible()
    own.get_by_role("button", name="Make it again").click()
    words = "The map was made again by somebody else"
    expect(other.get_by_text(words)).to_be_visible()
    for page in (own, other):
        drawn(page, count + 2)
    expect(own.get_by_text(words)).to_have_count(0)


def test_map__after_edits(own_site: Site, open_page: Open) -> None:
    """Labels that others give change the colours; images that are deleted are not on the next map."""
    count = placed(own_site)
    page = open_page(own_site, "/d/pets/map", allowed=("404",))
    drawn(page, count)
    town = page.get_by_role("button", name="town, 12 images: filter by it")
    expect(town).to_be_visible()
    towns = own_site.dataset.where([{"labels": {"op": "is", "value": "town"}}]).media_ids()
    own_site.dataset.set_labels(towns, ["city"])
    expect(page.get_by_role("button", name="city, 12 images: filter by it")).to_be_visible()
    own_site.dataset.delete_media(towns)
    expect(page.get_by_text("This dataset has changed: −12.")).to_be_visible()
    page.get_by_role("button", name="Make it again").click()
    drawn(page, count - 12)


def test_map__without_graphics(site: Site, open_page: Open) -> None:
    """Without WebGL2 the page says so and leads to the clusters; the grid and its filters work."""
    page = open_page(site, "/")
    page.add_init_script(NO_GRAPHICS)
    page.goto("/d/pets/map")
    expect(page.get_by_text("it has no WebGL2")).to_be_visible()
    expect(page.get_by_role("gridcell").first).to_be_visible()
    page.get_by_role("link", name="Go to the clusters").click()
    expect(page).to_have_url(re.compile("/d/pets/clusters"))


def test_graphics__that_are_lost(site: Site, open_page: Open) -> None:
    """A lost context is restored with its points and colours."""
    page = open_page(site, "/d/pets/map?colour=none", allowed=("CONTEXT_LOST",))
    canvas = drawn(page, placed(site))
    before = sum(colours(page, canvas).values())
    canvas.evaluate("""async (canvas) => {
        const lost = canvas.getContext('webgl2').getExtension('WEBGL_lose_context');
        const heard = new Promise((resolve) => canvas.addEventListener('webglcontextlost', resolve));
        lost.loseContext();
        await heard;
        await new Promise((resolve) => setTimeout(resolve, 50));
        lost.restoreContext();
    }""")
    until(page, lambda: sum(canvas.evaluate(COLOURED).values()) == before)


def test_names__that_are_hostile(own_site: Site, open_page: Open) -> None:
    """Labels with markup, and very long ones, are text in the names and in the legend."""
    dataset = own_site.dataset
    hostile = "<img src=x onerror=alert(1)>" + "x" * 100
    dataset.set_labels(dataset.where([{"labels": {"op": "is", "value": "town"}}]), [hostile])
    dataset.map()
    page = open_page(own_site, "/d/pets/map")
    page.on("dialog", lambda dialog: pytest.fail(dialog.message))
    drawn(page, placed(own_site))
    expect(page.locator(".map-legend-name", has_text="<img src=x")).to_be_visible()
    width = page.evaluate("document.scrollingElement.scrollWidth")
    assert width <= 1280
    assert page.locator(".map-view img[src$='/x']").count() == 0


def test_map__is_accessible(site: Site, open_page: Open) -> None:
    """Checks by axe find nothing, with points, names, images, a legend, a region and a box."""
    page = open_page(site, "/d/pets/map")
    drawn(page, placed(site))
    expect(page.get_by_role("list", name="Clusters in view").get_by_role("button").first).to_be_visible()
    expect(page.locator(".map-legend")).to_be_visible()
    lasso(page, [(0.1, 0.05), (0.9, 0.05), (0.9, 0.95), (0.1, 0.9)])
    expect(page.locator(".map-region")).to_have_count(1)
    page.keyboard.press("o")
    check_accessible(page)


def test_points__are_asked_for_before_the_code_that_draws_them_comes(site: Site, open_page: Open) -> None:
    """The page asks for the points once, beside its file with the drawing, and uses the answer."""
    count = placed(site)
    page = open_page(site, "/d/pets/overview")
    held, asked = list[Route](), list[str]()
    page.route("**/static/Stage-*.js", lambda route: held.append(route))  # noqa: PLW0108 - playwright marks it
    page.on("request", lambda request: asked.append(request.method + urlsplit(request.url).path.rpartition("/")[2]))
    page.get_by_role("link", name="Map", exact=True).click()
    until(page, lambda: bool(held) and "GETmap" in asked)
    for route in held:
        route.continue_()
    drawn(page, count)
    assert asked.count("GETmap") == 1
