"""Requests that a generator makes from the description of the API: no answer that the description does not have."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis.checks import CHECKS, load_all_checks
from schemathesis.core.result import Ok

from framedex import Workspace
from framedex.access import Role
from framedex.hub import Hub
from tests.gallery import make_gallery
from tests.laws import trials
from tests.prepared import prepared
from tests.service.client import token_of
from tests.service.test_server import Served, served
from tests.service.users import OPERATOR, PASSWORD

EXAMPLES = trials(3, 60)
ENDLESS = {"/api/v1/events", "/api/v1/notifications/stream"}
"""Paths whose answers have no end."""
KEPT = {
    ("DELETE", "/api/v1/dataset/{dataset_id}"),
    ("DELETE", "/api/v1/dataset/{dataset_id}/views/{view_id}"),
    ("DELETE", "/api/v1/keycloak/admin/users/{user_id}"),
}
"""Operations that get no id that exists, as they would take the thing from all others."""
PEOPLE = frozenset({"users", "workspaces", "admin", "sharing", "notifications", "account", "saved views", "oidc"})
"""Tags of the operations about people."""
EXCLUDED = {
    # Unknown parameters and fields are ignored, as the interface wants it: clients send more than is described.
    "negative_data_rejection",
    # What a description cannot say decides: the status of the dataset, the settings, the content of files.
    "positive_data_acceptance",
    # Without credentials everything is refused, which the generator's requests in the other test show.
    "ignored_auth",
    "missing_required_header",
    # These follow links between operations of several requests, which the description does not have.
    "use_after_free",
    "ensure_resource_availability",
    "object_level_authorization",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of a workspace with a dataset and a user with a key."""
    make_gallery(tmp_path / "gallery")
    with Workspace(tmp_path / "ws") as workspace:
        prepared(workspace, "pets", tmp_path / "gallery")
    return tmp_path / "ws"


def check_operation(
    operation: Any, server: Served, ids: Mapping[str, str], headers: dict[str, str], examples: int
) -> None:
    """Send requests of an operation and check the answers; about half of them have ids that exist in their path."""
    excluded = [check for check in CHECKS.get_all() if check.__name__ in EXCLUDED]
    is_kept = (operation.method.upper(), operation.path) in KEPT
    session = requests.Session()

    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(), known=st.booleans())
    def send(case: Any, known: bool) -> None:
        if known and not is_kept:
            case.path_parameters.update({name: ids[name] for name in ids.keys() & case.path_parameters.keys()})
        case.call_and_validate(
            base_url=server.url, headers=headers, excluded_checks=excluded, session=session, timeout=60
        )

    with session:
        send()


def check_operations(
    server: Served,
    ids: Mapping[str, str],
    headers: dict[str, str],
    examples: int,
    *,
    tags: frozenset[str] | None = None,
) -> int:
    """Send requests of all operations, or of those with a tag, and check the answers; return their number."""
    load_all_checks()
    description = schemathesis.openapi.from_url(f"{server.url}/api/v1/openapi.json")
    problems, count = {}, 0
    for result in description.get_all_operations():
        assert isinstance(result, Ok), result
        operation = result.ok()
        if operation.path in ENDLESS or (tags is not None and tags.isdisjoint(operation.definition.raw["tags"])):
            continue
        count += 1
        try:
            check_operation(operation, server, ids, headers, examples)
        except BaseExceptionGroup as group:
            problems[f"{operation.method.upper()} {operation.path}"] = [str(each) for each in group.exceptions]
    assert problems == {}
    return count


@pytest.mark.slow
@pytest.mark.soak
def test_answers__are_described(folder: Path) -> None:
    """Without log-ins each answer to each generated request is one that the description has, and none is a 5xx."""
    with Workspace(folder) as workspace:
        dataset_id = workspace.dataset("pets").id
    with served(folder) as server:
        assert check_operations(server, {"dataset_id": dataset_id}, {}, EXAMPLES) >= 60


@pytest.mark.slow
@pytest.mark.soak
def test_answers__are_described_with_accounts(folder: Path) -> None:
    """The same with log-ins, for a user with a token, and for nobody, to whom nothing but the public paths answers."""
    with Workspace(folder) as workspace, Hub(workspace) as hub:
        dataset_id = workspace.dataset("pets").id
        user = hub.users.create(OPERATOR, "eve", PASSWORD, role=Role.EDITOR)
        session = hub.sessions.log_in("eve", PASSWORD)
        key = hub.credentials.get(hub.sessions.actor(session.token))
    assert user.username == "eve"
    with served(folder, DISABLE_AUTH="false") as server:
        token = token_of(key.api_key, key.api_secret)
        check_operations(server, {"dataset_id": dataset_id}, {"Authorization": f"Bearer {token}"}, EXAMPLES // 2)
        check_operations(server, {"dataset_id": dataset_id}, {}, trials(1, 2))


@pytest.mark.slow
@pytest.mark.soak
def test_answers__are_described_to_admins(folder: Path) -> None:
    """The same for an admin, whom no operation about people refuses for a lack of rights."""
    with Workspace(folder) as workspace, Hub(workspace) as hub:
        dataset = workspace.dataset("pets")
        users = {role: hub.users.create(OPERATOR, f"the-{role}", PASSWORD, role=role) for role in Role}
        session = hub.sessions.log_in("the-admin", PASSWORD)
        key = hub.credentials.get(hub.sessions.actor(session.token))
        other, tenant = users[Role.VIEWER].id, hub.tenants.get(OPERATOR)
        ids = {
            "dataset_id": dataset.id, "view_id": dataset.save_view("all").id, "user_id": other, "member_user_id": other,
            "workspace_id": tenant.id, "organization_id": tenant.organization_id,
        }  # fmt: skip
    # With many workspaces a new admin takes nobody's place.
    with served(folder, DISABLE_AUTH="false", FRAMEDEX_MULTI_WORKSPACE="true") as server:
        headers = {"Authorization": f"Bearer {token_of(key.api_key, key.api_secret)}"}
        assert check_operations(server, ids, headers, EXAMPLES, tags=PEOPLE) >= 45
        assert server.get("/api/v1/me", **headers)["workspace_role"] == "admin"


def names_of_checks() -> Iterator[str]:
    """Return the names of the checks that there are."""
    load_all_checks()
    return (check.__name__ for check in CHECKS.get_all())


def test_checks__that_are_excluded_exist() -> None:
    """Each check that is left out is one of the generator's."""
    assert set(names_of_checks()) >= EXCLUDED
