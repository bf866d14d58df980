"""Each key of the app's table, pressed on a live page, does what the table says."""

import re
import time
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Page, expect

from framedex import Workspace
from framedex.hub import Hub
from framedex.service.settings import ServiceSettings
from tests.browser import test_people
from tests.browser.key_checks import CHECKS, Keyboard
from tests.browser.site import Site
from tests.crowds import create_crowds
from tests.gallery import SETTINGS, fill, make_gallery
from tests.objects import scenes
from tests.prepared import prepared
from tests.service.live import live_service
from tests.videos import numbered, write_video
from tests.web.test_keys import SCOPE_NAMES, rows_of_table

Open = Callable[..., Page]
WITH_LOG_INS = {
    "global go.account": test_people.test_account__sessions_and_api_key,
    "global go.users": test_people.test_users__from_creation_to_deletion,
    "global go.admin": test_people.test_users__from_creation_to_deletion,
    "global share": test_people.test_sharing__until_it_ends,
}
"""The tests that press the keys of rows which need log-ins."""


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A service of duplicates and issues, of wrong labels, of boxes and of a video."""
    home = tmp_path_factory.mktemp("keys")
    make_gallery(home / "gallery")
    scenes(home / "film", 2)
    write_video(home / "film" / "film.webm", numbered(20) + numbered(30, seed=7) + numbered(20, seed=8))
    with Workspace(home / "ws", settings=SETTINGS) as workspace, Hub(workspace) as hub:
        pets = prepared(workspace, "pets", home / "gallery")
        for number in range(1, 10):
            pets.create_tag(f"tag {number}")
        film = workspace.create_dataset("film", home / "film")
        for name in ("one", "two", "three"):
            film.save_view(name)
        film.add_media(fill(home / "more", 1))
        film.reindex()
        create_crowds(workspace, home / "crowds")
        with live_service(workspace, hub, ServiceSettings()) as (url, state):
            yield Site(url, workspace, pets, home / "gallery", state)


def test_rows__have_checks() -> None:
    """Each row of the table has a check, and each check a row."""
    assert sorted(f"{scope} {name}" for scope, name, _, _ in rows_of_table()) == sorted([*CHECKS, *WITH_LOG_INS])


@pytest.mark.slow
@pytest.mark.parametrize("scope", SCOPE_NAMES)
def test_keys__do_what_the_table_says(everything: Site, open_page: Open, scope: str) -> None:
    """Each key of a scope has its effect."""
    film = everything.workspace.dataset("film")
    frames = [row for row in film.view.rows(["media_id", "frame_timestamp"]) if row["frame_timestamp"] is not None]
    frame, boxes = f"/d/film/m/{frames[3]['media_id']}", f"/d/film/m/{film.media_id('000.png')}"
    page = open_page(everything, "/d/pets")
    failed = []
    names = [(name, keys) for row_scope, name, keys, _ in rows_of_table() if row_scope == scope]
    for name, keys in names:
        if f"{scope} {name}" not in CHECKS:
            continue
        for key in keys.split(", "):
            try:
                CHECKS[f"{scope} {name}"](Keyboard(page, key, frame, boxes))
            except AssertionError as error:
                failed.append(f"{scope} {name} ({key}): {error}")
                page.goto("/d/pets")
    assert failed == []


BUSY = """setTimeout(() => {
  console.log("busy");
  const end = performance.now() + 2500;
  while (performance.now() < end);
})"""


@pytest.mark.slow
def test_sequence__on_a_busy_page(everything: Site, open_page: Open) -> None:
    """A sequence is known by when its keys were pressed, however late the page handles them."""
    page = open_page(everything, "/d/pets/history")
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    for _ in range(3):
        start = time.monotonic()
        page.keyboard.press("g")
        with page.expect_console_message(lambda message: message.text == "busy"):
            page.evaluate(BUSY)  # longer than it waits for the next key
        waited = time.monotonic() - start
        page.keyboard.press("x")
        if waited < 1:  # else the machine was too busy to press the next key in time
            break
    expect(page).to_have_url(re.compile("/cleanup$"))
