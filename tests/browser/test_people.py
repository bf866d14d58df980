"""People in a browser: what they may do, log-ins, sharing, notifications, accounts, users."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Page, Route, expect

from framedex import Workspace, vql
from framedex.access import Role, operator_actor
from framedex.hub import Hub
from framedex.service.settings import ServiceSettings
from framedex.storage.service_db.database import DEFAULT_ID
from tests.browser.pages import check_accessible
from tests.browser.site import Site, first_image
from tests.gallery import SETTINGS, fill, make_gallery
from tests.prepared import prepared
from tests.service.live import live_service
from tests.service.oidc.provider import hostile_provider

Open = Callable[..., Page]
OPERATOR = operator_actor("operator")
PASSWORD = "correct horse"
HOSTILE = "<img src=x onerror=alert(1)>"
MAY_LOOK = "You may look at this dataset, but not change it."


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A service with log-ins: ann is its admin, vic a viewer, and gus a member of another workspace."""
    home = tmp_path_factory.mktemp("people")
    make_gallery(home / "gallery")
    with Workspace(home / "ws", settings=SETTINGS) as workspace, Hub(workspace) as hub:
        ann = hub.users.create(OPERATOR, "ann", PASSWORD, role=Role.ADMIN, email="ann@example.org")
        hub.users.create(OPERATOR, "vic", PASSWORD, role=Role.VIEWER, email="vic@example.org")
        guests = hub.tenants.create(OPERATOR, "guests")
        hub.users.create(OPERATOR, "gus", PASSWORD, role=Role.VIEWER, email="gus@example.org", tenant_id=guests.id)
        dataset = prepared(workspace, "pets", home / "gallery")
        hub.datasets.adopt(dataset.id, DEFAULT_ID, ann.id)
        with live_service(workspace, hub, ServiceSettings(disable_auth=False)) as (url, state):
            yield Site(url, workspace, dataset, home / "gallery", state)


def session(site: Site, name: str) -> dict[str, Any]:
    """Return the options of a browser in which a user is logged in."""
    token = site.state.hub.sessions.log_in(name, PASSWORD).token
    return {"storage_state": {"cookies": [{"name": "SESSION", "value": token, "url": site.url}], "origins": []}}


@pytest.mark.slow
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


@pytest.mark.slow
def test_owner__may_edit(people: Site, open_page: Open) -> None:
    """Nothing is locked for the owner."""
    page = open_page(people, "/d/pets/pictures", **session(people, "ann"))
    first_image(page)
    expect(page.locator(".lock")).to_have_count(0)
    page.keyboard.press("t")
    expect(page.get_by_role("dialog", name="Tag 1 image")).to_be_visible()


def log_in(page: Page, name: str, password: str = PASSWORD) -> None:
    """Log in by keys, on the page for it."""
    page.get_by_label("Username or e-mail address").focus()
    page.keyboard.type(name)
    page.keyboard.press("Tab")
    page.keyboard.type(password)
    page.keyboard.press("Enter")


@pytest.mark.slow
def test_log_in__leads_to_what_was_asked_for(people: Site, open_page: Open) -> None:
    """Who is not logged in does so first; a wrong password is said to be wrong."""
    page = open_page(people, "/d/pets/history", allowed=("401",))
    expect(page.get_by_role("heading", name="Log in")).to_be_visible()
    log_in(page, "vic", "nothing at all")
    expect(page.get_by_role("alert")).to_have_text("Invalid username or password")
    page.get_by_label("Password").fill("")
    log_in(page, "")
    expect(page).to_have_url(f"{people.url}/d/pets/history")
    expect(page.get_by_role("heading", name="History")).to_be_visible()


@pytest.mark.slow
def test_log_in__with_a_provider(people: Site, open_page: Open) -> None:
    """Where users log in with an identity provider alone, a button leads there and back to what was asked for."""
    with (
        hostile_provider() as provider,
        live_service(
            people.workspace,
            people.state.hub,
            ServiceSettings(disable_auth=False),
            oidc=provider.settings(oidc_only=True),
        ) as (url, state),
    ):
        site = Site(url, people.workspace, people.dataset, people.gallery, state)

        def log_in_there(way: Route) -> None:
            """Answer as if the user had logged in at the provider, to which the service sends the browser."""
            sent = way.fetch(max_redirects=0).headers["location"]
            back = f"{url}/api/v1/oidc/callback?{urlencode(provider.authorize(sent))}"
            way.fulfill(status=302, headers={"Location": back})

        page = open_page(site, "/d/pets/history", allowed=("401",))
        page.route("**/api/v1/oidc/login?*", log_in_there)
        button = page.get_by_role("link", name="Log in with the organization's account")
        expect(button).to_be_visible()
        expect(page.get_by_label("Password")).to_have_count(0)
        button.press("Enter")
        expect(page).to_have_url(f"{url}/d/pets/history")
        expect(page.get_by_role("heading", name="History")).to_be_visible()
        page.context.close()


