"""The statistics of a dataset's labels, a table beside the media, by which edits judge the labels of few rows."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from framedex.storage import tables
from framedex.storage.table_names import LABEL_STATISTICS
from framedex.storage.table_versions import small_table

_Numbers = npt.NDArray[np.float64]
_SCHEMA = pa.schema(
    [
        pa.field("label", pa.string(), nullable=False),
        pa.field("typical", pa.float64()),
        pa.field("distance_limit", pa.float64()),
    ]
)


def write_label_statistics(media: Path, names: pa.Array, typical: _Numbers, limits: _Numbers) -> int:
    """Write the statistics of labels, see :class:`framedex.analysis.labels.LabelStatistics`; return the version.

    Args:
        media: folder of the media table.
        names: the labels, shape (L,), each once.
        typical: float64, shape (L,); NaN for no value.
        limits: the same.
    """
    columns = [pa.array(each[: len(names)], pa.float64(), from_pandas=True) for each in (typical, limits)]
    batch = pa.RecordBatch.from_arrays([names.cast(pa.string()), *columns], schema=_SCHEMA)
    version = tables.replace(_path(media), [batch], _SCHEMA)
    tables.sync(_path(media))
    return version


def read_label_statistics(
    media: Path, versions: Mapping[str, int], names: pa.Array
) -> tuple[_Numbers, _Numbers] | None:
    """Return the statistics of some labels, NaN for labels that had no items; None if a generation has none.

    Args:
        media: folder of the media table.
        versions: of the generation's tables.
        names: the labels, shape (L,).
    """
    if LABEL_STATISTICS not in versions:
        return None
    rows = small_table(_path(media), versions[LABEL_STATISTICS], _SCHEMA.names)
    places = pc.index_in(names.cast(pa.string()), value_set=rows["label"].combine_chunks())
    typical, limits = (
        np.asarray(rows[name].combine_chunks().take(places).to_numpy(zero_copy_only=False), dtype=np.float64)
        for name in ("typical", "distance_limit")
    )
    return typical, limits


def _path(media: Path) -> Path:
    return media.with_name(f"{LABEL_STATISTICS}.lance")
