"""The caption index follows all changes of the rows, whatever happens to its cache."""

import shutil
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from framedex.errors import Aborted
from framedex.records import Weights
from framedex.search.captions import captions
from framedex.search.captions import store as caption_store
from framedex.search.captions.captions import folder_of, open_captions
from framedex.search.captions.index import CaptionIndex
from framedex.search.captions.segments import read_caption_segment
from framedex.search.text import row_texts
from framedex.storage import tables
from framedex.storage.media import Media
from framedex.storage.table_versions import Table
from tests.laws import examples
from tests.meanings import Meanings
from tests.search.text.test_full_text import SCHEMA, batch, media_at, written
from tests.search.text.test_full_text import captions as rows_with
from tests.tuning import Tuning

QUERY = "red car at sea"


@pytest.fixture(autouse=True)
def fresh() -> None:
    """Clear the indices that other tests opened."""
    captions._OPEN.clear()


@pytest.fixture
def small(tuning: Tuning) -> None:
    """Use segments of a few texts, and cells in merged segments of any size."""
    tuning.encoded_captions = 4
    tuning.caption_segment = 8
    tuning.one_cell_bytes = 0


def opened(media: Media, folder: Path, encoder: Meanings | None = None, **more: Any) -> CaptionIndex:
    return open_captions(media, encoder or Meanings(), **{"folder": folder, "keep": True, **more})


def segments(folder: Path) -> list[Path]:
    return sorted((folder / folder_of(Meanings())).iterdir())


def edited(media: Media, texts: Sequence[str | None]) -> Media:
    """Return the state after all captions were replaced."""
    column = pa.RecordBatch.from_arrays([pa.array(texts, pa.string())], ["caption"])
    return media_at(Table(media.table.path, tables.put_columns(media.table, iter([column]), column.schema)))


def check(media: Media, texts: Sequence[str | None], index: CaptionIndex) -> None:
    """Check that an index returns the same as a comparison of all captions, with and without a filter."""
    plain = Meanings()
    query = plain.encode_texts([QUERY])[0]
    true = np.array(
        [plain.encode_texts([text.strip()])[0] @ query if text and text.strip() else np.nan for text in texts],
        np.float32,
    )
    row_ids = np.sort(media.table.scan([], row_ids=True).read_all()["_rowid"].to_numpy()).astype(np.uint64)
    assert index.row_ids.tolist() == row_ids.tolist()
    assert len(index) == int((~np.isnan(true)).sum())
    assert index.similarities(query) == pytest.approx(true, abs=1e-4, nan_ok=True)
    for step in (1, 2, 5):
        chosen = np.arange(0, len(row_ids), step)
        held = true[chosen][~np.isnan(true[chosen])]
        for k in (0, 1, 4, len(row_ids) + 1):
            found, similarity = index.nearest(query, k, index.select(row_ids[chosen]), n_candidates=10**6)
            assert similarity == pytest.approx(-np.sort(-held)[:k], abs=1e-4)
            assert true[np.searchsorted(row_ids, found)] == pytest.approx(similarity, abs=1e-4)
            assert set(found.tolist()) <= set(row_ids[chosen].tolist())
            assert found.tolist() == found[np.lexsort((found, -similarity))].tolist()
    for row_id, text in zip(row_ids.tolist(), texts, strict=True):
        vector = index.vector(row_id)
        if text and text.strip():
            assert vector == pytest.approx(plain.encode_texts([text.strip()])[0], abs=1e-3)
        else:
            assert vector is None


TEXTS = st.lists(
    st.one_of(st.none(), st.sampled_from(["", " \n", "a dog", " a dog", "red car"]), st.text("abc ", max_size=4)),
    max_size=30,
)  # fmt: skip
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), TEXTS),
        st.tuples(st.just("edit"), TEXTS),
        st.tuples(st.just("delete"), st.integers(1, 4)),
        st.tuples(st.just("back"), st.integers(0, 9)),
        st.tuples(st.just("forget"), st.sampled_from(["process", "cache"])),
    ),
    max_size=4,
)


