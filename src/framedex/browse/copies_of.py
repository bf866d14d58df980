"""The copies of one media item: the other members of its near-duplicate group."""

import numpy as np

from framedex.browse.duplicates import check_similarity, duplicates
from framedex.records import Copy
from framedex.storage.condition import Condition
from framedex.storage.copy_pairs import compared_column
from framedex.storage.media import Media
from framedex.storage.objects import media_containing


def copies_of(media: Media, media_id: str, *, similarity: float) -> list[Copy]:
    """Return the other members of an item's near-duplicate group, the most similar first, ties in row order.

    Args:
        media: the media of a dataset.
        media_id: the id of a media item, or of an object in one.
        similarity: minimum cosine similarity in [0.96, 1], rounded up to the next of the eight levels.

    Raises:
        NotFound: the dataset has no such item.
        InvalidInput: the similarity is outside [0.96, 1].
    """
    check_similarity("similarity", similarity)
    media = media_containing(media, media_id)
    groups = duplicates(media, Condition(), similarity=similarity, of=media_id)
    if not groups:
        return []
    (group,) = groups
    similarities = _similarities(media, group.media_ids, media_id)
    copies = [
        Copy(
            media_id=member,
            file_name=group.file_names[place],
            path=group.paths[place],
            similarity=similarities[place],
            reason=group.reasons[place],
            keep=member == group.keep,
        )
        for place, member in enumerate(group.media_ids)
        if member != media_id
    ]
    return sorted(copies, key=lambda copy: -2.0 if copy.similarity is None else copy.similarity, reverse=True)


def _similarities(media: Media, media_ids: list[str], media_id: str) -> list[float | None]:
    """Return the cosine similarity of each item's descriptor to that of one of them; None where one has none."""
    found, name = media.with_row_ids(media_ids), compared_column(media.table)
    rows = [found.row_id_of[each] for each in media_ids]
    own = media.table.take([found.row_id_of[media_id]], [name])[name][0].as_py()
    if own is None:
        return [None] * len(rows)
    results: list[float | None] = []
    for vector in media.table.take(rows, [name])[name].to_pylist():
        cosine = None if vector is None else float(np.clip(np.dot(_unit(vector), _unit(own)), -1, 1))
        results.append(cosine)
    return results


def _unit(vector: list[float]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    values = np.asarray(vector, np.float64)
    return values / max(float(np.linalg.norm(values)), 1e-12)
