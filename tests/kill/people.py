"""Kills in the middle of changes of people: each change is there as a whole or not at all, and the rest can be done.

A process makes a sequence of changes in a hub: of users, roles, members, shares, keys, sessions, and of the homes of
datasets. It is ended by SIGKILL at a random moment, or by its own hand before, within or after one of its transactions.
A second process opens the workspace, sweeps it, and compares all that is stored with what an undisturbed
run had before and after the step that was interrupted. Then it makes the remaining changes, and the end must be that of
the undisturbed run.

Datasets are in the catalog, and to whom they belong is in the service's database; a user may have an account at an
identity provider, which is a file here, or log in with OpenID Connect. A creation or a deletion that was killed between
two places is finished when the workspace is opened again.
"""

import argparse
import importlib
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from common import save, table
from kill import Child, Point, result_of, watch_writes

State = dict[str, Any]
Step = Callable[[Any], str | None]
_PASSWORDS = ("correct horse", "battery staple")
_PLACES = ("before", "in", "after")
_SECOND, _PROVIDED = "second", "provided-pia"


def _operator() -> Any:
    from framedex.access import operator_actor

    return operator_actor("operator")


def _id(hub: Any, name: str) -> str:
    return str(hub.users.find(_operator(), name).id)


def _actor(hub: Any, name: str) -> Any:
    """Return a user in the present session, or as if in one, as a new one would be a change."""
    from framedex.access import Via

    session = next(iter(hub.users.sessions(_operator(), _id(hub, name))), None)
    session_id = None if session is None else session.id
    return replace(hub.sessions.actor_of_user(_id(hub, name)), via=Via.SESSION, session_id=session_id)


def _tenant(hub: Any, name: str) -> str:
    return str(hub.tenants.find(_operator(), name).id)


def _dataset(hub: Any, name: str) -> str:
    return next(str(each.id) for each in hub.datasets.visible(_operator()) if each.display_name == name)


def _user(name: str, role: str, actor: str | None = None) -> Step:
    def create(hub: Any) -> None:
        who = _operator() if actor is None else _actor(hub, actor)
        hub.users.create(who, name, _PASSWORDS[0], email=f"{name}@example.org", role=role)

    return create


def _role(actor: str, name: str, role: str) -> Step:
    return lambda hub: _nothing(hub.tenants.set_role(_actor(hub, actor), _id(hub, name), role))


def _share(actor: str, dataset: str, name: str, role: str) -> Step:
    return lambda hub: _nothing(hub.datasets.share(_actor(hub, actor), _dataset(hub, dataset), name, role))


def _create(actor: str, dataset: str) -> Step:
    return lambda hub: _nothing(hub.datasets.create(_actor(hub, actor), dataset))


def _delete(actor: str, dataset: str) -> Step:
    return lambda hub: _nothing(hub.datasets.delete(_actor(hub, actor), _dataset(hub, dataset)))


def _log_in(name: str) -> Step:
    return lambda hub: str(hub.sessions.log_in(name, _PASSWORDS[0]).token)


def _log_in_with_oidc(subject: str) -> Step:
    def log_in(hub: Any) -> str:
        from framedex.access import Role
        from framedex.hub import ExternalRules, VerifiedIdentity

        address = f"{subject}@example.com"
        identity = VerifiedIdentity("https://idp.example.org", subject, subject, address, email_verified=True)
        return str(hub.external.log_in(identity, ExternalRules(Role.EDITOR)).token)

    return log_in


