"""What the measured processes of the search benchmark do: ``python search_workers.py TASK:OPTION FOLDER ANSWER``.

The folder has ``vectors.npy`` (float32, unit length), ``queries.npy``, ``share.npy`` (a number in [0, 1) for each row,
by which filters choose) and ``truth.json`` (the exact answers). Tools are asked for the same queries one after another.
"""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

Answer = dict[str, Any]
Search = Callable[[Any, float], Any]
"""Given a query and the share of rows that the filter keeps, returns row numbers."""
K, QUERIES = 100, 200
SHARES = (1.0, 0.5, 0.01, 0.0001)
NOISE = 0.35


def make(folder: Path, option: str) -> Answer:
    """Write vectors, queries (rows with noise of a third of their length), and the exact answers."""
    from vectors import Clustered, unit

    rows, dimension = map(int, option.split("x"))
    started = time.perf_counter()
    held = np.lib.format.open_memmap(folder / "vectors.npy", "w+", np.float32, (rows, dimension))
    start = 0
    for block in Clustered(rows, dimension).blocks():
        held[start : start + len(block)] = block
        start += len(block)
    random = np.random.default_rng(1)
    noise = random.standard_normal((QUERIES, dimension)) * NOISE / np.sqrt(dimension)
    queries = unit(held[random.choice(rows, QUERIES, replace=rows < QUERIES)] + noise)
    share = random.random(rows)
    np.save(folder / "queries.npy", queries)
    np.save(folder / "share.npy", share)
    (folder / "truth.json").write_text(json.dumps(_truth(held, queries, share)))
    return {"seconds": time.perf_counter() - started}


def _truth(vectors: Any, queries: Any, share: Any) -> dict[str, list[list[int]]]:
    found: dict[str, list[list[int]]] = {str(each): [] for each in SHARES}
    similarity = np.concatenate(
        [vectors[start : start + 65_536] @ queries.T for start in range(0, len(vectors), 65_536)]
    )
    for number in range(len(queries)):
        for each in SHARES:
            rows = np.flatnonzero(share < each)
            order = np.argsort(-similarity[rows, number], kind="stable")[:K]
            found[str(each)].append(rows[order].tolist())
    return found


def _measured(folder: Path, search: Search, build_s: float, shares: tuple[float, ...] = SHARES) -> Answer:
    """Return recall and times of a tool; the first queries are not timed."""
    queries, truth = np.load(folder / "queries.npy"), json.loads((folder / "truth.json").read_text())
    out: Answer = {"seconds": 0.0, "build_s": build_s, "shares": {}}
    for share in shares:
        for query in queries[:10]:
            search(query, share)
        times, recall = [], []
        for query, wanted in zip(queries, truth[str(share)], strict=True):
            started = time.perf_counter()
            found = search(query, share)
            times.append(1000 * (time.perf_counter() - started))
            recall.append(len(set(map(int, found)) & set(wanted)) / max(len(wanted), 1))
        p50, p95, p99 = np.percentile(times, [50, 95, 99])
        out["shares"][str(share)] = {"p50_ms": p50, "p95_ms": p95, "p99_ms": p99, "recall": float(np.mean(recall))}
        out["seconds"] += sum(times) / 1000
    return out


def framedex(folder: Path, option: str) -> Answer:
    """Search a dataset: through ``ds.similar``, and with the engine alone."""
    import framedex as fx
    from framedex.operations.context import open_media
    from framedex.operations.searches import open_searcher

    made_s = _dataset(folder)
    with fx.Workspace(folder / "workspace") as workspace:
        dataset = workspace.dataset("bench")
        started = time.perf_counter()
        dataset.similar(np.load(folder / "queries.npy")[0], 1).count()
        build_s = time.perf_counter() - started
        ids = np.array([int(uri) for uri in dataset.to_arrow(["image_filename"])["image_filename"].to_pylist()])
        media = dataset.to_arrow(["media_id"])["media_id"].to_pylist()
        number = dict(zip(media, ids.tolist(), strict=True))
        elements = {share: [{"labels": {"op": "is", "value": str(share)}}] for share in SHARES}
        if option == "engine":
            searches = open_searcher(dataset._context, open_media(dataset._context, dataset.id))
            index, row_ids = searches.index, searches.index.row_ids
            chosen = {
                share: None
                if share == 1
                else index.select(searches.media.row_ids(dataset.where(elements[share])._condition(searches.media)))
                for share in SHARES
            }
            answer = _measured(
                folder,
                lambda query, share: ids[np.searchsorted(row_ids, index.nearest(query, K, chosen[share])[0])],
                build_s,
            )
        else:

            def search(query: Any, share: float) -> Any:
                view = dataset.similar(query, K)
                view = view if share == 1 else view.where(elements[share])
                return [number[each] for each in view.media_ids()]

            answer = _measured(folder, search, build_s)
    return answer | {"made_s": made_s}


