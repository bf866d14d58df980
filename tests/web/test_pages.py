"""The files of the app: the page that loads it, the addresses that lead to it, its size and its licences."""

import gzip
import re
from pathlib import Path

import pytest

import framedex.web
from framedex import Workspace
from framedex.hub import Hub
from framedex.service.settings import ServiceSettings
from framedex.web import BUILD_HINT, AppPages
from tests.gallery import SETTINGS
from tests.service.client import client_of

STATIC = Path(framedex.web.__file__).parent / "static"
BUILT = pytest.mark.skipif(not AppPages().exist, reason=BUILD_HINT)


@pytest.fixture
def built(tmp_path: Path) -> AppPages:
    """A page like the built one."""
    page = '<meta name="framedex-base" content=""><script src="/static/app-1.js"></script>'
    (tmp_path / "index.html").write_text(page, encoding="utf-8")
    return AppPages(tmp_path)


def test_index__below_a_prefix(built: AppPages) -> None:
    """Behind a proxy with a path the page tells the app its base, and leads to the files below it."""
    assert built.index() == built.index("") == (built.folder / "index.html").read_text(encoding="utf-8")
    page = built.index('/a"b')
    assert page == '<meta name="framedex-base" content="/a&quot;b"><script src="/a&quot;b/static/app-1.js"></script>'


def test_pages__that_were_not_built(tmp_path: Path) -> None:
    """Without the build there is no page, and the answer says how to build it."""
    assert not AppPages(tmp_path / "none").exist


@pytest.mark.slow
@BUILT
@pytest.mark.parametrize(
    "path", ["/", "/d/pets", "/d/pets/m/1234", "/d/a%2Fb/pictures?f=x", "/tasks", "/login", "/users"]
)
def test_addresses__of_pages(tmp_path: Path, path: str) -> None:
    """Each address of the app has the page that loads it, with a policy that allows no script of others."""
    with (
        Workspace(tmp_path / "ws", settings=SETTINGS) as workspace,
        Hub(workspace) as hub,
        client_of(workspace, hub, ServiceSettings(disable_auth=False)) as client,
    ):
        answer = client.get(path)
        assert answer.status_code == 200
        assert answer.headers["content-type"] == "text/html; charset=utf-8"
        assert answer.headers["cache-control"] == "no-cache"
        policy = answer.headers["content-security-policy"]
        assert "default-src 'self'" in policy
        assert "unsafe" not in policy
        for name in re.findall(r'(?:src|href)="(/static/[^"]+)"', answer.text):
            file = client.get(name)
            assert (file.status_code, file.headers["x-content-type-options"]) == (200, "nosniff"), name
            assert "immutable" in file.headers["cache-control"]


@BUILT
def test_addresses__of_nothing(tmp_path: Path) -> None:
    """An address of the API that does not exist stays an error of the API, and no file outside the build is served."""
    with (
        Workspace(tmp_path / "ws", settings=SETTINGS) as workspace,
        Hub(workspace) as hub,
        client_of(workspace, hub, ServiceSettings()) as client,
    ):
        for path in ("/api/v1/nothing", "/static/nothing.js", "/static/../pages.py", "/static/%2e%2e/pages.py", "/x"):
            answer = client.get(path)
            assert answer.status_code == 404, path
            assert answer.json()["detail"], path


@BUILT
def test_size__of_the_start() -> None:
    """What the first page loads has at most 120 kB, 40 kB compressed, in at most 30 files; all has at most 600 kB."""
    page = (STATIC / "index.html").read_text(encoding="utf-8")
    names = re.findall(r'(?:src|href)="/static/([^"]+\.(?:js|css))"', page)
    sizes = [(STATIC / name).read_bytes() for name in names]
    assert len(names) <= 30
    assert sum(map(len, sizes)) <= 120_000
    assert sum(len(gzip.compress(each)) for each in sizes) <= 40_000
    assert sum(path.stat().st_size for path in STATIC.iterdir()) <= 600_000


@BUILT
def test_size__of_the_widget() -> None:
    """The module that notebooks keep for each widget has at most 8 kB; the app, once a page, 110 kB compressed."""
    assert len(AppPages().widget_loader().encode()) <= 8_000
    assert len(gzip.compress("".join(AppPages().widget_files()).encode())) <= 110_000


@BUILT
def test_files__name_no_other_host() -> None:
    """No built file names another host; the licences of what is bundled are there."""
    for path in STATIC.rglob("*.*"):
        if path.suffix in {".js", ".css", ".html"}:
            text = path.read_text(encoding="utf-8")
            assert set(re.findall(r"https?://[\w.]+", text)) <= {"http://www.w3.org"}, path.name
    licences = (STATIC / "licenses.txt").read_text(encoding="utf-8")
    assert "preact" in licences
    assert "MIT" in licences
