"""The permission matrix over HTTP: each route that names an action, for each relation to its subject."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import pytest
from fastapi.routing import APIRoute
from starlette.testclient import TestClient

from framedex import Workspace
from framedex.access import ANONYMOUS, Action, Actor, Answer, Role, TenantSubject, allowed, local_actor
from framedex.core.ids import new_id
from framedex.hub import Hub
from framedex.hub.exports import ExportRequest
from framedex.records import ApiCredentials, EntityType
from framedex.service.actions import needs_of
from framedex.storage.service_db.database import DEFAULT_ID
from tests.access.test_rules import CELLS, COLUMNS, actor, subject
from tests.gallery import fill
from tests.image_files import encode, photo
from tests.service.client import LOCAL, OWN, Client, client_of, many_tenants, token_of
from tests.service.test_routes import routes_of_service
from tests.service.users import OPERATOR, PASSWORD

HERE = DEFAULT_ID
TEMPORARY = "temporary password"
TABLE = {(action, column): answer for action, column, answer in CELLS}
KEYS = {
    "key of the owner": "owner",
    "key of an editor": "editor",
    "key of a viewer": "viewer",
    "key of a granted editor": "granted editor",
    "key of a granted viewer": "granted viewer",
    "key of an admin": "admin",
}
"""API keys, each with the relation of its user, whose rights it has."""
DEAD_KEYS = ("revoked key", "key of a disabled user")
STATUSES = {Answer.NO: 403, Answer.HIDDEN: 404, Answer.NOT_AUTHENTICATED: 401}
LEFT_OUT = {
    Action.TENANT_INGEST_PATH: "the routes of /process check it beside the creation of a dataset",
    Action.EXPORT_VIEW_OTHERS: "the routes of exports check it beside the view of the dataset",
}
"""Actions that no route names."""
ALSO = {
    "/api/v1/dataset/{dataset_id}/export_status": Action.EXPORT_VIEW_OTHERS,
    "/cdn/{dataset_id}/exports/{export_id}/{file_name}": Action.EXPORT_VIEW_OTHERS,
    "/api/v1/dataset/{dataset_id}/snapshot/{snapshot_id}/clone": Action.TENANT_CREATE_DATASET,
    "/api/v1/dataset/{dataset_id}/clone": Action.TENANT_CREATE_DATASET,
    "/api/v1/dataset/{dataset_id}/merge": Action.TENANT_CREATE_DATASET,
    "/api/v1/dataset/{dataset_id}/enrich_dataset": Action.TENANT_CREATE_DATASET,
    "/api/v1/process": Action.TENANT_INGEST_PATH,
}
"""Actions that routes check after the one that they name."""
BY_MEDIA = "/api/v1/image/{image_id}"
"""The path of a route about a dataset that follows from a media item, which else is not found."""
IN_QUERY = ("/api/v1/user_config", "/api/v1/process/add_media")
"""Paths of routes about a dataset that is in the query."""
USERS = "/api/v1/keycloak/admin/users"
LOG_OUT = "/api/v1/logout"
ENDING = {("DELETE", "/api/v1/sessions"), ("DELETE", "/api/v1/sessions/{session_id}")}
"""What else ends sessions of the user who asks, beside logging out."""
ENDLESS = ("/api/v1/events", "/api/v1/notifications/stream")
"""Paths whose answers have no end, so that only the refusals are asked for."""
UNDONE = {
    Action.OWN_PASSWORD: "would change the password; the tests of accounts do",
    Action.DATASET_ENRICH: "needs a model",
    Action.TASK_ABORT: "needs a task that runs",
    Action.TASK_RETRY: "needs a task that failed",
    Action.TENANT_INGEST_PATH: "needs a folder below a root",
}
"""Actions whose requests here are not done in the end, for a reason that comes after the permission."""
WHOLE = (Action.DATASET_SHARE, Action.USERS_READ, Action.USERS_WRITE, Action.TENANT_VIEW, Action.TENANT_EDIT_ROLES)
"""Actions of which each route is done for each who may."""
REASONS = {
    verdict.reason
    for action in Action
    for column in COLUMNS
    if not (verdict := allowed(actor(column), action, subject(action, column)))
} | {"Task not found", "Password change required"}


@dataclass
class Site:
    """A service with log-ins, one without, and a user for each relation to a dataset and its tenant.

    Attributes:
        workspace: the workspace.
        hub: its users, in many tenants.
        client: of the service with log-ins; it has no cookies.
        local: of the service without.
        tokens: the tokens of sessions by the relation of the user.
        keys: API keys with their secrets, by column.
        pets: the id of the dataset.
        ids: further ids, by the names of parameters of paths.
        numbers: of further things.
    """

    workspace: Workspace
    hub: Hub
    client: Client
    local: Client
    tokens: dict[str, str] = field(default_factory=dict)
    keys: dict[str, ApiCredentials] = field(default_factory=dict)
    pets: str = ""
    ids: dict[str, str] = field(default_factory=dict)
    numbers: Iterator[int] = field(default_factory=count)

    def name(self) -> str:
        """Return a name that is free."""
        return f"name-{next(self.numbers)}"

    def token(self, column: str) -> str:
        """Return the token of a new session of a user."""
        return self.hub.sessions.log_in(column.replace(" ", "-"), PASSWORD).token

    def actor(self, column: str) -> Actor:
        """Return the actor of a relation."""
        if column == "nobody" or column in DEAD_KEYS:
            return ANONYMOUS
        if column in KEYS:
            return self.hub.credentials.actor(self.keys[column].api_key)
        return local_actor("me") if column == "local" else self.hub.sessions.actor(self.tokens[column])

    def make_keys(self) -> None:
        """Give each user of a column an API key with a new secret, as tests of sessions may have revoked it."""
        sessions = self.hub.sessions
        for column, owner in KEYS.items():
            self.keys[column] = self.hub.credentials.rotate(sessions.actor(self.token(owner)))
        for column in DEAD_KEYS:
            user = self.hub.users.create(OPERATOR, self.name(), PASSWORD, role=Role.EDITOR)
            actor = sessions.actor(sessions.log_in(user.username, PASSWORD).token)
            self.keys[column] = self.hub.credentials.get(actor)
            if column == DEAD_KEYS[0]:
                self.hub.credentials.revoke(actor)
            else:
                self.hub.users.change(OPERATOR, user.id, enabled=False)

    def relate(self, dataset_id: str) -> None:
        """Give a dataset the owner and the grants of the relations."""
        owner = self.hub.users.find(OPERATOR, "owner").id
        self.hub.datasets.adopt(dataset_id, HERE, owner)
        for role in (Role.VIEWER, Role.EDITOR):
            self.hub.datasets.share(OPERATOR, dataset_id, f"granted-{role}", role)

    def draft(self) -> str:
        """Return the id of a new dataset without media, with the same relations."""
        dataset = self.hub.datasets.create(OPERATOR, self.name(), tenant_id=HERE)
        self.relate(dataset.id)
        return dataset.id

    def user(self) -> str:
        """Return the id of a new viewer."""
        return self.hub.users.find(OPERATOR, self.added()).id

    def added(self) -> str:
        """Return the name of a new viewer."""
        return self.hub.users.create(OPERATOR, self.name(), PASSWORD).username

    def ask(self, route: APIRoute, method: str, column: str) -> Any:
        """Return the answer to a request of a user."""
        own = self._arguments(method, route.path)
        ids = {**{name: new_id() for name in route.param_convertors}, **self.ids, **own.pop("ids", {})}
        path = route.path
        for name in route.param_convertors:
            path = path.replace(f"{{{name}}}", ids[name])
        if route.path in IN_QUERY:
            own["params"] = {"dataset_id": self.pets, **own.get("params", {})}
        headers = dict(OWN)
        if column in self.tokens:
            if route.path == LOG_OUT:
                self.tokens[column] = self.token(column)
            headers["Cookie"] = f"SESSION={self.tokens[column]}"
        if column in self.keys:
            key = self.keys[column]
            headers["Authorization"] = f"Bearer {token_of(key.api_key, key.api_secret)}"
        asking: TestClient = self.local if column == "local" else self.client
        answer = asking.request(method, path, headers=headers, follow_redirects=False, **own)
        is_ending = route.path == LOG_OUT or (method, route.path) in ENDING
        if is_ending and column in self.tokens:
            self.tokens[column] = self.token(column)
        return answer

    def _arguments(self, method: str, path: str) -> dict[str, Any]:
        """Return what a request needs to be done, or to be refused for a reason after the permission."""
        below = "/api/v1/dataset/{dataset_id}"
        export = {"file_name": "x", "export_format": "json"}
        match method, path:
            case "DELETE", "/api/v1/dataset/{dataset_id}":
                return {"ids": {"dataset_id": self.draft()}}
            case "PATCH", "/api/v1/dataset/{dataset_id}":
                return {"json": {"description": self.name()}}
            case "GET", "/api/v1/ingestion/new_dataset":
                return {"params": {"dataset_name": self.name()}}
            case _, "/api/v1/process":
                return {"params": {"name": self.name(), "path": "/missing"}}
            case "POST", "/api/v1/datasets/{dataset_id}/custom_metadata/tasks":
                return {"json": {"field_name": self.name(), "field_type": "float"}}
            case "POST", "/api/v1/datasets/{dataset_id}/custom_metadata/tasks/{task_id}":
                return {"ids": {"task_id": new_id()}, "json": []}
            case "GET", _ if path == f"{below}/export_context_async":
                return {"params": export}
            case "GET", _ if path == f"{below}/export_status":
                return {"params": {"export_task_id": self.ids["export_id"]}}
            case "POST", _ if path == f"{below}/search-image-similarity":
                return {"files": {"file": ("x.jpg", encode(photo(1)), "image/jpeg")}}
            case "POST", _ if path == f"{below}/views":
                return {"data": {"name": self.name()}}
            case _, _ if "{view_id}" in path:
                view = self.hub.views.create(OPERATOR, self.pets, self.name())
                return {
                    "ids": {"view_id": view.id},
                    **({} if method == "DELETE" else {"json": {"request": {"enabled": False}}}),
                }
            case "POST", _ if path == f"{below}/enrich_dataset":
                return {"json": {"name": self.name(), "enrichment_models": {"NO_SUCH_TYPE": "x"}}}
            case "POST", _ if path == f"{below}/merge":
                return {"json": {"name": self.name(), "other": self.pets}}
            case "PUT", "/api/v1/manage/{dataset_id}/invite":
                return {"json": {"grant_to_user_email": self.added()}}
            case "POST", "/api/v1/dataset/{dataset_id}/share":
                return {"data": {"user_email": self.added()}}
            case "DELETE", "/api/v1/manage/{dataset_id}/share":
                name = self.added()
                self.hub.datasets.share(OPERATOR, self.pets, name)
                return {"params": {"email": name}}
            case "POST", _ if path == USERS:
                names = {"firstName": "A", "lastName": "B"}
                return {"json": {"username": self.name(), "password": PASSWORD, **names}}
            case _, _ if path.startswith(USERS):
                body: dict[str, Any] = {"enabled": True, "password": PASSWORD, "roles": []}
                return {"ids": {"user_id": self.user()}, **({} if method in ("GET", "DELETE") else {"json": body})}
            case "PUT", "/api/v1/workspace/members/{member_user_id}/role":
                return {"ids": {"member_user_id": self.user()}, "json": {"role": "editor", "workspace_id": HERE}}
            case _, "/api/v1/workspace/members":
                return {"params": {"workspace_id": HERE}}
            case "POST" | "PUT" | "PATCH", _:
                return {"json": {}}
        return {}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A site that the tests share; they add to it, and take away only what they added."""
    folder = tmp_path_factory.mktemp("matrix")
    with ExitStack() as stack:
        workspace, hub, client = stack.enter_context(many_tenants(folder / "ws"))
        local = stack.enter_context(client_of(workspace, hub, LOCAL))
        made = Site(workspace, hub, client, local)
        elsewhere = hub.tenants.create(OPERATOR, "elsewhere").id
        for name in ("none", "granted-viewer", "granted-editor", "owner"):
            hub.users.create(OPERATOR, name, PASSWORD, role=Role.EDITOR, tenant_id=elsewhere)
        for name in ("viewer", "editor", "admin", "maker", "temporary-password"):
            role = Role(name) if name in set(Role) else Role.ADMIN
            hub.users.create(OPERATOR, name, PASSWORD, role=role)
        hub.users.reset_password(OPERATOR, hub.users.find(OPERATOR, "temporary-password").id, PASSWORD)
        made.tokens = {column: made.token(column) for column in (*COLUMNS[1:-1], TEMPORARY)}
        dataset = workspace.create_dataset("pets", fill(folder / "images", 3), "gist")
        made.pets = dataset.id
        made.relate(dataset.id)
        maker = hub.sessions.actor(hub.sessions.log_in("maker", PASSWORD).token)
        request = ExportRequest("x.zip", "json", False, EntityType.IMAGES)
        assert dataset.last_task is not None
        made.ids = {
            "dataset_id": dataset.id,
            "task_id": dataset.last_task.task_id,
            "media_id": dataset.view.media_ids()[0],
            "image_id": dataset.view.media_ids()[0],
            "export_id": hub.exports.start(maker, dataset.id, request, days=1).id,
            "snapshot_id": "current",
            "workspace_id": HERE,
            "organization_id": DEFAULT_ID,
            "file_name": "x.zip",
        }
        yield made


