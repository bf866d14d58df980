"""The grid of images in a browser: keys, selection, edits with undo, filters, searches."""

import re
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.sync_api import Page, expect

from framedex import Workspace, vql
from framedex.hub import Hub
from framedex.service.settings import ServiceSettings
from tests.browser.site import Site, first_image
from tests.gallery import ANIMALS, SETTINGS, make_gallery
from tests.meanings import Meanings
from tests.service.live import live_service

Open = Callable[..., Page]


@pytest.mark.slow
def test_grid__moves_with_keys(site: Site, open_page: Open) -> None:
    """Arrows move the focus by image and row, Home and End to the ends, and the page shows where it is."""
    page = open_page(site, "/d/pets/pictures")
    first = first_image(page)
    columns = int(page.get_by_role("grid").get_attribute("aria-colcount") or 0)
    page.keyboard.press("ArrowRight")
    expect(page.locator("[data-position='1']")).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(page.locator(f"[data-position='{1 + columns}']")).to_be_focused()
    page.keyboard.press("Control+End")
    last = len(site.dataset.view) - 1
    expect(page.locator(f"[data-position='{last}']")).to_be_focused()
    page.keyboard.press("ArrowRight")
    expect(page.locator(f"[data-position='{last}']")).to_be_focused()
    page.keyboard.press("Control+Home")
    expect(first).to_be_focused()


@pytest.mark.slow
def test_tags__are_given_and_undone(own_site: Site, open_page: Open) -> None:
    """Selected images get a tag by keys alone; Ctrl Z takes it away again, Ctrl Shift Z gives it back."""
    page = open_page(own_site, "/d/pets/pictures")
    ids = own_site.dataset.view.media_ids()
    first_image(page)
    page.keyboard.press("Space")
    page.keyboard.press("Shift+ArrowRight")
    expect(page.get_by_text("2 selected")).to_be_visible()
    page.keyboard.press("t")
    page.keyboard.type("keep")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Tagged 2 images with keep. Undo: Ctrl Z")).to_be_visible()
    assert own_site.dataset.where(vql.tags("keep")).media_ids() == ids[:2]
    page.keyboard.press("Control+z")
    expect(page.get_by_text("Undone: Tagged 2 images with keep")).to_be_visible()
    assert own_site.dataset.where(vql.tags("keep")).media_ids() == []
    page.keyboard.press("Control+Shift+z")
    expect(page.get_by_text("Done again: Tagged 2 images with keep")).to_be_visible()
    assert own_site.dataset.where(vql.tags("keep")).media_ids() == ids[:2]


@pytest.mark.slow
def test_labels__that_somebody_else_changed(own_site: Site, open_page: Open) -> None:
    """A label that was changed elsewhere meanwhile is not overwritten; the page says so and shows the new one."""
    page = open_page(own_site, "/d/pets/pictures", allowed=("409",))
    ids = own_site.dataset.view.media_ids()
    first_image(page)
    page.keyboard.press("l")
    own_site.dataset.set_labels({ids[0]: ["wolf"]})
    page.get_by_label("Labels, with commas between them").fill("dog")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Not changed, because somebody else changed it meanwhile")).to_be_visible()
    expect(page.get_by_role("gridcell").first).to_have_accessible_name(re.compile("wolf"))
    assert own_site.dataset.select(ids[:1]).to_arrow(["labels"])["labels"].to_pylist() == [["wolf"]]


@pytest.mark.slow
def test_filter__by_a_value(site: Site, open_page: Open) -> None:
    """A value that is chosen becomes a chip and the address; the grid has what the library selects."""
    page = open_page(site, "/d/pets/pictures")
    first_image(page)
    page.keyboard.press("f")
    page.get_by_label("Filter by").select_option("issues")
    page.get_by_role("button", name="Dark").click()
    expected = site.dataset.where(vql.issues("dark")).count()
    expect(page.locator(".count")).to_have_text(f"{expected} of {len(site.dataset.view)} images")
    page.get_by_role("button", name="Remove the filter “issue is dark”").click()
    expect(page.locator(".count")).to_have_text(f"{len(site.dataset.view)} images")


