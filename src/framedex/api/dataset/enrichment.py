"""Enrichment methods of :class:`framedex.Dataset`."""

from framedex.api.record_list import RecordList
from framedex.operations import enrichment
from framedex.operations.context import Context
from framedex.records import EnrichmentContext, EnrichmentModel, TaskRecord
from framedex.storage import task_rows


class DatasetEnrichment:
    """Models that can be, or were, applied to a dataset."""

    _context: Context
    id: str

    def list_models(self) -> list[EnrichmentModel]:
        """Return the models of the workspace's ``models.toml``, in its order; see docs/enrichment.md.

        A model is ``Active`` if it can be applied now: its packages are installed, its files exist, and its
        dependencies were applied. Otherwise it is ``Coming Soon``, and the end of its description names the missing
        requirement. No weights are loaded.

        Raises:
            InvalidInput: the file is invalid; the message names the model and the key.

        Examples:
            >>> [(each.id, str(each.type), str(each.status)) for each in ds.list_models()]
            [('colours', 'IMAGE_TAGGING', 'Active'), ('faces', 'OBJECT_DETECTION', 'Active')]
        """
        return RecordList(enrichment.list_models(self._context, self.id))

    @property
    def last_enrichment(self) -> TaskRecord | None:
        """The newest task that enriches the dataset, or that made it of another one; None if there is none.

        Examples:
            >>> enriched = ds.enrich({"IMAGE_TAGGING": "colours"})
            >>> print(ds.last_enrichment.task_type, ds.last_enrichment.status)
            ENRICHMENT COMPLETED
        """
        with self._context.catalog.read() as connection:
            return task_rows.last_enrichment(connection, self.id)

    def enrichment_context(self) -> EnrichmentContext:
        """Return the models that were applied. The status is ``NEW`` without models, else ``ENRICHED``.

        Snapshots, restores and clones preserve the context.

        Examples:
            >>> enriched = ds.enrich({"IMAGE_TAGGING": "colours"})
            >>> enriched.enrichment_context().status, ds.enrichment_context().status
            (<EnrichmentStatus.ENRICHED: 'ENRICHED'>, <EnrichmentStatus.NEW: 'NEW'>)
        """
        return enrichment.read_context(self._context, self.id)