def expected(site: Site, route: APIRoute, column: str) -> tuple[int, str] | None:
    """Return the status and the sentence of a refusal by the rules, which must be that of the table; None for none."""
    wanted, who = needs_of(route.endpoint), site.actor(column)
    assert wanted.action is not None
    if column == "local" and (refusal := wanted.unless(site.local.app.state.service)) is not None:  # type: ignore[attr-defined] # the application has it
        return 403, refusal
    if column in DEAD_KEYS:
        return 401, "Invalid or expired token"
    if (column == "local" or column in KEYS) and route.path == LOG_OUT:  # there is no session
        return 401, "Not authenticated"
    for named in (wanted.action, *([ALSO[route.path]] if route.path in ALSO else [])):
        kind = named.partition(".")[0]
        is_about_dataset = "{dataset_id}" in route.path or route.path in (*IN_QUERY, BY_MEDIA)
        is_listed = not is_about_dataset and (kind != "task" or "{task_id}" not in route.path)
        is_list = kind in ("dataset", "view", "task", "export") and is_listed
        action = Action.OWN_ACCOUNT if is_list else named
        about, is_here = _subject(site, action, who, route.path)
        verdict = allowed(who, action, about)
        if column in KEYS and action in (Action.OWN_PASSWORD, Action.OWN_CREDENTIALS):
            assert verdict.answer is Answer.NO, "a key gives no other secrets"
        elif is_here and (action, KEYS.get(column, column)) in TABLE:
            assert verdict.answer is TABLE[action, KEYS.get(column, column)], (action, column)
        if is_listed and column == TEMPORARY and action is Action.OWN_ACCOUNT:
            return _closed(route)
        if not verdict and column != "nobody" and route.path == BY_MEDIA:
            return 404, "Media not found"
        if not verdict:
            is_task = verdict.answer is Answer.HIDDEN and kind == "task"
            return STATUSES[verdict.answer], "Task not found" if is_task else verdict.reason
    return None