@pytest.mark.slow
def test_search__without_a_match(site: Site, open_page: Open) -> None:
    """A search for nonsense says that nothing matches."""
    page = open_page(site, "/d/pets/pictures")
    page.get_by_role("searchbox").fill("zxqj")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Nothing here matches this search.")).to_be_visible()


@pytest.mark.slow
def test_searches__have_the_order_of_the_library(site: Site, open_page: Open) -> None:
    """Words, an image and a part of an image find what the library finds, in its order."""
    dataset = site.dataset
    like = dataset.media_id("animals/05.jpg")
    searches = {
        "q=street": dataset.search("street", None),
        "q=%22number+03": dataset.search("number 03", None),  # a phrase that is not finished
        f"like={like}": dataset.similar(like, 1000),
        f"like={like}&region=20,10,80,60": dataset.similar(like, 1000, bounding_box=(20, 10, 80, 60)),
        "q=%22number+03%22&sort=file_size_bytes%3Adesc": dataset.search('"number 03"', None).sort_by(
            "file_size_bytes", descending=True
        ),
    }
    page = open_page(site, "/d/pets")
    for address, found in searches.items():
        rows = found.to_arrow(["image_filename", "caption"]).to_pylist()
        names = [row["caption"] or row["image_filename"] for row in rows]
        page.goto(f"/d/pets/pictures?{address}")
        expect(page.locator(".count")).to_have_text(f"{len(names)} of {len(dataset.view)} images")
        for position, name in enumerate(names[:12]):
            cell = page.locator(f"[data-position='{position}']")
            expect(cell).to_have_accessible_name(re.compile(f"^{re.escape(name)}"))


@pytest.mark.slow
def test_searches__by_meaning_and_with_a_dropped_image(tmp_path: Path, open_page: Open) -> None:
    """A sentence finds captions that mean the same, a dropped file images like it, in the order of the library."""
    make_gallery(tmp_path / "gallery")
    with (
        Workspace(tmp_path / "ws", settings=SETTINGS, text_encoder=Meanings()) as workspace,
        Hub(workspace) as hub,
    ):
        dataset = workspace.create_dataset("pets", tmp_path / "gallery")
        ids = dataset.view.media_ids()
        dataset.set_captions({ids[3]: "a red car", ids[5]: "a car in the street", ids[8]: "the blue sea"})
        with live_service(workspace, hub, ServiceSettings()) as (url, state):
            page = open_page(Site(url, workspace, dataset, tmp_path / "gallery", state), "/d/pets/pictures")
            for words in ("crimson automobile", "ocean"):
                found = dataset.search(words, None, by="meaning").to_arrow(["caption"])["caption"].to_pylist()
                page.goto(f"/d/pets/pictures?q={quote(words)}&by=meaning")
                _shows(page, found)
            dropped = tmp_path / "gallery" / ANIMALS[5]
            like = dataset.similar(dropped, 1000).to_arrow(["image_filename", "caption"]).to_pylist()
            transfer = page.evaluate_handle(_DROP, list(dropped.read_bytes()))
            page.locator("search").dispatch_event("drop", {"dataTransfer": transfer})
            expect(page).to_have_url(re.compile("like="))
            _shows(page, [row["caption"] or row["image_filename"] for row in like])
            first = page.locator("[data-position='0']")
            expect(first).to_have_accessible_name(re.compile("Copy: same file"))
            expect(first.locator(".mark.copy")).to_have_text("Copy: same file")
            page.close()  # before its service ends, which it asks again and again


_DROP = """(content) => {
    const transfer = new DataTransfer();
    transfer.items.add(new File([new Uint8Array(content)], "dropped.jpg", {type: "image/jpeg"}));
    return transfer;
}"""


def _shows(page: Page, names: list[str]) -> None:
    """Check the first images of the grid by their captions or names."""
    for position, name in enumerate(names[:6]):
        cell = page.locator(f"[data-position='{position}']")
        expect(cell).to_have_accessible_name(re.compile(f"^{re.escape(name)}"))


