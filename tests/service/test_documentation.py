"""The documentation of the API: its page and what the page loads."""

import re
from pathlib import Path

import pytest

from framedex.service.openapi import openapi_text
from tests.service.client import Client


def test_page__loads_local_files(open_client: Client) -> None:
    """The page and all that it loads come from the service; the policy of its content allows no other host."""
    page = open_client.get("/api/v1/docs")
    assert page.status_code == 200
    found = re.findall(r'(?:src|href)="([^"]+)"', page.text)
    assert len(found) == 5
    for path in found:
        if not path.startswith("data:"):
            answer = open_client.get(f"/api/v1/{path}")
            assert answer.status_code == 200, path
            assert "http://" not in path
            assert "https://" not in path
    assert "default-src 'self'" in page.headers["Content-Security-Policy"]
    assert "unsafe-eval" not in page.headers["Content-Security-Policy"]


@pytest.mark.slow
def test_schema__is_served(open_client: Client) -> None:
    """The description of the API is public, and says which version of Framedex it describes."""
    schema = open_client.get("/api/v1/openapi.json").json()
    assert schema["info"]["title"] == "Framedex"
    assert "/api/v1/me" in schema["paths"]


@pytest.mark.slow
def test_schema__is_the_file() -> None:
    """The description in the documentation is that of the routes; `make schema` writes it."""
    path = Path(__file__).parents[2] / "docs" / "openapi.json"
    assert path.read_text(encoding="utf-8") == openapi_text()
