"""User decisions that labels are right, a table beside the media: a row per media item of a decision."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from framedex.core.arrays import Mask
from framedex.core.forks import cached_property
from framedex.records import LabelDecision
from framedex.storage import tables
from framedex.storage.table_names import LABEL_DECISIONS
from framedex.storage.table_versions import small_table

_SCHEMA = pa.schema(
    [
        pa.field("decision_id", pa.string(), nullable=False),
        pa.field("media_id", pa.string(), nullable=False),
        pa.field("labels", pa.list_(pa.string()), nullable=False),
        pa.field("decided_by", pa.string(), nullable=False),
        pa.field("decided_at", pa.timestamp("us", tz="UTC"), nullable=False),
    ]
)


@dataclass(frozen=True)
class LabelDecisions:
    """The decisions of a generation, oldest first.

    Attributes:
        rows: a row per media item of a decision; the rows of a decision follow one another.
    """

    rows: pa.Table

    def __bool__(self) -> bool:
        """Return whether there are decisions."""
        return bool(len(self.rows))

    def hold(self, media_ids: pa.Array, labels: pa.ListArray) -> Mask:
        """Return whether a decision says that the present labels of media are right: bool, shape (N,).

        A decision holds as long as a media item has the labels that it had then, in any order.

        Args:
            media_ids: of N media.
            labels: their labels.
        """
        result = np.zeros(len(media_ids), dtype=bool)
        if self:
            places = np.flatnonzero(pc.is_in(media_ids, value_set=self._media_ids).to_numpy(zero_copy_only=False))
            chosen = pa.array(places)
            for place, key in zip(places.tolist(), _keys(media_ids.take(chosen), labels.take(chosen)), strict=True):
                result[place] = key in self._right
        return result

    @cached_property
    def _media_ids(self) -> pa.Array:
        return self.rows["media_id"].combine_chunks().unique()

    @cached_property
    def _right(self) -> frozenset[tuple[str, frozenset[str]]]:
        return frozenset(_keys(self.rows["media_id"], self.rows["labels"]))

    def records(self) -> list[LabelDecision]:
        """Return the decisions."""
        result = []
        for decision_id, group in groupby(self.rows.to_pylist(), lambda row: row["decision_id"]):
            members = list(group)
            result.append(
                LabelDecision(
                    decision_id=decision_id,
                    media_ids=[row["media_id"] for row in members],
                    labels=[row["labels"] for row in members],
                    decided_by=members[0]["decided_by"],
                    decided_at=members[0]["decided_at"],
                )
            )
        return result

    def of(self, decision_id: str) -> "LabelDecisions":
        """Return only the decision with an id; nothing if there is none."""
        return self._chosen(decision_id, own=True)

    def with_decision(self, decision: LabelDecision) -> "LabelDecisions":
        """Return these decisions and a further one, after all that are as old."""
        count = len(decision.media_ids)
        added = {
            "decision_id": [decision.decision_id] * count,
            "media_id": decision.media_ids,
            "labels": decision.labels,
            "decided_by": [decision.decided_by] * count,
            "decided_at": [decision.decided_at] * count,
        }
        place = sum(each <= decision.decided_at for each in self.rows["decided_at"].to_pylist())
        parts = [self.rows.slice(0, place), pa.table(added, schema=_SCHEMA), self.rows.slice(place)]
        return LabelDecisions(pa.concat_tables(parts))

    def without(self, decision_id: str) -> "LabelDecisions":
        """Return these decisions without one."""
        return self._chosen(decision_id, own=False)

    def _chosen(self, decision_id: str, *, own: bool) -> "LabelDecisions":
        # Compared as Python texts: Arrow refuses lone surrogates.
        chosen = [(each == decision_id) == own for each in self.rows["decision_id"].to_pylist()]
        return LabelDecisions(self.rows.filter(pa.array(chosen, pa.bool_())))


NO_LABEL_DECISIONS = LabelDecisions(pa.Table.from_batches([], schema=_SCHEMA))


def read_label_decisions(media: Path, versions: Mapping[str, int]) -> LabelDecisions:
    """Return the decisions of a generation.

    Args:
        media: folder of the media table.
        versions: of the generation's tables.
    """
    if LABEL_DECISIONS not in versions:
        return NO_LABEL_DECISIONS
    rows = small_table(_path(media), versions[LABEL_DECISIONS], _SCHEMA.names)
    return LabelDecisions(rows.cast(_SCHEMA))


def write_label_decisions(media: Path, decisions: LabelDecisions) -> int:
    """Write the decisions and return the version of their table."""
    version = tables.replace(_path(media), decisions.rows.to_batches(), _SCHEMA)
    tables.sync(_path(media))
    return version


def _keys(media_ids: pa.Array, labels: pa.ListArray) -> list[tuple[str, frozenset[str]]]:
    pairs = zip(media_ids.to_pylist(), labels.to_pylist(), strict=True)
    return [(media_id, frozenset(each or ())) for media_id, each in pairs]


def _path(media: Path) -> Path:
    return media.with_name(f"{LABEL_DECISIONS}.lance")