@pytest.mark.slow
@pytest.mark.usefixtures("small")
def test_open__any_sequence(tmp_path_factory: pytest.TempPathFactory) -> None:
    """After any additions, edits, deletions, restores and losses, results equal a comparison of all captions."""

    @examples(12)
    @given(TEXTS, STEPS)
    def holds(texts: list[str | None], steps: list[tuple[str, Any]]) -> None:
        home = tmp_path_factory.mktemp("any")
        states = [(written(home, rows_with(texts)), texts)]
        for kind, value in steps:
            media, texts = states[-1]
            check(media, texts, opened(media, home / "cache"))
            if kind == "append":
                texts = [*texts, *value]
                version = tables.append(media.table.path, [batch(rows_with(value))], SCHEMA)
                media = media_at(Table(media.table.path, version))
            elif kind == "edit" and value and texts:
                texts = [value[place % len(value)] for place in range(len(texts))]
                media = edited(media, texts)
            elif kind == "delete" and texts:
                gone = np.arange(len(texts)) % (value + 1) == 0
                texts = [text for text, is_gone in zip(texts, gone, strict=True) if not is_gone]
                media = media_at(Table(media.table.path, tables.delete_rows(media.table, gone)))
            elif kind == "back":
                old, texts = states[value % len(states)]
                restored = tables.roll_back(media.table.path, old.table.version)
                assert restored is not None
                media = media_at(Table(media.table.path, restored))
            elif kind == "forget":
                captions._OPEN.clear()
                if value == "cache":
                    shutil.rmtree(home / "cache", ignore_errors=True)
            states.append((media, texts))
        for media, texts in (states[-1], states[0]):
            check(media, texts, opened(media, home / "cache"))

    holds()


def numbered(count: int, first: int = 0) -> list[str | None]:
    return [f"word{number} of{number % 20}" for number in range(first, first + count)]


@pytest.mark.slow
def test_open__merges(tmp_path: Path, small: None, tuning: Tuning) -> None:
    """Many small segments become few large ones, in cells; the default search finds nearly all near captions."""
    tuning.caption_segment = 200
    texts = numbered(1500)
    media, encoder, shares = written(tmp_path, rows_with(texts)), Meanings(), list[float]()
    index = opened(media, tmp_path / "cache", encoder, progress=shares.append)
    assert len(segments(tmp_path / "cache")) == 1
    assert len(index.segments[0].cells.centroids) == 3
    assert shares == sorted(shares)
    assert 0.99 < shares[-1] <= 1
    assert len(encoder.asked) == 1500
    check(media, texts, index)
    found = true = 0
    for number in range(0, 20, 3):
        query = encoder.encode_texts([f"of{number}"])[0]
        expected = set(index.nearest(query, 20, n_candidates=10**6)[0].tolist())
        found += len(expected & set(index.nearest(query, 20)[0].tolist()))
        true += len(expected)
    assert found >= 0.9 * true


