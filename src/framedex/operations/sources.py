"""The source folders of datasets, and whether they can be found."""

from collections import Counter
from collections.abc import Mapping

import pyarrow.compute as pc

from framedex.core.assumed_roles import AssumedRole
from framedex.errors import Conflict
from framedex.media.presence import Place
from framedex.operations.context import Context, open_media
from framedex.records import DatasetRecord, SourceState
from framedex.storage import datasets
from framedex.storage.media import Media
from framedex.storage.media_rows import text_of_path
from framedex.storage.schema import BLOBS_ROOT


def list_sources(context: Context, dataset_id: str | None = None) -> list[SourceState]:
    """Return the source folders of a dataset, or of all datasets of all namespaces, in the order of their numbers.

    Uploads have none. Each folder is looked at once; of a bucket the first objects are listed.

    Raises:
        NotFound: the dataset does not exist.
    """
    with context.catalog.read() as connection:
        if dataset_id is None:
            records = datasets.list_datasets(connection)
        else:
            records = [datasets.find_dataset(connection, dataset_id)]
    faults: dict[tuple[str, AssumedRole | None], str | None] = {}
    found = []
    for record in records:
        try:
            media = open_media(context, record.id, early=True)
        except Conflict:  # it has no media yet
            continue
        counts = _counts(media)
        for number, root in enumerate(media.roots):
            if root != BLOBS_ROOT and counts.get(number):
                key = root, media.generation.summary.role_of(number)
                if key not in faults:
                    faults[key] = Place(root, context.settings, key[1]).fault()
                found.append(_state(record, root, counts[number], faults[key]))
    return found


def _counts(media: Media) -> Mapping[int, int]:
    """Return the number of media of each source root."""
    counts = Counter[int]()
    for batch in media.scan(["root"]):
        for each in pc.value_counts(batch.column(0)).to_pylist():
            if each["values"] is not None:
                counts[each["values"]] += each["counts"]
    return counts


def _state(record: DatasetRecord, root: str, n_media: int, fault: str | None) -> SourceState:
    return SourceState(
        dataset_id=record.id,
        dataset_name=record.display_name,
        source=text_of_path(root)[0],
        n_media=n_media,
        fault=fault,
    )