class FileProvider:
    """An identity provider whose accounts are lines of a file."""

    issuer = "https://accounts.example.org"

    def __init__(self, path: Path) -> None:
        self._path = path

    def names(self) -> list[str]:
        """Return the names of the accounts."""
        return self._path.read_text().split() if self._path.exists() else []

    def create(self, account: Any) -> str | None:
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
    "create an admin": _user("ann", "admin"),
    "create an editor": _user("bob", "editor", "ann"),
    "create a viewer": _user("cleo", "viewer", "ann"),
    "create another editor": _user("dora", "editor", "ann"),
    "log in": _log_in("ann"),
    "log in as an editor": _log_in("bob"),
    "log in as a viewer": _log_in("cleo"),
    "make a key": lambda hub: _nothing(hub.credentials.get(_actor(hub, "bob"))),
    "create a dataset": _create("bob", "pets"),
    "create another dataset": _create("bob", "birds"),
    "create a third dataset": _create("dora", "fish"),
    "share": _share("bob", "pets", "cleo", "editor"),
    "share with an editor": _share("dora", "fish", "bob", "editor"),
    "share again": _share("ann", "pets", "cleo", "viewer"),
    "share once more": _share("ann", "fish", "cleo", "editor"),
    "add a member": lambda hub: _nothing(hub.tenants.add_member(_operator(), _tenant(hub, _SECOND), "dora", "editor")),
    "promote an editor": _role("ann", "bob", "admin"),
    "log in as the new admin": _log_in("bob"),
    "rotate the key": lambda hub: _nothing(hub.credentials.rotate(_actor(hub, "bob"))),
    "make a viewer an editor": _role("bob", "cleo", "editor"),
    "demote to a viewer": _role("bob", "dora", "viewer"),
    "log in as the former admin": _log_in("dora"),
    "rename": lambda hub: _nothing(hub.users.change(_actor(hub, "bob"), _id(hub, "dora"), username="dorothy")),
    "realm roles": lambda hub: _nothing(hub.users.set_roles(_actor(hub, "bob"), _id(hub, "cleo"), ["manage-users"])),
    "reset a password": lambda hub: hub.users.reset_password(_actor(hub, "bob"), _id(hub, "dorothy"), _PASSWORDS[0]),
    "log in with it": _log_in("dorothy"),
    "change the password": lambda hub: str(
        hub.sessions.change_password(_actor(hub, "dorothy"), *_PASSWORDS).token  # its first session ends
    ),
    "log out": lambda hub: hub.users.log_out(_actor(hub, "bob"), _id(hub, "dorothy")),
    "take a share back": lambda hub: hub.datasets.unshare(_actor(hub, "bob"), _dataset(hub, "pets"), "cleo"),
    "disable": lambda hub: _nothing(hub.users.change(_actor(hub, "bob"), _id(hub, "dorothy"), enabled=False)),
    "enable": lambda hub: _nothing(hub.users.change(_actor(hub, "bob"), _id(hub, "dorothy"), enabled=True)),
    "create a dataset as an editor": _create("cleo", "owls"),
    "delete a user who owns a dataset": lambda hub: hub.users.delete(_actor(hub, "bob"), _id(hub, "cleo")),
    "delete a shared dataset": _delete("bob", "fish"),
    "delete a dataset": _delete("bob", "birds"),
    "log in with OIDC": _log_in_with_oidc("oda"),
    "create a dataset with OIDC": _create("oda", "hens"),
    "log in again with OIDC": _log_in_with_oidc("oda"),
    "delete a user of OIDC": lambda hub: hub.users.delete(_actor(hub, "bob"), _id(hub, "oda")),
    "promote back": lambda hub: _nothing(hub.tenants.set_role(_operator(), _id(hub, "ann"), "admin")),
    "revoke the key": lambda hub: hub.credentials.revoke(_actor(hub, "bob")),
    "delete a user of a provider": lambda hub: hub.users.delete(_actor(hub, "ann"), _id(hub, _PROVIDED)),
    "delete a user": lambda hub: hub.users.delete(_actor(hub, "ann"), _id(hub, "bob")),
}
NAMES = list(STEPS)


def _open(home: Path, is_multi: bool) -> tuple[Any, Any]:
    """Return the workspace and the hub, with quick hashes of passwords."""
    import argon2

    import framedex
    from framedex.hub import Hub

    argon2.profiles.RFC_9106_LOW_MEMORY = argon2.profiles.CHEAPEST
    workspace = framedex.Workspace(home / "workspace")
    return workspace, Hub(workspace, is_multi=is_multi, provider=FileProvider(home / "provider.txt"))  # type: ignore[arg-type] # two of its methods


