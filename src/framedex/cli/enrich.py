"""The command that enriches datasets with models."""

import time
from typing import Annotated

import typer

from framedex.cli.options import JsonOption, NameArgument, WorkspaceOption, open_workspace
from framedex.cli.output import print_json, say
from framedex.core.counts import counted
from framedex.errors import InvalidInput


def enrich(
    name: NameArgument,
    wanted: Annotated[
        list[str], typer.Argument(metavar="TYPE=MODEL…", help="Models to apply, for example IMAGE_TAGGING=animals.")
    ],
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Create a new dataset from a dataset and the results of models; the original does not change."""
    pairs = [each.partition("=") for each in wanted]
    if (wrong := next((each for each in wanted if "=" not in each), None)) is not None:
        raise InvalidInput(f"models must be TYPE=MODEL, not {wrong!r}")
    if len({kind for kind, _, _ in pairs}) < len(pairs):
        raise InvalidInput("a type is given twice; give one model for each type")
    with open_workspace(workspace) as ws:
        start = time.perf_counter()
        dataset = ws.dataset(name).enrich({kind: model for kind, _, model in pairs})
        seconds = time.perf_counter() - start
        if as_json:
            print_json({"dataset_id": dataset.id, **dataset.info.model_dump(mode="json")})
            return
        info = dataset.info
        say(f"{info.display_name}: {counted(info.n_images, 'images')} in {seconds:.1f} s, id {info.id}")
