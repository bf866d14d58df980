"""Facts of the members of duplicate groups, which tell an original from its copies."""

from collections.abc import Mapping
from datetime import UTC, datetime

import numpy as np

from framedex.analysis.keeping import Values
from framedex.records import MemberFacts

_MEAN_STEP = 12.75  # grey levels: the mean step of low frequencies at quality 50 (ITU-T T.81, table K.1)


def facts_of(columns: Mapping[str, Values], member: int) -> MemberFacts:
    """Return the facts of a member by its measures; None for those that are not known.

    Args:
        columns: float64, shape (N,), by name; NaN for unknown values.
        member: its position.
    """

    def value(name: str) -> float | None:
        found = columns[name].item(member) if name in columns else np.nan
        return None if np.isnan(found) else float(found)

    def whole(name: str) -> int | None:
        return None if (found := value(name)) is None else round(found)

    def flag(name: str) -> bool | None:
        return None if (found := value(name)) is None else found > 0

    modified_at, width, height = value("modified_at"), whole("width"), whole("height")
    return MemberFacts(
        width=width,
        height=height,
        detail_pixels=whole("keep_detail"),
        added_pixels=whole("keep_surplus"),
        quality=_quality(value("keep_step")),
        recompressed=flag("keep_recompressed"),
        clipped=value("keep_clipped"),
        cropped=flag("keep_cropped"),
        colour=flag("keep_colour"),
        metadata=flag("keep_metadata"),
        size_bytes=whole("size_bytes"),
        modified_at=None if modified_at is None else datetime.fromtimestamp(modified_at, UTC),
    )


def _quality(step: float | None) -> int | None:
    """Return the quality on the scale of libjpeg, 1 to 100, at which steps have a mean; None for no compression."""
    if not step:
        return None
    scale = 100 * step / _MEAN_STEP
    return int(np.clip(round(100 - scale / 2 if scale <= 100 else 5000 / scale), 1, 100))
