"""User decisions that images are not duplicates, each committed with the resulting duplicate groups."""

from collections.abc import Sequence

from framedex.jobs.edits.decisions import decide, read_decisions, withdraw
from framedex.jobs.edits.journal import NewStep
from framedex.operations.context import Context
from framedex.operations.short_edits import editing
from framedex.records import DuplicateDecision
from framedex.storage import datasets


def decide_not_duplicates(context: Context, dataset_id: str, media_ids: Sequence[str]) -> DuplicateDecision:
    """Store that no two of some media are duplicates, and the resulting groups, as one generation.

    Raises:
        InvalidInput: the argument is not a list of two or more different ids.
        NotFound: a media item is not in the dataset.
        Conflict: a task is in progress.
    """
    with editing(context, dataset_id, "not_duplicates") as edit:
        decision, versions, summary = decide(edit.media(context), edit.job.head, media_ids, context.settings.user)
        added = {"decision_added": decision.model_dump(mode="json")}
        edit.commit(versions, summary, step=NewStep("not_duplicates", len(decision.media_ids), added))
    return decision


def withdraw_decision(context: Context, dataset_id: str, decision_id: str) -> None:
    """Withdraw a decision and store the resulting groups, as one generation.

    Raises:
        NotFound: the dataset has no such decision.
        Conflict: a task is in progress.
    """
    with editing(context, dataset_id, "withdraw_decision") as edit:
        media, head = edit.media(context), edit.job.head
        decisions = {each.decision_id: each for each in read_decisions(media.table.path, head.tables)}
        written = withdraw(media, head, decision_id)
        withdrawn = decisions[decision_id].model_dump(mode="json")
        edit.commit(*written, step=NewStep("withdraw_decision", 0, {"decision_withdrawn": withdrawn}))


def duplicate_decisions(context: Context, dataset_id: str) -> list[DuplicateDecision]:
    """Return the decisions about duplicates, oldest first."""
    with context.catalog.read() as connection:
        head = datasets.head(connection, dataset_id)
    return [] if head is None else read_decisions(context.layout.media(dataset_id), head.tables)