@pytest.mark.slow
@pytest.mark.usefixtures("small")
def test_open__of_appended_rows(tmp_path: Path, small: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """After rows were appended, only these are read, unless segments are merged; results are those of a new index."""
    read, chosen = row_texts.read_keys, list[int | None]()

    def read_keys(media: Media, fields: Any, rows: Any = None) -> Any:
        chosen.append(None if rows is None else len(rows))
        return read(media, fields, rows)

    monkeypatch.setattr(captions, "read_keys", read_keys)
    texts = [None if number % 5 == 0 else f"car {number}" for number in range(30)]
    for _ in range(6):
        media = written(tmp_path / "data", rows_with(texts[-4:] if chosen else texts))
        check(media, texts, opened(media, tmp_path / "cache"))
        texts = [*texts, f"sea {len(texts)}", None, "car 1", f"red {len(texts)}"]
    assert chosen[:2] == [None, 4]
    assert chosen.count(4) == 5
    assert len(chosen) < 12


@pytest.mark.slow
@pytest.mark.only_soak
def test_open__forgets_what_most_rows_lost(tmp_path: Path) -> None:
    """Texts without rows stay while they are a minority, for restores; a merge drops a majority."""
    media = written(tmp_path, rows_with(numbered(40)))
    opened(media, tmp_path / "cache")
    few = edited(media, [*numbered(30), *numbered(10, 100)])
    opened(few, tmp_path / "cache")
    encoder = Meanings()
    captions._OPEN.clear()
    opened(media, tmp_path / "cache", encoder)
    assert encoder.asked == []
    media = few
    for turn in range(6):
        media = edited(media, numbered(40, 1000 * (turn + 1)))
        check(media, numbered(40, 1000 * (turn + 1)), opened(media, tmp_path / "cache"))
    assert sum(len(each) for each in opened(media, tmp_path / "cache").segments) < 200


def test_open__one_that_two_processes_made(tmp_path: Path, small: None) -> None:
    """Texts in several segments are found once, and merged into one."""
    texts = numbered(30)
    media = written(tmp_path, rows_with(texts))
    opened(media, tmp_path / "cache")
    for number, path in enumerate(segments(tmp_path / "cache")):
        for copy in range(4):
            shutil.copytree(path, path.with_name(f"copy-{number}-{copy}"))
    captions._OPEN.clear()
    check(media, texts, opened(media, tmp_path / "cache"))
    assert len(segments(tmp_path / "cache")) == 1
    assert sum(len(each) for each in opened(media, tmp_path / "cache").segments) == 30


@pytest.mark.slow
@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("share", [0.3, 0.89, 0.95])
def test_open__stopped(tmp_path: Path, share: float) -> None:
    """A progress callback can stop the build while captions are encoded or sorted; no unfinished file remains."""
    texts = numbered(200)
    media = written(tmp_path, rows_with(texts))

    def stop(done: float) -> None:
        if done >= share:
            raise Aborted("enough")

    with pytest.raises(Aborted):
        opened(media, tmp_path / "cache", progress=stop)
    assert segments(tmp_path / "cache")
    assert not [path for path in segments(tmp_path / "cache") if path.suffix]
    encoder = Meanings()
    check(media, texts, opened(media, tmp_path / "cache", encoder))
    assert len(encoder.asked) < 200


@pytest.mark.slow
@pytest.mark.only_soak
def test_open__without_keeping(tmp_path: Path, small: None) -> None:
    """Without write access, segments are in a temporary folder, also merged ones; the cache stays unchanged."""
    texts = numbered(60)
    media = written(tmp_path, rows_with(texts))
    check(media, texts, opened(media, tmp_path / "cache", keep=False))
    assert not (tmp_path / "cache").exists()
    opened(media, tmp_path / "cache")
    before = sorted((tmp_path / "cache").rglob("*"))
    for number in range(3):
        texts = [*texts, *numbered(20, 1000 * (number + 1))]
        media = edited(written(tmp_path / f"{number}", rows_with(texts)), texts)
        check(media, texts, opened(media, tmp_path / "cache", keep=False))
    assert sorted((tmp_path / "cache").rglob("*")) == before


def test_open__threads(tmp_path: Path) -> None:
    """Threads that open a state at once get the same index, and each text is encoded once."""
    media, encoder = written(tmp_path, rows_with(numbered(100))), Meanings()
    found: list[CaptionIndex] = []
    threads = [
        threading.Thread(target=lambda: found.append(opened(media, tmp_path / "cache", encoder))) for _ in range(4)
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join(60)
    assert len(set(map(id, found))) == 1
    assert len(found) == 4
    assert len(encoder.asked) == 100


def test_store__a_folder_in_which_others_merge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a segment is removed while a folder is read, the folder is read again to find its replacement."""
    media = written(tmp_path, rows_with(numbered(20)))
    opened(media, tmp_path / "cache")
    (path,) = segments(tmp_path / "cache")
    read, moved = read_caption_segment, path.with_name("another")

    def late(folder: Path, dimension: int) -> Any:
        if folder == path and path.exists():
            path.rename(moved)
        return read(folder, dimension)

    monkeypatch.setattr(caption_store, "read_caption_segment", late)
    captions._OPEN.clear()
    encoder = Meanings()
    check(media, numbered(20), opened(media, tmp_path / "cache", encoder))
    assert encoder.asked == []


def test_folder_of__tells_encoders_apart() -> None:
    """A folder name depends on an encoder's name, dimension and weights, and on nothing else."""

    class Weighty(Meanings):
        files = (Path("model.bin"),)
        weights: Weights | None = None

    one, other, moved = Weighty(), Weighty(), Weighty()
    one.weights = Weights(path="a/model.bin", sha256="1" * 64, settings={"pooling": "mean"})
    other.weights = Weights(path="a/model.bin", sha256="2" * 64, settings={"pooling": "mean"})
    moved.weights = Weights(path="b/model.bin", sha256="1" * 64, settings={"pooling": "mean"})
    found = [folder_of(each) for each in (Meanings(), Meanings("b"), Meanings(dimension=8), one, other)]
    assert len(set(found)) == 5
    assert folder_of(moved) == folder_of(one)
    assert folder_of(Meanings()) == found[0]
