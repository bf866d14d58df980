"""The command that tries Framedex on sample images."""

import time
from pathlib import Path
from typing import Annotated

import typer

from framedex.cli.options import JsonOption, WorkspaceOption, open_workspace
from framedex.cli.output import print_json, print_table, say
from framedex.core.counts import counted
from framedex.errors import Error


def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="HTML report to write.")] = Path("report.html"),
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Build a dataset of sample photographs with planted faults, and compare the findings with them."""
    from framedex import demo as demo_dataset

    with open_workspace(workspace, create=True) as ws:
        start = time.perf_counter()
        dataset, truth = demo_dataset.build_demo(ws)
        outcomes = demo_dataset.compare(dataset, truth)
        dataset.report(output, extra=demo_dataset.outcome_html(outcomes))
        seconds = time.perf_counter() - start
        if as_json:
            print_json([vars(outcome) for outcome in outcomes])
        else:
            say(f"{counted(dataset.info.n_images, 'images')} created, indexed and compared in {seconds:.1f} s")
            rows = [(o.what, o.planted, o.found, ", ".join(o.others) or "none") for o in outcomes]
            print_table(("fault", "planted", "found", "also found"), rows)
            say(f"wrote {output}; dataset {demo_dataset.DATASET!r} is in workspace {ws.path}")
        if any(outcome.found < outcome.planted for outcome in outcomes):
            raise Error("some planted faults were not found")
