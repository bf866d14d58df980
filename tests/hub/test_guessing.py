"""Guessing of passwords: bounded for a name from an address and for an address, and it tells nothing about accounts."""

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Literal

import argon2
import pytest

from framedex import Error
from framedex.errors import NotAuthenticated, TooManyAttempts
from framedex.hub import Hub
from tests.hub.people import OPERATOR, PASSWORD, Clock, add_user
from tests.inside import hub_context

HERE, THERE = "192.0.2.1", "192.0.2.2"


def attempt(hub: Hub, name: str = "ann", password: str = "wrong one", ip: str = HERE) -> str | int:
    """Return how a log-in went: ``in``, ``wrong``, or the seconds to wait."""
    try:
        hub.sessions.log_in(name, password, ip=ip)
    except NotAuthenticated:
        return "wrong"
    except TooManyAttempts as error:
        return error.retry_after_s
    return "in"


def test_failures__of_a_name_from_an_address(hub: Hub, clock: Clock) -> None:
    """Five failures are free; then each attempt waits, 30 s at first, doubling up to 15 min."""
    add_user(hub, "ann")
    assert [attempt(hub) for _ in range(5)] == ["wrong"] * 5
    for wait in (30, 60, 120, 240, 480, 900, 900):
        assert attempt(hub, password=PASSWORD) == wait
        clock.move(seconds=wait - 0.5)
        assert attempt(hub, password=PASSWORD) == 1
        clock.move(seconds=0.5)
        assert attempt(hub) == "wrong"


def test_failures__do_not_lock_the_account(hub: Hub) -> None:
    """From another address the user can log in while somebody guesses."""
    add_user(hub, "ann")
    for _ in range(6):
        attempt(hub)
    assert attempt(hub, password=PASSWORD) == 30
    assert attempt(hub, password=PASSWORD, ip=THERE) == "in"
    assert attempt(hub, password=PASSWORD) == 30


def test_failures__are_forgotten_after_a_success(hub: Hub, clock: Clock) -> None:
    """After a log-in the five failures are free again, and waiting attempts count as no failures."""
    add_user(hub, "ann")
    for _ in range(5):
        attempt(hub)
    for _ in range(20):
        assert attempt(hub) == 30
    clock.move(seconds=30)
    assert attempt(hub, password=PASSWORD) == "in"
    assert [attempt(hub) for _ in range(5)] == ["wrong"] * 5


def test_failures__whatever_the_case_of_the_name(hub: Hub) -> None:
    """Another case or form of the name is the same name."""
    add_user(hub, "ann")
    assert [attempt(hub, name) for name in ("ann", "ANN", "Ann", "ａｎｎ", "aNN")] == ["wrong"] * 5
    assert attempt(hub, "anN") == 30


@pytest.mark.slow
def test_failures__from_an_address(hub: Hub, clock: Clock) -> None:
    """After 50 failures in an hour, whatever the names, an address waits a second, doubling up to a minute."""
    add_user(hub, "ann")
    add_user(hub, "bob")
    for number in range(49):
        assert attempt(hub, f"name{number}") == "wrong"
        clock.move(seconds=10)
    assert attempt(hub, "bob", PASSWORD) == "in"
    assert attempt(hub, "name49") == "wrong"
    assert attempt(hub, "bob", PASSWORD) == 1
    assert attempt(hub, "bob", PASSWORD, THERE) == "in"
    clock.move(seconds=1)
    assert attempt(hub, "bob", PASSWORD) == "in", "a user who shares the address is not locked out"
    waits = []
    for number in range(50, 130):
        assert attempt(hub, f"name{number}") == "wrong"
        waits.append(attempt(hub, "bob", PASSWORD))
        clock.move(seconds=60)
        if number % 10 == 9 and number < 100:
            assert attempt(hub, "bob", PASSWORD) == "in"
    assert waits[:9] == [1] * 9
    assert waits[9] == 2
    assert all(wait in ("in", 1, 2, 4, 8, 16, 32, 60) for wait in waits)


