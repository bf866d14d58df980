"""Captions of models beside those that people give."""

from pathlib import Path
from tempfile import TemporaryDirectory

import lance
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from framedex.jobs.edits.captions import put_model_captions, uncaptioned
from framedex.storage.table_versions import Table
from tests.laws import examples

TEXT = st.sampled_from([None, "", "a dog", "a cat", "a 猫"])


@given(rows=st.lists(st.tuples(TEXT, TEXT, TEXT), min_size=1, max_size=9), replace=st.booleans(), before=st.booleans())
@examples(40)
def test_put_model_captions__by_the_definition(
    rows: list[tuple[str | None, str | None, str | None]], replace: bool, before: bool
) -> None:
    """What a model says goes where nobody or a model said something, or anywhere if asked; all else stays."""
    if not before:  # the table has no column yet for what models wrote
        rows = [(caption, None, said) for caption, _, said in rows]
    columns = {"media_id": [str(number) for number in range(len(rows))]}
    held = pa.table(columns).append_column("caption", pa.array([row[0] for row in rows], pa.string()))
    if before:
        held = held.append_column("model_caption", pa.array([row[1] for row in rows], pa.string()))
    with TemporaryDirectory() as home:
        path = Path(home) / "media.lance"
        lance.write_dataset(held, path)
        table = Table(path, 1)
        chosen = uncaptioned(table, replace=replace)
        said = [row[2] for row, each in zip(rows, chosen, strict=True) if each]
        found = Table(path, put_model_captions(table, chosen, iter(said))).scan(["caption", "model_caption"]).read_all()
    wanted = []
    for old, written, new in rows:
        peoples = bool(old) and old != written
        wanted.append((new, new) if new and (replace or not peoples) else (old, written))
    assert list(zip(found["caption"].to_pylist(), found["model_caption"].to_pylist(), strict=True)) == wanted
