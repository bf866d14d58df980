"""The README and the pages of docs/: their examples, links and words."""

import contextlib
import io
import os
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

import pytest

from framedex import demo
from framedex.cli import main
from tests.document_homes import prepared
from tests.environment import restored

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
DOCUMENTS = [README, ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
COMPARISON = ROOT / "docs" / "comparison.md"
NO_GLOSSARY_WORDS = {
    r"\banew\b": "rebuild",
    r"\bpictures?\b": "image",
    r"\bthere is none\b": "without, or no",
    r"\bof (it|them) (is|are|has|have)\b": "name the thing",
    r"\bnothing is (said|given)\b": "by default",
}
REASONS = {"asks for a password", "needs weights that are downloaded", "never ends"}
"""Why an example may be left out: all that a test cannot have or wait for."""
_BLOCK = re.compile(
    r"^(?:<!-- not run: (?P<reason>[^\n]*) -->\n)?```(?P<kind>\w+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL
)


def _name(document: Path) -> str:
    """Return the name of a document in the names of tests."""
    return document.relative_to(ROOT).with_suffix("").as_posix().removeprefix("docs/")


@dataclass(frozen=True)
class Example:
    """A block that runs, with the output that the document prints below it.

    Attributes:
        kind: ``python`` or ``console``.
        output: None if nothing is printed there; otherwise the text, in which … stands for anything.
    """

    kind: str
    text: str
    output: str | None


def examples(document: Path) -> Iterator[Example]:
    """Yield the examples of a document, except those that a ``<!-- not run: … -->`` comment leaves out."""
    blocks = list(_BLOCK.finditer(document.read_text(encoding="utf-8")))
    for block, following in zip_longest(blocks, blocks[1:]):
        if block["kind"] in ("python", "console") and not block["reason"]:
            printed = following["text"] if following is not None and following["kind"] == "text" else None
            yield Example(block["kind"], block["text"], printed)


def check_output(printed: str, expected: str) -> None:
    """Compare printed lines with those of a document, in which … stands for anything."""
    lines = [line.rstrip() for line in printed.strip().splitlines()]
    wanted = [line.rstrip() for line in expected.strip().splitlines()]
    pattern = "\n".join(".*".join(re.escape(part) for part in line.split("…")) for line in wanted)
    assert re.fullmatch(pattern, "\n".join(lines)), f"printed:\n{chr(10).join(lines)}\nin the document:\n{expected}"


def run_commands(text: str) -> None:
    """Run the lines of a console block that begin with ``$ framedex``; compare what they print, if it shows any.

    Variables may stand before a command; it then shows the standard error, too.
    """
    shows = any(not line.startswith("$ ") for line in text.splitlines())
    for part in re.split(r"^\$ (?=(?:[A-Z_]+=\S+ )*framedex )", text, flags=re.MULTILINE)[1:]:
        command, _, expected = part.partition("\n")
        words = [os.path.expanduser(word) for word in shlex.split(command, comments=True)]  # noqa: PTH111 - texts
        place = words.index("framedex")
        with restored() as environment, contextlib.ExitStack() as stack:
            out = stack.enter_context(contextlib.redirect_stdout(io.StringIO()))
            for name, _, value in (word.partition("=") for word in words[:place]):
                environment[name] = value
                stack.enter_context(contextlib.redirect_stderr(out))
            with pytest.raises(SystemExit) as exit_:
                main(words[place + 1 :])
        assert exit_.value.code == 0, f"framedex {command} failed"
        if shows:
            check_output(out.getvalue(), expected)


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the images of the demo."""
    folder = tmp_path_factory.mktemp("documents") / "photos"
    demo.make_images(folder)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(
    "document",
    [pytest.param(each, id=_name(each)) for each in DOCUMENTS if each != COMPARISON and any(examples(each))],
)
def test_examples__print_what_the_document_shows(document: Path, photos: Path, tmp_path: Path) -> None:
    """The examples of a document run in order, in a home folder with the images of the demo, and print its output."""
    (tmp_path / "photos").symlink_to(photos)
    with prepared(_name(document), tmp_path) as home:
        for example in examples(document):
            text = example.text
            for there, here in home.changes.items():
                text = text.replace(there, here)
            if example.kind == "console":
                run_commands(text)
                continue
            with contextlib.redirect_stdout(io.StringIO()) as out:
                exec(compile(text, str(document), "exec"), home.names)
            if example.output is not None:
                check_output(out.getvalue(), example.output)


@pytest.mark.slow
def test_comparison__says_calls_that_work(tmp_path: Path) -> None:
    """Each call in the last column of the tables of words runs, in their order, after the example of the page."""
    text = COMPARISON.read_text(encoding="utf-8")
    tables = re.findall(r"^\| \w+ \| Framedex \|\n\|---\|---\|\n((?:\|.*\n)+)", text, re.MULTILINE)
    rows = [line.split(" | ")[-1] for table in tables for line in table.splitlines()]
    calls = [call for row in rows for call in re.findall("`([^`]+)`", row) if not call.startswith("framedex ")]
    assert (len(tables), len(calls) > 45) == (5, True)
    with prepared("comparison", tmp_path) as home, contextlib.redirect_stdout(io.StringIO()):
        for code in [*(example.text for example in examples(COMPARISON)), *calls]:
            exec(compile(code, str(COMPARISON), "exec"), home.names)
        home.names["app"].close()
        home.names["ws"].close()


def test_examples__run_or_say_why_not() -> None:
    """Each comment that leaves an example out has one of few reasons, and stands directly before it."""
    texts = {document: document.read_text(encoding="utf-8") for document in DOCUMENTS}
    reasons = [block["reason"] for text in texts.values() for block in _BLOCK.finditer(text) if block["reason"]]
    assert set(reasons) == REASONS
    assert sum(len(re.findall("^<!-- not run", text, re.MULTILINE)) for text in texts.values()) == len(reasons)


def test_examples__differences_are_seen() -> None:
    """Another output than the printed one fails; … stands for anything in its line."""
    check_output("read 81 images in 3.5 s  \n", "read 81 images in … s\n")
    with pytest.raises(AssertionError, match="in the document"):
        check_output("read 80 images in 3.5 s\n", "read 81 images in … s\n")


@pytest.mark.parametrize("document", DOCUMENTS, ids=_name)
def test_links__lead_to_files(document: Path) -> None:
    """Each relative link of a document leads to a file of the project."""
    links = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", document.read_text(encoding="utf-8"))
    assert [link for link in links if "://" not in link and not (document.parent / link).exists()] == []


def test_index__lists_all_pages() -> None:
    """The README.md of a folder of pages links to each of them."""
    pages = [page for page in DOCUMENTS if page.is_relative_to(ROOT / "docs") and page.name != "README.md"]
    indexes = {page: page.with_name("README.md").read_text(encoding="utf-8") for page in pages}
    assert [page.name for page, index in indexes.items() if f"({page.name})" not in index] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=_name)
def test_words__are_those_of_the_glossary(document: Path) -> None:
    """Documents use the terms of docs/glossary.md, outside of code."""
    prose = re.sub(r"```.*?```|`[^`]*`", "", document.read_text(encoding="utf-8"), flags=re.DOTALL)
    used = {word: better for word, better in NO_GLOSSARY_WORDS.items() if re.search(word, prose, re.IGNORECASE)}
    assert used == {}


def test_readme__fits_on_few_pages() -> None:
    """The README has at most 150 lines; details are in docs/."""
    assert len(README.read_text(encoding="utf-8").splitlines()) <= 150