def send_prepared(connection: Connection, home: Path) -> None:
    """Make the workspace with which all runs begin."""
    _, hub = _open(home, False)
    second = hub.tenants.create(_operator(), _SECOND)
    hub.users.create(_operator(), "zoe", _PASSWORDS[0], role="admin", tenant_id=second.id)
    hub.users.create(_operator(), _PROVIDED, _PASSWORDS[0], role="editor", tenant_id=second.id)
    hub.datasets.create(_actor(hub, _PROVIDED), "geese")
    connection.send(sorted(sys.modules))


def do(connection: Connection, home: Path, is_multi: bool, point: Point | None) -> None:
    """Take all steps; send the token of each, or None, when it has ended, and the number of writes at the end."""
    from framedex.storage.database import Database

    _, hub = _open(home, is_multi)
    writes = watch_writes(point, Database)
    connection.send("begun")
    for step in STEPS.values():
        connection.send((step(hub),))
    connection.send(len(writes))


def send_states(connection: Connection, home: Path, is_multi: bool) -> None:
    """Take all steps; send what is stored before each of them and at the end."""
    _, hub = _open(home, is_multi)
    states, tokens = [state_of(hub, {})], dict[str, str]()
    for name, step in STEPS.items():
        if (token := step(hub)) is not None:
            tokens[name] = token
        states.append(state_of(hub, tokens))
    connection.send(states)


def state_of(hub: Any, tokens: dict[str, str]) -> State:
    """Return all that is stored of people, by names in the place of ids; tokens are of sessions, by their steps."""
    operator = _operator()
    with hub._database.read() as connection:
        rows = {name: connection.exec_driver_sql(query).all() for name, query in _QUERIES.items()}
        faults = connection.exec_driver_sql("PRAGMA foreign_key_check").all()
        assert not faults, f"references to rows that do not exist: {faults}"
    state: State = {name: sorted(map(list, found), key=repr) for name, found in rows.items() if name != "audit"}
    state["audit"] = [list(each) for each in rows["audit"]]
    state["passwords"] = {
        user.username: [hub._context.passwords.matches(_hash_of(hub, user.id), each) for each in _PASSWORDS]
        for user in hub.users.page(operator)[0]
    }
    state["sessions"] = {
        user.username: len(hub.users.sessions(operator, user.id)) for user in hub.users.page(operator)[0]
    }
    state["datasets"] = sorted(
        [each.display_name, [f"{member.email} {member.role}" for member in hub.datasets.members(operator, each.id)]]
        for each in hub.datasets.visible(operator)
    )
    state["provider"] = hub.users._provider.names()
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


def _hash_of(hub: Any, user_id: str) -> Any:
    with hub._database.read() as connection:
        return connection.exec_driver_sql("SELECT password_hash FROM users WHERE id = ?", (user_id,)).scalar()


def _is_live(hub: Any, token: str) -> bool:
    from framedex.errors import NotAuthenticated

    try:
        hub.sessions.actor(token)
    except NotAuthenticated:
        return False
    return True


def send_outcome(
    connection: Connection, home: Path, is_multi: bool, states: list[State], ended: int, tokens: dict[str, str]
) -> None:
    """Compare what is stored with the states around the interrupted step, take the others, and send the outcome."""
    workspace, hub = _open(home, is_multi)
    hub.sweep()
    faults = [f"check: {finding}" for finding in workspace.check().findings]
    state = state_of(hub, tokens)
    before, after = (_known(states[min(each, len(STEPS))], tokens) for each in (ended, ended + 1))
    outcome, at = "done", ended + 1
    if state == after:
        pass
    elif state == before:
        outcome, at = "not done", ended
    else:
        faults.append(f"neither before ({_difference(state, before)}) nor after ({_difference(state, after)})")
    if not faults:
        for step in NAMES[at:]:
            STEPS[step](hub)
        end, expected = ({**each, "tokens": None, "audit": None} for each in (state_of(hub, {}), states[-1]))
        faults += [] if end == expected else [f"another end: {_difference(end, expected)}"]
    connection.send((outcome, faults))


