"""Files appear complete or not at all, and incomplete files of killed processes are removed."""

import os
from pathlib import Path

import pytest

from framedex import InvalidInput
from framedex.export.files import remove_partial_files, whole_file
from tests.processes import run, start


def partials(folder: Path) -> list[str]:
    return [name for name in names_in(folder) if name.endswith(".partial")]


def names_in(folder: Path) -> list[str]:
    return [entry.name for entry in folder.iterdir()]


def leave_partial(path: Path) -> None:
    """Let a process be killed while it writes a file."""
    code = """
        import os, sys
        from pathlib import Path
        from framedex.export.files import whole_file

        with whole_file(Path(sys.argv[1])) as file:
            file.write(b"half")
            file.flush()
            os._exit(0)
    """
    run(code, path)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["out.zip", "x" * 255, "[a]*?.zip", " ", os.fsdecode(b"\xff\xfe")])
def test_whole_file__of_any_name(tmp_path: Path, name: str) -> None:
    """A file with any valid name is written, and its earlier incomplete files are removed."""
    leave_partial(tmp_path / name)
    assert len(partials(tmp_path)) == 1
    with whole_file(tmp_path / name) as file:
        file.write(b"whole")
        assert not (tmp_path / name).exists()
        assert len(partials(tmp_path)) == 1
    assert (tmp_path / name).read_bytes() == b"whole"
    assert names_in(tmp_path) == [name]


def test_whole_file__leaves_those_of_others(tmp_path: Path) -> None:
    """Incomplete files of other names stay until a clean-up."""
    leave_partial(tmp_path / "other.zip")
    with whole_file(tmp_path / "out.zip") as file:
        file.write(b"whole")
    assert len(partials(tmp_path)) == 1
    assert remove_partial_files(tmp_path, "out.zip") == 0
    assert remove_partial_files(tmp_path, "other.zip") == 1
    assert names_in(tmp_path) == ["out.zip"]


def test_whole_file__by_two_processes(tmp_path: Path) -> None:
    """Two processes that write the same file leave each other's incomplete file alone."""
    code = """
        import sys
        from pathlib import Path
        from framedex.export.files import whole_file

        with whole_file(Path(sys.argv[1])) as file:
            file.write(b"first")
            print("writes", flush=True)
            sys.stdin.readline()
    """
    process = start(code, tmp_path / "out.zip")
    assert process.stdout is not None
    assert process.stdout.readline() == "writes\n"
    with whole_file(tmp_path / "out.zip") as file:
        file.write(b"second")
    assert (tmp_path / "out.zip").read_bytes() == b"second"
    assert len(partials(tmp_path)) == 1
    out, err = process.communicate("\n", timeout=60)
    assert (out, err, process.returncode) == ("", "", 0)
    assert (tmp_path / "out.zip").read_bytes() == b"first"
    assert partials(tmp_path) == []


def test_whole_file__given_up(tmp_path: Path) -> None:
    """If the last check raises, the existing file stays."""
    (tmp_path / "out.zip").write_bytes(b"old")

    def refuse() -> None:
        raise KeyError

    with pytest.raises(KeyError), whole_file(tmp_path / "out.zip", settle=refuse) as file:
        file.write(b"new")
    assert (tmp_path / "out.zip").read_bytes() == b"old"
    assert names_in(tmp_path) == ["out.zip"]


def test_whole_file__in_the_place_of_a_link(tmp_path: Path) -> None:
    """A link is replaced, not its target."""
    (tmp_path / "target").write_bytes(b"target")
    (tmp_path / "out.zip").symlink_to(tmp_path / "target")
    with whole_file(tmp_path / "out.zip") as file:
        file.write(b"new")
    assert (tmp_path / "target").read_bytes() == b"target"
    assert (tmp_path / "out.zip").read_bytes() == b"new"
    assert not (tmp_path / "out.zip").is_symlink()


def test_remove_partial_files__of_no_folder(tmp_path: Path) -> None:
    """In a missing folder nothing is removed, and nothing can be written."""
    assert remove_partial_files(tmp_path / "gone") == 0
    with pytest.raises(InvalidInput, match="No such file or directory"), whole_file(tmp_path / "gone" / "out.zip"):
        pass