@pytest.mark.slow
def test_sharing__until_it_ends(people: Site, open_page: Open) -> None:
    """Whoever is invited sees the dataset and cannot change it; after the end of the sharing it is gone."""
    guest = open_page(people, "/d/pets/pictures", allowed=("404",), **session(people, "gus"))
    missing = "There is no dataset “pets” that you may see."
    expect(guest.get_by_text(missing)).to_be_visible()
    owner = open_page(people, "/d/pets", allowed=("404",), **session(people, "ann"))
    expect(owner.get_by_role("heading", name="pets")).to_be_visible()
    owner.keyboard.press("Shift+S")
    dialog = owner.get_by_role("dialog", name="Share “pets”")
    expect(dialog.get_by_text("Owner")).to_be_visible()
    owner.keyboard.type(HOSTILE)
    owner.keyboard.press("Enter")
    expect(dialog.get_by_role("alert")).to_have_text("No registered account has this e-mail address")
    owner.keyboard.press("Control+a")
    owner.keyboard.type("gus@example.org")
    owner.keyboard.press("Enter")
    role = dialog.get_by_label("Role of gus@example.org")
    expect(role).to_have_value("viewer")
    guest.goto("/d/pets/pictures")
    first_image(guest)
    guest.keyboard.press("x")
    expect(guest.get_by_role("status").get_by_text(MAY_LOOK)).to_be_visible()
    role.select_option("editor")
    expect(owner.get_by_role("status").get_by_text("Shared with gus@example.org: may change")).to_be_visible()
    guest.goto("/d/pets/pictures")
    first_image(guest)
    expect(guest.locator(".lock")).to_have_count(0)
    dialog.get_by_role("button", name="Remove gus@example.org").press("Enter")
    expect(role).to_have_count(0)
    guest.keyboard.press("x")
    expect(guest.get_by_text(missing)).to_be_visible()


@pytest.mark.slow
def test_account__sessions_and_api_key(people: Site, open_page: Open) -> None:
    """A user ends another session, gets an API key whose secret is shown once, and logs out everywhere."""
    elsewhere = open_page(people, "/", allowed=("401",), **session(people, "vic"))
    expect(elsewhere.get_by_role("heading", name="Datasets")).to_be_visible()
    page = open_page(people, "/", allowed=("401",), **session(people, "vic"))
    expect(page.get_by_role("heading", name="Datasets")).to_be_visible()
    page.keyboard.press("g")
    page.keyboard.press("y")
    sessions = page.get_by_role("region", name="Where you are logged in")
    expect(sessions.get_by_text("This session")).to_be_visible()
    while (others := sessions.get_by_role("button", name="Log out", exact=True)).count():
        left = others.count()
        others.first.press("Enter")
        expect(others).to_have_count(left - 1)
    elsewhere.keyboard.press("g")
    elsewhere.keyboard.press("t")
    expect(elsewhere.get_by_role("heading", name="Log in")).to_be_visible()
    page.get_by_role("button", name="Show the API key").press("Enter")
    secret = page.get_by_label("Secret")
    expect(page.get_by_text("The secret is shown only now.")).to_be_visible()
    expect(secret).to_be_focused()
    first = secret.input_value()
    page.get_by_role("button", name="Make a new secret").press("Enter")
    expect(page.get_by_role("dialog", name="Make a new secret")).to_be_visible()
    page.keyboard.press("Enter")
    expect(secret).not_to_have_value(first)
    page.reload()
    page.get_by_role("button", name="Show the API key").press("Enter")
    expect(page.get_by_text("The secret was shown when the key was made.")).to_be_visible()
    expect(secret).to_have_count(0)
    page.get_by_role("button", name="Log out everywhere").press("Enter")
    expect(page.get_by_role("dialog", name="Log out everywhere")).to_be_visible()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Log in")).to_be_visible()


