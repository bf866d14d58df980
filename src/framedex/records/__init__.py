"""Plain records without behaviour: the interface's resources, and further ones of our own."""

from framedex.records.base import Record
from framedex.records.cleanup import CleanupResult, CleanupSummary
from framedex.records.datasets import DatasetRecord, DatasetStatus, EmbeddingConfig, Weights
from framedex.records.duplicates import DUPLICATE_LEVELS, DuplicateDecision, DuplicateGroup
from framedex.records.edits import Field, FieldError, FieldResult, FieldType, FieldValue, LabelDecision, Tag
from framedex.records.enrichment import (
    AppliedModels,
    EnrichmentContext,
    EnrichmentModel,
    EnrichmentStatus,
    EnrichmentType,
    ModelStatus,
)
from framedex.records.explore import (
    CLUSTER_LEVELS,
    Cluster,
    EntityType,
    ExploreMetadata,
    ExploreResult,
    IssueLimit,
    IssueSummary,
    Preview,
    ValueHistogram,
)
from framedex.records.exports import ExportRecord, ExportResult, ExportStatus
from framedex.records.maintenance import CheckResult, Finding, RecoveryResult, VacuumResult
from framedex.records.snapshots import Snapshot, SnapshotReason
from framedex.records.tasks import TaskFilters, TaskPage, TaskRecord, TaskStatus, TaskType
from framedex.records.uploads import UploadRecord, UploadState

__all__ = [
    "CLUSTER_LEVELS",
    "DUPLICATE_LEVELS",
    "AppliedModels",
    "CheckResult",
    "CleanupResult",
    "CleanupSummary",
    "Cluster",
    "DatasetRecord",
    "DatasetStatus",
    "DuplicateDecision",
    "DuplicateGroup",
    "EmbeddingConfig",
    "EnrichmentContext",
    "EnrichmentModel",
    "EnrichmentStatus",
    "EnrichmentType",
    "EntityType",
    "ExploreMetadata",
    "ExploreResult",
    "ExportRecord",
    "ExportResult",
    "ExportStatus",
    "Field",
    "FieldError",
    "FieldResult",
    "FieldType",
    "FieldValue",
    "Finding",
    "IssueLimit",
    "IssueSummary",
    "LabelDecision",
    "ModelStatus",
    "Preview",
    "Record",
    "RecoveryResult",
    "Snapshot",
    "SnapshotReason",
    "Tag",
    "TaskFilters",
    "TaskPage",
    "TaskRecord",
    "TaskStatus",
    "TaskType",
    "UploadRecord",
    "UploadState",
    "VacuumResult",
    "ValueHistogram",
    "Weights",
]
