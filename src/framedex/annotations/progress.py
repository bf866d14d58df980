"""Progress of writing, as a share of the whole."""

from collections.abc import Callable

Progress = Callable[[float], None]
"""Called with the share that is done, 0 to 1; raises to stop."""


def part(progress: Progress, start: float, end: float) -> Progress:
    """Return a function for the shares of one stage, which takes the whole from *start* to *end*."""
    return lambda share: progress(start + (end - start) * share)
