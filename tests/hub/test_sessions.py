"""Sessions: their tokens, their ends, and passwords that users change themselves."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import argon2
import pytest

from framedex import Forbidden, InvalidInput, Workspace
from framedex.access import ANONYMOUS, Via, local_actor
from framedex.errors import NotAuthenticated, ReadOnly, TooManyAttempts, WorkspaceError
from framedex.hub import Hub
from tests.failures import failing
from tests.hub.people import OPERATOR, PASSWORD, Clock, add_user, log_in
from tests.inside import hub_context


def test_log_in__each_gets_a_token_of_its_own(hub: Hub) -> None:
    """Each log-in has a new token of 32 random bytes; names are compared whatever the case."""
    user = add_user(hub, "ann", email="ann@example.org")
    sessions = [hub.sessions.log_in(name, PASSWORD, ip="192.0.2.1") for name in ("ann", "ANN")]
    assert len({session.token for session in sessions}) == 2
    assert all(len(session.token) == 43 for session in sessions)
    for session in sessions:
        actor = hub.sessions.actor(session.token)
        assert (actor.user_id, actor.name, actor.via) == (user.id, "ann@example.org", Via.SESSION)
    shown = hub.users.sessions(OPERATOR, user.id)
    assert [each.ip_address for each in shown] == ["192.0.2.1"] * 2
    assert not {each.id for each in shown} & {session.token for session in sessions}


@pytest.mark.slow
@pytest.mark.parametrize("token", ["", "x", "\ud800", "a" * 43])
def test_actor__of_a_token_that_is_none(hub: Hub, token: str) -> None:
    """What is no token of a session is nobody."""
    add_user(hub, "ann")
    log_in(hub, "ann")
    with pytest.raises(NotAuthenticated, match=r"^Not authenticated$"):
        hub.sessions.actor(token)


def test_actor__the_local_user_has_no_session(hub: Hub) -> None:
    """The user who acts while authentication is off cannot log in."""
    with pytest.raises(NotAuthenticated):
        hub.sessions.log_in("local", PASSWORD)


def test_idle__ends_after_8_hours(hub: Hub, clock: Clock) -> None:
    """A session that is used lives on; one that is not used for 8 hours ends."""
    add_user(hub, "ann")
    token = hub.sessions.log_in("ann", PASSWORD).token
    for _ in range(3):
        clock.move(hours=7, minutes=59)
        hub.sessions.actor(token)
    clock.move(hours=8)
    with pytest.raises(NotAuthenticated):
        hub.sessions.actor(token)


def test_absolute__ends_after_7_days(hub: Hub, clock: Clock) -> None:
    """A session ends after 7 days, however often it was used."""
    add_user(hub, "ann")
    session = hub.sessions.log_in("ann", PASSWORD)
    for _ in range(7 * 4 - 1):
        clock.move(hours=6)
        hub.sessions.actor(session.token)
    clock.move(hours=5, minutes=59)
    hub.sessions.actor(session.token)
    clock.move(minutes=1)
    assert clock.time == session.expires_at
    with pytest.raises(NotAuthenticated):
        hub.sessions.actor(session.token)


def test_log_out__ends_one_session(hub: Hub) -> None:
    """A log-out ends the session of its token and no other."""
    add_user(hub, "ann")
    first, second = (hub.sessions.log_in("ann", PASSWORD).token for _ in range(2))
    hub.sessions.log_out(first)
    for call in (hub.sessions.actor, hub.sessions.log_out):
        with pytest.raises(NotAuthenticated):
            call(first)
    hub.sessions.actor(second)


def test_actor__is_served_on_a_full_disk(hub: Hub, clock: Clock) -> None:
    """A session goes on if the time of its last use cannot be written."""
    add_user(hub, "ann")
    token = hub.sessions.log_in("ann", PASSWORD).token
    clock.move(minutes=2)

    with failing("framedex.storage.database.Database.check_writable", error=WorkspaceError("the disk is full")):
        assert hub.sessions.actor(token).name == "ann"


def test_change_password__ends_all_sessions_but_the_new_one(hub: Hub) -> None:
    """After a change the former password and all sessions are over, that of the change included; a new one begins."""
    add_user(hub, "ann")
    tokens = [hub.sessions.log_in("ann", PASSWORD).token for _ in range(2)]
    new = hub.sessions.change_password(hub.sessions.actor(tokens[0]), PASSWORD, "battery staple")
    hub.sessions.actor(new.token)
    for token in tokens:
        with pytest.raises(NotAuthenticated):
            hub.sessions.actor(token)
    with pytest.raises(NotAuthenticated):
        hub.sessions.log_in("ann", PASSWORD)
    hub.sessions.log_in("ann", "battery staple")


def test_change_password__refusals(hub: Hub) -> None:
    """A wrong or equal password, one that is too short, and an actor without a session change nothing."""
    add_user(hub, "ann")
    actor = log_in(hub, "ann")
    with pytest.raises(InvalidInput, match="current password is wrong"):
        hub.sessions.change_password(actor, "wrong one", "battery staple")
    with pytest.raises(InvalidInput, match="choose another"):
        hub.sessions.change_password(actor, PASSWORD, PASSWORD)
    with pytest.raises(InvalidInput, match="a password has 8"):
        hub.sessions.change_password(actor, PASSWORD, "short")
    key = hub.credentials.get(actor).api_key
    with pytest.raises(Forbidden, match="browser session"):
        hub.sessions.change_password(hub.credentials.actor(key), PASSWORD, "battery staple")
    with pytest.raises(Forbidden, match="Authentication is disabled"):
        hub.sessions.change_password(local_actor("me"), PASSWORD, "battery staple")
    with pytest.raises(NotAuthenticated):
        hub.sessions.change_password(ANONYMOUS, PASSWORD, "battery staple")
    hub.sessions.log_in("ann", PASSWORD)


@pytest.mark.parametrize("end", ["log_out", "log_out_all", "disable", "delete"])
@pytest.mark.parametrize("when", ["before", "between"])
def test_change_password__of_a_session_that_has_ended(
    hub: Hub, monkeypatch: pytest.MonkeyPatch, end: str, when: str
) -> None:
    """An actor whose session ended before the call, or while the new password is hashed, changes nothing."""
    user = add_user(hub, "ann")
    token = hub.sessions.log_in("ann", PASSWORD).token
    actor = hub.sessions.actor(token)
    ends: dict[str, Callable[[], object]] = {
        "log_out": lambda: hub.sessions.log_out(token),
        "log_out_all": lambda: hub.users.log_out(OPERATOR, user.id),
        "disable": lambda: hub.users.change(OPERATOR, user.id, enabled=False),
        "delete": lambda: hub.users.delete(OPERATOR, user.id),
    }
    if when == "before":
        ends[end]()
    else:
        hashed = hub_context(hub).passwords.hash

        def hash_late(password: str) -> str:
            ends[end]()
            return hashed(password)

        monkeypatch.setattr(hub_context(hub).passwords, "hash", hash_late)
    with pytest.raises(NotAuthenticated, match="Not authenticated"):
        hub.sessions.change_password(actor, PASSWORD, "battery staple")
    if end != "delete":
        assert hub.users.sessions(OPERATOR, user.id) == []
        hub.users.change(OPERATOR, user.id, enabled=True)
        hub.sessions.log_in("ann", PASSWORD)


def test_change_password__is_no_way_to_guess(hub: Hub, clock: Clock) -> None:
    """Who has a stolen session has as few guesses of the password as who has none."""
    add_user(hub, "ann")
    actor = log_in(hub, "ann")
    for _ in range(5):
        with pytest.raises(InvalidInput):
            hub.sessions.change_password(actor, "wrong one", "battery staple", ip="192.0.2.1")
    with pytest.raises(TooManyAttempts):
        hub.sessions.change_password(actor, PASSWORD, "battery staple", ip="192.0.2.1")
    clock.move(seconds=31)
    hub.sessions.change_password(actor, PASSWORD, "battery staple", ip="192.0.2.1")


def test_log_in__renews_an_outdated_hash(hub: Hub, workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hash with former parameters is replaced at the next log-in."""
    add_user(hub, "ann")

    def memory() -> int:
        with hub._database.read() as connection:
            hashed = connection.exec_driver_sql("SELECT password_hash FROM users WHERE username = 'ann'").scalar()
        return argon2.extract_parameters(str(hashed)).memory_cost

    former = memory()
    weakest = argon2.profiles.CHEAPEST
    stronger = argon2.Parameters(
        weakest.type, weakest.version, weakest.salt_len, weakest.hash_len, weakest.time_cost, 64, weakest.parallelism
    )
    monkeypatch.setattr(argon2.profiles, "RFC_9106_LOW_MEMORY", stronger)
    with Hub(workspace) as later:
        with suppress(NotAuthenticated):
            later.sessions.log_in("ann", "wrong one")
        assert memory() == former
        later.sessions.log_in("ann", PASSWORD)
        assert (former, memory()) == (8, 64)
        later.sessions.log_in("ann", PASSWORD)


