"""The app in a notebook: a page that shows widgets as anywidget does, with their Python side."""

import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Locator, Page, expect

from framedex import Dataset, InvalidFilter, InvalidInput, Workspace, vql
from framedex.api.workspace import workspace_of
from tests.browser.notebook_page import NotebookPage
from tests.gallery import SETTINGS, make_gallery, opened_gallery
from tests.laws import rest_slow
from tests.prepared import prepared

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dataset]:
    """A dataset that the tests do not change."""
    with opened_gallery(tmp_path_factory.mktemp("notebook")) as found:
        yield found


@pytest.fixture
def own_dataset(tmp_path: Path) -> Iterator[Dataset]:
    """A dataset that the test may change."""
    make_gallery(tmp_path / "gallery")
    with Workspace(tmp_path / "ws", settings=SETTINGS) as workspace:
        yield prepared(workspace, "pets", tmp_path / "gallery")


@pytest.fixture
def notebook() -> Iterator[NotebookPage]:
    """A page of a notebook, and its kernel."""
    with NotebookPage() as page:
        yield page


@pytest.fixture
def show(notebook: NotebookPage, open_page: Callable[..., Page]) -> Iterator[Callable[..., tuple[Page, Locator]]]:
    """Show a widget in a page; return the page and the view of the widget."""
    pages: list[Page] = []
    widgets: list[Any] = []

    def shown(widget: Any, *, views: int = 1) -> tuple[Page, Locator]:
        if not pages:
            pages.append(open_page(notebook))
            pages[0].wait_for_function("window.isReady")
        page = pages[0]
        name = notebook.add(widget)
        widgets.append(widget)
        before = page.locator("#views > div").count()
        for _ in range(views):
            page.evaluate("(id) => window.openView(id)", name)
        return page, page.locator("#views > div").nth(before)

    yield shown
    for page in pages:
        page.evaluate("window.isDead = true")
    for widget in widgets:
        widget.close()


def eventually(page: Page, holds: Callable[[], bool]) -> None:
    """Wait until a condition of the Python side holds."""
    for _ in range(300):
        if holds():
            return
        page.wait_for_timeout(50)
    raise AssertionError("the condition never held")


def test_widget__shows_images_and_selects(dataset: Dataset, show: Callable[..., tuple[Page, Locator]]) -> None:
    """The app shows the images of the view's filter; what is selected there is a view here, and the other way."""
    widget = dataset.where([{"file_name": {"op": "starts", "value": "0"}}]).app(height=700)
    page, view = show(widget)
    cells = view.get_by_role("gridcell")
    expect(cells.first).to_be_visible()
    expect(view.locator(".tile.shown").first).to_be_visible()
    assert view.locator(".tile.shown img").first.get_attribute("src").startswith("blob:")  # type: ignore[union-attr]
    cells.first.click()
    page.keyboard.press("Space")
    eventually(page, lambda: len(widget.selected) == 1)
    assert widget.selection.media_ids() == widget.selected
    page.keyboard.press("Control+a")
    eventually(page, lambda: bool(widget.all_selected))
    assert widget.selection.media_ids() == dataset.where(widget.vql).media_ids()
    chosen = dataset.where(widget.vql).media_ids()[:3]
    widget.selected, widget.all_selected = chosen, False
    expect(view.locator("[role=gridcell][aria-selected=true]")).to_have_count(3)
    assert widget.selection.media_ids() == chosen


def test_widget__events_and_edits(own_dataset: Dataset, show: Callable[..., tuple[Page, Locator]]) -> None:
    """A change in the app is in the dataset of this process, and a change here comes as an event."""
    widget = own_dataset.where([{"file_name": {"op": "is", "value": "00.jpg"}}]).app()
    page, view = show(widget)
    first = view.get_by_role("gridcell").first
    expect(first).to_have_accessible_name(re.compile("animals"))
    own_dataset.where(~vql.tags("basket")).tag("seen")
    changed = view.get_by_text("This dataset has changed.")
    expect(changed).to_be_visible()
    view.get_by_role("button", name="Show", exact=True).click()
    expect(changed).to_have_count(0)
    first.click()
    page.keyboard.press("x")
    eventually(page, lambda: own_dataset.basket.count() == 1)


