"""Commands that search a dataset and measure searches."""

from pathlib import Path
from typing import Annotated, Any

import typer

import framedex
from framedex.cli.options import (
    JsonOption,
    KindOption,
    NameArgument,
    VqlOption,
    WorkspaceOption,
    number,
    open_workspace,
    parse_vql,
)
from framedex.cli.output import print_json, print_table, say
from framedex.errors import InvalidInput

_FoundOption = Annotated[int, typer.Option("--limit", min=1, help="Maximum number of results.")]
_RelevanceOption = Annotated[
    float, typer.Option(help="Minimum relevance, 0 to 1. By image and by meaning, 0.5 and more is a match.")
]


def search(
    name: NameArgument,
    text: Annotated[str, typer.Argument(help="Words or a sentence to search for.")],
    by: Annotated[
        str, typer.Option(help="words, meaning, both, or auto: both if the encoder supports texts, else words.")
    ] = "auto",
    limit: _FoundOption = 20,
    vql: VqlOption = None,
    relevance: _RelevanceOption = 0.0,
    entity_type: KindOption = "IMAGES",
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Search images or objects by text, the best match first."""
    with open_workspace(workspace) as ws:
        found = ws.dataset(name).search(text, limit, by=by, relevance=relevance, entity_type=entity_type)
        _show(found, vql, as_json=as_json)


def similar(
    name: NameArgument,
    query: Annotated[str, typer.Argument(help="Path of an image, or id of an image or object in the dataset.")],
    box: Annotated[
        str | None, typer.Option(metavar="X,Y,W,H", help="Bounding box of the part to compare, in pixels.")
    ] = None,
    limit: _FoundOption = 20,
    threshold: Annotated[float | None, typer.Option(help="Maximum cosine distance, 0 to 2.")] = None,
    vql: VqlOption = None,
    relevance: _RelevanceOption = 0.0,
    diversity: Annotated[
        float,
        typer.Option(help="0 returns the nearest; values up to 1 return results that differ more from one another."),
    ] = 0.0,
    entity_type: KindOption = "IMAGES",
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Search images or objects by an image: its verified copies, then the most similar first."""
    with open_workspace(workspace) as ws:
        found = ws.dataset(name).similar(
            query,
            limit,
            max_distance=threshold,
            bounding_box=_box(box),
            diversity=diversity,
            relevance=relevance,
            entity_type=entity_type,
        )
        _show(found, vql, as_json=as_json)


def bench_search(
    name: NameArgument,
    recall: Annotated[float, typer.Option(help="Required recall, 0 to 1.")] = 0.95,
    k: Annotated[int, typer.Option("--k", help="Number of neighbours for each query.")] = 10,
    queries: Annotated[int, typer.Option(help="Number of queries.")] = 200,
    selectivity: Annotated[
        list[float] | None, typer.Option(help="Share of rows that pass a filter; 1 for no filter. Repeatable.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Also write the result to a .json, .html or .svg file.")
    ] = None,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Measure recall, latency, queries per second and memory of searches, with and without filters."""
    from framedex.api.search_benchmark import HEADER, check_target

    if not 0 <= recall <= 1:
        raise InvalidInput(f"recall must be a number from 0 to 1, not {recall!r}")
    if output is not None:
        check_target(output)
    with open_workspace(workspace) as ws:
        options: dict[str, Any] = {"selectivities": selectivity} if selectivity else {}
        found = ws.dataset(name).benchmark_search(queries=queries, k=k, **options)
    written = None if output is None else found.save(output)
    if as_json:
        best = found.best_for(recall)
        print_json({**found.model_dump(mode="json"), "recall": recall, "best": best, "advice": found.advice(recall)})
        return
    say(found.words)
    print_table(HEADER, found.table())
    say(f"{found.advice(recall)}{'' if written is None else f'; wrote {written}'}")


def _show(found: "framedex.RankedView", vql: str | None, *, as_json: bool) -> None:
    from framedex.api.view import SCORES

    elements = parse_vql(vql)
    columns = ["media_id", "image_filename", "file_path", *SCORES.names]
    rows = (found if elements is None else found.where(elements)).to_arrow(columns).to_pylist()
    if as_json:
        print_json(rows)
        return
    if not rows:
        say("no matches")
        return
    cells = {
        "file": [row["image_filename"] for row in rows],
        "copy": [row["copy"] or "" for row in rows],
        "relevance": [f"{row['relevance']:.2f}" for row in rows],
        "score": [f"{row['relevance_score']:.4f}" for row in rows],
        "type of score": [row["relevance_score_type"].replace("_", " ") for row in rows],
        "id": [row["media_id"] for row in rows],
    }
    if not any(cells["copy"]):
        del cells["copy"]
    print_table(tuple(cells), zip(*cells.values(), strict=True))


def _box(text: str | None) -> tuple[float, float, float, float] | None:
    if text is None:
        return None
    parts = text.split(",")
    if len(parts) != 4:
        raise InvalidInput(f"--box must be X,Y,W,H, not {text!r}")
    x, y, width, height = (number("--box", part) for part in parts)
    return x, y, width, height
