"""The memory that a process may use: that of the machine, or less in a container."""

import os
import sys
from pathlib import Path

import pytest

from framedex.core import memory


def test_usable_memory__is_at_most_that_of_the_machine() -> None:
    """Where nothing limits the process, it is the memory of the machine."""
    assert memory.usable_memory() > 2**24
    if sys.platform != "win32":
        assert memory.usable_memory() <= os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.parametrize(
    ("groups", "files", "limit"),
    [
        ("0::/a/b\n", {"a/b/memory.max": "max", "a/memory.max": "3000000", "memory.max": "9000000"}, 3_000_000),
        ("0::/\n", {"memory.max": "5000000"}, 5_000_000),
        ("0::/\n4:memory:/job\n1:cpu:/job\n", {"memory/job/memory.limit_in_bytes": "7000000"}, 7_000_000),
        ("3:cpu,memory:/gone\n", {"memory/memory.limit_in_bytes": "8000000"}, 8_000_000),
        ("0::/a\n", {"a/memory.max": "max"}, None),
        ("0::/a\n", {"a/memory.max": "many"}, None),
        ("1:cpu:/a\nnonsense\n", {"a/memory.max": "10"}, None),
        (None, {}, None),
    ],
)
def test_usable_memory__in_a_container(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, groups: str | None, files: dict[str, str], limit: int | None
) -> None:
    """The lowest limit of a control group and of those around it counts, in both versions of control groups."""
    whole = memory.usable_memory()
    own = tmp_path / "cgroup"
    if groups is not None:
        own.write_text(groups)
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text + "\n")
    monkeypatch.setattr(memory, "_GROUPS", tmp_path)
    monkeypatch.setattr(memory, "_OWN_GROUPS", own)
    found = memory.usable_memory()
    assert found == limit if limit is not None else found >= whole
