"""Checks of a dataset's journal: its files with values, the states to which steps return, and files of no step."""

import time
from contextlib import suppress
from functools import partial
from pathlib import Path

from framedex.operations.integrity.inspection import Inspection
from framedex.storage import disk, journal_rows
from framedex.storage.journal_files import JOURNAL, journal_file_fault
from framedex.storage.journal_rows import StepFile
from framedex.storage.leases import leased
from framedex.storage.retention import check_unused

_WRITING_S = 3600.0  # a younger file may belong to an edit that is not committed yet
_GIVEN_UP = "`--repair` keeps the step in the journal, but it can never be undone or redone"
_REMOVED = "`--repair` and vacuum remove it"


def check_journal(inspection: Inspection, dataset_id: str, name: str) -> None:
    """Check that each step has what it needs to be undone, and that each file of the journal belongs to a step.

    Args:
        inspection: the check.
        dataset_id: the dataset.
        name: its name.
    """
    catalog, folder = inspection.context.catalog, inspection.context.layout.dataset(dataset_id) / JOURNAL
    with catalog.read() as connection:
        files = journal_rows.step_files(connection, dataset_id)
        steps = journal_rows.steps_without_state(connection, dataset_id)
    for each in files:
        inspection.step()
        inspection.counts["journal files"] += 1
        if (fault := journal_file_fault(folder.parent, each.name, each.digest)) is None:
            continue
        with catalog.read() as connection:
            if each not in journal_rows.step_files(connection, dataset_id):
                continue  # the step was forgotten meanwhile
        text = f"{fault}, and step {each.step} of the journal ({each.operation}) needs it"
        repair = partial(_give_up, inspection, dataset_id, each, fault)
        inspection.add(folder / each.name, text, _GIVEN_UP, kind="journal files", repair=repair)
    for step in steps:
        text = f"the state to which step {step} of the journal of dataset {name!r} returns is missing"
        repair = partial(give_up_states, inspection, dataset_id, [step])
        inspection.add(inspection.context.layout.catalog, text, _GIVEN_UP, kind="steps", repair=repair)
    needed = {each.name for each in files}
    for path, _ in disk.walk_files(folder):
        if path.name not in needed and _is_old(path):
            text = "is a file of the journal that no step needs"
            repair = partial(_remove, inspection, dataset_id, path)
            inspection.add(path, text, _REMOVED, kind="unneeded journal files", repair=repair)


def give_up_states(inspection: Inspection, dataset_id: str, steps: list[int]) -> None:
    """Give up the states to which steps return, because these are missing or damaged."""
    with inspection.context.catalog.write() as connection:
        for step in steps:
            journal_rows.give_up_step(connection, dataset_id, step, "the state to which it returns was lost")


def _give_up(inspection: Inspection, dataset_id: str, file: StepFile, fault: str) -> None:
    with inspection.context.catalog.write() as connection:
        journal_rows.give_up_step(connection, dataset_id, file.step, f"the file with its values {fault}")
    (inspection.context.layout.dataset(dataset_id) / JOURNAL / file.name).unlink(missing_ok=True)


def _remove(inspection: Inspection, dataset_id: str, path: Path) -> None:
    catalog = inspection.context.catalog
    with leased(catalog, dataset_id, "check", lambda connection: check_unused(connection, dataset_id)):
        with catalog.read() as connection:
            if path.name in journal_rows.journal_files(connection, dataset_id):
                return
        path.unlink(missing_ok=True)


def _is_old(path: Path) -> bool:
    with suppress(OSError):
        return path.lstat().st_mtime < time.time() - _WRITING_S
    return False
