"""The permission matrix: the relation of an actor to a subject decides which actions are allowed."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import Enum, StrEnum

from framedex.access.actions import Action
from framedex.access.actors import Actor, DatasetSubject, RealmRole, Role, Subject, TenantSubject, UserSubject, Via
from framedex.errors import Forbidden, NotAuthenticated, NotFound


class Answer(StrEnum):
    """An answer to whether an action is allowed."""

    YES = "yes"
    HIDDEN = "hidden"
    """The actor must not learn that the subject exists."""
    NO = "no"
    NOT_AUTHENTICATED = "not authenticated"


@dataclass(frozen=True)
class Verdict:
    """An answer, with a sentence for the user unless it is yes."""

    answer: Answer
    reason: str = ""

    def __bool__(self) -> bool:
        return self.answer is Answer.YES


class _Relation(Enum):
    """A relation of an actor to a dataset or a tenant."""

    LOCAL = "local"
    OWNER = "owner"
    GRANTED_VIEWER = "granted viewer"
    GRANTED_EDITOR = "granted editor"
    VIEWER = "viewer"
    EDITOR = "editor"
    ADMIN = "admin"


_LOCAL, _OWNER = _Relation.LOCAL, _Relation.OWNER
_GRANTED_VIEWER, _GRANTED_EDITOR = _Relation.GRANTED_VIEWER, _Relation.GRANTED_EDITOR
_VIEWER, _EDITOR, _ADMIN = _Relation.VIEWER, _Relation.EDITOR, _Relation.ADMIN

_VIEWERS = frozenset(_Relation)
_EDITORS = frozenset({_GRANTED_EDITOR, _OWNER, _EDITOR, _ADMIN, _LOCAL})
_MAKERS = frozenset({_OWNER, _EDITOR, _ADMIN, _LOCAL})
_OWNERS = frozenset({_OWNER, _ADMIN, _LOCAL})
_ADMINS = frozenset({_ADMIN, _LOCAL})

_OF_DATASETS: Mapping[Action, frozenset[_Relation]] = {
    Action.DATASET_VIEW: _VIEWERS,
    Action.DATASET_SEARCH_UPLOAD: _VIEWERS,
    Action.DATASET_EXPORT: _EDITORS,
    Action.DATASET_EDIT: _EDITORS,
    Action.DATASET_ENRICH: _MAKERS,
    Action.DATASET_CLONE: _MAKERS,
    Action.DATASET_RENAME: _OWNERS,
    Action.DATASET_DELETE: _OWNERS,
    Action.DATASET_SHARE: _OWNERS - {_LOCAL},
    Action.VIEW_CREATE: _EDITORS,
    Action.VIEW_ALERTING: _EDITORS,
    Action.VIEW_DELETE: _EDITORS,
    Action.TASK_VIEW: _VIEWERS,
    Action.TASK_ABORT: _EDITORS,
    Action.TASK_RETRY: _EDITORS,
    Action.EXPORT_VIEW_OTHERS: _OWNERS,
}
_OF_TENANTS: Mapping[Action, frozenset[_Relation]] = {
    Action.TENANT_CREATE_DATASET: frozenset({_EDITOR, _ADMIN, _LOCAL}),
    Action.TENANT_INGEST_PATH: frozenset({_EDITOR, _ADMIN, _LOCAL}),
    Action.TENANT_VIEW: frozenset({_VIEWER, _EDITOR, _ADMIN, _LOCAL}),
    Action.TENANT_EDIT_ROLES: frozenset({_ADMIN}),
    Action.ADMIN_SETTINGS: _ADMINS,
}
_WITH_TEMPORARY_PASSWORD = frozenset({Action.OWN_ACCOUNT, Action.OWN_PASSWORD})

_ORDER = (Role.VIEWER, Role.EDITOR, Role.ADMIN)
_ABOVE = "Only who has at least the role of a user in each workspace of the user may create or change the account"
_NO_WRITE = "You do not have write access to this dataset"
_NO_MANAGEMENT = "User management is not enabled"
_NO_CREATION = "You may not create datasets in this workspace"
_REASONS: Mapping[Action, str] = {
    Action.DATASET_EXPORT: "You do not have permission to export this dataset",
    Action.DATASET_ENRICH: "You do not have permission to enrich this dataset",
    Action.DATASET_CLONE: "You do not have permission to copy this dataset",
    Action.DATASET_RENAME: "Only the owner of a dataset and administrators may rename it",
    Action.DATASET_DELETE: "Only the owner of a dataset and administrators may delete it",
    Action.DATASET_SHARE: "Only the owner of a dataset and administrators may share it",
    Action.TENANT_CREATE_DATASET: _NO_CREATION,
    Action.TENANT_INGEST_PATH: "You may not create datasets from folders of the server",
    Action.TENANT_EDIT_ROLES: "Only administrators of a workspace may change roles",
    Action.ADMIN_SETTINGS: "Only administrators may see and change the settings",
    Action.OWN_PASSWORD: "Passwords need a browser session",
    Action.OWN_CREDENTIALS: "API credentials need a browser session",
    Action.USERS_READ: "Insufficient roles",
    Action.USERS_WRITE: "Insufficient roles",
}
_YES = Verdict(Answer.YES)
_DATASET_HIDDEN = Verdict(Answer.HIDDEN, "Dataset not found")
_TENANT_HIDDEN = Verdict(Answer.HIDDEN, "Workspace not found")


def allowed(actor: Actor, action: Action, subject: Subject = None) -> Verdict:
    """Return whether an actor may do something.

    Args:
        actor: the user.
        action: what is to be done.
        subject: what it is about.

    Raises:
        TypeError: the subject is not of the kind that the action is about.
    """
    if actor.user_id is None:
        return Verdict(Answer.NOT_AUTHENTICATED, "Not authenticated")
    if actor.via is Via.FILES:
        return _YES
    if actor.password_is_temporary and action not in _WITH_TEMPORARY_PASSWORD:
        return Verdict(Answer.NO, "Password change required")
    if action in _OF_DATASETS:
        if not isinstance(subject, DatasetSubject):
            raise TypeError(f"{action} is about a dataset, not {subject!r}")
        return _of_dataset(actor, action, subject)
    if action in _OF_TENANTS:
        if not isinstance(subject, TenantSubject):
            raise TypeError(f"{action} is about a tenant, not {subject!r}")
        return _of_tenant(actor, action, subject)
    if isinstance(subject, UserSubject) and action is Action.USERS_WRITE:
        return _of_user(actor, subject)
    if subject is not None:
        raise TypeError(f"{action} has no subject, not {subject!r}")
    return _of_users(actor, action)


def dataset_permissions(actor: Actor, subject: DatasetSubject) -> list[Action]:
    """Return what an actor may do with a dataset, in the order of the actions; nothing if it is hidden."""
    return [action for action in Action if action in _OF_DATASETS and allowed(actor, action, subject)]


def require(actor: Actor, action: Action, subject: Subject = None) -> None:
    """Check that an actor may do something.

    Raises:
        NotAuthenticated: nobody is logged in.
        NotFound: the actor must not learn that the subject exists.
        Forbidden: the actor may not do it.
        TypeError: the subject is not of the kind that the action is about.
    """
    verdict = allowed(actor, action, subject)
    match verdict.answer:
        case Answer.NOT_AUTHENTICATED:
            raise NotAuthenticated(verdict.reason)
        case Answer.HIDDEN:
            raise NotFound(verdict.reason)
        case Answer.NO:
            raise Forbidden(verdict.reason)


def _of_dataset(actor: Actor, action: Action, subject: DatasetSubject) -> Verdict:
    relations = _relations(actor, subject.tenant_id)
    if not actor.is_local:
        if subject.owner_id is not None and subject.owner_id == actor.user_id:
            relations.add(_OWNER)
        if subject.grant is not None:
            relations.add(_GRANTED_VIEWER if subject.grant is Role.VIEWER else _GRANTED_EDITOR)
    if not relations:
        return _DATASET_HIDDEN
    if _any(relations, _OF_DATASETS[action]) or (action is Action.VIEW_DELETE and subject.is_own):
        return _YES
    if action is Action.EXPORT_VIEW_OTHERS:
        return _YES if subject.is_own else Verdict(Answer.HIDDEN, "Export not found")
    if action is Action.DATASET_SHARE and actor.is_local:
        return Verdict(Answer.NO, _NO_MANAGEMENT)
    return Verdict(Answer.NO, _REASONS.get(action, _NO_WRITE))


def _of_tenant(actor: Actor, action: Action, subject: TenantSubject) -> Verdict:
    relations = _relations(actor, subject.tenant_id)
    if action is Action.TENANT_EDIT_ROLES and actor.is_local:
        return Verdict(Answer.NO, _NO_MANAGEMENT)
    if action is Action.TENANT_INGEST_PATH and subject.ingest_path_role is Role.ADMIN:
        relations.discard(_EDITOR)
    if _any(relations, _OF_TENANTS[action]):
        return _YES
    if not relations and action in (Action.TENANT_VIEW, Action.TENANT_EDIT_ROLES):
        return _TENANT_HIDDEN
    return Verdict(Answer.NO, _REASONS.get(action, _NO_CREATION))


def _of_users(actor: Actor, action: Action) -> Verdict:
    match action:
        case Action.OWN_ACCOUNT:
            return _YES
        case Action.OWN_PASSWORD | Action.OWN_CREDENTIALS:
            if actor.via is Via.DISABLED:
                return Verdict(Answer.NO, "Authentication is disabled")
            if actor.via is Via.TOKEN:
                return Verdict(Answer.NO, _REASONS[action])
            return _YES
        case Action.USERS_READ | Action.USERS_WRITE:
            if actor.is_local:
                return Verdict(Answer.NO, _NO_MANAGEMENT)
            wanted = {RealmRole.MANAGE_USERS, RealmRole.VIEW_USERS}
            if action is Action.USERS_WRITE:
                wanted = {RealmRole.MANAGE_USERS}
            return _YES if wanted & actor.realm_roles else Verdict(Answer.NO, _REASONS[action])
        case _:
            raise TypeError(f"{action} has no rule")


def _of_user(actor: Actor, subject: UserSubject) -> Verdict:
    """Return whether an actor may change an account: only with at least its role in each of its tenants.

    Who sets the password of an account may do what that account may.
    """
    verdict = _of_users(actor, Action.USERS_WRITE)
    has_more = any(
        tenant_id not in actor.roles or _ORDER.index(role) > _ORDER.index(actor.roles[tenant_id])
        for tenant_id, role in subject.roles.items()
    )
    return Verdict(Answer.NO, _ABOVE) if verdict and has_more else verdict


def _relations(actor: Actor, tenant_id: str) -> set[_Relation]:
    """Return the relations of an actor to a tenant, and so to all its datasets."""
    if actor.is_local:
        return {_LOCAL}
    role = actor.roles.get(tenant_id)
    return set() if role is None else {{Role.VIEWER: _VIEWER, Role.EDITOR: _EDITOR, Role.ADMIN: _ADMIN}[role]}


def _any(relations: Collection[_Relation], sufficient: frozenset[_Relation]) -> bool:
    return not sufficient.isdisjoint(relations)
