"""Commands that clean up datasets, verify workspaces and free disk space."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import framedex
from framedex.cli.options import (
    JsonOption,
    LimitOption,
    NameArgument,
    VqlOption,
    WorkspaceOption,
    YesOption,
    confirm,
    number,
    open_workspace,
    parse_vql,
    workspace_folder,
)
from framedex.cli.output import print_json, print_table, say
from framedex.core.counts import counted
from framedex.errors import InvalidInput, WorkspaceError
from framedex.render.sizes import bytes_text

if TYPE_CHECKING:
    from framedex.records import CheckResult, CleanupResult


def cleanup(
    name: NameArgument,
    repeated: Annotated[
        str | None,
        typer.Option(
            "--duplicates",
            help="Minimum similarity of near-duplicates, 0.96 to 1.0; 'exact' for identical files; or 'near' for all "
            "images that are alike, copies or not.",
        ),
    ] = None,
    issue: Annotated[
        list[str] | None,
        typer.Option(help="Issue type, with or without a minimum confidence: blur or blur=0.8. Repeatable."),
    ] = None,
    keep: Annotated[str, typer.Option(help="Image of a group to keep: best, first, oldest or largest.")] = "best",
    basket: Annotated[bool, typer.Option("--basket", help="Remove what is in the basket, too.")] = False,
    unsure: Annotated[
        bool, typer.Option("--unsure", help="Remove copies also where it is not sure which image is the original.")
    ] = False,
    within_videos: Annotated[
        bool, typer.Option("--within-videos", help="Remove frames that are alike within a video, too.")
    ] = False,
    without: Annotated[
        list[str] | None, typer.Option(metavar="ID", help="Id of an image to take out of the plan. Repeatable.")
    ] = None,
    vql: VqlOption = None,
    page: Annotated[Path | None, typer.Option(help="Write the plan to an HTML page.")] = None,
    carry_out: Annotated[
        bool, typer.Option("--apply", help="Take a snapshot, then remove the images from the dataset.")
    ] = False,
    delete_files: Annotated[
        bool, typer.Option("--delete-files", help="With --apply: also delete the source files.")
    ] = False,
    yes: YesOption = False,
    limit: LimitOption = None,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Plan the removal of duplicates, of images with issues and of the basket; --apply carries it out."""
    if delete_files and not carry_out:
        raise InvalidInput("--delete-files needs --apply; without it nothing is removed")
    with open_workspace(workspace) as ws:
        plan = ws.dataset(name).plan_cleanup(
            duplicates=repeated
            if repeated in (None, "exact", "near")
            else number("--duplicates (if not 'exact' or 'near')", repeated),
            issues=dict(map(_issue_limit, issue or [])),
            keep=keep,
            basket=basket,
            unsure=unsure,
            within_videos=within_videos,
            where=parse_vql(vql),
        )
        plan = plan.without(without) if without else plan
        written = None if page is None else plan.page(page)
        rows = plan.to_arrow().slice(0, limit or (None if as_json else 100)).to_pylist()
        if not as_json:
            print_table(
                ("action", "file", "size", "reason", "warning", "id"),
                [
                    (row["action"], row["path"], _size(row), row["reason"], row["warning"] or "", row["media_id"])
                    for row in rows
                ],
            )
            if len(rows) < plan.to_arrow().num_rows:
                say(f"{len(rows):,} of {counted(plan.to_arrow().num_rows, 'rows')}; --limit shows more")
            say(f"{plan.words}{'' if written is None else f'; wrote {written}'}")
        if delete_files and len(plan):
            size = bytes_text(plan.summary.size_bytes)
            confirm(f"Delete the files of {counted(len(plan), 'images')}, {size}, for good?", yes=yes)
        result = plan.apply(delete_files=delete_files) if carry_out else None
        if as_json:
            print_json({"summary": plan.summary, "rows": rows, "page": written, "result": result})
        elif result is not None:
            _say_result(name, result)


def _size(row: Mapping[str, Any]) -> str:
    return "" if row["size_bytes"] is None else bytes_text(row["size_bytes"])


def _say_result(name: str, result: "CleanupResult") -> None:
    say(
        f"removed {counted(result.removed, 'images')}"
        + (f", deleted {counted(result.files_deleted, 'files')}" if result.files_deleted else "")
    )
    if result.snapshot is not None:
        say(f"snapshot of the dataset before: {result.snapshot.snapshot_name!r}, id {result.snapshot.snapshot_id}")
        lost = f", without {counted(result.files_deleted, 'files')}" if result.files_deleted else ""
        say(f"undo: framedex undo {name}{lost}")
    if result.files_left:
        path, reason = result.files_failed[0]
        say(f"not deleted: {counted(result.files_left, 'files')}; the first is {path}: {reason}")