def _dataset(folder: Path) -> float:
    """Make the dataset of the vectors, if it is not there."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    import framedex as fx

    if (folder / "workspace").exists():
        return 0.0
    vectors, share = np.load(folder / "vectors.npy", mmap_mode="r"), np.load(folder / "share.npy")
    source, writer, started = folder / "source.parquet", None, time.perf_counter()
    for start in range(0, len(vectors), 65_536):
        block = np.ascontiguousarray(vectors[start : start + 65_536])
        labels = [[str(each) for each in SHARES[1:] if value < each] for value in share[start : start + len(block)]]
        part = pa.table(
            {
                "uri": [str(number) for number in range(start, start + len(block))],
                "embedding": pa.FixedSizeListArray.from_arrays(pa.array(block.ravel()), block.shape[1]),
                "labels": pa.array(labels, pa.list_(pa.string())),
            }
        )
        writer = writer or pq.ParquetWriter(source, part.schema)
        writer.write_table(part)
    assert writer is not None, "there are rows"
    writer.close()
    with fx.Workspace(folder / "workspace") as workspace:
        workspace.create_dataset("bench", source)
    source.unlink()
    return time.perf_counter() - started


def numpy_(folder: Path, _option: str) -> Answer:
    """Compare everything, in memory."""
    vectors, share = np.load(folder / "vectors.npy"), np.load(folder / "share.npy")
    kept = {each: np.flatnonzero(share < each) for each in SHARES}

    def search(query: Any, each: float) -> Any:
        rows = kept[each]
        similarity = vectors @ query if each == 1 else vectors[rows] @ query
        count = min(K, len(rows))
        best = np.argpartition(-similarity, count - 1)[:count]
        return rows[best[np.argsort(-similarity[best])]]

    return _measured(folder, search, 0.0)


def faiss(folder: Path, option: str) -> Answer:
    """Search an IVF index of faiss, with as many cells as the root of four times the rows, and filters by bit maps."""
    import faiss

    vectors, share = np.load(folder / "vectors.npy"), np.load(folder / "share.npy")
    rows, dimension = vectors.shape
    cells, started = max(1, int(2 * np.sqrt(rows))), time.perf_counter()
    index = faiss.index_factory(dimension, f"IVF{cells},{option}", faiss.METRIC_INNER_PRODUCT)
    index.train(vectors[:: max(1, rows // (64 * cells))])
    index.add(vectors)
    build_s = time.perf_counter() - started
    selectors = {each: faiss.IDSelectorBitmap(np.packbits(share < each, bitorder="little")) for each in SHARES[1:]}

    def search(query: Any, each: float) -> Any:
        options: dict[str, Any] = {"nprobe": min(32, cells)}
        if each < 1:
            options["sel"] = selectors[each]
        found = index.search(query[None], K, params=faiss.SearchParametersIVF(**options))[1][0]
        return found[found >= 0]

    return _measured(folder, search, build_s)


def lancedb(folder: Path, option: str) -> Answer:
    """Search a LanceDB table with an index, and filters by a column."""
    import lancedb
    import pyarrow as pa

    vectors, share = np.load(folder / "vectors.npy"), np.load(folder / "share.npy")
    rows, dimension = vectors.shape
    embedding = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), dimension)
    table = lancedb.connect(str(folder / "lancedb")).create_table(
        "bench", pa.table({"number": np.arange(rows), "share": share, "vector": embedding}), mode="overwrite"
    )
    started = time.perf_counter()
    cells = max(1, int(np.sqrt(rows)))
    table.create_index(metric="cosine", num_partitions=cells, vector_column_name="vector", index_type=option)
    build_s = time.perf_counter() - started

    def search(query: Any, each: float) -> Any:
        asked = table.search(query, vector_column_name="vector").distance_type("cosine").limit(K).nprobes(32)
        asked = asked.refine_factor(2).select(["number", "_distance"])
        if each < 1:
            asked = asked.where(f"share < {each}", prefilter=True)
        return asked.to_arrow()["number"].to_pylist()

    return _measured(folder, search, build_s)


def chroma(folder: Path, _option: str) -> Answer:
    """Search a Chroma collection in memory (HNSW), and filters by metadata."""
    import chromadb

    vectors, share = np.load(folder / "vectors.npy"), np.load(folder / "share.npy")
    client = chromadb.EphemeralClient(chromadb.config.Settings(anonymized_telemetry=False))
    collection = client.create_collection("bench", metadata={"hnsw:space": "cosine"})
    started = time.perf_counter()
    for start in range(0, len(vectors), 5000):
        stop = min(start + 5000, len(vectors))
        collection.add(
            ids=[str(number) for number in range(start, stop)],
            embeddings=vectors[start:stop],
            metadatas=[{"share": float(value)} for value in share[start:stop]],
        )
    build_s = time.perf_counter() - started

    def search(query: Any, each: float) -> Any:
        where = {"where": {"share": {"$lt": each}}} if each < 1 else {}
        return collection.query(query_embeddings=[query], n_results=K, include=["distances"], **where)["ids"][0]

    return _measured(folder, search, build_s)


def qdrant(folder: Path, _option: str) -> Answer:
    """Search a local collection of qdrant-client, which compares everything."""
    from qdrant_client import QdrantClient, models

    vectors, share = np.load(folder / "vectors.npy"), np.load(folder / "share.npy")
    client = QdrantClient(":memory:")
    config = models.VectorParams(size=vectors.shape[1], distance=models.Distance.COSINE)
    client.create_collection("bench", vectors_config=config)
    started = time.perf_counter()
    client.upload_collection(
        "bench", vectors=vectors, payload=[{"share": float(each)} for each in share], ids=list(range(len(vectors)))
    )
    build_s = time.perf_counter() - started

    def search(query: Any, each: float) -> Any:
        kept = (
            models.Filter(must=[models.FieldCondition(key="share", range=models.Range(lt=each))]) if each < 1 else None
        )
        found = client.query_points("bench", query=query.tolist(), limit=K, query_filter=kept, with_payload=False)
        return [point.id for point in found.points]

    return _measured(folder, search, build_s)


TASKS: dict[str, Callable[[Path, str], Answer]] = {
    "make": make,
    "framedex": framedex,
    "numpy": numpy_,
    "faiss": faiss,
    "lancedb": lancedb,
    "chroma": chroma,
    "qdrant": qdrant,
}


def main() -> None:
    """Run the task that the command line names."""
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    task, _, option = sys.argv[1].partition(":")
    Path(sys.argv[3]).write_text(json.dumps(TASKS[task](Path(sys.argv[2]), option)), "utf-8")


if __name__ == "__main__":
    main()
