"""The findings of a check while it is under way."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

from framedex.errors import Aborted, Error
from framedex.operations.context import Context
from framedex.progress import Progress
from framedex.records import CheckResult, Finding

_MOST = 20  # findings of one kind about one dataset that have a line of their own
_REPORTED = 256  # steps between two reports of the progress

Repair = Callable[[], object]


class Inspection:
    """A check of a workspace that is under way.

    Args:
        context: the open workspace.
        repair: whether what can be repaired is.
        progress: called with the stage and the share that is done; raises to stop.

    Attributes:
        counts: what was looked at, by what it is.
    """

    def __init__(self, context: Context, *, repair: bool, progress: Progress | None = None) -> None:
        self.context, self.repair = context, repair
        self.counts: Counter[str] = Counter()
        self._progress = progress
        self._findings: list[Finding] = []
        self._more: Counter[tuple[str, str, bool]] = Counter()
        self._last: dict[tuple[str, str, bool], str] = {}
        self._lines: Counter[tuple[str, str]] = Counter()
        self._stage, self._share, self._steps = "", 0.0, 0

    def begin(self, stage: str, share: float) -> None:
        """Report a new stage, and the share of the whole check that is done."""
        self._stage, self._share = stage, share
        if self._progress is not None:
            self._progress(stage, share)

    def step(self) -> None:
        """Report now and then that the stage goes on, so that the check can be stopped."""
        self._steps += 1
        if self._progress is not None and self._steps % _REPORTED == 0:
            self._progress(self._stage, self._share)

    def add(self, path: Path, fault: str, remedy: str, *, kind: str = "", repair: Repair | None = None) -> None:
        """Add a finding, and repair it where that is asked for and possible.

        Args:
            path: the file or folder that is wrong.
            fault: what is wrong with it.
            remedy: what can be done.
            kind: of findings that may be many: all but the first ones of a kind are counted only.
            repair: repairs it; None where nothing can.
        """
        repaired = False
        if self.repair and repair is not None:
            try:
                repair()
                repaired = True
            except Aborted:
                raise
            except (Error, OSError, ValueError) as error:
                remedy = f"{remedy}; the repair failed: {error}"
        if kind and self._lines[kind, self._stage] >= _MOST:
            self._more[kind, self._stage, repaired] += 1
            self._last[kind, self._stage, repaired] = str(path)
            return
        self._lines[kind, self._stage] += 1
        self._findings.append(Finding(path=str(path), fault=fault, remedy=remedy, repaired=repaired))

    def result(self) -> CheckResult:
        """Return what was found."""
        more = [
            Finding(
                path=self._last[kind, stage, repaired],
                fault=f"is the last of {count:,} more {kind} like those above",
                remedy="as above",
                repaired=repaired,
            )
            for (kind, stage, repaired), count in self._more.items()
        ]
        return CheckResult(findings=[*self._findings, *more], counts=dict(self.counts))
