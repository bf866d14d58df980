"""How many examples the longest laws need to find a fault: small faults, put into the code under them one at a time.

``python benchmarks/law_mutations.py`` runs each law on each of its mutants with seed 1; ``--seeds 1 2 3 --hard`` tries
two further seeds where a sixth of the examples was not enough. A run has as many examples as ``make test-all``, ends
with the first example that fails, and does not shrink it. ``--continue`` keeps the results of the last runs. The
package is copied once, so the sources stay as they are. Examples of laws that are no state machines are not counted.

A share of the examples counts the first ones of a run with all of them. A run with fewer has other examples, of which a
tenth are small in both, so the shares are estimates.
"""

import argparse
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.control import current_build_context
from hypothesis.stateful import RuleBasedStateMachine

from common import RESULTS, ROOT, save, table

_PROFILE, _PLUGIN = "mutations", "law_mutations"
_ANSWER, _PACKAGE = "FRAMEDEX_LAW_ANSWER", "FRAMEDEX_LAW_PACKAGE"
_SHARES = (1, 2, 3, 4, 6)
_UNCHANGED = "unchanged"
_MESSAGE = 200
settings.register_profile(
    _PROFILE,
    deadline=None,
    max_examples=100,
    phases=[Phase.generate],
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)


@dataclass(frozen=True)
class Law:
    """A test, the number of its examples with the profile ``full``, and the number of steps of each."""

    test: str
    examples: int
    steps: int


LAWS = {
    "edits": Law("tests/api/test_workspace__any_edits.py::test_workspace__any_edits_of_many", 20, 100),
    "views": Law("tests/api/test_dataset__saved_views_laws.py", 15, 12),
    "people": Law("tests/hub/test_hub__any_people.py::test_hub__any_people", 15, 50),
    "people of many": Law("tests/hub/test_hub__any_people.py::test_hub__any_people_of_many", 25, 50),
    "round trip": Law("tests/export/test_round_trip.py::test_round_trip__law", 5, 1),
    "uploads": Law("tests/api/test_workspace__any_uploads.py", 15, 20),
}


@dataclass(frozen=True)
class Mutant:
    """A fault: a text of a file that is replaced.

    Attributes:
        name: the fault in a few words.
        laws: the laws that should find it.
        file: the file, below the package.
        old: the text, which the file has once.
        new: the text in its place.
    """

    name: str
    laws: tuple[str, ...]
    file: str
    old: str
    new: str


