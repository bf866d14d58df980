"""User decisions about duplicates and labels, each committed with the groups or issues that follow."""

from collections.abc import Sequence

from framedex.jobs.edits.decisions import decide, read_decisions, withdraw
from framedex.jobs.edits.journal import MOST_MEDIA, NewStep, too_many
from framedex.jobs.edits.label_decisions import decide_labels, label_facts, withdraw_labels
from framedex.operations.context import Context
from framedex.operations.edits import Selection, selected_rows
from framedex.operations.short_edits import editing
from framedex.records import DuplicateDecision, LabelDecision
from framedex.storage import datasets
from framedex.storage.label_decisions import read_label_decisions
from framedex.storage.media import Media


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
    """Withdraw a decision about duplicates or labels, and store the resulting groups or issues, as one generation.

    Raises:
        NotFound: the dataset has no such decision.
        Conflict: a task is in progress.
    """
    with editing(context, dataset_id, "withdraw_decision") as edit:
        media, head = edit.media(context), edit.job.head
        if (of_labels := withdraw_labels(media, head, decision_id)) is not None:
            (decision,) = read_label_decisions(media.table.path, head.tables).of(decision_id).records()
            edit.commit(*of_labels, step=_label_step("withdraw_decision", media, decision, is_added=False))
            return
        decisions = {each.decision_id: each for each in read_decisions(media.table.path, head.tables)}
        written = withdraw(media, head, decision_id)
        withdrawn = decisions[decision_id].model_dump(mode="json")
        edit.commit(*written, step=NewStep("withdraw_decision", 0, {"decision_withdrawn": withdrawn}))


def duplicate_decisions(context: Context, dataset_id: str) -> list[DuplicateDecision]:
    """Return the decisions about duplicates, oldest first."""
    with context.catalog.read() as connection:
        head = datasets.head(connection, dataset_id)
    return [] if head is None else read_decisions(context.layout.media(dataset_id), head.tables)


def decide_labels_right(context: Context, dataset_id: str, selection: Selection) -> LabelDecision:
    """Store that the present labels of some media are right, and the resulting issues, as one generation.

    Raises:
        InvalidInput: an id is not text, no media are selected, or a media item has no labels.
        NotFound: a media item is not in the dataset.
        Conflict: a task is in progress.
    """
    with editing(context, dataset_id, "label_is_right") as edit:
        media = edit.media(context)
        rows = selected_rows(media, selection)
        decision, versions, summary = decide_labels(media, edit.job.head, rows, context.settings.user)
        edit.commit(versions, summary, step=_label_step("label_is_right", media, decision, is_added=True))
    return decision


def decide_no_label_fits(context: Context, dataset_id: str, selection: Selection) -> LabelDecision:
    """Store that no label fits some media without labels, as one generation; none are suggested for them then.

    Raises:
        InvalidInput: an id is not text, no media are selected, or a media item has labels.
        NotFound: a media item is not in the dataset.
        Conflict: a task is in progress.
    """
    operation = "no_label_fits"
    with editing(context, dataset_id, operation) as edit:
        media = edit.media(context)
        rows = selected_rows(media, selection)
        user = context.settings.user
        decision, versions, summary = decide_labels(media, edit.job.head, rows, user, are_labelled=False)
        edit.commit(versions, summary, step=_label_step(operation, media, decision, is_added=True))
    return decision


def _label_step(operation: str, media: Media, decision: LabelDecision, *, is_added: bool) -> NewStep:
    n_media = len(decision.media_ids)
    if n_media > MOST_MEDIA:
        return NewStep(operation, n_media, reason=too_many(n_media))
    change, values = label_facts(media, decision, is_added=is_added)
    return NewStep(operation, n_media, change, values)


def label_decisions(context: Context, dataset_id: str) -> list[LabelDecision]:
    """Return the decisions about labels, oldest first."""
    with context.catalog.read() as connection:
        head = datasets.head(connection, dataset_id)
    return [] if head is None else read_label_decisions(context.layout.media(dataset_id), head.tables).records()