OPEN_AT_ONCE = (
    "/api/v1/me",
    "/api/v1/logout",
    "/api/v1/oidc/logout",
    "/api/v1/vql/schema",
    "/api/v1/datasets/sample_data",
)
"""Paths that a user with a temporary password may ask for, beside that of the password itself."""


def _closed(route: APIRoute) -> tuple[int, str] | None:
    return None if route.path in OPEN_AT_ONCE else (403, "Password change required")


def _subject(site: Site, action: Action, who: Actor, path: str) -> tuple[Any, bool]:
    """Return the subject of an action, and whether it is that of the relations."""
    kind = action.partition(".")[0]
    if kind in ("dataset", "view", "task", "export"):
        return (subject(action, "none") if who is ANONYMOUS else site.hub.datasets.subject(who, site.pets)), True
    if kind == "admin":
        return TenantSubject(HERE), True
    if kind == "tenant":
        is_here = action is Action.TENANT_VIEW or "{dataset_id}" in path
        tenant_id = HERE if is_here else (site.hub.tenants.primary(who) or HERE)
        return TenantSubject(tenant_id), tenant_id == HERE
    return None, True


ROUTES: Mapping[Action, list[APIRoute]] = {
    action: [route for route in routes_of_service() if needs_of(route.endpoint).action is action] for action in Action
}
_MANY = (Action.DATASET_VIEW, Action.DATASET_EDIT, Action.OWN_ACCOUNT)
_QUICK = (Action.VIEW_CREATE, Action.DATASET_SHARE, Action.OWN_CREDENTIALS)