MUTANTS = (
    Mutant(
        "the oldest edit of a value wins",
        ("edits",),
        "storage/overlay.py",
        "is_last = np.append(ordered[1:] != ordered[:-1], True)",
        "is_last = np.append(True, ordered[1:] != ordered[:-1])",
    ),
    Mutant(
        "layers are merged in the wrong order",
        ("edits",),
        "storage/overlay.py",
        "for each in (older, content) if name in each])",
        "for each in (content, older) if name in each])",
    ),
    Mutant(
        "the key of edits is that of the last layer",
        ("edits",),
        "storage/overlay.py",
        "return tuple(each.file for each in self.layers if",
        "return tuple(each.file for each in self.layers[-1:] if",
    ),
    Mutant(
        "a layer loses its only other column",
        ("edits",),
        "storage/overlay.py",
        "            elif kept:",
        "            elif len(kept) > 1:",
    ),
    Mutant(
        "redo begins with the step that was undone first",
        ("edits",),
        "operations/journal.py",
        "key=lambda each: (-_time(each), each.record.step)",
        "key=lambda each: (_time(each), each.record.step)",
    ),
    Mutant(
        "undo overwrites later values",
        ("edits",),
        "jobs/edits/journal.py",
        "    if present.to_pylist() != expected.to_pylist():",
        "    if len(present) != len(expected):",
    ),
    Mutant(
        "undo puts a deleted tag back on media",
        ("edits",),
        "jobs/edits/journal.py",
        "        if not set(wanted[TAGS].combine_chunks().flatten().unique().to_pylist()) <= tags:",
        "        if not tags:",
    ),
    Mutant(
        "undo takes a tag away that others have put on",
        ("edits",),
        "jobs/edits/journal.py",
        """for each in tags) or count_tags(left).get(tag["number"], 0):""",
        "for each in tags):",
    ),
    Mutant(
        "undo adds a decision at the end",
        ("edits",),
        "jobs/edits/decisions.py",
        "ordered = sorted([*others, decision], key=lambda each: each.decided_at)",
        "ordered = [*others, decision]",
    ),
    Mutant(
        "undo of a new field drops later values",
        ("edits",),
        "jobs/edits/field_definitions.py",
        "batch.column(0).null_count < batch.num_rows",
        "batch.column(0).null_count == 0",
    ),
    Mutant(
        "numbers of deleted tags and fields are used again",
        ("edits",),
        "jobs/edits/tags.py",
        "return max(head.summary.next_numbers.get(table, 0), max(used, default=-1) + 1)",
        "return max(used, default=-1) + 1",
    ),
    Mutant(
        "a restore forgets the numbers of tags and fields",
        ("edits",),
        "jobs/restore.py",
        "next_numbers=_larger(current.next_numbers, restored.next_numbers),",
        "next_numbers=dict(restored.next_numbers),",
    ),
    Mutant(
        "a deletion cannot be undone after vacuum",
        ("edits",),
        "storage/journal_rows.py",
        """if row.change.get("head") == before:""",
        "if row.generation == before:",
    ),
    Mutant(
        "one state too many can be undone",
        ("edits",),
        "storage/journal_rows.py",
        "journal.c.step <= steps[most]",
        "journal.c.step < steps[most]",
    ),
    Mutant(
        "rows that a restore brought back are missing in memory",
        ("edits",),
        "jobs/edits/numbered_rows.py",
        "serves=lambda held: held.serves(self.removed)",
        "serves=lambda _held: True",
    ),
    Mutant(
        "numbers of rows behind a deleted one are off by one",
        ("edits",),
        "storage/row_numbers.py",
        """rows, side="right")""",
        "rows)",
    ),
    Mutant(
        "an edit begins with the newest version of a table",
        ("edits",),
        "operations/short_edits.py",
        "        if not self._begins_clean:",
        "        if self._begins_clean:",
    ),
    Mutant(
        "label issues of neighbours stay as they were",
        ("edits",),
        "jobs/edits/labels.py",
        "    changing = np.union1d(sources, around.listing(sources))",
        "    changing = sources",
    ),
    Mutant(
        "clean-up ends that steps can be undone",
        ("edits",),
        "storage/retention.py",
        "release_generations(connection, dataset_id, limits.unfinished)",
        "release_generations(connection, dataset_id, limits.superseded)",
    ),
    Mutant(
        "clean-up deletes the states of the journal",
        ("edits",),
        "storage/snapshot_rows.py",
        "each.c.id.not_in(of_steps)) if of_journal else",
        "each.c.id.not_in(of_steps)) if not of_journal else",
    ),
    Mutant(
        "clean-up deletes the states of snapshots",
        ("edits",),
        "storage/snapshot_rows.py",
        "each.c.until.is_not(None), each.c.id.not_in(of_snapshots), each.c.id.not_in(head)",
        "each.c.until.is_not(None), each.c.id.not_in(head)",
    ),
    Mutant(
        "clean-up deletes layers that other versions share",
        ("edits",),
        "storage/table_files.py",
        "for name in edited - _edit_files(path, _all_versions(path)):",
        "for name in edited:",
    ),
    Mutant(
        "vacuum deletes contents that only snapshots have",
        ("edits",),
        "operations/vacuum.py",
        "sorted(retained.versions.get(MEDIA, ())))",
        "sorted(retained.versions.get(MEDIA, ()))[-1:])",
    ),
    Mutant(
        "an added item of a clone has another id",
        ("edits",),
        "jobs/restore.py",
        "summary=generation.summary.with_(namespace=source.namespace),",
        "summary=generation.summary,",
    ),
    Mutant(
        "untagging takes all tags off",
        ("edits",),
        "jobs/edits/tag_lists.py",
        "keep = ~(rows[row] & (self.numbers == number))",
        "keep = ~rows[row]",
    ),
    Mutant(
        "a tag gets the name of another one",
        ("edits",),
        "jobs/edits/tags.py",
        "others = [each.name for each in tags if each is not tag]",
        "others: list[str] = []",
    ),
    Mutant(
        "a restore leaves the current snapshot as it was",
        ("edits",),
        "jobs/restore.py",
        "        snapshot_rows.set_current(connection, job.dataset_id, snapshot_id)\n",
        "",
    ),
    Mutant(
        "issues stay those of a limit that was reset",
        ("edits",),
        "jobs/edits/limits.py",
        "if before.get(name) != limits.get(name)]",
        "if name in limits and before.get(name) != limits.get(name)]",
    ),
    Mutant(
        "a deletion makes a partial index whole",
        ("edits",),
        "jobs/remove.py",
        "partial=job.head.summary.partial,",
        "partial=False,",
    ),
    Mutant(
        "a deletion forgets the limits of outliers",
        ("edits",),
        "jobs/index/removed.py",
        "columns |= issue_columns(after, columns, defaults, limits)",
        "columns |= issue_columns(after, columns, defaults, {})",
    ),
    Mutant(
        "the first of several new values is not written",
        ("edits",),
        "jobs/edits/rows.py",
        "changed = np.flatnonzero(indices >= 0)",
        "changed = np.flatnonzero(indices > 0)",
    ),
    Mutant(
        "an addition of nothing new leaves the index partial",
        ("edits",),
        "jobs/add.py",
        "if not ingested.rows and not (auto_reindex and job.head.summary.partial):",
        "if not ingested.rows:",
    ),
    Mutant(
        "a view misses the first batch after it",
        ("views",),
        "storage/view_rows.py",
        "if batch >= row.first_batch and batch not in known",
        "if batch > row.first_batch and batch not in known",
    ),
    Mutant(
        "a restore uses numbers of batches again",
        ("views",),
        "jobs/restore.py",
        "batches=max(current.batches, restored.batches),",
        "batches=restored.batches,",
    ),
    Mutant(
        "views raise alerts that are off",
        ("views",),
        "storage/view_rows.py",
        "is_alert = row.alerting_enabled and count > 0",
        "is_alert = count > 0",
    ),
    Mutant(
        "batches without results raise alerts",
        ("views",),
        "storage/view_rows.py",
        "is_alert = row.alerting_enabled and count > 0 and",
        "is_alert = row.alerting_enabled and",
    ),
    Mutant(
        "a view is found by its exact name alone",
        ("views",),
        "storage/view_rows.py",
        "saved_views.c.name_key == name_key(name_or_id))",
        "saved_views.c.name == name_or_id)",
    ),
    Mutant(
        "a view may have a name that differs in its case",
        ("views", "people"),
        "storage/view_rows.py",
        "saved_views.c.name_key == name_key(name)\n",
        "saved_views.c.name == name\n",
    ),
    Mutant(
        "a view saved after a restore counts batches before it",
        ("views",),
        "operations/saved_views.py",
        "first_batch=head.summary.batches,",
        "first_batch=len(head.summary.added_at),",
    ),
    Mutant(
        "alerts are switched for all views of a dataset",
        ("views",),
        "storage/view_rows.py",
        "saved_views.update().where(saved_views.c.id == view.id)",
        "saved_views.update().where(saved_views.c.dataset_id == view.dataset_id)",
    ),
    Mutant(
        "an addition forgets batches that are still due",
        ("views",),
        "jobs/add.py",
        "with_time(summary.added_at, placement.batch)",
        "with_time({}, placement.batch)",
    ),
    Mutant(
        "the batches that are due are those of the newest view",
        ("views",),
        "operations/monitoring.py",
        "batches = sorted({batch for view in self._views for batch in view.batches})",
        "batches = sorted(self._views[-1].batches)",
    ),
    Mutant(
        "the results of a view in the whole dataset stay",
        ("views",),
        "storage/view_rows.py",
        "values |= each.stats.model_dump()",
        "values |= {}",
    ),
    Mutant(
        "a new viewer keeps the right to edit",
        ("people",),
        "hub/memberships.py",
        "        homes.reduce_grants(connection, user_id, tenant_id)\n",
        "",
    ),
    Mutant(
        "datasets go to an actor who is no admin of their tenant",
        ("people",),
        "hub/memberships.py",
        "return actor_id if actor_id in admins else next(iter(admins), None)",
        "return actor_id or next(iter(admins), None)",
    ),
    Mutant(
        "a demoted admin stays logged in",
        ("people",),
        "hub/memberships.py",
        "                affected.append(other)\n",
        "",
    ),
    Mutant(
        "the use of a session does not keep it alive",
        ("people",),
        "hub/sessions.py",
        "now - row.session_access > _NOTED",
        "now - row.session_access > IDLE",
    ),
    Mutant(
        "other sessions outlive a change of the password",
        ("people",),
        "hub/sessions.py",
        "            accounts.end_sessions(connection, [user.id])\n",
        "",
    ),
    Mutant(
        "the key of a disabled user works",
        ("people",),
        "storage/service_db/sessions.py",
        "api_keys.c.revoked_at.is_(None), users.c.enabled)",
        "api_keys.c.revoked_at.is_(None))",
    ),
    Mutant(
        "a hub remembers rights that another one took",
        ("people",),
        "hub/datasets.py",
        "Recent[_Found](context.workspace._context.catalog, context.database)",
        "Recent[_Found](context.workspace._context.catalog)",
    ),
    Mutant(
        "disabled users hear of alerts",
        ("people",),
        "hub/notifications.py",
        "if row.enabled and allowed(",
        "if allowed(",
    ),
    Mutant(
        "shared datasets are not listed",
        ("people",),
        "hub/datasets.py",
        "DatasetSubject(home.tenant_id, home.owner_id, grants.get(record.id))",
        "DatasetSubject(home.tenant_id, home.owner_id, None)",
    ),
    Mutant(
        "a name may be the address of another user",
        ("people",),
        "storage/service_db/accounts.py",
        "same = sa.or_(users.c.username_key == key, users.c.email_key == key)",
        "same = users.c.username_key == key",
    ),
    Mutant(
        "a new viewer loses grants of other tenants",
        ("people of many",),
        "storage/service_db/homes.py",
        ".where(grants.c.user_id == user_id, inside)",
        ".where(grants.c.user_id == user_id)",
    ),
    Mutant(
        "a new viewer loses datasets of other tenants",
        ("people of many",),
        "hub/memberships.py",
        "homes.transfer_datasets(connection, user_id, new_owner_id, tenant_id=tenant_id)",
        "homes.transfer_datasets(connection, user_id, new_owner_id)",
    ),
    Mutant(
        "a demoted admin of two tenants cannot manage users",
        ("people of many",),
        "hub/memberships.py",
        "    if Role.ADMIN not in tenants.roles_of(connection, user_id).values():",
        "    if role is not Role.ADMIN:",
    ),
    Mutant(
        "a disabled admin is left alone",
        ("people of many",),
        "hub/memberships.py",
        "tenants.admins_of(connection, tenant_id, enabled=True)",
        "tenants.admins_of(connection, tenant_id)",
    ),
    Mutant(
        "an owner is listed with a former grant",
        ("people of many",),
        "storage/service_db/homes.py",
        "for row in rows if row.id != owner_id]",
        "for row in rows]",
    ),
    Mutant(
        "nobody hears of a dataset without an owner",
        ("people of many",),
        "hub/notifications.py",
        "owners = [home.owner_id] if home.owner_id is not None else tenants.admins_of(connection, home.tenant_id)",
        "owners = [home.owner_id]",
    ),
    Mutant(
        "who saved a view cannot delete it as a viewer",
        ("people of many",),
        "hub/views.py",
        "dataset_id, is_own=is_own)",
        "dataset_id, is_own=False)",
    ),
    Mutant(
        "roles that hold in all tenants only grow",
        ("people of many",),
        "hub/users.py",
        "if accounts.realm_roles(connection, user_id) != known:",
        "if not known <= accounts.realm_roles(connection, user_id):",
    ),
    Mutant(
        "a new secret of a key is the former one",
        ("people of many",),
        "hub/credentials.py",
        "(row.key, row.version + 1)",
        "(row.key, row.version)",
    ),
    Mutant(
        "of equal names the last file counts",
        ("uploads",),
        "storage/blobs.py",
        """.group_by(["path", "digest"])""",
        """.group_by(["path"])""",
    ),
    Mutant(
        "a processed transaction can be discarded",
        ("uploads",),
        "operations/uploads.py",
        "if row.record.state in (UploadState.PROCESSING, UploadState.DONE):",
        "if row.record.state is UploadState.PROCESSING:",
    ),
    Mutant(
        "a failed creation is never a draft again",
        ("uploads",),
        "storage/upload_rows.py",
        "    if row.record.state is UploadState.FAILED:",
        "    if row.record.state is UploadState.OPEN:",
    ),
    Mutant(
        "vacuum deletes contents of open transactions",
        ("uploads",),
        "storage/blobs.py",
        "return np.concatenate([*parts, *map(_numbers, listed_hashes(dataset))])",
        "return np.concatenate(parts)",
    ),
    Mutant(
        "clean-up removes the lists of failed transactions",
        ("uploads",),
        "storage/upload_rows.py",
        "uploads.c.list_bytes > 0, tasks.c.status == TaskStatus.COMPLETED)",
        "uploads.c.list_bytes > 0)",
    ),
    Mutant(
        "the list of a discarded transaction stays",
        ("uploads",),
        "operations/uploads.py",
        """            if not upload_rows.has_upload(connection, upload_id):
                _remove_file(list_path(dataset, upload_id))
""",
        "",
    ),
    Mutant(
        "a list has the files of its last call",
        ("uploads",),
        "storage/upload_lists.py",
        "files += batch.num_rows",
        "files = batch.num_rows",
    ),
    Mutant(
        "a list has the bytes of its last call",
        ("uploads",),
        "storage/upload_lists.py",
        "size += sum(batch.column(2).to_pylist())",
        "size = sum(batch.column(2).to_pylist())",
    ),
    Mutant(
        "a taken name is given again",
        ("uploads",),
        "jobs/ingest/upload_names.py",
        "if is_first and not self._are_taken(item, [item.path], taken, rows)[0]:",
        "if is_first:",
    ),
    Mutant(
        "known content has a second row",
        ("uploads",),
        "storage/file_index.py",
        "return find_halves(self._contents, wanted) >= 0",
        "return np.zeros(len(digests), dtype=bool)",
    ),
    Mutant(
        "a broken draft takes files",
        ("uploads",),
        "operations/uploads.py",
        "_TAKING_FILES = (DatasetStatus.DRAFT, *SETTLED)",
        "_TAKING_FILES = (DatasetStatus.DRAFT, DatasetStatus.ERROR, *SETTLED)",
    ),
    Mutant(
        "no other process can retry an addition",
        ("uploads",),
        "operations/uploads.py",
        "False, TaskType.MEDIA_ADDITION, task_config, _addition_job(",
        "False, TaskType.MEDIA_ADDITION, None, _addition_job(",
    ),
    Mutant(
        "a cell keeps the mark of what is no formula",
        ("round trip",),
        "annotations/tables.py",
        r"""    return _MARKED_FORMULA.sub(r"\1", cell) if cell.startswith("'") else cell""",
        "    return cell",
    ),
    Mutant(
        "quotes in cells are not doubled",
        ("round trip",),
        "annotations/tables.py",
        """pc.replace_substring(texts, '"', '""')""",
        "texts",
    ),
    Mutant(
        "control characters stay in JSON",
        ("round trip",),
        "annotations/json_text.py",
        r"""_SPECIAL = r'[\x00-\x1f"\\]'""",
        r"""_SPECIAL = r'["\\]'""",
    ),
    Mutant(
        "backslashes of escapes are escaped again",
        ("round trip",),
        "annotations/json_text.py",
        r"""(("\\", "\\\\"), ('"', '\\"'),""",
        r"""(('"', '\\"'), ("\\", "\\\\"),""",
    ),
    Mutant(
        "names that clash are not found",
        ("round trip",),
        "export/file_names.py",
        "return frozenset(ordered[1:][ordered[1:] == ordered[:-1]].tolist())",
        "return frozenset()",
    ),
    Mutant(
        "names of images are cut too late",
        ("round trip",),
        "export/locations.py",
        "return part.encode()[: _MAX_BYTES - _ROOM]",
        "return part.encode()[: _MAX_BYTES + _ROOM]",
    ),
)
UNCHANGED = Mutant(_UNCHANGED, tuple(LAWS), "__init__.py", "", "")


