"""The permission matrix on real accounts: each method of a hub that takes an actor, for each relation."""

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import pytest

from framedex import Error, Forbidden, InvalidInput, NotFound, Workspace
from framedex.access import (
    ANONYMOUS,
    Action,
    Actor,
    Answer,
    DatasetSubject,
    Role,
    Subject,
    TenantSubject,
    allowed,
    local_actor,
)
from framedex.errors import NotAuthenticated
from framedex.hub import Hub
from framedex.hub.exports import ExportRequest
from framedex.records import EntityType
from framedex.storage.service_db.database import DEFAULT_ID
from tests.access.test_rules import CELLS, COLUMNS
from tests.gallery import SETTINGS, fill
from tests.hub.people import OPERATOR, PASSWORD, add_user, log_in

HERE = DEFAULT_ID
OTHERS = ("operator", "token of an admin", "temporary password")
"""Actors beside those of the matrix, for whom the rules alone say what is expected."""
TABLE = {(action, column): answer for action, column, answer in CELLS}
_KINDS = {Answer.NO: Forbidden, Answer.HIDDEN: NotFound, Answer.NOT_AUTHENTICATED: NotAuthenticated}


@dataclass
class World:
    """A hub with two tenants, a dataset of the first, and an actor for each relation to it.

    Attributes:
        workspace: the workspace.
        hub: its hub, with many tenants.
        actors: the actors by the name of the relation.
        pets: the id of the dataset.
        task: the id of its task.
        export: the id of an export that another user started.
        numbers: of further things.
    """

    workspace: Workspace
    hub: Hub
    actors: dict[str, Actor] = field(default_factory=dict)
    pets: str = ""
    task: str = ""
    export: str = ""
    numbers: Iterator[int] = field(default_factory=count)

    def name(self) -> str:
        """Return a name that is free."""
        return f"name-{next(self.numbers)}"

    def user(self, role: str = "viewer") -> str:
        """Return the id of a new user of the first tenant."""
        return add_user(self.hub, self.name(), role).id

    def relate(self, dataset_id: str) -> None:
        """Give a dataset the owner and the grants of the relations."""
        self.hub.datasets.adopt(dataset_id, HERE, self.actors["owner"].user_id)
        for role in (Role.VIEWER, Role.EDITOR):
            self.hub.datasets.share(OPERATOR, dataset_id, f"granted-{role}", role)

    def draft(self) -> str:
        """Return the id of a new dataset without media, with the same relations."""
        dataset = self.hub.datasets.create(OPERATOR, self.name(), tenant_id=HERE)
        self.relate(dataset.id)
        return dataset.id

    def shared(self) -> str:
        """Return the name of a user with whom the dataset is shared."""
        name = self.name()
        add_user(self.hub, name)
        self.hub.datasets.share(OPERATOR, self.pets, name)
        return name

    def view(self) -> str:
        """Return the id of a new saved view of the operator."""
        return self.hub.views.create(OPERATOR, self.pets, self.name()).id

    def field(self) -> str:
        """Return the task of a field without values."""
        return self.hub.metadata.define(OPERATOR, self.pets, self.name(), "float")

    def wait(self, task_id: str) -> None:
        """Wait for a task."""
        self.workspace.task(task_id).wait()

    def request(self) -> ExportRequest:
        """Return a request for an export."""
        return ExportRequest("x.zip", "json", False, EntityType.IMAGES)

    def subject(self, action: Action, actor: Actor) -> Subject:
        """Return the subject of an action as the hub has it."""
        match action.partition(".")[0]:
            case "dataset" | "view" | "task" | "export":
                return DatasetSubject(HERE, "someone") if actor is ANONYMOUS else self._dataset(actor)
            case "tenant" | "admin":
                return TenantSubject(HERE)
            case _:
                return None

    def _dataset(self, actor: Actor) -> DatasetSubject:
        return self.hub.datasets.subject(actor, self.pets)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A world that the tests share; they add to it, and take away only what they added."""
    folder = tmp_path_factory.mktemp("matrix")
    with Workspace(folder / "ws", settings=SETTINGS) as workspace, Hub(workspace, is_multi=True) as hub:
        made = World(workspace, hub)
        elsewhere = hub.tenants.create(OPERATOR, "elsewhere").id
        for name in ("none", "granted-viewer", "granted-editor", "owner"):
            add_user(hub, name, "editor", tenant_id=elsewhere)
        for name in ("viewer", "editor", "admin", "maker"):
            add_user(hub, name, "admin" if name == "maker" else name)
        made.actors = {
            "nobody": ANONYMOUS,
            "local": local_actor("me"),
            **{column: log_in(hub, column.replace(" ", "-")) for column in COLUMNS[1:-1]},
            "operator": OPERATOR,
            "token of an admin": hub.credentials.actor(hub.credentials.get(log_in(hub, "admin")).api_key),
        }
        add_user(hub, "forgetful", "admin")
        hub.users.reset_password(OPERATOR, hub.users.find(OPERATOR, "forgetful").id, PASSWORD)
        made.actors["temporary password"] = log_in(hub, "forgetful")
        dataset = workspace.create_dataset("pets", fill(folder / "images", 3), "gist")
        made.pets, made.task = dataset.id, dataset.last_task.task_id  # type: ignore[union-attr] # one created it
        made.relate(made.pets)
        made.export = hub.exports.start(log_in(hub, "maker"), made.pets, made.request(), days=1).id
        yield made


@dataclass(frozen=True)
class Call:
    """A call of a method of a hub.

    Attributes:
        actions: what is required for it, in the order in which it is checked.
        run: calls the method.
        fails: the error with which a call that is allowed ends.
        hidden: the sentence for a subject that the actor must not learn of; None for that of the rules.
        without: actors who have no account, which the call is about.
    """

    actions: tuple[Action, ...]
    run: Callable[[World, Actor], object]
    fails: type[Error] | None = None
    hidden: str | None = None
    without: tuple[str, ...] = ()


def revoke(world: World, actor: Actor) -> None:
    """Revoke a key that was made just before."""
    with suppress(Error):
        world.hub.credentials.get(actor)
    world.hub.credentials.revoke(actor)


def clone(world: World, actor: Actor) -> None:
    """Clone the dataset, and wait for it."""
    task = world.hub.copies.clone(actor, world.pets).task
    assert task is not None
    task.wait()


def opening(action: Action) -> Call:
    """Return the call that opens the dataset for an action."""
    return Call((action,), lambda world, actor: world.hub.datasets.open(actor, world.pets, action))


def opening_task(action: Action) -> Call:
    """Return the call that opens the task for an action."""
    return Call(
        (action,), lambda world, actor: world.hub.tasks.open(actor, world.task, action), hidden="Task not found"
    )


A = Action
CALLS: Mapping[str, Call] = {
    **{f"Datasets.open {each}": opening(each) for each in Action if each.startswith(("dataset", "view"))},
    **{f"Tasks.open {each}": opening_task(each) for each in Action if each.startswith("task")},
    "Datasets.open_with_record": Call((A.DATASET_VIEW,), lambda w, a: w.hub.datasets.open_with_record(a, w.pets)),
    "Datasets.record": Call((A.DATASET_VIEW,), lambda w, a: w.hub.datasets.record(a, w.pets)),
    "Datasets.members": Call((A.DATASET_VIEW,), lambda w, a: w.hub.datasets.members(a, w.pets)),
    "Datasets.create": Call(
        (A.TENANT_CREATE_DATASET,), lambda w, a: w.hub.datasets.create(a, w.name(), tenant_id=HERE)
    ),
    "Datasets.create from the server": Call(
        (A.TENANT_CREATE_DATASET, A.TENANT_INGEST_PATH),
        lambda w, a: w.hub.datasets.create(a, w.name(), Path("/missing"), tenant_id=HERE),
        fails=InvalidInput,
    ),
    "Datasets.delete": Call((A.DATASET_DELETE,), lambda w, a: w.hub.datasets.delete(a, w.draft())),
    "Datasets.share": Call(
        (A.DATASET_SHARE,), lambda w, a: w.hub.datasets.share(a, w.pets, w.hub.users.get(OPERATOR, w.user()).username)
    ),
    "Datasets.unshare": Call((A.DATASET_SHARE,), lambda w, a: w.hub.datasets.unshare(a, w.pets, w.shared())),
    "Copies.clone": Call((A.DATASET_CLONE, A.TENANT_CREATE_DATASET), clone),
    "Copies.merge": Call(
        (A.DATASET_CLONE, A.TENANT_CREATE_DATASET),
        lambda w, a: w.hub.copies.merge(a, w.pets, w.pets, w.name()),
        fails=InvalidInput,
    ),
    "Copies.enrich": Call(
        (A.DATASET_ENRICH, A.TENANT_CREATE_DATASET),
        lambda w, a: w.hub.copies.enrich(a, w.pets, {"NO_SUCH_TYPE": "x"}),
        fails=InvalidInput,
    ),
    "Metadata.define": Call((A.DATASET_EDIT,), lambda w, a: w.hub.metadata.define(a, w.pets, w.name(), "float")),
    "Metadata.fill": Call(
        (A.DATASET_EDIT,), lambda w, a: w.wait(w.hub.metadata.fill(a, w.pets, w.field(), []).task_id)
    ),
    "Metadata.status": Call((A.DATASET_VIEW,), lambda w, a: w.hub.metadata.status(a, w.pets, w.field())),
    "SavedViews.of_dataset": Call((A.DATASET_VIEW,), lambda w, a: w.hub.views.of_dataset(a, w.pets)),
    "SavedViews.trend": Call((A.DATASET_VIEW,), lambda w, a: w.hub.views.trend(a, w.pets, w.view())),
    "SavedViews.create": Call((A.VIEW_CREATE,), lambda w, a: w.hub.views.create(a, w.pets, w.name())),
    "SavedViews.set_alerting": Call(
        (A.VIEW_ALERTING,), lambda w, a: w.hub.views.set_alerting(a, w.pets, w.view(), enabled=True)
    ),
    "SavedViews.delete": Call((A.VIEW_DELETE,), lambda w, a: w.hub.views.delete(a, w.pets, w.view())),
    "SavedViews.open": Call((A.VIEW_DELETE,), lambda w, a: w.hub.views.open(a, w.pets, w.view(), A.VIEW_DELETE)),
    "HubExports.start": Call((A.DATASET_EXPORT,), lambda w, a: w.hub.exports.start(a, w.pets, w.request(), days=1)),
    "HubExports.get": Call((A.DATASET_VIEW, A.EXPORT_VIEW_OTHERS), lambda w, a: w.hub.exports.get(a, w.pets, w.export)),
    "HubExports.of_dataset": Call((A.DATASET_VIEW,), lambda w, a: w.hub.exports.of_dataset(a, w.pets)),
    "HubExports.path": Call(
        (A.DATASET_EXPORT, A.EXPORT_VIEW_OTHERS), lambda w, a: w.hub.exports.path(a, w.pets, w.export)
    ),
    "Tenants.get": Call((A.TENANT_VIEW,), lambda w, a: w.hub.tenants.get(a, HERE)),
    "Tenants.members": Call((A.TENANT_VIEW,), lambda w, a: w.hub.tenants.members(a, HERE)),
    "Tenants.set_role": Call(
        (A.TENANT_EDIT_ROLES,), lambda w, a: w.hub.tenants.set_role(a, w.user(), Role.EDITOR, tenant_id=HERE)
    ),
    "Hub.audit": Call((A.ADMIN_SETTINGS,), lambda w, a: w.hub.audit(a)),
    "AdminSettings.values": Call((A.ADMIN_SETTINGS,), lambda w, a: w.hub.admin_settings.values(a)),
    "AdminSettings.get": Call((A.ADMIN_SETTINGS,), lambda w, a: w.hub.admin_settings.get(a, "LOG_LEVEL")),
    "AdminSettings.change": Call(
        (A.ADMIN_SETTINGS,), lambda w, a: w.hub.admin_settings.change(a, "ADD_MEDIA_ENABLED", True)
    ),
    "Identities.resolve": Call((A.USERS_READ,), lambda w, a: w.hub.identities.resolve(a, w.user())),
    "Identities.of_users": Call((A.USERS_READ,), lambda w, a: w.hub.identities.of_users(a, [w.user()])),
    "Trail.page": Call((A.ADMIN_SETTINGS,), lambda w, a: w.hub.trail.page(a)),
    "Hub.profile": Call((A.OWN_ACCOUNT,), lambda w, a: w.hub.profile(a)),
    "Sessions.change_password": Call(
        (A.OWN_PASSWORD,),
        lambda w, a: w.hub.sessions.change_password(a, PASSWORD, PASSWORD),
        fails=InvalidInput,
        without=("operator",),
    ),
    "Credentials.get": Call((A.OWN_CREDENTIALS,), lambda w, a: w.hub.credentials.get(a), without=("operator",)),
    "Credentials.rotate": Call((A.OWN_CREDENTIALS,), lambda w, a: w.hub.credentials.rotate(a), without=("operator",)),
    "Credentials.revoke": Call((A.OWN_CREDENTIALS,), revoke, without=("operator",)),
    "Users.page": Call((A.USERS_READ,), lambda w, a: w.hub.users.page(a)),
    "Users.get": Call((A.USERS_READ,), lambda w, a: w.hub.users.get(a, w.user())),
    "Users.find": Call((A.USERS_READ,), lambda w, a: w.hub.users.find(a, w.user())),
    "Users.sessions": Call((A.USERS_READ,), lambda w, a: w.hub.users.sessions(a, w.user())),
    "Users.create": Call((A.USERS_WRITE,), lambda w, a: w.hub.users.create(a, w.name(), PASSWORD)),
    "Users.change": Call((A.USERS_WRITE,), lambda w, a: w.hub.users.change(a, w.user(), enabled=False)),
    "Users.delete": Call((A.USERS_WRITE,), lambda w, a: w.hub.users.delete(a, w.user())),
    "Users.reset_password": Call((A.USERS_WRITE,), lambda w, a: w.hub.users.reset_password(a, w.user(), PASSWORD)),
    "Users.log_out": Call((A.USERS_WRITE,), lambda w, a: w.hub.users.log_out(a, w.user())),
    "Users.set_roles": Call((A.USERS_WRITE,), lambda w, a: w.hub.users.set_roles(a, w.user(), ["view-users"])),
}
LISTS = {
    "Datasets.permissions",
    "Datasets.visible",
    "Tasks.search",
    "Tasks.filters",
    "Events.listen",
    "Feed.listen",
    "Tenants.visible",
    "Tenants.find",
    "Tenants.organizations",
    "Tenants.organization",
    "Tenants.access",
}
"""Methods that leave out what the actor must not see; tests below compare them with the rules."""
OF_THE_OPERATOR = {"Tenants.create", "Tenants.create_organization", "Tenants.add_member"}
UNCHECKED = {
    "Trail.note": "notes what was allowed and done",
    "Hub.check": "is the check itself",
    "Datasets.adopt": "stores what was allowed and done",
    "Datasets.subject": "returns the subject of a check",
    "Tenants.primary": "is about the actor alone",
    **{
        f"Notifications.{name}": "is about the actor alone; tests of notifications have who may not log in"
        for name in ("search", "count_unread", "read", "read_all", "number_of", "after")
    },
    **{f"OwnSessions.{name}": "is about the actor alone" for name in ("live", "end", "end_all")},
    "Results.open": "takes a dataset that was opened for the actor, and keeps results apart for each actor",
    "Results.of_media": "as Results.open",
    "Results.of_view": "as Results.open",
    "Results.get": "as Results.open",
    "Results.keep_plan": "as Results.open",
    "Results.plan": "as Results.open",
}


def methods(hub: Hub) -> set[str]:
    """Return the names of all public methods of a hub and its parts that take an actor."""
    parts = [hub, *(part for name, part in vars(hub).items() if not name.startswith("_"))]
    return {
        f"{type(part).__name__}.{name}"
        for part in parts
        for name, method in inspect.getmembers(type(part), inspect.isfunction)
        if not name.startswith("_") and "actor" in inspect.signature(method).parameters
    }


@pytest.mark.slow
def test_methods__are_all_there(world: World) -> None:
    """Each method that takes an actor is called here, or named with the reason why it need not be."""
    named = {name.partition(" ")[0] for name in CALLS} | LISTS | OF_THE_OPERATOR | UNCHECKED.keys()
    assert named == methods(world.hub)
    assert {action for call in CALLS.values() for action in call.actions} == set(Action)


def expected(world: World, call: Call, column: str) -> str:
    """Return the outcome of a call by the rules, which must be that of the table."""
    actor = world.actors[column]
    for action in call.actions:
        verdict = allowed(actor, action, world.subject(action, actor))
        if (action, column) in TABLE:
            assert verdict.answer is TABLE[action, column], (action, column)
        if not verdict:
            is_hidden = verdict.answer is Answer.HIDDEN and call.hidden is not None
            return f"{_KINDS[verdict.answer].__name__}: {call.hidden if is_hidden else verdict.reason}"
    return "yes" if call.fails is None else call.fails.__name__


def outcome(world: World, call: Call, column: str) -> str:
    """Return the outcome of a call."""
    try:
        call.run(world, world.actors[column])
    except (Forbidden, NotFound, NotAuthenticated) as error:
        return type(error).__name__ if call.fails is type(error) else f"{type(error).__name__}: {error}"
    except Error as error:
        return type(error).__name__
    return "yes"


@pytest.mark.slow
@pytest.mark.parametrize("name", CALLS)
def test_matrix(world: World, name: str) -> None:
    """A method does what it should for those who may, and refuses the others with the sentence of the rules."""
    call = CALLS[name]
    columns = [column for column in (*COLUMNS, *OTHERS) if column not in call.without]
    outcomes = {column: outcome(world, call, column) for column in columns}
    assert outcomes == {column: expected(world, call, column) for column in columns}


@pytest.mark.parametrize("column", [*COLUMNS[1:], *OTHERS[:-1]])
def test_lists__have_what_may_be_seen(world: World, column: str) -> None:
    """Lists have a dataset, its tasks and its tenant if the actor may view them, and else do not name them."""
    actor, hub = world.actors[column], world.hub
    sees = bool(allowed(actor, Action.DATASET_VIEW, hub.datasets.subject(actor, world.pets)))
    assert sees is (TABLE.get((Action.DATASET_VIEW, column), Answer.YES) is Answer.YES)
    assert (world.pets in {record.id for record in hub.datasets.visible(actor)}) is sees
    assert (Action.DATASET_VIEW in hub.datasets.permissions(actor).get(world.pets, [])) is sees
    assert (world.task in {task.task_id for task in hub.tasks.search(actor, page_size=50).tasks}) is sees
    assert (world.pets in hub.tasks.filters(actor).dataset_ids) is sees
    listener = hub.events.listen(actor)
    hub.events.leave(listener)
    assert (world.pets in listener.visible) is sees
    sees_tenant = bool(allowed(actor, Action.TENANT_VIEW, TenantSubject(HERE)))
    assert (HERE in {tenant.id for tenant in hub.tenants.visible(actor)}) is sees_tenant
    access = hub.tenants.access(actor, HERE)
    assert access.can_access is sees_tenant
    assert access.can_manage is bool(allowed(actor, Action.TENANT_EDIT_ROLES, TenantSubject(HERE)))
    if sees_tenant:
        assert hub.tenants.find(actor, HERE).id == HERE
    else:
        with pytest.raises(NotFound):
            hub.tenants.find(actor, HERE)


def test_lists__without_a_log_in(world: World) -> None:
    """Nobody gets a list, and no user whose password is temporary."""
    hub = world.hub
    calls: list[Callable[[Actor], object]] = [
        hub.datasets.visible,
        hub.datasets.permissions,
        hub.tasks.search,
        hub.tasks.filters,
        hub.events.listen,
        hub.feed.listen,
        hub.notifications.search,
        hub.tenants.visible,
        hub.tenants.organizations,
        lambda actor: hub.tenants.find(actor, HERE),
        lambda actor: hub.tenants.organization(actor, HERE),
        lambda actor: hub.tenants.access(actor, HERE),
    ]
    for call in calls:
        with pytest.raises(NotAuthenticated):
            call(ANONYMOUS)
        with pytest.raises(Forbidden, match="Password change required"):
            call(world.actors["temporary password"])


def test_operator__alone_makes_tenants(world: World) -> None:
    """Organizations, tenants and their members are the operator's to make, not an admin's."""
    hub = world.hub
    calls: list[Callable[[Actor], object]] = [
        lambda actor: hub.tenants.create(actor, world.name()),
        lambda actor: hub.tenants.create_organization(actor, world.name()),
        lambda actor: hub.tenants.add_member(actor, hub.tenants.create(OPERATOR, world.name()).id, "admin"),
    ]
    for call in calls:
        for column, actor in world.actors.items():
            if column == "operator":
                call(actor)
                continue
            with pytest.raises(NotAuthenticated if column == "nobody" else Forbidden):
                call(actor)
