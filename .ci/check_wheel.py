"""Check that a wheel holds the package, and the licences of all that it bundles: run with the path of the wheel."""

import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
OURS = (".py", ".typed", ".mako", "framedex/encoders/models.toml")
"""The ends of the names of files that are our own."""
NOT_CODE: dict[str, str] = {}
"""Folders of the package whose files others made, with the file of their terms in ``licenses/``."""


APP = "framedex/web/static/"
"""The folder of the built app, which has the licences of what is bundled."""


def _is_left_out(name: str) -> bool:
    """Return whether a file of the source is no part of the package: what Python made, and the source of the app."""
    return "__pycache__" in name or name.startswith("framedex/web/app/")


def problems(wheel: Path) -> list[str]:
    """Return what is wrong with a wheel, a line each."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    licences = {name.partition(".dist-info/licenses/")[2] for name in names if ".dist-info/licenses/" in name}
    wanted = {"LICENSE", *(f"licenses/{path.name}" for path in (ROOT / "licenses").glob("*"))}
    found = [f"the licence {name} is missing" for name in sorted(wanted - licences)]
    package = {name for name in names if name.startswith("framedex/")}
    source = {path.relative_to(ROOT / "src").as_posix() for path in (ROOT / "src" / "framedex").rglob("*")}
    expected = {name for name in source if (ROOT / "src" / name).is_file() and not _is_left_out(name)}
    found += [f"{name} is missing" for name in sorted(expected - package)]
    found += [f"{name} should not be there" for name in sorted(package - expected)]
    if APP + "licenses.txt" not in package:
        found.append(f"{APP}licenses.txt is missing: the licences of what the app bundles")
    for name in sorted(package):
        folder = name.split("/")[1]
        if not name.startswith(APP) and not name.endswith(OURS) and f"licenses/{NOT_CODE.get(folder)}" not in licences:
            found.append(f"{name} has no licence: add its folder to NOT_CODE, and its terms to licenses/")
    return found


if __name__ == "__main__":
    lines = problems(Path(sys.argv[1]))
    sys.stdout.write("\n".join(lines or [f"{Path(sys.argv[1]).name}: all licences and files are there"]) + "\n")
    sys.exit(bool(lines))
