"""A progress bar, in the terminal and in notebooks."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Progress = Callable[[str, float], None]


@contextmanager
def progress_bar(title: str, *, shown: bool | None = None, late: bool = False) -> Iterator[Progress | None]:
    """Show a bar for the duration of a block; yield what it is to be told: (stage, share from 0 to 1).

    Args:
        title: what is being done.
        shown: whether to show it; None shows it in terminals and notebooks only. Yields None where it is not shown.
        late: show nothing before there is something to tell.
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
    # What is printed meanwhile passes above the bar, but not into it where output is kept in a file.
    bar = Progress(*columns, console=console, redirect_stdout=sys.stdout.isatty())
    task = bar.add_task(title, total=1.0)

    def progress(stage: str, share: float) -> None:
        if late:
            bar.start()  # once
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