def test_actions__have_routes() -> None:
    """Each action has a route, or is one of those that are left out with a reason."""
    assert {action for action, routes in ROUTES.items() if not routes} <= LEFT_OUT.keys()


@pytest.mark.parametrize(
    "action", [pytest.param(each, marks=[pytest.mark.slow] * (each in _MANY)) for each in Action if ROUTES[each]]
)
def test_matrix(site: Site, action: Action) -> None:
    """Who may, gets an answer, and is done at least once; others get the status and the sentence of the rules."""
    check(site, action, [*COLUMNS, TEMPORARY])


@pytest.mark.slow
@pytest.mark.parametrize(
    "action", [pytest.param(each, marks=[pytest.mark.slow] * (each not in _QUICK)) for each in Action if ROUTES[each]]
)
def test_matrix__of_keys(site: Site, action: Action) -> None:
    """An API key may do what its user may, but for passwords and keys; one that is dead may do nothing."""
    site.make_keys()
    check(site, action, [*KEYS, *DEAD_KEYS])


def check(site: Site, action: Action, columns: Sequence[str]) -> None:
    """Compare the answers of all routes of an action with the rules."""
    wrong, done, undone = {}, set(), set()
    may = {column for column in columns for route in ROUTES[action] if expected(site, route, column) is None}
    for route in ROUTES[action]:
        for method in sorted((route.methods or set()) - {"HEAD"}):
            for column in columns:
                refusal = expected(site, route, column)
                if refusal is None and route.path in ENDLESS:
                    continue
                answer = site.ask(route, method, column)
                found = (answer.status_code, _detail(answer))
                done |= {column} if answer.status_code < 300 else set()
                undone |= {(method, route.path)} if refusal is None and answer.status_code >= 300 else set()
                is_right = found == refusal if refusal is not None else found[1] not in REASONS and found[0] < 500
                if not is_right:
                    wrong[method, route.path, column] = (found, refusal)
    assert wrong == {}
    assert action in UNDONE or done == may
    assert action not in WHOLE or undone == set()


def _detail(answer: Any) -> str:
    is_json = answer.headers.get("content-type", "").startswith("application/json")
    content = answer.json() if is_json else None
    return str(content.get("detail", "")) if isinstance(content, dict) else ""
