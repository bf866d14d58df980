"""Whatever operators and users do, in whatever order: there is one admin, and roles fit together."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from framedex import Error, Workspace
from framedex.access import RealmRole, Role
from framedex.hub import Hub
from framedex.storage.service_db.database import DEFAULT_ID
from tests.hub.people import OPERATOR, PASSWORD, add_user, log_in
from tests.laws import examples

NAMES = ("ann", "bob", "cleo")
names, given_roles = st.sampled_from(NAMES), st.sampled_from(list(Role))
steps = st.one_of(
    st.tuples(st.just("create"), names, given_roles),
    st.tuples(st.just("set_role"), names, given_roles),
    st.tuples(st.just("enable"), names, st.booleans()),
    st.tuples(st.just("delete"), names, st.none()),
    st.tuples(st.just("dataset"), names, st.none()),
    st.tuples(st.just("share"), names, given_roles),
)


@contextmanager
def new_hub(*, is_multi: bool) -> Iterator[Hub]:
    """Yield a hub in a workspace of its own, with the admin ``zoe``."""
    with (
        tempfile.TemporaryDirectory() as folder,
        Workspace(Path(folder) / "ws") as workspace,
        Hub(workspace, is_multi=is_multi) as hub,
    ):
        add_user(hub, "zoe", "admin")
        yield hub


def take(hub: Hub, step: tuple[str, str, object], actor_name: str | None, number: int) -> None:
    """Take a step as the operator or as a user; refusals are fine."""
    kind, name, value = step
    try:
        actor = OPERATOR if actor_name is None else log_in(hub, actor_name)
        if kind == "create":
            hub.users.create(actor, name, PASSWORD, role=Role(str(value)))
            return
        user_id = hub.users.find(OPERATOR, name).id
        match kind:
            case "set_role":
                hub.tenants.set_role(actor, user_id, Role(str(value)))
            case "enable":
                hub.users.change(actor, user_id, enabled=bool(value))
            case "delete":
                hub.users.delete(actor, user_id)
            case "dataset":
                hub.datasets.create(log_in(hub, name), f"dataset {number}")
            case _:
                dataset_id = hub.datasets.visible(OPERATOR)[0].id
                hub.datasets.share(actor, dataset_id, name, Role(str(value)))
    except (Error, IndexError):
        return


def check(hub: Hub, *, is_multi: bool) -> None:
    """Check what holds after each step."""
    members = {member.user_id: Role(member.role) for member in hub.tenants.members(OPERATOR)}
    users = {user.id: user for user in hub.users.page(OPERATOR)[0]}
    admins = [user_id for user_id, role in members.items() if role is Role.ADMIN]
    assert members.keys() == users.keys()
    assert any(users[user_id].enabled for user_id in admins)
    assert is_multi or len(admins) == 1
    for user_id, user in users.items():
        assert user.roles == ([str(role) for role in RealmRole] if user_id in admins else [])
    with hub._database.read() as connection:
        homes = connection.exec_driver_sql("SELECT owner_id, tenant_id FROM dataset_homes").all()
        grants = connection.exec_driver_sql("SELECT user_id, role FROM grants").all()
        assert connection.exec_driver_sql("PRAGMA foreign_key_check").all() == []
    assert all(tenant_id == DEFAULT_ID for _, tenant_id in homes)
    assert all(members[owner_id] is not Role.VIEWER for owner_id, _ in homes)
    assert all(user_id in users for user_id, _ in grants)


@pytest.mark.slow
@examples(30, without=HealthCheck.function_scoped_fixture)  # the fixture only makes hashes quick
@given(st.booleans(), st.lists(st.tuples(steps, st.sampled_from([None, *NAMES, "zoe"])), min_size=5, max_size=20))
def test_sequences__leave_one_admin(is_multi: bool, sequence: list[tuple[tuple[str, str, object], str | None]]) -> None:
    """After any sequence of changes there is an admin who can log in, and no viewer owns a dataset."""
    with new_hub(is_multi=is_multi) as hub:
        for number, (step, actor_name) in enumerate(sequence):
            take(hub, step, actor_name, number)
            check(hub, is_multi=is_multi)
