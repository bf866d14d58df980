"""The media table while a dataset is created: rows without an index, read as if they were one cluster."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from framedex.core.forks import cached_property
from framedex.issue_types import FAULTS
from framedex.storage.media_rows import CLUSTERS, NO_EMBEDDING, index_schema
from framedex.storage.table_versions import ROW_ID, Table

_SOURCE, _FAULT = "error", "fault"


class EarlyTable(Table):
    """A media table at a version without an index, with the columns of one in which all rows form one cluster.

    Media that could not be decoded are in no cluster and have the issue that says why. All other index columns are
    null. The columns are made when they are read; nothing is written.
    """

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns of the table, those of the index included."""
        stored = self._schema()
        return pa.schema([*stored, *(field for field in index_schema() if field.name not in stored.names)])

    def __reduce__(self) -> Any:
        """Return the parts of which another process opens the same version."""
        return EarlyTable, (self.path, self.version)

    def _stored(self, columns: Sequence[str], *, row_ids: bool) -> pa.RecordBatchReader:
        computed = self._computed(columns)
        if not computed:
            return super()._stored(columns, row_ids=row_ids)
        stored = [name for name in columns if name not in computed]
        reader = super()._stored(list(dict.fromkeys([*stored, *self._sources])), row_ids=row_ids)
        fields = [self.schema.field(name) for name in columns]
        schema = pa.schema([*fields, pa.field(ROW_ID, pa.uint64())] if row_ids else fields)
        batches = (
            pa.RecordBatch.from_arrays([self._column(batch, name) for name in schema.names], schema=schema)
            for batch in reader
        )
        return pa.RecordBatchReader.from_batches(schema, batches)

    def _take_ids(self, row_ids: list[int], columns: list[str]) -> pa.Table:
        computed = self._computed(columns)
        if not computed:
            return super()._take_ids(row_ids, columns)
        stored = [name for name in columns if name not in computed]
        rows = super()._take_ids(row_ids, list(dict.fromkeys([*stored, *self._sources]))).combine_chunks()
        (batch,) = rows.to_batches()
        schema = pa.schema([self.schema.field(name) for name in columns])
        return pa.table([self._column(batch, name) for name in columns], schema=schema)

    def _computed(self, columns: Sequence[str]) -> set[str]:
        return {name for name in columns if name in self._index_names}

    @cached_property
    def _index_names(self) -> frozenset[str]:
        return frozenset(self.schema.names) - frozenset(self._schema().names)

    @cached_property
    def _sources(self) -> list[str]:
        return [name for name in (_SOURCE, _FAULT) if name in self._schema().names]

    @cached_property
    def _faults(self) -> dict[str, str]:
        return {issue.confidence_column: fault for fault, issue in FAULTS.items()}

    def _column(self, batch: pa.RecordBatch, name: str) -> pa.Array:
        """Return a column of a batch that has the stored ones and those of errors and faults."""
        if name not in self._index_names:
            return batch.column(name)
        kind = self.schema.field(name).type
        if name in CLUSTERS:
            clusters = np.where(pc.is_valid(batch.column(_SOURCE)), NO_EMBEDDING, NO_EMBEDDING + 1)
            return pa.array(clusters.astype(np.int32))
        if (fault := self._faults.get(name)) is not None:
            if _FAULT not in self._sources:  # an older version began the creation
                return pa.nulls(batch.num_rows, kind)
            has_fault = pc.fill_null(pc.equal(batch.column(_FAULT), fault), False)
            return pc.if_else(has_fault, pa.scalar(1, kind), pa.scalar(None, kind))
        return pa.nulls(batch.num_rows, kind)