def test_sweep__deletes_ended_sessions(hub: Hub, clock: Clock) -> None:
    """Rows of ended sessions go, and live ones stay."""
    user = add_user(hub, "ann")
    hub.sessions.log_in("ann", PASSWORD)
    clock.move(hours=9)
    add_user(hub, "bob")
    hub.sessions.log_in("bob", PASSWORD)
    live = hub.sessions.log_in("ann", PASSWORD).token
    assert hub.sessions.sweep() == 1
    hub.sessions.actor(live)
    hub.users.log_out(OPERATOR, user.id)
    assert (hub.sessions.sweep(), hub.sessions.sweep()) == (1, 0)


def test_read_only__sessions_work(hub: Hub, workspace: Workspace, clock: Clock) -> None:
    """In a workspace that was opened for reading sessions and keys work, and nothing is changed."""
    add_user(hub, "ann", "admin")
    token = hub.sessions.log_in("ann", PASSWORD).token
    key = hub.credentials.get(hub.sessions.actor(token)).api_key
    clock.move(minutes=5)
    with Workspace(workspace.path, read_only=True) as reader, Hub(reader, clock=clock) as later:
        actor = later.sessions.actor(token)
        assert later.credentials.actor(key).user_id == actor.user_id
        assert later.users.page(actor)[1] == 1
        assert later.datasets.visible(actor) == []
        for call in (
            lambda: later.sessions.log_in("ann", PASSWORD),
            lambda: later.users.create(actor, "bob", PASSWORD),
            lambda: later.datasets.create(actor, "pets"),
        ):
            with pytest.raises(ReadOnly):
                call()


def test_read_only__without_users(workspace: Workspace) -> None:
    """A workspace that was opened for reading and has no users stays as it is, and the local user sees datasets."""
    workspace.create_draft("pets")
    with Workspace(workspace.path, read_only=True) as reader, Hub(reader) as hub:
        assert [record.display_name for record in hub.datasets.visible(local_actor("me"))] == ["pets"]
        assert hub.users.count() == 0
        with pytest.raises(ReadOnly):
            add_user(hub, "ann")
        folder = Path(str(hub._database._path)).parent
        assert folder != workspace.path
    assert not folder.exists()
    assert [path.name for path in workspace.path.glob("service*")] == []
