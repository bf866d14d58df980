"""Pixels and the fractions that YOLO files have, so that the same pixels come back to the last bit.

Text holds any number of digits, more than 64 bits do. Fractions are therefore decimal numbers here: made into pixels
they are rounded once, and for pixels the shortest fraction is found from which they come back.
"""

from collections.abc import Callable
from decimal import Context, Decimal

_EXACT = Context(prec=1200)  # any sum and product of numbers of 64 bits
_FAST = Context(prec=60)
_PLACES = (*range(6, 21), 30, 60, 120, 240, 400, 690)
"""Digits behind the point that are tried: tools write six, numbers of 64 bits mostly need up to 17."""


def pixels(centre: Decimal, length: Decimal, size: int) -> tuple[float, float]:
    """Return start and length in pixels of a centre and a length that are fractions of a picture's side."""
    return _start(centre, length, size), float(_EXACT.multiply(length, Decimal(size)))


def fractions(start: float, length: float, size: int) -> tuple[Decimal, Decimal]:
    """Return centre and length as the shortest fractions of a picture's side from which the same pixels come back."""
    exact = Decimal(repr(length))
    part = _shortest(
        lambda context: context.divide(exact, Decimal(size)), lambda part: pixels(part, part, size)[1] == length
    )
    half = _EXACT.divide(part, Decimal(2))
    centre = _shortest(
        lambda context: context.add(context.divide(Decimal(repr(start)), Decimal(size)), half),
        lambda centre: _start(centre, part, size) == start,
    )
    return centre, part


def text_of(value: Decimal) -> str:
    """Return a fraction with all its digits, without an exponent and without zeros at its end."""
    return format(_EXACT.normalize(value), "f")


def _start(centre: Decimal, length: Decimal, size: int) -> float:
    return float(_EXACT.multiply(_EXACT.subtract(centre, _EXACT.divide(length, Decimal(2))), Decimal(size)))


def _shortest(value: Callable[[Context], Decimal], fits: Callable[[Decimal], bool]) -> Decimal:
    known = value(_FAST)
    for places in _PLACES:
        if places == 30:
            known = value(_EXACT)
        found = known.quantize(Decimal((0, (1,), -places)), context=_EXACT)
        if fits(found):
            return found
    return known
