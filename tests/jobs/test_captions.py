"""Captions of models beside those that people give."""

from pathlib import Path
from tempfile import TemporaryDirectory

import lance
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from framedex.jobs.captions import put_model_captions
from framedex.storage.tables import Table

TEXT = st.sampled_from([None, "", "a dog", "a cat", "a 猫"])
ROW = st.tuples(TEXT, TEXT, TEXT)


def columns(table: Table) -> list[tuple[str | None, str | None]]:
    rows = table.scan(["caption", "model_caption"]).read_all()
    return list(zip(rows["caption"].to_pylist(), rows["model_caption"].to_pylist(), strict=True))


@given(rows=st.lists(ROW, min_size=1, max_size=9), replace=st.booleans(), captioned=st.booleans())
@settings(deadline=None, max_examples=40)
def test_put_model_captions__by_the_definition(
    rows: list[tuple[str | None, str | None, str | None]], replace: bool, captioned: bool
) -> None:
    """What a model says goes where nobody or a model said something, or anywhere if asked; all else stays."""
    caption, model, said = map(list, zip(*rows, strict=True))
    if not captioned:
        model = [None] * len(rows)
    held = {"media_id": [str(number) for number in range(len(rows))], "caption": pa.array(caption, pa.string())}
    if captioned:
        held["model_caption"] = pa.array(model, pa.string())
    with TemporaryDirectory() as home:
        path = Path(home) / "media.lance"
        lance.write_dataset(pa.table(held), path)
        table = Table(path, 1)
        table = Table(path, put_model_captions(table, iter(said), replace=replace))
        wanted = []
        for old, written, new in zip(caption, model, said, strict=True):
            peoples = bool(old) and old != written
            wanted.append((new, new) if new and (replace or not peoples) else (old, written))
        assert columns(table) == wanted
        assert table.version > 1