def test_widget__traits_both_ways(dataset: Dataset, show: Callable[..., tuple[Page, Locator]]) -> None:
    """The address and the filter can be read and set; a filter that is wrong is refused here."""
    widget = dataset.app()
    page, view = show(widget)
    expect(view.get_by_role("heading", name="pets")).to_be_visible()
    assert widget.url == f"/d/{dataset.id}"
    widget.vql = vql.ids(dataset.view.media_ids()[:2])
    expect(view.get_by_role("gridcell")).to_have_count(2)
    eventually(page, lambda: widget.url.startswith(f"/d/{dataset.id}/pictures?f="))
    view.get_by_role("link", name="Issues").click()
    eventually(page, lambda: widget.url == "/d/pets/issues")
    assert page.url.endswith("/"), "the notebook's own address stays"
    widget.url = f"/d/{dataset.id}/clusters"
    expect(view.locator("[data-cluster]").first).to_be_visible()
    with pytest.raises(InvalidFilter):
        widget.vql = [{"nothing": 1}]
    with pytest.raises(InvalidInput):
        widget.selected = 5
    with pytest.raises(InvalidInput):
        widget.height = 0


def test_widgets__two_on_a_page(
    dataset: Dataset, own_dataset: Dataset, show: Callable[..., tuple[Page, Locator]]
) -> None:
    """Two widgets of two workspaces share the code of the app and no state; each has its own keys."""
    own_dataset.view.limit(3).tag("mine")
    page, first = show(dataset.view.limit(9).app())
    other = own_dataset.where(vql.tags("mine")).app()
    _, second = show(other)
    expect(first.get_by_role("gridcell")).to_have_count(9)
    expect(second.get_by_role("gridcell")).to_have_count(3)
    second.get_by_role("gridcell").first.click()
    page.keyboard.press("Control+a")
    eventually(page, lambda: bool(other.all_selected))
    expect(first.locator("[aria-selected=true]")).to_have_count(0)
    assert page.evaluate("Object.keys(globalThis[Symbol.for('framedex.apps')]).length") == 1


def test_widget__shown_twice(
    dataset: Dataset, notebook: NotebookPage, show: Callable[..., tuple[Page, Locator]]
) -> None:
    """Two views of a widget have the same traits; each can be closed, and then asks for nothing more."""
    widget = dataset.app()
    page, first = show(widget, views=2)
    second = page.locator("#views > div").nth(1)
    for view in (first, second):
        expect(view.get_by_role("heading", name="pets")).to_be_visible()
    widget.vql = vql.ids(dataset.view.media_ids()[:2])
    for view in (first, second):
        expect(view.get_by_role("gridcell")).to_have_count(2)
    listeners = page.evaluate("(id) => window.models[id].count()", widget.model_id)
    page.evaluate("window.closeView(0)")
    assert page.evaluate("(id) => window.models[id].count()", widget.model_id) == listeners // 2
    eventually(page, lambda: len(widget._messages._views) == 1)
    page.evaluate("window.closeView(1)")
    assert page.evaluate("(id) => window.models[id].count()", widget.model_id) == 0
    eventually(page, lambda: len(widget._messages._views) == 0)


