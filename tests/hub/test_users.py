"""User accounts: creation, changes, disabling, deletion, passwords and roles."""

import pytest

from framedex import Forbidden, InvalidInput, NotFound
from framedex.access import ANONYMOUS, RealmRole, Role
from framedex.errors import NotAuthenticated
from framedex.hub import Hub
from framedex.storage.service_db.database import DEFAULT_ID
from tests.hub.people import OPERATOR, PASSWORD, Clock, add_user, log_in, roles

ALL_ROLES = [str(role) for role in RealmRole]


def test_create__is_a_member_with_a_role(hub: Hub) -> None:
    """A new user is a member of the default tenant, can log in, and is shown without the password."""
    user = hub.users.create(OPERATOR, "Ann", PASSWORD, first_name="Ann", last_name="Lee", email="ann@example.org")
    assert (user.username, user.first_name, user.last_name, user.enabled) == ("Ann", "Ann", "Lee", True)
    assert (user.roles, user.last_access) == ([], None)
    assert user.model_dump(mode="json").keys() == {
        "id", "username", "firstName", "lastName", "enabled", "createdTimestamp", "roles", "lastAccess",
    }  # fmt: skip
    assert roles(hub) == {"Ann": "viewer"}
    assert log_in(hub, "ANN").roles == {DEFAULT_ID: Role.VIEWER}


@pytest.mark.parametrize(
    ("name", "reason"),
    [("ab", "3 to 255"), ("a b c", "no blanks"), ("a\tbc", "control"), ("x" * 256, "at most 255"), ("", "not empty")],
)
def test_create__names_that_cannot_be(hub: Hub, name: str, reason: str) -> None:
    """A name that breaks a rule is refused with the rule, and nobody is created."""
    with pytest.raises(InvalidInput, match=reason):
        hub.users.create(OPERATOR, name, PASSWORD)
    assert hub.users.count() == 0


@pytest.mark.parametrize("password", ["short77", "x" * 1025, "\ud800" * 8])
def test_create__passwords_that_cannot_be(hub: Hub, password: str) -> None:
    """A password that is too short, too long or no text is refused without being repeated."""
    with pytest.raises(InvalidInput, match=r"^a password") as error:
        hub.users.create(OPERATOR, "ann", password)
    assert password not in str(error.value)
    assert hub.users.count() == 0


@pytest.mark.parametrize("email", ["ann", "@example.org", "ann@", "a nn@example.org"])
def test_create__addresses_that_are_none(hub: Hub, email: str) -> None:
    """An e-mail address has a name and a domain."""
    with pytest.raises(InvalidInput, match="no e-mail address"):
        hub.users.create(OPERATOR, "ann", PASSWORD, email=email)


@pytest.mark.slow
def test_create__names_and_addresses_are_unique_whatever_the_case(hub: Hub) -> None:
    """A name or an address names one user: no other user has it, in another case or form, or as the other of both."""
    add_user(hub, "Straße", email="ann@Example.org")
    for name in ("STRASSE", "strasse", "ANN@example.org"):
        with pytest.raises(InvalidInput, match="is already taken"):
            add_user(hub, name)
    add_user(hub, "bob@example.org", email="bob@example.org")  # of one user
    with pytest.raises(InvalidInput, match=r"E-mail address 'BOB@example.org' is already taken"):
        add_user(hub, "cleo", email="BOB@example.org")
    with pytest.raises(InvalidInput, match="'local' is already taken"):
        add_user(hub, "local")
    assert hub.users.count() == 2


def test_create__roles_and_tenants_that_do_not_exist(hub: Hub) -> None:
    """An unknown role or tenant creates nobody."""
    with pytest.raises(InvalidInput, match="viewer, editor, admin, not 'owner'"):
        hub.users.create(OPERATOR, "ann", PASSWORD, role="owner")  # type: ignore[arg-type] # that is the point
    with pytest.raises(NotFound, match="Workspace not found"):
        hub.users.create(OPERATOR, "ann", PASSWORD, tenant_id="nowhere")
    assert hub.users.count() == 0


def test_create__a_new_admin_takes_the_place_of_the_former(hub: Hub) -> None:
    """In single-workspace mode a new admin demotes the admin before, who is logged out and loses all realm roles."""
    add_user(hub, "ann", "admin")
    session = hub.sessions.log_in("ann", PASSWORD)
    ann = hub.sessions.actor(session.token)
    assert ann.realm_roles == set(RealmRole)
    bob = hub.users.create(ann, "bob", PASSWORD, role=Role.ADMIN)
    assert bob.roles == ALL_ROLES
    assert roles(hub) == {"ann": "editor", "bob": "admin"}
    with pytest.raises(NotAuthenticated):
        hub.sessions.actor(session.token)
    assert log_in(hub, "ann").realm_roles == frozenset()


