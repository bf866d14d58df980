"""Rules of names and docstrings that can be read off the syntax tree."""

import ast
import functools
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

import pytest

import framedex

pytestmark = pytest.mark.static

PACKAGE = Path(framedex.__file__).parent
PRONOUNS = {
    "How",
    "That",
    "These",
    "This",
    "Those",
    "What",
    "Whatever",
    "When",
    "Where",
    "Whether",
    "Which",
    "Who",
    "Whose",
}
VERBS = set(
    """
    Abort Accept Add Admit Advance Allow Append Apply Ask Assign Begin Block Bound Bring Build Call Cancel Carry
    Change Check Choose Clear Close Collect Combine Commit Compact Compare Compile Complete Compute Confirm
    Connect Consume Continue Convert Copy Count Create Cut Decide Decode Delete Describe Discard Divide Do Draw
    Drop Empty Encode End Enrich Evaluate Exchange Execute Explain Explore Export Extend Fail Fetch Fill Find Finish
    Forget Format Free Fuse Gather Give Go Group Hand Handle Hash Have Hold Ignore Import Index Ingest Insert
    Inspect Invert Iterate Join Keep Know Label Leave Let Limit Link List Load Lock Look Make Map Mark Match
    Measure Merge Migrate Move Name Normalize Note Offer Open Order Parse Pass Pause Place Plan Prepare Print
    Process Propose Prune Publish Put Raise Rank Read Rebuild Record Recover Reduce Refine Refuse Register
    Reindex Release Remove Rename Render Renew Repair Repeat Replace Report Request Reserve Reset Resolve
    Restart Restore Resume Retry Return Revoke Rewrite Roll Rotate Round Run Sample Save Say Scale Scan Schedule Search
    See Select Send Separate Serve Set Settle Share Show Shrink Silence Sort Split Stack Start Stop Store Stream
    Subsample Suppress Switch Sync Tag Take Test Tile Touch Train Transform Try Turn Undo Update Upload Use
    Validate Verify Vote Wait Walk Warn Withdraw Work Write Yield
    """.split()  # noqa: SIM905 - a list would take a line for each
)
NOUNS = {
    "Count",
    "Display",
    "Format",
    "Group",
    "Hash",
    "Index",
    "Label",
    "List",
    "Map",
    "Match",
    "Measure",
    "Name",
    "Order",
}
NOUNS |= {"Plan", "Record", "Sample", "Search", "Work"}
"""Verbs that are nouns, too."""
AVOIDED = {"anew": "rebuild, again"}
NOT_OURS = {"picture": "image"}
"""Words that the package leaves out everywhere, identifiers and messages included, with those that it uses."""
_PROMPT = "a prompt: other words give other vectors or captions, and it is part of a captioner's stored settings"
EXCEPTIONS = {
    "a picture of a {}": _PROMPT,
    "Describe this picture in one sentence.": _PROMPT,
    "/pictures": "the address of a page of the app",
}
"""Texts that contain such a word, with the reason."""
_FORMAT = "each format of annotations has it"
_LAYERS = "the operation on tables, and the one on a dataset that calls it"
SHARED = {
    **dict.fromkeys(
        (
            "find_files",
            "has_boxes",
            "label_file_finder",
            "read_boxes",
            "read_labels",
            "read_lists",
            "read_parts",
            "write",
        ),
        _FORMAT,
    ),
    **dict.fromkeys(("create_tag", "delete_tag", "rename_tag", "delete_field", "rename_field"), _LAYERS),
    **dict.fromkeys(("list_exports", "list_snapshots", "list_tasks"), _LAYERS),
}
"""Public names that several modules define, with the reason."""


class Kind(Enum):
    """The kinds of things that have a docstring."""

    MODULE = "module"
    CLASS = "class"
    PROPERTY = "property"
    FUNCTION = "function"


