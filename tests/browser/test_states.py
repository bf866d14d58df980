"""What the pages show where something is missing, refused, slow or gone; most of it by faults put into requests."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pytest
from playwright.sync_api import Page, Route, expect

from framedex import Workspace, vql
from framedex.hub import Hub
from framedex.service.settings import ServiceSettings
from tests.api.test_dataset__early import ROWS, GateAfter
from tests.browser.site import Site, all_saved, first_image
from tests.enrichments import ENCODE, Hues, register_models
from tests.gallery import ANIMALS, BROKEN, NAMES, SETTINGS, TOWNS
from tests.image_files import flat, photo, write
from tests.pauses import PATIENCE_S, all_threads_busy, wait_until
from tests.service.live import live_service
from tests.tuning import Tuning

Open = Callable[..., Page]
STOPPED = "The server has stopped. Start it again with:"
LATE_HEADS = """
const listen = EventSource.prototype.addEventListener;
let deliver = null;
const told = new Promise((resolve) => { deliver = resolve; });
EventSource.prototype.addEventListener = function (name, listener) {
  listen.call(this, name, name === "head" ? (event) => told.then(() => listener(event)) : listener);
};
window.deliverHeads = () => deliver();
"""
"""A script with which events of changes wait until it is told to deliver them."""


def answer(status: int, detail: str) -> Callable[[Route], None]:
    """Return a handler of requests that answers with an error of the service."""
    body = {"detail": detail, "message": detail, "code": "any", "request_id": "1"}
    return lambda route: route.fulfill(status=status, json=body)


def page_says(words: str) -> Callable[[Page], None]:
    """Return a check of what the status bar of a page says."""
    return lambda page: expect(page.locator(".status-line .message")).to_contain_text(words)


@contextmanager
def held(page: Page, pattern: str) -> Iterator[Callable[[], None]]:
    """Hold requests back until the end; what is returned waits for the first one."""
    requests: list[Route] = []

    def first() -> None:
        while not requests:
            page.wait_for_timeout(10)

    page.route(pattern, lambda route: requests.append(route))  # noqa: PLW0108 - it looks at the signature
    yield first
    while requests:
        requests.pop().continue_()
    page.unroute(pattern)


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a service whose workspace has no datasets."""
    home = tmp_path_factory.mktemp("empty")
    with (
        Workspace(home / "ws", settings=SETTINGS) as workspace,
        Hub(workspace) as hub,
        live_service(workspace, hub, ServiceSettings()) as (url, _),
    ):
        yield url


@pytest.mark.slow
def test_datasets__none(empty: str, open_page: Open, site: Site) -> None:
    """Without datasets the first page says how to make one."""
    page = open_page(Site(empty, site.workspace, site.dataset, site.gallery, site.state), "/")
    expect(page.get_by_text("There are no datasets yet.")).to_be_visible()
    expect(page.get_by_text("framedex open ~/photos")).to_be_visible()


@pytest.mark.slow
def test_filter__that_nothing_passes(site: Site, open_page: Open) -> None:
    """The page counts what there would be without each part of the filter; Escape takes the last part away."""
    parts = '[{"labels":{"op":"is","value":"fur"}},{"labels":{"op":"is","value":"town"}}]'
    page = open_page(site, f"/d/pets/pictures?f={quote(parts)}")
    expect(page.get_by_text("No image passes the filter")).to_be_visible()
    expect(page.get_by_role("button", name="Without “label is fur”: 12 images")).to_be_visible()
    expect(page.get_by_role("button", name="Without “label is town”: 4 images")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator(".count")).to_have_text(re.compile("^4 of "))


@pytest.mark.slow
def test_files__that_are_damaged_or_gone(own_site: Site, open_page: Open) -> None:
    """A damaged file and one that is gone have tiles with the reason; the image's page names the path."""
    dataset, gone = own_site.dataset, ANIMALS[5]
    (own_site.gallery / gone).unlink()
    page = open_page(own_site, "/d/pets/pictures?sort=image_filename%3Aasc", allowed=("404", "410", "422"))
    expect(page.locator(".tile.failed", has_text="The file is not there")).to_contain_text("animals/05")
    damaged = quote('[{"issues":{"op":"issue","value":"corrupted"}}]')
    page.goto(f"/d/pets/pictures?f={damaged}")
    expect(page.locator(".tile.failed", has_text="Damaged")).to_have_count(len(BROKEN))
    page.goto(f"/d/pets/m/{dataset.media_id(gone)}")
    expect(page.locator(".stage")).to_contain_text("The file is not there: ")
    expect(page.locator(".stage")).to_contain_text(gone)
    page.goto(f"/d/pets/m/{dataset.media_id(BROKEN[1])}")
    reason = dataset.media_item(dataset.media_id(BROKEN[1])).error
    assert reason
    expect(page.locator(".stage")).to_contain_text(reason)