def _issue_limit(text: str) -> tuple[str, float]:
    issue, equals, least = text.partition("=")
    return issue, number(f"--issue {issue}", least) if equals else 0.0


def du(workspace: WorkspaceOption = None, as_json: JsonOption = False) -> None:
    """Show the disk usage of the workspace."""
    with open_workspace(workspace) as ws:
        usage = ws.disk_usage()
        rows = usage.to_arrow().to_pylist()
        if as_json:
            print_json({"total_bytes": usage.total_bytes, "freeable_bytes": usage.freeable_bytes, "parts": rows})
            return
        shown = [
            (row["dataset_name"] or "", row["part"], bytes_text(row["bytes"]), bytes_text(row["shared_bytes"]))
            for row in rows
        ]
        print_table(("dataset", "part", "size", "shared"), shown)
        say(f"{bytes_text(usage.total_bytes)} in total; `framedex vacuum` can free {bytes_text(usage.freeable_bytes)}")


def check(
    name: Annotated[str | None, typer.Argument(help="A dataset's name or id; all datasets if not given.")] = None,
    repair: Annotated[bool, typer.Option("--repair", help="Repair every fault that has a repair.")] = False,
    files: Annotated[bool, typer.Option("--files", help="Also look for the source files.")] = False,
    content: Annotated[
        bool, typer.Option("--content", help="With --files: also compare their content, which reads all of them.")
    ] = False,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> int:
    """Verify the catalog, tables, journals, uploaded files, caches and users; exit with status 1 on a fault."""
    if content and not files:
        raise InvalidInput("--content compares the content of source files, so it needs --files")
    result = _checked(workspace, name, repair=repair, files=files, content=content)
    if as_json:
        print_json(result)
    else:
        for finding in result.findings:
            say(f"{finding.path}: {finding.fault} ({'repaired' if finding.repaired else finding.remedy})")
        counts = ", ".join(counted(count, what) for what, count in result.counts.items())
        say(f"{counted(len(result.findings), 'findings')}; checked {counts or 'only the catalog'}")
    return 0 if result.is_sound else 1


def _checked(workspace: Path | None, name: str | None, *, repair: bool, files: bool, content: bool) -> "CheckResult":
    from framedex.operations.integrity.check import unopened_findings
    from framedex.records import CheckResult

    try:
        with open_workspace(workspace) as ws:
            return ws.check(*([] if name is None else [name]), repair=repair, files=files, content=content)
    except WorkspaceError:
        # A catalog that is damaged may be the reason.
        if findings := unopened_findings(workspace_folder(workspace)):
            return CheckResult(findings=findings, counts={})
        raise


def recover(
    folder: Annotated[Path, typer.Argument(help="Workspace folder.")],
    as_json: JsonOption = False,
) -> None:
    """Rebuild a missing or damaged catalog from the folders of the datasets, and let a service without users start."""
    result = framedex.Workspace.recover(folder)
    if as_json:
        print_json(result)
        return
    for path in result.kept_as:
        say(f"kept: {path}")
    for line in result.left_out:
        say(line)
    if not result.datasets and result.left_out:
        return
    found = f"{counted(len(result.datasets), 'datasets')} with {counted(result.snapshots, 'snapshots')}"
    say(f"recovered {found}: {', '.join(result.datasets)}")


def vacuum(
    older_than: Annotated[
        float | None,
        typer.Option(help="Keep superseded versions of the last so many seconds for other readers. Default: 600."),
    ] = None,
    yes: YesOption = False,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Delete table versions and files that no dataset and no snapshot references."""
    from framedex.settings import load_settings

    with open_workspace(workspace) as ws:
        kept_s = load_settings().keep_versions_s
        if older_than is not None and 0 <= older_than < kept_s:
            what = f"versions of the last {kept_s:,.0f} s, which other processes may still read"
            confirm(f"Delete {what}, and the checkpoints of stopped tasks?", yes=yes)
        result = ws.vacuum(older_than_s=older_than)
        if as_json:
            print_json(result)
            return
        say(f"freed {bytes_text(result.freed_bytes)}")
        for dataset, reason in result.skipped.items():
            say(f"skipped dataset {dataset}: {reason}")
