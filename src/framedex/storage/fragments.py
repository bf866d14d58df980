"""Fragments: files of rows in the folder of a table, of which no version knows yet.

Workers write them, also on other machines that share the folder, and the process of the dataset adds them to the table
in one version (:func:`framedex.storage.tables.append_fragments`). A file that is never added is one without a version,
as a killed writer leaves it.

Facts of Lance 14 that this relies on, each proved by a test: a fragment that was written beside version N can be added
to any later version with the same columns. Columns that it lacks are null in its rows.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from framedex.core.regular_files import has_file
from framedex.errors import NotFound
from framedex.storage.engine_calls import engine_call
from framedex.storage.failures import on_table


@dataclass(frozen=True)
class Fragment:
    """A file of rows, of which no version of the table knows yet.

    Attributes:
        rows: number of rows.
        file: path of the file relative to the folder of the table.
        size_bytes: size of the file.
        metadata: its description by the engine, as JSON.
    """

    rows: int
    file: str
    size_bytes: int
    metadata: str

    def is_in(self, path: Path) -> bool:
        """Return whether its file is in the folder of a table, as seen by this process."""
        file = path / self.file
        return has_file(file) and file.stat().st_size == self.size_bytes


@engine_call
@on_table("read")
def check_table(path: Path, version: int) -> None:
    """Check that this process finds a table at *path*, at *version* or a later one.

    Raises:
        NotFound: it does not, as on a machine that does not share the folder.
    """
    _opened(path, version)


def _opened(path: Path, version: int) -> Any:
    import lance

    try:
        table = lance.dataset(str(path))
    except (ValueError, OSError) as error:
        raise NotFound(f"there is no table at {path}") from error
    if table.version < version:
        raise NotFound(f"the table at {path} has versions up to {table.version} there, not {version}")
    return table


@engine_call
@on_table("write")
def write_fragment(path: Path, version: int, batch: pa.RecordBatch) -> Fragment:
    """Write rows into a new file in the folder of a table; return the fragment.

    Args:
        path: folder of the table.
        version: a version of the table, which has all columns of *batch*; it need not be there any more.
        batch: the rows, at least one.

    Raises:
        NotFound: there is no table, or it is older than *version*.
    """
    from lance.fragment import write_fragments

    table = _opened(path, version)
    reader = pa.RecordBatchReader.from_batches(batch.schema, [batch])
    (metadata,) = write_fragments(reader, table, schema=batch.schema, mode="append")
    (file,) = metadata.files
    name = f"data/{file.path}"
    return Fragment(batch.num_rows, name, (path / name).stat().st_size, json.dumps(metadata.to_json()))