@pytest.mark.slow
def test_files__of_unknown_size(own_site: Site, open_page: Open) -> None:
    """Images of a table of embeddings are shown, with the size that they say; a damaged or absent one says so."""
    names = [ANIMALS[0], TOWNS[0], BROKEN[1], "gone.jpg"]
    embeddings = np.eye(len(names), dtype=np.float32)
    table = pa.table({"uri": [str(own_site.gallery / name) for name in names], "embedding": list(embeddings)})
    dataset = own_site.workspace.create_dataset("table", table)
    ids = dict(zip(names, dataset.view.media_ids(), strict=True))
    page = open_page(own_site, "/d/table/pictures", allowed=("404", "415", "422"))
    expect(page.locator(".tile.shown img")).to_have_count(2)
    expect(page.locator(".tile.failed", has_text="text")).to_contain_text("Damaged")
    expect(page.locator(".tile.failed", has_text="gone")).to_contain_text("The file is not there")
    page.goto("/")
    expect(page.get_by_role("link", name="table").locator("img")).to_have_count(2)
    expect(page.get_by_role("link", name="table").locator(".missing")).to_have_count(2)
    page.goto(f"/d/table/m/{ids[TOWNS[0]]}")
    expect(page.locator(".canvas img").last).to_have_js_property("naturalWidth", 200)
    expect(page.get_by_role("complementary", name="Details")).to_contain_text("200 × 150")
    page.keyboard.press("r")
    expect(page.locator("svg.boxes rect.drawn")).to_have_attribute("width", "100")
    page.goto(f"/d/table/m/{ids[BROKEN[1]]}")
    expect(page.locator(".stage")).to_contain_text("The media file cannot be shown as an image")
    page.goto(f"/d/table/m/{ids['gone.jpg']}")
    expect(page.locator(".stage")).to_contain_text("The file is not there: ")


@pytest.mark.slow
def test_edit__that_is_refused(site: Site, open_page: Open) -> None:
    """A change that the service refuses is shown as pending, then taken back with the reason."""
    page = open_page(site, "/d/pets/pictures", allowed=("500",))
    page.route("**/actions", answer(500, "the disk is full"))
    first_image(page)
    page.keyboard.press("x")
    expect(page.get_by_text("Not changed: the disk is full")).to_be_visible()
    expect(page.get_by_role("gridcell").first).not_to_have_accessible_name(re.compile("basket"))
    all_saved(page)
    assert site.dataset.basket.count() == 0


@pytest.mark.slow
def test_edit__without_a_server(site: Site, open_page: Open) -> None:
    """Without a server a bar says so; a change is refused, and not made later, once the server answers again."""
    page = open_page(site, "/d/pets/pictures", allowed=("ERR_", "503"))
    first_image(page)
    page.route("**/api/**", lambda route: route.abort("connectionrefused"))
    page.keyboard.press("x")
    expect(page.get_by_text("The server does not answer: nothing was changed.")).to_be_visible()
    expect(page.get_by_role("alert")).to_contain_text(f"{STOPPED} framedex serve")
    expect(page.get_by_role("gridcell").first).not_to_have_accessible_name(re.compile("basket"))
    page.unroute("**/api/**")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("l")  # asks for the labels: the server answers
    expect(page.get_by_text(STOPPED)).to_have_count(0)
    assert site.dataset.basket.count() == 0


@pytest.mark.slow
def test_results__that_are_gone(site: Site, open_page: Open) -> None:
    """Results that the service has forgotten are opened again."""
    page = open_page(site, "/d/pets/pictures", allowed=("410",))
    first_image(page)
    gone = answer(410, "the results are gone")
    page.route("**/rows?*", gone, times=1)
    with page.expect_response(lambda sent: "/rows?" in sent.url and sent.status == 200):
        page.get_by_label("Order").select_option("image_filename:asc")
    first_image(page)
    expect(page.get_by_text("the results are gone")).to_have_count(0)


