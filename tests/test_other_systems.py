"""The core life cycle where only what all systems have is there."""

import ast
from pathlib import Path

import pytest

import framedex
from tests.gallery import fill
from tests.processes import run
from tests.without_posix import CALLS, MODULES, SIGNALS

LIFE = """
    import sys
    from tests.without_posix import take_away
    take_away()
    from concurrent.futures import ThreadPoolExecutor
    from pathlib import Path
    import framedex
    from framedex.records import TaskStatus
    from tests.gallery import SETTINGS, Gate
    from tests.pauses import run_of

    home = Path(sys.argv[1])
    settings = SETTINGS.model_copy(update={"keep_versions_s": 0.0})
    with framedex.Workspace(home / "workspace", settings=settings) as workspace:
        dataset = workspace.create_dataset("d", home / "first", "gist")
        dataset.add_media(home / "second")
        dataset.add_media(files=[("upload.png", (home / "third" / "000.png").read_bytes())])
        dataset.reindex()
        ids = dataset.to_arrow(["media_id"])["media_id"].to_pylist()
        assert len(ids) == 9
        dataset.tag(ids[:2], "kept")
        before = dataset.snapshot("before")
        clone = dataset.clone(before)
        dataset.delete_media(ids[:3])
        assert (dataset.count(), clone.count()) == (6, 9)
        assert len(dataset.similar(ids[4], limit=3).to_arrow()) == 3
        assert dataset.search("upload").to_arrow().num_rows == 1
        dataset.export(home / "export.zip", format="parquet", include_images=True)
        dataset.restore(before)
        assert dataset.count() == 9
        plan = dataset.plan_cleanup(duplicates="exact")
        plan.apply()

        gate = Gate()
        slow = workspace.create_dataset("slow", home / "first", gate, wait=False)
        assert gate.reached.wait(60)
        with ThreadPoolExecutor() as threads:
            aborted = threads.submit(slow.task.abort)
            assert run_of(slow.task).progress.cancelled.wait(60)
            gate.opened.set()
            assert aborted.result(60).status is TaskStatus.ABORTED
        workspace.delete_dataset(clone.id)
        workspace.vacuum()
        dataset.report(home / "report.html")
    with framedex.Workspace(home / "workspace", settings=settings) as workspace:
        print(workspace.dataset("d").count())
    """


@pytest.mark.slow
def test_life__without_posix(tmp_path: Path) -> None:
    """A dataset is made, edited, copied, restored, exported and deleted without any call that only POSIX has."""
    for number, (name, count) in enumerate({"first": 5, "second": 3, "third": 1}.items()):
        fill(tmp_path / name, count, first_seed=100 * number)
    assert run(LIFE, tmp_path, fresh=True).strip() == "9"
    assert (tmp_path / "export.zip").stat().st_size > 0
    assert (tmp_path / "report.html").stat().st_size > 0


@pytest.mark.slow
def test_calls__that_only_posix_has() -> None:
    """No module imports or names such a thing plainly: it asks first whether the system has it."""
    plain = []
    for path in sorted(Path(framedex.__file__).parent.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        guarded = {
            id(node)
            for block in ast.walk(tree)
            if (isinstance(block, ast.If) and "hasattr" in ast.unparse(block.test))
            or (isinstance(block, ast.Try) and _catches_imports(block))
            or _asks(block)
            for node in ast.walk(block)
        }
        plain += [f"{path.name}: {name}" for node in ast.walk(tree) for name in _named(node) if id(node) not in guarded]
    assert plain == []


def _named(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [each.name for each in node.names if each.name in MODULES]
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return [node.attr] if node.attr in {"os": CALLS, "signal": SIGNALS}.get(node.value.id, ()) else []
    return []


def _catches_imports(block: ast.Try) -> bool:
    return any(isinstance(each.type, ast.Name) and each.type.id == "ImportError" for each in block.handlers)


def _asks(block: ast.AST) -> bool:
    """Return whether a function asks by ``hasattr``, or is done where the system has no ``/proc``."""
    if not isinstance(block, ast.FunctionDef):
        return False
    names = {node.id for node in ast.walk(block) if isinstance(node, ast.Name)}
    texts = {node.value for node in ast.walk(block) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    return "hasattr" in names or any(text.startswith("/proc") for text in texts)
