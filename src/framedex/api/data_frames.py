"""Tables as DataFrames of pandas, an optional package."""

from typing import TYPE_CHECKING

import pyarrow as pa

from framedex.errors import MissingDependency

if TYPE_CHECKING:
    import pandas as pd


def as_pandas(table: pa.Table) -> "pd.DataFrame":
    """Return a table as a DataFrame.

    Raises:
        MissingDependency: pandas is not installed.
    """
    try:
        import pandas  # noqa: F401 - only to raise a clear error if it is missing
    except ImportError:
        raise MissingDependency("to_pandas needs pandas: pip install 'framedex[notebook]'") from None
    frame: pd.DataFrame = table.to_pandas()
    return frame
