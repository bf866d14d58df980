"""Tasks that measure other tools on the same vectors, images and labels.

A tool that makes clusters writes a NumPy archive: ``labels``, shape (N, partitions), its clusters at the given cuts or
the one partition it has; ``others``, clusters at thresholds besides, from which the best may be taken; ``neighbours``,
shape (S, k), of the sampled rows, -1 where there is none. Only what it has is written. Turning a tool's links into
clusters at the cuts counts as its work; the thresholds besides do not.
"""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Answer = dict[str, Any]
Labels = npt.NDArray[np.int64]
Vectors = npt.NDArray[np.float32]
_PROBED = 16  # lists that FAISS looks into
_TRAINED = 64  # rows a list that it learns its lists from
_LEAST_SIMILAR_IMAGES = 0.5
_ADDED = 65536


def sklearn(vectors: str, cuts: Sequence[float], target: str, **_: Any) -> Answer:
    """Cluster with scikit-learn's average linkage, the truth of the others; one tree for all cuts."""
    import sklearn.cluster  # noqa: F401 - it is loaded before the clock starts

    from index_agreement import sklearn_labels

    held = np.load(vectors)
    started = time.perf_counter()
    labels = sklearn_labels(held, cuts)
    seconds = time.perf_counter() - started
    np.savez(target, labels=labels)
    return {"seconds": seconds}


def hdbscan(vectors: str, target: str, **_: Any) -> Answer:
    """Cluster with HDBSCAN's defaults under Euclidean distance, which orders unit vectors as the cosine does."""
    from hdbscan import HDBSCAN

    return _density_clusters(HDBSCAN(core_dist_n_jobs=-1), vectors, target)


def fast_hdbscan(vectors: str, target: str, **_: Any) -> Answer:
    """The same with fast_hdbscan, whose code is compiled for some rows before the clock starts."""
    from fast_hdbscan import HDBSCAN

    for shape in ((500, 8), (2000, 512)):  # of few values, and of many, whose neighbours are found by pynndescent
        HDBSCAN().fit_predict(np.random.default_rng(0).standard_normal(shape, np.float32))
    return _density_clusters(HDBSCAN(), vectors, target)


def _density_clusters(clusterer: Any, vectors: str, target: str) -> Answer:
    """Write the one partition of a clusterer; each row that it takes for noise is a cluster of its own."""
    held = np.load(vectors)
    started = time.perf_counter()
    labels = clusterer.fit_predict(held).astype(np.int64)
    seconds = time.perf_counter() - started
    noise = np.flatnonzero(labels < 0)
    labels[noise] = labels.max() + 1 + np.arange(len(noise))
    np.savez(target, labels=labels[:, None])
    return {"seconds": seconds, "noise": len(noise)}


def faiss(
    vectors: str, sample: str, k: int, cuts: Sequence[float], others: Sequence[float], target: str, **_: Any
) -> Answer:
    """Find neighbours with FAISS (inverted lists) and join those nearer than each cut: connected components."""
    import faiss as engine
    import scipy.sparse.csgraph  # noqa: F401 - it is loaded before the clock starts

    held = np.load(vectors)
    started = time.perf_counter()
    lists = max(1, round(4 * np.sqrt(len(held))))
    index = engine.IndexIVFFlat(engine.IndexFlatIP(held.shape[1]), held.shape[1], lists, engine.METRIC_INNER_PRODUCT)
    random = np.random.default_rng(0)
    index.train(held[np.sort(random.permutation(len(held))[: _TRAINED * lists])])
    index.add(held)
    index.nprobe = _PROBED
    similarity, found = index.search(held, k + 1)
    found[found == np.arange(len(held))[:, None]] = -1
    row, place = np.nonzero(found >= 0)
    links = row, found[row, place], similarity[row, place]
    labels = _linked(links, cuts, len(held))
    seconds = time.perf_counter() - started
    np.savez(target, labels=labels, others=_linked(links, others, len(held)), neighbours=found[np.load(sample)])
    return {"seconds": seconds}


def fastdup(
    vectors: str, sample: str, k: int, cuts: Sequence[float], others: Sequence[float], target: str, work: Path, **_: Any
) -> Answer:
    """Run fastdup on the vectors as precomputed features; its clusters are connected components of its pairs.

    One run has one threshold of components. Its pairs above the widest cut are taken, and joined at each cut.
    """
    import fastdup as engine
    import scipy.sparse.csgraph  # noqa: F401 - it is loaded before the clock starts

    held = np.load(vectors)
    names = [f"{work}/images/{number:09d}.jpg" for number in range(len(held))]
    started = time.perf_counter()
    run = engine.create(str(work / "fastdup"), str(work / "images"))
    _run_fastdup(run, 1 - max(*cuts, *others), k, annotations=names, embeddings=held)
    pairs = run.similarity(data=False)
    links = tuple(pairs[column].to_numpy() for column in ("from", "to", "distance"))
    labels = _linked(links, cuts, len(held))
    seconds = time.perf_counter() - started
    found = _of_sample(links, np.load(sample), k)
    np.savez(target, labels=labels, others=_linked(links, others, len(held)), neighbours=found)
    return {"seconds": seconds}


