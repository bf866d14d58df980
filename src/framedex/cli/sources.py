"""Commands about the files of datasets where they are: folders that moved, files that are new, changed or gone."""

import shlex
from typing import TYPE_CHECKING, Annotated

import typer

from framedex.cli.options import JsonOption, NameArgument, WorkspaceOption, YesOption, open_workspace
from framedex.cli.output import print_json, print_table, say
from framedex.core.counts import counted

if TYPE_CHECKING:
    from framedex.records import PreviewColumn, RelocatedRoot, SourcePreview, SyncResult

_LINES = 20  # files of a kind that have a line of their own


def relocate(
    old: Annotated[str, typer.Argument(help="The folder, or the URI s3://bucket/folder, where the files were.")],
    new: Annotated[str, typer.Argument(help="Where they are now.")],
    only_check: Annotated[bool, typer.Option("--check", help="Only compare the files; change nothing.")] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Go on although files differ, or most of them are missing.")
    ] = False,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> int:
    """Change the place of a source folder for all datasets; exit with status 1 if --check finds an obstacle."""
    with open_workspace(workspace) as ws:
        result = ws.relocate(old, new, check=only_check, force=force)
    if as_json:
        print_json(result)
        return int(result.obstacle is not None)
    for root in result.roots:
        say(_root_line(root))
        for line in root.examples[:_LINES]:
            say(f"  {line}")
    for note in result.notes:
        say(note)
    if result.obstacle is not None:
        say(f"it would be refused: {result.obstacle}")
        return 1
    done = f"{result.before} is {result.after} now" if result.is_done else "nothing stands against it"
    say(f"{done}, for {counted(len({root.dataset_id for root in result.roots}), 'datasets')}")
    return 0


def _root_line(root: "RelocatedRoot") -> str:
    found = root.files - root.missing - root.unreadable
    lacking = [
        f"{count:,} {words}"
        for count, words in ((root.missing, "missing"), (root.unreadable, "unreadable"), (root.different, "different"))
        if count
    ]
    seen = f"{found:,} of {counted(root.files, 'files')} found, {root.compared:,} compared by content"
    return f"{root.dataset_name}: {root.before} → {root.after}: {', '.join([seen, *lacking])}"


def preview(
    source: Annotated[
        str, typer.Argument(help="A folder, an archive, a list or a table of boxes, a pattern, or s3://…")
    ],
    as_json: JsonOption = False,
) -> None:
    """Show how a source is understood: layout, columns and what each becomes, first rows; create nothing."""
    from framedex.operations.previews import preview_source
    from framedex.settings import load_settings

    found = preview_source(source, load_settings())
    if as_json:
        print_json(found)
        return
    say(f"{found.source}: {found.kind}{_layout_words(found)}")
    for line in found.layout:
        say(line)
    if found.columns:
        uses = [(each.name, str(each.type), _use_words(each)) for each in found.columns]
        print_table(("column", "type", "becomes"), uses)
    print_table([each.name for each in found.columns] or ["path"], found.rows)
    if found.found is not None:
        say(f"{found.found:,} of the first {counted(found.files, 'files')} exist")
    for path in found.missing:
        say(f"  there is nothing at {path}")
    for each in found.problems:
        say(f"{each.count:,} {each.reason}" + (f", such as {each.examples[0]}" if each.examples else ""))


def _layout_words(found: "SourcePreview") -> str:
    if found.encoding is None:
        return ""
    return f", {found.encoding}, cells between {found.delimiter}, {'a' if found.has_header else 'no'} header"


def _use_words(column: "PreviewColumn") -> str:
    return str(column.becomes) if column.reason is None else f"{column.becomes}: {column.reason}"


def sync(
    name: NameArgument,
    yes: YesOption = False,
    remove: Annotated[
        bool, typer.Option("--remove", help="With --yes: remove media whose files are gone from the dataset.")
    ] = False,
    further: Annotated[
        list[str] | None,
        typer.Option("--from", help="Another folder or URI in which files that are gone are looked for. Repeatable."),
    ] = None,
    mark_lost: Annotated[
        bool,
        typer.Option("--mark-lost", help="Mark the files of sources and folders of which nothing can be found, too."),
    ] = False,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what is new, changed, moved or gone in the folders of a dataset; --yes applies it."""
    with open_workspace(workspace) as ws:
        dataset = ws.dataset(name)
        result = dataset.sync(apply=yes, remove=remove, sources=further or [], mark_lost=mark_lost)
        display_name = dataset.name
    if as_json:
        print_json(result)
        return
    _say_result(display_name, result)


def _say_result(name: str, result: "SyncResult") -> None:
    counts = {
        "new": result.new,
        "changed": result.changed,
        "moved": result.moved,
        "missing": result.missing,
        "back": result.back,
    }
    for lost in result.lost:
        say(f"{counted(lost.files, 'files')} of {lost.source} cannot be found: {lost.reason}")
    if result.lost:
        say("none of them is marked; `framedex relocate` tells where a source is now, and --mark-lost marks them")
    for kind, count in counts.items():
        lines = result.examples.get(kind, [])[:_LINES]
        for line in lines:
            say(f"{kind}: {line}")
        if count > len(lines):
            say(f"{kind}: and {count - len(lines):,} more")
    for reason, count in result.unreadable.items():
        say(f"{counted(count, 'files')} cannot be read: {reason}")
    for note in result.notes:
        say(note)
    say(f"{name}: {', '.join(f'{count:,} {kind}' for kind, count in counts.items())}")
    if result.removed:
        say(f"{counted(result.removed, 'images')} removed from the dataset")
    if not result.is_applied and any(counts.values()):
        say(f"nothing was changed; `framedex sync {shlex.quote(name)} --yes` applies it")
