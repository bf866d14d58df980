"""The import contracts: they cover each package, and ARCHITECTURE.md draws them."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

import framedex

pytestmark = pytest.mark.static

ROOT = Path(__file__).parent.parent
PACKAGE = Path(framedex.__file__).parent
DOORS = {"lance": {"storage"}, "torch": {"encoders", "enrichers", "training"}, "botocore": {"media"}}
"""Engines, with the packages that may import them."""


def configuration() -> dict[str, Any]:
    """Return the configuration of import-linter."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        content: dict[str, Any] = tomllib.load(file)["tool"]["importlinter"]
    return content


def names_in(layer: str) -> set[str]:
    """Return the packages of one layer; one that is reserved stands in parentheses."""
    return {name.strip() for name in layer.split("|")}


def packages() -> list[Path]:
    """Return all packages and their subpackages, as paths below the root package."""
    folders = (path.parent.relative_to(PACKAGE) for path in PACKAGE.rglob("__init__.py"))
    return sorted(folder for folder in folders if "migrations" not in folder.parts)


@pytest.fixture(scope="module")
def verdict(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The verdict on a copy in which a module of each package imports each engine."""
    folder = tmp_path_factory.mktemp("contracts")
    shutil.copytree(PACKAGE, folder / "framedex", ignore=shutil.ignore_patterns("__pycache__"))
    for package in packages():
        for engine in DOORS:
            (folder / "framedex" / package / f"probe_{engine}.py").write_text(f"import {engine}\n")
    shutil.copy(ROOT / "pyproject.toml", folder)
    command = [sys.executable, "-c", "from importlinter.cli import lint_imports_command; lint_imports_command()"]
    run = subprocess.run(
        [*command, "--no-cache"],
        cwd=folder, env={**os.environ, "PYTHONPATH": str(folder), "COLUMNS": "400"},
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert run.returncode == 1, run.stdout + run.stderr
    return run.stdout


@pytest.mark.parametrize("engine", DOORS)
def test_doors__cover_every_package(verdict: str, engine: str) -> None:
    """A module that imports an engine breaks the contract in each package but those that are its door."""
    reported = set(re.findall(rf"framedex\.(?:([\w.]+)\.)?probe_{engine} -> {engine}\b", verdict))
    expected = {".".join(package.parts) for package in packages()}
    assert reported == {name for name in expected if name.split(".")[0] not in DOORS[engine]}


def test_layers__name_every_package() -> None:
    """Each package and module of the root is in one layer."""
    (layers,) = (each["layers"] for each in configuration()["contracts"] if each["type"] == "layers")
    named = [name for layer in layers for name in names_in(layer)]
    present = {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    assert sorted(named) == sorted(set(named))
    assert {name for name in named if not name.startswith("(")} == present - {"__init__"}


def test_architecture__draws_the_layers() -> None:
    """ARCHITECTURE.md names the layers of the contract, in the same order, and stays short."""
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    (drawing,) = re.findall(r"(?s)\n## Layers\n.*?\n```\n(.*?)```", text)
    drawn = [names_in(re.split(r"\s{2,}", line.strip())[0]) for line in drawing.splitlines()]
    (layers,) = (each["layers"] for each in configuration()["contracts"] if each["type"] == "layers")
    assert drawn == [names_in(layer) for layer in layers]
    lines = text.splitlines()
    assert len(lines) < 150
    assert [line for line in lines if len(line) > 160] == []
