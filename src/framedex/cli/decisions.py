"""Commands about wrong and suggested labels, and about decisions: that labels are right, their list, withdrawal."""

from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from framedex.cli.edits import selected
from framedex.cli.options import (
    IdsOption,
    JsonOption,
    LimitOption,
    NameArgument,
    VqlOption,
    WorkspaceOption,
    open_workspace,
)
from framedex.cli.output import print_json, print_table, say
from framedex.core.counts import counted

if TYPE_CHECKING:
    from framedex.records import DuplicateDecision, LabelDecision


_SHOWN = 20


def label_is_right(
    name: NameArgument,
    vql: VqlOption = None,
    ids: IdsOption = None,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Record the decision that the present labels of images are right; they are no issue any more."""
    with open_workspace(workspace) as ws:
        dataset = ws.dataset(name)
        decision = dataset.label_is_right(selected(dataset, vql, ids))
        if as_json:
            print_json(decision)
            return
        say(f"the labels of {counted(len(decision.media_ids), 'images')} are right; decision {decision.decision_id}")


def label_issues(
    name: NameArgument,
    method: Annotated[str, typer.Option(help="Evidence: neighbours, head (a linear model), or combined.")] = "combined",
    limit: LimitOption = None,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the images whose labels are probably wrong, the worst first, and how many labels are."""
    with open_workspace(workspace) as ws:
        found = ws.dataset(name).label_issues(method)
    rows = found.to_arrow().slice(0, limit or (None if as_json else _SHOWN)).to_pylist()
    classes = found.classes().to_pylist()
    if as_json:
        estimate = {"total": len(found), "rate": found.rate, "interval": found.interval, "notes": found.notes}
        print_json({**estimate, "classes": classes, "rows": rows})
        return
    print_table(
        ("image", "label", "suggested", "probability", "expected precision"),
        [
            (
                row["path"],
                row["label"],
                row["suggested_label"],
                f"{row['probability']:.2f}",
                f"{row['expected_precision']:.2f}",
            )
            for row in rows
        ],
    )
    print_table(
        ("label", "images", "wrong"),
        [(row["label"], f"{row['n_media']:,}", f"{row['rate']:.1%}") for row in classes[:_SHOWN]],
    )
    for line in repr(found).splitlines():
        say(line)


def suggest_labels(
    name: NameArgument,
    accept: Annotated[
        float | None,
        typer.Option(help="Set labels of at least this confidence, 0 to 1, as one step.", min=0, max=1),
    ] = None,
    limit: LimitOption = None,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show labels for images without any, from those of similar images, and accept them."""
    with open_workspace(workspace) as ws:
        found = ws.dataset(name).suggest_labels()
        count = None if accept is None else found.accept(accept)
    rows = found.to_arrow().slice(0, limit or (None if as_json else _SHOWN)).to_pylist()
    reliability = [
        {**row, "share_right": row["share_right"] if row["n_media"] else None}
        for row in found.reliability().to_pylist()
    ]
    if as_json:
        print_json({"total": len(found), "accepted": count, "reliability": reliability, "rows": rows})
        return
    if count is not None:
        say(f"accepted labels of {counted(count, 'images')}")
        return
    print_table(
        ("image", "label", "confidence"), [(row["path"], row["label"], f"{row['confidence']:.2f}") for row in rows]
    )
    say(f"{counted(len(found), 'labels')}; images that were held out to measure the confidence:")
    shown = [
        (f"{row['minimum']:.2f}", f"{row['n_media']:,}", f"{row['share_right'] or 0:.1%}", f"{row['n_suggested']:,}")
        for row in reliability
        if row["n_media"]
    ]
    print_table(("confidence", "held out", "right", "suggested"), shown)


def decisions(name: NameArgument, workspace: WorkspaceOption = None, as_json: JsonOption = False) -> None:
    """List the decisions about duplicates and labels, oldest first."""
    with open_workspace(workspace) as ws:
        dataset = ws.dataset(name)
        duplicates, labels = dataset.duplicate_decisions(), dataset.label_decisions()
    if as_json:
        print_json({"duplicates": duplicates, "labels": labels})
        return
    rows = [("no duplicates", *_cells(record)) for record in duplicates]
    rows += [("labels are right", *_cells(record)) for record in labels]
    rows.sort(key=lambda row: row[2])
    print_table(
        ("decision", "images", "decided (UTC)", "by", "id"),
        [(said, count, f"{when:%Y-%m-%d %H:%M}", by, identifier) for said, count, when, by, identifier in rows],
    )


def _cells(record: "DuplicateDecision | LabelDecision") -> tuple[int, datetime, str, str]:
    return len(record.media_ids), record.decided_at, record.decided_by, record.decision_id


def withdraw_decision(
    name: NameArgument,
    decision_id: Annotated[str, typer.Argument(help="Id of a decision, as `framedex decisions` lists it.")],
    workspace: WorkspaceOption = None,
) -> None:
    """Withdraw a decision about duplicates or labels."""
    with open_workspace(workspace) as ws:
        ws.dataset(name).withdraw_decision(decision_id)
        say(f"decision {decision_id} is withdrawn")
