"""The full-text index follows all changes of the rows, whatever happens to its cache."""

import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from framedex import Workspace
from framedex.errors import Aborted, InvalidInput
from framedex.search.text import full_text as module
from framedex.search.text import row_texts
from framedex.search.text.full_text import FullTextResult, full_text
from framedex.storage import tables
from framedex.storage.datasets import now
from framedex.storage.generation import Generation, Summary
from framedex.storage.media import Media
from framedex.storage.sql import Sql
from framedex.storage.table_versions import Table
from tests import processes
from tests.fulltext.strategies import Row, queries, rows
from tests.gallery import ANIMALS, FURRY, TOWNS, Gallery, embedded
from tests.inside import layout_of, stored_media
from tests.laws import examples
from tests.oracles import full_text as plain
from tests.tuning import Tuning

SCHEMA = pa.schema(
    [
        pa.field("path", pa.string(), nullable=False),
        pa.field("labels", pa.list_(pa.string())),
        pa.field("caption", pa.string()),
    ]
)


def batch(content: Sequence[Row]) -> pa.RecordBatch:
    """Return rows as in a media table, with file names without slashes."""
    values = [{**row, "path": f"some folder/{named(row)['file_name']}.jpg"} for row in content]
    return pa.RecordBatch.from_pylist([{name: row[name] for name in SCHEMA.names} for row in values], SCHEMA)


def named(row: Row) -> Row:
    return {**row, "file_name": row["file_name"].replace("/", "").replace("\\", "").replace("\x00", "")}


def media_at(table: Table) -> Media:
    """Return a dataset's media at a version of its table."""
    generation = Generation(
        id=f"{table.path}-{table.version}", dataset_id="d", tables={}, n_images=0, created_at=now(), summary=Summary()
    )
    return Media("d", generation, table, Sql(), ())


def written(folder: Path, content: Sequence[Row], *, part: int = 10_000) -> Media:
    path, version = folder / "media.lance", 0
    for start in range(0, max(len(content), 1), part):
        version = tables.append(path, [batch(content[start : start + part])], SCHEMA)
    return media_at(Table(path, version))


def captions(texts: Sequence[str | None]) -> list[Row]:
    return [{"caption": text, "labels": None, "file_name": f"{place}"} for place, text in enumerate(texts)]


def find(media: Media, query: str, folder: Path, **more: Any) -> FullTextResult:
    return full_text(media, query, folder=folder, **{"keep": True, "language": "english", **more})


def found(media: Media, query: str, folder: Path, **more: Any) -> list[int]:
    """Return the positions of the matching rows."""
    ids = media.table.scan([], row_ids=True).read_all()["_rowid"].to_numpy() if media.table.count() else np.empty(0)
    return [int(place) for place in np.flatnonzero(np.isin(ids, find(media, query, folder, **more).row_ids))]


def check(media: Media, content: Sequence[Row], asked: Sequence[str], folder: Path, language: str = "english") -> None:
    """Compare a search with a plain Python search."""
    ids = media.table.scan(["path"], row_ids=True).read_all()["_rowid"].to_pylist()
    for query in asked:
        result = find(media, query, folder, language=language)
        expected = dict(zip(ids, plain.scores(query, [named(row) for row in content], language), strict=True))
        matched = sorted(row for row, score in expected.items() if score is not None)
        assert result.row_ids.tolist() == matched, query
        assert result.scores.tolist() == pytest.approx([expected[row] for row in matched], rel=1e-5)
        assert result.row_ids.dtype == np.dtype(np.uint64)
        assert result.scores.dtype == np.dtype(np.float32)


NEW = ["a dog", "two red cars", None, "", "東京 cars"]
edits = st.lists(
    st.one_of(
        st.tuples(st.just("append"), rows),
        st.tuples(st.just("captions"), st.lists(st.sampled_from(NEW), min_size=1)),
        st.tuples(st.just("delete"), st.integers(1, 4)),
        st.tuples(st.just("back"), st.integers(0, 9)),
        st.tuples(st.just("forget"), st.sampled_from(["process", "cache", "both"])),
    ),
    max_size=5,
)  # fmt: skip


