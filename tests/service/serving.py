"""A service that the tests of a module share: its users, and a client for each of them."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from framedex import Dataset, Workspace
from framedex.hub import Hub
from framedex.service.settings import ServiceSettings
from tests.gallery import SETTINGS
from tests.prepared import new_workspace
from tests.service.client import BASE, LOCAL, Client, client_of
from tests.service.users import OPERATOR, ROLES, hub_with_users


@dataclass(frozen=True)
class Serving:
    """A running service.

    Attributes:
        workspace: its workspace.
        hub: its users: an admin, an editor and a viewer of the default tenant.
        local: a client of the same workspace without log-ins.
        nobody: a client that has not logged in.
        ann: a client of the admin.
        eve: a client of the editor.
        vic: a client of the viewer.
    """

    workspace: Workspace
    hub: Hub
    local: Client
    nobody: Client
    ann: Client
    eve: Client
    vic: Client

    def hide(self, dataset: Dataset) -> None:
        """Give a dataset to a tenant of which none of the users is a member."""
        organization = self.hub.tenants.create_organization(OPERATOR, f"of {dataset.id}")
        tenant = self.hub.tenants.create(OPERATOR, "others", organization_id=organization.id)
        self.hub.datasets.adopt(dataset.id, tenant.id, None)


@contextmanager
def serving(folder: Path, settings: ServiceSettings | None = None) -> Iterator[Serving]:
    """Serve a new workspace in a folder."""
    with ExitStack() as stack:
        workspace = stack.enter_context(new_workspace(folder / "ws", SETTINGS))
        hub = stack.enter_context(hub_with_users(workspace))
        own = settings or LOCAL
        local = stack.enter_context(client_of(workspace, hub, own))
        closed = own.model_copy(update={"disable_auth": False})
        nobody = stack.enter_context(client_of(workspace, hub, closed))
        clients = [_further(nobody).log_in(name) for name in ROLES]
        yield Serving(workspace, hub, local, nobody, *clients)


def _further(client: Client) -> Client:
    """Return another client of the same service, with cookies of its own."""
    return Client(client.app, base_url=BASE, raise_server_exceptions=False, client=("127.0.0.1", 50000))
