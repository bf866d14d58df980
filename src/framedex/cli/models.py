"""Commands of models: fetching them, adding files, and listing those that can encode images or enrich a dataset."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from framedex.cli.options import JsonOption, NameArgument, WorkspaceOption, YesOption, open_workspace
from framedex.cli.output import print_json, print_table, say
from framedex.core.counts import counted
from framedex.errors import InvalidInput

if TYPE_CHECKING:
    from framedex.core.downloads import OnBytes
    from framedex.encoders import ListedModel, LocalModel


class _Models(TyperGroup):
    """A group in which the name of a dataset stands for ``list`` with that name, and nothing for ``list``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Return the remaining arguments, beginning with a command."""
        is_command = bool(args) and (args[0] in self.commands or args[0] == "--help")
        return super().parse_args(ctx, args if is_command else ["list", *args])


models = typer.Typer(
    cls=_Models,
    help="List models; fetch one, or add a file of one. `framedex models DATASET` is `models list DATASET`.",
)


@models.command("list")
def list_models(name: NameArgument = "", workspace: WorkspaceOption = None, as_json: JsonOption = False) -> None:
    """List the models on this machine and those that can be fetched; of a dataset, those that can enrich it.

    models.toml in the workspace folder registers models that enrich datasets.
    """
    if name:
        _list_enrichments(name, workspace, as_json=as_json)
    else:
        _list_local(as_json=as_json)


def _list_enrichments(name: str, workspace: Path | None, *, as_json: bool) -> None:
    with open_workspace(workspace) as ws:
        dataset = ws.dataset(name)
        found, context = dataset.list_models(), dataset.enrichment_context()
        if as_json:
            print_json(
                {"models": [model.model_dump(mode="json") for model in found], **context.model_dump(mode="json")}
            )
            return
        applied = context.dataset_enrichment_models.enrichment_models
        rows = [
            (
                model.id,
                model.type,
                "applied" if applied.get(model.type) == model.id else model.status,
                model.description,
            )
            for model in found
        ]
        print_table(("model", "type", "status", "description"), rows)


def _list_local(*, as_json: bool) -> None:
    from framedex.encoders import listed_models, local_models
    from framedex.settings import load_settings

    settings = load_settings()
    local, listed = local_models(settings), listed_models(settings)
    if as_json:
        present = {model.name for model in local}
        others = [each.model_dump(mode="json") for each in listed.values() if each.name not in present]
        print_json({"models": [_as_json(model) for model in local], "can_be_fetched": others})
        return
    for model in local:
        _say_local(model)
    if not local:
        say("no models were fetched or added")
    for each in listed.values():
        if all(each.name != model.name for model in local):
            say(f"can be fetched: {each.name} ({each.size}, {each.licence}): {each.about}")


@models.command()
def fetch(
    name: Annotated[str, typer.Argument(metavar="MODEL", help="Name of a model, as `framedex models` lists it.")],
    yes: YesOption = False,
    as_json: JsonOption = False,
) -> None:
    """Fetch a model from its publisher; an interrupted download continues. Nothing else is ever fetched."""
    from framedex.encoders import fetch_model, listed_model, local_models
    from framedex.settings import load_settings

    settings = load_settings()
    listed = listed_model(name, settings)
    if all(model.name != name for model in local_models(settings)):
        _say_listed(listed, error_stream=as_json)
        _ask(name, yes=yes)
    with _progress() as on_bytes:
        try:
            model = fetch_model(
                name, settings=settings, on_bytes=on_bytes, on_wait=lambda: _note("another process fetches it; waiting")
            )
        except KeyboardInterrupt:
            _note(f"interrupted: what is there is kept, and the next `framedex models fetch {name}` continues")
            raise
    _say_result(model, as_json=as_json)


@models.command("add")
def add_file(
    file: Annotated[Path, typer.Argument(help="Weights of a model that can be fetched, or an image model in ONNX.")],
    name: Annotated[str | None, typer.Option(help="Name of the model. Default: by the file.")] = None,
    link: Annotated[bool, typer.Option("--link", help="Make a link instead of a copy.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Add a model that was carried to this machine, after checking that it can be loaded."""
    from framedex.encoders import add_model

    _say_result(add_model(file, name=name, link=link), as_json=as_json)


def _ask(name: str, *, yes: bool) -> None:
    if yes:
        return
    if not sys.stdin.isatty():
        raise InvalidInput(f"to fetch {name!r} needs an answer, and there is no terminal to ask on: give --yes")
    typer.confirm("Fetch it?", abort=True)


def _note(line: str) -> None:
    """Print a line for people, not for programs that read the output."""
    typer.echo(line, err=True)


def _say_listed(listed: "ListedModel", *, error_stream: bool) -> None:
    stated = f"{listed.sha256}, stated by {listed.sha256_source}" if listed.sha256 else "not published; that of the "
    lines = (
        f"{listed.name}: {listed.about}",
        f"  source   {listed.page}",
        *(f"  address  {address}" for address in listed.addresses),
        f"  size     {listed.size}",
        f"  licence  {listed.licence}",
        f"  sha256   {stated if listed.sha256 else f'{stated}first download is kept'}",
    )
    for line in lines:
        (_note if error_stream else say)(line)


def _say_local(model: "LocalModel") -> None:
    say(f"{model.name}: {model.path}")
    say(f"  size     {counted(model.record.size_bytes, 'bytes')}")
    say(f"  sha256   {model.record.sha256}")
    say(f"  source   {model.record.source}")
    if model.record.licence:
        say(f"  licence  {model.record.licence}")
    say(f"  encoder  {model.encoder}" + (f" (needs {model.missing_packages})" if model.missing_packages else ""))


def _say_result(model: "LocalModel", *, as_json: bool) -> None:
    if as_json:
        print_json(_as_json(model))
    else:
        _say_local(model)


def _as_json(model: "LocalModel") -> dict[str, Any]:
    return {
        "name": model.name, "path": str(model.path), "encoder": model.encoder,
        "missing_packages": model.missing_packages, **model.record.model_dump(mode="json"),
    }  # fmt: skip


@contextmanager
def _progress() -> "Iterator[OnBytes]":
    """Yield a function that shows bytes on a bar, where there is a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn, TransferSpeedColumn

    console = Console(stderr=True)
    columns = (BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task("", total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)
