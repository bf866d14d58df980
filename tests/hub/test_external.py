"""Accounts of people whom an identity provider knows: creation, linking, roles and the end of sessions."""

import threading
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from framedex import Forbidden, InvalidInput, Workspace
from framedex.access import RealmRole, Role
from framedex.errors import NotAuthenticated, TooManyAttempts
from framedex.hub import ExternalRules, Hub, VerifiedIdentity
from framedex.hub.users import check_username
from framedex.records import User
from framedex.storage.service_db.database import DEFAULT_ID
from tests.hub.people import OPERATOR, PASSWORD, Clock, add_user, log_in, roles

ISSUER = "https://idp.example.org/realms/images"
ANN = VerifiedIdentity(
    ISSUER, "s-1", "ann", "ann@example.org", email_verified=True, first_name="Ann", last_name="Lee", session="sid-1"
)
PLAIN = ExternalRules()
LINKED = ExternalRules(link_by_email=True)
TRUSTED = ExternalRules(trust_roles=True)
MANAGER = frozenset({"manage-users", "view-users", "offline_access", "default-roles-images"})


def enter(hub: Hub, identity: VerifiedIdentity, rules: ExternalRules = PLAIN) -> User:
    """Log in with an identity and return the user."""
    return hub.users.get(OPERATOR, hub.external.log_in(identity, rules).user_id)


def names(hub: Hub) -> list[str]:
    """Return the names of all users."""
    return [user.username for user in hub.users.page(OPERATOR)[0]]


def test_first_log_in__makes_a_user(hub: Hub) -> None:
    """The first log-in makes a viewer of the default tenant without a password; later ones are the same user."""
    session = hub.external.log_in(ANN, PLAIN, ip="10.0.0.1", user_agent="browser")
    actor = hub.sessions.actor(session.token)
    assert (actor.name, actor.roles, actor.realm_roles) == ("ann@example.org", {DEFAULT_ID: Role.VIEWER}, frozenset())
    user = hub.users.get(OPERATOR, session.user_id)
    assert (user.username, user.first_name, user.last_name) == ("ann", "Ann", "Lee")
    assert enter(hub, ANN).id == user.id
    assert names(hub) == ["ann"]
    with pytest.raises(NotAuthenticated):
        hub.sessions.log_in("ann", "")
    with pytest.raises(InvalidInput, match="no password here"):
        hub.users.reset_password(OPERATOR, user.id, PASSWORD)


def test_first_log_in__with_another_role(hub: Hub) -> None:
    """New users can be editors, but not admins; those who are there keep their role."""
    enter(hub, ANN, ExternalRules(default_role=Role.EDITOR))
    enter(hub, ANN)
    assert roles(hub) == {"ann": "editor"}
    with pytest.raises(InvalidInput, match="viewers or editors"):
        enter(hub, replace(ANN, subject="s-2"), ExternalRules(default_role=Role.ADMIN))


def test_first_log_in__of_the_first_user(hub: Hub) -> None:
    """The first user of a service is an admin only if the caller says so, and nobody after that is."""
    hub.external.log_in(ANN, PLAIN, may_be_first=True)
    hub.external.log_in(replace(ANN, subject="s-2", username="bob"), PLAIN, may_be_first=True)
    assert roles(hub) == {"ann": "admin", "bob": "viewer"}
    assert hub.users.find(OPERATOR, "ann").roles == [str(role) for role in RealmRole]


def test_identities__are_issuer_and_subject(hub: Hub) -> None:
    """Neither the name nor the address makes two identities one user, and a change of both makes no other user."""
    first = enter(hub, ANN)
    assert enter(hub, replace(ANN, subject="s-2")).id != first.id
    assert enter(hub, replace(ANN, issuer="https://other.example")).id != first.id
    assert names(hub) == ["ann", "ann-2", "ann-3"]
    changed = enter(hub, replace(ANN, username="anna", email="anna@example.org", first_name="Anna"))
    assert (changed.id, changed.username, changed.first_name) == (first.id, "ann", "Anna")
    assert hub.users.find(OPERATOR, "anna@example.org").id == first.id


@pytest.mark.slow
@pytest.mark.parametrize(
    ("username", "email", "wanted"),
    [
        ("ann", None, "ann"),
        ("boss@example.org", "ann@example.org", "boss"),
        (None, "ann@example.org", "ann"),
        ("al", None, "user-al"),
        ("", None, "user"),
        ("a n\tn\x00\ud800", None, "ann"),
        ("x" * 300, None, "x" * 240),
        ("@", None, "user"),
        ("local", None, "local-2"),
        ("EVE", None, "EVE-2"),
    ],
)
def test_names(hub: Hub, username: str | None, email: str | None, wanted: str) -> None:
    """A new user has the part of the name before an @, without blanks; a number follows if it is taken."""
    add_user(hub, "eve")
    assert enter(hub, replace(ANN, username=username, email=email)).username == wanted


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
@given(st.text(), st.text(), st.text())
def test_names__of_any_text(hub: Hub, username: str, email: str, name: str) -> None:
    """Whatever a provider calls a person, the user has a name that keeps the rules."""
    identity = VerifiedIdentity(ISSUER, f"{username}{email}{name}"[:255], username, email, True, name, name)
    try:
        identity.subject.encode()
    except UnicodeEncodeError:
        identity = replace(identity, subject="surrogates")
    check_username(enter(hub, identity, TRUSTED).username)


