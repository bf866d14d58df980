"""Damage of a video: which frames cannot be decoded, which are wrong, and where it ends too early."""

from dataclasses import dataclass

_MOST_RUNS = 5  # of frames that a description names


@dataclass
class _Run:
    """Consecutive frames: the numbers and times of the first and the last."""

    first: int
    last: int
    begin_s: float
    end_s: float

    def __str__(self) -> str:
        if self.first == self.last:
            return f"frame {self.first} ({self.begin_s:.2f} s)"
        return f"frames {self.first} to {self.last} ({self.begin_s:.2f} to {self.end_s:.2f} s)"


class VideoDamage:
    """The damage that was found while a video was decoded from its beginning."""

    def __init__(self) -> None:
        self._lost: list[_Run] = []
        self._wrong: list[_Run] = []
        self._gaps: list[str] = []
        self._end: str | None = None

    def add_lost(self, number: int, time_s: float) -> None:
        """Add a frame that cannot be decoded."""
        _extend(self._lost, number, time_s)

    def add_wrong(self, number: int, time_s: float) -> None:
        """Add a frame that was decoded with gaps, or after a frame that is lost or damaged and that it may need."""
        _extend(self._wrong, number, time_s)

    def add_gap(self, begin_s: float, end_s: float) -> None:
        """Add a time between two frames for which the file has bytes that hold no frame."""
        self._gaps.append(f"{begin_s:.2f} and {end_s:.2f} s")

    def set_end(self, end_s: float, duration_s: float) -> None:
        """Set the time after which the file ends too early, and the duration that its header names; 0 for none."""
        whole = f" of {duration_s:.2f}" if duration_s > end_s else ""
        self._end = f"it ends after {end_s:.2f}{whole} s: truncated"

    def __str__(self) -> str:
        """Return a description, empty if there is no damage."""
        parts = [] if self._end is None else [self._end]
        if self._lost:
            parts.append(f"{_listed(list(map(str, self._lost)))} cannot be decoded")
        if self._gaps:
            parts.append(f"frames are missing between {_listed(self._gaps)}")
        if self._wrong:
            parts.append(f"{_listed(list(map(str, self._wrong)))} may show damage")
        return "; ".join(parts)


def _extend(runs: list[_Run], number: int, time_s: float) -> None:
    if runs and runs[-1].last == number:
        return
    if runs and runs[-1].last == number - 1:
        runs[-1].last, runs[-1].end_s = number, time_s
    else:
        runs.append(_Run(number, number, time_s, time_s))


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _MOST_RUNS:,} more" if len(names) > _MOST_RUNS else ""
    return ", ".join(names[:_MOST_RUNS]) + more
