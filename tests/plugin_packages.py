"""Installs the packages with plugins that lie beside the tests, without a network and without a build tool."""

import shutil
import tomllib
from pathlib import Path


def install(name: str, target: Path) -> Path:
    """Put a package where an installer would: its modules, and its metadata with the entry points.

    Args:
        name: of a folder beside the tests that has a ``pyproject.toml`` and one package.
        target: a folder on the module search path; made if it is missing.
    """
    source = Path(__file__).parent / name
    project = tomllib.loads((source / "pyproject.toml").read_text("utf-8"))["project"]
    package = next(path.parent for path in source.glob("*/__init__.py"))
    shutil.copytree(package, target / package.name, ignore=shutil.ignore_patterns("__pycache__"))
    information = target / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    information.mkdir()
    (information / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    )
    lines = []
    for group, points in project["entry-points"].items():
        lines += [f"[{group}]", *(f"{point} = {value}" for point, value in points.items())]
    (information / "entry_points.txt").write_text("\n".join(lines))
    return target
