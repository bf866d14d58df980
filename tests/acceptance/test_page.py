"""A person at the page, others beside it, and a server that is killed."""

import json
import math
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import cv2
import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Page, expect

from tests.acceptance.place import Place
from tests.browser.site import all_saved
from tests.image_files import ORIENTATION, photo, write
from tests.laws import trials
from tests.pauses import PATIENCE_S, wait_until

pytestmark = [pytest.mark.slow, pytest.mark.soak]
_ADDED = trials(400, 1500)
_PHOTOS = 60
_WIDTH = 200  # of the rectangles, in pixels
_CATS = [{"folder": {"op": "is", "value": "cats"}}]


def _photos(folder: Path, first: int, count: int) -> Path:
    """Write images, each another one, in two folders."""
    for number in range(first, first + count):
        write(folder / ("cats" if number % 2 else "dogs") / f"{number:03}.jpg", photo(number))
    return folder


def test_search_box__takes_letters_that_are_keys(place: Place) -> None:
    """Letters that are keys, and arrows, are text in the search box, and change nothing."""
    dataset = place.workspace.create_dataset("photos", _photos(place.folder / "photos", 0, _PHOTOS))
    place.serve()
    page = place.page("/d/photos/pictures")
    page.get_by_role("gridcell").first.wait_for()
    page.keyboard.press("/")
    page.keyboard.type("tx")
    for key in ("ArrowLeft", "ArrowRight", "ArrowDown"):
        page.keyboard.press(key)
    page.keyboard.type("lb?")
    expect(page.get_by_role("searchbox")).to_have_value("txlb?")
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert dataset.journal() == []


def test_boxes__are_where_things_are(place: Place) -> None:
    """Drawn boxes cover the bright rectangles in the pixels: upright, turned by EXIF, zoomed and moved."""
    names = boxes_of(place.folder / "things", 4)
    dataset = place.workspace.create_dataset("things", place.folder / "things")
    place.serve()
    page = place.page("/d/things/pictures")
    for name in names:
        page.goto(f"/d/things/m/{dataset.media_id(name)}")
        page.locator(".canvas img").first.wait_for()
        if name == names[0]:  # they stay shown from then on
            page.keyboard.press("b")
        expect(page.locator("svg.boxes rect")).to_have_count(1)
        for keys in ([], ["z", "Shift+ArrowRight"]):
            for key in keys:
                page.keyboard.press(key)
            wait_until(lambda: _distance(page) <= 3)  # a part of it is the width of the drawn line
    page.keyboard.press("]")
    expect(page.locator("svg.boxes rect.chosen")).to_have_count(1)
    expect(page.get_by_role("region", name="Boxes").get_by_role("listitem")).to_have_count(1)


def boxes_of(images: Path, count: int) -> list[str]:
    """Write wide and tall images with a bright rectangle each, half of them turned by EXIF; return their names."""
    images.mkdir(parents=True)
    lines, draw = ["filename,col_x,row_y,width,height,label"], np.random.default_rng(0)
    for number in range(count):
        size = (640, 480) if number < count // 2 else (420, 640)
        pixels = cv2.resize(draw.integers(0, 90, (6, 8, 3), np.uint8), size, interpolation=cv2.INTER_CUBIC)
        x, y = 40 + 30 * number, 50 + 30 * number
        pixels[y : y + 120, x : x + _WIDTH] = (255, 40, 40)
        is_turned = bool(number % 2)
        exif = Image.Exif()
        exif[ORIENTATION] = 6 if is_turned else 1  # 6: turned clockwise when it is shown
        stored = Image.fromarray(np.ascontiguousarray(np.rot90(pixels) if is_turned else pixels))
        stored.save(images / f"{number}.jpg", quality=95, subsampling=0, exif=exif)
        lines.append(f"{number}.jpg,{x},{y},{_WIDTH},120,thing")
    (images / "object_annotations.csv").write_text("\n".join(lines), encoding="utf-8")
    return [f"{number}.jpg" for number in range(count)]


def _distance(page: Page) -> float:
    """Return how far the drawn box is from the bright area on the screen, in pixels of the image."""
    drawn = page.locator("svg.boxes rect").first.bounding_box()
    canvas = page.locator(".stage").bounding_box()
    assert drawn is not None
    assert canvas is not None
    shot = cv2.imdecode(np.frombuffer(page.screenshot(), np.uint8), cv2.IMREAD_COLOR)
    assert shot is not None
    left, top = max(0, round(canvas["x"])), max(0, round(canvas["y"]))
    part = shot[top : round(canvas["y"] + canvas["height"]), left : round(canvas["x"] + canvas["width"])]
    blue, green, red = (part[..., band].astype(int) for band in range(3))
    rows, columns = np.nonzero((red > 200) & (green < 110) & (blue < 110))
    box = (drawn["x"], drawn["y"], drawn["x"] + drawn["width"], drawn["y"] + drawn["height"])
    edge = (canvas["x"], canvas["y"], canvas["x"] + canvas["width"], canvas["y"] + canvas["height"])
    clipped = [
        min(max(value, edge[place % 2]), edge[2 + place % 2]) for place, value in enumerate(box)
    ]  # what is outside of the canvas is not seen
    if not rows.size:
        return 0.0 if clipped[0] == clipped[2] or clipped[1] == clipped[3] else math.inf
    seen = (columns.min() + left, rows.min() + top, columns.max() + left + 1, rows.max() + top + 1)
    scale = drawn["width"] / _WIDTH
    return float(max(abs(a - b) for a, b in zip(seen, clipped, strict=True)) / scale)


