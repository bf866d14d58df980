"""Tuning constants of the package: sizes and times that decide when code for much data, or for a long wait, runs.

Tests change them, so that little data takes the path of much. Each is named here and in no test.
"""

import importlib
from collections.abc import Iterator
from contextlib import contextmanager


class _Constant:
    """A constant of modules, which tests read and set as an attribute of :class:`Tuning`.

    Args:
        places: dotted names below the package; all have the same value.
    """

    def __init__(self, *places: str) -> None:
        self._places = [(f"framedex.{module}", name) for module, _, name in (each.rpartition(".") for each in places)]

    def __get__(self, tuning: "Tuning", _owner: type) -> float:
        module, name = self._places[0]
        value: float = getattr(importlib.import_module(module), name)
        return value

    def __set__(self, tuning: "Tuning", value: float) -> None:
        tuning.before.setdefault(self, self.__get__(tuning, Tuning))
        for module, name in self._places:
            setattr(importlib.import_module(module), name, value)


class Tuning:
    """The tuning constants, as attributes that can be set.

    Attributes:
        before: the values of those that were set.
    """

    __slots__ = ("before",)  # so that an unknown name is refused

    def __init__(self) -> None:
        self.before: dict[_Constant, float] = {}

    def restore(self) -> None:
        """Give all constants the values that they had."""
        for constant, value in self.before.items():
            constant.__set__(self, value)
        self.before.clear()

    addition_pairs = _Constant("analysis.additions._PAIRS")
    """Pairs of units and clusters that an addition compares at a time."""
    cell_rows = _Constant("analysis.cells._CELL_ROWS")
    """Rows of a cell of the neighbour search, on average."""
    probed_cells = _Constant("analysis.cells._MAX_PROBES")
    """The most cells that a row searches."""
    head_penalties = _Constant("analysis.linear_head._PENALTIES")
    """Penalties of the linear head, of which the best is taken."""
    head_block = _Constant("analysis.linear_head._BLOCK")
    """Items that the linear head reads at a time."""
    mean_run_rows = _Constant("analysis.cluster_means.RUN_ROWS")
    """Rows that are summed at a time for the means of clusters."""
    few_rows_share = _Constant("analysis.cluster_means._FEW")
    """The share of rows up to which the rows of changed clusters are read one by one."""
    stored_means_share = _Constant("analysis.cluster_means._MAX_STORED")
    """The size of stored sums of clusters, as a share of the vectors' size."""
    stored_mean_rows = _Constant("analysis.cluster_means._MIN_ROWS")
    """Rows from which on the sum of a cluster is stored."""
    code_block_rows = _Constant("analysis.codes._BLOCK")
    """Rows whose codes are converted to floats at a time."""
    code_thread_rows = _Constant("analysis.codes._SHARE")
    """Rows of codes that one thread takes at a time."""
    copy_span_images = _Constant("analysis.copies.pairs._SPAN")
    """Images whose pairs of copies are in memory at a time."""
    copy_work = _Constant("analysis.copies.searches.WORK", "analysis.copies.similarities.WORK")
    """Comparisons of copies in a task of an executor."""
    copy_queries = _Constant("analysis.copies.searches._GROUP")
    """Queries whose descriptors in all poses are in memory."""
    copy_priorities = _Constant("analysis.copies.similarities._BLOCK")
    """Pairs of copies whose priorities are computed at a time."""
    coverage_rounds = _Constant("analysis.coverage._ROUNDS")
    """Rounds of replacements in a choice of diverse rows."""
    crowded_rows = _Constant("analysis.duplicates._ALL_PAIRS")
    """Crowded rows up to which all are compared with each other."""
    listed_rows = _Constant("analysis.duplicates._LISTED")
    """Rows whose lists of neighbours are read at a time for duplicate groups."""
    joined_pairs = _Constant("analysis.duplicates._MANY_PAIRS")
    """Pairs that are joined to duplicate groups at a time."""
    grouped_centroids_gain = _Constant("analysis.grouped.centroids._WORTH")
    """The gain for which a row is compared with a part of the centroids."""
    kept_clusters_s = _Constant("analysis.grouped.kept_clusters._EVERY_S")
    """Seconds between checkpoints of clusters."""
    grouped_mean_cell_rows = _Constant("analysis.grouped.means.CELL_ROWS")
    """Rows of a cell where means lie in files."""
    moved_means = _Constant("analysis.grouped.means._MOVED")
    """Means that are moved within their file at a time."""
    grouped_cell_rows = _Constant("analysis.grouped.neighbours.CELL_ROWS")
    """Rows of a cell where vectors lie in files."""
    flat_cells = _Constant("analysis.grouped.neighbours._FLAT_CELLS")
    """Cells up to which rows are compared with all centroids."""
    round_groups = _Constant("analysis.grouped.neighbours._GROUPS")
    """The fewest groups that are compared in a round."""
    probing_rows = _Constant("analysis.grouped.steps._PROBED")
    """Rows of which the cells to search are found at a time."""
    label_rows = _Constant("analysis.labels._BLOCK", "analysis.label_votes._BLOCK")
    """Rows whose labels are judged at a time."""
    compared_pairs = _Constant("analysis.lookup._COMPARED_PAIRS")
    """Pairs up to which queries are compared with all rows."""
    lookup_queries = _Constant("analysis.lookup._QUERIES")
    """Queries that are compared at a time."""
    lookup_tile_rows = _Constant("analysis.lookup._TILE")
    """Rows with which queries are compared at a time."""
    multiplied_bytes = _Constant("analysis.mean_vectors._BYTES")
    """Bytes of vectors that are multiplied at a time."""
    gathered_candidates = _Constant("analysis.neighbour_lists._GATHERED")
    """Candidates that are gathered before they are sorted into lists."""
    small_product_cost = _Constant("analysis.neighbours.OVERHEAD")
    """The cost of small products, relative to large ones."""
    exact_rows = _Constant("analysis.neighbours._EXACT_ROWS")
    """Rows up to which all pairs are compared."""
    choosing_clusters = _Constant("analysis.reciprocal._MANY")
    """Clusters from which on those search first that may be merged next."""
    rebuilt_rows = _Constant("analysis.removals._FEW")
    """Remaining rows up to which the graph is rebuilt after a deletion."""
    removal_queries = _Constant("analysis.removals._QUERIES")
    """Rows that search for neighbours in one pass after a deletion."""
    run_rows = _Constant("analysis.runs.RUN_ROWS")
    """Rows that are summed at a time."""
    vector_block_rows = _Constant("analysis.vector_sources._BLOCK_ROWS")
    """Rows of vectors in a block."""

    json_chunk = _Constant("annotations.json_items._CHUNK")
    """Characters of a file of JSON that are read at a time."""
    json_item = _Constant("annotations.json_items._LONGEST")
    """The most characters of an item of JSON."""
    table_row = _Constant("core.table_rows.MAX_ROW")
    """The maximum size of a row of CSV or Parquet."""
    large_image_pixels = _Constant("media.decode._LARGE")
    """Pixels of an image from which it is reduced in bands."""
    band_pixels = _Constant("media.decode._BAND")
    """Pixels of a band."""
    near_frames_s = _Constant("media.video._NEAR_S")
    """Seconds up to which frames are decoded to reach a later one."""

    many_rows = _Constant("api.view.reading._MANY_ROWS")
    """Rows from which on the members to keep of a few groups are found without the others."""
    rows_for_one = _Constant("browse.duplicates._FEW")
    """Rows of a table for each row that is read by itself."""

    client_ids = _Constant("client.comparison.MOST_IDS")
    """The most ids that a client sends in a comparison."""
    client_page_rows = _Constant("client.comparison._PAGE_ROWS")
    """Rows of a page that a client asks for."""
    client_pause_s = _Constant("client.notifications._PAUSE_S")
    """Seconds after which a client connects again."""
    address_ids = _Constant("notebook.addresses.MOST_IDS")
    """The most rows that an address lists."""
    message_bytes = _Constant("notebook.messages._PART_BYTES")
    """Bytes of a part of a message."""
    silent_view_s = _Constant("notebook.messages._SILENT_S")
    """Seconds of silence after which a view is gone."""
    view_sweep_s = _Constant("notebook.messages._SWEEP_S")
    """Seconds between searches for views that are gone."""
    progress_interval_s = _Constant("render.notebook_progress._INTERVAL_S")
    """Seconds between updates of a progress bar in a notebook."""

    exported_rows = _Constant("export.columns._BLOCK_ROWS")
    """Rows that an export reads at a time."""
    exported_objects = _Constant("export.objects._MAX_OBJECTS")
    """Objects of an export in memory at a time."""
    shard_bytes = _Constant("export.webdataset._SHARD_BYTES")
    """Bytes of a shard of WebDataset."""

    alert_connect_s = _Constant("hub.alert_targets._CONNECT_S")
    """Seconds in which the target of an alert must accept a connection."""
    user_exports = _Constant("hub.exports.MOST_WAITING")
    """Exports of a user that have not ended."""
    recent_s = _Constant("hub.recent._AGE_S")
    """Seconds for which a value that was read counts as recent."""
    direct_export_media = _Constant("service.direct_export.MOST_MEDIA")
    """Media of an export that is the answer itself."""
    maintenance_s = _Constant("service.maintenance._PERIOD_S")
    """Seconds between times of maintenance."""
    open_streams = _Constant("service.routes.notification_stream._MOST")
    """Streams of notifications of a user."""
    stream_check_s = _Constant("service.streams.CHECK_S")
    """Seconds between checks of a stream's credentials."""
    stream_ping_s = _Constant("service.streams.PING_S")
    """Seconds between pings of a stream."""

    judged_rows = _Constant("jobs.edits.labels._ALL")
    """Rows up to which the labels of all are judged after an edit."""
    looked_up_share = _Constant("jobs.edits.numbered_rows._MANY")
    """Rows for each id up to which ids are looked up in one pass."""
    written_rows = _Constant("jobs.edits.removal._ALL")
    """Rows up to which a deletion writes the index columns of all."""
    few_deleted_rows = _Constant("jobs.edits.removal._MOST")
    """Deleted rows up to which a deletion writes layers."""
    layer_values = _Constant("jobs.edits.rows._FEW")
    """Values of a column up to which an edit writes a layer."""
    layer_share = _Constant("jobs.edits.rows._FEW_SHARE")
    """The part of the rows up to which an edit writes a layer, as a divisor."""
    enriched_rows = _Constant("jobs.enrich.columns._ROWS")
    """Rows of a batch of an enrichment."""
    edit_patience_s = _Constant("operations.edit_groups._PATIENCE_S")
    """Seconds for which an edit waits for others to be committed with."""
    lease_beat_s = _Constant("storage.leases._BEAT_S")
    """Seconds between signs of life of a lease."""
    lease_grace_s = _Constant("storage.leases._GRACE_S")
    """Seconds in which the first process in turn takes a lease."""
    lease_wait_s = _Constant("storage.leases._WAIT_S")
    """Seconds for which an edit waits for a lease."""
    saved_views = _Constant("storage.view_rows.MAX_VIEWS")
    """The most saved views of a dataset."""

    executor_images = _Constant("jobs.index.copies.LITTLE", "jobs.index.standings.LITTLE", "jobs.overlap.LITTLE")
    """Images from which on executors find copies."""
    copies_in_memory = _Constant("jobs.index.copies._FEW")
    """Images up to which copies are found in memory in any case."""
    copy_file_bytes = _Constant("jobs.index.copies._FILE_BYTES")
    """Bytes of memory for an image where copies are found in files."""
    copy_bytes = _Constant("jobs.index.copies._IMAGE_BYTES")
    """Bytes of memory for an image where copies are found in memory."""
    dense_rows = _Constant("jobs.index.indexed_vectors.DENSE_ROWS")
    """Rows up to which all distances between rows are in memory."""
    checked_work = _Constant("jobs.index.resources._CHECKED")
    """Multiply-adds for each hour of the limit below which no time is measured."""
    kept_copies_s = _Constant("jobs.index.verified_copies._KEPT_EVERY_S")
    """Seconds between checkpoints of verified copies."""
    verified_pairs = _Constant("jobs.index.verified_copies._PAIRS")
    """Pairs whose images are compared at a time."""
    known_ids = _Constant("jobs.ingest.changed_files._LOOKUP_BATCH")
    """Ids that are looked up at a time."""
    video_frames = _Constant("jobs.ingest.image_runs._FRAMES")
    """Frames of a video in one pass."""
    decoded_in_processes = _Constant("jobs.ingest.in_processes._WORTH")
    """Images from which on processes decode."""
    chunk_files = _Constant("jobs.ingest.ingest.CHUNK")
    """Files of a chunk."""
    committed_rows = _Constant("jobs.ingest.ingest._COMMITTED")
    """Rows of a table version of an ingestion."""
    encoded_images = _Constant("jobs.ingest.ingest._ENCODED")
    """Images of a batch of the encoder, if it names no other size."""
    first_commit_s = _Constant("jobs.ingest.ingest._FIRST_COMMITTED_S")
    """Seconds after which an ingestion stores its first rows."""
    rows_before_video = _Constant("jobs.ingest.parts._BEFORE_VIDEO")
    """Images of a part that ends before a video."""
    backup_attempts = _Constant("operations.backups.backup._ATTEMPTS")
    """Times that a backup copies the catalog."""
    catch_up_delay_s = _Constant("operations.catch_up.DELAY_S")
    """Seconds after opening at which saved views are counted."""
    blob_rows = _Constant("storage.blobs._ROWS")
    """Rows of blobs that are read at a time."""
    spared_bytes = _Constant("storage.spill._SPARE")
    """Bytes that temporary files leave on the disk."""
    stored_vector_rows = _Constant("storage.stored_vectors._BATCH_ROWS")
    """Vectors of a batch that is read."""
    table_batch_bytes = _Constant("storage.table_versions._BATCH_BYTES")
    """Bytes of a batch that is read from a table."""
    table_batch_rows = _Constant("storage.table_versions._BATCH_ROWS")
    """Rows of a batch that is read from a table."""
    table_files = _Constant("storage.tables._MANY_FILES")
    """Files of a table from which on small ones are joined."""

    encoded_captions = _Constant("search.captions.captions._ENCODED")
    """Captions of a batch of the encoder."""
    caption_segment = _Constant("search.captions.captions._SEGMENT_TEXTS")
    """Captions of a segment."""
    one_cell_bytes = _Constant("search.captions.merging.ONE_CELL_BYTES")
    """Bytes of codes of captions up to which they are in one cell."""
    text_segment = _Constant("search.text.full_text._BATCH_TEXTS")
    """Texts of a new segment."""


@contextmanager
def tuned() -> Iterator[Tuning]:
    """Give the tuning constants to a block; at its end they are as before."""
    tuning = Tuning()
    try:
        yield tuning
    finally:
        tuning.restore()