@pytest.mark.slow
def test_users__from_creation_to_deletion(people: Site, open_page: Open) -> None:
    """An admin creates a user, who chooses a password; the role is changed, and the user deleted; the audit has it."""
    page = open_page(people, "/", **session(people, "ann"))
    expect(page.get_by_role("heading", name="Datasets")).to_be_visible()
    page.keyboard.press("g")
    page.keyboard.press("u")
    page.get_by_role("button", name="New user").press("Enter")
    expect(page.get_by_role("dialog", name="New user")).to_be_visible()
    for text in ("nia", HOSTILE, "New"):
        page.keyboard.type(text)
        page.keyboard.press("Tab")
    page.get_by_label("Last name").press("Enter")
    dialog = page.get_by_role("dialog", name="Temporary password of nia")
    expect(dialog).to_be_visible()
    password = dialog.get_by_label("Password").input_value()
    page.keyboard.press("Escape")
    expect(page.get_by_role("row", name="nia")).to_contain_text(HOSTILE)
    new = open_page(people, "/", allowed=("401",))
    log_in(new, "nia", password)
    expect(new.get_by_role("heading", name="Choose a password")).to_be_visible()
    new.get_by_label("Password", exact=True).fill(password)
    new.get_by_label("New password, at least 8 characters").fill("a much better one")
    new.keyboard.press("Enter")
    expect(new.get_by_role("link", name="pets")).to_be_visible()
    page.get_by_role("button", name="Manage nia").press("Enter")
    dialog = page.get_by_role("dialog", name="Manage nia")
    dialog.get_by_label("Role").select_option("editor")
    dialog.get_by_role("button", name="Change the role").press("Enter")
    expect(page.get_by_role("row", name="nia")).to_contain_text("Editor")
    page.get_by_role("button", name="Manage nia").press("Enter")
    page.get_by_role("button", name="Delete").press("Enter")
    expect(page.get_by_role("dialog", name="Delete nia")).to_be_visible()
    page.keyboard.press("Enter")
    expect(page.get_by_role("row", name="nia")).to_have_count(0)
    page.keyboard.press("g")
    page.keyboard.press("e")
    audit = page.get_by_role("region", name="Entries of the audit")
    expect(audit.get_by_text("users.delete").first).to_be_visible()
    sharing = page.get_by_label("Datasets may be shared")
    sharing.press("Space")
    expect(page.get_by_role("status").get_by_text("Datasets may be shared: no")).to_be_visible()
    sharing.press("Space")
    expect(page.get_by_role("status").get_by_text("Datasets may be shared: yes")).to_be_visible()
    expect(sharing).to_be_checked()
    expect(page.locator("img[onerror]")).to_have_count(0)


@pytest.mark.slow
@pytest.mark.parametrize(
    "path", ["/account", "/users", "/admin", "/notifications", "/d/pets/views", "/d/pets/settings"]
)
def test_pages__are_accessible(people: Site, open_page: Open, path: str) -> None:
    """Checks by axe find nothing, in both themes, also in the dialogs."""
    page = open_page(people, path, **session(people, "ann"))
    page.get_by_role("heading", level=1).wait_for()
    expect(page.locator(".skeleton")).to_have_count(0)
    if path == "/users":
        page.get_by_role("button", name="Manage vic").press("Enter")
        expect(page.get_by_role("dialog")).to_be_visible()
    if path == "/d/pets/settings":
        page.keyboard.press("Shift+S")
        expect(page.get_by_role("dialog").get_by_text("Owner")).to_be_visible()
    check_accessible(page)


@pytest.mark.slow
def test_log_in__is_accessible(people: Site, open_page: Open) -> None:
    """Checks by axe find nothing on the page for logging in."""
    page = open_page(people, "/login", allowed=("401",))
    page.get_by_role("heading", name="Log in").wait_for()
    check_accessible(page)


@pytest.mark.slow
def test_notification__arrives_live(people: Site, open_page: Open, tmp_path: Path) -> None:
    """New results of a view are told at once, and lead to these; keys mark them as read, in all pages."""
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
    expect(page).to_have_url(re.compile("/d/pets/pictures\\?f=.*batch.*"))
    expect(page.locator(".count")).to_have_text(re.compile("^2 of "))
    batch = view.trend().points[-1].batch
    assert people.dataset.where(vql.batch(batch)).count() == 2
    page.goto(f"/d/pets/views?view={view.id}")
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


@pytest.mark.slow
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
