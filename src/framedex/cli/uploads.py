"""Commands that upload files to a dataset in many calls."""

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import framedex
from framedex.cli.options import (
    JsonOption,
    NameArgument,
    WorkspaceOption,
    YesOption,
    confirm,
    existing_folder,
    open_workspace,
    workspace_folder,
)
from framedex.cli.output import print_json, print_table, say
from framedex.core.counts import counted
from framedex.errors import Error, InvalidInput, NotFound
from framedex.render.sizes import bytes_text

if TYPE_CHECKING:
    from framedex.records import UploadRecord

_CALL_FILES, _CALL_BYTES = 100, 256 * 2**20


def upload(
    name: Annotated[str, typer.Argument(help="Name or id of a dataset; a new name creates a dataset.")],
    files: Annotated[
        list[Path] | None, typer.Argument(help="Images, videos, and annotation files such as annotations.json.")
    ] = None,
    to: Annotated[int | None, typer.Option(help="Go on with an open transaction, by its number.")] = None,
    keep_open: Annotated[
        bool, typer.Option("--keep-open", help="Do not process the files yet; further calls may add more.")
    ] = False,
    discard: Annotated[bool, typer.Option("--discard", help="With --to: remove the transaction.")] = False,
    encoder: Annotated[str, typer.Option(help="For a new dataset: name of the encoder, or auto.")] = "auto",
    settle: Annotated[bool, typer.Option("--reindex", help="Rebuild the index after an addition.")] = False,
    yes: YesOption = False,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Store FILES in the workspace, and add them to a dataset, or create one."""
    paths = files or []
    _check_request(paths, to, keep_open=keep_open, discard=discard)
    folder = workspace_folder(workspace) if to is None else existing_folder(workspace)
    with framedex.Workspace(folder) as ws:
        dataset = _dataset(ws, name, is_new=to is None)
        transaction = dataset.open_upload() if to is None else dataset.find_upload(to)
        if discard:
            _discard(transaction, yes=yes)
            return
        record = _send(transaction, paths, name)
        if keep_open:
            if as_json:
                print_json(record)
                return
            say(f"{dataset.name}: transaction {record.id} holds {_contents(record)}")
            say(f"`framedex upload {name} --to {record.id}` with or without further files processes it")
            return
        start = time.perf_counter()
        transaction.process(encoder=encoder, auto_reindex=settle)
        seconds = time.perf_counter() - start
        if as_json:
            print_json({**dataset.info.model_dump(mode="json"), "upload": transaction.record})
            return
        info = dataset.info
        say(
            f"{info.display_name}: {_contents(record)} processed in {seconds:.1f} s, "
            f"{counted(info.n_images, 'images')} in all"
        )
        for reason, count in dataset.skipped.items():
            say(f"skipped: {count:,} {reason}")


def uploads(name: NameArgument, workspace: WorkspaceOption = None, as_json: JsonOption = False) -> None:
    """List the upload transactions of a dataset, oldest first."""
    with open_workspace(workspace) as ws:
        records = ws.dataset(name).uploads()
        if as_json:
            print_json(records)
            return
        rows = [
            (str(r.id), r.state, r.n_files, bytes_text(r.n_bytes), f"{r.changed_at:%Y-%m-%d %H:%M}", r.created_by)
            for r in records
        ]
        print_table(("transaction", "state", "files", "size", "changed (UTC)", "by"), rows)


def _check_request(files: Sequence[Path], to: int | None, *, keep_open: bool, discard: bool) -> None:
    """Check the arguments and the names of the files, before a dataset is created.

    Raises:
        InvalidInput: they contradict each other, or a file cannot be uploaded.
    """
    from framedex.jobs.ingest.received import check_format

    if discard and (to is None or files or keep_open):
        raise InvalidInput("--discard removes the transaction of --to; it takes no files and no --keep-open")
    if to is None and not files:
        raise InvalidInput("give files to upload, or --to with the number of an open transaction")
    seen: dict[str, Path] = {}
    for path in files:
        check_format(path.name)
        if not path.is_file():
            raise InvalidInput(f"{str(path)!r} is not a file; `framedex create` and `framedex add` read folders")
        if (first := seen.setdefault(path.name, path)) != path:
            raise InvalidInput(
                f"{str(first)!r} and {str(path)!r} have one name, and only the last one would count: rename one of them"
            )


def _dataset(ws: "framedex.Workspace", name: str, *, is_new: bool) -> "framedex.Dataset":
    try:
        return ws.dataset(name)
    except NotFound:
        if not is_new:
            raise
        return ws.create_draft(name)


def _send(transaction: "framedex.UploadTransaction", files: Sequence[Path], name: str) -> "UploadRecord":
    """Add the files in several calls; an error says how to go on."""
    from framedex.render.progress import progress_bar

    done = 0
    try:
        with progress_bar("Uploading") as progress:
            for call in _calls(files):
                transaction.add([(path.name, path) for path in call])
                done += len(call)
                if progress is not None:
                    progress("files", done / len(files))
    except Error as error:
        error.add_note(
            f"the open transaction {transaction.id} of {name!r} has {done:,} of {counted(len(files), 'files')}: go on "
            f"with `framedex upload {name} --to {transaction.id} FILES`, or remove it with --discard"
        )
        raise
    return transaction.record


def _calls(files: Sequence[Path]) -> Iterator[list[Path]]:
    from framedex.settings import load_settings

    settings = load_settings()
    max_files, max_bytes = min(_CALL_FILES, settings.max_upload_files), min(_CALL_BYTES, settings.max_upload_bytes)
    call: list[Path] = []
    size = 0
    for path in files:
        length = path.stat().st_size
        if call and (len(call) >= max_files or size + length > max_bytes):
            yield call
            call, size = [], 0
        call.append(path)
        size += length
    if call:
        yield call


def _discard(transaction: "framedex.UploadTransaction", *, yes: bool) -> None:
    record = transaction.record
    confirm(f"Remove transaction {record.id} with {_contents(record)}?", yes=yes)
    transaction.discard()
    say(f"removed transaction {record.id}")


def _contents(record: "UploadRecord") -> str:
    return f"{counted(record.n_files, 'files')} of {bytes_text(record.n_bytes)}"
