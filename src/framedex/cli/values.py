"""Commands that edit labels, captions, tags and custom fields, and that remove media."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import framedex
from framedex.cli.edits import selected
from framedex.cli.options import (
    IdsOption,
    JsonOption,
    NameArgument,
    TagArgument,
    VqlOption,
    WorkspaceOption,
    YesOption,
    confirm,
    open_workspace,
)
from framedex.cli.output import print_json, print_table, say
from framedex.core.counts import counted
from framedex.errors import InvalidInput

if TYPE_CHECKING:
    from framedex.records import FieldResult

_FieldArgument = Annotated[str, typer.Argument(metavar="FIELD", help="Name of a custom field.")]
_NewNameArgument = Annotated[str, typer.Argument(metavar="NEW", help="The new name.")]
_ClearOption = Annotated[bool, typer.Option("--clear", help="Take the values away instead.")]
_FromOption = Annotated[
    Path | None,
    typer.Option("--from", help="CSV file with the columns media_id and value, instead of VALUE.", exists=True),
]
_ERRORS_SHOWN = 10


def label(
    name: NameArgument,
    labels: Annotated[list[str] | None, typer.Argument(metavar="LABEL…", help="All labels of the images.")] = None,
    clear: _ClearOption = False,
    vql: VqlOption = None,
    ids: IdsOption = None,
    workspace: WorkspaceOption = None,
) -> None:
    """Set the labels of images, in the place of those that they have."""
    if bool(labels) == clear:
        raise InvalidInput("give one or more labels, or --clear")
    with open_workspace(workspace) as ws:
        dataset = ws.dataset(name)
        media_ids = _ids(dataset, vql, ids)
        dataset.set_labels(media_ids, labels or [])
    say(f"{counted(len(media_ids), 'images')}: {', '.join(labels) if labels else 'no labels'}")


def caption(
    name: NameArgument,
    text: Annotated[str | None, typer.Argument(help="The caption.")] = None,
    clear: _ClearOption = False,
    vql: VqlOption = None,
    ids: IdsOption = None,
    workspace: WorkspaceOption = None,
) -> None:
    """Set the caption of images."""
    if (text is None) != clear:
        raise InvalidInput("give a caption, or --clear")
    with open_workspace(workspace) as ws:
        dataset = ws.dataset(name)
        media_ids = _ids(dataset, vql, ids)
        dataset.set_captions(dict.fromkeys(media_ids, text))
    say(f"{counted(len(media_ids), 'images')}: {'no caption' if text is None else text}")


def rename_tag(
    name: NameArgument, tag: TagArgument, new_name: _NewNameArgument, workspace: WorkspaceOption = None
) -> None:
    """Rename a tag; all media that have it keep it."""
    with open_workspace(workspace) as ws:
        ws.dataset(name).rename_tag(tag, new_name)
    say(f"the tag {tag} is now {new_name}")


def delete_tag(name: NameArgument, tag: TagArgument, workspace: WorkspaceOption = None) -> None:
    """Delete a tag, and take it from all media."""
    with open_workspace(workspace) as ws:
        ws.dataset(name).delete_tag(tag)
    say(f"deleted the tag {tag}; undo: framedex undo {name}")


def fields(name: NameArgument, workspace: WorkspaceOption = None, as_json: JsonOption = False) -> None:
    """List the custom fields of a dataset."""
    with open_workspace(workspace) as ws:
        records = ws.dataset(name).fields()
    if as_json:
        print_json(list(records))
        return
    rows = [
        (each.field_name, each.field_type.value, "list" if each.is_multi else "", ", ".join(each.enum_options or []))
        for each in records
    ]
    print_table(("field", "type", "", "options"), rows)


def add_field(
    name: NameArgument,
    field: _FieldArgument,
    field_type: Annotated[str, typer.Argument(metavar="TYPE", help="string, float, datetime, enum or link.")],
    option: Annotated[list[str] | None, typer.Option(help="An option of an enum. Repeatable.")] = None,
    multi: Annotated[bool, typer.Option("--multi", help="Each image has a list of values.")] = False,
    source: _FromOption = None,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Add a custom field to a dataset, with values from a file if there is one."""
    values = None if source is None else _values_in(source, are_numbers=field_type == "float")
    with open_workspace(workspace) as ws:
        result = ws.dataset(name).add_field(field, field_type, enum_options=option, is_multi=multi, values=values)
    _show_result(result, field, as_json=as_json)


