"""The table of conformance: each row names tests that exist, no row is twice, no path of the interface is missing."""

import ast
import json
import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "docs" / "conformance.md").read_text(encoding="utf-8")
_BELOW = "/api/v1/dataset/{dataset_id}/"
_OF_SERVICE = (
    "admin/audit", "admin/relocate", "admin/sources", "api_credentials/rotate", "datasets/sample_data",
    "enrichment/{dataset_id}/{enrichment_context_id}", "events", "healthcheck",
    "image", "login", "logout", "me", "metrics", "oidc", "password", "process/preview", "ready", "sessions",
    "user_config", "vql",
)  # fmt: skip
_OF_DATASETS = (
    "actions", "card", "cleanup", "clone", "compare", "copies", "decisions", "diverse", "duplicates", "embeddings",
    "evaluation", "export", "exports", "fields", "issues", "journal", "labels", "limits", "map", "media", "merge",
    "objects", "overlap", "preview", "problems", "quality", "redo", "results", "sources", "stats", "sync", "tags",
    "trends", "undo",
)  # fmt: skip
OWN = [*(f"/api/v1/{name}" for name in _OF_SERVICE), *(f"{_BELOW}{name}" for name in _OF_DATASETS)]
"""Paths that are those of this service alone, or of other clients; those below them are, too."""
_ROW = re.compile(r"^\| (?P<subject>.+?) \| (?P<rule>.+?) \| (?P<tests>.+?) \|$")
_TEST = re.compile(r"`(tests/[\w/]+\.py)::([\w:]+)`")


def rows(text: str = TEXT) -> list[tuple[int, str, str, str]]:
    """Return the rows of all tables of a page: number of the line, subject, rule and tests."""
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("|") and not re.fullmatch(r"[| -]+", line) and not line.startswith("| subject |"):
            row = _ROW.match(line)
            assert row is not None, f"line {number} is no row of three cells: {line}"
            found.append((number, row["subject"], row["rule"], row["tests"]))
    return found


@cache
def names_in(path: str) -> frozenset[str]:
    """Return the names of the tests of a file that `make test` or `make test-all` runs, as pytest has them."""

    def is_run(node: ast.FunctionDef) -> bool:
        return "pytest.mark.only_soak" not in map(ast.unparse, node.decorator_list)

    names = set()
    for node in ast.parse((ROOT / path).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef) and is_run(node):
            names.add(node.name)
        if isinstance(node, ast.Assign):  # the test of a state machine
            names |= {each.id for each in node.targets if isinstance(each, ast.Name)}
        if isinstance(node, ast.ClassDef):
            names |= {
                f"{node.name}::{each.name}" for each in node.body if isinstance(each, ast.FunctionDef) and is_run(each)
            }
    return frozenset(name for name in names if name.rpartition("::")[2].startswith("test_"))


def faults_of(text: str) -> list[str]:
    """Return the rows of a page that name something else than tests that exist."""
    wrong = []
    for number, _, _, tests in rows(text):
        found = _TEST.findall(tests)
        if not found or _TEST.sub("", tests).strip(", "):
            wrong.append(f"line {number} names no tests: {tests}")
        wrong += [
            f"line {number}: {path} has no test {name} that `make test` or `make test-all` runs"
            for path, name in found
            if not (ROOT / path).is_file() or name not in names_in(path)
        ]
    return wrong


@pytest.mark.slow
def test_rows__name_tests_that_exist() -> None:
    """Each row names one test or several, and nothing else; each is a test of the file that is named."""
    assert len(rows()) > 250
    assert faults_of(TEXT) == []


def test_rows__are_there_once() -> None:
    """No rule of a subject is there twice."""
    counts = Counter((subject, rule) for _, subject, rule, _ in rows())
    assert [row for row, count in counts.items() if count > 1] == []


def test_paths__of_the_interface_are_all_there() -> None:
    """Each path of the service is in a row, or one of its own, and each path in a row is one of the service."""
    document = json.loads((ROOT / "docs" / "openapi.json").read_text(encoding="utf-8"))
    served = {path for path in document["paths"] if path.startswith("/api/v1/")}
    subjects = "\n".join(subject for _, subject, _, _ in rows())
    named = set(re.findall(r"/api/v1/[\w/{}-]+", subjects))
    own = tuple(f"{each}/" for each in OWN)
    assert [path for path in sorted(served - named) if not f"{path}/".startswith(own)] == []
    assert named - served == set()
    assert [each for each in OWN if not any(path == each or path.startswith(f"{each}/") for path in served)] == []