# In the process of a law


class Tally:
    """Examples of a law and their steps, as a plugin of pytest counts them.

    Attributes:
        answer: the file in which the other process reads them, also after a kill.
    """

    def __init__(self, answer: Path) -> None:
        self.answer = answer
        self._examples = self._checks = 0
        self._message = ""
        begin, check = RuleBasedStateMachine.__init__, RuleBasedStateMachine.check_invariants

        def counted(machine: RuleBasedStateMachine) -> None:
            if not current_build_context().is_final:  # hypothesis repeats a failing example once
                self._examples += 1
                self.write()
            begin(machine)

        def checked(machine: RuleBasedStateMachine, *arguments: Any) -> Any:
            self._checks += not current_build_context().is_final  # before the first step, and after each one
            return check(machine, *arguments)

        RuleBasedStateMachine.__init__ = counted  # type: ignore[method-assign, assignment]
        RuleBasedStateMachine.check_invariants = checked  # type: ignore[method-assign, assignment]

    def write(self) -> None:
        """Write the numbers up to now."""
        steps = self._checks - self._examples + 1  # the step that failed has no check after it
        self.answer.write_text(json.dumps({"example": self._examples, "steps": steps, "message": self._message}))

    def pytest_configure(self) -> None:
        """Check that the changed package is imported."""
        import framedex

        if not Path(framedex.__file__).is_relative_to(os.environ[_PACKAGE]):
            raise pytest.UsageError(f"{framedex.__file__} is imported, and not the package in {os.environ[_PACKAGE]}")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the first line of an error."""
        if report.failed and not self._message:
            lines = [line[2:].strip() for line in report.longreprtext.splitlines() if line.startswith("E ")]
            self._message = next((line for line in lines if line.strip("+-| ")), "")[:_MESSAGE]

    def pytest_sessionfinish(self) -> None:
        """Write the last numbers."""
        self.write()


def pytest_configure(config: pytest.Config) -> None:
    """Count examples, as a plugin of pytest."""
    if _ANSWER in os.environ:
        tally = Tally(Path(os.environ[_ANSWER]))
        config.pluginmanager.register(tally)  # which calls its `pytest_configure`


# In the process that starts the others


@dataclass(frozen=True)
class Run:
    """A run of a law on a mutant.

    Attributes:
        law, mutant: their names.
        seed: of hypothesis.
        outcome: ``found``, ``missed`` or ``late``, where the time limit came first.
        example: the number of the example that found it, or of those that were tried.
        steps: the number of steps up to then.
        seconds: by the clock.
        message: the first line of the error.
    """

    law: str
    mutant: str
    seed: int
    outcome: str
    example: int
    steps: int
    seconds: float
    message: str

    def needs_at_most(self, part: int, *, of_steps: bool) -> bool:
        """Return whether the fault was found within one of some parts of the examples, or of the steps."""
        law = LAWS[self.law]
        if self.outcome != "found" or part == 1:  # hypothesis gives up some examples, and tries others in their place
            return self.outcome == "found"
        if of_steps:
            return self.steps * part <= law.examples * law.steps
        return self.example <= max(round(law.examples / part), 1)


class Package:
    """A copy of the package in which one file is changed at a time.

    Args:
        folder: the folder in which it is made.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        source, self._home = ROOT / "src" / "framedex", folder / "framedex"
        shutil.copytree(source, self._home, ignore=shutil.ignore_patterns("app"))

    def check(self, mutant: Mutant) -> None:
        """Check that the old text of a mutant is there once; end the program if it is not."""
        number = (self._home / mutant.file).read_text("utf-8").count(mutant.old)
        if mutant is not UNCHANGED and number != 1:
            sys.exit(f"{mutant.name!r}: {mutant.file} has its text {number} times:\n{mutant.old}")

    def run(self, mutant: Mutant, name: str, seed: int, limit_s: float) -> Run:
        """Run a law on a mutant."""
        path = self._home / mutant.file
        original = path.read_text("utf-8")
        try:
            if mutant is not UNCHANGED:
                self._write(path, original.replace(mutant.old, mutant.new))
            return self._run(mutant.name, name, seed, limit_s)
        finally:
            self._write(path, original)

    @staticmethod
    def _write(path: Path, text: str) -> None:
        path.write_text(text, "utf-8")
        # A module that was compiled in the same second and has as many characters would count as the same.
        Path(importlib.util.cache_from_source(str(path))).unlink(missing_ok=True)

    def _run(self, mutant: str, name: str, seed: int, limit_s: float) -> Run:
        answer = self.folder / "answer.json"
        answer.unlink(missing_ok=True)
        places = os.pathsep.join([str(self.folder), str(Path(__file__).parent)])
        environment = {**os.environ, "PYTHONPATH": places, _ANSWER: str(answer), _PACKAGE: str(self.folder)}
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", _PLUGIN, "-p", "no:cacheprovider"]
        command += [f"--hypothesis-profile={_PROFILE}", f"--hypothesis-seed={seed}", LAWS[name].test]
        begin = time.perf_counter()
        with (self.folder / "log.txt").open("wb") as log:
            process = subprocess.Popen(
                command, cwd=ROOT, env=environment, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
            )
            try:
                status = process.wait(limit_s)
            except subprocess.TimeoutExpired:
                status = None
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)  # of its own session, with the processes that it started
                    process.wait()
        seconds = time.perf_counter() - begin
        if status not in (0, 1, None) or not answer.is_file():
            tail = (self.folder / "log.txt").read_text("utf-8", "replace")[-4000:]
            sys.exit(f"{mutant!r}: pytest ended with exit status {status}. The end of its output:\n{tail}")
        outcome = {0: "missed", 1: "found", None: "late"}[status]
        return Run(name, mutant, seed, outcome, seconds=round(seconds, 1), **json.loads(answer.read_text("utf-8")))


