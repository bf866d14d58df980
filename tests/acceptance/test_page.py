"""Checks of ``acceptance.py``: a person at the page, others beside it, and the server that stops."""

import http.client
import json
import math
import re
import signal
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import cv2
import numpy as np
from playwright.sync_api import Page, expect

from acceptance_site import Place, boxes_of, saved
from framedex import Workspace

_PHOTOS = 60
_CATS = [{"folder": {"op": "is", "value": "cats"}}]


def _photos(folder: Path, first: int, count: int) -> Path:
    """Write photographs of soft areas, each another one, in two folders."""
    for number in range(first, first + count):
        draw = np.random.default_rng(number)
        small = draw.integers(0, 256, (9, 12, 3), np.uint8)
        path = folder / ("cats" if number % 2 else "dogs") / f"{number:03}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        cv2.imwrite(str(path), cv2.resize(small, (640, 480), interpolation=cv2.INTER_CUBIC))
    return folder


def text_goes_nowhere_else(place: Place) -> str:
    """Type letters that are keys, and arrows, into the search box; look at images at full size and come back."""
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
    page.keyboard.press("Escape")
    page.locator("[data-position='0']").focus()
    page.keyboard.press("Enter")
    page.locator(".canvas img").first.wait_for()
    page.keyboard.press("z")
    for number in range(2, 7):
        page.keyboard.press("ArrowRight")
        expect(page.get_by_text(f"{number} of {_PHOTOS}", exact=True)).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("[data-position='5']")).to_be_focused()
    page.keyboard.press("ArrowRight")
    expect(page.locator("[data-position='6']")).to_be_focused()
    return "nothing but text happened; five images on, Escape, and the arrows go on from there"


def dropped_image_is_a_search(place: Place) -> str:
    """Drop a JPEG on the search box: the images are those of the library, in its order; and so for nonsense."""
    dataset = place.workspace.create_dataset("photos", _photos(place.folder / "photos", 0, _PHOTOS))
    place.serve()
    wanted = place.folder / "photos" / "cats" / "007.jpg"
    page = place.page("/d/photos/pictures")
    page.get_by_role("gridcell").first.wait_for()
    content = list(wanted.read_bytes())
    transfer = page.evaluate_handle(
        """(content) => {
            const transfer = new DataTransfer();
            transfer.items.add(new File([new Uint8Array(content)], 'a.jpg', {type: 'image/jpeg'}));
            return transfer;
        }""",
        content,
    )
    page.locator("search").dispatch_event("drop", {"dataTransfer": transfer})
    expect(page).to_have_url(re.compile("like="))
    expect(page.locator("[data-position='0']")).to_have_accessible_name(re.compile("007"))
    found = dataset.similar(wanted, 1000).to_arrow(["image_filename"])["image_filename"].to_pylist()
    for position, name in enumerate(found[:12]):
        expect(page.locator(f"[data-position='{position}']")).to_have_accessible_name(re.compile(re.escape(name)))
    page.goto(f"{place.url}/d/photos/pictures?q=zxqj")
    expect(page.get_by_text("Nothing here matches this search.")).to_be_visible()
    return f"{len(found)} images, the first twelve in the order of the library; nonsense finds nothing"


def boxes_are_where_things_are(place: Place) -> str:
    """Compare the drawn boxes with the bright rectangles in the pixels, upright, turned by EXIF, zoomed and moved."""
    rectangles = boxes_of(place.folder / "things", 4)
    dataset = place.workspace.create_dataset("things", place.folder / "things")
    place.serve()
    page = place.page("/d/things/pictures")
    worst = 0.0
    for name in rectangles:
        page.goto(f"{place.url}/d/things/m/{dataset.media_id(name)}")
        page.locator(".canvas img").first.wait_for()
        if name == next(iter(rectangles)):  # they stay shown from then on
            page.keyboard.press("b")
        expect(page.locator("svg.boxes rect")).to_have_count(1)
        for keys in ([], ["z", "Shift+ArrowRight"]):
            for key in keys:
                page.keyboard.press(key)
            page.wait_for_timeout(700)
            worst = max(worst, _distance(page))
    assert worst <= 3, worst  # a part of it is the width of the drawn line
    page.keyboard.press("]")
    expect(page.locator("svg.boxes rect.chosen")).to_have_count(1)
    expect(page.get_by_role("region", name="Boxes").get_by_role("listitem")).to_have_count(1)
    return f"edges of {len(rectangles)} boxes within {worst:.1f} pixels of the image of what is seen, both zooms"


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
    scale = drawn["width"] / 200  # the rectangles are 200 pixels wide
    return max(abs(a - b) for a, b in zip(seen, clipped, strict=True)) / scale


def saved_view_follows_the_command_line(place: Place) -> str:
    """Save a view, add images by a command: its count and its line grow, and its link shows the same elsewhere."""
    photos = _photos(place.folder / "photos", 0, _PHOTOS)
    place.workspace.create_dataset("photos", photos)
    place.serve()
    page = place.page("/d/photos/pictures")
    page.get_by_role("gridcell").first.wait_for()
    page.goto(f"{place.url}/d/photos/pictures?{urlencode({'f': json.dumps(_CATS)})}")
    shown = page.locator(".count")
    expect(shown).to_have_text(f"{_PHOTOS // 2} of {_PHOTOS} images")
    page.get_by_role("button", name="Save this view").click()
    page.get_by_label("Name of the view").fill("cats")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Saved the view")).to_be_visible()
    page.goto(f"{place.url}/d/photos/views")
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
    return f"{_PHOTOS // 2} → {_PHOTOS // 2 + 10} cats after two additions by the command, the link shows the same"


