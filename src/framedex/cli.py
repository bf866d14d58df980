"""The command line."""

import json
import os
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from framedex import demo as demo_dataset
from framedex.dataset import Dataset
from framedex.errors import Conflict, Error, InvalidInput, WorkspaceError
from framedex.records import CleanupResult, DatasetStatus, DuplicateGroup, Record, Tag
from framedex.render.sizes import bytes_text
from framedex.settings import load_settings, user_path
from framedex.storage.layout import MARKER
from framedex.view import View
from framedex.workspace import Workspace

app = typer.Typer(
    help="Framedex: find, group and search what is in a folder of pictures, offline.",
    add_completion=False,
    pretty_exceptions_enable=False,
)

WorkspaceOption = Annotated[
    Path | None,
    typer.Option("--workspace", "-w", help="The workspace folder; FRAMEDEX_WORKSPACE or ~/framedex if not given."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
NameArgument = Annotated[str, typer.Argument(help="A dataset's name or id.")]
VqlOption = Annotated[str | None, typer.Option(help="A VQL filter: a JSON array.")]
TagArgument = Annotated[str, typer.Argument(metavar="TAG", help="A tag's name or id.")]
IdsOption = Annotated[
    list[str] | None, typer.Option("--ids", help="Ids of pictures, with commas between them or each with --ids.")
]
LimitOption = Annotated[int | None, typer.Option(min=1, help="At most so many; if not given, JSON has all.")]


# What typer raises for wrong usage; it names only this subclass in public.
_UsageError: Any = typer.BadParameter.__base__


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit: with status 0, or 1 and one line on an error, or 2 and one line on wrong usage.

    Args:
        arguments: what follows the program's name; by default those of the process.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        status = app(given or ["--help"], standalone_mode=False)
    except _UsageError as error:
        _fail(f"{error.format_message()} (see: framedex {' '.join([*_command(given), '--help'])})", status=2)
    except Error as error:
        _fail(" ".join([str(error), *(f"({note})" for note in getattr(error, "__notes__", []))]), status=1)
    except BrokenPipeError:
        # The reader of our output, such as `head`, has seen enough.
        sys.stderr.close()
        sys.exit(141)
    except OSError as error:
        _fail(f"{error.strerror or error}: {error.filename}" if error.filename else str(error), status=1)
    except (typer.Abort, KeyboardInterrupt):
        _fail("stopped on request", status=130)
    sys.exit(status if isinstance(status, int) else 0)


def _command(arguments: Sequence[str]) -> list[str]:
    known = {command.name or getattr(command.callback, "__name__", "") for command in app.registered_commands}
    return [argument for argument in arguments[:1] if argument in known]


def _fail(message: str, *, status: int) -> NoReturn:
    print("error:", printable(" ".join(message.split())), file=sys.stderr)  # noqa: T201 - a command line prints
    sys.exit(status)


@app.command()
def create(
    name: Annotated[str, typer.Argument(help="The new dataset's name.")],
    source: Annotated[
        str,
        typer.Argument(help="A folder, a picture, a .txt, .csv or .parquet list, a Parquet with embeddings, or s3://…"),
    ],
    encoder: Annotated[str, typer.Option(help="auto, or an encoder's name.")] = "auto",
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make a dataset of the pictures in SOURCE."""
    with Workspace(_folder(workspace)) as ws:
        start = time.perf_counter()
        dataset = ws.create_dataset(name, source, encoder=encoder)
        seconds = time.perf_counter() - start
        if as_json:
            _print_json({**dataset.info.model_dump(mode="json"), "skipped": dataset.skipped})
            return
        info, config = dataset.info, dataset.embedding_config
        _say(f"{info.display_name}: {info.n_images:,} pictures in {seconds:.1f} s")
        _say(f"encoder {config.encoder} ({config.reason})")
        for reason, count in dataset.skipped.items():
            _say(f"left out: {count:,} {reason}")


@app.command()
def add(
    name: NameArgument,
    source: Annotated[
        str | None,
        typer.Argument(help="A folder, a picture, a .txt, .csv or .parquet list, or a Parquet with embeddings."),
    ] = None,
    archive: Annotated[Path | None, typer.Option(help="Instead of SOURCE a .zip, .tar or .tar.gz file.")] = None,
    s3: Annotated[str | None, typer.Option(help="Instead of SOURCE a folder or manifest, s3://bucket/….")] = None,
    role: Annotated[str | None, typer.Option(help="ARN of a role to assume for reading it.")] = None,
    settle: Annotated[bool, typer.Option("--reindex", help="Then find clusters and duplicates of all anew.")] = False,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Add the pictures in SOURCE to a dataset; those that it has already are left out."""
    with _open(workspace) as ws:
        start = time.perf_counter()
        dataset = ws.dataset(name)
        before = dataset.count()
        dataset.add_media(source, archive=archive, s3_uri=s3, assume_role=role, auto_reindex=settle)
        seconds = time.perf_counter() - start
        info = dataset.info
        added = info.n_images - before
        if as_json:
            _print_json({**info.model_dump(mode="json"), "added": added, "skipped": dataset.skipped})
            return
        _say(f"{info.display_name}: {added:,} pictures added in {seconds:.1f} s, {info.n_images:,} in all")
        for reason, count in dataset.skipped.items():
            _say(f"left out: {count:,} {reason}")
        if info.status_new is DatasetStatus.PARTIAL_INDEX:
            joined = "they joined the clusters that were there" if added else "earlier additions are not settled"
            _say(f"{joined}; `framedex reindex` finds all anew")


@app.command()
def reindex(
    name: NameArgument,
    threshold: Annotated[
        list[float] | None,
        typer.Option(help="Cosine distance of a cluster level; give it five times, ascending, for levels 0 to 4."),
    ] = None,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Find clusters, duplicates and scores of all pictures anew, after additions or with other thresholds."""
    with _open(workspace) as ws:
        start = time.perf_counter()
        dataset = ws.dataset(name)
        dataset.reindex(thresholds=threshold or None)
        seconds = time.perf_counter() - start
        info, config = dataset.info, dataset.embedding_config
        if as_json:
            _print_json({**info.model_dump(mode="json"), "embedding_config": config.model_dump(mode="json")})
            return
        _say(f"{info.display_name}: {info.n_images:,} pictures indexed in {seconds:.1f} s")


@app.command("not-duplicates")
def not_duplicates(
    name: NameArgument,
    media_id: Annotated[list[str], typer.Argument(help="Ids of two or more pictures, as JSON output has them.")],
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Decide that no two of some pictures are duplicates of each other, from now on."""
    with _open(workspace) as ws:
        decision = ws.dataset(name).not_duplicates(media_id)
        if as_json:
            _print_json(decision)
            return
        _say(f"{len(decision.media_ids):,} pictures are kept apart by decision {decision.decision_id}")


@app.command()
def tag(
    name: NameArgument,
    tag_name: TagArgument,
    vql: VqlOption = None,
    ids: IdsOption = None,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Put a tag on pictures; a new name makes a tag."""
    with _open(workspace) as ws:
        dataset = ws.dataset(name)
        _show_tag(dataset.tag(_selected(dataset, vql, ids), tag_name), as_json=as_json)


@app.command()
def untag(
    name: NameArgument,
    tag_name: TagArgument,
    vql: VqlOption = None,
    ids: IdsOption = None,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Take a tag off pictures."""
    with _open(workspace) as ws:
        dataset = ws.dataset(name)
        _show_tag(dataset.untag(_selected(dataset, vql, ids), tag_name), as_json=as_json)


@app.command()
def tags(name: NameArgument, workspace: WorkspaceOption = None, as_json: JsonOption = False) -> None:
    """List a dataset's tags, oldest first."""
    with _open(workspace) as ws:
        records = ws.dataset(name).tags()
        if as_json:
            _print_json(records)
            return
        rows = [(r.name, r.count, f"{r.created_at:%Y-%m-%d %H:%M}", r.created_by, r.tag_id) for r in records]
        _print_table(("tag", "images", "created (UTC)", "by", "id"), rows)


def _show_tag(record: Tag, *, as_json: bool) -> None:
    if as_json:
        _print_json(record)
    else:
        _say(f"{record.name}: {record.count:,} pictures have it")


def _selected(dataset: Dataset, vql: str | None, ids: list[str] | None) -> View | list[str]:
    """Return what an edit is about: nobody is to tag a whole dataset by leaving the filter out."""
    if (vql is None) == (not ids):
        raise InvalidInput("say which pictures: either --vql, or --ids; --vql '[]' means all")
    return dataset.where(_parse_vql(vql) or []) if not ids else [each for part in ids for each in part.split(",")]


@app.command()
def ls(workspace: WorkspaceOption = None, as_json: JsonOption = False) -> None:
    """List the datasets, newest first."""
    with _open(workspace) as ws:
        records = ws.datasets()
        if as_json:
            _print_json(records)
            return
        rows = [(r.display_name, r.status_new, r.n_images, f"{r.created_at:%Y-%m-%d %H:%M}", r.id) for r in records]
        _print_table(("name", "status", "images", "created (UTC)", "id"), rows)


@app.command()
def show(name: NameArgument, workspace: WorkspaceOption = None, as_json: JsonOption = False) -> None:
    """Show what is in a dataset."""
    with _open(workspace) as ws:
        dataset = ws.dataset(name)
        info = dataset.info
        if dataset.last_task is not None and info.status_new is DatasetStatus.ERROR:
            raise Conflict(f"dataset {info.display_name!r} is {info.status_new}: {dataset.last_task.error_message}")
        config = dataset.embedding_config
        summaries = dataset.where([]).issue_summaries()
        if as_json:
            _print_json(
                {
                    **info.model_dump(mode="json"),
                    "embedding_config": config.model_dump(mode="json"),
                    "issues": [summary.model_dump(mode="json") for summary in summaries],
                    "skipped": dataset.skipped,
                }
            )
            return
        _say(f"{info.display_name}: {info.n_images:,} images, {info.status_new}, id {info.id}")
        _say(f"encoder {config.encoder}, {config.dimension} values, cluster thresholds {config.thresholds}")
        rows = [
            (s.issue_type, s.count, "" if s.threshold is None else f"{s.threshold:.3g}", s.meaning) for s in summaries
        ]
        _print_table(("issue", "found", "limit", "measured value"), rows)


@app.command()
def explore(
    name: NameArgument,
    threshold: Annotated[int, typer.Option(help="Clustering level, 0 (finest) to 4.")] = 0,
    page: Annotated[int, typer.Option(help="Page of 100 clusters, from 0.")] = 0,
    entity_type: Annotated[str, typer.Option(help="IMAGES or OBJECTS.")] = "IMAGES",
    vql: VqlOption = None,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show a page of clusters, largest first."""
    with _open(workspace) as ws:
        result = ws.dataset(name).explore(entity_type, threshold, page, _parse_vql(vql))
        if as_json:
            _print_json(result)
            return
        rows = [
            (c.n_images, ", ".join(c.labels or []), ", ".join(p.file_name for p in c.previews[:3]), c.cluster_id)
            for c in result.clusters
        ]
        _print_table(("images", "labels", "for example", "cluster"), rows)


@app.command()
def duplicates(
    name: NameArgument,
    threshold: Annotated[float, typer.Option(help="Least similarity, 0.96 to 1.0.")] = 0.96,
    exact: Annotated[bool, typer.Option("--exact", help="Instead, files with equal content.")] = False,
    limit: LimitOption = None,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show groups of near-duplicates, largest first, each with the one that is best to keep."""
    with _open(workspace) as ws:
        groups = ws.dataset(name).duplicates(threshold, exact=exact, limit=limit or (None if as_json else 100))
        if as_json:
            _print_json(groups)
            return
        _print_table(("images", "similarity", "best to keep", "because", "others"), map(_duplicates_row, groups))


def _duplicates_row(group: DuplicateGroup) -> tuple[Any, ...]:
    keep = group.media_ids.index(group.keep)
    others = ", ".join([*group.paths[:keep], *group.paths[keep + 1 :]][:8])
    return len(group.media_ids), f"{group.similarity:.4f}", group.paths[keep], group.keep_reason, others


@app.command()
def issues(
    name: NameArgument,
    issue_type: Annotated[str | None, typer.Option("--type", help="Only this issue.")] = None,
    limit: LimitOption = None,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what is wrong with the pictures, the worst of each kind first."""
    with _open(workspace) as ws:
        found = ws.dataset(name).issues(issue_type, limit=limit or (None if as_json else 20)).to_pylist()
        if as_json:
            _print_json(found)
            return
        rows = [
            (
                row["issue_type"],
                row["path"],
                _short(row["value"]),
                "" if row["percentile"] is None else f"{row['percentile']:.1f}",
                f"{row['confidence']:.2f}",
                row["reason"] or (row["suggested_label"] and f"suggested label: {row['suggested_label']}") or "",
            )
            for row in found
        ]
        _print_table(("issue", "file", "value", "percentile", "confidence", "reason"), rows)


@app.command()
def export(
    name: NameArgument,
    out: Annotated[Path, typer.Argument(help="The ZIP file to write.")],
    file_format: Annotated[str, typer.Option("--format", help="json, parquet, coco, csv or yolo.")] = "json",
    include_images: Annotated[
        bool, typer.Option("--include-images", help="Put the pictures into the ZIP too.")
    ] = False,
    vql: VqlOption = None,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write a dataset to a ZIP file: all that is known of it, or labels and captions as COCO, CSV or YOLO files."""
    with _open(workspace) as ws:
        result = ws.dataset(name).where(_parse_vql(vql) or []).export(out, file_format, include_images)
        if as_json:
            _print_json(result)
            return
        _say(f"{result.path}: {result.message}")
        if result.missing_images:
            _say(f"the first that could not be read is {result.missing_images[0]}")


@app.command()
def report(
    name: NameArgument,
    output: Annotated[Path, typer.Option("--output", "-o", help="The HTML file to write.")] = Path("report.html"),
    level: Annotated[int, typer.Option(min=0, max=4, help="Clustering level to show.")] = 3,
    workspace: WorkspaceOption = None,
) -> None:
    """Write one self-contained HTML page: issues, near-duplicates, clusters."""
    with _open(workspace) as ws:
        _say(f"wrote {ws.dataset(name).report(output, level=level)}")


@app.command()
def cleanup(
    name: NameArgument,
    repeated: Annotated[
        str | None,
        typer.Option("--duplicates", help="Least similarity of near-duplicates, or 'exact' for equal files."),
    ] = None,
    issue: Annotated[
        list[str] | None, typer.Option(help="An issue, as blur or blur=0.8 with the least confidence; may be repeated.")
    ] = None,
    keep: Annotated[str, typer.Option(help="Which of a group stays: best, first, oldest or largest.")] = "best",
    vql: VqlOption = None,
    page: Annotated[Path | None, typer.Option(help="Write what would go to an HTML page.")] = None,
    carry_out: Annotated[bool, typer.Option("--apply", help="Remove it, after a snapshot.")] = False,
    delete_files: Annotated[bool, typer.Option("--delete-files", help="With --apply: also delete the files.")] = False,
    limit: LimitOption = None,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what would go because it repeats other pictures or has an issue, and what would stay; --apply removes it."""
    if delete_files and not carry_out:
        raise InvalidInput("--delete-files needs --apply; without it nothing is removed")
    with _open(workspace) as ws:
        plan = ws.dataset(name).plan_cleanup(
            duplicates=repeated if repeated in (None, "exact") else _number("--duplicates (if not 'exact')", repeated),
            issues=dict(map(_issue_limit, issue or [])),
            keep=keep,
            where=_parse_vql(vql),
        )
        written = None if page is None else plan.page(page)
        rows = plan.to_arrow().slice(0, limit or (None if as_json else 100)).to_pylist()
        if not as_json:
            _print_table(("", "file", "because"), [(row["action"], row["path"], row["reason"]) for row in rows])
            _say(f"{plan.words}{'' if written is None else f'; wrote {written}'}")
        result = plan.apply(delete_files=delete_files) if carry_out else None
        if as_json:
            _print_json({"summary": plan.summary, "rows": rows, "page": written, "result": result})
        elif result is not None:
            _say_result(result)


def _say_result(result: CleanupResult) -> None:
    _say(f"removed {result.removed:,} pictures" + (f", {result.files_deleted:,} files" if result.files_deleted else ""))
    if result.snapshot is not None:
        _say(f"the state before is the snapshot {result.snapshot.snapshot_name!r}, id {result.snapshot.snapshot_id}")
    if result.files_left:
        path, reason = result.files_failed[0]
        _say(f"{result.files_left:,} files were left alone, the first is {path}: {reason}")


def _issue_limit(text: str) -> tuple[str, float]:
    issue, equals, least = text.partition("=")
    return issue, _number(f"--issue {issue}", least) if equals else 0.0


def _number(name: str, text: str | None) -> float:
    try:
        return float(text or "")
    except ValueError:
        raise InvalidInput(f"{name} must be a number, not {text!r}") from None


@app.command()
def du(workspace: WorkspaceOption = None, as_json: JsonOption = False) -> None:
    """Show what uses the disk."""
    with _open(workspace) as ws:
        usage = ws.disk_usage()
        rows = usage.to_arrow().to_pylist()
        if as_json:
            _print_json({"total_bytes": usage.total_bytes, "freeable_bytes": usage.freeable_bytes, "parts": rows})
            return
        shown = [
            (row["dataset_name"] or "", row["part"], bytes_text(row["bytes"]), bytes_text(row["shared_bytes"]))
            for row in rows
        ]
        _print_table(("dataset", "part", "size", "shared with others"), shown)
        _say(f"{bytes_text(usage.total_bytes)} in all; {bytes_text(usage.freeable_bytes)} to be freed by vacuum")


@app.command()
def vacuum(
    older_than: Annotated[
        float | None, typer.Option(help="Seconds for which others may still read old states; 600 if not set otherwise.")
    ] = None,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Free the disk of what no dataset and no snapshot needs."""
    with _open(workspace) as ws:
        result = ws.vacuum(older_than_s=older_than)
        if as_json:
            _print_json(result)
            return
        _say(f"{bytes_text(result.freed_bytes)} freed")
        for dataset, reason in result.skipped.items():
            _say(f"left alone: {dataset}: {reason}")


@app.command()
def rm(
    name: NameArgument,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Delete a dataset; the pictures themselves stay where they are."""
    with _open(workspace) as ws:
        record = ws.dataset(name).info
        if not yes and sys.stdin.isatty():
            typer.confirm(f"Delete {record.display_name!r} with {record.n_images:,} images?", abort=True)
        ws.delete_dataset(record.id)
        _say(f"deleted {record.display_name}")


@app.command()
def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="The HTML report to write.")] = Path("report.html"),
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run the whole job on sample photographs and edits of them whose truth is known, and compare."""
    with Workspace(_folder(workspace)) as ws:
        start = time.perf_counter()
        dataset, truth = demo_dataset.build(ws)
        outcomes = demo_dataset.compare(dataset, truth)
        dataset.report(output, extra=demo_dataset.outcome_html(outcomes))
        seconds = time.perf_counter() - start
        if as_json:
            _print_json([vars(outcome) for outcome in outcomes])
        else:
            _say(f"{dataset.info.n_images:,} pictures made, read, compared and reported in {seconds:.1f} s")
            rows = [(o.what, o.planted, o.found, ", ".join(o.others) or "none") for o in outcomes]
            _print_table(("what", "planted", "found of them", "found besides"), rows)
            _say(f"wrote {output}; the dataset {demo_dataset.DATASET!r} is in {ws.path}")
        if any(outcome.found < outcome.planted for outcome in outcomes):
            raise Error("not all that was planted has been found")


def _folder(workspace: Path | None) -> Path:
    return user_path(workspace or load_settings().workspace)


def _open(workspace: Path | None) -> Workspace:
    """Open a workspace that must be there: a mistyped folder is not to be made into one."""
    folder = _folder(workspace)
    if not os.path.lexists(folder / MARKER):
        raise WorkspaceError(f"there is no workspace at {folder}; `framedex create` makes one")
    return Workspace(folder)


def _parse_vql(vql: str | None) -> list[Any] | None:
    if vql is None:
        return None
    try:
        parsed = json.loads(vql)
    except json.JSONDecodeError as error:
        raise InvalidInput(f"--vql is no JSON: {error}") from None
    if not isinstance(parsed, list):
        raise InvalidInput(f"--vql must be a JSON array of filters, not {vql!r}")
    return parsed


def printable(text: str) -> str:
    """Return text without control characters, which could steer the terminal."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "backslashreplace").decode() for c in text)


def _short(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}"


def _say(line: str) -> None:
    print(printable(line))  # noqa: T201 - a command line prints


def _print_json(value: Any) -> None:
    def plain(part: Any) -> Any:
        return part.model_dump(mode="json") if isinstance(part, Record) else str(part)

    print(json.dumps(value, indent=2, default=plain, allow_nan=False))  # noqa: T201 - a command line prints


def _print_table(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console() if sys.stdout.isatty() else Console(width=200)
    table = Table(*header, box=None, pad_edge=False)
    for row in rows:
        table.add_row(*(Text(printable(f"{cell:,}" if isinstance(cell, int) else str(cell))) for cell in row))
    console.print(table)


if __name__ == "__main__":
    main()