def _run_fastdup(run: Any, least: float, k: int, **source: Any) -> None:
    """Let it find k neighbours of each, and tell of all pairs that are at least so similar."""
    run.run(overwrite=True, print_summary=False, nearest_neighbors_k=k, threshold=least, ccthreshold=least, **source)


def _of_sample(links: Sequence[Any], sample: Labels, k: int) -> Labels:
    """Return the first k linked rows of each sampled row, most similar first; -1 where there are fewer."""
    row, other, similarity = links
    order = np.lexsort((-similarity, row))
    row, other = row[order], other[order]
    start, stop = np.searchsorted(row, sample), np.searchsorted(row, sample, side="right")
    found = np.full((len(sample), k), -1, dtype=np.int64)
    for place, (first, last) in enumerate(zip(start, stop, strict=True)):
        near = other[first : min(last, first + k)]
        found[place, : len(near)] = near
    return found


def _linked(links: Sequence[Any], cuts: Sequence[float], count: int) -> Labels:
    """Return the connected components of the pairs at each distance, shape (count, len(cuts))."""
    from index_agreement import components

    row, other, similarity = links
    labels = np.empty((count, len(cuts)), dtype=np.int64)
    for column, cut in enumerate(cuts):
        near = similarity >= 1 - cut
        labels[:, column] = components(row[near], other[near], count)
    return labels


def fastdup_images(images: str, target: str, k: int, work: Path, **_: Any) -> Answer:
    """Run fastdup on a folder of images; write its pairs by file names."""
    import fastdup as engine

    started = time.perf_counter()
    run = engine.create(str(work / "fastdup"), images)
    _run_fastdup(run, _LEAST_SIMILAR_IMAGES, k)
    seconds = time.perf_counter() - started
    pairs = run.similarity()
    names = [Path(path).name for path in run.annotations(valid_only=True)["filename"]]
    _save_pairs(
        target,
        names,
        [Path(path).name for path in pairs["filename_from"]],
        [Path(path).name for path in pairs["filename_to"]],
        pairs["distance"],
    )
    return {"seconds": seconds, "images": len(names)}


def phash(images: str, target: str, work: Path, **_: Any) -> Answer:
    """Find pairs of near perceptual hashes with imagededup; write them by file names, similarities being -bits."""
    from workers import phash_pairs

    found = phash_pairs(Path(images), work)
    first, second, bits = zip(*found["pairs"], strict=True)
    _save_pairs(target, found["names"], first, second, [-distance for distance in bits])
    return {"seconds": found["seconds"], "images": len(found["names"])}


def _save_pairs(target: str, names: Any, first: Any, second: Any, similarity: Any) -> None:
    np.savez(
        target,
        names=np.array(names, dtype=str),
        first=np.array(first, dtype=str),
        second=np.array(second, dtype=str),
        similarity=np.array(similarity, dtype=np.float32),
    )


def cleanlab(labelled: str, target: str, model: str, folds: int, k: int, **_: Any) -> Answer:
    """Write cleanlab's label quality turned round, for each set of labels: higher where a label is more likely wrong.

    Its input are the probabilities that a model, fitted to the other folds, gives to each class.

    Args:
        labelled: the NumPy archive of ``write_labelled``.
        target: a NumPy file, shape (seeds, N).
        model: ``logistic regression`` on standardised values, or ``nearest neighbours`` by cosine.
        folds: of the cross-validation.
        k: nearest neighbours.
    """
    from cleanlab.rank import get_label_quality_scores
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedKFold, cross_val_predict
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    models: dict[str, Any] = {
        # Of penalties from 0.01 to 1, on standardised and on unit vectors, this served it best on the digits.
        "logistic regression": make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=1000)),
        "nearest neighbours": KNeighborsClassifier(k, metric="cosine"),
    }
    data = np.load(labelled)
    started = time.perf_counter()
    scores = []
    for seed, given in enumerate(data["given"]):
        parts = StratifiedKFold(folds, shuffle=True, random_state=seed)
        chances = cross_val_predict(models[model], data["vectors"], given, cv=parts, method="predict_proba")
        scores.append(1 - get_label_quality_scores(given, chances))
    seconds = (time.perf_counter() - started) / len(scores)
    np.save(target, np.stack(scores))
    return {"seconds": seconds}