def additions_are_seen_and_lead_to_an_index(place: Place) -> str:
    """Start ``framedex add`` in a terminal: progress, PARTIAL INDEX, no clean-up, then an index from the page."""
    photos = _photos(place.folder / "photos", 0, _PHOTOS)
    dataset = place.workspace.create_dataset("photos", photos)
    more = _photos(place.folder / "more", 1000, 1500)
    place.serve()
    page = place.page("/d/photos/pictures")
    page.get_by_role("gridcell").first.wait_for()
    before = place.workspace.tasks().total
    began = time.perf_counter()
    adding = place.start("add", "photos", str(more))
    while place.workspace.tasks().total == before:
        time.sleep(0.02)
        assert time.perf_counter() - began < 60, "the command started no task"
    started = time.perf_counter()
    expect(page.locator(".status-line progress")).to_be_visible()
    seen = time.perf_counter() - started
    assert adding.wait(300) == 0
    page.goto(f"{place.url}/d/photos/cleanup")
    expect(page.get_by_text("Images came after the last index")).to_be_visible()
    apply = page.get_by_role("button", name="Apply")
    expect(apply).to_have_attribute("aria-disabled", "true")
    reason = apply.get_attribute("title")
    page.get_by_role("button", name="Reindex").click()
    expect(page.get_by_text("Images came after the last index")).to_have_count(0)
    for _ in range(600):
        if str(dataset.info.status_new) == "READY":
            break
        time.sleep(0.1)
    assert str(dataset.info.status_new) == "READY"
    assert seen <= 2, seen
    return f"progress after {seen:.1f} s; Apply: “{reason}”; READY again, {len(dataset.view):,} images"


def killed_server_loses_no_edit(place: Place) -> str:
    """Kill the server: a bar says so, no edit is lost silently, and the page goes on in its place."""
    dataset = place.workspace.create_dataset("photos", _photos(place.folder / "photos", 0, _PHOTOS))
    place.serve()
    port = urlsplit(place.url).port
    assert port is not None
    page = place.page("/d/photos/pictures", allowed=("ERR_", "503"))
    page.locator(".tile.shown img").first.wait_for()
    page.locator("[data-position='0']").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("x")
    saved(page)
    expect(page.get_by_text("Put 1 image into the basket")).to_be_visible()
    place.stop(signal.SIGKILL)
    began = time.perf_counter()
    expect(page.get_by_text("The server has stopped")).to_be_visible()
    told = time.perf_counter() - began
    page.keyboard.press("ArrowRight")
    page.keyboard.press("x")
    expect(page.get_by_text("The server does not answer: nothing was changed.")).to_be_visible()
    place.serve(port)
    expect(page.get_by_text("The server has stopped")).to_have_count(0)
    expect(page.locator("[data-position='2']")).to_have_attribute("tabindex", "0")
    assert dataset.basket.count() == 1
    page.keyboard.press("x")
    saved(page)
    expect(page.get_by_text("Put 1 image into the basket")).to_be_visible()
    assert dataset.basket.count() == 2
    assert told <= 5, told
    return f"said after {told:.1f} s; the edit without a server was refused, the next one kept"


def strangers_are_refused(place: Place) -> str:
    """Ask with another Host, post from another Origin, and ask without a session where log-ins are needed."""
    Workspace(place.workspace_path).close()
    place.serve()
    found = {
        "Host": _status(place, "GET", {"Host": "evil.example"}),
        "Origin": _status(place, "POST", {"Origin": "http://evil.example", "Content-Type": "application/json"}),
        "open": _status(place, "GET", {}),
    }
    place.stop()
    account = ("ada", "--admin", "--email", "ada@example.org", "--password-stdin")
    place.command("users", "create", *account, typed="correct horse battery staple\n")
    place.serve(DISABLE_AUTH="false")
    found["no session"] = _status(place, "GET", {})
    assert found == {"Host": 400, "Origin": 403, "open": 200, "no session": 401}, found
    return ", ".join(f"{name} {status}" for name, status in found.items())


def _status(place: Place, method: str, headers: dict[str, str]) -> int:
    parts = urlsplit(place.url)
    assert parts.hostname is not None
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=30)
    path = "/api/v1/tasks/none/abort" if method == "POST" else "/api/v1/datasets"
    connection.request(method, path, b"{}" if method == "POST" else None, headers)
    status = connection.getresponse().status
    connection.close()
    return status


CHECKS: dict[str, Callable[[Place], str]] = {
    "letters in the search box are text; full size leads back": text_goes_nowhere_else,
    "a dropped image is a search": dropped_image_is_a_search,
    "boxes are where things are": boxes_are_where_things_are,
    "a saved view follows the command line": saved_view_follows_the_command_line,
    "an addition in a terminal is seen, and leads to an index": additions_are_seen_and_lead_to_an_index,
    "a killed server loses no edit": killed_server_loses_no_edit,
    "strangers are refused": strangers_are_refused,
}
