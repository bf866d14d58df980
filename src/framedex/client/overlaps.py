"""The overlap of two views of a service."""

from collections.abc import Callable
from typing import TypeVar

import pyarrow as pa

from framedex.api.overlap import Overlap
from framedex.api.result_pages import ThumbnailSource
from framedex.client import calls
from framedex.client.actions import MOST_IDS
from framedex.client.connection import Connection
from framedex.client.parts import ViewParts
from framedex.errors import InvalidInput

_PAGE_ROWS = 50_000
View = TypeVar("View", bound=ThumbnailSource)


def read_overlap(
    connection: Connection,
    dataset_ids: tuple[str, str],
    rids: tuple[str, str],
    made: tuple[Callable[[ViewParts], View], Callable[[ViewParts], View]],
    *,
    similarity: float,
    exact: bool,
) -> Overlap[View]:
    """Return the copies of results of a dataset among those of another one.

    Args:
        connection: to the service.
        dataset_ids: the datasets.
        rids: the results of both.
        made: returns a view of each dataset.
        similarity: minimum cosine similarity.
        exact: only files with equal content.
    """
    dataset_id, other = dataset_ids
    query = {"other": other, "similarity": similarity, "exact": exact, "rid": rids[0], "other_rid": rids[1]}
    total = connection.json(calls.OVERLAP, query={**query, "limit": 1}, dataset_id=dataset_id)["total"]
    pages = [
        connection.table(calls.OVERLAP, query={**query, "offset": start, "limit": _PAGE_ROWS}, dataset_id=dataset_id)
        for start in range(0, max(total, 1), _PAGE_ROWS)
    ]

    def select(side: int, ids: pa.Array) -> View:
        if len(ids) > MOST_IDS:
            raise InvalidInput(f"a view of copies of a service has up to {MOST_IDS:,} rows, not {len(ids):,}")
        return made[side](ViewParts(ids=tuple(ids.to_pylist())))

    names = [str(connection.json(calls.DATASET, dataset_id=each)["display_name"]) for each in dataset_ids]
    return Overlap(pa.concat_tables(pages), (made[0](ViewParts()), made[1](ViewParts())), names, select)
