"""Rights that are taken away: what ends of a session, an API key, a stream and a signed URL, after each event."""

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass

import httpx2
import pytest

from framedex import Dataset, Workspace
from framedex.access import Role
from framedex.hub import Hub
from framedex.service.settings import ServiceSettings
from tests.gallery import SETTINGS, fill
from tests.service.client import token_of
from tests.service.live import live_service
from tests.service.users import OPERATOR, PASSWORD
from tests.tuning import tuned

pytestmark = pytest.mark.slow
API = "/api/v1"


@dataclass
class Held:
    """What a user holds: a session and an API key, each with an open stream, and a signed URL of a thumbnail.

    Attributes:
        hub: the users.
        dataset: a dataset that another user owns and shares with this one.
        name: the name of the user.
        tenant_id: the workspace of users of which the user is an admin.
        session: a client with the cookie of a session.
        key: a client with a token.
        signed: a signed URL.
        streams: threads that read a stream of the session, and one of the key, to the end.
    """

    hub: Hub
    dataset: Dataset
    name: str
    tenant_id: str
    session: httpx2.Client
    key: httpx2.Client
    signed: str
    streams: list[threading.Thread]

    @property
    def user_id(self) -> str:
        """The id of the user."""
        return self.hub.users.find(OPERATOR, self.name).id

    def statuses(self) -> tuple[int, int, int]:
        """Return the statuses of the dataset by the session and by the key, and of the signed URL."""
        path = f"{API}/dataset/{self.dataset.id}"
        with httpx2.Client(base_url=self.session.base_url) as nobody:
            signed = nobody.get(self.signed).status_code
        return self.session.get(path).status_code, self.key.get(path).status_code, signed

    def ended(self, expected: tuple[bool, bool]) -> tuple[bool, bool]:
        """Return whether each stream has ended, once those have that are expected to."""
        for stream, ends in zip(self.streams, expected, strict=True):
            stream.join(20 if ends else 0.5)
        first, second = (not stream.is_alive() for stream in self.streams)
        return first, second


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Hub, Dataset, str]]:
    """A service at a port with a dataset that belongs to a workspace of users, and its address."""
    folder = tmp_path_factory.mktemp("revocation")
    with tuned() as tuning:
        tuning.stream_check_s = 0.1
        tuning.stream_ping_s = 0.05
        with Workspace(folder / "ws", settings=SETTINGS) as workspace, Hub(workspace, is_multi=True) as hub:
            dataset = workspace.create_dataset("pets", fill(folder / "images", 2), "gist")
            with live_service(workspace, hub, ServiceSettings(disable_auth=False)) as (url, _):
                yield hub, dataset, url


def reading(client: httpx2.Client, stack: ExitStack) -> threading.Thread:
    """Return a thread that reads a new stream of notifications, which has begun; the connection ends with the stack."""
    own = stack.enter_context(httpx2.Client(base_url=client.base_url, headers=client.headers, cookies=client.cookies))
    begun = threading.Event()

    def read() -> None:
        with suppress(httpx2.HTTPError), own.stream("GET", f"{API}/notifications/stream") as answer:
            for _ in answer.iter_lines():
                begun.set()

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    assert begun.wait(20), "the stream has not begun"
    return thread


@contextmanager
def holding(site: tuple[Hub, Dataset, str], name: str) -> Iterator[Held]:
    """Yield what a new user holds: an admin of a workspace of users, with whom a dataset of another one is shared."""
    hub, dataset, url = site
    tenant = hub.tenants.create(OPERATOR, f"of {name}")
    hub.users.create(OPERATOR, f"{name}-2", PASSWORD, role=Role.ADMIN, tenant_id=tenant.id)
    hub.users.create(OPERATOR, name, PASSWORD, role=Role.ADMIN, tenant_id=tenant.id)
    hub.datasets.share(OPERATOR, dataset.id, name, Role.EDITOR)
    with ExitStack() as stack:
        session, key = (stack.enter_context(httpx2.Client(base_url=url, timeout=20)) for _ in range(2))
        session.headers["Origin"] = url
        assert session.post(f"{API}/login", json={"username": name, "password": PASSWORD}).status_code == 200
        made = session.post(f"{API}/api_credentials/rotate").json()
        key.headers["Authorization"] = f"Bearer {token_of(made['api_key'], made['api_secret'])}"
        page = session.get(f"{API}/explore/{dataset.id}").json()
        signed = page["clusters"][0]["previews"][0]["media_thumb_uri"]
        streams_of_both = [reading(client, stack) for client in (session, key)]
        yield Held(hub, dataset, name, tenant.id, session, key, signed, streams_of_both)
        for user in hub.users.page(OPERATOR, search=name)[0]:
            if user.username == name:  # it was not deleted; this ends the streams
                hub.users.change(OPERATOR, user.id, enabled=False)
        for thread in streams_of_both:
            thread.join(20)


ALIVE, GONE, CLOSED, HIDDEN = 200, 401, 403, 404
EVENTS: dict[str, tuple[Callable[[Held], object], tuple[int, int, int], tuple[bool, bool]]] = {
    "log-out": (lambda held: held.session.post(f"{API}/logout"), (GONE, ALIVE, ALIVE), (True, False)),
    "log-out by an admin": (
        lambda held: held.hub.users.log_out(OPERATOR, held.user_id), (GONE, ALIVE, ALIVE), (True, False),
    ),
    "demotion of an admin": (
        lambda held: held.hub.tenants.set_role(OPERATOR, held.user_id, Role.EDITOR, tenant_id=held.tenant_id),
        (GONE, ALIVE, ALIVE), (True, False),
    ),
    "reset of the password": (
        lambda held: held.hub.users.reset_password(OPERATOR, held.user_id, "another password"),
        (GONE, CLOSED, CLOSED), (True, True),
    ),
    "disabled": (
        lambda held: held.hub.users.change(OPERATOR, held.user_id, enabled=False), (GONE, GONE, GONE), (True, True),
    ),
    "deleted": (lambda held: held.hub.users.delete(OPERATOR, held.user_id), (GONE, GONE, GONE), (True, True)),
    "rotated key": (
        lambda held: held.session.post(f"{API}/api_credentials/rotate"), (ALIVE, GONE, ALIVE), (False, True),
    ),
    "revoked key": (lambda held: held.session.delete(f"{API}/api_credentials"), (ALIVE, GONE, ALIVE), (False, True)),
    "end of sharing": (
        lambda held: held.hub.datasets.unshare(OPERATOR, held.dataset.id, held.name),
        (HIDDEN, HIDDEN, HIDDEN), (False, False),
    ),
}  # fmt: skip
"""Each event with what is answered afterwards to the session, the key and the signed URL, and which streams end."""


@pytest.mark.parametrize("event", EVENTS)
def test_revocation__of_each_thing(site: tuple[Hub, Dataset, str], event: str) -> None:
    """After each event the next request has what the user still may do, and streams end with what they rest on."""
    happen, statuses, ends = EVENTS[event]
    with holding(site, event.replace(" ", "-")) as held:
        assert (held.statuses(), held.ended((False, False))) == ((ALIVE, ALIVE, ALIVE), (False, False))
        happen(held)
        assert held.statuses() == statuses
        assert held.ended(ends) == ends
