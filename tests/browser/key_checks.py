"""What each key of the app does on a live page: a check for each row of its table, by scope and id."""

import re
import time
from collections.abc import Callable
from dataclasses import dataclass

from playwright.sync_api import Locator, Page, expect

from tests.browser.site import all_saved

_NAMES = {"Ctrl": "Control"}
_PATIENCE_S = 15.0
_SEQUENCE_S = 1.5  # within which the app waits for the next key of a sequence
_TIMES = 3


@dataclass
class Keyboard:
    """A page, and the key that is checked on it.

    Attributes:
        page: the page.
        keys: the key as in the table, such as ``Ctrl+z`` or ``g o``.
        frame: the address of a frame of a video with a frame before and one after it, of two scenes.
        boxes: the address of an image with boxes.
    """

    page: Page
    keys: str
    frame: str
    boxes: str

    def press(self, keys: str | None = None) -> None:
        """Press the key, or another one; a sequence again if it took longer than the app waits for its next key."""
        parts = (self.keys if keys is None else keys).split(" ")
        for _ in range(_TIMES):
            start = time.monotonic()
            for part in parts:
                self.page.keyboard.press(
                    "+" if part == "+" else "+".join(_NAMES.get(each, each) for each in part.split("+"))
                )
            if len(parts) == 1 or time.monotonic() - start < _SEQUENCE_S:
                break

    def at(self, path: str, ready: Locator | None = None) -> None:
        """Go to a page, unless it is shown, and wait until it is ready."""
        if not self.page.url.endswith(path):
            self.page.goto(path)
        if ready is not None:
            expect(ready).to_be_visible()

    def dialog(self, name: str | re.Pattern[str]) -> None:
        """Press the key, which opens a dialog, and close that."""
        self.press()
        expect(self.page.get_by_role("dialog", name=name)).to_be_visible()
        self.press("Escape")
        expect(self.page.get_by_role("dialog")).to_have_count(0)

    def says(self, words: str) -> None:
        """Press the key, and wait for what the status bar says and for the service."""
        self.press()
        expect(self.page.get_by_text(re.compile(words)).first).to_be_visible()
        all_saved(self.page)

    def until(self, expression: str) -> None:
        """Wait until an expression is true; the page's own waiting would need what its policy forbids."""
        end = time.monotonic() + _PATIENCE_S
        while not self.page.evaluate(expression):
            assert time.monotonic() < end, f"{expression} did not become true"
            self.page.wait_for_timeout(50)

    def undo(self) -> None:
        """Undo the last step."""
        self.press("Ctrl+z")
        expect(self.page.get_by_text(re.compile("^Undone: "))).to_be_visible()

    def goes(self, pattern: str) -> None:
        """Press the key, which leads to another address."""
        self.press()
        expect(self.page).to_have_url(re.compile(pattern))


Check = Callable[[Keyboard], None]
CHECKS: dict[str, Check] = {}
"""The checks by scope and id."""


def checks(*names: str) -> Callable[[Check], Check]:
    """Register a check of rows by their scopes and ids."""

    def registered(check: Check) -> Check:
        for name in names:
            assert name not in CHECKS, name
            CHECKS[name] = check
        return check

    return registered


