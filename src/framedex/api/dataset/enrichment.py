"""What a dataset knows of the models that it can be, or was, enriched by."""

from framedex.operations import enrichment
from framedex.operations.context import Context
from framedex.records import EnrichmentContext, EnrichmentModel


class DatasetEnrichment:
    """The part of :class:`framedex.Dataset` about models."""

    _context: Context
    id: str

    def list_models(self) -> list[EnrichmentModel]:
        """Return the models of the workspace's ``models.toml``, in its order; see docs/enrichment.md.

        A model is ``Active`` if it can be applied here now: packages are installed, its files are there, and the
        dataset has what it needs. Else it is ``Coming Soon``, and its description ends with what is missing. No weights
        are loaded for that.

        Raises:
            InvalidInput: the file cannot be understood; the message names the model and the key.
        """
        return enrichment.list_models(self._context, self.id)

    def enrichment_context(self) -> EnrichmentContext:
        """Return which models were applied: status ``NEW`` where none was, else ``ENRICHED``.

        Snapshots, restores and clones keep it.
        """
        return enrichment.read_context(self._context, self.id)