def test_create__admins_of_many_tenants(multi: Hub) -> None:
    """With many tenants a new admin leaves the others as they are."""
    add_user(multi, "ann", "admin")
    add_user(multi, "bob", "admin")
    assert roles(multi) == {"ann": "admin", "bob": "admin"}


def test_create__who_may(hub: Hub) -> None:
    """Accounts are managed by those with the realm role alone; a refusal changes nothing."""
    add_user(hub, "ann", "editor")
    ann = log_in(hub, "ann")
    with pytest.raises(Forbidden, match="Insufficient roles"):
        hub.users.create(ann, "bob", PASSWORD)
    with pytest.raises(NotAuthenticated):
        hub.users.create(ANONYMOUS, "bob", PASSWORD)
    hub.users.set_roles(OPERATOR, ann.user_id or "", ["manage-users"])
    hub.users.create(log_in(hub, "ann"), "bob", PASSWORD)
    assert hub.users.count() == 2


def test_create__by_an_actor_whose_rights_ended(hub: Hub) -> None:
    """Rights count when the change is made, not when the actor was read: of former, disabled and deleted admins."""
    add_user(hub, "ann", "admin")
    former = log_in(hub, "ann")
    add_user(hub, "bob", "admin")
    with pytest.raises(Forbidden):
        hub.users.create(former, "cleo", PASSWORD)
    hub.users.change(OPERATOR, former.user_id or "", enabled=False)
    with pytest.raises(NotAuthenticated):
        hub.users.create(former, "cleo", PASSWORD)
    hub.users.delete(OPERATOR, former.user_id or "")
    with pytest.raises(NotAuthenticated):
        hub.users.delete(former, log_in(hub, "bob").user_id or "")
    assert roles(hub) == {"bob": "admin"}


def test_create__a_disabled_admin(hub: Hub) -> None:
    """A user who cannot log in does not become the admin."""
    add_user(hub, "ann", "admin")
    with pytest.raises(InvalidInput, match="disabled user cannot become an admin"):
        hub.users.create(OPERATOR, "bob", PASSWORD, role=Role.ADMIN, enabled=False)
    assert roles(hub) == {"ann": "admin"}


def test_create_first_admin(hub: Hub) -> None:
    """The first user of an empty service is an admin whose password is not temporary; later calls do nothing."""
    user = hub.users.create_first_admin(PASSWORD)
    assert user is not None
    assert (user.username, user.roles) == ("admin", ALL_ROLES)
    assert not log_in(hub, "admin").password_is_temporary
    assert hub.users.create_first_admin("another password") is None
    assert roles(hub) == {"admin": "admin"}


def test_page__searches_names_whatever_the_case(hub: Hub) -> None:
    """Pages are by username; a search finds usernames, first and last names, in any case and without wildcards."""
    for name, first, last in (("cleo", "Änne", "Q_x"), ("Bob", None, "Straßer"), ("ann", "Öz", None)):
        hub.users.create(OPERATOR, name, PASSWORD, first_name=first, last_name=last)

    def found(text: str, limit: int = 100, offset: int = 0) -> tuple[list[str], int]:
        users, total = hub.users.page(OPERATOR, search=text, limit=limit, offset=offset)
        return [user.username for user in users], total

    assert found("") == (["ann", "Bob", "cleo"], 3)
    assert found("", limit=1, offset=1) == (["Bob"], 3)
    assert found("ÄNNE") == (["cleo"], 1)
    assert found("strasser") == (["Bob"], 1)
    assert found("q_") == (["cleo"], 1)
    assert found("%") == ([], 0)
    assert found("N", limit=1, offset=1) == (["cleo"], 2)
    for limit, offset in ((0, 0), (1001, 0), (1, -1)):
        with pytest.raises(InvalidInput):
            hub.users.page(OPERATOR, limit=limit, offset=offset)


def test_read__who_may(hub: Hub) -> None:
    """Accounts are seen by those who may view or manage users; nobody sees the local user."""
    user = add_user(hub, "ann")
    for roles_given, is_allowed in (([], False), (["query-users"], False), (["view-users"], True)):
        hub.users.set_roles(OPERATOR, user.id, roles_given)
        ann = log_in(hub, "ann")
        if is_allowed:
            assert hub.users.get(ann, user.id).id == user.id
            assert len(hub.users.sessions(ann, user.id)) == 1
            with pytest.raises(NotFound, match="User not found"):
                hub.users.get(ann, OPERATOR.user_id or "")
        else:
            with pytest.raises(Forbidden):
                hub.users.page(ann)
            with pytest.raises(Forbidden):
                hub.users.sessions(ann, user.id)