def _grid(keyboard: Keyboard, position: int = 0) -> int:
    """Show the grid with the focus on an image; return the number of its columns."""
    page = keyboard.page
    keyboard.at("/d/pets/pictures", page.get_by_role("gridcell").first)
    keyboard.press("Escape")
    columns = int(page.get_by_role("grid").get_attribute("aria-colcount") or 0)
    page.locator("[role=gridcell][tabindex='0']").focus()
    keyboard.press("Ctrl+Home")
    first = page.locator("[data-position='0']")
    expect(first).to_be_focused()
    expect(first).to_have_accessible_name(re.compile("animals"))
    for _ in range(position // columns):
        keyboard.press("ArrowDown")
    for _ in range(position % columns):
        keyboard.press("ArrowRight")
    expect(page.locator(f"[data-position='{position}']")).to_be_focused()
    return columns


def _moves(start: Callable[[int], int], end: Callable[[int, int], int]) -> Check:
    """Return a check that a key moves the focus; both functions get the number of columns, the second that of rows."""

    def check(keyboard: Keyboard) -> None:
        columns = _grid(keyboard)
        _grid(keyboard, start(columns))
        keyboard.press()
        last = int(re.sub(r"\D", "", keyboard.page.locator(".count").inner_text())) - 1
        expect(keyboard.page.locator(f"[data-position='{end(columns, last)}']")).to_be_focused()

    return check


CHECKS |= {
    "grid left": _moves(lambda _: 1, lambda _, __: 0),
    "grid right": _moves(lambda _: 0, lambda _, __: 1),
    "grid up": _moves(lambda columns: columns, lambda _, __: 0),
    "grid down": _moves(lambda _: 0, lambda columns, _: columns),
    "grid row.start": _moves(lambda columns: columns + 1, lambda columns, _: columns),
    "grid row.end": _moves(lambda _: 0, lambda columns, _: columns - 1),
    "grid start": _moves(lambda columns: columns + 1, lambda _, __: 0),
    "grid end": _moves(lambda _: 0, lambda _, last: last),
}


@checks("grid page.down", "grid page.up")
def _by_screens(keyboard: Keyboard) -> None:
    columns = _grid(keyboard)
    keyboard.press("PageDown")
    page = keyboard.page
    keyboard.until(f"Number(document.activeElement.dataset.position) >= {columns}")
    if keyboard.keys == "PageUp":
        keyboard.press()
        expect(page.locator("[data-position='0']")).to_be_focused()


@checks("grid select")
def _selects(keyboard: Keyboard) -> None:
    _grid(keyboard)
    for selected in ("true", "false"):
        keyboard.press()
        expect(keyboard.page.locator("[data-position='0']")).to_have_attribute("aria-selected", selected)


@checks("grid extend.left", "grid extend.right", "grid extend.up", "grid extend.down")
def _extends(keyboard: Keyboard) -> None:
    columns = _grid(keyboard)
    _grid(keyboard, columns + 1)
    keyboard.press()
    number = 2 if keyboard.keys in ("Shift+ArrowLeft", "Shift+ArrowRight") else columns + 1
    expect(keyboard.page.get_by_text(f"{number} selected", exact=True)).to_be_visible()


@checks("grid select.all")
def _selects_all(keyboard: Keyboard) -> None:
    _grid(keyboard)
    count = keyboard.page.locator(".count").inner_text().split()[0]
    keyboard.press()
    expect(keyboard.page.get_by_text(f"{count} selected", exact=True)).to_be_visible()


@checks("grid larger", "grid smaller")
def _sizes(keyboard: Keyboard) -> None:
    _grid(keyboard)
    size = keyboard.page.locator("input[type=range]")
    before = int(size.input_value())
    keyboard.press()
    by = -1 if keyboard.keys == "-" else 1
    expect(size).to_have_value(str(before + by))
    keyboard.press("-" if by == 1 else "+")
    expect(size).to_have_value(str(before))


@checks("grid jump", "grid tag", "grid label", "grid export")
def _dialogs_of_the_grid(keyboard: Keyboard) -> None:
    _grid(keyboard)
    names = {"Ctrl+g": "Go to an image", "t": "Tag 1 image", "l": "Label 1 image", "e": "Export "}
    keyboard.dialog(re.compile(names[keyboard.keys]))


@checks("grid tag.pinned")
def _pinned(keyboard: Keyboard) -> None:
    _grid(keyboard)
    keyboard.says(f"^Tagged 1 image with tag {keyboard.keys}")


@checks("grid basket")
def _basket(keyboard: Keyboard) -> None:
    _grid(keyboard)
    keyboard.says("^Put 1 image into the basket")
    keyboard.says("^Took 1 image out of the basket")


@checks("grid open")
def _opens(keyboard: Keyboard) -> None:
    _grid(keyboard)
    keyboard.goes("/d/pets/m/")


@checks("grid similar", "grid cluster", "grid copies")
def _leads(keyboard: Keyboard) -> None:
    _grid(keyboard)
    keyboard.goes({"s": r"pictures\?like=", "c": r"/clusters\?", "d": r"/duplicates\?of="}[keyboard.keys])


@checks("grid boxes")
def _boxes_of_the_grid(keyboard: Keyboard) -> None:
    keyboard.at("/d/film/pictures", keyboard.page.get_by_role("gridcell").first)
    keyboard.press()
    expect(keyboard.page.locator(".tile svg.boxes rect").first).to_be_attached()
    keyboard.press()
    expect(keyboard.page.locator(".tile svg.boxes rect")).to_have_count(0)


_PAGES = "overview pictures clusters map duplicates labels issues cleanup history views tasks home notifications"


@checks(*(f"global go.{each}" for each in _PAGES.split()))
def _pages(keyboard: Keyboard) -> None:
    keyboard.at("/d/pets/history", keyboard.page.get_by_role("heading", level=1))
    if keyboard.keys == "g h":
        keyboard.at("/d/pets", keyboard.page.get_by_role("heading", level=1, name="pets"))
    names = {
        "g o": "/d/pets$", "g p": "/pictures$", "g c": "/clusters", "g m": "/map$", "g d": "/duplicates$",
        "g l": "/labels$", "g i": "/issues$", "g x": "/cleanup$", "g h": "/history$", "g v": "/views$",
        "g t": "/tasks$", "g a": r":\d+/$", "g n": "/notifications$",
    }  # fmt: skip
    keyboard.goes(names[keyboard.keys])
    expect(keyboard.page.get_by_role("heading", level=1).first).to_be_attached()


@checks("global help", "global palette", "global filter", "global copy")
def _dialogs(keyboard: Keyboard) -> None:
    _grid(keyboard)
    names = {"?": "Keys", "Ctrl+k": "Commands", "f": "Filter", "y": "Copy what is shown"}
    keyboard.dialog(names[keyboard.keys])


@checks("global search")
def _searches(keyboard: Keyboard) -> None:
    _grid(keyboard)
    keyboard.press()
    expect(keyboard.page.get_by_role("searchbox")).to_be_focused()


@checks("global undo", "global redo")
def _undoes(keyboard: Keyboard) -> None:
    _grid(keyboard)
    Keyboard(keyboard.page, "x", keyboard.frame, keyboard.boxes).says("^Put 1 image into the basket")
    keyboard.press("Ctrl+z")
    expect(keyboard.page.get_by_text(re.compile("^Undone: Put 1 image"))).to_be_visible()
    if keyboard.keys == "Ctrl+Shift+z":
        keyboard.says("^Done again: Put 1 image")
        keyboard.undo()
    # The next key takes the image out again as long as it is shown as being in the basket.
    expect(keyboard.page.get_by_role("gridcell").first.get_by_text("basket")).to_have_count(0)


@checks("global inspector")
def _inspector(keyboard: Keyboard) -> None:
    _grid(keyboard)
    details = keyboard.page.get_by_role("complementary", name="Details")
    expect(details).to_be_visible()
    keyboard.press()
    expect(details).to_have_count(0)
    keyboard.press()
    expect(details).to_be_visible()


@checks("global region")
def _regions(keyboard: Keyboard) -> None:
    _grid(keyboard)
    keyboard.press()
    keyboard.until("!document.querySelector('main').contains(document.activeElement)")


@checks("global escape")
def _clears(keyboard: Keyboard) -> None:
    _grid(keyboard)
    keyboard.press("Ctrl+a")
    selected = keyboard.page.get_by_text(re.compile(r"^\d+ selected$"))
    expect(selected).to_be_visible()
    keyboard.press()
    expect(selected).to_have_count(0)


def _viewer(keyboard: Keyboard, path: str) -> None:
    keyboard.at(path, keyboard.page.locator(".canvas img").first)
    expect(keyboard.page.get_by_text(re.compile(r"^\d+ of \d+$"))).to_be_visible()


@checks("viewer previous", "viewer next")
def _neighbours(keyboard: Keyboard) -> None:
    _viewer(keyboard, keyboard.frame)
    position = keyboard.page.get_by_text(re.compile(r"^\d+ of \d+$"))
    number, _, rest = position.inner_text().partition(" ")
    by = 1 if keyboard.keys == "ArrowRight" else -1
    keyboard.press()
    expect(position).to_have_text(f"{int(number) + by} {rest}")


@checks("viewer zoom", "viewer zoom.in", "viewer zoom.out")
def _zooms(keyboard: Keyboard) -> None:
    _viewer(keyboard, keyboard.boxes)
    canvas = keyboard.page.locator(".canvas")
    if keyboard.keys == "-":
        keyboard.press("z")
    keyboard.press()
    scale = {"z": "2", "-": "1.6"}.get(keyboard.keys, "1.25")  # the image is smaller than the window
    expect(canvas).to_have_attribute("style", re.compile(rf"scale\({re.escape(scale)}\)"))
    keyboard.press("z")
    expect(canvas).to_have_attribute("style", re.compile(r"scale\(1\)"))


@checks("viewer pan.left", "viewer pan.right", "viewer pan.up", "viewer pan.down")
def _pans(keyboard: Keyboard) -> None:
    _viewer(keyboard, keyboard.boxes)
    keyboard.press("z")
    keyboard.press()
    moved = {"Left": "80px, 0px", "Right": "-80px, 0px", "Up": "0px, 80px", "Down": "0px, -80px"}
    place = moved[keyboard.keys.removeprefix("Shift+Arrow")]
    expect(keyboard.page.locator(".canvas")).to_have_attribute("style", re.compile(re.escape(f"translate({place})")))
    keyboard.press("z")


@checks("viewer boxes", "viewer box.next", "viewer box.previous")
def _boxes(keyboard: Keyboard) -> None:
    _viewer(keyboard, keyboard.boxes)
    expect(keyboard.page.get_by_role("region", name="Boxes")).to_be_visible()
    found = keyboard.page.locator("svg.boxes rect" if keyboard.keys == "b" else "svg.boxes rect.chosen")
    keyboard.press()
    expect(found.first).to_be_attached()
    keyboard.press("b")
    expect(found).to_have_count(0)


@checks("viewer draw")
def _draws(keyboard: Keyboard) -> None:
    _viewer(keyboard, keyboard.boxes)
    keyboard.press()
    drawn = keyboard.page.locator("svg.boxes rect.drawn")
    before = drawn.get_attribute("x")
    keyboard.press("ArrowRight")
    expect(drawn).not_to_have_attribute("x", str(before))
    keyboard.press("Escape")
    expect(drawn).to_have_count(0)


@checks("viewer frame.previous", "viewer frame.next", "viewer scene.previous", "viewer scene.next", "viewer play")
def _frames(keyboard: Keyboard) -> None:
    _viewer(keyboard, keyboard.frame)
    place = keyboard.page.get_by_role("region", name="Kept frames of the video").get_by_role("status")
    expect(place).to_be_visible()
    before = place.inner_text()
    keyboard.press()
    expect(place).not_to_have_text(before)


@checks("viewer tag", "viewer label", "viewer caption")
def _dialogs_of_an_image(keyboard: Keyboard) -> None:
    _viewer(keyboard, keyboard.boxes)
    keyboard.dialog(re.compile({"t": "Tag 1 image", "l": "Label 1 image", "w": "Caption"}[keyboard.keys]))


@checks("viewer basket")
def _basket_of_an_image(keyboard: Keyboard) -> None:
    _viewer(keyboard, keyboard.boxes)
    keyboard.says("^Put 1 image into the basket")
    keyboard.undo()


@checks("viewer similar", "viewer cluster", "viewer copies", "viewer close")
def _leads_from_an_image(keyboard: Keyboard) -> None:
    _viewer(keyboard, keyboard.boxes)
    names = {"s": r"pictures\?like=", "c": r"/clusters\?", "d": r"/duplicates\?of=", "Escape": "/pictures$"}
    keyboard.goes(names[keyboard.keys])


def _group(keyboard: Keyboard) -> Locator:
    """Show the duplicates; return their members."""
    members = keyboard.page.locator("button.member")
    keyboard.at("/d/pets/duplicates", members.first)
    return members


@checks("duplicates next", "duplicates previous")
def _groups(keyboard: Keyboard) -> None:
    _group(keyboard)
    keyboard.press("ArrowDown")
    expect(keyboard.page.get_by_text(re.compile("^Group 2 of"))).to_be_visible()
    keyboard.press("ArrowUp" if keyboard.keys == "ArrowDown" else None)
    expect(keyboard.page.get_by_text(re.compile("^Group 1 of"))).to_be_visible()


@checks("duplicates member.next", "duplicates member.previous")
def _members(keyboard: Keyboard) -> None:
    members = _group(keyboard)
    expect(members.nth(1)).to_be_visible()
    keyboard.press()
    at = 1 if keyboard.keys == "ArrowRight" else members.count() - 1
    expect(members.nth(at)).to_have_attribute("aria-pressed", "true")
    keyboard.press("ArrowLeft" if at == 1 else "ArrowRight")
    expect(members.first).to_have_attribute("aria-pressed", "true")


@checks("duplicates accept", "duplicates undo")
def _accepts(keyboard: Keyboard) -> None:
    _group(keyboard)
    place = keyboard.page.get_by_text(re.compile("^Group 1 of"))
    before = place.inner_text()
    keyboard.press("Enter")
    expect(keyboard.page.get_by_text(re.compile("^Put . images? into the basket"))).to_be_visible()
    keyboard.press("u")
    expect(keyboard.page.get_by_text(re.compile("^Undone: "))).to_be_visible()
    expect(place).to_have_text(before)


@checks("duplicates accept.all")
def _accepts_all(keyboard: Keyboard) -> None:
    _group(keyboard)
    keyboard.dialog("Put the copies of all groups into the basket")


@checks("duplicates keep")
def _keeps(keyboard: Keyboard) -> None:
    members = _group(keyboard)
    expect(members.nth(1)).to_be_visible()
    texts = [text.startswith("★") for text in members.locator("strong").all_inner_texts()]
    other = texts.index(False)
    for _ in range(other):
        keyboard.press("ArrowRight")
    expect(members.nth(other)).to_have_attribute("aria-pressed", "true")
    keyboard.press()
    expect(members.nth(other)).to_contain_text("★")
    keyboard.page.reload()


@checks("duplicates keep.all", "duplicates not.two")
def _are_none(keyboard: Keyboard) -> None:
    members = _group(keyboard)
    expect(members.nth(1)).to_be_visible()
    texts = [text.startswith("★") for text in members.locator("strong").all_inner_texts()]
    for _ in range(texts.index(False)):
        keyboard.press("ArrowRight")
    keyboard.says("^Kept . images: not duplicates")


@checks("duplicates flicker", "duplicates difference")
def _compares(keyboard: Keyboard) -> None:
    members = _group(keyboard)
    expect(members.nth(1)).to_be_visible()
    texts = [text.startswith("★") for text in members.locator("strong").all_inner_texts()]
    for _ in range(texts.index(False)):
        keyboard.press("ArrowRight")
    keyboard.press()
    figure = keyboard.page.locator("figure.flicker" if keyboard.keys == "v" else "figure.difference")
    expect(figure).to_be_visible()
    keyboard.press()
    expect(figure).to_have_count(0)
    keyboard.page.reload()


@checks("duplicates open", "issues open")
def _opens_a_member(keyboard: Keyboard) -> None:
    keyboard.at("/d/pets/issues/corrupted", keyboard.page.locator("button.member").first)
    keyboard.goes("/d/pets/m/")


def _label(keyboard: Keyboard) -> Locator:
    """Show the labels; return the place in their queue."""
    place = keyboard.page.get_by_text(re.compile(r"^\d+ of \d+$"))
    keyboard.at("/d/crowds/labels", place)
    expect(keyboard.page.get_by_role("button", name="Take the suggestion")).to_be_visible()
    return place


@checks("labels next", "labels previous")
def _labels(keyboard: Keyboard) -> None:
    place = _label(keyboard)
    keyboard.press("ArrowDown")
    expect(place).to_have_text(re.compile("^2 of"))
    keyboard.press("ArrowUp" if keyboard.keys == "ArrowDown" else None)
    expect(place).to_have_text(re.compile("^1 of"))


@checks("labels accept", "labels undo", "labels right", "labels ambiguous")
def _decides(keyboard: Keyboard) -> None:
    place = _label(keyboard)
    before = place.inner_text()
    keyboard.press("Enter" if keyboard.keys == "u" else None)
    expect(place).not_to_have_text(before)
    all_saved(keyboard.page)
    keyboard.press("u")
    expect(keyboard.page.get_by_text(re.compile("^Undone: "))).to_be_visible()
    expect(place).to_have_text(before)


@checks("labels choose")
def _chooses(keyboard: Keyboard) -> None:
    if keyboard.keys != "1":
        return  # so many labels are not offered here
    place = _label(keyboard)
    before = place.inner_text()
    keyboard.says("^Labelled 1 image as ")
    keyboard.undo()
    expect(place).to_have_text(before)


@checks("labels other", "labels accept.all")
def _dialogs_of_labels(keyboard: Keyboard) -> None:
    _label(keyboard)
    expect(keyboard.page.get_by_role("definition").get_by_text(re.compile("^(cat|wolf)$")).first).to_be_visible()
    keyboard.dialog(re.compile("^Label "))


@checks("labels open")
def _opens_a_label(keyboard: Keyboard) -> None:
    _label(keyboard)
    keyboard.goes("/d/crowds/m/")


def _issues(keyboard: Keyboard) -> Locator:
    """Show the broken files; return them."""
    items = keyboard.page.locator(".worst button.member")
    keyboard.at("/d/pets/issues/corrupted", items.nth(1))
    return items


@checks("issues next", "issues previous")
def _moves_in_issues(keyboard: Keyboard) -> None:
    items = _issues(keyboard)
    is_next = keyboard.keys in ("ArrowRight", "ArrowDown")
    if not is_next:
        keyboard.press("ArrowRight")
        expect(items.nth(1)).to_have_attribute("aria-pressed", "true")
    keyboard.press()
    expect(items.nth(1 if is_next else 0)).to_have_attribute("aria-pressed", "true")
    keyboard.press("ArrowLeft")


@checks("issues accept", "issues reject", "issues undo")
def _decides_on_issues(keyboard: Keyboard) -> None:
    items = _issues(keyboard)
    before = items.count()
    keyboard.press("Enter" if keyboard.keys == "u" else None)
    expect(items).to_have_count(before - 1)
    all_saved(keyboard.page)
    keyboard.press("u")
    expect(keyboard.page.get_by_text(re.compile("^Undone: "))).to_be_visible()
    expect(items).to_have_count(before)


@checks("issues limit")
def _limit(keyboard: Keyboard) -> None:
    slider = keyboard.page.locator("input[type=range]")
    keyboard.at("/d/pets/issues/dark", slider)
    keyboard.press()
    expect(slider).to_be_focused()


def _clusters(keyboard: Keyboard, level: int = 0) -> Locator:
    first = keyboard.page.locator("[data-cluster='0']")
    keyboard.page.goto(f"/d/pets/clusters?level={level}")
    expect(first).to_be_visible()
    return first


@checks("clusters left", "clusters right", "clusters up", "clusters down")
def _moves_in_clusters(keyboard: Keyboard) -> None:
    _clusters(keyboard)
    there, back = {
        "ArrowLeft": ("ArrowRight", "ArrowLeft"), "ArrowRight": ("ArrowRight", None),
        "ArrowUp": ("ArrowDown", "ArrowUp"), "ArrowDown": ("ArrowDown", None),
    }[keyboard.keys]  # fmt: skip
    keyboard.press(there)
    keyboard.until("Number(document.activeElement.dataset.cluster) > 0")
    if back is not None:
        keyboard.press(back)
        keyboard.until("document.activeElement.dataset.cluster === '0'")


@checks("clusters into", "clusters out")
def _through_levels(keyboard: Keyboard) -> None:
    _clusters(keyboard, 1)
    steps = keyboard.page.get_by_role("navigation", name="Where you are").get_by_role("button")
    keyboard.press("Enter")
    expect(steps).to_have_count(2)
    if keyboard.keys == "Backspace":
        keyboard.press()
        expect(steps).to_have_count(1)


@checks("clusters level")
def _levels(keyboard: Keyboard) -> None:
    _clusters(keyboard, 4 if keyboard.keys == "0" else 0)
    keyboard.press()
    expect(keyboard.page.locator("main select").first).to_have_value(keyboard.keys)


@checks("clusters tag", "clusters label", "clusters export")
def _dialogs_of_clusters(keyboard: Keyboard) -> None:
    _clusters(keyboard)
    keyboard.dialog(re.compile({"t": "^Tag ", "l": "^Label ", "e": "^Export "}[keyboard.keys]))


@checks("clusters basket")
def _basket_of_a_cluster(keyboard: Keyboard) -> None:
    _clusters(keyboard)
    keyboard.says("^Put .* into the basket")
    keyboard.undo()


def _map(keyboard: Keyboard) -> None:
    """Show a part of the map, without a box on it."""
    keyboard.page.goto("/d/pets/map?x=0.5&y=0.5&z=1")
    keyboard.page.locator(".map-canvas[data-drawn]:not([data-drawn='0'])").focus()


def _on_map(change: str) -> Check:
    """Return a check that a key changes what is shown, an expression of ``shown.x``, ``shown.y`` and ``shown.zoom``."""

    def check(keyboard: Keyboard) -> None:
        _map(keyboard)
        keyboard.press()
        keyboard.until(f"(shown => {change})(document.querySelector('.map-view').dataset)")

    return check


CHECKS |= {
    "map left": _on_map("shown.x < 0.5"),
    "map right": _on_map("shown.x > 0.5"),
    "map up": _on_map("shown.y > 0.5"),
    "map down": _on_map("shown.y < 0.5"),
    "map zoom.in": _on_map("shown.zoom > 1"),
    "map zoom.out": _on_map("shown.zoom < 1"),
    "map fit": _on_map("shown.zoom == 0"),
    "map into": _on_map("shown.zoom == 2"),
}


@checks("map region")
def _box_on_the_map(keyboard: Keyboard) -> None:
    _map(keyboard)
    box = keyboard.page.locator(".map-drawing")
    keyboard.press()
    expect(box).to_have_count(1)
    before = box.bounding_box()
    keyboard.press("ArrowRight")
    assert before is not None
    left = before["x"]
    keyboard.until(f"document.querySelector('.map-drawing').getBoundingClientRect().left > {left + 1}")
    keyboard.press("Enter")
    expect(keyboard.page.get_by_role("button", name="On the map: region")).to_be_visible()
    expect(box).to_have_count(0)


@checks("map size.left", "map size.right", "map size.up", "map size.down")
def _size_of_the_box(keyboard: Keyboard) -> None:
    _map(keyboard)
    keyboard.press("o")
    box = keyboard.page.locator(".map-drawing").bounding_box()
    assert box is not None
    keyboard.press()
    side = "width" if keyboard.keys.endswith(("Left", "Right")) else "height"
    sign = "<" if keyboard.keys.endswith(("Left", "Up")) else ">"
    new = f"document.querySelector('.map-drawing').getBoundingClientRect().{side}"
    keyboard.until(f"{new} {sign} {box[side]}")  # type: ignore[literal-required] # it is one of two keys


def _notifications(keyboard: Keyboard) -> tuple[Locator, Locator]:
    """Show the notifications; return their links, and the marks of those that are unread."""
    main = keyboard.page.get_by_role("main")
    links = main.locator(".rows a")
    keyboard.at("/notifications", links.nth(2))
    return links, main.get_by_text("Unread", exact=True)


@checks("notifications next", "notifications previous")
def _moves_in_notifications(keyboard: Keyboard) -> None:
    links, _ = _notifications(keyboard)
    links.nth(1).focus()
    keyboard.press()
    expect(links.nth(2 if keyboard.keys == "ArrowDown" else 0)).to_be_focused()


@checks("notifications read", "notifications read.all")
def _reads(keyboard: Keyboard) -> None:
    links, unread = _notifications(keyboard)
    expect(unread.first).to_be_visible()
    before = unread.count()
    links.first.focus()
    keyboard.press()
    expect(unread).to_have_count(before - 1 if keyboard.keys == "r" else 0)


@checks("views next", "views previous", "views export")
def _views(keyboard: Keyboard) -> None:
    links = keyboard.page.locator("main a.view")
    keyboard.at("/d/film/views", links.nth(2))
    links.nth(1).focus()
    if keyboard.keys == "e":
        keyboard.dialog(re.compile("^Export "))
        return
    keyboard.press()
    expect(links.nth(2 if keyboard.keys == "ArrowDown" else 0)).to_be_focused()


@checks("cleanup apply")
def _applies(keyboard: Keyboard) -> None:
    _grid(keyboard)
    Keyboard(keyboard.page, "x", keyboard.frame, keyboard.boxes).says("^Put 1 image into the basket")
    keyboard.press("g x")
    expect(keyboard.page.get_by_text("1 image leaves the dataset")).to_be_visible()
    keyboard.dialog(re.compile("^Remove 1 image, "))
    keyboard.undo()


@checks("dialog close")
def _closes(keyboard: Keyboard) -> None:
    _grid(keyboard)
    keyboard.press("?")
    expect(keyboard.page.get_by_role("dialog")).to_be_visible()
    keyboard.press()
    expect(keyboard.page.get_by_role("dialog")).to_have_count(0)
