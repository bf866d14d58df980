"""The id index of a table, compared with a Python set."""

import uuid
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from framedex.core.ids import media_id
from framedex.storage import tables
from framedex.storage.id_index import GrowingIds, IdIndex
from framedex.storage.table_versions import Table
from tests.laws import examples

SCHEMA = pa.schema([pa.field("media_id", pa.string(), nullable=False)])
# Few halves, so that ids often share one of them, the extremes among them.
HALVES = st.sampled_from([0, 1, 2, 2**63, 2**64 - 1]) | st.integers(0, 2**64 - 1)
IDS = st.tuples(HALVES, HALVES).map(lambda halves: str(uuid.UUID(int=halves[0] << 64 | halves[1])))


def known(path: Path, *batches: list[str]) -> IdIndex:
    """Return the ids of a table that was written in batches."""
    version = 0
    for ids in batches:
        version = tables.append(path, [pa.RecordBatch.from_pydict({"media_id": ids}, schema=SCHEMA)], SCHEMA)
    return IdIndex(Table(path, version))


@pytest.mark.slow
@given(held=st.lists(IDS, max_size=30), asked=st.lists(IDS, max_size=30))
def test_contains__as_a_set(tmp_path_factory: pytest.TempPathFactory, held: list[str], asked: list[str]) -> None:
    """The index contains exactly the ids of the table, even if other ids are similar."""
    found = known(tmp_path_factory.mktemp("ids") / "media.lance", held)
    wanted = [*asked, *held]
    assert found.contains(wanted).tolist() == [each in set(held) for each in wanted]
    assert len(found) == len(held)


def test_contains__ids_that_we_make(tmp_path: Path) -> None:
    """Ids of thousands of files are found in all batches of the table, and other ids are not."""
    dataset = str(uuid.uuid4())
    ids = [media_id(dataset, f"{number}.jpg") for number in range(20_000)]
    found = known(tmp_path / "media.lance", ids[:5000], ids[5000:10_000])
    assert found.contains(ids).tolist() == [True] * 10_000 + [False] * 10_000
    assert len(found) == 10_000


def test_contains__nothing(tmp_path: Path) -> None:
    """Without a table, or with an empty one, no id is found; an empty request has an empty result."""
    ids = [str(uuid.uuid4())]
    for found in (IdIndex(None), known(tmp_path / "media.lance", [])):
        assert len(found) == 0
        assert found.contains(ids).tolist() == [False]
        assert found.contains([]).tolist() == []
    assert known(tmp_path / "more.lance", ids).contains([]).tolist() == []


def test_known_ids__of_one_version(tmp_path: Path) -> None:
    """Rows appended later are not in the index of the former version."""
    path, ids = tmp_path / "media.lance", [str(uuid.uuid4()) for _ in range(3)]
    batches = [pa.RecordBatch.from_pydict({"media_id": [each]}, schema=SCHEMA) for each in ids]
    versions = [tables.append(path, [batch], SCHEMA) for batch in batches]
    for count, version in enumerate(versions, start=1):
        assert IdIndex(Table(path, version)).contains(ids).tolist() == [place < count for place in range(3)]


@examples(40)
@given(st.lists(st.lists(st.integers(0, 60), min_size=1, max_size=12), max_size=12))
def test_growing_ids__finds_the_first_that_occurs_twice(batches: list[list[int]]) -> None:
    """The place of the first id of a batch that is in an earlier batch, or earlier in its own."""
    growing, known = GrowingIds(), set[int]()
    for batch in batches:
        expected = None
        for place, number in enumerate(batch):
            if number in known and expected is None:
                expected = place
            known.add(number)
        assert growing.add(pa.array([str(uuid.UUID(int=number << 64)) for number in batch])) == expected
