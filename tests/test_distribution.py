"""The wheel: what it carries."""

import sys
import zipfile
from pathlib import Path

import pytest
from hatchling.build import build_wheel

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this source."""
    where = tmp_path_factory.mktemp("dist")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        return where / build_wheel(str(where))


@pytest.mark.slow
def test_wheel__has_the_licences(wheel: Path) -> None:
    """The licence is in it, and the terms of all that it bundles."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        licences = {name.partition("/licenses/")[2] for name in names if ".dist-info/licenses/" in name}
    assert licences == {"LICENSE", *(f"licenses/{path.name}" for path in (ROOT / "licenses").glob("*"))}


def test_check_wheel__says_what_is_wrong(wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The check of a release passes the wheel, and names what is missing and what has no terms."""
    monkeypatch.syspath_prepend(str(ROOT / ".ci"))
    from check_wheel import problems

    assert problems(wheel) == []
    lacking = tmp_path / wheel.name
    with zipfile.ZipFile(wheel) as whole, zipfile.ZipFile(lacking, "w") as part:
        for name in whole.namelist():
            if not name.endswith(("dist-info/licenses/LICENSE", "framedex/demo.py")):
                part.writestr(name, whole.read(name))
        part.writestr("framedex/web/app.js", "")
    found = problems(lacking)
    assert "the licence LICENSE is missing" in found
    assert "framedex/demo.py is missing" in found
    assert "framedex/web/app.js should not be there" in found
    assert any(line.startswith("framedex/web/app.js has no licence") for line in found)
    sys.modules.pop("check_wheel")
