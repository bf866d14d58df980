"""The key ``cluster``."""

from collections import defaultdict
from collections.abc import Sequence

from framedex.core.ids import Kind, parse_group_id
from framedex.errors import NotFound
from framedex.records import CLUSTER_LEVELS
from framedex.vql.expression import Expression
from framedex.vql.key_test import IdTest
from framedex.vql.sql_builder import SqlBuilder


class ClusterTest(IdTest):
    """Members of one of some clusters, of any level; the id of a video stands for its frames.

    A filter of objects takes clusters of objects. A cluster that does not exist, or no longer, has no members.
    """

    key = "cluster"

    def numbers(self, dataset_id: str) -> dict[int, list[int]]:
        """Return the numbers of the clusters by level.

        Args:
            dataset_id: the dataset, or the id that stands for its objects.
        """
        numbers: defaultdict[int, list[int]] = defaultdict(list)
        for each in dict.fromkeys(self.ids):
            try:
                level, number = parse_group_id(dataset_id, Kind.CLUSTER, each)
            except NotFound:
                continue
            if level < CLUSTER_LEVELS:  # an id can encode more levels than exist
                numbers[level].append(number)
        return dict(sorted(numbers.items()))

    def sql(self, query: SqlBuilder, path: str) -> str:
        """Return the test of a row to be in one of the clusters, or to be a frame of one of the videos."""
        levels = self.numbers(query.scope.dataset_id).items()
        tests = [query.one_of(f"cluster_{level}", numbers, "BIGINT") for level, numbers in levels]
        return f"({' OR '.join([*tests, query.one_of('video_id', self.ids, 'VARCHAR')])})"


def cluster(value: str | Sequence[str]) -> Expression:
    """Return the test of membership in a cluster, or in one of several, by their ids.

    Examples:
        >>> largest = ds.explore(level=2).clusters[0]
        >>> ds.where(vql.cluster(largest.cluster_id)).count()
        10
    """
    return Expression.of(ClusterTest, "is" if isinstance(value, str) else "one_of", value)