def test_saved_view__follows_the_command_line(place: Place) -> None:
    """A saved view counts the images that a command adds, with a line, and its link shows the same elsewhere."""
    photos = _photos(place.folder / "photos", 0, _PHOTOS)
    place.workspace.create_dataset("photos", photos)
    place.serve()
    page = place.page("/d/photos/pictures")
    page.get_by_role("gridcell").first.wait_for()
    page.goto(f"/d/photos/pictures?{urlencode({'f': json.dumps(_CATS)})}")
    shown = page.locator(".count")
    expect(shown).to_have_text(f"{_PHOTOS // 2} of {_PHOTOS} images")
    page.get_by_role("button", name="Save this view").click()
    page.get_by_label("Name of the view").fill("cats")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Saved the view")).to_be_visible()
    page.goto("/d/photos/views")
    view = page.get_by_role("listitem").filter(has_text="cats")
    expect(view.locator("> .number")).to_contain_text(str(_PHOTOS // 2))
    for first in (_PHOTOS, _PHOTOS + 10):
        _photos(photos, first, 10)
        place.command("add", "photos", str(photos))
    expect(view.locator("> .number")).to_contain_text(str(_PHOTOS // 2 + 10))
    expect(view.locator("svg.sparkline")).to_be_visible()
    link = view.locator("a.view").get_attribute("href")
    other = place.page(str(link))
    expect(other.locator(".count")).to_have_text(f"{_PHOTOS // 2 + 10} of {_PHOTOS + 20} images")


def test_addition__in_a_terminal_is_seen(place: Place) -> None:
    """An addition by a command shows its progress, then that the index is partial; the page makes the index."""
    photos = _photos(place.folder / "photos", 0, _PHOTOS)
    dataset = place.workspace.create_dataset("photos", photos)
    more = _photos(place.folder / "more", 1000, _ADDED)
    place.serve()
    page = place.page("/d/photos/pictures")
    page.get_by_role("gridcell").first.wait_for()
    before = place.workspace.tasks().total
    adding = place.start("add", "photos", str(more))
    wait_until(lambda: place.workspace.tasks().total > before)
    expect(page.locator(".status-line progress")).to_be_visible()
    assert adding.wait(PATIENCE_S) == 0
    page.goto("/d/photos/cleanup")
    expect(page.get_by_text("Images came after the last index")).to_be_visible()
    remove = page.get_by_role("button", name="Remove", exact=True)
    expect(remove).to_have_attribute("aria-disabled", "true")
    page.get_by_role("button", name="Reindex").click()
    expect(page.get_by_text("Images came after the last index")).to_have_count(0)
    wait_until(lambda: dataset.info.status_new == "READY")


def test_server__that_is_killed_loses_no_edit(place: Place) -> None:
    """The page says that the server has stopped, refuses edits meanwhile, and goes on in its place with a new one."""
    dataset = place.workspace.create_dataset("photos", _photos(place.folder / "photos", 0, _PHOTOS))
    place.serve()
    port = urlsplit(place.url).port
    assert port is not None
    page = place.page("/d/photos/pictures", allowed=("ERR_", "503"))
    page.locator(".tile.shown img").first.wait_for()
    page.locator("[data-position='0']").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("x")
    all_saved(page)
    expect(page.get_by_text("Put 1 image into the basket")).to_be_visible()
    page.reload()  # so that it does not read the results of the edit any more when the server is killed
    page.locator(".tile.shown img").first.wait_for()
    page.locator("[data-position='0']").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    expect(page.locator("[data-position='2']")).to_be_focused()
    place.kill()
    expect(page.get_by_text("The server has stopped")).to_be_visible()
    page.keyboard.press("x")
    expect(page.get_by_text("The server does not answer: nothing was changed.")).to_be_visible()
    place.serve(str(port))
    expect(page.get_by_text("The server has stopped")).to_have_count(0)
    expect(page.get_by_text("The server answers again.")).to_be_visible()
    expect(page.locator("[data-position='2']")).to_have_attribute("tabindex", "0")
    assert dataset.basket.count() == 1
    page.keyboard.press("x")
    all_saved(page)
    expect(page.get_by_text("Put 1 image into the basket")).to_be_visible()
    assert dataset.basket.count() == 2
