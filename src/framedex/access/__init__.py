"""Permissions: who may do what with which subject. Pure functions of records, without input or output."""

from framedex.access.actions import Action
from framedex.access.actors import (
    ANONYMOUS,
    LOCAL_USER_ID,
    Actor,
    DatasetSubject,
    RealmRole,
    Role,
    Subject,
    TenantSubject,
    UserSubject,
    Via,
    local_actor,
    operator_actor,
)
from framedex.access.rules import Answer, Verdict, allowed, dataset_permissions, require

__all__ = [
    "ANONYMOUS",
    "LOCAL_USER_ID",
    "Action",
    "Actor",
    "Answer",
    "DatasetSubject",
    "RealmRole",
    "Role",
    "Subject",
    "TenantSubject",
    "UserSubject",
    "Verdict",
    "Via",
    "allowed",
    "dataset_permissions",
    "local_actor",
    "operator_actor",
    "require",
]
