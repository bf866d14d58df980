"""The option that begins what may take hours."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.analysis.arrays import uniform
from tests.cli.running import runner
from tests.environment import Environment
from tests.tuning import Tuning


def test_force__begins_a_long_search(
    tmp_path: Path, environment: Environment, tuning: Tuning, capsys: pytest.CaptureFixture[str]
) -> None:
    """A search that takes longer than the limit is refused with the option that begins it, which does."""
    run, source, vectors = runner(tmp_path / "ws", capsys), tmp_path / "vectors.parquet", uniform(300, 8)
    names = [f"{number}.jpg" for number in range(len(vectors))]
    pq.write_table(pa.table({"uri": names, "embedding": list(vectors)}), source)
    tuning.checked_work = 0
    tuning.exact_rows = 100
    environment["FRAMEDEX_INDEX_HOURS"] = "1e-12"
    status, _, error = run("create", "refused", str(source))
    assert status == 1
    assert "--force" in error
    assert run("create", "forced", str(source), "--force")[0] == 0
    cuts = [word for cut in (0.1, 0.2, 0.3, 0.4, 0.5) for word in ("--threshold", str(cut))]
    assert run("reindex", "forced", *cuts)[0] == 1
    assert run("reindex", "forced", *cuts, "--force")[0] == 0
