"""People in a browser: what they may do, log-ins, sharing, notifications, accounts, users."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import argon2
import pytest
from playwright.sync_api import Page, expect

from framedex import Workspace
from framedex.access import Role, operator_actor
from framedex.hub import Hub
from framedex.service.settings import ServiceSettings
from framedex.storage.service_db.database import DEFAULT_ID
from tests.browser.site import Site, first_image
from tests.gallery import SETTINGS, fill, make_gallery
from tests.service.live import live_service

Open = Callable[..., Page]
OPERATOR = operator_actor("operator")
PASSWORD = "correct horse"
HOSTILE = "<img src=x onerror=alert(1)>"
MAY_LOOK = "You may look at this dataset, but not change it."


@pytest.fixture(scope="module")
def cheap_passwords() -> Iterator[None]:
    """Hashes of passwords that take no time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(argon2.profiles, "RFC_9106_LOW_MEMORY", argon2.profiles.CHEAPEST)
        yield


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory, cheap_passwords: None) -> Iterator[Site]:
    """A service with log-ins: ann is its admin, vic a viewer, and gus a member of another workspace."""
    home = tmp_path_factory.mktemp("people")
    make_gallery(home / "gallery")
    with Workspace(home / "ws", settings=SETTINGS) as workspace, Hub(workspace) as hub:
        ann = hub.users.create(OPERATOR, "ann", PASSWORD, role=Role.ADMIN, email="ann@example.org")
        hub.users.create(OPERATOR, "vic", PASSWORD, role=Role.VIEWER, email="vic@example.org")
        guests = hub.tenants.create(OPERATOR, "guests")
        hub.users.create(OPERATOR, "gus", PASSWORD, role=Role.VIEWER, email="gus@example.org", tenant_id=guests.id)
        dataset = workspace.create_dataset("pets", home / "gallery")
        hub.datasets.adopt(dataset.id, DEFAULT_ID, ann.id)
        with live_service(workspace, hub, ServiceSettings(disable_auth=False)) as (url, state):
            yield Site(url, workspace, dataset, home / "gallery", state)


def session(site: Site, name: str) -> dict[str, Any]:
    """Return the options of a browser in which a user is logged in."""
    token = site.state.hub.sessions.log_in(name, PASSWORD).token
    return {"storage_state": {"cookies": [{"name": "SESSION", "value": token, "url": site.url}], "origins": []}}


def test_viewer__sees_and_cannot_edit(people: Site, open_page: Open) -> None:
    """Controls that change something say why not, by mouse and by keys, and nothing is changed."""
    before = people.dataset.journal()
    page = open_page(people, "/d/pets/pictures", **session(people, "vic"))
    first_image(page)
    expect(page.locator(".lock")).to_contain_text(MAY_LOOK)
    page.keyboard.press("Space")
    tag = page.get_by_role("button", name="Tag", exact=True)
    expect(tag).to_have_attribute("aria-disabled", "true")
    for key in ("t", "x", "l", "Control+z"):
        page.keyboard.press(key)
        expect(page.get_by_role("status").get_by_text(MAY_LOOK)).to_be_visible()
        expect(page.get_by_role("dialog")).to_have_count(0)
    page.keyboard.press("g")
    page.keyboard.press("v")
    expect(page.get_by_role("heading", name="Saved views")).to_be_visible()
    page.goto("/d/pets/settings")
    expect(page.get_by_label("Name", exact=True)).not_to_be_editable()
    expect(page.get_by_role("button", name="Delete the dataset")).to_have_attribute("aria-disabled", "true")
    assert people.dataset.journal() == before


def test_owner__may_edit(people: Site, open_page: Open) -> None:
    """Nothing is locked for the owner."""
    page = open_page(people, "/d/pets/pictures", **session(people, "ann"))
    first_image(page)
    expect(page.locator(".lock")).to_have_count(0)
    page.keyboard.press("t")
    expect(page.get_by_role("dialog", name="Tag 1 image")).to_be_visible()


@pytest.mark.slow
def test_notification__arrives_live(people: Site, open_page: Open, tmp_path: Path) -> None:
    """New results of a view are told at once, and lead to the view; keys mark them as read, in all pages."""
    name = f"new {HOSTILE}"
    view = people.dataset.save_view(name)
    page = open_page(people, "/", **session(people, "ann"))
    bell = page.get_by_role("link", name="Notifications")
    expect(bell).to_have_accessible_name("Notifications")
    expect(page.get_by_role("link", name="pets")).to_be_visible()
    people.dataset.add_media(fill(tmp_path / "more", 2))
    expect(bell).to_have_accessible_name("Notifications, 1 unread")
    words = f"2 new results of “{name}” in “pets”"
    expect(page.get_by_role("status").get_by_text(words)).to_be_visible()
    page.keyboard.press("g")
    page.keyboard.press("n")
    first = page.get_by_role("link", name=words)
    expect(first).to_be_visible()
    page.keyboard.press("ArrowDown")
    expect(first).to_be_focused()
    page.keyboard.press("r")
    expect(bell).to_have_accessible_name("Notifications")
    expect(page.get_by_text("Unread", exact=True)).to_have_count(0)
    page.keyboard.press("Enter")
    expect(page).to_have_url(f"{people.url}/d/pets/views?view={view.id}")
    expect(page.get_by_role("link", name=name)).to_be_focused()
    page.get_by_role("button", name="Alerts").press("Enter")
    expect(page.get_by_role("status").get_by_text(f"Alerts of {name} are off")).to_be_visible()
    page.get_by_role("button", name="Delete").press("Enter")
    page.keyboard.press("Enter")
    expect(page.get_by_text("There are no saved views yet.")).to_be_visible()
    expect(page.locator("img[onerror]")).to_have_count(0)


@pytest.fixture
def locked(people: Site) -> Iterator[Site]:
    """The same workspace, served read-only and without log-ins."""
    with (
        Workspace(people.workspace.path, read_only=True, settings=SETTINGS) as workspace,
        Hub(workspace) as hub,
        live_service(workspace, hub, ServiceSettings()) as (url, state),
    ):
        yield Site(url, workspace, people.dataset, people.gallery, state)


def test_read_only__service_says_so(locked: Site, open_page: Open) -> None:
    """A service that was started read-only shows a lock on all pages, and keys say why they do nothing."""
    why = "The service was started read-only: nothing can be changed."
    page = open_page(locked, "/")
    expect(page.locator(".lock")).to_contain_text(why)
    expect(page.get_by_role("link", name="New dataset")).to_have_count(0)
    page.goto("/d/pets/pictures")
    first_image(page)
    page.keyboard.press("x")
    expect(page.get_by_role("status").get_by_text(why)).to_be_visible()
