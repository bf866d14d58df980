"""Threads get their turns in the order of their requests, and a thread that gives up blocks no other."""

import threading
from contextlib import suppress

import pytest

from framedex.storage.turns import Turns


def wait_until_asked(turns: Turns, count: int) -> None:
    """Wait until the given number of threads hold or wait for the turn."""
    while len(turns._queue) < count:
        pass


def test_turn__in_order_of_asking() -> None:
    """The first thread to request the turn gets it first, however many wait."""
    turns, order = Turns(), list[int]()

    def work(number: int) -> None:
        with turns.turn(timeout_s=60):
            order.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(20)]
    with turns.turn(timeout_s=60):
        for place, thread in enumerate(threads):
            thread.start()
            wait_until_asked(turns, place + 2)
        assert order == []
    for thread in threads:
        thread.join(60)
    assert order == list(range(20))


def test_turn__given_up() -> None:
    """A thread that waits too long, or raises during its turn, blocks no other thread."""
    turns, ends = Turns(), list[str]()

    def give_up() -> None:
        try:
            with turns.turn(timeout_s=0.01):
                ends.append("had it")
        except TimeoutError:
            ends.append("gave up")

    with turns.turn(timeout_s=60):
        waiting = threading.Thread(target=give_up)
        waiting.start()
        waiting.join(60)
    assert ends == ["gave up"]
    for error in (ValueError, KeyboardInterrupt):
        with suppress(ValueError, KeyboardInterrupt), turns.turn(timeout_s=60):
            raise error
    with turns.turn(timeout_s=0.01):
        assert len(turns._queue) == 1


def test_turn__one_at_a_time() -> None:
    """Only one thread has the turn at a time."""
    turns, inside, most = Turns(), list[int](), list[int]()

    def work(number: int) -> None:
        for _ in range(50):
            with turns.turn(timeout_s=60):
                inside.append(number)
                most.append(len(inside))
                inside.remove(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert (len(most), max(most)) == (400, 1)


def test_turn__not_reentrant() -> None:
    """A thread that has the turn and requests it again times out."""
    turns = Turns()
    with turns.turn(timeout_s=60), pytest.raises(TimeoutError, match=r"within 0\.01 s"), turns.turn(timeout_s=0.01):
        pytest.fail("there is no second turn")
