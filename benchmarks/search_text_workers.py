"""What the measured processes of the full-text benchmark do: ``python search_text_workers.py TASK FOLDER ANSWER``.

The folder holds ``documents.json``, a text for each photo, and ``queries.json``, a list of words for each photo. An
answer has ``seconds`` (of indexing), ``query_s`` (the median of one query, with all rows that match), ``size_bytes``
(of the index on the disk) and ``ranks``: the place of each photo among the results of its query, from 1; 0 where it is
not found.
"""

import json
import random
import re
import resource
import sqlite3
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

Answer = dict[str, Any]
_BLOCK = 65_536
_CAPTION_WORDS, _VOCABULARY, _MANY = 12, 30_000, 200_000


def _load(folder: Path) -> tuple[list[str], list[list[str]]]:
    documents, queries = (json.loads((folder / f"{name}.json").read_text()) for name in ("documents", "queries"))
    return documents, queries


def _rank(scores: dict[int, float], own: int) -> int:
    """Return the place of a document; of equal scores the first one comes first."""
    if own not in scores:
        return 0
    mine = scores[own]
    return 1 + sum(score > mine or (score == mine and place < own) for place, score in scores.items())


def _ranked(ask: Callable[[list[str]], dict[int, float]], queries: Sequence[list[str]]) -> Answer:
    ranks, seconds = [], []
    for place, words in enumerate(queries):
        started = time.perf_counter()
        scores = ask(words)
        seconds.append(time.perf_counter() - started)
        ranks.append(_rank(scores, place))
    return {"ranks": ranks, "query_s": statistics.median(seconds)}


def fts5(folder: Path) -> Answer:
    """SQLite FTS5 with its Porter stemmer and bm25()."""
    documents, queries = _load(folder)
    started = time.perf_counter()
    connection = sqlite3.connect(folder / "fts5.db")
    connection.execute("CREATE VIRTUAL TABLE texts USING fts5(caption, tokenize = 'porter unicode61')")
    connection.executemany("INSERT INTO texts(rowid, caption) VALUES (?, ?)", enumerate(documents))
    connection.commit()
    seconds = time.perf_counter() - started

    def ask(words: list[str]) -> dict[int, float]:
        text = " OR ".join(f'"{word}"' for word in words)
        rows = connection.execute("SELECT rowid, bm25(texts) FROM texts WHERE texts MATCH ?", (text,))
        return {row: -score for row, score in rows}

    size = (folder / "fts5.db").stat().st_size
    return {"seconds": seconds, "version": sqlite3.sqlite_version, "size_bytes": size, **_ranked(ask, queries)}


def tantivy(folder: Path) -> Answer:
    """Tantivy with its English stemmer, indexing on two threads."""
    import tantivy as engine

    documents, queries = _load(folder)
    schema = engine.SchemaBuilder()
    schema.add_integer_field("row", stored=True)
    schema.add_text_field("caption", stored=False, tokenizer_name="en_stem")
    (where := folder / "tantivy").mkdir()
    index = engine.Index(schema.build(), path=str(where))
    started = time.perf_counter()
    writer = index.writer(heap_size=2**28, num_threads=2)
    for row, document in enumerate(documents):
        writer.add_document(engine.Document(row=row, caption=document))
    writer.commit()
    writer.wait_merging_threads()
    index.reload()
    seconds = time.perf_counter() - started
    searcher = index.searcher()

    def ask(words: list[str]) -> dict[int, float]:
        hits = searcher.search(index.parse_query(" ".join(words), ["caption"]), limit=len(documents)).hits
        return {searcher.doc(address)["row"][0]: score for score, address in hits}

    return {"seconds": seconds, "size_bytes": _size(where), **_ranked(ask, queries)}


def bm25(folder: Path) -> Answer:
    """rank-bm25's BM25Okapi at its defaults, over lower-case words: it brings no words or stems of its own."""
    import rank_bm25

    documents, queries = _load(folder)
    started = time.perf_counter()
    index = rank_bm25.BM25Okapi([re.findall(r"\w+", document.lower()) for document in documents])
    seconds = time.perf_counter() - started
    return {"seconds": seconds, **_ranked(lambda words: dict(enumerate(index.get_scores(words).tolist())), queries)}


def framedex(folder: Path) -> Answer:
    """Framedex over a table with the texts as captions."""
    documents, queries = _load(folder)
    version = _write(folder, _block([f"{place}.jpg" for place in range(len(documents))], documents))
    media = _media(folder, version, "a")
    from framedex.search.text.full_text import full_text

    def ask(words: list[str]) -> dict[int, float]:
        found = full_text(media, " ".join(words), folder=folder / "cache", keep=True, language="english")
        return dict(zip(found.row_ids.tolist(), found.scores.tolist(), strict=True))

    started = time.perf_counter()
    ask(["first"])
    seconds = time.perf_counter() - started
    return {"seconds": seconds, "size_bytes": _size(folder / "cache"), **_ranked(ask, queries)}


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _write(folder: Path, block: Any) -> int:
    """Append rows to a table of media; return its version."""
    from framedex.storage import tables

    return tables.append(folder / "media.lance", [block], block.schema)


def _media(folder: Path, version: int, generation: str) -> Any:
    """Return media of the table, as if it were of that generation."""
    from framedex.storage.datasets import now
    from framedex.storage.generation import Generation, Summary
    from framedex.storage.media import Media
    from framedex.storage.sql import Sql
    from framedex.storage.table_versions import Table

    state = Generation(id=generation, dataset_id="d", tables={}, n_images=0, created_at=now(), summary=Summary())
    return Media("d", state, Table(folder / "media.lance", version), Sql(), ())