def test_keys__only_with_the_focus(dataset: Dataset, show: Callable[..., tuple[Page, Locator]]) -> None:
    """Keys that are pressed elsewhere in the notebook do nothing here, and those in the widget do not reach it."""
    page, view = show(dataset.app())
    expect(view.get_by_role("heading", name="pets")).to_be_visible()
    page.evaluate("window.pressed = []; addEventListener('keydown', (event) => window.pressed.push(event.key))")
    page.get_by_label("A cell").focus()
    page.keyboard.press("?")
    expect(view.get_by_role("dialog")).to_have_count(0)
    view.get_by_role("heading", name="pets").click()
    page.keyboard.press("?")
    expect(view.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(view.get_by_role("dialog")).to_have_count(0)
    page.keyboard.press("g")
    page.keyboard.press("i")
    assert page.evaluate("window.pressed") == ["?"]


def test_focus__stays_in_the_notebook(dataset: Dataset, show: Callable[..., tuple[Page, Locator]]) -> None:
    """A widget that is shown does not take the focus; one that has it keeps it from page to page."""
    widget = dataset.app()
    page, view = show(widget)
    page.get_by_label("A cell").focus()
    widget.url = f"/d/{dataset.id}/pictures"
    expect(view.get_by_role("gridcell").first).to_be_visible()
    expect(page.get_by_label("A cell")).to_be_focused()
    view.get_by_role("gridcell").first.click()
    page.keyboard.press("Enter")
    eventually(page, lambda: "/m/" in widget.url)
    page.keyboard.press("Escape")
    eventually(page, lambda: "/pictures" in widget.url)
    expect(view.get_by_role("gridcell").first).to_be_focused()


def test_kernel__busy_and_gone(
    dataset: Dataset, notebook: NotebookPage, show: Callable[..., tuple[Page, Locator]]
) -> None:
    """While a cell runs the widget says so, and goes on after it; without a kernel it says what to do."""
    page, view = show(dataset.app())
    expect(view.get_by_role("heading", name="pets")).to_be_visible()
    notebook.run_cell()
    view.get_by_role("link", name="Clusters").click()
    expect(view.get_by_text("The kernel is busy")).to_be_visible()
    notebook.end_cell()
    expect(view.locator("[data-cluster]").first).to_be_visible()
    expect(view.get_by_text("The kernel is busy")).to_have_count(0)
    page.evaluate("window.isDead = true")
    view.get_by_role("link", name="Issues").click()
    expect(view.get_by_text("The kernel does not answer")).to_be_visible()


def test_kernel__busy_at_first(
    dataset: Dataset, notebook: NotebookPage, show: Callable[..., tuple[Page, Locator]]
) -> None:
    """A widget that is shown in the middle of a cell says when it is shown, and is shown then."""
    notebook.run_cell()
    page, view = show(dataset.app())
    page.evaluate("delete globalThis[Symbol.for('framedex.apps')]")
    expect(view.get_by_text("once the running cell has ended")).to_be_visible()
    notebook.end_cell()
    expect(view.get_by_role("heading", name="pets")).to_be_visible()


@pytest.mark.only_soak
def test_kernel__answers_after_all(
    dataset: Dataset, notebook: NotebookPage, show: Callable[..., tuple[Page, Locator]]
) -> None:
    """A widget that was shown in a cell of more than 20 s holds the kernel for gone, and is shown after the cell."""
    notebook.run_cell()
    _, view = show(dataset.app())
    expect(view.get_by_role("alert")).to_have_text(re.compile("does not answer"), timeout=40_000)
    notebook.end_cell()
    expect(view.get_by_role("heading", name="pets")).to_be_visible()


def test_code__opens_the_workspace(dataset: Dataset, show: Callable[..., tuple[Page, Locator]]) -> None:
    """Code that the app copies opens the workspace by its folder, and no server."""
    page, view = show(dataset.where(vql.labels("animal")).app())
    view.get_by_role("gridcell").first.click()
    page.keyboard.press("y")
    code = view.get_by_role("dialog").get_by_role("textbox")
    expect(code).to_have_value(re.compile("Workspace"))
    expect(view.get_by_role("dialog").get_by_role("radio")).to_have_count(3)
    found: dict[str, Any] = {}
    exec(code.input_value().replace("print(view.to_arrow())", ""), found)
    assert found["view"].media_ids() == dataset.where(vql.labels("animal")).media_ids()
    found["ws"].close()


def test_export__is_saved(own_dataset: Dataset, show: Callable[..., tuple[Page, Locator]]) -> None:
    """A finished export is saved by the browser, out of the kernel."""
    page, view = show(own_dataset.where(vql.labels("animal")).app())
    view.get_by_role("gridcell").first.click()
    page.keyboard.press("e")
    dialog = view.get_by_role("dialog")
    dialog.locator("button.main").click()
    with page.expect_download() as download:
        dialog.locator("a[download]").first.click()
    content = Path(download.value.path()).read_bytes()
    assert content[:2] == b"PK"


def test_close__frees_what_was_opened(dataset: Dataset, show: Callable[..., tuple[Page, Locator]]) -> None:
    """A closed view revokes its object URLs; the last closed widget stops the thread of the service."""

    def threads() -> set[str]:
        return {thread.name for thread in threading.enumerate()} & {"framedex-notebook"}

    widget, other = dataset.view.app(), dataset.where([]).app()
    page, view = show(widget)
    page.evaluate(
        """() => {
            window.urls = new Set();
            const { createObjectURL, revokeObjectURL } = URL;
            URL.createObjectURL = (blob) => {
              const url = createObjectURL.call(URL, blob); window.urls.add(url); return url;
            };
            URL.revokeObjectURL = (url) => { window.urls.delete(url); revokeObjectURL.call(URL, url); };
        }"""
    )
    widget.url = f"/d/{dataset.id}/pictures"
    expect(view.locator(".tile.shown").first).to_be_visible()
    assert page.evaluate("window.urls.size") > 0
    page.evaluate("window.closeView(0)")
    assert page.evaluate("window.urls.size") == 0
    widget.close()
    assert threads()
    other.close()
    other.close()
    assert not threads()


def test_dataset__deleted(own_dataset: Dataset, show: Callable[..., tuple[Page, Locator]]) -> None:
    """The widget of a dataset that was deleted says that there is no such dataset."""
    widget = own_dataset.app()
    _, view = show(widget)
    expect(view.get_by_role("heading", name="pets")).to_be_visible()
    workspace_of(own_dataset).delete_dataset(own_dataset.id)
    widget.url = f"/d/{own_dataset.id}/pictures"
    expect(view.get_by_text("There is no dataset")).to_be_visible()


def test_styles__neither_way(dataset: Dataset, show: Callable[..., tuple[Page, Locator]]) -> None:
    """Styles of the notebook do not reach the app, and those of the app do not reach the notebook."""
    page, view = show(dataset.where([]).app())
    tile = view.locator(".tile.shown").first
    expect(tile).to_be_visible()
    button = view.locator("button.button").first
    assert button.evaluate("(element) => getComputedStyle(element).textTransform") == "none"
    assert "serif" not in tile.evaluate("(element) => getComputedStyle(element).fontFamily").replace("sans-serif", "")
    assert page.evaluate("getComputedStyle(document.body).fontFamily") == "serif"
    assert page.evaluate("document.adoptedStyleSheets.length") == 0
    page.evaluate("document.body.dataset.jpThemeLight = 'false'")
    expect(page.locator("#views [data-theme=dark]")).to_have_count(1)


@pytest.mark.parametrize(
    ("path", "shown"),
    rest_slow(
        [
            ("", ".findings li img"),
            ("/pictures", ".tile.shown"),
            ("/clusters", "[data-cluster]"),
            ("/duplicates", ".queue h1"),
            ("/issues", ".queue h1"),
            ("/map", "canvas"),
        ],
        0,
        several=True,
        long=2,
    ),
)
def test_axe__finds_nothing(dataset: Dataset, show: Callable[..., tuple[Page, Locator]], path: str, shown: str) -> None:
    """Pages in a widget have no violation that axe finds."""
    widget = dataset.app(800)
    page, view = show(widget)
    expect(view.get_by_role("heading", name="pets")).to_be_visible()
    widget.url = f"/d/{dataset.id}{path}"
    expect(view.locator("#content").locator(shown).first).to_be_visible()
    expect(view.locator(".skeleton")).to_have_count(0)
    found = Axe().run(page, context="#views")
    assert [(each["id"], each["nodes"][0]["html"][:200]) for each in found.response["violations"]] == []
