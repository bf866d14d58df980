"""Findings of a check in progress."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

from framedex.core.counts import counted
from framedex.core.progress import Progress
from framedex.errors import Aborted, Error
from framedex.operations.context import Context
from framedex.records import CheckResult, Finding

_MOST = 20  # findings of one kind about one dataset that have a line of their own
_REPORTED = 256  # steps between two reports of the progress

Repair = Callable[[], object]


class Inspection:
    """A check of a workspace in progress.

    Args:
        context: the open workspace.
        repair: whether to repair findings where possible.
        progress: called with the stage and the share that is done; raises to stop.

    Attributes:
        counts: number of checked items, by kind.
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
        """Report at intervals that the stage continues, so that the check can be stopped."""
        self._steps += 1
        if self._progress is not None and self._steps % _REPORTED == 0:
            self._progress(self._stage, self._share)

    def add(self, path: Path | str, fault: str, remedy: str, *, kind: str = "", repair: Repair | None = None) -> bool:
        """Add a finding, and repair it if that is requested and possible; return whether it is repaired.

        Args:
            path: the faulty file or folder, or the URI of an object.
            fault: description of the fault.
            remedy: action for the user.
            kind: group of similar findings; only the first 20 of a group are listed, the others are counted.
            repair: repairs the finding; None if that is impossible.
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
            return repaired
        self._lines[kind, self._stage] += 1
        self._findings.append(Finding(path=str(path), fault=fault, remedy=remedy, repaired=repaired))
        return repaired

    def result(self) -> CheckResult:
        """Return the findings."""
        more = [
            Finding(
                path=self._last[kind, stage, repaired],
                fault=f"is the last of {counted(count, f'more {kind}')} like those above",
                remedy="as above",
                repaired=repaired,
            )
            for (kind, stage, repaired), count in self._more.items()
        ]
        return CheckResult(findings=[*self._findings, *more], counts=dict(self.counts))