def test_addresses__that_were_not_verified(hub: Hub) -> None:
    """An address that the provider did not verify is not stored, links nothing, and nothing is shared with it."""
    victim = add_user(hub, "victim", email="boss@example.org")
    attacker = replace(ANN, email="boss@example.org", email_verified=False, username="boss@example.org")
    user = enter(hub, attacker, LINKED)
    assert user.id != victim.id
    assert hub.profile(hub.sessions.actor(hub.external.log_in(attacker, LINKED).token)).email is None
    assert hub.users.find(OPERATOR, "boss@example.org").id == victim.id


def test_addresses__of_somebody_else(hub: Hub) -> None:
    """An address that somebody has stays theirs, also as a username; without linking a new user has none."""
    add_user(hub, "first", email="ann@example.org")
    add_user(hub, "other@example.org")
    for subject, email in (("s-1", "ANN@example.org"), ("s-2", "other@example.org")):
        session = hub.external.log_in(replace(ANN, subject=subject, email=email), PLAIN)
        assert hub.profile(hub.sessions.actor(session.token)).email is None


def test_links__by_a_verified_address(hub: Hub) -> None:
    """If the rules allow it, a verified address opens the present account, which keeps its name, role and password."""
    user = add_user(hub, "eve", "editor", email="Ann@example.org")
    assert enter(hub, ANN, LINKED) == enter(hub, ANN) == hub.users.get(OPERATOR, user.id)
    assert hub.users.get(OPERATOR, user.id).first_name is None
    assert roles(hub) == {"eve": "editor"}
    assert log_in(hub, "eve").user_id == user.id
    entries = [(each.action, each.target) for each in hub.audit(OPERATOR) if each.user_id == user.id]
    assert ("users.link", "s-1") in entries


def test_links__are_not_moved(hub: Hub) -> None:
    """An address that the provider gave to another person does not open the account of the former one."""
    user = add_user(hub, "eve", email="ann@example.org")
    enter(hub, ANN, LINKED)
    other = enter(hub, replace(ANN, subject="s-2"), LINKED)
    assert other.id != user.id
    assert enter(hub, ANN).id == user.id


def test_disabled_users__are_refused(hub: Hub) -> None:
    """A disabled user cannot log in, also not by linking; the attempt is noted, and nobody is created."""
    user = enter(hub, ANN)
    hub.users.change(OPERATOR, user.id, enabled=False)
    with pytest.raises(Forbidden, match="Account is disabled"):
        hub.external.log_in(ANN, PLAIN, ip="10.0.0.1")
    entry = hub.audit(OPERATOR)[0]
    assert (entry.action, entry.target, entry.ip, entry.outcome) == ("log_in", user.id, "10.0.0.1", "refused")
    with pytest.raises(NotAuthenticated):
        hub.external.actor(ISSUER, "s-1")
    other = add_user(hub, "bob", email="bob@example.org")
    hub.users.change(OPERATOR, other.id, enabled=False)
    with pytest.raises(Forbidden):
        enter(hub, replace(ANN, subject="s-3", email="bob@example.org"), LINKED)
    assert names(hub) == ["ann", "bob"]


def test_deleted_users__begin_anew(hub: Hub) -> None:
    """Who was deleted is a new user at the next log-in."""
    user = enter(hub, ANN)
    hub.users.delete(OPERATOR, user.id)
    assert enter(hub, ANN).id != user.id


def test_roles__are_the_providers_if_trusted(hub: Hub) -> None:
    """With trust, known roles are taken over at each log-in, and lost ones are taken; else they stay."""
    identity = replace(ANN, roles=MANAGER)
    assert enter(hub, identity).roles == []
    assert enter(hub, identity, TRUSTED).roles == ["manage-users", "view-users"]
    assert enter(hub, replace(ANN, roles=frozenset({"view-users"})), TRUSTED).roles == ["view-users"]
    assert enter(hub, ANN).roles == ["view-users"]
    assert enter(hub, ANN, TRUSTED).roles == []


def test_roles__that_change_end_sessions(hub: Hub) -> None:
    """Who gets or loses a role at a log-in has the new session alone."""
    first = hub.external.log_in(ANN, TRUSTED)
    second = hub.external.log_in(replace(ANN, roles=MANAGER), TRUSTED)
    with pytest.raises(NotAuthenticated):
        hub.sessions.actor(first.token)
    assert hub.sessions.actor(second.token).realm_roles == {"manage-users", "view-users"}
    third = hub.external.log_in(replace(ANN, roles=MANAGER), TRUSTED)
    assert all(hub.sessions.actor(each.token).user_id for each in (second, third))