@pytest.mark.slow
def test_results__that_are_slow(site: Site, open_page: Open) -> None:
    """While nothing is there yet the grid is busy, for assistive technology too."""
    waiting: list[Route] = []
    page = open_page(site, "/")
    page.route("**/results", lambda route: waiting.append(route))  # noqa: PLW0108 - it looks at the signature
    page.goto("/d/pets/pictures")
    expect(page.locator("main [aria-busy=true]").first).to_be_visible()
    while waiting:
        waiting.pop().continue_()
    page.unroute("**/results")
    first_image(page)


@pytest.mark.slow
def test_keys__while_results_load(own_site: Site, open_page: Open) -> None:
    """A key acts on what is shown, or says that nothing is there yet; it is never lost silently."""
    loading = page_says("The images are still loading.")
    page = open_page(own_site, "/")
    with held(page, "**/results") as requests:
        page.goto("/d/pets/pictures?sort=image_filename%3Aasc")
        requests()
        expect(page.get_by_label("Order")).to_be_visible()
        page.keyboard.press("x")
        loading(page)
    first_image(page)
    with held(page, "**/static/ofService*"):
        page.keyboard.press("g")
        page.keyboard.press("t")
        page.locator("main [aria-busy=true]").first.wait_for()
        page.keyboard.press("t")
        page_says("The page is still loading.")(page)
    page.go_back()
    first_image(page)
    with held(page, "**/results") as requests:
        page.get_by_label("Order").select_option("file_size_bytes:desc")
        requests()
        page.locator("[role=gridcell][tabindex='0']").focus()
        page.keyboard.press("x")
        page.keyboard.press("Control+a")
        expect(page.get_by_text("Put 1 image into the basket")).to_be_visible()
    first = own_site.dataset.view.sort_by("image_filename").media_ids()[0]
    assert own_site.dataset.basket.media_ids() == [first]
    largest = own_site.dataset.view.sort_by("file_size_bytes", descending=True).first(1)[0]
    name = re.escape(largest["caption"] or largest["image_filename"])
    expect(page.get_by_role("gridcell").first).to_have_accessible_name(re.compile(f"^{name}"))
    expect(page.get_by_text(re.compile("selected$"))).to_have_count(0)
    with held(page, "**/rows?*") as requests:
        page.get_by_label("Order").select_option("image_filename:asc")
        requests()
        expect(page.locator(".cell .tile.waiting").first).to_be_attached()
        page.locator("[role=gridcell][tabindex='0']").focus()
        for key in "xtlscd":
            page.keyboard.press("Control+Shift+z")
            page_says("There is nothing to do again")(page)
            page.keyboard.press(key)
            loading(page)
        page.keyboard.press("1")
        page_says("There is no tag 1 yet.")(page)
    assert own_site.dataset.basket.count() == 1


@pytest.mark.slow
def test_keys__while_a_queue_loads(site: Site, open_page: Open) -> None:
    """The keys of a queue say that it is loading, that it could not be read, or that it is empty."""
    page = open_page(site, "/", allowed=("500",))
    with held(page, "**/duplicates?*") as requests:
        page.goto("/d/pets/duplicates")
        requests()
        page.keyboard.press("Enter")
        page_says("The queue is still loading.")(page)
    page.locator("button.member").first.wait_for()
    page.keyboard.press("n")
    page_says("Choose a member that is not ★.")(page)
    page.get_by_label("Groups").select_option("done")
    expect(page.get_by_text("No group was decided at this similarity.")).to_be_visible()
    page.locator("h1").click()
    page.keyboard.press("a")
    expect(page.get_by_text("No group was decided at this similarity.")).to_have_count(2)
    page.route("**/duplicates?*", answer(500, "no groups now"))
    page.get_by_label("Groups").select_option("open")
    expect(page.get_by_role("alert")).to_contain_text("no groups now")
    page.locator("h1").click()
    page.keyboard.press("k")
    page_says("no groups now")(page)


@pytest.mark.slow
def test_search__by_meaning_that_is_not_available(site: Site, open_page: Open) -> None:
    """The page says which encoder a search by meaning needs."""
    page = open_page(site, "/d/pets/pictures?q=dog&by=meaning", allowed=("4", "5"))
    expect(page.get_by_role("alert")).to_contain_text("encoder")