@pytest.mark.slow
@examples(20)
@given(rows, edits, st.lists(queries, min_size=1, max_size=3), st.sampled_from(["english", "german"]))
def test_full_text__any_sequence(
    tmp_path_factory: pytest.TempPathFactory,
    content: list[Row],
    steps: list[tuple[str, Any]],
    asked: list[str],
    language: str,
) -> None:
    """After any additions, edits, deletions, restores and losses, results equal a plain Python search."""
    home = tmp_path_factory.mktemp("any")
    cache = home / "cache"
    states = [(written(home, content), content)]
    for kind, value in steps:
        media, content = states[-1]
        check(media, content, asked, cache, language)
        path, version = media.table.path, media.table.version
        if kind == "append":
            content = content + value
            version = tables.append(path, [batch(value)], SCHEMA)
        elif kind == "captions" and content:
            content = [{**row, "caption": value[place % len(value)]} for place, row in enumerate(content)]
            column = pa.RecordBatch.from_arrays(
                [pa.array([row["caption"] for row in content], pa.string())], ["caption"]
            )
            version = tables.put_columns(media.table, iter([column]), column.schema)
        elif kind == "delete" and content:
            gone = np.array([place % (value + 1) == 0 for place in range(len(content))], dtype=np.bool_)
            content = [row for row, is_gone in zip(content, gone, strict=True) if not is_gone]
            version = tables.delete_rows(media.table, gone)
        elif kind == "back":
            old, content = states[value % len(states)]
            restored = tables.roll_back(path, old.table.version)
            assert restored is not None
            version = restored
        elif kind == "forget":
            _forget(value, cache / language)
        states.append((media_at(Table(path, version)), content))
    for media, content in (states[-1], states[0]):
        check(media, content, asked, cache, language)


def _forget(what: str, cache: Path) -> None:
    if what in ("process", "both"):
        module._INDICES.clear()
    if what in ("cache", "both"):
        for path in cache.glob("*"):
            path.unlink()


def test_full_text__of_a_dataset(gallery: Gallery, tmp_path: Path) -> None:
    """Labels, captions and file names of a dataset are searched; its other texts are not."""
    media = stored_media(gallery.dataset)

    def names(query: str) -> list[str]:
        ids = find(media, query, tmp_path).row_ids.tolist()
        return sorted(gallery.names(media.table.take(ids, ["media_id"])["media_id"].to_pylist()))

    assert names("streets") == TOWNS
    assert names("label:fur") == FURRY
    assert names("animal -fur") == ANIMALS[4:]
    assert names('"number 07"') == [TOWNS[7]]
    assert names("recompressed") == ["near/recompressed.jpg"]
    assert names("jpg png animals/00 near") == []
    assert len(names("-street")) == len(gallery.ids) - len(TOWNS)


def test_full_text__ranks(tmp_path: Path) -> None:
    """Rows with more and rarer words of a query score higher."""
    media = written(tmp_path, captions(["a dog", "a red dog with a ball", "a red car", None]))
    result = find(media, "red dog ball", tmp_path / "cache")
    assert (
        result.row_ids[np.argsort(-result.scores)][0]
        == media.table.scan([], row_ids=True).read_all()["_rowid"][1].as_py()
    )
    assert len(result.row_ids) == 3


def test_full_text__only_new_texts_are_indexed(tmp_path: Path) -> None:
    """An edit of one caption adds one text; equal texts in another state add none."""
    cache = tmp_path / "cache"
    media = written(tmp_path, captions([f"dog number {number}" for number in range(100)]))
    assert len(found(media, "dog", cache)) == 100
    texts = [f"dog number {number}" for number in range(99)] + ["a cat"]
    column = pa.RecordBatch.from_arrays([pa.array(texts)], ["caption"])
    edited = media_at(Table(media.table.path, tables.put_columns(media.table, iter([column]), column.schema)))
    assert found(edited, "cat", cache) == [99]
    assert len(found(edited, "dog", cache)) == 99
    store = module._index(cache / "english", "english", keep=True).store
    assert [len(segment) for segment in store.segments()] == [200, 1]
    again = media_at(Table(media.table.path, tables.append(media.table.path, [batch([])], SCHEMA)))
    assert found(again, "cat", cache) == [99]
    assert len(store.segments()) == 2