def set_field(
    name: NameArgument,
    field: _FieldArgument,
    value: Annotated[str | None, typer.Argument(help="The value.")] = None,
    clear: _ClearOption = False,
    source: _FromOption = None,
    vql: VqlOption = None,
    ids: IdsOption = None,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Set the values of a custom field: one value of selected images, or those of a file."""
    if [value is not None, clear, source is not None].count(True) != 1:
        raise InvalidInput("give one of a value, --clear and --from FILE")
    with open_workspace(workspace) as ws:
        dataset = ws.dataset(name)
        are_numbers = any(each.field_name == field and each.field_type == "float" for each in dataset.fields())
        if source is None:
            shared = _number(value) if are_numbers else value
            values: dict[str, Any] = dict.fromkeys(_ids(dataset, vql, ids), shared)
        elif vql is not None or ids:
            raise InvalidInput("--from takes no --vql and no --ids: the file says which images")
        else:
            values = _values_in(source, are_numbers=are_numbers)
        result = dataset.set_field(field, values)
    _show_result(result, field, as_json=as_json)


def rename_field(
    name: NameArgument, field: _FieldArgument, new_name: _NewNameArgument, workspace: WorkspaceOption = None
) -> None:
    """Rename a custom field."""
    with open_workspace(workspace) as ws:
        ws.dataset(name).rename_field(field, new_name)
    say(f"the field {field} is now {new_name}")


def delete_field(name: NameArgument, field: _FieldArgument, workspace: WorkspaceOption = None) -> None:
    """Delete a custom field with all its values."""
    with open_workspace(workspace) as ws:
        ws.dataset(name).delete_field(field)
    say(f"deleted the field {field}; undo: framedex undo {name}")


def delete_media(
    name: NameArgument,
    vql: VqlOption = None,
    ids: IdsOption = None,
    yes: YesOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Remove images from a dataset; their files stay."""
    with open_workspace(workspace) as ws:
        dataset = ws.dataset(name)
        media_ids = _ids(dataset, vql, ids)
        confirm(f"Remove {counted(len(media_ids), 'images')} from {name!r}?", yes=yes, is_final=False)
        dataset.delete_media(media_ids)
    say(f"removed {counted(len(media_ids), 'images')}; undo: framedex undo {name}")


def _ids(dataset: "framedex.Dataset", vql: str | None, ids: list[str] | None) -> list[str]:
    found = selected(dataset, vql, ids)
    return found if isinstance(found, list) else found.media_ids()


def _number(value: str | None) -> float | str | None:
    """Return a value of a field of numbers; what is no number is left to the check of the field, which names it."""
    try:
        return None if value is None else float(value)
    except ValueError:
        return value


def _values_in(path: Path, *, are_numbers: bool) -> dict[str, Any]:
    """Return the values in a CSV file by media id; an empty cell takes a value away.

    Raises:
        InvalidInput: the file cannot be read, has not both columns, or names an image twice.
    """
    from framedex.core.delimited import named_rows

    def check(_path: Path, names: Sequence[str]) -> None:
        if missing := {"media_id", "value"} - set(names):
            raise InvalidInput(f"{path} has no column {sorted(missing)[0]!r}: its columns must be media_id and value")

    values: dict[str, Any] = {}
    for _, row in named_rows(path, ("media_id", "value"), check):
        if (media_id := row["media_id"]) in values:
            raise InvalidInput(f"{path} has the image {media_id!r} twice")
        value = row["value"] or None
        values[media_id or ""] = _number(value) if are_numbers else value
    return values


def _show_result(result: "FieldResult", field: str, *, as_json: bool) -> None:
    if as_json:
        print_json(result)
        return
    say(f"{field}: {counted(result.inserted_rows, 'values')} set, {result.error_count:,} refused")
    for each in result.sample_errors[:_ERRORS_SHOWN]:
        say(f"  row {each.row_index}: {each.reason}")