@pytest.mark.slow
def test_search__that_is_not_finished(site: Site, open_page: Open) -> None:
    """One quotation mark and an open parenthesis are text, and no error."""
    page = open_page(site, "/d/pets/pictures")
    first_image(page)
    page.keyboard.press("/")
    page.keyboard.type('"street')
    page.keyboard.press("Enter")
    expect(page.locator(".count")).to_have_text(f"{len(TOWNS)} of {len(site.dataset.view)} images")
    page.goto("/d/pets/pictures?q=%22")
    expect(page.get_by_text("Nothing here matches")).to_be_visible()
    page.goto("/d/pets/pictures?q=(street")
    expect(page.locator(".count")).to_have_text(f"{len(TOWNS)} of {len(site.dataset.view)} images")


@pytest.mark.slow
def test_search__without_a_match(site: Site, open_page: Open, tmp_path: Path) -> None:
    """An image that is like nothing here gets a sentence above what is closest; one of the dataset gets none."""
    other = site.dataset.upload(write(tmp_path / "red.png", flat((200, 30, 30))))
    count = len(site.dataset.view)
    page = open_page(site, f"/d/pets/pictures?like={other}")
    bar = page.get_by_text("Nothing here matches this search for sure: the best has a relevance of 0")
    expect(bar).to_be_visible()
    names = [row["caption"] or row["image_filename"] for row in site.dataset.similar(other, 1000).first(3)]
    for position, name in enumerate(names):
        cell = page.locator(f"[data-position='{position}']")
        expect(cell).to_have_accessible_name(re.compile(f"^{re.escape(name)}"))
    page.goto(f"/d/pets/pictures?like={site.dataset.media_id(ANIMALS[5])}")
    first_image(page)
    page.goto("/d/pets/pictures?q=street")
    expect(page.locator(".count")).to_have_text(f"{len(TOWNS)} of {count} images")
    expect(bar).to_have_count(0)
    page.goto("/d/pets/pictures?q=nonsense")
    expect(page.get_by_text("Nothing here matches this search.")).to_be_visible()


@pytest.mark.slow
def test_page__that_failed(site: Site, open_page: Open) -> None:
    """A page whose data could not be read says why, and can be tried again."""
    page = open_page(site, "/", allowed=("500",))
    page.route("**/api/v1/tasks?*", answer(500, "no tasks now"))
    page.get_by_role("link", name="Tasks").click()
    expect(page.get_by_role("alert")).to_contain_text("This part of the page could not be shown: no tasks now")
    page.unroute("**/api/v1/tasks?*")
    page.get_by_role("button", name="↻").click()
    expect(page.get_by_role("rowheader", name="Creation")).to_be_visible()


@pytest.mark.slow
def test_changes__that_are_told_late(own_site: Site, open_page: Open) -> None:
    """How many images others added is right also where the dataset was read again before the event of its change."""
    page, count = open_page(own_site), len(own_site.dataset.view)
    page.add_init_script(LATE_HEADS)
    page.goto("/d/pets/pictures")
    first_image(page)
    write(own_site.gallery / "aaa.jpg", photo(900))
    own_site.dataset.add_media(own_site.gallery)
    expect(page.get_by_text("Images came after the last index")).to_be_visible()
    expect(page.locator(".count")).to_have_text(f"{count} images")
    page.evaluate("deliverHeads()")
    expect(page.get_by_text("This dataset has changed: +1.")).to_be_visible()
    expect(page.locator(".count")).to_have_text(f"{count} images")


@pytest.mark.slow
def test_changes__of_others(own_site: Site, open_page: Open) -> None:
    """What others add is announced with its number and shown on request; the focus stays on its image."""
    page = open_page(own_site, "/d/pets/pictures?sort=image_filename%3Aasc")
    first_image(page)
    page.keyboard.press("ArrowRight")
    name = page.locator("[data-position='1']").get_attribute("aria-label") or ""
    count = len(own_site.dataset.view)
    write(own_site.gallery / "aaa.jpg", photo(900))
    write(own_site.gallery / "aab.jpg", photo(901))
    own_site.dataset.add_media(own_site.gallery)
    bar = page.get_by_text("This dataset has changed: +2.")
    expect(bar).to_be_visible()
    expect(page.locator("[data-position='1']")).to_have_accessible_name(name)
    page.get_by_role("button", name="Show", exact=True).click()
    expect(page.locator(".count")).to_have_text(f"{count + 2} images")
    expect(page.locator("[data-position='3']")).to_have_accessible_name(name)
    expect(page.locator("[data-position='3']")).to_have_attribute("tabindex", "0")
    expect(bar).to_have_count(0)
    page.keyboard.press("g")
    page.keyboard.press("x")
    expect(page.get_by_text("Images came after the last index")).to_be_visible()
    remove = page.get_by_role("button", name="Remove", exact=True)
    expect(remove).to_have_attribute("aria-disabled", "true")
    expect(remove).to_have_attribute("title", "Reindex first: the last index does not know all images.")
    page.get_by_role("button", name="Reindex").click()
    expect(page.get_by_text("Images came after the last index")).to_have_count(0)


