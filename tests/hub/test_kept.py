"""Values that are kept for users: how many, how much and how long."""

from framedex.hub.kept import KeptValues


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        """Return the time."""
        return self.now


def test_kept__for_a_time_after_the_last_use() -> None:
    """A use prolongs the life of a value; without one it ends."""
    clock = Clock()
    kept = KeptValues[str](most=4, max_bytes=100, keep_s=10, clock=clock)
    kept.put("ann", "a", "first")
    clock.now = 9
    assert kept.get("ann", "a") == "first"
    clock.now = 19
    assert kept.get("ann", "a") == "first"
    clock.now = 29.5
    assert kept.get("ann", "a") is None
    assert len(kept) == 0


def test_kept__up_to_a_number_for_each_user() -> None:
    """A user's least recently used value makes place; those of others stay."""
    kept = KeptValues[int](most=2, max_bytes=100)
    kept.put("eve", "a", 0)
    for number in range(2):
        kept.put("ann", str(number), number)
    assert kept.get("ann", "0") == 0
    kept.put("ann", "2", 2)
    assert [kept.get("ann", str(number)) for number in range(3)] == [0, None, 2]
    assert kept.get("eve", "a") == 0
    assert kept.get("eve", "0") is None


def test_kept__up_to_a_size() -> None:
    """All values together are bounded; one that is larger than the bound is kept alone."""
    kept = KeptValues[str](most=9, max_bytes=100)
    for name, weight in (("a", 40), ("b", 40), ("c", 40)):
        kept.put("ann", name, name, weight=weight)
    assert (kept.get("ann", "a"), kept.get("ann", "b"), kept.nbytes) == (None, "b", 80)
    kept.put("ann", "b", "again", weight=10)
    assert (kept.get("ann", "b"), kept.nbytes) == ("again", 50)
    kept.put("eve", "large", "x", weight=1000)
    assert (len(kept), kept.get("eve", "large")) == (1, "x")
