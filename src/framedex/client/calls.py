"""The calls of the client: methods, paths, parameters and fields, which a test compares with the service's document."""

from dataclasses import dataclass

PREFIX = "/api/v1"


@dataclass(frozen=True)
class Call:
    """A call of the service.

    Attributes:
        method: the HTTP method.
        path: below :data:`PREFIX`, with names of parameters in braces.
        query: the names of parameters, separated by blanks.
        fields: the names of the fields of the body, separated by blanks.
    """

    method: str
    path: str
    query: str = ""
    fields: str = ""


_D = "/dataset/{dataset_id}"
_R = _D + "/results/{rid}"

ME = Call("GET", "/me")
DATASETS = Call("GET", "/datasets")
DATASET = Call("GET", _D)
CREATE_FROM_BUCKET = Call("POST", "/dataset", fields="dataset_name bucket_path")
CHANGE_DATASET = Call("PATCH", _D, fields="display_name description")
DELETE_DATASET = Call("DELETE", _D)
NEW_DRAFT = Call("GET", "/ingestion/new_dataset", "dataset_name")
OPEN_UPLOAD = Call("GET", "/ingestion/{dataset_id}/data_files")
UPLOAD_FILES = Call("POST", "/ingestion/{dataset_id}/data_files/{transaction_id}", fields="files")
PROCESS_UPLOAD = Call("POST", "/ingestion/{dataset_id}/process_files/{transaction_id}")
ADD_MEDIA = Call("POST", _D + "/add_media", fields="files archive s3_uri assume_role auto_reindex")
REINDEX = Call("POST", _D + "/reindex")
LIST_MODELS = Call("GET", "/enrichment/{dataset_id}/list_models")
ENRICHMENT_CONTEXT = Call("GET", "/enrichment/{dataset_id}/context")
ENRICH = Call("POST", _D + "/enrich_dataset", fields="enrichment_models")

EXPLORE = Call(
    "GET",
    "/explore/{dataset_id}",
    "entity_type threshold page_number caption textual_similarity_threshold labels tags vql anchor_media_id "
    "anchor_type",
)
UPLOAD_QUERY = Call("POST", _D + "/search-image-similarity", "entity_type bounding_box", "file")
MEDIA_ID = Call("GET", _D + "/search_media_metadata/id", "original_media_uri")
COPIES = Call("POST", _D + "/copies", "media_id similarity bounding_box", "file")
MEDIA_FILE = Call("GET", _D + "/media/{media_id}/file", "format")
THUMBNAIL = Call("GET", _D + "/media/{media_id}/thumbnail", "size")
FIELD_VALUES = Call("GET", "/datasets/{dataset_id}/image/{media_id}/custom_metadata")
NEW_FIELD_TASK = Call(
    "POST", "/datasets/{dataset_id}/custom_metadata/tasks", fields="field_name field_type enum_options is_multi"
)
FILL_FIELD = Call("POST", "/datasets/{dataset_id}/custom_metadata/tasks/{metadata_task_id}")
FIELD_STATUS = Call("GET", "/datasets/{dataset_id}/custom_metadata/tasks/{metadata_task_id}/status")

EXPORT = Call("GET", _D + "/export_context_async", "file_name export_format include_images entity_type vql")
EXPORT_SELECTION = Call(
    "POST", _D + "/export_entities_async", "export_format include_images file_name", "media_selection"
)
EXPORT_STATUS = Call("GET", _D + "/export_status", "export_task_id")

SNAPSHOTS = Call("GET", _D + "/snapshot")
CREATE_SNAPSHOT = Call("POST", _D + "/snapshot", fields="name description")
CHANGE_SNAPSHOT = Call("PATCH", _D + "/snapshot/{snapshot_id}", fields="name description")
RESTORE_SNAPSHOT = Call("POST", _D + "/snapshot/{snapshot_id}/restore")
MERGE = Call("POST", _D + "/merge", fields="other name")
CLONE = Call("POST", _D + "/clone", fields="snapshot")
DELETE_SNAPSHOT = Call("DELETE", _D + "/snapshot/{snapshot_id}")