@pytest.mark.slow
def test_tasks__that_failed(own_site: Site, open_page: Open, tmp_path: Path) -> None:
    """A dataset whose creation failed says why and leads to its task, which can be started again."""
    write(tmp_path / "few" / "a.jpg", photo(1))
    with all_threads_busy(own_site.workspace):
        failed = own_site.workspace.create_dataset("few", tmp_path / "few", wait=False)
        (tmp_path / "few").rename(tmp_path / "elsewhere")
    wait_until(lambda: failed.info.status_new == "ERROR")
    reason = "cannot read the folder '…/few': No such file or directory"
    page = open_page(own_site, "/d/few", allowed=("409",))
    expect(page.get_by_role("alert")).to_contain_text(reason)
    page.get_by_role("alert").get_by_role("link", name="Tasks").click()
    row = page.get_by_role("row", name="Creation few")
    expect(row).to_contain_text("FAILED")
    expect(row).to_contain_text("No such file or directory")
    (tmp_path / "elsewhere").rename(tmp_path / "few")
    row.get_by_role("button", name="Retry").click()
    expect(page.get_by_role("row", name="Creation few").first).to_contain_text("COMPLETED")


@pytest.mark.slow
def test_creation__is_looked_at_early(own_site: Site, open_page: Open, tuning: Tuning) -> None:
    """While a dataset is created its first images are shown with the progress; the page says what has to wait."""
    tuning.committed_rows = ROWS
    page = open_page(own_site, "/", allowed=("409",))
    first, second = GateAfter(0), GateAfter(2)
    bar = page.get_by_text("Being created: images that were read can be looked at and filtered.")
    try:
        own_site.workspace.create_dataset("none", own_site.gallery, first, wait=False)
        dataset = own_site.workspace.create_dataset("early", own_site.gallery, second, wait=False)
        assert first.reached.wait(PATIENCE_S)
        assert second.reached.wait(PATIENCE_S)
        page.goto("/d/none/pictures")
        expect(page.get_by_text("They are shown here as soon as there are some.")).to_be_visible()
        page.goto("/d/early/pictures")
        expect(bar).to_be_visible()
        expect(page.get_by_role("progressbar", name="Indexing")).to_be_visible()
        expect(page.locator(".tile.shown").first).to_be_visible()
        count = int(page.locator(".count").inner_text().split()[0])
        assert ROWS <= count < len(NAMES)
        first_image(page)
        page.keyboard.press("x")
        page_says("INDEXING: the creation of early is running")(page)
        page.keyboard.press("e")  # exports wait, too
        expect(page.get_by_role("dialog")).to_have_count(0)
        page.goto("/d/early/pictures?q=street")
        expect(page.get_by_text("Searches come once the dataset is indexed; filters work already.")).to_be_visible()
        page.goto("/d/early")
        expect(page.get_by_text("Findings come once the dataset is indexed.")).to_be_visible()
        animals = quote('[{"labels":{"op":"is","value":"animal"}}]')
        page.goto(f"/d/early/pictures?f={animals}")
        expect(page.locator(".tile.shown").first).to_be_visible()
        second.opened.set()
        expect(bar).to_have_count(0)
        shown = len(dataset.where(vql.labels("animal")))
        expect(page.locator(".count")).to_have_text(f"{shown} of {len(NAMES)} images")
        assert len(dataset.view) == len(NAMES)
    finally:
        first.opened.set()
        second.opened.set()


