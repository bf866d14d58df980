"""Who may change which account, in several workspaces: a table; nobody gains a right that they do not have."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import pytest

from framedex.access import Actor, RealmRole, Role
from framedex.errors import Forbidden
from framedex.hub import Hub
from framedex.storage.service_db.database import DEFAULT_ID
from tests.service.users import OPERATOR, PASSWORD

MANAGES, VIEWS = (RealmRole.MANAGE_USERS,), (RealmRole.VIEW_USERS,)
# An account is its roles in the default workspace, whose admins administer the service, and in two others, a and b.
TARGETS = (
    "d:viewer",
    "d:admin",
    "a:viewer",
    "a:editor",
    "a:admin",
    "b:viewer",
    "b:admin",
    "a:viewer b:admin",
    "a:editor b:viewer",
)
TABLE = """
operator                    yes yes yes yes yes yes yes yes yes
d:admin            manages  yes yes no  no  no  no  no  no  no
d:viewer           manages  yes no  no  no  no  no  no  no  no
a:admin            manages  no  no  yes yes yes no  no  no  no
a:editor           manages  no  no  yes yes no  no  no  no  no
a:viewer           manages  no  no  yes no  no  no  no  no  no
a:admin            views    no  no  no  no  no  no  no  no  no
a:admin            nothing  no  no  no  no  no  no  no  no  no
a:admin b:admin    manages  no  no  yes yes yes yes yes yes yes
a:editor b:viewer  manages  no  no  yes yes no  yes no  no  yes
d:admin a:viewer   manages  yes yes yes no  no  no  no  no  no
"""  # fmt: skip
REALM: Mapping[str, tuple[RealmRole, ...]] = {"manages": MANAGES, "views": VIEWS, "nothing": ()}


def rows() -> list[tuple[str, str, list[bool]]]:
    """Return the table: the roles and the realm roles of the actor, and whether each target may be changed."""
    found = []
    for line in filter(None, TABLE.splitlines()):
        words = line.split()
        n = len(words) - len(TARGETS)
        realm = words[n - 1] if words[0] != "operator" else ""
        found.append((" ".join(words[: n - bool(realm)]), realm, [word == "yes" for word in words[n:]]))
    return found


ROWS = rows()


class People:
    """Accounts in three workspaces.

    Args:
        hub: in which they are made.
    """

    def __init__(self, hub: Hub) -> None:
        self.hub = hub
        self.tenants = {"d": DEFAULT_ID} | {name: hub.tenants.create(OPERATOR, name).id for name in ("a", "b")}
        self._n = 0
        self.add("d:admin"), self.add("a:admin"), self.add("b:admin")  # none of the others is the last one

    def name(self) -> str:
        """Return a name that is free."""
        self._n += 1
        return f"user-{self._n}"

    def roles(self, text: str) -> dict[str, Role]:
        """Return roles by the id of the workspace."""
        pairs = (part.split(":") for part in text.split())
        return {self.tenants[name]: Role(role) for name, role in pairs}

    def add(self, text: str, realm: str = "") -> str:
        """Return the id of a new account with roles."""
        name, roles = self.name(), list(self.roles(text).items())
        user = self.hub.users.create(OPERATOR, name, PASSWORD, role=roles[0][1], tenant_id=roles[0][0])
        for tenant_id, role in roles[1:]:
            self.hub.tenants.add_member(OPERATOR, tenant_id, name, role)
        if realm:
            self.hub.users.set_roles(OPERATOR, user.id, REALM[realm])
        return user.id

    def actor(self, text: str, realm: str) -> Actor:
        """Return a new account that has logged in; the operator for that."""
        return OPERATOR if text == "operator" else self.hub.sessions.actor_of_user(self.add(text, realm))


CHANGES: Mapping[str, Callable[[Hub, Actor, str, str], Any]] = {
    "rename": lambda hub, actor, user_id, name: hub.users.change(actor, user_id, username=name),
    "disable": lambda hub, actor, user_id, _: hub.users.change(actor, user_id, enabled=False),
    "reset password": lambda hub, actor, user_id, _: hub.users.reset_password(actor, user_id, PASSWORD),
    "log out": lambda hub, actor, user_id, _: hub.users.log_out(actor, user_id),
    "set roles": lambda hub, actor, user_id, _: hub.users.set_roles(actor, user_id, ["view-users"]),
    "delete": lambda hub, actor, user_id, _: hub.users.delete(actor, user_id),
}


@pytest.mark.slow
@pytest.mark.parametrize(("text", "realm", "answers"), ROWS, ids=[f"{text}-{realm}" for text, realm, _ in ROWS])
def test_changes(multi: Hub, text: str, realm: str, answers: list[bool]) -> None:
    """Each change of each account is done by those who may, and by nobody else."""
    people = People(multi)
    actor, found = people.actor(text, realm), {}
    for target in TARGETS:
        user_id = people.add(target)
        for name, change in CHANGES.items():
            may = True
            try:
                change(multi, actor, user_id, people.name())
            except Forbidden:
                may = False
            found[target, name] = may
    assert found == {(target, name): may for target, may in zip(TARGETS, answers, strict=True) for name in CHANGES}


@pytest.mark.slow
@pytest.mark.parametrize(("text", "realm", "_answers"), ROWS, ids=[f"{text}-{realm}" for text, realm, _ in ROWS])
def test_creation(multi: Hub, text: str, realm: str, _answers: list[bool]) -> None:
    """A new account has at most the role of who makes it, in a workspace of theirs, and only a manager makes one."""
    people = People(multi)
    actor, order = people.actor(text, realm), list(Role)
    for name, tenant_id in people.tenants.items():
        for role in Role:
            own = actor.roles.get(tenant_id)
            may = text == "operator" or (
                realm == "manages" and own is not None and order.index(role) <= order.index(own)
            )
            made = None
            with suppress(Forbidden):
                made = multi.users.create(actor, people.name(), PASSWORD, role=role, tenant_id=tenant_id)
            assert (made is not None) is may, (name, role)


def test_creation__with_the_role_of_an_admin(hub: Hub) -> None:
    """A viewer who manages users makes no admin, which would demote the present one."""
    hub.users.create_first_admin(PASSWORD)
    viewer = hub.users.create(OPERATOR, "vic", PASSWORD)
    hub.users.set_roles(OPERATOR, viewer.id, MANAGES)
    actor = hub.sessions.actor_of_user(viewer.id)
    with pytest.raises(Forbidden, match="at least the role"):
        hub.users.create(actor, "mallory", PASSWORD, role=Role.ADMIN)
    assert [each.role for each in hub.tenants.members(OPERATOR)] == [Role.ADMIN, Role.VIEWER]


def test_own_roles__end_no_session(hub: Hub) -> None:
    """Who changes the own realm roles stays logged in; others whose roles are changed do not."""
    hub.users.create_first_admin(PASSWORD)
    other = hub.users.create(OPERATOR, "vic", PASSWORD)
    sessions = {name: hub.sessions.log_in(name, PASSWORD).token for name in ("admin", "vic")}
    admin = hub.sessions.actor(sessions["admin"])
    assert admin.user_id is not None
    hub.users.set_roles(admin, admin.user_id, ["manage-users"])
    assert hub.sessions.actor(sessions["admin"]).realm_roles == {"manage-users"}
    hub.users.set_roles(admin, other.id, ["view-users"])
    assert hub.sessions.id_of(sessions["vic"]) is None