def test_roles__of_the_last_admin_stay(multi: Hub) -> None:
    """The last admin of a tenant keeps the roles that the provider takes; another admin loses them."""
    admin = add_user(multi, "eve", "admin", email="ann@example.org")
    rules = replace(TRUSTED, link_by_email=True)
    everything = [str(role) for role in RealmRole]
    assert enter(multi, ANN, rules).roles == everything
    add_user(multi, "bob", "admin")
    assert enter(multi, ANN, rules).roles == []
    assert roles(multi) == {"bob": "admin", "eve": "admin"}
    assert enter(multi, replace(ANN, roles=frozenset(everything)), rules).id == admin.id


def test_ends__of_sessions_at_the_provider(hub: Hub) -> None:
    """The provider ends one session by its id, or all of a person that began there; those with a password stay."""
    user = add_user(hub, "eve", email="ann@example.org")
    local = hub.sessions.log_in("eve", PASSWORD)
    one, two = (hub.external.log_in(replace(ANN, session=sid), LINKED) for sid in ("sid-1", "sid-2"))
    nameless = hub.external.log_in(replace(ANN, session=None), PLAIN)
    assert len(hub.users.sessions(OPERATOR, user.id)) == 4
    assert hub.external.end_sessions("https://other.example", session="sid-1") == 0
    assert hub.external.end_sessions(ISSUER, subject="s-2", session="sid-1") == 0
    assert hub.external.end_sessions(ISSUER, subject="unknown") == 0
    assert hub.external.end_sessions(ISSUER, session="sid-1") == 1
    with pytest.raises(NotAuthenticated):
        hub.sessions.actor(one.token)
    assert hub.sessions.actor(two.token).user_id == user.id
    assert hub.external.end_sessions(ISSUER, subject="s-1") == 2
    for session in (two, nameless):
        with pytest.raises(NotAuthenticated):
            hub.sessions.actor(session.token)
    assert hub.sessions.actor(local.token).user_id == user.id
    for subject, session_id in ((None, None), (None, "")):
        with pytest.raises(InvalidInput, match="name the person"):
            hub.external.end_sessions(ISSUER, subject=subject, session=session_id)


def test_ends__of_sessions_after_a_change_of_the_password(hub: Hub) -> None:
    """The session that a change of the password begins ends with that at the provider, as the one before it."""
    user = add_user(hub, "eve", email="ann@example.org")
    session = hub.external.log_in(ANN, LINKED)
    changed = hub.sessions.change_password(hub.sessions.actor(session.token), PASSWORD, "battery staple")
    assert hub.sessions.actor(changed.token).user_id == user.id
    assert hub.external.end_sessions(ISSUER, session="sid-1") == 1
    with pytest.raises(NotAuthenticated):
        hub.sessions.actor(changed.token)
    local = hub.sessions.log_in("eve", "battery staple")
    again = hub.sessions.change_password(hub.sessions.actor(local.token), "battery staple", PASSWORD)
    assert hub.external.end_sessions(ISSUER, subject="s-1") == 0
    assert hub.sessions.actor(again.token).user_id == user.id


def test_actors__of_access_tokens(hub: Hub) -> None:
    """The identity of an access token is that of a user who has logged in before."""
    with pytest.raises(NotAuthenticated, match="Invalid or expired token"):
        hub.external.actor(ISSUER, "s-1")
    user = enter(hub, ANN)
    assert hub.external.actor(ISSUER, "s-1").user_id == user.id


def test_single_uses(hub: Hub, clock: Clock) -> None:
    """A value is used once; what is too old is forgotten, because it is refused for its age."""
    assert hub.external.use_once(b"x" * 32, clock() + timedelta(minutes=10))
    assert not hub.external.use_once(b"x" * 32, clock() + timedelta(minutes=10))
    hub.sweep()
    assert not hub.external.use_once(b"x" * 32, clock() + timedelta(minutes=10))
    clock.move(minutes=11)
    hub.sweep()
    assert hub.external.use_once(b"x" * 32, clock() + timedelta(minutes=10))


def test_failures__of_an_address(hub: Hub, clock: Clock) -> None:
    """After 50 failures in an hour, with those of passwords, an address waits; others are not affected."""
    for _ in range(50):
        hub.external.check_attempts("10.0.0.1")
        hub.external.count_failure("10.0.0.1")
    with pytest.raises(TooManyAttempts, match="try again in 1 s"):
        hub.external.check_attempts("10.0.0.1")
    hub.external.check_attempts("10.0.0.2")
    clock.move(seconds=1)
    hub.external.check_attempts("10.0.0.1")


def test_first_log_in__twice_at_a_time(workspace: Workspace) -> None:
    """Two first log-ins of a person at the same time, of two hubs, make one user."""
    with Hub(workspace) as one, Hub(workspace) as two:
        found: list[str] = []
        threads = [
            threading.Thread(target=lambda hub: found.append(hub.external.log_in(ANN, PLAIN).user_id), args=(hub,))
            for hub in (one, two) * 4
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        assert len(found) == 8
        assert len(set(found)) == 1
        assert names(one) == ["ann"]