def main() -> None:
    """Run laws on mutants and print what was found."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # with the results up to then
    options = _options()
    runs = _stored() if options.keep else []
    chosen = [each for each in MUTANTS if not options.mutants or any(text in each.name for text in options.mutants)]
    if options.unchanged:
        chosen = [UNCHANGED]
    end = time.monotonic() + 60 * options.minutes
    with tempfile.TemporaryDirectory(prefix="framedex-law-mutations-") as folder:
        package = Package(Path(folder))
        for mutant in MUTANTS:
            package.check(mutant)
        try:
            for seed, law, mutant in _wanted(options, chosen):
                if _is_done(runs, seed, law, mutant, is_hard=options.hard, first=options.seeds[0]):
                    continue
                if options.list:
                    print(f"{law}: {mutant.name} (seed {seed})")
                    continue
                if time.monotonic() > end:
                    print("The time is over; --continue runs the others.")
                    break
                runs.append(package.run(mutant, law, seed, options.limit_s))
                _print_run(runs[-1])
        finally:
            if runs:
                _print_all(runs)
                save("law_mutations", {"runs": [asdict(each) for each in runs]})


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--laws", nargs="+", choices=list(LAWS), default=list(LAWS))
    parser.add_argument("--mutants", nargs="+", default=[], help="texts in the names of mutants; by default all")
    parser.add_argument("--seeds", nargs="+", type=int, default=[1])
    parser.add_argument("--hard", action="store_true", help="further seeds only where a sixth was not enough")
    parser.add_argument("--continue", dest="keep", action="store_true", help="keep the stored results")
    parser.add_argument("--unchanged", action="store_true", help="run the laws on the package as it is")
    parser.add_argument("--list", action="store_true", help="print what would be run")
    parser.add_argument("--limit-s", type=float, default=400.0, help="seconds of a run")
    parser.add_argument("--minutes", type=float, default=600.0, help="no run begins later")
    return parser.parse_args()


def _wanted(options: argparse.Namespace, mutants: Sequence[Mutant]) -> Iterable[tuple[int, str, Mutant]]:
    for seed in options.seeds:
        for law in options.laws:
            for mutant in mutants:
                if law in mutant.laws:
                    yield seed, law, mutant


def _is_done(runs: Sequence[Run], seed: int, law: str, mutant: Mutant, *, is_hard: bool, first: int) -> bool:
    """Return whether a run is stored, or is left out because the first seed has found the fault soon."""
    own = [each for each in runs if (each.law, each.mutant) == (law, mutant.name)]
    is_easy = any(each.seed == first and each.needs_at_most(_SHARES[-1], of_steps=False) for each in own)
    return any(each.seed == seed for each in own) or (is_hard and seed != first and is_easy)


def _stored() -> list[Run]:
    path = RESULTS / "law_mutations.json"
    return [Run(**each) for each in json.loads(path.read_text("utf-8"))["runs"]] if path.is_file() else []


def _print_run(run: Run) -> None:
    where = f"example {run.example}, step {run.steps}"
    print(f"{run.law}: {run.mutant} (seed {run.seed}): {run.outcome}, {where}, {run.seconds:.0f} s  {run.message}")
    sys.stdout.flush()


def _print_all(runs: Sequence[Run]) -> None:
    """Print how many faults were found within shares of the examples and of the steps, and what each fault needed."""
    runs = [each for each in runs if each.mutant != _UNCHANGED]
    for of_steps in (False, True):
        rows = []
        for law in LAWS:
            own = [each for each in runs if each.law == law]
            found = [sum(each.needs_at_most(part, of_steps=of_steps) for each in own) for part in _SHARES]
            rows.append([law, len({each.mutant for each in own}), len(own), *found])
        print(f"\nFaults found within shares of the {'steps' if of_steps else 'examples'}\n")
        shares = ["all", *(f"1/{part}" for part in _SHARES[1:])]
        print(table(["law", "mutants", "runs", *shares], [row for row in rows if row[2]]))
    seeds = sorted({each.seed for each in runs})
    rows = []
    for law in LAWS:
        for name in dict.fromkeys(each.mutant for each in runs if each.law == law):
            of_seed = {each.seed: each for each in runs if (each.law, each.mutant) == (law, name)}
            rows.append([law, name, *(_needed(of_seed.get(seed)) for seed in seeds)])
    print("\nExamples, and steps, up to the one that found a fault\n")
    print(table(["law", "mutant", *(f"seed {seed}" for seed in seeds)], rows))


def _needed(run: Run | None) -> str:
    if run is None:
        return ""
    return f"{run.example} ({run.steps})" if run.outcome == "found" else f"{run.outcome} ({run.example})"


if __name__ == "__main__":
    main()