@pytest.mark.slow
def test_full_text__of_appended_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After rows were appended, only these are read, and after another change all; results are those of a new index."""
    read, chosen = row_texts.read_keys, list[int | None]()

    def read_keys(media: Media, fields: Any, rows: Any = None) -> Any:
        chosen.append(None if rows is None else len(rows))
        return read(media, fields, rows)

    monkeypatch.setattr(module, "read_keys", read_keys)
    content = captions(["a dog", "two cars", None, "a red dog"] * 10)
    cache = tmp_path / "cache"
    for _ in range(6):  # segments are merged in between
        media, everything = written(tmp_path / "data", content[-4:] if chosen else content), content
        check(media, everything, ["dog", "cars -dog", "two OR red"], cache)
        content = [*content, *captions([f"a dog {len(content)}", "cars", None, "dog"])]
    assert chosen == [None, 4, 4, 4, 4, 4]
    deleted = tables.delete_rows(media.table, np.arange(media.table.count()) == 0)
    check(media_at(Table(media.table.path, deleted)), everything[1:], ["dog"], cache)
    assert chosen[-1] is None


@pytest.mark.slow
def test_full_text__in_batches(tmp_path: Path, tuning: Tuning) -> None:
    """Many texts are indexed in several segments, which are merged; progress ends at 1."""
    tuning.text_segment = 64
    texts = [f"text {number} of {number % 7}" for number in range(2000)]
    media, shares = written(tmp_path, captions(texts), part=300), list[float]()
    query = '"of 3" -file:10*'
    expected = [place for place, row in enumerate(captions(texts)) if plain.matches(query, row, "english")]
    assert found(media, query, tmp_path / "cache", progress=shares.append) == expected
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    assert len(list((tmp_path / "cache/english").iterdir())) < 8


def test_full_text__stopped(tmp_path: Path, tuning: Tuning) -> None:
    """A progress callback can stop the indexing; the next search continues with the stored segments."""
    tuning.text_segment = 64
    media = written(tmp_path, captions([f"text {number}" for number in range(2000)]), part=300)

    def stop(share: float) -> None:
        if share > 0.5:
            raise Aborted("enough")

    with pytest.raises(Aborted):
        find(media, "text", tmp_path / "cache", progress=stop)
    kept = list((tmp_path / "cache/english").iterdir())
    assert kept
    assert {path.suffix for path in kept} == {".text"}
    shares = list[float]()
    assert len(found(media, "text", tmp_path / "cache", progress=shares.append)) == 2000
    assert len(shares) > 0


def test_full_text__without_keeping(tmp_path: Path) -> None:
    """Searching a read-only workspace writes no file."""
    media = written(tmp_path, captions(["a dog", "a cat"]))
    assert found(media, "dog", tmp_path / "cache", keep=False) == [0]
    assert not (tmp_path / "cache").exists()


def test_full_text__where_nothing_can_be_written(tmp_path: Path) -> None:
    """A cache that cannot be created only costs time."""
    (tmp_path / "cache").write_text("a file")
    media = written(tmp_path, captions(["a dog", "a cat"]))
    assert found(media, "dog", tmp_path / "cache") == [0]


def test_full_text__damaged_cache(tmp_path: Path) -> None:
    """Damaged files of the cache are rebuilt."""
    media = written(tmp_path, captions(["a dog", "a cat"]))
    assert found(media, "dog", tmp_path / "cache") == [0]
    module._INDICES.clear()
    (path,) = (tmp_path / "cache/english").iterdir()
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    assert found(media, "cat", tmp_path / "cache") == [1]
    assert path.read_bytes() == content


@pytest.mark.slow
def test_full_text__threads(tmp_path: Path) -> None:
    """Several threads search several states at once with correct results."""
    content = captions([f"dog {number}" for number in range(300)])
    first = written(tmp_path, content)
    states = [first]
    for number in range(4):
        version = tables.append(first.table.path, [batch(captions([f"dog cat{number}"]))], SCHEMA)
        states.append(media_at(Table(first.table.path, version)))
    wrong: list[object] = []

    def search(turn: int) -> None:
        for step in range(15):
            place = (turn + step) % len(states)
            count = len(find(states[place], "dog", tmp_path / "cache").row_ids)
            cats = len(find(states[place], "cat*", tmp_path / "cache").row_ids)
            if (count, cats) != (300 + place, place):
                wrong.append((place, count, cats))

    threads = [threading.Thread(target=search, args=(turn,)) for turn in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


_SEARCH = """
import sys
from pathlib import Path
from framedex.storage.table_versions import Table
from tests.search.text.test_full_text import find, media_at
from tests.laws import examples