COMPARISON = Call("GET", _D + "/compare", "before after")
COMPARISON_ROWS = Call("GET", _D + "/compare/rows", "before after change offset limit")
COMPARISON_RESULTS = Call("POST", _D + "/compare/results", fields="before after change")
OVERLAP = Call("GET", _D + "/overlap", "other similarity exact rid other_rid offset limit")
DIVERSE = Call("GET", _D + "/diverse", "n seed rid")
CARD = Call("GET", _D + "/card")
TRENDS = Call("GET", _D + "/trends")
MAP = Call("GET", _D + "/map", "entity_type")
MAKE_MAP = Call("POST", _D + "/map", "entity_type")

TASKS = Call(
    "GET",
    "/tasks",
    "dataset_id dataset_name task_type task_status created_by start_time_from start_time_to sort_by sort_order page "
    "page_size",
)
TASK_FILTERS = Call("GET", "/tasks/filters", "start_time_from start_time_to")
ABORT_TASK = Call("POST", "/tasks/{task_id}/abort")
RETRY_TASK = Call("POST", "/tasks/{task_id}/retry")

VIEWS = Call("GET", _D + "/views")
SAVE_VIEW = Call("POST", _D + "/views", "entity_type threshold caption vql", "name")
DELETE_VIEW = Call("DELETE", _D + "/views/{view_id}")
VIEW_TREND = Call("GET", _D + "/views/{view_id}/trend")
VIEW_ALERTING = Call("POST", _D + "/views/{view_id}/alerting", fields="request")
NOTIFICATIONS = Call("GET", "/notifications", "limit offset unread_only dataset_id")
UNREAD_COUNT = Call("GET", "/notifications/unread-count", "dataset_id")
READ_NOTIFICATION = Call("POST", "/notifications/{notification_id}/read")
READ_NOTIFICATIONS = Call("POST", "/notifications/read-all", "dataset_id")
NOTIFICATION_STREAM = Call("GET", "/notifications/stream", "dataset_id")

RESULTS = Call("POST", _D + "/results", fields="within vql search region sort ids window sample part entity_type")
TRAINING = Call("GET", _R + "/training", "target described")
ROWS = Call("GET", _R + "/rows", "offset limit columns")
EMBEDDINGS = Call("GET", _D + "/embeddings", "rid")
DATASET_SOURCES = Call("GET", _D + "/sources")
PROBLEMS = Call("GET", _D + "/problems")
SYNC = Call("POST", _D + "/sync", fields="apply remove mark_lost")
ACTIONS = Call("POST", _D + "/actions", fields="action on args expect_generation")
UNDO = Call("POST", _D + "/undo", fields="token")
REDO = Call("POST", _D + "/redo", fields="token")
STEP_VALUES = Call("GET", _D + "/journal/{step}")
JOURNAL = Call("GET", _D + "/journal", "offset limit")
TAGS = Call("GET", _D + "/tags")
CREATE_TAG = Call("POST", _D + "/tags", fields="name")
RENAME_TAG = Call("PATCH", _D + "/tags/{tag}", fields="name")
DELETE_TAG = Call("DELETE", _D + "/tags/{tag}")
FIELDS = Call("GET", _D + "/fields")
CREATE_FIELD = Call("POST", _D + "/fields", fields="field_name field_type enum_options is_multi")
RENAME_FIELD = Call("PATCH", _D + "/fields/{field}", fields="field_name")
DELETE_FIELD = Call("DELETE", _D + "/fields/{field}")
LABELS = Call("GET", _D + "/labels", "rid entity_type offset limit")
EVALUATION = Call("GET", _D + "/evaluation", "truth predictions iou")
EVALUATION_BOXES = Call("GET", _D + "/evaluation/boxes", "truth predictions iou kind")
LABEL_ISSUES = Call("GET", _D + "/labels/issues", "method offset limit without_tag")
OBJECT_ISSUES = Call("GET", _D + "/objects/issues", "truth predictions kind offset limit")
MISSING_LABELS = Call("GET", _D + "/labels/missing", "offset limit")
ACCEPT_LABELS = Call("POST", _D + "/labels/missing/accept", fields="minimum")
REFUSE_LABELS = Call("POST", _D + "/labels/missing/refuse", fields="ids")
ISSUES = Call("GET", _D + "/issues", "issue rid entity_type limit")
QUALITY = Call("GET", _D + "/quality", "column bins rid entity_type")
LIMITS = Call("GET", _D + "/limits")
SET_LIMITS = Call("POST", _D + "/limits", fields="limits reset")
DUPLICATES = Call("GET", _D + "/duplicates", "similarity exact near entity_type within_videos of rid offset limit")
VIDEO_COPIES = Call("GET", _D + "/duplicates/videos", "min_seconds rid offset limit")
DECISIONS = Call("GET", _D + "/decisions")
WITHDRAW_DECISION = Call("DELETE", _D + "/decisions/{decision_id}")
PLAN_CLEANUP = Call("POST", _D + "/cleanup/plan", fields="duplicates issues keep basket where unsure within_videos")
PLAN_WITHOUT = Call("POST", _D + "/cleanup/plan/{plan_id}/without", fields="media_ids")
PLAN_ROWS = Call("GET", _D + "/cleanup/plan/{plan_id}/rows")
APPLY_CLEANUP = Call("POST", _D + "/cleanup/apply", fields="plan_id delete_files")

