"""Threads get their turns in the order of their requests, and a thread that gives up blocks no other."""

import threading
from contextlib import suppress

import pytest

from framedex.storage.turns import Turns
from tests.pauses import wait_until


def wait_until_asked(turns: Turns, count: int) -> None:
    """Wait until the given number of threads hold or wait for the turn."""
    wait_until(lambda: len(turns._queue) >= count)


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


class Work:
    """Work in progress that writes down when it is finished."""

    def __init__(self, order: list[str]) -> None:
        self.order = order

    def finish(self) -> None:
        """Write it down."""
        self.order.append("finished")


def _baton(turns: Turns) -> object:
    return turns.baton


def test_end__finishes_the_work_of_the_last_thread() -> None:
    """Work in progress is finished by the last thread, once, and passed on by all others."""
    turns, order = Turns(), list[str]()
    first, second = turns.request(), turns.request()
    turns.baton = Work(order)
    first.end()
    assert (order, second.wait(0), second.is_awaited) == ([], True, False)
    second.end()
    second.end()
    assert (order, _baton(turns)) == (["finished"], None)


@pytest.mark.parametrize("has_come", [False, True])
def test_hand_over__before_the_next_turn(has_come: bool) -> None:
    """Work is finished at the place of a turn that was handed over, before the thread behind it begins."""
    turns, order = Turns(), list[str]()
    first, mark, third = turns.request(), turns.request(), turns.request()
    turns.baton = Work(order)
    if has_come:
        first.end()
        mark.hand_over()
    else:
        mark.hand_over()
        assert order == []
        first.end()
    assert (order, third.wait(0), _baton(turns)) == (["finished"], True, None)
    third.end()
    assert order == ["finished"]


def test_hand_over__of_work_that_fails() -> None:
    """An error of the work reaches the thread that finishes it, and the threads behind it get their turns."""

    class Failing:
        def finish(self) -> None:
            raise ValueError("failed")

    turns = Turns()
    first, mark, third = turns.request(), turns.request(), turns.request()
    turns.baton = Failing()
    mark.hand_over()
    with pytest.raises(ValueError, match="failed"):
        first.end()
    assert (third.wait(0), _baton(turns), len(turns._queue)) == (True, None, 1)
    third.end()
    assert not turns._queue


def test_turn__not_reentrant() -> None:
    """A thread that has the turn and requests it again times out."""
    turns = Turns()
    with turns.turn(timeout_s=60), pytest.raises(TimeoutError, match=r"within 0\.01 s"), turns.turn(timeout_s=0.01):
        pytest.fail("there is no second turn")
