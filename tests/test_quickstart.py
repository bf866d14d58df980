"""The notebook of the README."""

from pathlib import Path

import pytest

NOTEBOOK = Path(__file__).parent.parent / "notebooks" / "quickstart.ipynb"


@pytest.mark.slow
def test_quickstart__runs_from_start_to_end() -> None:
    """Each cell of the tour runs, and those that end with a dataset, a view or a page show images."""
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(NOTEBOOK, as_version=4)  # type: ignore[no-untyped-call] # untyped in nbformat
    client = NotebookClient(
        notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": NOTEBOOK.parent}}
    )
    client.execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", []) if "data" in output]
    shown = [output["data"]["text/html"] for output in outputs if "text/html" in output["data"]]
    assert sum("data:image/jpeg;base64," in html for html in shown) >= 3
