"""Saved views and their trends."""

from typing import TYPE_CHECKING, Annotated

import typer

import framedex
from framedex.cli.options import (
    EntityOption,
    JsonOption,
    NameArgument,
    VqlOption,
    WorkspaceOption,
    confirm,
    open_workspace,
    parse_vql,
)
from framedex.cli.output import print_json, print_table, say
from framedex.core.counts import counted
from framedex.errors import InvalidInput, ReadOnly

if TYPE_CHECKING:
    from framedex.records import SavedViewRecord

_BAR = 40
_MOST_ROWS = 30


def views(
    name: NameArgument,
    save: Annotated[str | None, typer.Option("--save", metavar="VIEW", help="Save a view under this name.")] = None,
    delete: Annotated[
        str | None, typer.Option("--delete", metavar="VIEW", help="Delete a view by name or id, with its trend.")
    ] = None,
    alerts: Annotated[
        str | None, typer.Option("--alerts", metavar="on|off", help="Turn alerts on or off, with --of or --save.")
    ] = None,
    of: Annotated[str | None, typer.Option("--of", metavar="VIEW", help="Name or id of the view of --alerts.")] = None,
    vql: VqlOption = None,
    caption: Annotated[str | None, typer.Option(help="With --save: a text that results have to match.")] = None,
    threshold: Annotated[float | None, typer.Option(help="With --caption: the smallest similarity, 0 to 1.")] = None,
    entity_type: EntityOption = "IMAGES",
    sort_by: Annotated[str | None, typer.Option(help="With --save: the column of the order.")] = None,
    descending: Annotated[bool, typer.Option("--descending", help="With --sort-by: the largest value first.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation of --delete.")] = False,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the saved views of a dataset, newest first; or save or delete one, or turn its alerts on or off."""
    _check_options(save, delete, alerts, of)
    if save is None and (vql, caption, threshold, sort_by, descending) != (None, None, None, None, False):
        raise InvalidInput("--vql, --caption, --threshold, --sort-by and --descending need --save with a name")
    if descending and sort_by is None:
        raise InvalidInput("--descending needs --sort-by with a column")
    with open_workspace(workspace) as ws:
        dataset = ws.dataset(name)
        if save is not None:
            view = dataset.objects if entity_type == "OBJECTS" else dataset.view
            view = view.where(parse_vql(vql) or [])
            view = view if sort_by is None else view.sort_by(sort_by, descending=descending)
            saved = dataset.save_view(save, view, caption=caption, threshold=threshold, entity_type=entity_type)
        if delete is not None:
            saved = dataset.saved_view(delete)
            confirm(f"Delete the saved view {saved.name!r} with its trend?", yes=yes)
            saved.delete()
        elif alerts is not None:
            saved = saved if save is not None else dataset.saved_view(of or "")
            saved.set_alerting(alerts == "on")
        else:
            _catch_up(ws, dataset)
        records = [each.record for each in dataset.views()]
        if as_json:
            print_json(records)
        else:
            _show(records)


def _check_options(save: str | None, delete: str | None, alerts: str | None, of: str | None) -> None:
    """Check that options which change views do not contradict each other."""
    if alerts not in (None, "on", "off"):
        raise InvalidInput(f"--alerts is on or off, not {alerts!r}")
    if delete is not None and (save is not None or alerts is not None):
        raise InvalidInput("--delete goes with neither --save nor --alerts")
    if (of is None) != (alerts is None or save is not None):
        raise InvalidInput("--alerts needs --of with the name of a saved view, or --save; --of needs --alerts")


def _catch_up(ws: "framedex.Workspace", dataset: "framedex.Dataset") -> None:
    """Evaluate batches that a killed process left; a workspace that cannot be written is shown as it is."""
    try:
        ws.evaluate_views(dataset.id)
    except ReadOnly:
        return


def _show(records: "list[SavedViewRecord]") -> None:
    rows = [
        (
            each.name,
            each.filters.entity_type,
            each.total_results,
            "" if each.last_results is None else f"{each.last_results:%Y-%m-%d %H:%M}",
            "on" if each.alerting_enabled else "off",
            each.created_by,
            each.evaluation_error or "",
        )
        for each in records
    ]
    print_table(("view", "of", "new results", "last (UTC)", "alerts", "by", "error"), rows)


def trend(
    name: NameArgument,
    view: Annotated[str, typer.Argument(metavar="VIEW", help="Name or id of a saved view.")],
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show how many results of a saved view each addition of media brought."""
    with open_workspace(workspace) as ws:
        dataset = ws.dataset(name)
        _catch_up(ws, dataset)
        saved = dataset.saved_view(view)
        result = saved.trend()
        if as_json:
            print_json(result)
            return
        from framedex.render.trend import join_points

        rows = join_points([(point.timestamp, point.count, point.cumulative) for point in result.points], _MOST_ROWS)
        most = max([1, *(count for _, count, _ in rows)])
        print_table(
            ("added (UTC)", "new", "in all", ""),
            [
                (f"{time:%Y-%m-%d %H:%M}", count, total, "█" * max(bool(count), round(_BAR * count / most)))
                for time, count, total in rows
            ],
        )
        record = saved.record
        results, batches = counted(result.total_results, "new results"), counted(len(result.points), "batches")
        say(f"{record.name}: {results} in {batches}, alerts {'on' if record.alerting_enabled else 'off'}")
        if record.evaluation_error is not None:
            say(f"the last evaluation failed: {record.evaluation_error}")
