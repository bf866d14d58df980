"""Health, log-in, the own account and API credentials."""

from tests.service.client import Client


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
