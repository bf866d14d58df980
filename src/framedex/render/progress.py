"""Progress bars for terminals and notebooks."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from framedex.core.progress import Progress


@contextmanager
def progress_bar(title: str, *, shown: bool | None = None, late: bool = False) -> Iterator[Progress | None]:
    """Show a progress bar for the duration of a block; yield its progress callback, or None if no bar is shown.

    Args:
        title: the title of the bar.
        shown: whether to show the bar; by default in terminals and notebooks only.
        late: show the bar only after the first call of the callback.
    """
    if shown is None:
        shown = sys.stderr.isatty() or _in_notebook()
    if not shown:
        yield None
        return
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
    console = Console(stderr=True) if not _in_notebook() else None
    # Output printed meanwhile appears above the bar; if stdout is redirected to a file, it is left alone.
    bar = Progress(*columns, console=console, redirect_stdout=sys.stdout.isatty())
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
