"""The tree of errors: one root, builtins where they fit, and the drawing at the top of the module is true."""

import copy
import inspect
import multiprocessing
import pickle
from concurrent.futures import ProcessPoolExecutor

import pytest

from framedex import errors
from framedex.errors import Error, InvalidFilter, NotFound, TooManyAttempts
from framedex.vql import parse

CLASSES: list[type[Error]] = [
    value for _, value in inspect.getmembers(errors, inspect.isclass) if issubclass(value, Error)
]
ARGUMENTS: dict[type[Error], tuple[object, ...]] = {InvalidFilter: ("$[0]", "reason"), TooManyAttempts: ("reason", 5)}
MADE = [kind(*ARGUMENTS.get(kind, ("reason",))) for kind in CLASSES]


@pytest.mark.parametrize("kind", CLASSES)
def test_error__has_the_root_and_is_explained(kind: type[Exception]) -> None:
    """Every error has the one root and a docstring, and stands in the drawing."""
    assert issubclass(kind, Error)
    assert kind.__doc__
    assert errors.__doc__ is not None
    assert kind.__name__ in errors.__doc__


def test_error__drawing_is_true() -> None:
    """The drawing names each class below its parent, with the builtin that it also is."""
    parents: list[str] = []
    assert errors.__doc__ is not None
    for line in errors.__doc__.splitlines():
        if not line.startswith(("├", "└", "│")):
            continue
        depth = (len(line) - len(line.lstrip("│├└─ "))) // 4
        name, _, rest = line.lstrip("│├└─ ").partition(" ")
        kind = getattr(errors, name)
        parents[depth - 1 :] = [name]
        expected = getattr(errors, parents[depth - 2]) if depth > 1 else Error
        assert kind.__bases__[0] is expected
        if rest.startswith("("):
            assert rest[1 : rest.index(")")] == kind.__bases__[1].__name__
        else:
            assert len(kind.__bases__) == 1


@pytest.mark.parametrize("error", MADE, ids=lambda error: type(error).__name__)
def test_error__shows_its_message(error: Error) -> None:
    """The text of an error is its message, also where a builtin would show it otherwise, also after pickling."""
    assert "reason" in str(error)
    assert "'" not in str(error)
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again)) == (type(error), str(error))


@pytest.mark.parametrize("error", MADE, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_error__survives_pickling(error: Error, protocol: int) -> None:
    """An error comes back from another process whole: its class, message, fields and notes, and its text and repr."""
    error.add_note("seen on the way")
    again = pickle.loads(pickle.dumps(error, protocol))
    assert type(again) is type(error)
    assert (again.args, str(again), repr(again)) == (error.args, str(error), repr(error))
    assert vars(again) == vars(error)
    assert copy.copy(error).args == error.args


@pytest.mark.slow
def test_error__comes_back_from_a_pool() -> None:
    """A worker process that raises one of ours gives its caller the same error."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        future = pool.submit(parse, [{"labls": {}}])
    with pytest.raises(InvalidFilter, match=r"\$\[0\]") as raised:
        future.result()
    assert raised.value.path == "$[0]"


def test_error__without_a_message() -> None:
    """An error may be raised bare."""
    assert str(NotFound()) == ""


def test_invalid_filter__carries_its_path() -> None:
    """The path of the wrong part is in the message and an attribute."""
    error = InvalidFilter("$[1].labels.op", "unknown")
    assert (error.path, str(error)) == ("$[1].labels.op", "invalid filter at $[1].labels.op: unknown")
