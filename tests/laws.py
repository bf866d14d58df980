"""The number of examples that laws are tried on: few with the profile ``quick``, all with ``full``.

``make test`` runs with ``quick``, ``make test-all`` with ``full`` (``pytest --hypothesis-profile=full``).
"""

from typing import Any

from hypothesis import HealthCheck, settings

QUICK = "quick"
_FEWEST = 3
_TIMED = [HealthCheck.too_slow]
"""Checks that fail where other work keeps the machine busy."""
settings.register_profile("full", deadline=None, max_examples=100, suppress_health_check=_TIMED)
settings.register_profile(QUICK, deadline=None, max_examples=20, suppress_health_check=_TIMED)


def examples(number: int, *, without: HealthCheck | None = None, **options: Any) -> settings:
    """Return the settings of a law that is tried on *number* examples with ``full``, and on a fifth with ``quick``.

    Args:
        number: examples with the profile ``full``.
        without: a health check that does not hold for this law.
        options: other settings, as ``stateful_step_count``.
    """
    scaled = round(number * settings().max_examples / 100)
    checks = _TIMED if without is None else [*_TIMED, without]
    return settings(max_examples=max(min(number, _FEWEST), scaled), suppress_health_check=checks, **options)
