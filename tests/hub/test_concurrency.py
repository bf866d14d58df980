"""Kills in the middle, and changes of roles by threads and processes at the same time."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random

import pytest

from framedex import Error, Workspace
from framedex.access import RealmRole, Role
from framedex.hub import Hub
from framedex.storage.service_db.database import DEFAULT_ID
from tests.hub.people import OPERATOR, PASSWORD, add_user, log_in, roles
from tests.processes import finish, start

_KILLED = """
import os, signal, sys
import argon2
argon2.profiles.RFC_9106_LOW_MEMORY = argon2.profiles.CHEAPEST
from framedex import Workspace
from framedex.hub import Hub, memberships
from framedex.storage.service_db import accounts, homes
from tests.hub.people import OPERATOR, PASSWORD

def die(*_arguments, **_values):
    os.kill(os.getpid(), signal.SIGKILL)

with Workspace(sys.argv[1]) as workspace, Hub(workspace) as hub:
    users = {each.username: each.id for each in hub.users.page(OPERATOR)[0]}
    step, function = sys.argv[2], sys.argv[3]
    setattr({"accounts": accounts, "homes": homes, "memberships": memberships}[function.split(".")[0]],
            function.split(".")[1], die)
    if step == "promote":
        hub.tenants.set_role(OPERATOR, users["bob"], "admin")
    elif step == "demote":
        hub.tenants.set_role(OPERATOR, users["bob"], "viewer")
    elif step == "delete":
        hub.users.delete(OPERATOR, users["bob"])
    else:
        hub.users.create(OPERATOR, "new", PASSWORD, role="admin")
print("it was not killed")
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("step", "function"),
    [
        ("promote", "accounts.set_realm_roles"),
        ("promote", "accounts.end_sessions"),
        ("demote", "homes.transfer_datasets"),
        ("demote", "accounts.end_sessions"),
        ("delete", "accounts.delete_user"),
        ("create", "memberships.join"),
        ("create", "accounts.end_sessions"),
    ],
)
def test_kill__leaves_all_or_nothing(workspace: Workspace, step: str, function: str) -> None:
    """A process that is killed within a change of several rows leaves the state before it; the next change works."""
    with Hub(workspace) as hub:
        for name, role in (("ann", "admin"), ("bob", "editor")):
            add_user(hub, name, role)
        dataset = hub.datasets.create(log_in(hub, "bob"), "pets")
        before = state(hub, dataset.id)
    process = start(_KILLED, workspace.path, step, function)
    out, _ = process.communicate(timeout=120)
    assert (process.returncode, out) == (-9, "")
    with Hub(workspace) as hub:
        assert state(hub, dataset.id) == before
        hub.users.create(OPERATOR, "new", PASSWORD, role=Role.ADMIN)
        assert roles(hub) == {"ann": "editor", "bob": "editor", "new": "admin"}


def state(hub: Hub, dataset_id: str) -> object:
    """Return what the changes can change."""
    return roles(hub), hub.users.page(OPERATOR), hub.datasets.members(OPERATOR, dataset_id)


NAMES = [f"user{number}" for number in range(6)]


def change_roles(hub: Hub, seed: int, count: int) -> int:
    """Change roles at random, as the operator and as users who may be no admins; return how many changes worked."""
    random, done = Random(seed), 0
    users = {user.username: user.id for user in hub.users.page(OPERATOR)[0]}
    for _ in range(count):
        user_id = users[random.choice(NAMES)]
        try:
            actor = OPERATOR if random.random() < 0.5 else log_in(hub, random.choice(NAMES))
            match random.randrange(4):
                case 0 | 1:
                    hub.tenants.set_role(actor, user_id, random.choice(list(Role)))
                case 2:
                    hub.users.change(actor, user_id, enabled=random.random() < 0.7)
                case _:
                    hub.users.create(actor, f"extra{seed}-{random.randrange(10**9)}", PASSWORD, role=Role.ADMIN)
            done += 1
        except Error:
            continue
    return done


_CHANGER = """
import sys
import argon2
argon2.profiles.RFC_9106_LOW_MEMORY = argon2.profiles.CHEAPEST
from framedex import Workspace
from framedex.hub import Hub
from tests.hub.test_concurrency import change_roles
sys.stdin.readline()
with Workspace(sys.argv[1]) as workspace, Hub(workspace, is_multi=sys.argv[3] == "multi") as hub:
    print(change_roles(hub, int(sys.argv[2]), 15))
"""


def admins(hub: Hub) -> tuple[int, int]:
    """Return the number of admins, and of those who can log in, as one reader sees them."""
    query = (
        "SELECT count(*), sum(users.enabled) FROM memberships JOIN users ON users.id = user_id "
        f"WHERE role = 'admin' AND tenant_id = '{DEFAULT_ID}'"
    )
    with hub._database.read() as connection:
        number, enabled = connection.exec_driver_sql(query).one()
        return int(number), int(enabled)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["single", "multi"])
def test_roles__changed_by_threads_and_processes(workspace: Workspace, mode: str) -> None:
    """With 8 threads and 2 processes that change roles there is an admin at all times: in single mode exactly one."""
    with Hub(workspace, is_multi=mode == "multi") as hub:
        for number, name in enumerate(NAMES):
            add_user(hub, name, "editor" if number else "admin")
        processes = [start(_CHANGER, workspace.path, seed, mode) for seed in (101, 102)]
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        seen: list[tuple[int, int]] = []
        done = threading.Event()

        def watch() -> None:
            while not done.is_set():
                seen.append(admins(hub))

        watcher = threading.Thread(target=watch)
        watcher.start()
        try:
            with ThreadPoolExecutor(8) as pool:
                counts = list(pool.map(lambda seed: change_roles(hub, seed, 15), range(8)))
            counts += [int(finish(process)) for process in processes]
        finally:
            done.set()
            watcher.join()
        seen.append(admins(hub))
        assert all(counts), "each of them changed something"
        assert all(enabled >= 1 for _, enabled in seen)
        if mode == "single":
            assert {number for number, _ in seen} == {1}
            (admin,) = (user for user in hub.users.page(OPERATOR)[0] if user.roles)
            assert admin.roles == [str(role) for role in RealmRole]


_FIRST = """
import sys
import argon2
argon2.profiles.RFC_9106_LOW_MEMORY = argon2.profiles.CHEAPEST
from framedex import Workspace
from framedex.hub import Hub
sys.stdin.readline()
with Workspace(sys.argv[1]) as workspace, Hub(workspace) as hub:
    print(hub.users.create_first_admin("correct horse") is not None)
"""


@pytest.mark.slow
def test_create_first_admin__by_processes_at_once(tmp_path: Path) -> None:
    """Processes that start an empty service at once create the database, the key and the first admin once."""
    processes = [start(_FIRST, tmp_path / "workspace") for _ in range(3)]
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    assert sorted(finish(process).strip() for process in processes) == ["False", "False", "True"]
    with Workspace(tmp_path / "workspace") as workspace, Hub(workspace) as hub:
        assert roles(hub) == {"admin": "admin"}
