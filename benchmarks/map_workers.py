"""Work of the benchmark of maps, in processes of their own: a graph, layouts of it by several tools, and their quality.

Each task reads ``job.json`` in a folder that all share. The layouts get the same exact or nearly exact neighbours, and
the same places to begin with, the first two principal components.
"""

import json
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Answer = dict[str, Any]
Points = npt.NDArray[np.float32]
_K, _UMAP_K = 20, 15
_SAMPLE, _NEAR = 2_000, 10


def make(folder: Path, rows: int, dimension: int, grown: float) -> Answer:
    """Write clustered vectors, the sub-cluster of each, and their neighbours; also with some more rows."""
    from framedex.analysis.neighbours import nearest
    from vectors import Clustered

    total = rows + round(rows * grown)
    source = Clustered(total, dimension)
    vectors = source.all()
    centres = source._centres()[0]
    leaf = np.concatenate([(vectors[at : at + 10_000] @ centres.T).argmax(axis=1) for at in range(0, total, 10_000)])
    np.save(folder / "vectors.npy", vectors)
    np.save(folder / "leaf.npy", leaf)
    began = time.perf_counter()
    graph = nearest(vectors[:rows], k=_K)
    seconds = time.perf_counter() - began
    np.save(folder / "neighbours.npy", graph.rows)
    np.save(folder / "similarity.npy", graph.similarity)
    if grown:
        np.save(folder / "more.npy", nearest(vectors, k=_K).rows)
    return {"seconds": seconds}


def framedex(folder: Path, rows: int, **_: Any) -> Answer:
    """Place rows by Framedex."""
    from framedex.analysis.layout import place_rows, principal_components
    from framedex.analysis.vector_sources import VectorsInMemory

    vectors = np.load(folder / "vectors.npy", mmap_mode="r")[:rows]
    neighbours = np.load(folder / "neighbours.npy")
    began = time.perf_counter()
    start = principal_components(VectorsInMemory(vectors))
    places = place_rows(neighbours, start, is_known=False, progress=lambda _share: None)
    seconds = time.perf_counter() - began
    np.save(folder / "framedex.npy", places)
    return {"seconds": seconds}


def again(folder: Path, rows: int, **_: Any) -> Answer:
    """Place more rows, beginning with the places of the first ones; return how far these moved, in widths."""
    from framedex.analysis.layout import aligned, place_rows

    before, more = np.load(folder / "framedex.npy"), np.load(folder / "more.npy")
    new = more[rows:]
    known = (new < rows)[:, :, None]
    count = np.maximum(known.sum(axis=1), 1)
    start = np.concatenate([before, np.where(known, before[np.minimum(new, rows - 1)], 0).sum(axis=1) / count])
    began = time.perf_counter()
    places = place_rows(more, start.astype(np.float32), is_known=True, progress=lambda _share: None)
    places = aligned(places, before, np.arange(rows), np.arange(rows))
    seconds = time.perf_counter() - began
    moved = np.linalg.norm(places[:rows] - before, axis=1)
    return {"seconds": seconds, "moved": float(np.median(moved) / np.ptp(before, axis=0).max())}


def umap(folder: Path, rows: int, **_: Any) -> Answer:
    """Place rows by umap-learn, with its defaults, from 15 of the neighbours."""
    from umap import UMAP

    vectors, start = _begin(folder, rows)
    neighbours, distance = _graph(folder)
    own = np.arange(rows)[:, None]
    known = (
        np.concatenate([own, neighbours[:, : _UMAP_K - 1]], axis=1),
        np.concatenate([np.zeros((rows, 1), np.float32), distance[:, : _UMAP_K - 1]], axis=1),
        None,
    )
    return _timed(
        folder / "umap.npy",
        lambda: UMAP(n_neighbors=_UMAP_K, init=10 * start, precomputed_knn=known, metric="cosine").fit_transform(
            vectors
        ),
    )


def pacmap(folder: Path, rows: int, **_: Any) -> Answer:
    """Place rows by PaCMAP, with its defaults, from 10 of the neighbours."""
    from pacmap import PaCMAP

    vectors, start = _begin(folder, rows)
    neighbours, _distance = _graph(folder)
    pairs = np.stack([np.repeat(np.arange(rows), 10), neighbours[:, :10].ravel()], axis=1).astype(np.int32)
    return _timed(
        folder / "pacmap.npy",
        lambda: PaCMAP(n_neighbors=10, pair_neighbors=pairs).fit_transform(np.ascontiguousarray(vectors), init=start),
    )


