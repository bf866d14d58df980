"""The tests that `make test PKG=…` and `make test CHANGED=1` begin with."""

import pytest

from tests import selection


def test_package__has_its_folder_or_its_files() -> None:
    """A package's tests are a folder; those of a module without one are files."""
    assert selection.of_package("vql") == ["tests/vql"]
    assert "tests/test_errors.py" in selection.of_package("errors")


@pytest.mark.parametrize("name", ["nope", "", "../vql", "vql/keys"])
def test_package__that_has_no_tests(name: str) -> None:
    """The error names the packages that have some."""
    with pytest.raises(SystemExit, match=f"{name!r}.*access, analysis"):
        selection.of_package(name)


@pytest.mark.slow
def test_changes__nearest_first() -> None:
    """Tests of the package come first, then all that import the module over others; each once."""
    paths = selection.of_changes(["src/framedex/vql/compile.py"])
    first = [path for path in paths if path.startswith("tests/vql/")]
    assert paths[: len(first)] == first
    assert "tests/vql/test_compile.py" in first
    assert len(paths) == len(set(paths)) > len(first)


def test_changes__of_tests() -> None:
    """A changed test runs, with a changed helper all that import it; of a deleted test nothing is left."""
    assert selection.of_changes(["tests/vql/test_compile.py"]) == ["tests/vql/test_compile.py"]
    assert selection.of_changes(["tests/vql/test_gone.py"]) == []
    assert "tests/service/test_exports.py" in selection.of_changes(["tests/image_files.py"])


def test_changes__that_no_import_shows() -> None:
    """Documents, the app and notebooks have tests that read them; on the configuration all tests depend."""
    assert "tests/test_documents.py" in selection.of_changes(["docs/vql.md"])
    app = selection.of_changes(["src/framedex/web/app/src/pages/Map.tsx"])
    assert {path.split("/")[1] for path in app} == {"web", "browser"}
    assert selection.of_changes(["notebooks/tour.ipynb"]) == ["tests/test_notebooks.py"]
    assert selection.of_changes(["docs/vql.md", "pyproject.toml"]) == ["tests"]
    assert selection.of_changes(["LICENSE"]) == []
