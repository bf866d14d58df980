"""Accounts at an identity provider: each change happens there and here, or at neither."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from framedex import Conflict, Error, InvalidInput
from framedex.errors import NotAuthenticated
from framedex.hub import Hub
from tests.hub.people import OPERATOR, PASSWORD, Provider, add_user, log_in, roles
from tests.inside import hub_context


@contextmanager
def failing_commits(hub: Hub, *, after: int = 0) -> Iterator[None]:
    """Let the commits of a hub fail in a block, as on a full disk, after so many that succeed."""
    left = [after]

    def fail() -> None:
        raise sqlite3.OperationalError("database or disk is full")

    @contextmanager
    def committing(_database: object, connection: Any) -> Iterator[Callable[[], None]]:
        left[0] -= 1
        yield fail if left[0] < 0 else connection.commit

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(hub._database), "_committing", committing)
        yield


def state(hub: Hub, provider: Provider) -> tuple[object, ...]:
    """Return all that a change can change: the accounts there, and the users and roles here."""
    return dict(provider.accounts), hub.users.page(OPERATOR), roles(hub)


def test_create__stores_the_identity_and_no_password(hub_with_provider: Hub, provider: Provider) -> None:
    """The account lives at the provider: its id is stored here, and no password, so nobody logs in with one here."""
    user = add_user(hub_with_provider, "ann")
    ((identity, account),) = provider.accounts.items()
    assert account == ("ann", PASSWORD, True)
    with hub_with_provider._database.read() as connection:
        rows = connection.exec_driver_sql("SELECT issuer, subject, user_id FROM identities").all()
        hashes = connection.exec_driver_sql("SELECT password_hash FROM users").scalars().all()
    assert [tuple(row) for row in rows] == [(provider.issuer, identity, user.id)]
    assert set(hashes) == {None}
    with pytest.raises(NotAuthenticated):
        log_in(hub_with_provider, "ann")


def test_create__values_are_checked_before_the_provider_is_called(hub_with_provider: Hub, provider: Provider) -> None:
    """A name that is taken, a value that is invalid or a tenant that does not exist reaches no provider."""
    add_user(hub_with_provider, "ann")
    for values in ({"username": "ANN"}, {"username": "x"}, {"tenant_id": "nowhere"}, {"email": "x"}, {"role": "x"}):
        with pytest.raises(Error):
            hub_with_provider.users.create(OPERATOR, **{"username": "bob", "password": PASSWORD, **values})  # type: ignore[arg-type] # a table
    assert provider.calls == ["create"]


def test_create__fails_at_the_provider(hub_with_provider: Hub, provider: Provider) -> None:
    """Without an account there, no user is here."""
    provider.failing = {"create"}
    with pytest.raises(Error, match="cannot create"):
        add_user(hub_with_provider, "ann", "admin")
    assert hub_with_provider.users.count() == 0
    provider.failing = set()
    add_user(hub_with_provider, "ann", "admin")


def test_create__fails_here(hub_with_provider: Hub, provider: Provider) -> None:
    """If the commit fails, the account is deleted there; if that fails, too, the error says so."""
    with failing_commits(hub_with_provider):
        with pytest.raises(Error, match="full"):
            add_user(hub_with_provider, "ann")
        assert (provider.calls, provider.accounts) == (["create", "delete"], {})
        provider.failing = {"delete"}
        with pytest.raises(Error, match="full") as error:
            add_user(hub_with_provider, "ann")
    assert error.value.__notes__ == ["the account at the identity provider could not be restored: "
                                     "the provider cannot delete"]  # fmt: skip
    assert hub_with_provider.users.count() == 0


def test_create__gets_the_account_of_another_user(
    hub_with_provider: Hub, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An account of another user is not taken, and not deleted for it."""
    add_user(hub_with_provider, "ann")
    before = state(hub_with_provider, provider)
    (identity,) = provider.accounts
    monkeypatch.setattr(provider, "create", lambda _account: identity)
    with pytest.raises(Conflict, match=f"'{identity}' of another one"):
        add_user(hub_with_provider, "bob")
    assert state(hub_with_provider, provider) == before