@pytest.mark.slow
def test_events__that_come_late(own_site: Site, open_page: Open) -> None:
    """What happens after the page has read what there is, and before the server's events reach it, is shown too."""
    page = open_page(own_site, allowed=("409",))
    waiting: list[Route] = []
    page.route("**/api/v1/events", lambda way: waiting.append(way))  # noqa: PLW0108 - it looks at the signature
    page.goto("about:blank")
    waiting.clear()  # of the first page, which may ask late
    with all_threads_busy(own_site.workspace):
        dataset = own_site.workspace.create_dataset("new", own_site.gallery, wait=False)
        with page.expect_request("**/api/v1/events"):
            page.goto("/d/new")
        expect(page.get_by_role("progressbar", name="Indexing")).to_be_visible()
        task = dataset.task
        assert task is not None
        task.abort()
        waiting.pop().continue_()
        expect(page.get_by_role("alert")).to_contain_text("Creation of new was aborted.")
    with page.expect_request("**/api/v1/events"):
        page.goto("/d/pets/history")
    expect(page.get_by_text("Nothing was changed yet")).to_be_visible()
    own_site.dataset.tag([own_site.dataset.view.media_ids()[0]], "late")
    waiting.pop().continue_()
    expect(page.get_by_role("rowheader", name="Tag")).to_be_visible()


@pytest.mark.slow
def test_creation__that_was_aborted(own_site: Site, open_page: Open) -> None:
    """A creation is aborted from the page, which then says so and starts it again."""
    with all_threads_busy(own_site.workspace):
        dataset = own_site.workspace.create_dataset("new", own_site.gallery, wait=False)
        page = open_page(own_site, "/d/new", allowed=("409",))
        page.locator("main").get_by_role("button", name="Abort").click()
        alert = page.get_by_role("alert")
        expect(alert).to_contain_text("Creation of new was aborted.")
        page_says("Creation of new was aborted.")(page)
        page.get_by_role("link", name="Tasks").last.click()
        expect(page.get_by_role("row", name="Creation new")).to_contain_text("ABORTED")
        page.go_back()
    alert.get_by_role("button", name="Retry").click()
    expect(alert).to_have_count(0)
    expect(page.get_by_role("heading", name="Findings")).to_be_visible()
    expect(page.locator(".finding").first).to_be_visible()
    assert str(dataset.info.status_new) == "READY"


@pytest.mark.slow
def test_edit__while_a_task_holds_the_dataset(own_site: Site, open_page: Open) -> None:
    """A conflict names the task that holds the dataset, or says that another edit came first."""
    page = open_page(own_site, "/d/pets/pictures", allowed=("409", "500"))
    first_image(page)
    page.route("**/actions", answer(409, "the labels have changed"), times=1)
    page.keyboard.press("x")
    page_says("Not changed, because somebody else changed it meanwhile: the labels have changed")(page)
    all_saved(page)
    page.route("**/actions", answer(409, "Operation 'basket' is blocked while REINDEX task is running"), times=1)
    page.keyboard.press("x")
    page_says("REINDEX task is running. Wait for it, or abort it in the list of tasks: G T")(page)
    all_saved(page)
    for path in ("dataset/*", "datasets"):  # the page does not learn that it is locked
        page.route(f"**/api/v1/{path}", answer(500, "not now"))
    write(own_site.gallery / "more.jpg", photo(900))
    with all_threads_busy(own_site.workspace):
        adding = own_site.dataset.add_media(own_site.gallery, wait=False)
        expect(page.get_by_text("Addition 0 %")).to_be_visible()
        page.keyboard.press("x")
        page_says("Not changed: an addition of pets is running. Wait for it, or abort it in the list of tasks")(page)
        expect(page.get_by_role("gridcell").first).not_to_have_accessible_name(re.compile("basket"))
    adding.wait(PATIENCE_S)
    assert own_site.dataset.basket.count() == 0


@pytest.mark.slow
def test_enrichment__locks_its_source(own_site: Site, open_page: Open) -> None:
    """While a dataset is enriched the page says that it is read only, and keys that change something say why not."""
    register_models(own_site.workspace, Hues())
    page = open_page(own_site, "/d/pets/pictures")
    first_image(page)
    locked = "READ ONLY: an enrichment of pets is running"
    with all_threads_busy(own_site.workspace):
        enriched = own_site.dataset.enrich(ENCODE, wait=False)
        expect(page.locator(".lock")).to_contain_text(locked)
        page.keyboard.press("x")
        expect(page.locator(".message")).to_have_text(locked)
    wait_until(lambda: enriched.info.status_new == "READY")
    expect(page.locator(".lock")).to_have_count(0)
    assert own_site.dataset.basket.count() == 0
