"""The bounded cache: what stays, what goes, and that threads share it."""

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from framedex.core.lru_cache import LruCache


def test_put__least_recently_used_goes_first() -> None:
    """A value that was read outlives one that was stored later and not read."""
    cache = LruCache[str, int](2)
    cache.put("a", 1)
    cache.put("b", 2)
    assert cache.get("a") == 1
    cache.put("c", 3)
    assert (cache.get("a"), cache.get("b"), cache.get("c")) == (1, None, 3)


def test_contains__is_no_use() -> None:
    """Asking whether there is an entry does not keep it."""
    cache = LruCache[str, int](1)
    cache.put("a", 1)
    cache.put("b", 2)
    assert "a" not in cache
    assert "b" in cache


def test_put__weights() -> None:
    """Several light entries go for a heavy one; one that is heavier than the limit is not stored."""
    cache = LruCache[str, int](10)
    for name in "abc":
        cache.put(name, 1, weight=3)
    cache.put("d", 2, weight=7)
    assert [name for name in "abcd" if name in cache] == ["c", "d"]
    assert cache.weight == 10
    cache.put("e", 3, weight=11)
    assert "e" not in cache
    assert cache.weight == 10


def test_put__in_place_of_an_earlier_value() -> None:
    """A new value of a key takes the place of the old one, and its weight counts."""
    cache = LruCache[str, int](10)
    cache.put("a", 1, weight=8)
    cache.put("a", 2, weight=3)
    assert (cache.get("a"), cache.weight, len(cache)) == (2, 3, 1)
    cache.clear()
    assert (cache.get("a"), cache.weight, len(cache)) == (None, 0, 0)


def test_get_or_make__once_for_many_threads() -> None:
    """Threads that ask for one key at the same time get one value, made once."""
    cache = LruCache[str, object](4)
    made: list[object] = []
    start = threading.Barrier(8)
    found: list[object] = []

    def make() -> object:
        made.append(object())
        return made[-1]

    def ask() -> None:
        start.wait(timeout=30)
        found.append(cache.get_or_make("key", make))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert len(made) == 1
    assert found == made * 8


def test_get_or_make__failure_is_not_kept() -> None:
    """A failed creation is repeated at the next use, and the cache stays usable."""
    cache = LruCache[str, int](4)
    with pytest.raises(ZeroDivisionError):
        cache.get_or_make("a", lambda: 1 // 0)
    assert cache.get_or_make("a", lambda: 5) == 5


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(0, 5), st.booleans()), max_size=60))
def test_put_and_get__law(steps: list[tuple[str, int, bool]]) -> None:
    """The cache holds the longest run of the most recently used entries whose weights fit."""
    cache, recent = LruCache[str, int](8), list[tuple[str, int]]()
    for name, weight, reads in steps:
        held = dict(recent)
        if reads:
            assert cache.get(name) == held.get(name)
            if name in held:
                recent = [each for each in recent if each[0] != name] + [(name, held[name])]
        else:
            cache.put(name, weight, weight=weight)
            recent = [each for each in recent if each[0] != name] + [(name, weight)]
            while sum(weight for _, weight in recent) > 8:
                recent.pop(0)
        assert cache.weight == sum(weight for _, weight in recent)
        assert len(cache) == len(recent)
