"""Shared fixtures: a gallery of images with known truth, indexed once, and fresh workspaces."""

import gc
import os
import shutil
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import chdir, suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import settings

from framedex import Workspace
from framedex.encoders import registry
from tests.buckets import Service
from tests.environment import Environment, restored
from tests.executors.ray_cluster import ACCESS, ray_cluster
from tests.gallery import SETTINGS, VERIFYING, Gallery, fill, make_gallery
from tests.laws import QUICK
from tests.prepared import new_workspace
from tests.tuning import Tuning, tuned

settings.load_profile(QUICK)  # `--hypothesis-profile=full` comes after this

# Weights in the cache of whoever runs the tests would make another encoder the default one.
os.environ["HF_HUB_CACHE"] = str(Path(__file__).parent / "no-cache-of-the-hub")
os.environ["FRAMEDEX_MODELS"] = str(Path(__file__).parent / "no-models")

if find_spec("argon2"):
    import argon2

    argon2.profiles.RFC_9106_LOW_MEMORY = argon2.profiles.CHEAPEST  # a hash of a password takes a millisecond

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # As in the background of a shell, and in all that is started there; tests of interrupts need them.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Iterator[None]:
    """Let every second process of a run of all tests import their modules from the last one on.

    The first run in a clone rewrites the assertions of each module, which takes as long as a tenth of the tests. Two
    processes so write half of the modules each, and read the others.

    Modules and tests live to the end. They are left out of garbage collection, which would visit them again and again:
    a quarter of the time of the collection of tests.
    """
    gc.disable()
    if session.config.args == ["tests"] and int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:]) % 2:
        root = Path(__file__).parent
        for path in sorted(root.rglob("test_*.py"), reverse=True):
            with suppress(Exception):  # which the collection reports
                import_module(".".join(path.relative_to(root.parent).with_suffix("").parts))
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the laws, which hypothesis runs: `make test-all` tries them on more examples.

    Sequences of many steps take minutes there. They come first, so that no process begins one when all others are done.
    Then come those that need what takes ten seconds of a processor to start: most of them are in one process.
    """
    items.sort(key=lambda item: ("__any_" not in item.nodeid, *_slow_starts(item)))
    for item in items:
        if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
            item.add_marker("law")


def _slow_starts(item: pytest.Item) -> tuple[bool, bool]:
    """Return whether a test needs no cluster of Ray, and no PyTorch."""
    words = ("_clip", "captioner", "torch")
    return "ray_address" not in getattr(item, "fixturenames", ()), not any(word in item.nodeid for word in words)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what became of the work that tests have killed, by its kind."""
    reports = [*terminalreporter.getreports("passed"), *terminalreporter.getreports("failed")]
    found = Counter(tuple(value) for each in reports for name, value in each.user_properties if name == "kill")
    for kind in dict.fromkeys(kind for kind, _ in found):
        outcomes = ", ".join(f"{count} {outcome}" for (of, outcome), count in sorted(found.items()) if of == kind)
        terminalreporter.write_line(f"killed: {kind}: {outcomes}")


@pytest.fixture(scope="session")
def gallery(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gallery]:
    """The gallery, indexed once; tests read it and leave it as it is."""
    home = tmp_path_factory.mktemp("gallery")
    folder = home / "images"
    make_gallery(folder)
    with Workspace(home / "workspace", settings=SETTINGS) as workspace:
        dataset = workspace.create_dataset("gallery", folder, "gist")
        rows = dataset.to_arrow(["media_id", "image_filename"]).to_pylist()
        yield Gallery(folder, workspace, dataset, {row["image_filename"]: row["media_id"] for row in rows})


@pytest.fixture(scope="session")
def ray_address() -> Iterator[str]:
    """The address of a cluster of Ray that tests join."""
    with ray_cluster() as made:
        yield made


@pytest.fixture(autouse=True)
def _registered_as_before() -> Iterator[None]:
    """Encoders that a test registers are gone after it, also if it undoes its own patches before."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(registry, "_SCHEMES", dict(registry._SCHEMES))
        yield


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    """A workspace of its own for one test."""
    with new_workspace(tmp_path / "workspace", SETTINGS) as opened:
        yield opened


@pytest.fixture
def verifying(tmp_path: Path) -> Iterator[Workspace]:
    """A workspace of its own for one test, in which copies are verified by keypoints."""
    with new_workspace(tmp_path / "verifying", VERIFYING) as opened:
        yield opened


@pytest.fixture
def environment() -> Iterator[Environment]:
    """The environment of the process, which a test may change."""
    with restored() as variables:
        yield variables


@pytest.fixture
def set_free_space(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """A function that sets how many bytes are free on all disks, as the system says."""

    def set_bytes(free: int) -> None:
        usage = SimpleNamespace(free=free)
        monkeypatch.setattr(shutil, "disk_usage", lambda _path: usage)

    return set_bytes


@pytest.fixture
def tuning() -> Iterator[Tuning]:
    """The tuning constants of the package, which a test may change."""
    with tuned() as constants:
        yield constants


@pytest.fixture
def in_tmp_path(tmp_path: Path) -> Iterator[Path]:
    """The folder of a test, in which it runs."""
    with chdir(tmp_path):
        yield tmp_path


@pytest.fixture
def on_ray(ray_address: str, environment: Environment) -> None:
    """An environment in which programs join a cluster of Ray."""
    environment.update({**ACCESS, "RAY_ADDRESS": ray_address})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with six images that have nothing in common."""
    return fill(tmp_path / "images", 6)


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """A browser for all tests of a process."""
    from tests.browser.pages import running_browser

    with running_browser() as running:
        yield running


@pytest.fixture
def open_page(browser: Any) -> Iterator[Callable[..., Any]]:
    """A function that opens pages of a service; at the end none has logged an error or asked another host."""
    from tests.browser.pages import opened_pages

    with opened_pages(browser) as opened:
        yield opened


@pytest.fixture(scope="session")
def service() -> Iterator[Service]:
    """A service of buckets on loopback; each test has buckets of its own in it."""
    with restored() as variables:
        for name, value in (("ACCESS_KEY_ID", "reader"), ("SECRET_ACCESS_KEY", "x"), ("EC2_METADATA_DISABLED", "true")):
            variables[f"AWS_{name}"] = value
        for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_ENDPOINT_URL"):
            variables.pop(name, None)
        opened = Service()
        yield opened
        opened.stop()
