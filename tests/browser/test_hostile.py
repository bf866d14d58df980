"""Names, labels, tags, captions and fields that try to be more than text."""

from collections.abc import Callable, Iterator
from urllib.parse import quote

import pytest
from playwright.sync_api import Dialog, Page, Response, expect

from framedex import Workspace, vql
from framedex.hub import Hub
from framedex.service.settings import ServiceSettings
from framedex.settings import Settings
from tests.browser.site import Site, all_saved
from tests.image_files import photo, write
from tests.service.live import live_service

Open = Callable[..., Page]
MARKUP = '"><img src=x onerror=alert(1)>'
NAMES = [
    MARKUP,
    "{{1234*5678}}",
    "javascript:alert(1)",
    "ltr \u05d0\u05d1 rtl",
    "😀🖼 rows",
    "' OR 1=1 --",
    "${1234*5678}",
]
TEXTS = [*NAMES, "🏳️‍🌈 \u202egnp", "a\x01b\x1b[31mc", "<script>alert(1)</script>", "long " * 2000]
PAGES = (
    "", "/pictures", "/clusters", "/duplicates", "/labels", "/issues/dark", "/cleanup", "/history", "/views",
    "/settings",
)  # fmt: skip
# Nothing of these is made by the app: each would come from data.
FOREIGN = """() => [
    ...document.querySelectorAll('img[src="x"], script:not([src]), iframe, object, embed'),
    ...document.querySelectorAll('[onerror], [onload], [onclick], [srcdoc]'),
    ...[...document.querySelectorAll('a')].filter((each) => !/^(https?|blob):/.test(each.href)),
].map((each) => each.outerHTML)"""


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A service of a dataset whose every text is hostile, edited by a user with such a name."""
    home = tmp_path_factory.mktemp("hostile")
    folder = home / "images"
    for number, text in enumerate(NAMES):
        write(folder / f"{text.replace('/', '')}.jpg", photo(number))
        write(folder / f"{number} copy.jpg", photo(number), quality=60)
    write(folder / "dark.png", photo(50) // 12)
    settings = Settings(threads=2, user=MARKUP, heartbeat_s=0.2)
    with Workspace(home / "ws", settings=settings) as workspace, Hub(workspace) as hub:
        dataset = workspace.create_dataset(MARKUP, folder)
        ids = dataset.view.media_ids()
        for number, media_id in enumerate(ids):
            dataset.set_labels([media_id], [TEXTS[number % len(TEXTS)]])
            dataset.set_captions({media_id: TEXTS[(number + 3) % len(TEXTS)]})
        for name in NAMES:
            dataset.tag(ids[:2], name)
        dataset.snapshot(MARKUP)
        dataset.save_view(MARKUP, dataset.where(vql.tags(MARKUP)))
        with live_service(workspace, hub, ServiceSettings()) as (url, state):
            yield Site(url, workspace, dataset, folder, state)


def watched(page: Page) -> list[str]:
    """Return a list of what must not happen in a page, which grows when it does."""
    problems: list[str] = []

    def dismiss(dialog: Dialog) -> None:
        problems.append(f"a dialog says {dialog.message}")
        dialog.dismiss()

    def policy(response: Response) -> None:
        if response.headers.get("content-type", "").startswith("text/html"):
            found = response.headers.get("content-security-policy", "")
            if "default-src 'self'" not in found or "unsafe" in found:
                problems.append(f"{response.url} has the policy {found!r}")

    page.on("dialog", dismiss)
    page.on("response", policy)
    return problems


@pytest.mark.slow
@pytest.mark.parametrize("part", PAGES)
def test_pages__with_hostile_texts(hostile: Site, open_page: Open, part: str) -> None:
    """No page makes an element, an attribute or a link out of data, none shows a dialog or logs an error."""
    page = open_page(hostile, "/")
    problems = watched(page)
    page.goto(f"/d/{quote(MARKUP, safe='')}{part}")
    page.get_by_role("heading", level=1).wait_for(state="attached")
    expect(page.locator("main [aria-busy=true]")).to_have_count(0)
    page.wait_for_load_state("networkidle") if part != "/pictures" else page.get_by_role("gridcell").first.wait_for()
    assert page.evaluate(FOREIGN) == []
    assert "7006652" not in page.locator("body").inner_text(), "a template was evaluated"
    assert problems == []


@pytest.mark.slow
def test_editing__with_hostile_texts(hostile: Site, open_page: Open) -> None:
    """Hostile texts are typed into every field of the images page, shown in it as they are, and stored as they are."""
    dataset = hostile.dataset
    # A search with one quotation mark is refused.
    page = open_page(hostile, f"/d/{quote(MARKUP, safe='')}/pictures", allowed=("422",))
    problems = watched(page)
    first = page.get_by_role("gridcell").first
    first.locator("img").wait_for()
    first.focus()
    page.keyboard.press("Enter")
    page.get_by_role("heading", level=1).wait_for()
    media_id = page.url.partition("/m/")[2].partition("?")[0]
    page.keyboard.press("w")
    page.get_by_role("textbox", name="Caption").fill(MARKUP)
    page.keyboard.press("Enter")
    expect(page.get_by_text("Changed the caption of 1 image")).to_be_visible()
    all_saved(page)
    assert dataset.media_item(media_id).caption == MARKUP
    assert page.evaluate(FOREIGN) == []
    filters = quote(f'[{{"tags":{{"op":"is","value":"{MARKUP[2:]}"}}}}]')
    page.goto(f"/d/{quote(MARKUP, safe='')}/pictures?f={filters}&q={quote(MARKUP)}")
    expect(page.get_by_role("searchbox")).to_have_value(MARKUP)
    expect(page.locator(".chip").first).to_contain_text(MARKUP[2:])
    assert page.evaluate(FOREIGN) == []
    page.keyboard.press("Control+k")
    page.get_by_role("dialog").wait_for()
    page.keyboard.type(MARKUP)
    assert page.evaluate(FOREIGN) == []
    assert problems == []
    assert dataset.where(vql.tags(MARKUP)).count() == 2


@pytest.mark.slow
def test_addresses__that_are_hostile(hostile: Site, open_page: Open) -> None:
    """Parts of an address are text, too."""
    page = open_page(hostile, "/", allowed=("4",))
    problems = watched(page)
    for path in (
        f"/d/{quote('<img src=x onerror=alert(1)>')}",
        f"/d/x/pictures?f={quote(MARKUP)}",
        f"/{quote(MARKUP)}",
    ):
        page.goto(path)
        page.wait_for_load_state("networkidle")
        assert page.evaluate(FOREIGN) == []
    assert problems == []
