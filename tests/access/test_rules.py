"""The permission matrix, row by row, and its limits."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from framedex.access import (
    ANONYMOUS,
    Action,
    Actor,
    Answer,
    DatasetSubject,
    RealmRole,
    Role,
    Subject,
    TenantSubject,
    UserSubject,
    Via,
    allowed,
    local_actor,
    operator_actor,
    require,
)
from framedex.errors import Forbidden, NotAuthenticated, NotFound
from tests.laws import examples

HERE, ELSEWHERE = "tenant", "another tenant"
ANN = "ann"
YES, HIDDEN, NO, UNKNOWN = Answer.YES, Answer.HIDDEN, Answer.NO, Answer.NOT_AUTHENTICATED
_ANSWERS = {"yes": YES, "404": HIDDEN, "403": NO, "401": UNKNOWN}

# Nobody, no relation, granted viewer, granted editor, owner, viewer, editor and admin of the tenant, local user.
MATRIX = """
dataset.view            401 404 yes yes yes yes yes yes yes
dataset.search_upload   401 404 yes yes yes yes yes yes yes
dataset.export          401 404 403 yes yes 403 yes yes yes
dataset.edit            401 404 403 yes yes 403 yes yes yes
dataset.enrich          401 404 403 403 yes 403 yes yes yes
dataset.clone           401 404 403 403 yes 403 yes yes yes
dataset.rename          401 404 403 403 yes 403 403 yes yes
dataset.delete          401 404 403 403 yes 403 403 yes yes
dataset.share           401 404 403 403 yes 403 403 yes 403
view.create             401 404 403 yes yes 403 yes yes yes
view.alerting           401 404 403 yes yes 403 yes yes yes
view.delete             401 404 403 yes yes 403 yes yes yes
task.view               401 404 yes yes yes yes yes yes yes
task.abort              401 404 403 yes yes 403 yes yes yes
task.retry              401 404 403 yes yes 403 yes yes yes
export.view_others      401 404 404 404 yes 404 404 yes yes
tenant.create_dataset   401 403   -   -   - 403 yes yes yes
tenant.ingest_path      401 403   -   -   - 403 403 yes yes
tenant.view             401 404   -   -   - yes yes yes yes
tenant.edit_roles       401 404   -   -   - 403 403 yes 403
admin.settings          401 403   -   -   - 403 403 yes yes
own.account             401 yes   -   -   - yes yes yes yes
own.password            401 yes   -   -   - yes yes yes 403
own.credentials         401 yes   -   -   - yes yes yes 403
users.read              401 403   -   -   - 403 403 yes 403
users.write             401 403   -   -   - 403 403 yes 403
"""
COLUMNS = ("nobody", "none", "granted viewer", "granted editor", "owner", "viewer", "editor", "admin", "local")


def actor(column: str) -> Actor:
    """Return the actor of a column."""
    match column:
        case "nobody":
            return ANONYMOUS
        case "local":
            return local_actor("ann@example.org")
        case "viewer" | "editor" | "admin":
            realm = frozenset(RealmRole) if column == "admin" else frozenset[str]()
            return Actor(ANN, roles={HERE: Role(column)}, realm_roles=realm)
        case _:
            return Actor(ANN, roles={ELSEWHERE: Role.ADMIN})


def subject(action: Action, column: str) -> Subject:
    """Return the subject of an action for the actor of a column."""
    match action.partition(".")[0]:
        case "dataset" | "view" | "task" | "export":
            grants = {"granted viewer": Role.VIEWER, "granted editor": Role.EDITOR}
            return DatasetSubject(HERE, ANN if column == "owner" else "someone", grants.get(column))
        case "tenant" | "admin":
            return TenantSubject(HERE)
        case _:
            return None


CELLS = [
    (Action(name), column, _ANSWERS[answer])
    for name, *answers in (line.split() for line in MATRIX.split("\n") if line)
    for column, answer in zip(COLUMNS, answers, strict=True)
    if answer != "-"
]


def test_matrix__is_whole() -> None:
    """Each action has a row."""
    assert {action for action, _, _ in CELLS} == set(Action)


@pytest.mark.parametrize(("action", "column", "answer"), CELLS, ids=[f"{a}-{c}" for a, c, _ in CELLS])
def test_matrix(action: Action, column: str, answer: Answer) -> None:
    """Each cell of the matrix holds, and each refusal says why."""
    verdict = allowed(actor(column), action, subject(action, column))
    assert verdict.answer is answer
    assert bool(verdict) is (answer is YES)
    assert bool(verdict.reason) is (answer is not YES)
    expected = {YES: None, NO: Forbidden, HIDDEN: NotFound, UNKNOWN: NotAuthenticated}[answer]
    if expected is None:
        require(actor(column), action, subject(action, column))
    else:
        with pytest.raises(expected, match=verdict.reason):
            require(actor(column), action, subject(action, column))


def test_several_relations() -> None:
    """An actor with several relations to a dataset may do what one of them allows."""
    viewer = actor("viewer")
    assert not allowed(viewer, Action.DATASET_EDIT, DatasetSubject(HERE))
    assert allowed(viewer, Action.DATASET_EDIT, DatasetSubject(HERE, grant=Role.EDITOR))
    assert allowed(viewer, Action.DATASET_DELETE, DatasetSubject(HERE, owner_id=ANN))


def test_roles__hold_in_their_tenant() -> None:
    """The admin of another tenant does not learn that a dataset or a tenant exists."""
    stranger = Actor(ANN, roles={ELSEWHERE: Role.ADMIN}, realm_roles=frozenset(RealmRole))
    for action in Action:
        if (about := subject(action, "none")) is not None:
            assert not allowed(stranger, action, about)
    assert allowed(stranger, Action.DATASET_VIEW, DatasetSubject(HERE)).answer is HIDDEN


ROLES = st.dictionaries(st.sampled_from(["a", "b", "c"]), st.sampled_from(Role))


@examples(100)
@given(ROLES, ROLES, st.booleans())
def test_accounts__are_changed_from_above(own: dict[str, Role], theirs: dict[str, Role], manages: bool) -> None:
    """An account may be changed only by who manages users and may do in each tenant what the account may."""
    realm = frozenset({RealmRole.MANAGE_USERS} if manages else {RealmRole.VIEW_USERS})
    someone, order = Actor(ANN, roles=own, realm_roles=realm), list(Role)
    rights = {(tenant, lower) for tenant, role in theirs.items() for lower in order[: order.index(role) + 1]}
    has = {(tenant, lower) for tenant, role in own.items() for lower in order[: order.index(role) + 1]}
    assert bool(allowed(someone, Action.USERS_WRITE, UserSubject(theirs))) is (manages and rights <= has)
    assert allowed(operator_actor("op"), Action.USERS_WRITE, UserSubject(theirs))
    assert not allowed(local_actor("me"), Action.USERS_WRITE, UserSubject(theirs))


def test_own_things() -> None:
    """Who may only view a dataset may delete the views that they made, and see the exports that they started."""
    viewer = actor("viewer")
    own, other = DatasetSubject(HERE, is_own=True), DatasetSubject(HERE)
    assert allowed(viewer, Action.VIEW_DELETE, own)
    assert not allowed(viewer, Action.VIEW_DELETE, other)
    assert allowed(viewer, Action.EXPORT_VIEW_OTHERS, own)
    assert allowed(viewer, Action.EXPORT_VIEW_OTHERS, other).answer is HIDDEN
    assert allowed(actor("none"), Action.VIEW_DELETE, own).answer is HIDDEN


def test_ingest_path_role() -> None:
    """A setting lets editors create datasets from folders of the server, but nobody below."""
    about = TenantSubject(HERE, ingest_path_role=Role.EDITOR)
    assert allowed(actor("editor"), Action.TENANT_INGEST_PATH, about)
    assert not allowed(actor("viewer"), Action.TENANT_INGEST_PATH, about)


@pytest.mark.parametrize("role", list(RealmRole))
def test_realm_roles(role: RealmRole) -> None:
    """Users are read with one of two roles and changed with one; the others grant nothing."""
    someone = Actor(ANN, realm_roles=frozenset({role}))
    assert bool(allowed(someone, Action.USERS_READ)) is (role in (RealmRole.MANAGE_USERS, RealmRole.VIEW_USERS))
    assert bool(allowed(someone, Action.USERS_WRITE)) is (role is RealmRole.MANAGE_USERS)


def test_temporary_password() -> None:
    """A user with a temporary password may only look at the account and change the password."""
    someone = Actor(ANN, roles={HERE: Role.ADMIN}, realm_roles=frozenset(RealmRole), password_is_temporary=True)
    open_to_them = {action for action in Action if allowed(someone, action, subject(action, "admin"))}
    assert open_to_them == {Action.OWN_ACCOUNT, Action.OWN_PASSWORD}
    assert allowed(someone, Action.DATASET_VIEW, DatasetSubject(HERE)).reason == "Password change required"


def test_tokens__manage_no_credentials() -> None:
    """An API key has the rights of its user, but changes neither passwords nor keys."""
    someone = Actor(ANN, roles={HERE: Role.ADMIN}, realm_roles=frozenset(RealmRole), via=Via.TOKEN)
    closed = {action for action in Action if not allowed(someone, action, subject(action, "admin"))}
    assert closed == {Action.OWN_PASSWORD, Action.OWN_CREDENTIALS}


def test_local_user__is_no_account() -> None:
    """The id of the local user grants nothing where authentication is on."""
    impostor = Actor(local_actor("x").user_id)
    assert allowed(impostor, Action.DATASET_VIEW, DatasetSubject(HERE)).answer is HIDDEN


def test_operator() -> None:
    """Who has the files of the workspace may do everything."""
    operator = operator_actor("root")
    assert all(allowed(operator, action, subject(action, "none")) for action in Action)
    assert not operator.is_local


def test_wrong_subject() -> None:
    """A mistake of the caller is never an answer."""
    admin = actor("admin")
    for action in Action:
        is_of_dataset = isinstance(subject(action, "admin"), DatasetSubject)
        wrong: Subject = TenantSubject(HERE) if is_of_dataset else DatasetSubject(HERE)
        with pytest.raises(TypeError, match=str(action)):
            allowed(admin, action, wrong)
