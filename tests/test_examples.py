"""The examples in docstrings: each class, function, method and property of the public interface has one that runs."""

import ast
import doctest
import functools
import inspect
import os
from collections.abc import Iterator
from contextlib import chdir
from importlib import import_module
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest

from framedex.web.pages import AppPages
from tests.environment import Environment
from tests.pets import Homes, Names

ROOT = Path(__file__).parent.parent
MODULES = ("framedex.vql", "framedex.encoders")
_OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def function_of(member: Any) -> Any:
    """Return the function that has the docstring of a method, classmethod or property; others as they are."""
    if isinstance(member, classmethod | staticmethod):
        return member.__func__
    if isinstance(member, property):
        return member.fget
    return member.func if isinstance(member, functools.cached_property) else member


def members_of(cls: type) -> Iterator[Any]:
    """Yield the public methods, classmethods and properties of a class, inherited ones of the package included."""
    for owner in cls.__mro__:
        if owner.__module__.partition(".")[0] == "framedex":
            functions = (function_of(member) for name, member in vars(owner).items() if not name.startswith("_"))
            yield from (each for each in functions if isinstance(each, FunctionType))


def public() -> dict[str, Any]:
    """Return the classes, functions, methods and properties of the public interface, each once, by name."""
    found: dict[str, Any] = {}
    for module in ("framedex", *MODULES):
        for name in import_module(module).__all__:
            value = getattr(import_module(module), name)
            if not isinstance(value, type | FunctionType):
                continue  # a constant
            members = members_of(value) if isinstance(value, type) and module == "framedex" else ()
            for each in (value, *members):
                if each.__module__.partition(".")[0] == "framedex":
                    found[f"{each.__module__}.{each.__qualname__}"] = each
    return found


PUBLIC = public()


def first_line(value: Any) -> int:
    """Return the number of the line before that of a docstring, in its file."""
    source, start = inspect.getsourcelines(value)
    return max(start, 1) - 1 + next(number for number, line in enumerate(source) if '"""' in line)


def prepared(names: Names, text: str) -> dict[str, Any]:
    """Return the names that some examples read and do not assign themselves."""
    nodes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)]
    assigned = {node.id for node in nodes if isinstance(node.ctx, ast.Store)}
    used = {node.id for node in nodes if not node.id.startswith("_")} - assigned
    return {name: getattr(names, name) for name in sorted(used) if hasattr(type(names), name)}


def run(name: str, value: Any, names: Names) -> list[str]:
    """Run the examples of a docstring, and return what is wrong, with file and line."""
    path = os.path.relpath(inspect.getfile(value), ROOT)
    test = doctest.DocTestParser().get_doctest(value.__doc__, {}, name, path, first_line(value))
    test.globs = prepared(names, "".join(each.source for each in test.examples))
    wrong: list[str] = []
    doctest.DocTestRunner(verbose=False, optionflags=_OPTIONS).run(test, out=wrong.append, clear_globs=True)
    return wrong


@pytest.fixture(scope="session")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Homes:
    """Home folders for the examples."""
    return Homes(tmp_path_factory.mktemp("examples"))


@pytest.fixture
def names(homes: Homes, environment: Environment) -> Iterator[Names]:
    """The names of the examples, in a home folder that is the working directory, too."""
    with homes.lent() as home:
        environment["HOME"] = str(home)
        environment["FRAMEDEX_USER"] = "ann@example.org"
        environment["FRAMEDEX_MODELS"] = str(home / "models")
        with chdir(home), Names(home) as opened:
            yield opened


def test_examples__are_there() -> None:
    """Each class, function, method and property of the public interface has an example."""
    parser = doctest.DocTestParser()
    assert [name for name, value in PUBLIC.items() if not parser.get_examples(value.__doc__ or "")] == []


@pytest.mark.slow
@pytest.mark.parametrize("name", PUBLIC)
def test_examples__run(name: str, names: Names) -> None:
    """The examples of a docstring print what it shows."""
    if ".app(" in PUBLIC[name].__doc__ and not AppPages().exist:
        pytest.skip("the app was not built")
    wrong = run(name, PUBLIC[name], names)
    assert not wrong, "\n".join(wrong)


@pytest.mark.slow
def test_examples__differences_are_seen(names: Names) -> None:
    """An example that prints something else is reported with its file and line."""

    def sample() -> None:
        """Print.

        Examples:
            >>> ds.name
            'cats'
        """

    line = first_line(sample) + 4
    (wrong,) = run("sample", sample, names)
    assert f'File "tests/test_examples.py", line {line}, in sample' in wrong
    assert "Expected:\n    'cats'\nGot:\n    'pets'" in wrong
