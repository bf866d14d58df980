"""Plain records without behaviour: the interface's resources, and further ones of our own."""

from framedex.records.base import Record
from framedex.records.cleanup import CleanupResult, CleanupSummary
from framedex.records.datasets import DatasetRecord, DatasetStatus, EmbeddingConfig, Weights
from framedex.records.duplicates import DUPLICATE_LEVELS, Copy, DuplicateDecision, DuplicateGroup
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
    LabelCount,
    Preview,
    ValueHistogram,
)
from framedex.records.exports import ExportRecord, ExportResult, ExportStatus
from framedex.records.journal import JournalStep
from framedex.records.maintenance import CheckResult, Finding, RecoveryResult, VacuumResult
from framedex.records.people import (
    ApiCredentials,
    AuditEntry,
    DatasetMember,
    Organization,
    Tenant,
    TenantMember,
    TenantPermissions,
    User,
    UserSession,
)
from framedex.records.snapshots import Snapshot, SnapshotReason
from framedex.records.tasks import TaskFilters, TaskPage, TaskRecord, TaskStatus, TaskType
from framedex.records.uploads import UploadRecord, UploadState
from framedex.records.views import Alert, SavedViewRecord, TrendPoint, ViewFilters, ViewStats, ViewTrend

__all__ = [
    "CLUSTER_LEVELS",
    "DUPLICATE_LEVELS",
    "Alert",
    "ApiCredentials",
    "AppliedModels",
    "AuditEntry",
    "CheckResult",
    "CleanupResult",
    "CleanupSummary",
    "Cluster",
    "Copy",
    "DatasetMember",
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
    "JournalStep",
    "LabelCount",
    "LabelDecision",
    "ModelStatus",
    "Organization",
    "Preview",
    "Record",
    "RecoveryResult",
    "SavedViewRecord",
    "Snapshot",
    "SnapshotReason",
    "Tag",
    "TaskFilters",
    "TaskPage",
    "TaskRecord",
    "TaskStatus",
    "TaskType",
    "Tenant",
    "TenantMember",
    "TenantPermissions",
    "TrendPoint",
    "UploadRecord",
    "UploadState",
    "User",
    "UserSession",
    "VacuumResult",
    "ValueHistogram",
    "ViewFilters",
    "ViewStats",
    "ViewTrend",
    "Weights",
]