def _known(state: State, tokens: dict[str, str]) -> State:
    """Return a state with the tokens that were sent alone."""
    return {**state, "tokens": {name: state["tokens"].get(name) for name in tokens}}


def _difference(state: State, other: State) -> str:
    keys = [key for key in state if state[key] != other[key]]
    return ", ".join(f"{key}: {str(state[key])[-200:]} / {str(other[key])[-200:]}" for key in keys)


def main() -> None:
    """Run all trials and print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--moments", type=int, default=50, help="random kills in each mode")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    random.seed(options.seed)
    rows, faults = [], list[str]()
    with tempfile.TemporaryDirectory(prefix="bench-kill-people-") as folder:
        base = Path(folder) / "base"
        base.mkdir()
        _import(result_of(send_prepared, base))
        for is_multi in (False, True):
            row, found = _trials(base, is_multi, options.moments)
            rows.append(row)
            faults += found
    headers = [
        "workspaces",
        "steps",
        "kills",
        "within",
        "not done",
        "done",
        "faults",
    ]
    print(table(headers, rows))
    save("kill_people", {"seed": options.seed, "rows": rows, "faults": faults})
    sys.exit(bool(faults))


def _import(names: list[str]) -> None:
    """Import what children import, but for Lance, whose threads do not survive a fork."""
    for name in names:
        if not name.partition(".")[0].startswith(("lance", "__")):
            with suppress(Exception):
                importlib.import_module(name)


def _trials(base: Path, is_multi: bool, moments: int) -> tuple[list[Any], list[str]]:
    where = _copy(base)
    states = result_of(send_states, where, is_multi)
    shutil.rmtree(where)
    where = _copy(base)
    child, began, writes = Child(do, where, is_multi, None), 0.0, 0
    while not isinstance(message := child.wait(), int):
        began = began or time.monotonic()
    took_s, writes = time.monotonic() - began, message
    child.end()
    shutil.rmtree(where)
    points: list[Point | None] = [Point(write, place) for write in range(writes) for place in _PLACES]
    outcomes, within, faults = Counter[str](), 0, list[str]()
    for number, point in enumerate([*points, *[None] * moments]):
        after_s = random.uniform(0, took_s)
        ended, (outcome, found) = _trial(base, is_multi, states, point, after_s)
        outcomes[outcome] += 1
        within += ended < len(STEPS)
        at = f"{point or f'{after_s:.3f} s'}, {NAMES[min(ended, len(NAMES) - 1)]}"
        faults += [f"{at}: {each}" for each in found]
        if found or number % 50 == 0:
            print(f"{number}: {at}: {outcome}; {'; '.join(found) or 'good'}", flush=True)
    counts = [outcomes[each] for each in ("not done", "done")]
    kills = sum(outcomes.values())
    return ["many" if is_multi else "one", len(STEPS), kills, within, *counts, len(faults)], faults


def _trial(
    base: Path, is_multi: bool, states: list[State], point: Point | None, after_s: float
) -> tuple[int, tuple[str, list[str]]]:
    """Kill a run; return the number of the steps that had ended, and the outcome with its faults."""
    where = _copy(base)
    child, ended, tokens = Child(do, where, is_multi, point), 0, dict[str, str]()
    child.wait()
    if point is None:
        time.sleep(after_s)
        child.process.kill()
    while isinstance(message := child.wait(), tuple):
        if message[0] is not None:
            tokens[NAMES[ended]] = message[0]
        ended += 1
    child.end()
    try:
        outcome = result_of(send_outcome, where, is_multi, states, ended, tokens)
    except RuntimeError as error:
        outcome = ("failed", [str(error)])
    shutil.rmtree(where)
    return ended, outcome


def _copy(base: Path) -> Path:
    """Return a copy of a folder with a workspace."""
    return Path(shutil.copytree(base, base.parent / "run"))


if __name__ == "__main__":
    main()