@pytest.mark.parametrize(
    ("addresses", "is_one"),
    [
        (("2001:db8:1:2::1", "2001:db8:1:2:ffff::9"), True),
        (("2001:db8:1:2::1", "2001:db8:1:3::1"), False),
        (("192.0.2.1", "::ffff:192.0.2.1"), True),
        (("", ""), True),
        (("no address", "another one"), False),
    ],
)
def test_failures__of_networks(hub: Hub, addresses: tuple[str, str], is_one: bool) -> None:
    """A client with IPv6 counts by its /64 network, of which it may use all addresses."""
    add_user(hub, "ann")
    for _ in range(5):
        attempt(hub, ip=addresses[0])
    assert attempt(hub, ip=addresses[1]) == (30 if is_one else "wrong")


def test_failures__survive_a_restart(hub: Hub, clock: Clock) -> None:
    """Another hub of the workspace counts on."""
    add_user(hub, "ann")
    for _ in range(5):
        attempt(hub)
    with Hub(hub_context(hub).workspace, clock=clock) as later:
        assert attempt(later, password=PASSWORD) == 30


class CountingHasher(argon2.PasswordHasher):
    """A hasher that counts its verifications."""

    def __init__(self) -> None:
        parameters = argon2.profiles.CHEAPEST
        super().__init__(parameters.time_cost, parameters.memory_cost, parameters.parallelism)
        self.verified: list[str] = []

    def verify(self, hash: str | bytes, password: str | bytes) -> Literal[True]:  # noqa: A002 - its name
        self.verified.append(str(hash).rsplit("$", 2)[0])
        return super().verify(hash, password)


def test_answers__tell_nothing_about_accounts(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unknown names, wrong passwords, disabled and local accounts get one answer after one hash of equal cost."""
    add_user(hub, "ann")
    disabled = add_user(hub, "bob")
    hub.users.change(OPERATOR, disabled.id, enabled=False)
    hasher = CountingHasher()
    monkeypatch.setattr(hub_context(hub).passwords, "_hasher", hasher)
    answers = set()
    for name, password in (("ann", "wrong one"), ("nobody", PASSWORD), ("bob", PASSWORD), ("local", PASSWORD)):
        with pytest.raises(NotAuthenticated) as error:
            hub.sessions.log_in(name, password, ip=HERE)
        answers.add(str(error.value))
    assert answers == {"Invalid username or password"}
    assert len(hasher.verified) == 4
    assert len(set(hasher.verified)) == 1  # the algorithm and its parameters


@pytest.mark.parametrize("password", ["x" * 5000, "\ud800" * 8, "", PASSWORD + "\0"])
def test_answers__to_odd_passwords(hub: Hub, password: str) -> None:
    """A password that nobody can have is a wrong one."""
    add_user(hub, "ann")
    assert attempt(hub, password=password) == "wrong"
    assert attempt(hub, "\ud800nobody", PASSWORD) == "wrong"


@pytest.mark.slow
def test_parallel__attempts_learn_no_more_than_five(hub: Hub) -> None:
    """Of many attempts at once at most five are answered; the right password among them does not get through late."""
    add_user(hub, "ann")
    start, count = threading.Barrier(24), 24

    def guess(number: int) -> str | int:
        start.wait()
        return attempt(hub, password=f"wrong one {number}")

    with ThreadPoolExecutor(count) as pool:
        outcomes = list(pool.map(guess, range(count)))
    assert outcomes.count("wrong") == 5
    assert all(each in (30, "wrong") for each in outcomes)
    assert attempt(hub, password=PASSWORD) == 30


@pytest.mark.slow
def test_parallel__log_ins_all_succeed(hub: Hub) -> None:
    """Many log-ins of a user at once each get a session of their own."""
    add_user(hub, "ann")
    with ThreadPoolExecutor(12) as pool:
        tokens = list(pool.map(lambda _: hub.sessions.log_in("ann", PASSWORD, ip=HERE).token, range(12)))
    assert len(set(tokens)) == 12
    assert len({hub.sessions.actor(token).user_id for token in tokens}) == 1


def test_log_in__of_a_password_that_is_reset_meanwhile(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    """A log-in that was verified before a reset does not open a session after it."""
    user = add_user(hub, "ann")
    matches = hub_context(hub).passwords.matches

    def slow(password_hash: str | None, password: str) -> bool:
        result = matches(password_hash, password)
        hub.users.reset_password(OPERATOR, user.id, "temporary one")
        return result

    monkeypatch.setattr(hub_context(hub).passwords, "matches", slow)
    with pytest.raises(Error, match="Invalid username or password"):
        hub.sessions.log_in("ann", PASSWORD)
    assert hub.users.sessions(OPERATOR, user.id) == []
