"""A sequence of changes of people in a hub, and all that is stored of them.

Changes are of users, roles, members, shares, keys, sessions, and of the homes of datasets. Datasets are in the catalog,
and to whom they belong is in the service's database; a user may have an account at an identity provider, which is a
file here, or log in with OpenID Connect. Accounts in the second tenant too are changed by the operator: who has no role
there may not.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import argon2

from framedex import Workspace
from framedex.access import Actor, Role, Via
from framedex.errors import NotAuthenticated
from framedex.hub import ExternalRules, Hub, LocalProvider, NewAccount, VerifiedIdentity
from framedex.storage.database import Database
from tests.hub.people import OPERATOR, PASSWORD
from tests.inside import hub_context
from tests.kill.moments import Moment, watch_writes

State = dict[str, Any]
Step = Callable[[Hub], str | None]
_OTHER = "battery staple"
_SECOND, _PROVIDED = "second", "provided-pia"
_HUBS = dict[str, Hub]()
_ALONE = "the hub of this process"


def _id(hub: Hub, name: str) -> str:
    return str(hub.users.find(OPERATOR, name).id)


def _actor(hub: Hub, name: str) -> Actor:
    """Return a user in the present session, or as if in one, as a new one would be a change."""
    session = next(iter(hub.users.sessions(OPERATOR, _id(hub, name))), None)
    session_id = None if session is None else session.id
    return replace(hub.sessions.actor_of_user(_id(hub, name)), via=Via.SESSION, session_id=session_id)


def _tenant(hub: Hub, name: str) -> str:
    return str(hub.tenants.find(OPERATOR, name).id)


def _dataset(hub: Hub, name: str) -> str:
    return next(str(each.id) for each in hub.datasets.visible(OPERATOR) if each.display_name == name)


def _user(name: str, role: Role, actor: str | None = None) -> Step:
    def create(hub: Hub) -> None:
        who = OPERATOR if actor is None else _actor(hub, actor)
        hub.users.create(who, name, PASSWORD, email=f"{name}@example.org", role=role)

    return create


def _role(actor: str, name: str, role: Role) -> Step:
    return lambda hub: _nothing(hub.tenants.set_role(_actor(hub, actor), _id(hub, name), role))


def _share(actor: str, dataset: str, name: str, role: Role) -> Step:
    return lambda hub: hub.datasets.share(_actor(hub, actor), _dataset(hub, dataset), name, role)


def _create(actor: str, dataset: str) -> Step:
    return lambda hub: _nothing(hub.datasets.create(_actor(hub, actor), dataset))


def _delete(actor: str, dataset: str) -> Step:
    return lambda hub: hub.datasets.delete(_actor(hub, actor), _dataset(hub, dataset))


def _log_in(name: str) -> Step:
    return lambda hub: str(hub.sessions.log_in(name, PASSWORD).token)


def _log_in_with_oidc(subject: str) -> Step:
    def log_in(hub: Hub) -> str:
        address = f"{subject}@example.com"
        identity = VerifiedIdentity("https://idp.example.org", subject, subject, address, email_verified=True)
        return str(hub.external.log_in(identity, ExternalRules(Role.EDITOR)).token)

    return log_in


class FileProvider(LocalProvider):
    """An identity provider whose accounts are lines of a file."""

    issuer = "https://accounts.example.org"

    def __init__(self, path: Path) -> None:
        self._path = path

    def names(self) -> list[str]:
        """Return the names of the accounts."""
        return self._path.read_text().split() if self._path.exists() else []

    def create(self, account: NewAccount) -> str | None:
        """Create an account if its name says that it is one of this provider; return its id."""
        if not account.username.startswith("provided-"):
            return None
        self._write([*self.names(), account.username])
        return str(account.username)

    def delete(self, identity: str) -> None:
        """Delete an account."""
        self._write([name for name in self.names() if name != identity])

    def _write(self, names: list[str]) -> None:
        partial = self._path.with_suffix(".partial")
        partial.write_text("\n".join(names))
        partial.replace(self._path)


def _nothing(_value: object) -> None:
    """Return None, in the place of a value."""


STEPS: dict[str, Step] = {
    "create an admin": _user("ann", Role.ADMIN),
    "create an editor": _user("bob", Role.EDITOR, "ann"),
    "create a viewer": _user("cleo", Role.VIEWER, "ann"),
    "create another editor": _user("dora", Role.EDITOR, "ann"),
    "log in": _log_in("ann"),
    "log in as an editor": _log_in("bob"),
    "log in as a viewer": _log_in("cleo"),
    "make a key": lambda hub: _nothing(hub.credentials.get(_actor(hub, "bob"))),
    "create a dataset": _create("bob", "pets"),
    "create another dataset": _create("bob", "birds"),
    "create a third dataset": _create("dora", "fish"),
    "share": _share("bob", "pets", "cleo", Role.EDITOR),
    "share with an editor": _share("dora", "fish", "bob", Role.EDITOR),
    "share again": _share("ann", "pets", "cleo", Role.VIEWER),
    "share once more": _share("ann", "fish", "cleo", Role.EDITOR),
    "add a member": lambda hub: _nothing(hub.tenants.add_member(OPERATOR, _tenant(hub, _SECOND), "dora", Role.EDITOR)),
    "promote an editor": _role("ann", "bob", Role.ADMIN),
    "log in as the new admin": _log_in("bob"),
    "rotate the key": lambda hub: _nothing(hub.credentials.rotate(_actor(hub, "bob"))),
    "make a viewer an editor": _role("bob", "cleo", Role.EDITOR),
    "demote to a viewer": _role("bob", "dora", Role.VIEWER),
    "log in as the former admin": _log_in("dora"),
    "rename": lambda hub: _nothing(hub.users.change(OPERATOR, _id(hub, "dora"), username="dorothy")),
    "realm roles": lambda hub: _nothing(hub.users.set_roles(_actor(hub, "bob"), _id(hub, "cleo"), ["manage-users"])),
    "reset a password": lambda hub: hub.users.reset_password(OPERATOR, _id(hub, "dorothy"), PASSWORD),
    "log in with it": _log_in("dorothy"),
    "change the password": lambda hub: str(
        hub.sessions.change_password(_actor(hub, "dorothy"), PASSWORD, _OTHER).token  # its first session ends
    ),
    "log out": lambda hub: hub.users.log_out(OPERATOR, _id(hub, "dorothy")),
    "take a share back": lambda hub: hub.datasets.unshare(_actor(hub, "bob"), _dataset(hub, "pets"), "cleo"),
    "disable": lambda hub: _nothing(hub.users.change(OPERATOR, _id(hub, "dorothy"), enabled=False)),
    "enable": lambda hub: _nothing(hub.users.change(OPERATOR, _id(hub, "dorothy"), enabled=True)),
    "create a dataset as an editor": _create("cleo", "owls"),
    "delete a user who owns a dataset": lambda hub: hub.users.delete(_actor(hub, "bob"), _id(hub, "cleo")),
    "delete a shared dataset": _delete("bob", "fish"),
    "delete a dataset": _delete("bob", "birds"),
    "log in with OIDC": _log_in_with_oidc("oda"),
    "create a dataset with OIDC": _create("oda", "hens"),
    "log in again with OIDC": _log_in_with_oidc("oda"),
    "delete a user of OIDC": lambda hub: hub.users.delete(_actor(hub, "bob"), _id(hub, "oda")),
    "promote back": lambda hub: _nothing(hub.tenants.set_role(OPERATOR, _id(hub, "ann"), Role.ADMIN)),
    "revoke the key": lambda hub: hub.credentials.revoke(_actor(hub, "bob")),
    "delete a user of a provider": lambda hub: hub.users.delete(OPERATOR, _id(hub, _PROVIDED)),
    "delete a user": lambda hub: hub.users.delete(_actor(hub, "ann"), _id(hub, "bob")),
}
NAMES = list(STEPS)


def quicken() -> None:
    """Make hashes of passwords quick, before the workspace of a process is opened."""
    argon2.profiles.RFC_9106_LOW_MEMORY = argon2.profiles.CHEAPEST


def open_hub(workspace: Workspace, *, is_multi: bool) -> Hub:
    """Return the hub of a workspace, with a provider beside it."""
    return Hub(workspace, is_multi=is_multi, provider=FileProvider(workspace.path.parent / "provider.txt"))


def prepare(workspace: Workspace) -> None:
    """Make what all sequences begin with: a second tenant, its admin, and a user of the provider with a dataset."""
    with open_hub(workspace, is_multi=False) as hub:
        second = hub.tenants.create(OPERATOR, _SECOND)
        hub.users.create(OPERATOR, "zoe", PASSWORD, role=Role.ADMIN, tenant_id=second.id)
        hub.users.create(OPERATOR, _PROVIDED, PASSWORD, role=Role.EDITOR, tenant_id=second.id)
        hub.datasets.create(_actor(hub, _PROVIDED), "geese")


def begin(workspace: Workspace, is_multi: bool, moment: Moment) -> None:
    """Open the hub of this process, which ends itself at a moment."""
    _HUBS[_ALONE] = open_hub(workspace, is_multi=is_multi)
    watch_writes(Database, moment)


def take(_workspace: Workspace, name: str) -> str | None:
    """Take a step in this process; return the token of the session that it opens."""
    return STEPS[name](_HUBS[_ALONE])


def state_of(hub: Hub, tokens: dict[str, str]) -> State:
    """Return all that is stored of people, by names in the place of ids; tokens are of sessions, by their steps."""
    with hub._database.read() as connection:
        rows = {name: connection.exec_driver_sql(query).all() for name, query in _QUERIES.items()}
        faults = connection.exec_driver_sql("PRAGMA foreign_key_check").all()
        assert not faults, f"references to rows that do not exist: {faults}"
    state: State = {name: sorted(map(list, found), key=repr) for name, found in rows.items() if name != "audit"}
    state["audit"] = [list(each) for each in rows["audit"]]
    state["passwords"] = {
        user.username: [hub_context(hub).passwords.matches(_hash_of(hub, user.id), each) for each in (PASSWORD, _OTHER)]
        for user in hub.users.page(OPERATOR)[0]
    }
    state["sessions"] = {
        user.username: len(hub.users.sessions(OPERATOR, user.id)) for user in hub.users.page(OPERATOR)[0]
    }
    state["datasets"] = sorted(
        [each.display_name, [f"{member.email} {member.role}" for member in hub.datasets.members(OPERATOR, each.id)]]
        for each in hub.datasets.visible(OPERATOR)
    )
    provider = hub.users._provider
    assert isinstance(provider, FileProvider)
    state["provider"] = provider.names()
    state["tokens"] = {name: _is_live(hub, token) for name, token in tokens.items()}
    return state


_QUERIES = {
    "identities": "SELECT issuer, subject, username FROM identities JOIN users ON users.id = user_id",
    "begun deletions": "SELECT user_id FROM user_deletions",
    "users": "SELECT username, email, enabled, password_temporary FROM users",
    "realm roles": "SELECT username, role FROM user_roles JOIN users ON users.id = user_id",
    "members": "SELECT name, username, role, is_primary FROM memberships"
    " JOIN users ON users.id = user_id JOIN tenants ON tenants.id = tenant_id",
    "grants": "SELECT username, role, count(*) FROM grants JOIN users ON users.id = user_id GROUP BY 1, 2",
    "homes": "SELECT name, username, count(*) FROM dataset_homes JOIN tenants ON tenants.id = tenant_id"
    " LEFT JOIN users ON users.id = owner_id GROUP BY 1, 2",
    "keys": "SELECT username, version, revoked_at IS NOT NULL FROM api_keys JOIN users ON users.id = user_id",
    "audit": "SELECT action, outcome FROM audit ORDER BY rowid",
}


def _hash_of(hub: Hub, user_id: str) -> Any:
    with hub._database.read() as connection:
        return connection.exec_driver_sql("SELECT password_hash FROM users WHERE id = ?", (user_id,)).scalar()


def _is_live(hub: Hub, token: str) -> bool:
    try:
        hub.sessions.actor(token)
    except NotAuthenticated:
        return False
    return True


def known(state: State, tokens: dict[str, str]) -> State:
    """Return a state with the tokens that were sent alone."""
    return {**state, "tokens": {name: state["tokens"].get(name) for name in tokens}}


def difference(state: State, other: State) -> str:
    keys = [key for key in state if state[key] != other[key]]
    return ", ".join(f"{key}: {str(state[key])[-200:]} / {str(other[key])[-200:]}" for key in keys)
