"""The package as a whole: what importing it loads, and what it offers."""

import ast
import inspect
import json
from importlib import metadata
from pathlib import Path
from types import ModuleType

import pytest

import framedex
from framedex import errors
from tests.processes import run

# What ``import framedex`` loads: arrays, tables, records and the decoder. Engines load when they are first needed.
MAY_LOAD = {
    "PIL", "annotated_types", "cv2", "dotenv", "framedex", "greenlet", "numpy", "pyarrow", "pydantic", "pydantic_core",
    "pydantic_settings", "sqlalchemy", "typing_extensions", "typing_inspection",
}  # fmt: skip
MUST_NOT_LOAD = [
    "IPython", "alembic", "duckdb", "fastapi", "faiss", "lance", "lancedb", "onnxruntime", "open_clip", "pandas",
    "rich", "scipy", "skimage", "sklearn", "torch", "torchvision", "transformers", "typer",
]  # fmt: skip


@pytest.fixture(scope="module")
def loaded() -> set[str]:
    """The top-level modules with a file of their own that ``import framedex`` loads into a fresh interpreter."""
    out = run(
        """
        import json, sys
        before = set(sys.modules)
        import framedex
        files = {name: getattr(module, "__file__", None) or "" for name, module in sys.modules.items()}
        print(json.dumps([
            name for name in set(sys.modules) - before
            if "." not in name and ("site-packages" in files[name] or name == "framedex")
        ]))
        """
    )
    return set(json.loads(out))


@pytest.mark.parametrize("name", MUST_NOT_LOAD)
def test_import__leaves_engines_alone(loaded: set[str], name: str) -> None:
    """Importing the package loads no engine: those wait until something needs them."""
    assert name not in loaded


def test_import__loads_what_is_listed(loaded: set[str]) -> None:
    """Nothing loads that is not on the list above, but for private modules and what those listed bring with them."""
    public = {name for name in loaded if not name.startswith("_")}
    assert public - MAY_LOAD <= {"charset_normalizer", "cloudpickle", "cython_runtime"}


def test_version__is_that_of_the_project() -> None:
    """The version that the package names is the one that its metadata has."""
    assert framedex.__version__ == metadata.version("framedex")


def test_import__opens_nothing(tmp_path: Path) -> None:
    """Importing the package touches no file of the user and prints nothing."""
    out = run("import os, sys; os.chdir(sys.argv[1]); os.environ['HOME'] = sys.argv[1]; import framedex", tmp_path)
    assert out == ""
    assert list(tmp_path.iterdir()) == []


def test_all__is_what_is_visible() -> None:
    """__all__ lists the public names that can be seen, sorted, and no module."""
    visible = [
        name for name, value in vars(framedex).items() if not name.startswith("_") and not isinstance(value, ModuleType)
    ]
    assert sorted(framedex.__all__) == sorted(visible)
    assert len(set(framedex.__all__)) == len(framedex.__all__)


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


def test_errors__are_all_in_one_module() -> None:
    """No other module defines an error of its own."""
    source = Path(framedex.__file__).parent
    known = {*ERRORS, "Exception", "ValueError", "RuntimeError", "OSError", "KeyError"}
    for path in source.rglob("*.py"):
        if path.name == "errors.py":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                assert not {base.id for base in node.bases if isinstance(base, ast.Name)} & known, (path, node.name)


def test_errors__the_drawn_tree_is_true() -> None:
    """The tree at the top of the module shows each error below its parent, with the builtin that it also is."""
    drawn = {}
    parents: list[str] = []
    for line in (errors.__doc__ or "").splitlines():
        name = line.lstrip("│ ├└─").partition(" ")[0].rstrip(":")
        if name in ERRORS:
            depth = (len(line) - len(line.lstrip("│ ├└─"))) // 4
            parents = [*parents[:depth], name]
            drawn[name] = (parents[depth - 1] if depth else None, line)
    assert set(drawn) == set(ERRORS)
    for name, (parent, line) in drawn.items():
        bases = [base.__name__ for base in ERRORS[name].__bases__]
        assert bases[0] == (parent or "Exception")
        for builtin in bases[1:]:
            assert f"({builtin})" in line


@pytest.mark.parametrize("name", sorted(ERRORS))
def test_errors__show_their_message(name: str) -> None:
    """An error reads as it was written, also those that are a KeyError."""
    if name == "InvalidFilter":
        assert str(errors.InvalidFilter("$[0]", "no")) == "invalid filter at $[0]: no"
    else:
        assert str(ERRORS[name]("no dataset 'x'")) == "no dataset 'x'"
    assert issubclass(ERRORS[name], framedex.Error)