def opentsne(folder: Path, rows: int, **_: Any) -> Answer:
    """Place rows by openTSNE, with its defaults, at the perplexity that all the neighbours allow."""
    from openTSNE import TSNE
    from openTSNE.affinity import PerplexityBasedNN
    from openTSNE.nearest_neighbors import PrecomputedNeighbors

    _vectors, start = _begin(folder, rows)
    neighbours, distance = _graph(folder)

    def place() -> Any:
        known = PrecomputedNeighbors(neighbours.astype(np.int64), np.sqrt(2 * distance))
        affinities = PerplexityBasedNN(knn_index=known, perplexity=_K / 3, n_jobs=2)
        return TSNE(n_jobs=2).fit(affinities=affinities, initialization=1e-4 * start)

    return _timed(folder / "opentsne.npy", place)


def quality(folder: Path, rows: int, tool: str, **_: Any) -> Answer:
    """Return what a layout keeps, of a sample of rows.

    The share of the ten nearest rows that are among the ten nearest in the plane; the share of these that are of the
    same sub-cluster; and the trustworthiness (J. Venna & S. Kaski, 2001) of these.
    """
    from scipy.spatial import cKDTree

    began = time.perf_counter()
    vectors = np.load(folder / "vectors.npy", mmap_mode="r")[:rows]
    leaf, places = np.load(folder / "leaf.npy")[:rows], np.load(folder / f"{tool}.npy")
    sample = np.sort(np.random.default_rng(1).permutation(rows)[:_SAMPLE])
    _, found = cKDTree(places).query(places[sample], _NEAR + 1)
    near = np.stack([row[row != own][:_NEAR] for row, own in zip(found, sample, strict=True)])
    kept, wrong = 0, 0
    for at in range(0, len(sample), 100):
        block = slice(at, at + 100)
        similar = vectors[sample[block]] @ np.asarray(vectors).T
        similar[np.arange(len(similar)), sample[block]] = np.inf
        for row, shown in zip(similar, near[block], strict=True):
            rank = (row[None, :] > row[shown][:, None]).sum(axis=1)
            kept += int((rank <= _NEAR).sum())
            wrong += int(np.maximum(rank - _NEAR, 0).sum())
    scale = 2 / (len(sample) * _NEAR * (2 * rows - 3 * _NEAR - 1))
    return {
        "seconds": time.perf_counter() - began,
        "kept": kept / (len(sample) * _NEAR),
        "purity": float((leaf[near] == leaf[sample][:, None]).mean()),
        "trustworthiness": 1 - scale * wrong,
    }


def _begin(folder: Path, rows: int) -> tuple[Points, Points]:
    """Return the vectors, and the first two principal components: the first of standard deviation 1."""
    vectors = np.load(folder / "vectors.npy")[:rows]
    drawn = vectors[np.random.default_rng(0).permutation(rows)[:20_000]]
    mean = drawn.mean(axis=0)
    axes = np.linalg.eigh((drawn - mean).T @ (drawn - mean))[1][:, -2:][:, ::-1]
    start = (vectors - mean) @ axes
    return vectors, np.asarray(start / start[:, 0].std(), np.float32)


def _graph(folder: Path) -> tuple[npt.NDArray[np.int32], Points]:
    """Return the neighbours and their cosine distances."""
    return np.load(folder / "neighbours.npy"), np.maximum(0, 1 - np.load(folder / "similarity.npy"))


def _timed(path: Path, place: Callable[[], Any]) -> Answer:
    began = time.perf_counter()
    places = place()
    seconds = time.perf_counter() - began
    np.save(path, np.asarray(places, np.float32))
    return {"seconds": seconds}


TASKS: dict[str, Callable[..., Answer]] = {
    each.__name__: each for each in (make, framedex, again, umap, pacmap, opentsne, quality)
}


if __name__ == "__main__":
    task, shared, answer = sys.argv[1:]
    sys.path.append(str(Path(__file__).resolve().parent))  # behind the tools' own modules of the same names
    job = json.loads((Path(shared) / "job.json").read_text("utf-8"))
    signal.alarm(int(job.pop("limit_s", 0)))
    Path(answer).write_text(json.dumps(TASKS[task](Path(shared), **job)), "utf-8")