def test_change__renames(hub: Hub) -> None:
    """A user is renamed in one call, and the former name is free; a taken one is refused."""
    ann, bob = add_user(hub, "ann"), add_user(hub, "bob", email="bob@example.org")
    assert hub.users.change(OPERATOR, ann.id, username="ANN").username == "ANN"  # another case of the own name
    assert hub.users.change(OPERATOR, ann.id, username="anne").username == "anne"
    log_in(hub, "anne")
    for name in ("BOB", "bob@example.org"):
        with pytest.raises(InvalidInput, match="already taken"):
            hub.users.change(OPERATOR, ann.id, username=name)
    add_user(hub, "ann")
    with pytest.raises(InvalidInput, match="nothing to change"):
        hub.users.change(OPERATOR, bob.id)
    with pytest.raises(NotFound, match="User not found"):
        hub.users.change(OPERATOR, "nobody", username="cleo")


def test_change__all_or_nothing(hub: Hub) -> None:
    """If one of two changes is refused, neither is made."""
    ann = add_user(hub, "ann")
    add_user(hub, "bob")
    with pytest.raises(InvalidInput, match="already taken"):
        hub.users.change(OPERATOR, ann.id, username="bob", enabled=False)
    assert hub.users.get(OPERATOR, ann.id) == ann


def test_disable__ends_sessions_and_keys_at_once(hub: Hub) -> None:
    """A disabled user has no session, no API key and no log-in; enabled again, the key works, old sessions do not."""
    user = add_user(hub, "ann")
    session = hub.sessions.log_in("ann", PASSWORD)
    key = hub.credentials.get(hub.sessions.actor(session.token)).api_key
    hub.users.change(OPERATOR, user.id, enabled=False)
    with pytest.raises(NotAuthenticated):
        hub.sessions.actor(session.token)
    for call in (hub.credentials.actor, hub.credentials.secret_of):
        with pytest.raises(NotAuthenticated):
            call(key)
    with pytest.raises(NotAuthenticated):
        log_in(hub, "ann")
    hub.users.change(OPERATOR, user.id, enabled=True)
    assert hub.credentials.actor(key).user_id == user.id
    with pytest.raises(NotAuthenticated):
        hub.sessions.actor(session.token)


def test_disable__neither_oneself_nor_the_last_admin(hub: Hub) -> None:
    """An admin who can log in remains: nobody disables the own account, or the last admin."""
    ann = add_user(hub, "ann", "admin")
    with pytest.raises(InvalidInput, match="You cannot disable your own account"):
        hub.users.change(log_in(hub, "ann"), ann.id, enabled=False)
    with pytest.raises(InvalidInput, match="last admin cannot be disabled; promote another user first"):
        hub.users.change(OPERATOR, ann.id, enabled=False)
    assert hub.users.get(OPERATOR, ann.id).enabled


def test_disable__an_admin_beside_others(multi: Hub) -> None:
    """Of several admins all but the last who can log in may be disabled, demoted or deleted."""
    ann, bob = add_user(multi, "ann", "admin"), add_user(multi, "bob", "admin")
    multi.users.change(OPERATOR, ann.id, enabled=False)
    for refused in (
        lambda: multi.users.change(OPERATOR, bob.id, enabled=False),
        lambda: multi.users.delete(OPERATOR, bob.id),
        lambda: multi.tenants.set_role(OPERATOR, bob.id, Role.EDITOR),
    ):
        with pytest.raises(InvalidInput, match="promote another user first"):
            refused()
    multi.users.delete(OPERATOR, ann.id)
    assert roles(multi) == {"bob": "admin"}


def test_delete__takes_all_that_is_the_user_s(hub: Hub) -> None:
    """A deleted user is no member, has no session and no key, and the name is free for another account."""
    user = add_user(hub, "ann")
    session = hub.sessions.log_in("ann", PASSWORD)
    key = hub.credentials.get(hub.sessions.actor(session.token)).api_key
    hub.users.delete(OPERATOR, user.id)
    with pytest.raises(NotAuthenticated):
        hub.sessions.actor(session.token)
    with pytest.raises(NotAuthenticated):
        hub.credentials.actor(key)
    with pytest.raises(NotFound, match="User not found"):
        hub.users.delete(OPERATOR, user.id)
    assert roles(hub) == {}
    assert add_user(hub, "ann").id != user.id


def test_delete__neither_oneself_nor_the_last_admin(hub: Hub) -> None:
    """An admin remains: nobody deletes the own account, or the last admin."""
    ann = add_user(hub, "ann", "admin")
    with pytest.raises(InvalidInput, match="You cannot delete your own account"):
        hub.users.delete(log_in(hub, "ann"), ann.id)
    with pytest.raises(InvalidInput, match="last admin cannot be deleted; promote another user first"):
        hub.users.delete(OPERATOR, ann.id)
    add_user(hub, "bob", "admin")
    hub.users.delete(log_in(hub, "bob"), ann.id)
    assert roles(hub) == {"bob": "admin"}


