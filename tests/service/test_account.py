"""Health, log-in, the own account and API credentials."""

import pytest

from framedex.errors import NotAuthenticated
from framedex.hub import Hub
from tests.service.client import OWN, Client
from tests.service.users import PASSWORD


def test_health__needs_nobody(open_client: Client) -> None:
    """The health of the service is told to everybody, in the words that clients read."""
    answer = open_client.get("/api/v1/healthcheck")
    assert (answer.status_code, answer.text) == (200, '{"status":"healthy"}')
    assert open_client.get("/api/v1/ready").json() == {"ready": True, "reason": None}


def test_me__of_nobody(open_client: Client) -> None:
    """Without credentials there is a 401 with one sentence in both fields, a code and the request's id."""
    answer = open_client.get("/api/v1/me")
    body = answer.json()
    assert answer.status_code == 401
    assert body["detail"] == body["message"] == "Not authenticated"
    assert (body["code"], body["request_id"]) == ("not_authenticated", answer.headers["X-Request-ID"])


def test_me__of_a_session_a_token_and_the_local_user(open_client: Client, local: Client) -> None:
    """The own account says how the user was authenticated."""
    open_client.log_in("ann")
    own = open_client.get("/api/v1/me").json()
    assert (own["username"], own["workspace_role"], own["auth"]) == ("ann", "admin", "session")
    headers = open_client.bearer("eve")
    assert open_client.get("/api/v1/me", headers=headers).json()["auth"] == "token"
    assert local.get("/api/v1/me").json()["auth"] == "disabled"


def test_sessions__are_seen_and_ended_by_their_user(open_client: Client, hub: Hub) -> None:
    """A user sees where they are logged in, and ends one of these sessions or all; those of others do not exist."""
    url = "/api/v1/sessions"
    elsewhere = hub.sessions.log_in("ann", PASSWORD, ip="10.0.0.7", user_agent="<b>phone</b>")
    other = hub.sessions.log_in("vic", PASSWORD)
    open_client.log_in("ann")
    here, there = open_client.get(url).json()
    assert (here["is_current"], there["is_current"]) == (True, False)
    assert (there["ip"], there["user_agent"]) == ("10.0.0.7", "<b>phone</b>")
    assert there["start"].endswith("Z")
    of_vic = hub.own_sessions.live(hub.sessions.actor(other.token))[0].id
    for unknown in (of_vic, "nothing"):
        refused = open_client.delete(f"{url}/{unknown}", headers=OWN)
        assert (refused.status_code, refused.json()["detail"]) == (404, "Session not found")
    assert open_client.delete(f"{url}/{there['id'].upper()}", headers=OWN).status_code == 200
    with pytest.raises(NotAuthenticated):
        hub.sessions.actor(elsewhere.token)
    assert [each["id"] for each in open_client.get(url).json()] == [here["id"]]
    hub.sessions.log_in("ann", PASSWORD)
    assert open_client.delete(url, headers={"Origin": "https://evil.example"}).status_code == 403
    assert open_client.delete(url, headers=OWN).json() == {"message": "2 sessions ended"}
    assert open_client.get(url).status_code == 401
    assert hub.sessions.actor(other.token).name == "vic@example.org"


def test_sessions__without_log_ins(local: Client) -> None:
    """While authentication is off nobody has a session."""
    assert local.get("/api/v1/sessions").json() == []
    assert local.delete("/api/v1/sessions/nothing", headers=OWN).status_code == 404
    assert local.delete("/api/v1/sessions", headers=OWN).json() == {"message": "0 sessions ended"}
