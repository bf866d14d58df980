"""Commands that look up labels and media."""

from typing import Annotated

import typer

from framedex.cli.options import (
    JsonOption,
    KindOption,
    NameArgument,
    VqlOption,
    WorkspaceOption,
    count_header,
    open_workspace,
    parse_vql,
)
from framedex.cli.output import print_json, print_table, say
from framedex.errors import InvalidInput


def labels(
    name: NameArgument,
    vql: VqlOption = None,
    entity_type: KindOption = "IMAGES",
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the labels of images or objects with their counts, the most frequent first."""
    if entity_type not in ("IMAGES", "OBJECTS"):
        raise InvalidInput(f"--entity-type must be IMAGES or OBJECTS, not {entity_type!r}")
    with open_workspace(workspace) as ws:
        dataset = ws.dataset(name)
        view = dataset.objects if entity_type == "OBJECTS" else dataset.where([])
        counts = view.where(parse_vql(vql) or []).labels()
        if as_json:
            print_json(counts)
            return
        print_table(("label", count_header(entity_type)), [(each.name, each.count) for each in counts])


def media_id(
    name: NameArgument,
    location: Annotated[str, typer.Argument(help="A path within the source, another path, or a URI.")],
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print the id of the image at LOCATION."""
    with open_workspace(workspace) as ws:
        found = ws.dataset(name).media_id(location)
        if as_json:
            print_json({"media_id": found})
            return
        say(found)
