"""Names of the operations that run as tasks."""

from enum import StrEnum


class Operation(StrEnum):
    """Name of an operation that runs as a task, as the task's row stores it and messages show it."""

    CREATE = "create"
    ADD_MEDIA = "add_media"
    ADD_OBJECTS = "add_objects"
    REINDEX = "reindex"
    DELETE_MEDIA = "delete_media"
    CLEANUP = "cleanup"
    ADD_FIELD = "add_field"
    SET_FIELD = "set_field"
    ENRICH = "enrich"
    RESTORE = "restore"
    CLONE = "clone"
    MERGE = "merge"
    MAP = "map"