def trees() -> Iterator[tuple[str, ast.Module]]:
    """Yield the modules of the package with their syntax trees; migrations are written by a tool."""
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        if "migrations" not in name:
            yield name, ast.parse(path.read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Prose:
    """The docstrings of the package, as (place, kind, docstring), and where its public names are defined."""

    docstrings: list[tuple[str, Kind, str]]
    modules: dict[str, list[str]]


@functools.cache
def prose() -> Prose:
    """Return what the tests read of all modules; their trees would fill the memory, and parsing them takes seconds."""
    docstrings, modules = [], defaultdict(list)
    for name, tree in trees():
        docstrings += [
            (f"{name}:{getattr(node, 'lineno', 1)}", kind_of(node), text)
            for node in definitions(tree)
            if (text := ast.get_docstring(node))
        ]
        for node in tree.body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef):
                modules[node.name].append(name)
    return Prose(docstrings, modules)


def definitions(node: ast.AST) -> Iterator[ast.Module | ast.ClassDef | ast.FunctionDef]:
    """Yield the definitions in a node, itself included; expressions have none."""
    if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
        yield node
    for part in ("body", "orelse", "finalbody", "handlers", "cases"):
        for each in getattr(node, part, ()) if not isinstance(node, ast.expr) else ():
            yield from definitions(each)


def first_word(text: str) -> str:
    """Return the first word of a docstring."""
    return re.split(r"[^\w'`-]", text.strip(), maxsplit=1)[0]


def kind_of(node: ast.AST) -> Kind:
    """Return what a node defines; the docstring of a property is a noun phrase."""
    if isinstance(node, ast.Module):
        return Kind.MODULE
    decorators = node.decorator_list if isinstance(node, ast.FunctionDef) else []
    if any("property" in ast.unparse(each) for each in decorators):
        return Kind.PROPERTY
    return Kind.FUNCTION if isinstance(node, ast.FunctionDef) else Kind.CLASS


def test_docstrings__begin_with_the_thing() -> None:
    """No docstring of a module, class or property begins with a pronoun."""
    wrong = [
        f"{place}: {text.splitlines()[0]}" for place, _, text in prose().docstrings if first_word(text) in PRONOUNS
    ]
    assert wrong == []


def test_docstrings__of_functions_begin_with_a_verb() -> None:
    """The docstring of a function or method begins with a verb in the imperative."""
    wrong = [
        f"{place}: {text.splitlines()[0]}"
        for place, kind, text in prose().docstrings
        if kind is Kind.FUNCTION and first_word(text) not in VERBS
    ]
    assert wrong == []


def test_docstrings__of_classes_begin_with_a_noun() -> None:
    """The docstring of a class or property begins with a noun phrase, not with a verb in the imperative."""
    wrong = [
        f"{place}: {text.splitlines()[0]}"
        for place, kind, text in prose().docstrings
        if kind in {Kind.CLASS, Kind.PROPERTY} and first_word(text) in VERBS - NOUNS
    ]
    assert wrong == []


def test_words__are_the_standard_ones() -> None:
    """Docstrings leave out words for which the glossary has another."""
    wrong = [
        f"{place}: {word} (say: {instead})"
        for place, _, text in prose().docstrings
        for word, instead in AVOIDED.items()
        if re.search(rf"(?i)\b{word}\b", text)
    ]
    assert wrong == []


def test_words__that_are_not_ours() -> None:
    """Identifiers, docstrings, messages, comments and names of modules leave out words for which there is another."""
    wrong, used = [], set()
    for path in sorted(PACKAGE.rglob("*.py")):
        name, text = path.relative_to(PACKAGE).as_posix(), path.read_text(encoding="utf-8")
        used |= {exception for exception in EXCEPTIONS if exception in text}
        for exception in EXCEPTIONS:
            text = text.replace(exception, "")
        for number, line in enumerate([name, *text.splitlines()]):
            wrong += [
                f"{name}:{number}: {word} (say: {instead})"
                for word, instead in NOT_OURS.items()
                if re.search(rf"(?i){word}", line)
            ]
    assert wrong == []
    assert used == set(EXCEPTIONS)


def test_names__have_one_meaning() -> None:
    """No public name is defined in two modules, but for those of one meaning that are listed."""
    modules = {
        name: [place for place in places if not place.startswith(("cli/", "vql/keys/"))]
        for name, places in prose().modules.items()
        if not name.startswith("_")
    }
    several = {name: places for name, places in modules.items() if len(places) > 1}
    assert {name: places for name, places in several.items() if name not in SHARED} == {}
    assert [name for name in SHARED if name not in several] == []
