"""Run the notebooks and store their outputs: make notebooks, or python notebooks/make.py [NAME …].

Each notebook runs from start to end in a kernel of its own, in an empty folder that is deleted afterwards. Stored are
the outputs of that run without what differs from run to run: times of execution, states of widgets, which need a
kernel, and progress bars, which are empty once they are complete.
"""

import argparse
import os
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

import framedex

FOLDER = Path(__file__).parent
_TIMEOUT_S = 300
_WIDGET = "application/vnd.jupyter.widget-view+json"


def notebooks() -> list[Path]:
    """Return the paths of the notebooks."""
    return sorted(FOLDER.glob("*.ipynb"))


def run(path: Path) -> Any:
    """Return a notebook with the outputs of a run.

    Raises:
        CellExecutionError: a cell failed.
    """
    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        client = NotebookClient(
            notebook,
            timeout=_TIMEOUT_S,
            kernel_name="python3",
            coalesce_streams=True,
            resources={"metadata": {"path": folder}},
        )
        package = str(Path(framedex.__file__).parents[1])  # that of this process, also where its path is relative
        client.execute(env={**os.environ, "TMPDIR": folder, "PYTHONPATH": package})
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            cell.outputs = [kept for output in cell.outputs if (kept := _kept(output)) is not None]
    notebook.metadata.pop("widgets", None)
    notebook.metadata.language_info = {"name": "python"}
    return notebook


def _kept(output: Any) -> Any:
    """Return what is stored of an output; None for nothing."""
    if "data" in output:
        output.data.pop(_WIDGET, None)
        if "image/jpeg" in output.data:  # Pillow gives both, and a JPEG of a photograph is a fifth of a PNG
            output.data.pop("image/png", None)
        if not any(output.data.values()):
            return None
    return output


def main() -> None:
    """Run the notebooks that the command line names, or all."""
    parser = argparse.ArgumentParser(description="Run notebooks and store their outputs.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="notebooks, without suffix; default: all")
    names = parser.parse_args().names
    paths = [FOLDER / f"{name}.ipynb" for name in names] or notebooks()
    for path in paths:
        nbformat.write(run(path), path)
        print(f"{path.name}: {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
