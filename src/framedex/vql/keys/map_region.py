"""The key ``map_region``."""

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from framedex.vql.expression import Expression
from framedex.vql.key_test import SearchTest

MOST_CORNERS = 2_000
"""The maximum number of corners of a region."""
Coordinate = Annotated[float, Field(ge=-1e6, le=1e6, allow_inf_nan=False)]
Corner = tuple[Coordinate, Coordinate]


class MapRegionTest(SearchTest):
    """Media, or objects, whose place on the map is inside of a polygon.

    ``value`` lists its corners, x and y, in the coordinates of the present map; the last one is joined to the first.
    Where its sides cross, what they enclose an even number of times is outside. Media without a place are outside.

    Examples:
        >>> vql.parse(vql.map_region([[0, 0], [1, 0], [1, 1]]))[0]
        MapRegionTest(op='inside', value=((0.0, 0.0), (1.0, 0.0), (1.0, 1.0)))
    """

    key = "map_region"
    ranks: ClassVar[bool] = False
    op: Literal["inside"]
    value: Annotated[tuple[Corner, ...], Field(min_length=3, max_length=MOST_CORNERS)]


def map_region(corners: Sequence[Sequence[float]]) -> Expression:
    """Return the test of a place on the map to be inside of a polygon of at least three corners, each x and y.

    Examples:
        >>> ds.where(vql.map_region([[-100, -100], [100, -100], [0, 100]])).count()
        32
    """
    return Expression.of(MapRegionTest, "inside", [list(each) for each in corners])