def test_reset_password__is_temporary_and_ends_sessions(hub: Hub) -> None:
    """After a reset the sessions are over; the new password opens one that can only set another password."""
    user = add_user(hub, "ann")
    before = hub.sessions.log_in("ann", PASSWORD)
    hub.users.reset_password(OPERATOR, user.id, "temporary one")
    with pytest.raises(NotAuthenticated):
        hub.sessions.actor(before.token)
    with pytest.raises(NotAuthenticated):
        hub.sessions.log_in("ann", PASSWORD)
    session = hub.sessions.log_in("ann", "temporary one")
    assert session.must_change_password
    actor = hub.sessions.actor(session.token)
    for call in (
        lambda: hub.datasets.visible(actor),
        lambda: hub.tenants.visible(actor),
        lambda: hub.tenants.organizations(actor),
        lambda: hub.tenants.members(actor),
        lambda: hub.credentials.get(actor),
    ):
        with pytest.raises(Forbidden, match="Password change required"):
            call()
    changed = hub.sessions.change_password(actor, "temporary one", "one of my own")
    assert not changed.must_change_password
    assert hub.datasets.visible(hub.sessions.actor(changed.token)) == []
    with pytest.raises(NotAuthenticated):
        hub.sessions.actor(session.token)


def test_reset_password__refusals(hub: Hub) -> None:
    """A password that cannot be, or a user who is not, changes nothing."""
    user = add_user(hub, "ann")
    with pytest.raises(InvalidInput, match="a password has 8"):
        hub.users.reset_password(OPERATOR, user.id, "short")
    with pytest.raises(NotFound, match="User not found"):
        hub.users.reset_password(OPERATOR, "nobody", "temporary one")
    log_in(hub, "ann")


def test_log_out__ends_sessions_but_not_keys(hub: Hub) -> None:
    """A log-out by an admin ends all sessions of a user at once; the API key goes on, and so may log-ins."""
    user = add_user(hub, "ann")
    tokens = [hub.sessions.log_in("ann", PASSWORD).token for _ in range(2)]
    key = hub.credentials.get(hub.sessions.actor(tokens[0])).api_key
    hub.users.log_out(OPERATOR, user.id)
    for token in tokens:
        with pytest.raises(NotAuthenticated):
            hub.sessions.actor(token)
    assert hub.users.sessions(OPERATOR, user.id) == []
    assert hub.credentials.actor(key).user_id == user.id
    log_in(hub, "ann")


def test_set_roles__ignores_unknown_ones_and_logs_out(hub: Hub) -> None:
    """The list replaces all realm roles, names that do not exist are ignored, and a change ends the sessions."""
    user = add_user(hub, "ann")
    session = hub.sessions.log_in("ann", PASSWORD)
    assert hub.users.set_roles(OPERATOR, user.id, ["query-groups", "root", "view-users"]).roles == [
        "view-users", "query-groups",
    ]  # fmt: skip
    with pytest.raises(NotAuthenticated):
        hub.sessions.actor(session.token)
    token = hub.sessions.log_in("ann", PASSWORD).token
    hub.users.set_roles(OPERATOR, user.id, ["query-groups", "view-users"])
    assert hub.sessions.actor(token).realm_roles == {"query-groups", "view-users"}  # nothing changed
    assert hub.users.set_roles(OPERATOR, user.id, []).roles == []
    with pytest.raises(InvalidInput, match="list of names"):
        hub.users.set_roles(OPERATOR, user.id, "manage-users")


def test_set_roles__not_of_oneself(hub: Hub) -> None:
    """Nobody takes the right to manage users from the own account."""
    ann = add_user(hub, "ann", "admin")
    with pytest.raises(InvalidInput, match="You cannot remove your own administration roles"):
        hub.users.set_roles(log_in(hub, "ann"), ann.id, ["view-users"])
    assert hub.users.get(OPERATOR, ann.id).roles == ALL_ROLES


def test_times__are_milliseconds(hub: Hub, clock: Clock) -> None:
    """The last access is that of the last use, in milliseconds, written at a log-in and then at most once a minute."""
    user = add_user(hub, "ann")
    token = hub.sessions.log_in("ann", PASSWORD).token
    start = round(clock.time.timestamp() * 1000)
    for seconds, expected in ((59, 0), (2, 61_000), (60, 61_000), (1, 122_000)):
        clock.move(seconds=seconds)
        hub.sessions.actor(token)
        assert hub.users.get(OPERATOR, user.id).last_access == start + expected
    (session,) = hub.users.sessions(OPERATOR, user.id)
    assert (session.start, session.last_access) == (start, start + 122_000)
