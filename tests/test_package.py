"""The package as a whole: what importing it loads, and what it offers."""

import ast
import inspect
import json
from importlib import import_module, metadata
from pathlib import Path

import pytest

import framedex
from framedex import errors
from tests.processes import run

# What each of these loads besides the standard library. Engines load when they are first needed.
FIELDS = {
    "annotated_types",
    "dotenv",
    "pydantic",
    "pydantic_core",
    "pydantic_settings",
    "typing_extensions",
    "typing_inspection",
}
MAY_LOAD = {
    "import framedex": set[str](),
    "import framedex.cli": {"typer"},
    "import framedex.executors": FIELDS,
    "from framedex.storage.listing import list_workspace": FIELDS | {"greenlet", "sqlalchemy"},
    "from framedex import Workspace": (
        FIELDS | {"PIL", "cv2", "greenlet", "numpy", "pyarrow", "simplejpeg", "sqlalchemy"}
    ),
}  # fmt: skip
BROUGHT = {"charset_normalizer", "cloudpickle", "cython_runtime", "annotated_doc", "shellingham", "rich"}
"""Modules that those listed bring with them where they are installed."""


def loaded(statement: str) -> set[str]:
    """Return the public top-level modules with a file of their own that a statement loads into a new interpreter."""
    out = run(
        """
        import json, sys
        before = set(sys.modules)
        exec(sys.argv[1])
        files = {name: getattr(module, "__file__", None) or "" for name, module in sys.modules.items()}
        print(json.dumps([
            name for name in set(sys.modules) - before
            if "." not in name and not name.startswith("_") and "site-packages" in files[name]
        ]))
        """,
        statement,
        fresh=True,
    )
    return set(json.loads(out))


@pytest.mark.slow
@pytest.mark.parametrize("statement", MAY_LOAD)
def test_import__loads_what_is_listed(statement: str) -> None:
    """Importing loads no package that is not on the list, so no engine that the statement does not need."""
    assert loaded(statement) - MAY_LOAD[statement] <= BROUGHT


def test_version__is_that_of_the_project() -> None:
    """The version that the package names is the one that its metadata has."""
    assert framedex.__version__ == metadata.version("framedex")


def test_import__opens_nothing(tmp_path: Path) -> None:
    """Importing the package touches no file of the user and prints nothing."""
    out = run(
        "import os, sys; os.chdir(sys.argv[1]); os.environ['HOME'] = sys.argv[1]; import framedex", tmp_path, fresh=True
    )
    assert out == ""
    assert list(tmp_path.iterdir()) == []


def test_all__is_what_is_visible() -> None:
    """__all__ lists the classes that can be seen, each once, and those that type checkers see are the same."""
    imports = [
        (node.module, name.name)
        for node in ast.walk(ast.parse(Path(framedex.__file__).read_text()))
        if isinstance(node, ast.ImportFrom) and node.module is not None and node.module.startswith("framedex.")
        for name in node.names
    ]
    assert sorted(framedex.__all__) == sorted(name for _, name in imports) == dir(framedex)
    for module, name in imports:
        assert getattr(framedex, name) is getattr(import_module(module), name)


def test_attribute__that_is_missing() -> None:
    """A name that the package does not have is an AttributeError, as with any module."""
    with pytest.raises(AttributeError, match="module 'framedex' has no attribute 'Wrkspace'"):
        framedex.Wrkspace  # type: ignore[attr-defined]  # noqa: B018


@pytest.mark.slow
def test_packages__that_the_documents_name() -> None:
    """The packages of filters and encoders are reached from the package without importing them by name."""
    assert run("import framedex; print(framedex.vql.__name__, framedex.encoders.__name__)", fresh=True).split() == [
        "framedex.vql",
        "framedex.encoders",
    ]


def test_all__has_what_the_documents_name() -> None:
    """The classes that users meet are there, documented."""
    for name in ("Workspace", "Dataset", "View", "ExplorePage", "Task", "Encoder"):
        assert name in framedex.__all__
    for name in framedex.__all__:
        assert inspect.getdoc(getattr(framedex, name)), name


ERRORS = {
    name: value
    for name, value in vars(errors).items()
    if isinstance(value, type) and issubclass(value, errors.Error) and not name.startswith("_")
}


def test_errors__are_exported() -> None:
    """Each error can be caught by a name of the package."""
    assert set(ERRORS) <= set(framedex.__all__)
    assert all(getattr(framedex, name) is error for name, error in ERRORS.items())


@pytest.mark.slow
def test_errors__are_all_in_one_module() -> None:
    """No other module defines an error of its own."""
    source = Path(framedex.__file__).parent
    known = {*ERRORS, "Exception", "ValueError", "RuntimeError", "OSError", "KeyError"}
    # Their callers handle them, or turn them into errors that users see.
    internal = {
        "TooLarge",
        "LeftOut",
        "NoDecoder",
        "S3Error",
        "WrongValue",
        "MissingSource",
        "InvalidToken",
        "BrokenMember",
        "ResultLost",
        "_Changed",
        "_Lost",
        "_NoExpression",
        "_Unreachable",
    }
    for path in source.rglob("*.py"):
        if path.name == "errors.py":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef) and node.name not in internal:
                assert not {base.id for base in node.bases if isinstance(base, ast.Name)} & known, (path, node.name)
