"""The option that begins what may take hours."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from framedex.analysis import neighbours
from framedex.jobs.index import resources
from tests.analysis.arrays import uniform
from tests.cli.running import runner


def test_force__begins_a_long_search(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A search that takes longer than the limit is refused with the option that begins it, which does."""
    run, source, vectors = runner(tmp_path / "ws", capsys), tmp_path / "vectors.parquet", uniform(300, 8)
    names = [f"{number}.jpg" for number in range(len(vectors))]
    pq.write_table(pa.table({"uri": names, "embedding": list(vectors)}), source)
    monkeypatch.setattr(resources, "_CHECKED", 0)
    monkeypatch.setattr(neighbours, "_EXACT_ROWS", 100)
    monkeypatch.setenv("FRAMEDEX_INDEX_HOURS", "1e-12")
    status, _, error = run("create", "refused", str(source))
    assert status == 1
    assert "--force" in error
    assert run("create", "forced", str(source), "--force")[0] == 0
    cuts = [word for cut in (0.1, 0.2, 0.3, 0.4, 0.5) for word in ("--threshold", str(cut))]
    assert run("reindex", "forced", *cuts)[0] == 1
    assert run("reindex", "forced", *cuts, "--force")[0] == 0
