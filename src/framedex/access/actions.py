"""The actions that need a permission."""

from enum import StrEnum


class Action(StrEnum):
    """An action of a user. The part before the dot names the kind of its subject."""

    DATASET_VIEW = "dataset.view"
    DATASET_SEARCH_UPLOAD = "dataset.search_upload"
    DATASET_EXPORT = "dataset.export"
    DATASET_EDIT = "dataset.edit"
    DATASET_ENRICH = "dataset.enrich"
    DATASET_CLONE = "dataset.clone"
    DATASET_RENAME = "dataset.rename"
    DATASET_DELETE = "dataset.delete"
    DATASET_SHARE = "dataset.share"
    VIEW_CREATE = "view.create"
    VIEW_ALERTING = "view.alerting"
    VIEW_DELETE = "view.delete"
    TASK_VIEW = "task.view"
    TASK_ABORT = "task.abort"
    TASK_RETRY = "task.retry"
    EXPORT_VIEW_OTHERS = "export.view_others"
    TENANT_CREATE_DATASET = "tenant.create_dataset"
    TENANT_INGEST_PATH = "tenant.ingest_path"
    TENANT_VIEW = "tenant.view"
    TENANT_EDIT_ROLES = "tenant.edit_roles"
    ADMIN_SETTINGS = "admin.settings"
    OWN_ACCOUNT = "own.account"
    OWN_PASSWORD = "own.password"  # noqa: S105 - the name of an action
    OWN_CREDENTIALS = "own.credentials"
    USERS_READ = "users.read"
    USERS_WRITE = "users.write"