def _block(paths: Sequence[str], captions: Sequence[str]) -> Any:
    import pyarrow as pa

    labels = pa.nulls(len(paths), pa.list_(pa.string()))
    columns = {"path": pa.array(paths), "labels": labels, "caption": pa.array(captions, pa.string())}
    return pa.RecordBatch.from_pydict(columns)


def many(folder: Path) -> Answer:
    """Write 200,000 captions as of a million, and a query of three words, which 5 % of them match."""
    random.seed(0)
    words, weights = _vocabulary()
    drawn = random.choices(words, weights, k=_MANY * _CAPTION_WORDS)
    documents = [" ".join(drawn[at : at + _CAPTION_WORDS]) for at in range(0, len(drawn), _CAPTION_WORDS)]
    (folder / "documents.json").write_text(json.dumps(documents))
    (folder / "queries.json").write_text(json.dumps([[words[20], words[300], words[5000]]] * 9))
    return {"seconds": 0.0}


def _vocabulary() -> tuple[list[str], list[float]]:
    """Return words and their weights, which follow Zipf's law."""
    return [_word(rank) for rank in range(_VOCABULARY)], [1 / rank for rank in range(1, _VOCABULARY + 1)]


def million(folder: Path) -> Answer:
    """Write a table of a million captions of 12 words, whose frequencies follow Zipf's law."""
    random.seed(0)
    words, weights = _vocabulary()
    for start in range(0, 1_000_000, _BLOCK):
        count = min(_BLOCK, 1_000_000 - start)
        drawn = random.choices(words, weights, k=count * _CAPTION_WORDS)
        captions = [" ".join(drawn[at : at + _CAPTION_WORDS]) for at in range(0, len(drawn), _CAPTION_WORDS)]
        paths = [f"set-{number % 100:02d}/photos/{number:08d}.jpg" for number in range(start, start + count)]
        version = _write(folder, _block(paths, captions))
    (folder / "table.json").write_text(json.dumps({"words": words, "version": version}))
    return {"seconds": 0.0}


def _word(rank: int) -> str:
    """Return a word that can be spoken: syllables for the digits of a number."""
    syllables = [first + second for first in "bdfgklmnprst" for second in "aeiou"]
    text = ""
    while rank or not text:
        rank, digit = divmod(rank, len(syllables))
        text += syllables[digit]
    return text


def _edit(folder: Path, version: int) -> int:
    """Change one caption of the table; return its new version."""
    import pyarrow as pa

    from framedex.storage import tables
    from framedex.storage.table_versions import Table

    table = Table(folder / "media.lance", version)
    captions = table.scan(["caption"]).read_all()["caption"].combine_chunks()
    changed = pa.chunked_array([pa.array([f"edited {version}"]), captions.slice(1)]).combine_chunks()
    batch = pa.RecordBatch.from_arrays([changed], ["caption"])
    return tables.put_columns(table, iter([batch]), batch.schema)


def build_million(folder: Path) -> Answer:
    """Index a million captions, then search."""
    from framedex.search.text.full_text import full_text

    words, version = json.loads((folder / "table.json").read_text()).values()
    before = _peak_mib()

    def ask(text: str, generation: str) -> float:
        media = _media(folder, version, generation)
        started = time.perf_counter()
        full_text(media, text, folder=folder / "cache", keep=True, language="english")
        return time.perf_counter() - started

    processor = time.process_time()
    built = ask("first", "a")
    processor = time.process_time() - processor
    peak = _peak_mib()
    same = statistics.median(ask("first", f"b{turn}") for turn in range(3))
    edited = []
    for turn in range(3):
        version = _edit(folder, version)
        edited.append(ask("first", f"c{turn}"))
    queries = {
        "one rare word": words[9_000],
        "one word of a hundredth": words[8],
        "one word of half the captions": words[0],
        "three words": f"{words[20]} {words[300]} {words[5000]}",
        "twelve words": " ".join(words[2 ** (place + 2)] for place in range(12)),
        "three words, AND": f"{words[20]} AND {words[30]} AND {words[40]}",
        "phrase of two common words": f'"{words[1]} {words[2]}"',
        "prefix": f"{words[700][:4]}*",
        "word without a word": f"{words[20]} -{words[0]}",
        "file name": "00012345",
    }
    times = {name: statistics.median(ask(text, "c2") for _ in range(9)) for name, text in queries.items()}
    size = _size(folder / "cache")
    return {
        "seconds": built,
        "processor_s": processor,
        "before_mib": before,
        "peak_mib": peak,
        "same_texts_s": same,
        "edited_s": statistics.median(edited),
        "query_s": times,
        "size_bytes": size,
    }


def open_million(folder: Path) -> Answer:
    """Search in a process that finds the index on the disk."""
    from framedex.search.text.full_text import full_text

    media = _media(folder, json.loads((folder / "table.json").read_text())["version"], "c")
    started = time.perf_counter()
    full_text(media, "first", folder=folder / "cache", keep=True, language="english")
    return {"seconds": time.perf_counter() - started, "peak_mib": _peak_mib()}


def _peak_mib() -> float:
    unit = 1 if sys.platform == "darwin" else 1024  # ru_maxrss is in bytes on macOS, in KiB on Linux
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20


TASKS: dict[str, Callable[[Path], Answer]] = {
    task.__name__: task for task in (fts5, tantivy, bm25, framedex, many, million, build_million, open_million)
}


def main() -> None:
    """Run the task that the command line names."""
    result = TASKS[sys.argv[1]](Path(sys.argv[2]))
    Path(sys.argv[3]).write_text(json.dumps(result), "utf-8")


if __name__ == "__main__":
    main()
