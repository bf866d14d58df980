"""Changes of people are killed: each is there as a whole or not at all, and the rest can be done.

A process takes all steps in a hub, and ends itself before, within or after one of its transactions, or is killed from
outside. Then the workspace is opened here. All that is stored, at the provider too, must be as before or after the
interrupted step of an undisturbed run, and once the remaining steps are taken, the end must be the same. A creation or
a deletion that was killed between the two databases is finished by the opening.
"""

import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from framedex import Workspace
from framedex.storage.database import Database
from tests.gallery import SETTINGS
from tests.kill.moments import Moment, moment_of, placed, watch_writes
from tests.kill.people import NAMES, STEPS, State, begin, difference, known, open_hub, prepare, quicken, state_of, take
from tests.laws import trials
from tests.second_process import SecondProcess

pytestmark = [pytest.mark.slow, pytest.mark.soak]
Undisturbed = Callable[[str], "Run"]


@dataclass(frozen=True)
class Run:
    """A sequence of steps that nobody disturbed.

    Attributes:
        base: the folder of the workspace before it.
        states: what is stored before each step, and at the end.
        takes_s: the time of each step in seconds.
        writes: transactions of all.
    """

    base: Path
    states: list[State]
    takes_s: list[float]
    writes: int


@dataclass
class Killed:
    """A sequence of steps that was killed.

    Attributes:
        ended: the number of steps that had ended.
        tokens: the sessions that they opened, by the steps.
    """

    ended: int
    tokens: dict[str, str]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    """A function that takes all steps with one admin or many, once."""
    return cache(lambda admins: _run(tmp_path_factory.mktemp(admins), is_multi=admins == "many"))


@pytest.mark.parametrize("number", range(trials(3, 209)))
@pytest.mark.parametrize("admins", ["one", "many"])
def test_change__killed(
    undisturbed: Undisturbed, tmp_path: Path, admins: str, number: int, record_property: Callable[[str, object], None]
) -> None:
    """A killed change is made or not made, and all others can follow, to the same end as without a kill."""
    run, is_multi, killed = undisturbed(admins), admins == "many", Killed(0, {})

    def kill(moment: Moment) -> bool:
        nonlocal killed
        shutil.rmtree(tmp_path / "copy", ignore_errors=True)
        shutil.copytree(run.base, tmp_path / "copy")
        killed = _kill(tmp_path / "copy" / "workspace", run, moment, is_multi=is_multi)
        return killed.ended < len(STEPS)

    moment = placed(kill, moment_of(admins, number, run.writes))
    at, ended = f"killed {moment}, in {NAMES[killed.ended]!r}", killed.ended
    before, after = (known(run.states[each], killed.tokens) for each in (ended, ended + 1))
    with (
        Workspace(tmp_path / "copy" / "workspace", settings=SETTINGS) as workspace,
        open_hub(workspace, is_multi=is_multi) as hub,
    ):
        hub.sweep()
        assert workspace.check().findings == [], at
        state = state_of(hub, killed.tokens)
        assert state in (before, after), f"{at}: {difference(state, before)}; {difference(state, after)}"
        is_done = state == after
        record_property("kill", (f"changes with {admins} admin{'s' * is_multi}", "done" if is_done else "not done"))
        for name in NAMES[ended + is_done :]:
            STEPS[name](hub)
        end, expected = ({**each, "tokens": None, "audit": None} for each in (state_of(hub, {}), run.states[-1]))
        assert end == expected, f"{at}: {difference(end, expected)}"


def _run(home: Path, *, is_multi: bool) -> Run:
    """Take all steps on a copy of a new workspace."""
    with Workspace(home / "base" / "workspace", settings=SETTINGS) as workspace:
        prepare(workspace)
    shutil.copytree(home / "base", home / "undisturbed")
    with (
        pytest.MonkeyPatch.context() as patch,
        Workspace(home / "undisturbed" / "workspace", settings=SETTINGS) as workspace,
        open_hub(workspace, is_multi=is_multi) as hub,
    ):
        patch.setattr(Database, "write", Database.write)
        writes, count = watch_writes(Database), 0
        tokens, takes_s, states = dict[str, str](), list[float](), [state_of(hub, {})]
        for name, step in STEPS.items():
            began, count_before = time.monotonic(), len(writes)
            if (token := step(hub)) is not None:
                tokens[name] = token
            takes_s.append(time.monotonic() - began)
            count += len(writes) - count_before
            states.append(state_of(hub, tokens))
    return Run(home / "base", states, takes_s, count)


def _kill(home: Path, run: Run, moment: Moment, *, is_multi: bool) -> Killed:
    """Take the steps in a process until it is killed."""
    process, killed = SecondProcess(home, SETTINGS, quicken), Killed(0, {})
    process.run(begin, is_multi, moment)
    last = len(STEPS) - 1 if moment.write is not None else int(moment.share * len(STEPS))
    try:
        for name in NAMES[:last]:
            token: Any = process.run(take, name)
            killed.tokens |= {} if token is None else {name: token}
            killed.ended += 1
    except (EOFError, ConnectionResetError):  # it has ended itself
        process.close()
        return killed
    takes_s = run.takes_s[last] * (moment.share * len(STEPS) - last) / (moment.share or 1)
    if not process.die_within(moment.after_s(takes_s), take, NAMES[last]):
        killed.ended = len(STEPS)
    return killed
