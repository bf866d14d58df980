"""Expressions are filters: what operators make of them means the same."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from framedex import vql
from framedex.errors import InvalidFilter, InvalidInput
from framedex.vql import Expression, parse
from tests.laws import examples
from tests.oracles.vql import evaluate
from tests.vql.strategies import KINDS, SCOPE, rows

A, B, C = (vql.labels(name) for name in "abc")
LABEL = {name: {"labels": {"op": "is", "value": name}} for name in "abc"}


Case = tuple[Expression, Callable[[dict[str, Any]], bool]]
"""An expression, and the same by Python's own operators: a function of a row."""
_plain = st.one_of(*(tests for kind, (tests, _) in KINDS.items() if kind not in ("text", "similarity", "map_region")))


def _leaf(element: dict[str, Any]) -> Case:
    parsed = parse([element])
    return Expression([element]), lambda row: evaluate(parsed, row, SCOPE)


def _negated(case: Case) -> Case:
    return ~case[0], lambda row: not case[1](row)


def _both(left: Case, right: Case) -> Case:
    return left[0] & right[0], lambda row: left[1](row) and right[1](row)


def _either(left: Case, right: Case) -> Case:
    return left[0] | right[0], lambda row: left[1](row) or right[1](row)


cases = st.recursive(
    _plain.map(_leaf),
    lambda inner: st.one_of(inner.map(_negated), st.builds(_both, inner, inner), st.builds(_either, inner, inner)),
    max_leaves=6,
)


@pytest.mark.slow
@examples(150)
@given(cases, rows)
def test_expression__means_what_its_operators_say(case: Case, row: dict[str, Any]) -> None:
    """&, | and ~ are and, or and not of what is combined, whatever is combined."""
    expression, holds = case
    assert evaluate(parse(expression), row, SCOPE) == holds(row)
    assert parse(json.loads(json.dumps(expression.to_json()))) == parse(expression)


def test_expression__is_the_json_that_one_would_write() -> None:
    """Chains are flat, and nothing is said twice that need not be."""
    a, b, c = LABEL.values()
    assert (A & B & C).to_json() == [a, b, c]
    assert (A | B | C).to_json() == [{"any": [a, b, c]}]
    assert (A | (B | C)).to_json() == [{"any": [a, b, c]}]
    assert (A & ~B).to_json() == [a, {"not": b}]
    assert (~(A & B)).to_json() == [{"not": [a, b]}]
    assert (~(A | B)).to_json() == [{"not": {"any": [a, b]}}]
    assert (A & B | C).to_json() == [{"any": [{"not": {"not": [a, b]}}, c]}]
    assert ~~A == A
    assert ~~(A & B) == A & B
    assert (vql.issues("blur") & ~vql.labels("cat")).to_json() == [
        {"issues": {"op": "issue", "value": "blur"}},
        {"not": {"labels": {"op": "is", "value": "cat"}}},
    ]


@pytest.mark.slow
def test_expression__long_chains() -> None:
    """A chain of thousands stays flat; one element too many is an error of ours."""
    chain = A
    for _ in range(4998):
        chain = chain | B
    assert len(parse(chain)) == 1
    with pytest.raises(InvalidFilter, match="10,000 elements"):
        parse(chain & chain & chain)


def test_expression__that_alternates_a_thousand_times_is_too_deep() -> None:
    """Combining goes on for ever; what is made of it is refused like any other filter."""
    deep = A
    for _ in range(1000):
        deep = ~(deep & B)
    with pytest.raises(InvalidFilter, match="nested 50 deep"):
        parse(deep)
    assert len(repr(deep)) < 400


def test_expression__is_neither_true_nor_false() -> None:
    """`and`, `or` and `not` would lose a half of it silently."""
    for combine in (lambda: A and B, lambda: A or B, lambda: not A):
        with pytest.raises(InvalidInput, match=r"&, \| and ~"):
            combine()


@pytest.mark.parametrize("other", [LABEL["a"], [LABEL["a"]], "a", None])
def test_expression__combines_with_expressions_alone(other: Any) -> None:
    """Anything else is a type error, as Python says it."""
    with pytest.raises(TypeError):
        _ = A & other
    with pytest.raises(TypeError):
        _ = A | other
    assert other != A


def test_expression__is_a_sequence_of_elements() -> None:
    """It can be looked at and put into a list like the filter that it is."""
    expression = A & B
    assert (list(expression), len(expression), expression[1], expression[:1]) == (
        [LABEL["a"], LABEL["b"]],
        2,
        LABEL["b"],
        [LABEL["a"]],
    )
    assert repr(A) == "<VQL [{'labels': {'op': 'is', 'value': 'a'}}]>"
