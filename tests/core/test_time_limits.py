"""Time limits: queries of tables end with them, and nothing that follows is interrupted."""

import threading

import pytest

from framedex.core.time_limits import interrupted, time_limit
from framedex.errors import TimedOut
from framedex.storage.sql import Sql

ENDLESS = "SELECT count(*) FROM range(1000000000000) a WHERE a.range % 7 = 3"
WORDS = "took longer than 0.2 s and was stopped"


@pytest.mark.slow
def test_limit__stops_a_query() -> None:
    """A query ends with the limit, and the next one on the same connection works."""
    sql = Sql()
    with time_limit(0.2), pytest.raises(TimedOut, match=WORDS):
        sql.query(ENDLESS, (), {})
    assert sql.query("SELECT 1 AS x", (), {})["x"].to_pylist() == [1]


def test_limit__is_of_all_queries_together() -> None:
    """A query that begins after the end of the limit is not made."""
    sql = Sql()
    with time_limit(0.2):
        assert sql.query("SELECT 1 AS x", (), {})["x"].to_pylist() == [1]
        with pytest.raises(TimedOut, match=WORDS):
            sql.query(ENDLESS, (), {})
        with pytest.raises(TimedOut, match=WORDS):
            sql.query("SELECT 1 AS x", (), {})
    assert sql.query("SELECT 1 AS x", (), {})["x"].to_pylist() == [1]


def test_limit__leaves_other_errors() -> None:
    """An error before the end of the limit is that of the query."""
    with time_limit(60), pytest.raises(Exception, match="nowhere"):
        Sql().query("SELECT * FROM nowhere", (), {})


def test_interrupted__not_after_the_block() -> None:
    """What the limit would interrupt is not, once the block has ended; an earlier end of another limit is kept."""
    calls, ended = list[str](), threading.Event()
    with time_limit(60), interrupted(lambda: calls.append("later")), time_limit(0.05):
        with interrupted(lambda: calls.append("late")):
            pass
        with interrupted(ended.set):
            assert ended.wait(30)
    assert calls == []


def test_interrupted__each_of_many_threads() -> None:
    """Limits of many threads end each at its own time, with one thread more for all of them."""
    before, ended = threading.active_count(), list[int]()

    def work(number: int) -> None:
        stopped = threading.Event()
        with time_limit(0.02 * number), interrupted(stopped.set):
            stopped.wait(30)
            ended.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in (8, 3, 1, 6)]
    for thread in threads:
        thread.start()
    assert threading.active_count() <= before + len(threads) + 1
    for thread in threads:
        thread.join()
    assert sorted(ended) == [1, 3, 6, 8]