INVITE = Call("PUT", "/manage/{dataset_id}/invite", fields="grant_to_user_email role")
MEMBERS = Call("GET", "/manage/{dataset_id}/share")
UNSHARE = Call("DELETE", "/manage/{dataset_id}/share", "email")

_U = "/keycloak/admin/users"
USERS = Call("GET", _U, "search max_results first")
CREATE_USER = Call("POST", _U, fields="username password firstName lastName enabled workspace_role")
USER = Call("GET", _U + "/{user_id}")
CHANGE_USER = Call("PATCH", _U + "/{user_id}", fields="username enabled")
DELETE_USER = Call("DELETE", _U + "/{user_id}")
RESET_PASSWORD = Call("POST", _U + "/{user_id}/reset-password", fields="password")
LOG_USER_OUT = Call("POST", _U + "/{user_id}/logout")
USER_SESSIONS = Call("GET", _U + "/{user_id}/sessions")
SET_USER_ROLES = Call("PUT", _U + "/{user_id}/roles", fields="roles")
TENANTS = Call("GET", "/workspaces", "organization_id")
TENANT = Call("GET", "/workspaces/{workspace_id}")
TENANT_MEMBERS = Call("GET", "/workspace/members", "workspace_id")
TENANT_ACCESS = Call("GET", "/workspace/settings/access", "workspace_id")
SET_MEMBER_ROLE = Call("PUT", "/workspace/members/{member_user_id}/role", fields="role workspace_id")
ORGANIZATIONS = Call("GET", "/organizations")
ORGANIZATION = Call("GET", "/organizations/{organization_id}")
ADMIN_SETTINGS = Call("GET", "/admin/settings", "key")
CHANGE_ADMIN_SETTING = Call("POST", "/admin/settings", fields="key value")
PREVIEW = Call("GET", "/process/preview", "path")
SOURCES = Call("GET", "/admin/sources")
RELOCATE = Call("POST", "/admin/relocate", fields="old new check force")
AUDIT = Call("GET", "/admin/audit", "limit offset user_id action dataset_id since until")

CALLS: tuple[Call, ...] = tuple(value for value in list(globals().values()) if isinstance(value, Call))
"""All calls."""
