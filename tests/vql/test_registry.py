"""The registry is complete: each key has its module, its meaning in plain Python, and random filters to try it."""

import pkgutil

from framedex.vql import keys
from framedex.vql.key_test import SearchTest
from framedex.vql.registry import KEYS, TESTS
from tests.oracles.vql import TESTS as PLAIN
from tests.vql.strategies import KINDS


def test_tests__have_modules_of_their_keys_names() -> None:
    """A key is found in the module of its name, and no module is left out of the registry."""
    modules = {module.name for module in pkgutil.iter_modules(keys.__path__)}
    assert modules == set(KEYS)
    assert {test.__module__.rpartition(".")[2]: test for test in TESTS} == KEYS
    assert len(KEYS) == len(TESTS)


def test_tests__have_a_plain_meaning() -> None:
    """The compiler is compared with plain Python for each test, but for searches, whose results are given."""
    assert set(PLAIN) == {test for test in TESTS if not issubclass(test, SearchTest)}


def test_tests__occur_in_random_filters() -> None:
    """The random filters of the laws have tests of each key."""
    assert {kind.partition(" ")[0] for kind in KINDS} == set(KEYS)