CHANGES: dict[str, Callable[[Hub, str], object]] = {
    "rename": lambda hub, user_id: hub.users.change(OPERATOR, user_id, username="anne"),
    "enable": lambda hub, user_id: hub.users.change(OPERATOR, user_id, enabled=False),
    "both": lambda hub, user_id: hub.users.change(OPERATOR, user_id, username="anne", enabled=False),
    "set_password": lambda hub, user_id: hub.users.reset_password(OPERATOR, user_id, "temporary one"),
    "log_out": lambda hub, user_id: hub.users.log_out(OPERATOR, user_id),
    "delete": lambda hub, user_id: hub.users.delete(OPERATOR, user_id),
}


@pytest.mark.slow
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("failing", ["rename", "enable", "set_password", "log_out", "delete"])
def test_change__fails_at_the_provider(hub_with_provider: Hub, provider: Provider, change: str, failing: str) -> None:
    """Whichever step fails there, the account there and the user here are as before."""
    user = add_user(hub_with_provider, "ann")
    before, called = state(hub_with_provider, provider), len(provider.calls)
    provider.failing = {failing}
    message = ""
    try:
        CHANGES[change](hub_with_provider, user.id)
    except Error as error:
        message = str(error)
    if failing in provider.calls[called:]:
        assert message == f"the provider cannot {failing}"
        assert state(hub_with_provider, provider) == before
    else:
        assert message == ""


@pytest.mark.slow
@pytest.mark.parametrize("change", [name for name in CHANGES if name not in ("delete", "set_password")])
def test_change__fails_here(hub_with_provider: Hub, provider: Provider, change: str) -> None:
    """If the commit fails, the change is taken back there."""
    user = add_user(hub_with_provider, "ann")
    before = state(hub_with_provider, provider)
    with failing_commits(hub_with_provider), pytest.raises(Error, match="full"):
        CHANGES[change](hub_with_provider, user.id)
    assert state(hub_with_provider, provider) == before


def test_delete__fails_here(hub_with_provider: Hub, provider: Provider) -> None:
    """A deletion there cannot be taken back: the user stays, cannot log in, and can be deleted again."""
    user = add_user(hub_with_provider, "ann")
    with failing_commits(hub_with_provider, after=1), pytest.raises(Error, match="full"):
        hub_with_provider.users.delete(OPERATOR, user.id)
    assert provider.accounts == {}
    assert not hub_with_provider.users.get(OPERATOR, user.id).enabled
    hub_with_provider.users.delete(OPERATOR, user.id)
    assert hub_with_provider.users.count() == 0


def test_changes__reach_both(hub_with_provider: Hub, provider: Provider) -> None:
    """A rename, a disabling, a password and a deletion are made there and here."""
    user = add_user(hub_with_provider, "ann")
    CHANGES["both"](hub_with_provider, user.id)
    CHANGES["set_password"](hub_with_provider, user.id)
    CHANGES["log_out"](hub_with_provider, user.id)
    assert list(provider.accounts.values()) == [("anne", "temporary one", False)]
    assert (hub_with_provider.users.get(OPERATOR, user.id).username, provider.calls) == (
        "anne", ["create", "rename", "enable", "set_password", "log_out"],
    )  # fmt: skip
    CHANGES["delete"](hub_with_provider, user.id)
    assert provider.accounts == {}


def test_provider__is_called_in_no_transaction(hub_with_provider: Hub, provider: Provider) -> None:
    """While a slow provider works, others can change the database: it is called outside of transactions."""
    log: list[str] = []
    call = provider._call

    def writing(name: str) -> None:
        with hub_with_provider._database.write():
            log.append(name)
        call(name)

    provider._call = writing  # type: ignore[method-assign] # a watcher
    user = add_user(hub_with_provider, "ann")
    for change in CHANGES.values():
        change(hub_with_provider, user.id)
    assert log == ["create", "rename", "enable", "rename", "enable", "set_password", "log_out", "delete"]


def test_accounts__of_before_the_provider(hub: Hub, provider: Provider) -> None:
    """Users who were created without the provider are none of its business."""
    user = add_user(hub, "ann")
    with Hub(hub_context(hub).workspace, provider=provider) as later:
        for change in CHANGES.values():
            change(later, user.id)
    assert provider.calls == []


def test_reset_password__of_an_account_elsewhere(hub_with_provider: Hub, hub: Hub) -> None:
    """The password of an account of another provider cannot be set here."""
    user = add_user(hub_with_provider, "ann")
    with pytest.raises(InvalidInput, match="has no password here"):
        hub.users.reset_password(OPERATOR, user.id, "temporary one")
