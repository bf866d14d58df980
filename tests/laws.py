"""The number of cases that tests try: few in ``make test``, more in ``make test-all``, most in ``make soak``.

Examples of laws follow the profile: a fifth of their number with ``quick``, two fifths with ``full``, and three and a
half times as many with ``soak``.

``make test`` runs with ``quick``, ``make test-all`` with ``full`` (``pytest --hypothesis-profile=full``), and
``make soak`` with ``soak``. Trials of kill tests are few with the first two and many with the last.
"""

import os
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

QUICK, SOAK = "quick", "soak"
_FEWEST = 3
_TIMED = [HealthCheck.too_slow]
"""Checks that fail where other work keeps the machine busy."""
settings.register_profile("full", deadline=None, max_examples=40, suppress_health_check=_TIMED)
settings.register_profile(SOAK, deadline=None, max_examples=350, suppress_health_check=_TIMED)
settings.register_profile(QUICK, deadline=None, max_examples=20, suppress_health_check=_TIMED)
_MEMORY = "/dev/shm"
_LEAST_FREE = 2**30  # bytes


def law_folder(name: str) -> Path:
    """Return a new folder for an example of a law: in memory if possible.

    An example makes a workspace and commits many times; on a disk it would wait for each commit to be stored.

    Args:
        name: a part of the folder's name.
    """
    has_memory = os.access(_MEMORY, os.W_OK) and shutil.disk_usage(_MEMORY).free > _LEAST_FREE
    return Path(tempfile.mkdtemp(prefix=f"framedex-{name}-", dir=_MEMORY if has_memory else None))


def examples(number: int, *, without: HealthCheck | None = None, **options: Any) -> settings:
    """Return the settings of a law.

    Args:
        number: of examples, of which ``quick`` takes a fifth, ``full`` two fifths, and ``soak`` 3.5 times as many.
        without: a health check that does not hold for this law.
        options: other settings, as ``stateful_step_count``.
    """
    scaled = round(number * settings().max_examples / 100)
    checks = _TIMED if without is None else [*_TIMED, without]
    return settings(max_examples=max(min(number, _FEWEST), scaled), suppress_health_check=checks, **options)


def trials(short: int, full: int) -> int:
    """Return a number of trials, or the size of one: *full* with ``soak``, *short* with the other profiles."""
    return full if settings.get_current_profile_name() == SOAK else short


def rest_slow(values: Iterable[Any], quick: int, *, several: bool = False, long: int | None = None) -> list[Any]:
    """Return parameters of a test of which all but the first ones are marked as slow.

    Args:
        values: a value for each case, or a tuple of values.
        quick: the number of cases that are not slow.
        several: whether the test has several arguments, so that a tuple is a value for each.
        long: the number of cases that `make test-all` runs; `make soak` runs all. None for all.
    """
    cases = [each if several else (each,) for each in values]
    most = len(cases) if long is None else long
    marks = [[pytest.mark.slow] * (at >= quick) + [pytest.mark.only_soak] * (at >= most) for at in range(len(cases))]
    return [pytest.param(*case, marks=own) for case, own in zip(cases, marks, strict=True)]
