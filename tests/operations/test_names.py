"""Names of the operations that run as tasks."""

from framedex.api import retry
from framedex.operations.names import Operation


def test_operations__are_those_that_tasks_store() -> None:
    """The names are kept in workspaces, so none changes."""
    assert sorted(Operation) == [
        "add_field",
        "add_media",
        "add_objects",
        "cleanup",
        "clone",
        "create",
        "delete_media",
        "enrich",
        "map",
        "merge",
        "reindex",
        "restore",
        "set_field",
    ]


def test_operations__can_each_be_retried() -> None:
    """For each operation there is a way to make its job again."""
    assert retry._JOBS.keys() == set(Operation)
