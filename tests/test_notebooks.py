"""The notebooks: their stored outputs are those of a run."""

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.laws import rest_slow
from tests.scripts import load_script

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / "notebooks" / "make.py"
NOTEBOOKS = sorted(SCRIPT.parent.glob("*.ipynb"))
NAMES = [path.stem for path in NOTEBOOKS]
MOST_BYTES = 400_000
VARIES = "varies"
"""The tag of cells whose outputs depend on the machine: measured times, and choices between nearly equal images."""
WITHOUT_LICENCE = re.compile(r"\b(moon|page)[\w-]*\.(jpg|webp)")
ID = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b|\b0x[0-9a-f]{6,}\b")
NUMBER = re.compile(r"(\d+\.\d+)")
LINK = re.compile(r"\]\(([^)#]+)(#[^)]*)?\)")


@pytest.fixture(scope="module")
def script() -> ModuleType:
    """The script that stores outputs."""
    return load_script(SCRIPT)


def read(path: Path) -> Any:
    """Return a stored notebook."""
    import nbformat

    return nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call] # untyped in nbformat


def code_cells(notebook: Any) -> list[Any]:
    """Return the cells that run."""
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


class Shown(HTMLParser):
    """The texts of an HTML output, and a word for each image."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.words: list[str] = []
        self._is_style = False
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self._is_style = tag == "style"
        if tag in ("img", "image", "svg"):
            self.words.append(f"<{tag}>")

    def handle_endtag(self, tag: str) -> None:
        self._is_style = False

    def handle_data(self, data: str) -> None:
        if not self._is_style:
            self.words += data.split()


def words(output: Any) -> Iterator[str]:
    """Yield the words that an output shows, and a word for each image."""
    yield output.output_type
    yield from output.get("text", "").split()
    for kind, content in sorted(output.get("data", {}).items()):
        yield kind
        if kind == "text/html":
            yield from Shown(content).words
        elif kind.startswith("text/"):
            yield from content.split()


def approximate(output: Any) -> list[str | Any]:
    """Return what an output shows, with fractions approximately, as processors round differently."""
    return [
        pytest.approx(float(part), rel=0.05, abs=0.02) if NUMBER.fullmatch(part) else part
        for word in words(output)
        for part in NUMBER.split(word)
        if part
    ]


@pytest.mark.slow
@pytest.mark.parametrize("path", rest_slow(NOTEBOOKS, 0, long=2), ids=NAMES)
def test_notebooks__show_what_they_store(script: ModuleType, path: Path) -> None:
    """Each cell runs, and its output has the texts, the counts and the images of the stored one."""
    for stored, run in zip(code_cells(read(path)), code_cells(script.run(path)), strict=True):
        assert len(run.outputs) == len(stored.outputs), run.source
        for before, after in zip(stored.outputs, run.outputs, strict=True):
            if VARIES in run.metadata.get("tags", []):
                assert before.get("data", {}).keys() == after.get("data", {}).keys(), run.source
            else:
                assert approximate(after) == approximate(before), run.source


@pytest.mark.parametrize("path", NOTEBOOKS, ids=NAMES)
def test_notebooks__are_stored_whole(path: Path) -> None:
    """A notebook has the outputs of one run from start to end, images among them, and no error or warning."""
    notebook = read(path)
    cells = code_cells(notebook)
    assert [cell.execution_count for cell in cells] == [*range(1, len(cells) + 1)]
    outputs = [output for cell in cells for output in cell.outputs]
    assert not [output for output in outputs if output.output_type == "error" or output.get("name") == "stderr"]
    shown = [word for output in outputs for word in words(output)]
    assert sum(word in ("<img>", "<image>", "<svg>", "image/jpeg") for word in shown) >= 3
    assert 8 <= len(cells) <= 15


@pytest.mark.parametrize("path", NOTEBOOKS, ids=NAMES)
def test_notebooks__store_nothing_of_the_run(path: Path) -> None:
    """No paths and ids of a machine, no states of widgets or times are stored, and no photograph without a licence."""
    notebook = read(path)
    assert path.stat().st_size <= MOST_BYTES
    assert set(notebook.metadata) == {"kernelspec", "language_info"}
    assert all(set(cell.metadata) <= {"tags"} for cell in notebook.cells)
    for output in (output for cell in code_cells(notebook) for output in cell.outputs):
        assert not any("widget" in kind for kind in output.get("data", {}))
        shown = " ".join(words(output))
        assert not ID.search(shown)
        assert not re.search(r"(?<![\w.<])/(tmp|home|root|Users|var|work)\b", shown)
        assert not WITHOUT_LICENCE.search(shown)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=NAMES)
def test_notebooks__links_lead_to_files(path: Path) -> None:
    """Each link leads to a page or notebook of the repository, and the last cell says what to read next."""
    notebook = read(path)
    texts = [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]
    links = [link for text in texts for link, _ in LINK.findall(text) if not link.startswith("https://")]
    assert not [link for link in links if not (path.parent / link).exists()]
    assert notebook.cells[-1].source.startswith("## Read on")