@pytest.mark.slow
def test_viewer__leads_back_to_its_place(site: Site, open_page: Open) -> None:
    """Back from the images after it, the focus is on the last one that was shown, and arrows go on from there."""
    page = open_page(site, "/d/pets/pictures")
    first_image(page)
    page.keyboard.press("Enter")
    place = page.get_by_text(re.compile(rf"^\d+ of {len(site.dataset.view)}$"))
    for number in (1, 2, 3, 4):
        expect(place).to_have_text(f"{number} of {len(site.dataset.view)}")
        page.keyboard.press("ArrowRight")
    expect(place).to_have_text(f"5 of {len(site.dataset.view)}")
    page.keyboard.press("Escape")
    expect(page.locator("[data-position='4']")).to_be_focused()
    page.keyboard.press("ArrowRight")
    expect(page.locator("[data-position='5']")).to_be_focused()


@pytest.mark.slow
def test_viewer__has_the_shape_of_the_image(site: Site, open_page: Open) -> None:
    """The area on which boxes are drawn has the shape of the image, also in a low window; Z shows it larger."""
    page = open_page(site, f"/d/pets/m/{site.dataset.media_id(ANIMALS[5])}")
    page.set_viewport_size({"width": 1280, "height": 420})
    canvas, stage = page.locator(".canvas"), page.locator(".stage").bounding_box()
    expect(page.locator(".canvas img")).to_have_count(1)
    fitted = canvas.bounding_box()
    assert fitted is not None
    assert stage is not None
    item = site.dataset.media_item(site.dataset.media_id(ANIMALS[5]))
    assert item.width is not None
    assert fitted["width"] / fitted["height"] == pytest.approx(item.width / (item.height or 1), rel=0.01)
    assert fitted["height"] <= stage["height"] + 1
    page.keyboard.press("z")
    enlarged = canvas.bounding_box()
    assert enlarged is not None
    assert enlarged["width"] == pytest.approx(2 * fitted["width"], rel=0.01)  # full size is smaller than the window
    page.keyboard.press("z")
    assert canvas.bounding_box() == fitted


@pytest.mark.slow
def test_viewer__of_an_image_that_is_not_in_the_list(site: Site, open_page: Open) -> None:
    """A link to an image that the filter leaves out shows it without a place, and logs no error."""
    outside = site.dataset.media_id("animals/05.jpg")
    inside = site.dataset.media_id("towns/05.png")
    parts = quote('[{"labels":{"op":"is","value":"town"}}]')
    page = open_page(site, f"/d/pets/m/{outside}?f={parts}")
    place = page.get_by_text(re.compile(r"^\d+ of \d+$"))
    with page.expect_response(lambda answer: "/position?" in answer.url) as answered:
        page.reload()
    assert answered.value.json() == {"position": None}
    expect(page.locator(".canvas img").first).to_be_visible()
    expect(place).to_have_count(0)
    page.keyboard.press("ArrowRight")  # no image is before or after it
    expect(page).to_have_url(re.compile(outside))
    page.goto(f"/d/pets/m/{inside}?f={parts}")
    expect(place).to_have_text("6 of 12")
    page.goto(f"/d/pets/pictures?f={parts}&at={outside}")
    expect(page.locator(".count")).to_have_text(re.compile("^12 of "))


@pytest.mark.slow
def test_scrubber__says_what_is_there(site: Site, open_page: Open) -> None:
    """The rail beside images that are sorted by size has their sizes, and leads to a place."""
    sizes = site.dataset.view.sort_by("file_size_bytes").to_arrow(["file_size_bytes"])["file_size_bytes"].to_pylist()
    page = open_page(site, "/d/pets/pictures?sort=file_size_bytes%3Aasc")
    first_cell = page.locator("[data-position='0']")
    expect(first_cell).to_have_accessible_name(re.compile("empty"))
    rail = page.locator(".scrubber")
    expect(rail.locator("span").first).to_have_text(str(sizes[0]))
    box = rail.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] - 1)
    expect(page.locator(f"[data-position='{len(sizes) - 1}']")).to_have_attribute("tabindex", "0")
