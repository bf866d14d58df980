"""The build of the app: what makes it stale, and what happens where it is impossible."""

import importlib.util
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.environment import Environment

ROOT = Path(__file__).parent.parent.parent
_MADE = shutil.ignore_patterns("node_modules", "build-test", "schema.d.ts")


@pytest.fixture
def hook() -> Any:
    """The module of the build hook, which is no part of the package."""
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def project(tmp_path: Path, hook: Any) -> Path:
    """A folder with the source of the app."""
    shutil.copytree(ROOT / hook.APP, tmp_path / hook.APP, ignore=_MADE)
    return tmp_path


def test_build__is_stale_after_a_change(project: Path, hook: Any) -> None:
    """The built app is that of the source until a file of the source changes; what the build makes does not count."""
    static, app = project / hook.STATIC, project / hook.APP
    assert not hook.is_built(project)
    static.mkdir()
    (static / "source.txt").write_text(hook.source_hash(app), encoding="utf-8")
    (app / "node_modules").mkdir()
    (app / "node_modules" / "any.js").write_text("", encoding="utf-8")
    assert hook.is_built(project)
    assert hook.build(project, warn=pytest.fail)
    (app / "src" / "more.ts").write_text("", encoding="utf-8")
    assert not hook.is_built(project)


@pytest.mark.slow
def test_build__without_a_registry(project: Path, hook: Any, environment: Environment) -> None:
    """Where packages cannot be fetched, the build warns, leaves nothing half-built, and raises nothing."""
    environment["npm_config_registry"] = "http://127.0.0.1:9"
    environment["npm_config_cache"] = str(project / "cache")
    warnings: list[str] = []
    assert not hook.build(project, warn=warnings.append)
    assert len(warnings) == 1
    assert warnings[0].startswith("the web app was not built, so `framedex serve` has no pages")
    assert not (project / hook.STATIC).exists()