home = Path(sys.argv[1])
for version in range(1, 9):
    print(len(find(media_at(Table(home / "media.lance", version)), "text", home / "cache").row_ids))
"""


@pytest.mark.slow
def test_full_text__processes(tmp_path: Path) -> None:
    """Several processes that index and merge the same texts at once find all of them."""
    for number in range(8):
        tables.append(
            tmp_path / "media.lance", [batch(captions([f"text {number}-{each}" for each in range(50)]))], SCHEMA
        )
    running = [processes.start(_SEARCH, tmp_path) for _ in range(3)]
    for process in running:
        assert [int(line) for line in processes.finish(process).split()] == [50 * count for count in range(1, 9)]
    media = media_at(Table(tmp_path / "media.lance", 8))
    assert len(find(media, "text", tmp_path / "cache").row_ids) == 400


def test_full_text__bad_input(tmp_path: Path) -> None:
    """A query that is too long and an invalid language are refused before any work."""
    media = written(tmp_path, captions(["a dog"]))
    with pytest.raises(InvalidInput, match="may have 10,000 characters"):
        find(media, "dog " * 2501, tmp_path / "cache")
    with pytest.raises(InvalidInput, match="no language 'dogs'"):
        find(media, "dog", tmp_path / "cache", language="dogs")
    assert not (tmp_path / "cache").exists()
    assert found(media, "...", tmp_path / "cache") == []


@pytest.mark.slow
def test_full_text__of_a_workspace_that_is_edited(workspace: Workspace) -> None:
    """The index follows additions, edits and deletions of a dataset by its table versions alone."""
    vectors = np.eye(8, dtype=np.float32).tolist()
    dataset = workspace.create_dataset("pets", embedded(vectors[:4], caption=["a dog", "a cat", "two dogs", None]))
    folder = layout_of(workspace).texts(dataset.id)

    def count(query: str) -> int:
        return len(find(stored_media(dataset), query, folder).row_ids)

    assert count("dog") == 2
    ids = dataset.to_arrow(["media_id"])["media_id"].to_pylist()
    dataset.set_captions({ids[3]: "more dogs"})
    assert count("dog") == 3
    snapshot = dataset.snapshot("before")
    dataset.delete_media([ids[0]])
    dataset.set_labels({ids[1]: ["watchdog", "dog house"]})
    assert count("dog") == 3
    assert count('"dog house"') == 1
    dataset.restore(snapshot.snapshot_id)
    assert (count("dog"), count("house")) == (3, 0)
    workspace.delete_dataset("pets")
    assert not folder.exists()


def test_full_text__upkeep(workspace: Workspace) -> None:
    """The index counts towards disk usage, stays with its dataset, and leftovers of kills are removed."""
    dataset = workspace.create_dataset(
        "pets", embedded(np.eye(2, dtype=np.float32).tolist(), caption=["a dog", "a cat"])
    )
    media, folder = stored_media(dataset), layout_of(workspace).texts(dataset.id)
    assert found(media, "dog", folder) == [0]
    (kept,) = (folder / "english").iterdir()
    usage = workspace.disk_usage()
    assert usage.by_part["text index"] == kept.stat().st_size
    orphan = folder.parent / "00000000-0000-4000-8000-000000000000"
    (orphan / "english").mkdir(parents=True)
    (orphan / "english" / kept.name).write_bytes(kept.read_bytes())
    partial = folder / "english" / "1.2.partial"
    partial.write_bytes(b"half")
    os.utime(partial, (0, 0))
    assert workspace.disk_usage().freeable_bytes >= usage.freeable_bytes + kept.stat().st_size
    assert workspace.vacuum().partial_files == 1
    assert not orphan.exists()
    assert list((folder / "english").iterdir()) == [kept]
