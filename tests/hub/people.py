"""People for tests of hubs: a clock that the test moves, accounts by name, and a provider that fails on request."""

from datetime import UTC, datetime, timedelta

from framedex import Error
from framedex.access import Actor, Role, operator_actor
from framedex.hub import Hub, NewAccount
from framedex.records import User
from framedex.storage.service_db.database import DEFAULT_ID

OPERATOR = operator_actor("operator@example.org")
PASSWORD = "correct horse"


class Clock:
    """A clock that stands still until a test moves it."""

    def __init__(self) -> None:
        self.time = datetime(2030, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.time

    def move(self, **by: float) -> None:
        """Move the clock by so much time, as for timedelta."""
        self.time += timedelta(**by)


class Provider:
    """An identity provider in memory.

    Attributes:
        accounts: the present accounts by their ids: username, password, whether they may log in.
        calls: the names of the methods that were called.
        failing: the names of the methods that raise, having done nothing.
    """

    issuer = "https://idp.example.org"

    def __init__(self) -> None:
        self.accounts: dict[str, tuple[str, str, bool]] = {}
        self.calls: list[str] = []
        self.failing = set[str]()

    def _call(self, name: str) -> None:
        self.calls.append(name)
        if name in self.failing:
            raise Error(f"the provider cannot {name}")

    def create(self, account: NewAccount) -> str | None:
        self._call("create")
        identity = f"id-{len(self.calls)}"
        self.accounts[identity] = (account.username, account.password, account.enabled)
        return identity

    def rename(self, identity: str, username: str) -> None:
        self._call("rename")
        self.accounts[identity] = (username, *self.accounts[identity][1:])

    def enable(self, identity: str, *, enabled: bool) -> None:
        self._call("enable")
        self.accounts[identity] = (*self.accounts[identity][:2], enabled)

    def set_password(self, identity: str, password: str) -> None:
        self._call("set_password")
        username, _, enabled = self.accounts[identity]
        self.accounts[identity] = (username, password, enabled)

    def log_out(self, identity: str) -> None:
        self._call("log_out")

    def delete(self, identity: str) -> None:
        self._call("delete")
        self.accounts.pop(identity, None)


def add_user(
    hub: Hub, name: str, role: str = "viewer", *, tenant_id: str = DEFAULT_ID, email: str | None = None
) -> User:
    """Create a user with the usual password, as the operator does."""
    return hub.users.create(OPERATOR, name, PASSWORD, role=Role(role), tenant_id=tenant_id, email=email)


def log_in(hub: Hub, name: str) -> Actor:
    """Return the actor of a new session."""
    return hub.sessions.actor(hub.sessions.log_in(name, PASSWORD).token)


def roles(hub: Hub, tenant_id: str = DEFAULT_ID) -> dict[str, str]:
    """Return the roles of the members of a tenant by username."""
    return {member.username: member.role for member in hub.tenants.members(OPERATOR, tenant_id)}
