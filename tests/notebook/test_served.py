"""The app as a page of a server in a thread."""

import urllib.request
from urllib.error import URLError

import pytest

from framedex import Dataset
from framedex.web import BUILD_HINT, AppPages
from tests.extras import need

need("http", "fastapi", "uvicorn", "argon2")

pytestmark = pytest.mark.skipif(not AppPages().exist, reason=BUILD_HINT)


def test_server__shows_the_app_in_a_frame(dataset: Dataset) -> None:
    """The frame has the address of the page; pages of this machine may show it, and no others; closing ends it."""
    app = dataset.view.limit(2).app(321, mode="server")
    try:
        assert app.url.startswith("http://127.0.0.1:")
        assert f"/d/{dataset.id}/pictures?f=" in app.url
        html = app._repr_html_()
        assert html.startswith("<iframe")
        assert "height: 321px" in html
        with urllib.request.urlopen(app.url, timeout=10) as answer:
            policy = answer.headers["content-security-policy"]
            assert answer.headers["x-frame-options"] is None
        assert "default-src 'self'" in policy
        ancestors = policy.split("frame-ancestors ")[1]
        assert ancestors == "'self' http://localhost:* http://127.0.0.1:* https://localhost:* vscode-webview:"
    finally:
        app.close()
    app.close()
    with pytest.raises(URLError):
        urllib.request.urlopen(app.url, timeout=5)
