"""The static checks, cheap ones first: ``python .ci/check.py [--changed | FILE…]``.

Without arguments it checks everything. With files, or with those that git says are changed, it checks what concerns
them and takes about ten seconds at most: types that take longer are left to the check of everything.
"""

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from tests.selection import changed_files  # noqa: E402 - the line above finds it

BIN = Path(sys.executable).parent
APP = "src/framedex/web/app/"
PYTEST = (sys.executable, "-m", "pytest", "--quiet", "--noconftest", "-p", "no:cacheprovider")
ENVIRONMENT = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # plugins take longer than the tests
_LIMIT_S = 9.0


def check_all() -> None:
    """Check everything, tests of prose and layers included."""
    _check_style(["."])
    _run(BIN / "lint-imports")
    _run(*PYTEST, "tests/test_prose.py", "tests/test_layers.py")
    _run(BIN / "mypy", "--num-workers", "2")
    _run(sys.executable, "hatch_build.py", "--check")


def check_files(names: Sequence[str]) -> None:
    """Check what concerns some files; those that are gone concern nothing."""
    start_s = time.monotonic()
    files = [name for name in names if (ROOT / name).exists()]
    modules = [name for name in files if name.endswith((".py", ".ipynb"))]
    if modules:
        _check_style(modules)
    if any(name.startswith("src/") for name in modules):
        _run(BIN / "lint-imports")
        _run(*PYTEST, "tests/test_prose.py")
    if any(name.startswith(APP) for name in files):
        _run(sys.executable, "hatch_build.py", "--check", "check")
    if any(name.startswith(("src/", "tests/")) for name in modules):
        try:
            _run(BIN / "mypy", timeout_s=max(_LIMIT_S - (time.monotonic() - start_s), 1.0))
        except subprocess.TimeoutExpired:
            print("types take longer than this check may: `make check` checks them")


def _check_style(files: Sequence[str]) -> None:
    _run(BIN / "ruff", "format", "--check", "--force-exclude", *files)
    _run(BIN / "ruff", "check", "--force-exclude", *files)


def _run(*command: object, timeout_s: float | None = None) -> None:
    """Run a command; end with its status if it fails."""
    done = subprocess.run([*map(str, command)], cwd=ROOT, env=ENVIRONMENT, check=False, timeout=timeout_s)
    if done.returncode:
        sys.exit(done.returncode)


if __name__ == "__main__":
    if sys.argv[1:]:
        check_files(changed_files() if sys.argv[1] == "--changed" else sys.argv[1:])
    else:
        check_all()
