"""The program: its commands, error messages and exit statuses."""

import functools
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Annotated, Any, NoReturn, TypeVar, cast

import typer

from framedex import __version__
from framedex.cli.accounts import users
from framedex.cli.backups import backup, restore_backup
from framedex.cli.datasets import add, add_objects, create, ls, merge, reindex, rm, show
from framedex.cli.decisions import decisions, label_is_right, label_issues, suggest_labels, withdraw_decision
from framedex.cli.demo import demo
from framedex.cli.edits import basket, journal, keep, limits, not_duplicates, redo, tag, tags, undo, unkeep, untag
from framedex.cli.enrich import enrich
from framedex.cli.evaluate import evaluate, object_issues
from framedex.cli.history import clone, delete_snapshot, rename, restore, snapshot
from framedex.cli.inspect import card, duplicates, explore, export, histogram, issues, report, scenes
from framedex.cli.lookups import labels, media_id
from framedex.cli.maintenance import check, cleanup, du, recover, vacuum
from framedex.cli.models import models
from framedex.cli.open import open_folder
from framedex.cli.options import NAMESPACE
from framedex.cli.output import printable, say
from framedex.cli.people import organizations, workspaces
from framedex.cli.plugins import plugins
from framedex.cli.search import bench_search, search, similar
from framedex.cli.serve import serve
from framedex.cli.settings import settings
from framedex.cli.sharing import audit, share
from framedex.cli.sources import preview, relocate, sync
from framedex.cli.states import compare, overlap, snapshots
from framedex.cli.tasks import abort, retry, tasks, wait
from framedex.cli.uploads import upload, uploads
from framedex.cli.values import (
    add_field,
    caption,
    delete_field,
    delete_media,
    delete_tag,
    fields,
    label,
    rename_field,
    rename_tag,
    set_field,
)
from framedex.cli.views import trend, views
from framedex.errors import EmptyResultWarning, Error

_INTERRUPTED = 130
"""The exit status of programs that an interrupt has ended."""


_Command = TypeVar("_Command", bound=Callable[..., Any])


def _telling(command: _Command) -> _Command:
    """Return a command whose interrupt keeps its notes, which the framework would drop."""

    @functools.wraps(command)
    def told(*arguments: Any, **options: Any) -> Any:
        try:
            return command(*arguments, **options)
        except KeyboardInterrupt as interrupt:
            notes = (f"({note})" for note in getattr(interrupt, "__notes__", []))
            _fail(" ".join(["interrupted", *notes]), status=_INTERRUPTED)

    return cast("_Command", told)


app = typer.Typer(
    help="Framedex: find issues and duplicates in image and video collections, cluster and search them, offline.",
    pretty_exceptions_enable=False,
)
app.command("open")(open_folder)
for _command_function in (
    create, preview, upload, uploads, add, add_objects, merge, reindex, enrich, not_duplicates, label_is_right,
    label_issues, suggest_labels, decisions, withdraw_decision, limits, tag, untag, basket, keep, unkeep, tags,
    rename_tag,
    delete_tag, label, caption, fields, add_field, set_field, rename_field, delete_field, delete_media, ls, show,
    rename, explore, search, similar, duplicates, issues, labels, media_id, scenes, histogram, export, report, card,
    cleanup,
    sync, du, check, recover, relocate, backup, restore_backup, tasks, wait, abort, retry, vacuum, rm, views, trend,
    journal, undo, redo,
    snapshots, snapshot, restore, clone, delete_snapshot, evaluate, object_issues, compare, overlap, plugins, settings,
    share, audit, serve, demo,
):  # fmt: skip
    app.command()(_telling(_command_function))

bench = typer.Typer(help="Measure quality and speed on a dataset of yours.")
bench.command("search")(bench_search)
bench.callback()(lambda: None)  # a group, though it has one command so far
app.add_typer(bench, name="bench")
app.add_typer(models, name="models")
app.add_typer(users, name="users")
app.add_typer(workspaces, name="workspaces")
app.add_typer(organizations, name="organizations")


def _print_version(wanted: bool) -> None:
    if wanted:
        say(f"framedex {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
    namespace: Annotated[
        str, typer.Option(envvar="FRAMEDEX_NAMESPACE", help="Namespace of datasets, within which names are unique.")
    ] = "",
) -> None:
    """Find issues and duplicates in image and video collections, cluster and search them, offline."""
    NAMESPACE.set(namespace)


# What typer raises for wrong usage; it names only this subclass in public.
_UsageError: Any = typer.BadParameter.__base__


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit: with status 0, or 1 and one line on an error, or 2 and one line on wrong usage.

    Args:
        arguments: what follows the program's name; by default those of the process.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        if os.environ.get("FRAMEDEX_LOG"):
            import_module("framedex.core.logs").show_environment_log()
        with warnings.catch_warnings():
            warnings.simplefilter("always", EmptyResultWarning)
            warnings.showwarning = functools.partial(_show_warning, warnings.showwarning, set())
            status = _program()(given or ["--help"], standalone_mode=False)
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
        _fail("interrupted", status=_INTERRUPTED)
    if status == _INTERRUPTED:  # of an interrupt outside of the commands
        _fail("interrupted", status=_INTERRUPTED)
    sys.exit(status if isinstance(status, int) else 0)


@functools.cache
def _program() -> Any:
    """Return the program with all its commands; making it reads the annotations of each."""
    return typer.main.get_command(app)


def _command(arguments: Sequence[str]) -> list[str]:
    """Return the words of the command that arguments begin with."""
    found: list[str] = []
    command: Any = _program()
    for argument in arguments:
        command = getattr(command, "commands", {}).get(argument)
        if command is None:
            break
        found.append(argument)
    return found


def _show_warning(
    others: Callable[..., None], shown: set[str], message: Warning | str, category: type[Warning], *about: Any
) -> None:
    """Print in one line, once, that something is empty and why; other warnings are shown as always."""
    if not issubclass(category, EmptyResultWarning):
        others(message, category, *about)
    elif str(message) not in shown:
        shown.add(str(message))
        print("warning:", printable(str(message)), file=sys.stderr)  # noqa: T201 - a command line prints


def _fail(message: str, *, status: int) -> NoReturn:
    print("error:", printable(" ".join(message.split())), file=sys.stderr)  # noqa: T201 - a command line prints
    sys.exit(status)
