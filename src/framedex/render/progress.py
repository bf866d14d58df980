"""Progress bars for terminals and notebooks."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from framedex.core.progress import Progress
from framedex.render.notebook_progress import NotebookBar


@contextmanager
def progress_bar(title: str, *, shown: bool | None = None, late: bool = False) -> Iterator[Progress | None]:
    """Show a progress bar for the duration of a block; yield its progress callback, or None if no bar is shown.

    Args:
        title: the title of the bar.
        shown: whether to show the bar; by default in terminals and notebooks only.
        late: show the bar only after the first call of the callback.
    """
    if shown is None and _in_notebook():
        with _notebook_bar(title, late=late) as progress:
            yield progress
    elif shown is False or (shown is None and not sys.stderr.isatty()):
        yield None
    else:
        with _terminal_bar(title, late=late) as progress:
            yield progress


@contextmanager
def _notebook_bar(title: str, *, late: bool) -> Iterator[Progress]:
    bar = NotebookBar(title)
    if not late:
        bar.update("", 0.0)
    try:
        yield bar.update  # the first call shows the bar
    finally:
        bar.close()


@contextmanager
def _terminal_bar(title: str, *, late: bool) -> Iterator[Progress]:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    # Output printed meanwhile appears above the bar; if stdout is redirected to a file, it is left alone.
    bar = Progress(*columns, console=Console(stderr=True), redirect_stdout=sys.stdout.isatty())
    task = bar.add_task(title, total=1.0)

    def progress(stage: str, share: float) -> None:
        if late:
            bar.start()  # has no effect after the first call
        bar.update(task, completed=share, description=f"{title}: {stage}")

    if not late:
        bar.start()
    try:
        yield progress
    finally:
        bar.stop()


def _in_notebook() -> bool:
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and type(shell).__name__ == "ZMQInteractiveShell"
