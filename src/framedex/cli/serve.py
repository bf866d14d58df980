"""The command that serves a workspace over HTTP."""

from typing import Annotated

import typer

from framedex.cli.options import WorkspaceOption, existing_folder, open_workspace, workspace_folder
from framedex.cli.output import say
from framedex.errors import MissingDependency, WorkspaceError


def serve(
    workspace: WorkspaceOption = None,
    host: Annotated[str, typer.Option(help="Address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 for a free one.")] = 8765,
    read_only: Annotated[bool, typer.Option("--read-only", help="Change nothing in the workspace.")] = False,
) -> None:
    """Serve a workspace over HTTP until Ctrl-C: the API of docs/service.md. A missing or empty folder becomes one."""
    try:
        from framedex.service.server import serve as run
    except ImportError as error:
        raise MissingDependency(f"the service needs {error.name}: pip install 'framedex[http]'") from None
    from framedex.service.settings import load_oidc_settings, load_service_settings

    folder, is_new = workspace_folder(workspace), False
    try:
        existing_folder(workspace)
    except WorkspaceError:
        if read_only:
            raise
        with open_workspace(workspace, create=True):
            is_new = True
    run(
        folder,
        load_service_settings(),
        host=host,
        port=port,
        oidc=load_oidc_settings(),
        read_only=read_only,
        announce=lambda url: say(
            f"Framedex serves {folder}{', a new workspace,' if is_new else ''} at {url} (Ctrl-C stops it)"
        ),
        warn=lambda sentence: say(f"warning: {sentence}"),
    )
