"""The test files that a run begins with: those of a package, or those that concern what has changed.

``python -m tests.selection --package vql`` and ``python -m tests.selection --changed`` print their paths.
"""

import argparse
import functools
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import grimp

ROOT = Path(__file__).parent.parent
_SOURCE, _FACADE = "src/framedex/", "framedex"
_ALL = ("pyproject.toml", "constraints.txt", "Makefile", "hatch_build.py", "tests/conftest.py", "tests/__init__.py")
"""Files on which each test depends."""


def of_package(name: str) -> list[str]:
    """Return the paths of the tests of a package of framedex, or of a module beside the packages.

    Raises:
        SystemExit: no tests have that name.
    """
    folder = ROOT / "tests" / name
    paths = [folder] if folder.is_dir() else sorted((ROOT / "tests").glob(f"test_{name}*.py"))
    if not name.isidentifier() or not paths:
        known = sorted(each.parent.name for each in (ROOT / "tests").glob("*/__init__.py"))
        raise SystemExit(f"no tests of {name!r}: PKG is one of {', '.join(known)}, or tests/test_<PKG>*.py")
    return [path.relative_to(ROOT).as_posix() for path in paths]


def of_changes(changed: Iterable[str]) -> list[str]:
    """Return the paths of the test files that concern changed files, nearest first.

    These are the tests of a changed module's package, and all that import it, over any number of modules. The names
    that ``framedex`` itself offers, and helpers that open a workspace, are left out: over them most tests reach every
    module.

    Args:
        changed: paths of files in the repository.
    """
    paths = set(changed)
    if paths & {*_ALL}:
        return ["tests"]
    graph = _graph()
    modules = {name for path in paths if (name := _module_of(path)) in graph.modules}
    nearest: dict[str, None] = dict.fromkeys(
        path for path in sorted(paths) if _is_test(path) and (ROOT / path).exists()
    )
    for path in sorted(paths):
        nearest |= dict.fromkeys(_beside(path))
    seen, reached = set(modules), modules
    while reached:
        nearest |= dict.fromkeys(path for each in sorted(reached) if _is_test(path := _path_of(each)))
        reached = {one for each in reached for one in graph.find_modules_that_directly_import(each)} - seen
        seen |= reached
    return list(nearest)


@functools.cache
def _graph() -> grimp.ImportGraph:
    """Return the imports of all modules, but for those behind the names of ``framedex`` and behind helpers of tests."""
    graph = grimp.build_graph(_FACADE, "tests", cache_dir=None)
    helpers = {name for name in graph.modules if name.startswith("tests") and not _is_test(_path_of(name))}
    for importer in {_FACADE, *helpers}:
        for imported in graph.find_modules_directly_imported_by(importer):
            if imported.startswith(_FACADE):
                graph.remove_import(importer=importer, imported=imported)
    return graph


def _beside(path: str) -> list[str]:
    """Return the test files of the package of a changed file, or those that read it without an import."""
    own: Iterable[Path] = ()
    if path.startswith(f"{_SOURCE}web/"):
        own = [file for folder in ("web", "browser") for file in (ROOT / "tests" / folder).glob("test_*.py")]
    elif path.startswith(_SOURCE):
        package, *rest = path.removeprefix(_SOURCE).split("/")
        own = (ROOT / "tests" / package).rglob("test_*.py") if rest else ()
    elif path.startswith("notebooks/"):
        own = (ROOT / "tests").glob("test_notebooks.py")
    elif path.endswith((".md", ".json", ".yml")):
        own = [ROOT / "tests" / f"test_{name}.py" for name in ("documents", "examples", "prose", "distribution")]
    return sorted(file.relative_to(ROOT).as_posix() for file in own)


def _module_of(path: str) -> str:
    """Return the name of the module in a file."""
    return path.removeprefix("src/").removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _path_of(module: str) -> str:
    return f"{module.replace('.', '/')}.py"


def _is_test(path: str) -> bool:
    return path.startswith("tests/") and path.endswith(".py") and Path(path).name.startswith("test_")


def changed_files() -> list[str]:
    """Return the paths of the files that differ from the last commit, or are new and not ignored."""
    names = subprocess.run(
        ["git", "status", "--porcelain=v1", "-z", "--untracked-files=all", "--no-renames"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout.split("\0")  # fmt: skip
    return [name[3:] for name in names if name]


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the selected paths on standard output, and what they are on standard error."""
    parser = argparse.ArgumentParser(description=__doc__)
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--package", help="a package of framedex")
    which.add_argument("--changed", action="store_true", help="what git says is changed")
    options = parser.parse_args(arguments)
    if options.package:
        paths = of_package(options.package)
        told = f"tests of {options.package}"
    else:
        changed = changed_files()
        if not changed:
            raise SystemExit("git says that nothing is changed")
        paths = of_changes(changed)
        told = f"{len(paths)} test files that concern {len(changed)} changed files; `make test` runs all"
    if not paths:
        raise SystemExit("no test imports what is changed")
    sys.stderr.write(f"{told}\n")
    sys.stdout.write(" ".join(paths) + "\n")


if __name__ == "__main__":
    main()
