"""Commands that measure detections."""

import math
from typing import Annotated, Any

import typer

from framedex.cli.options import JsonOption, LimitOption, NameArgument, WorkspaceOption, open_workspace
from framedex.cli.output import print_json, print_table, say

_SHOWN = 10
_NUMBERS = ("precision", "recall", "average_precision")


def evaluate(
    name: NameArgument,
    truth: Annotated[str, typer.Option(help="annotated, or the source of the true boxes, as coco.")] = "annotated",
    predictions: Annotated[
        str, typer.Option(help="detected, or the source of the predictions: a format or the id of a model.")
    ] = "detected",
    iou: Annotated[float, typer.Option(help="Smallest IoU of a match, above 0, at most 1.")] = 0.5,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare detected boxes with annotated ones: precision, recall, average precision, confusions."""
    with open_workspace(workspace) as ws:
        found = ws.dataset(name).evaluate(truth, predictions, iou)
    rows = [{each: _number(value) for each, value in row.items()} for row in found.to_arrow().to_pylist()]
    confusions = found.confusions().to_pylist()
    totals = {each: _number(getattr(found, each)) for each in ("precision", "recall", "mean_average_precision")}
    if as_json:
        print_json({**totals, "iou": iou, "labels": rows, "confusions": confusions})
        return
    shown = [
        (
            row["label"],
            f"{row['n_truth']:,}",
            f"{row['n_predictions']:,}",
            *("" if row[each] is None else f"{row[each]:.3f}" for each in _NUMBERS),
        )
        for row in sorted(rows, key=lambda row: -row["n_truth"])
    ]
    print_table(("label", "true", "predicted", "precision", "recall", "average precision"), shown)
    for row in confusions[:_SHOWN]:
        say(f"{row['count']:,} × {row['label']} taken for {row['predicted']}")
    say(", ".join(f"{each.replace('_', ' ')} {value or 0:.3f}" for each, value in totals.items()))


def object_issues(
    name: NameArgument,
    truth: Annotated[str, typer.Option(help="annotated, or the source of the boxes, as coco.")] = "annotated",
    predictions: Annotated[
        str, typer.Option(help="detected, or the source of the predictions: a format or the id of a model.")
    ] = "detected",
    kind: Annotated[
        str | None, typer.Option(help="One kind: missing, spurious, wrong_class, placement or duplicate.")
    ] = None,
    limit: LimitOption = None,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show annotated boxes that are probably wrong by what a detector predicts, the surest first."""
    with open_workspace(workspace) as ws:
        found = ws.dataset(name).object_issues(truth, predictions)
    table = found.to_arrow(kind)
    rows = table.slice(0, limit or (None if as_json else 2 * _SHOWN)).to_pylist()
    if as_json:
        print_json({"total": len(table), "counts": found.counts(), "rows": rows})
        return
    print_table(
        ("image", "fault", "label", "suggested", "score"),
        [
            (row["path"], row["kind"], row["label"] or "", row["suggested_label"] or "", f"{row['score']:.2f}")
            for row in rows
        ],
    )
    say(repr(found))


def _number(value: Any) -> Any:
    """Return a value, or None for NaN, which JSON has not."""
    return None if isinstance(value, float) and math.isnan(value) else value
