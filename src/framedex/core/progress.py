"""Types of progress callbacks."""

from collections.abc import Callable

Progress = Callable[[str, float], None]
"""Called with the stage, in words, and the fraction of the whole work that is done, 0 to 1."""

ShareProgress = Callable[[float], None]
"""Called with the fraction of the work that is done, 0 to 1."""
